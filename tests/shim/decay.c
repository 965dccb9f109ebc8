/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Decay -- memory that is idle for long goes back, and what is in use stays
 *
 * The clock is a function of this file.
 */

#include <criterion/criterion.h>
#include <stdlib.h>
#include <time.h>

#include "tests/shim/begin.h"

#define MIB  ((size_t)1 << 20)
#define STEP ((uint64_t)100 * 1000 * 1000) /* a tenth of the decay below */

static uint64_t clock_ns = 5 * STEP;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
        if (clock != CLOCK_MONOTONIC_COARSE)
                return __real_clock_gettime(clock, now);
        now->tv_sec = (time_t)(clock_ns / 1000000000);
        now->tv_nsec = (long)(clock_ns % 1000000000);
        return 0;
}

static CUdeviceptr kept;

/* 16 MiB in use, 256 MiB idle. */
static void start_with(const char *decay)
{
        CUdeviceptr idle;

        setenv("STREAMPOOL_DECAY", decay, 1);
        begin_on(0);
        cr_assert_eq(sp_on_cuMemAlloc_v2(&kept, 16 * MIB), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemAlloc_v2(&idle, 256 * MIB), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemFree_v2(idle), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
}

static size_t held(void)
{
        size_t free_bytes, total;

        cr_assert_eq(sp_driver.cuMemGetInfo_v2(&free_bytes, &total), CUDA_SUCCESS);
        return total - free_bytes;
}

/* The program asks for nothing but to wait, now and then. */
static void let_pass(unsigned int steps)
{
        while (steps--) {
                clock_ns += STEP;
                cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
        }
}

Test(decay, leaves_what_was_in_use_a_moment_ago)
{
        start_with("1s");
        let_pass(5);
        cr_expect_geq(held(), 272 * MIB);
}

Test(decay, takes_what_was_idle_for_long_and_little_by_little)
{
        size_t most = 0, before;

        start_with("1s");
        before = held();
        for (unsigned int i = 0; i < 60; i++) {
                size_t now;

                let_pass(1);
                now = held();
                most = before - now > most ? before - now : most;
                before = now;
        }
        cr_expect_leq(before, 48 * MIB, "%zu MiB", before / MIB);
        cr_expect_geq(before, 16 * MIB);
        cr_expect_leq(most, 192 * MIB, "%zu MiB at once", most / MIB);
        cr_expect_eq(sp_on_cuMemFree_v2(kept), CUDA_SUCCESS);
}

Test(decay, can_be_switched_off)
{
        start_with("0");
        let_pass(1000);
        cr_expect_geq(held(), 272 * MIB);
}
