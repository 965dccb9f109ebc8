/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tick -- does the program's own work bring the model the time, and not too often?
 *
 * The linker hands clock_gettime() and spm_tick() to wrappers here.
 */

#include <criterion/criterion.h>
#include <stdlib.h>
#include <time.h>

#include "route/tick.h"
#include "tests/shim/begin.h"
#include "track/state.h"

#define STEP ((uint64_t)100 * 1000 * 1000) /* a tenth of the decay below */

static uint64_t clock_ns = 5 * STEP;
static unsigned int looks, ticks;
static uint64_t told; /* by the last tick */

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
enum spm_status __wrap_spm_tick(struct spm_model *model, uint64_t now, struct spm_actions *actions);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
        if (clock != CLOCK_MONOTONIC_COARSE)
                return __real_clock_gettime(clock, now);
        looks++;
        now->tv_sec = (time_t)(clock_ns / 1000000000);
        now->tv_nsec = (long)(clock_ns % 1000000000);
        return 0;
}

/* Has more to release the first time. */
enum spm_status __wrap_spm_tick(struct spm_model *model, uint64_t now, struct spm_actions *actions)
{
        (void)model;
        told = now;
        actions->count = 0;
        return ++ticks == 1 ? SPM_AGAIN : SPM_OK;
}

static CUstream stream;

static void start_with(const char *decay)
{
        setenv("STREAMPOOL_DECAY", decay, 1);
        begin_on(0);
        cr_assert_eq(sp_on_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
}

static void start(void)
{
        start_with("1s");
        looks = 0;
        ticks = 1;
}

static void pairs(unsigned int count)
{
        CUdeviceptr pointer;

        while (count--) {
                cr_assert_eq(sp_on_cuMemAllocAsync(&pointer, 4096, stream), CUDA_SUCCESS);
                cr_assert_eq(sp_on_cuMemFreeAsync(pointer, stream), CUDA_SUCCESS);
        }
}

Test(tick, goes_on_until_the_model_has_nothing_to_add)
{
        start_with("1s");
        cr_expect_eq(ticks, 2);
        cr_expect_eq(told, clock_ns);
}

Test(tick, comes_ten_times_a_decay_with_the_waits_of_the_program, .init = start)
{
        for (unsigned int i = 0; i < 100; i++) {
                cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
                clock_ns += STEP / 10;
        }
        cr_expect_eq(ticks - 1, 9);
        cr_expect_eq(sp_on_cuStreamQuery(stream), CUDA_SUCCESS);
        cr_expect_eq(ticks - 1, 10);
        cr_expect_eq(told, clock_ns);
}

Test(tick, comes_with_one_of_many_allocations_that_the_pool_has_ready, .init = start)
{
        pairs(1);
        clock_ns += STEP;
        looks = 0;
        pairs(SP_TICK_CALLS);
        cr_expect_eq(ticks - 1, 1);
        cr_expect_eq(looks, 1);
        pairs(10 * SP_TICK_CALLS);
        cr_expect_eq(ticks - 1, 1);
        cr_expect_eq(looks, 11);
}

Test(tick, does_not_come_while_something_captures, .init = start)
{
        CUgraph graph;

        clock_ns += STEP;
        cr_assert_eq(sp_on_cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED),
                     CUDA_SUCCESS);
        cr_expect_eq(sp_on_cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        sp_tick();
        cr_expect_eq(ticks - 1, 0);
        sp_on_cuStreamEndCapture(stream, &graph);
        sp_tick();
        cr_expect_eq(ticks - 1, 1);
}

Test(tick, never_comes_if_nothing_is_to_be_given_back)
{
        start_with("0");
        clock_ns += 1000 * STEP;
        cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
        cr_expect_eq(ticks, 0);
        cr_expect_eq(looks, 0);
}
