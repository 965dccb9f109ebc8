/* SPDX-License-Identifier: Apache-2.0 */

/*
 * In vain -- memory is short, and a kernel is in front of all that could become free
 *
 * One wait may take its second; those that come after it would take theirs too,
 * and the program would stand still for as long as its memory is full. Naps are
 * counted and take no time here, and the clock is a function of this file.
 */

#include <criterion/criterion.h>
#include <time.h>

#include "report/counters.h"
#include "route/perform.h"
#include "stamp/stamp.h"
#include "tests/shim/begin.h"
#include "tests/sim_driver/control.h"

#define MIB       ((size_t)1 << 20)
#define SECOND    1000000000
#define KERNEL_NS ((uint64_t)3600 * SECOND)

static uint64_t clock_ns = (uint64_t)100 * SECOND;
static unsigned int naps;
static CUfunction spin;
static CUstream busy;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_nanosleep(const struct timespec *time, struct timespec *rest);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
        if (clock != CLOCK_MONOTONIC_COARSE)
                return __real_clock_gettime(clock, now);
        now->tv_sec = (time_t)(clock_ns / SECOND);
        now->tv_nsec = (long)(clock_ns % SECOND);
        return 0;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *rest)
{
        (void)time;
        (void)rest;
        naps++;
        return 0;
}

/* A kernel of the current context, and memory that was freed behind it. */
static void keep_busy(void)
{
        uint64_t nanoseconds = KERNEL_NS;
        void *arguments[] = {&nanoseconds};
        CUdeviceptr pointer;
        CUmodule module;

        cr_assert_eq(sp_driver.cuModuleLoadData(&module, ""), CUDA_SUCCESS);
        cr_assert_eq(cuModuleGetFunction(&spin, module, "spin"), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, 8 * MIB), CUDA_SUCCESS);
        launch_on(busy);
        cr_assert_eq(sp_driver.cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, busy, arguments, NULL),
                     CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemFree_v2(pointer), CUDA_SUCCESS);
}

static void start(void)
{
        begin_on(0);
        sim_poll_cost(0);
        keep_busy();
}

TestSuite(in_vain, .init = start);

/* What a driver call that is refused for memory costs the program. */
struct cost {
        uint64_t waits;
        unsigned int naps;
};

static struct cost be_refused(void)
{
        uint64_t waits = sp_counter_sum(SP_COUNTER_host_waits);
        CUdeviceptr pointer;

        naps = 0;
        sim_fail("cuMemAllocManaged", 1, CUDA_ERROR_OUT_OF_MEMORY);
        cr_assert_eq(sp_on_cuMemAllocManaged(&pointer, MIB, CU_MEM_ATTACH_GLOBAL),
                     CUDA_ERROR_OUT_OF_MEMORY);
        return (struct cost){sp_counter_sum(SP_COUNTER_host_waits) - waits, naps};
}

static void expect_patience(void)
{
        struct cost cost = be_refused();

        cr_expect_eq(cost.waits, 1);
        cr_expect_eq(cost.naps, SP_STAMP_PATIENCE_MS * 10, "%u naps", cost.naps);
}

static void expect_a_look(void)
{
        uint64_t looks = sim_calls("cuEventQuery");
        struct cost cost = be_refused();

        cr_expect_eq(cost.waits, 0);
        cr_expect_eq(cost.naps, 0, "%u naps", cost.naps);
        cr_expect_gt(sim_calls("cuEventQuery"), looks);
}

Test(in_vain, a_wait_is_not_begun_anew_for_a_while)
{
        expect_patience();
        expect_a_look();
        clock_ns += (uint64_t)9 * SECOND;
        expect_a_look();
        clock_ns += SECOND;
        expect_patience();
        expect_a_look();
}

Test(in_vain, what_ends_soon_is_waited_for_without_a_nap)
{
        sim_poll_cost(KERNEL_NS / 100);
        naps = 0;
        cr_expect(sp_relieve_device(sp_context_current()->device, 0));
        cr_expect_eq(naps, 0, "%u naps", naps);
}

/* Memory that may be had by growing is not worth a second. */
Test(in_vain, a_brief_wait_takes_a_moment_and_is_no_reason_not_to_wait)
{
        struct sp_context *context = sp_context_current();
        struct sp_stamp stamp;

        cr_assert_eq(sp_stamp_on_stream(&context->stamper, busy, &stamp), CUDA_SUCCESS);
        naps = 0;
        cr_expect_eq(sp_wait_or_look(context, &stamp, true), CUDA_ERROR_NOT_READY);
        cr_expect_eq(naps, SP_STAMP_MOMENT_MS * 10, "%u naps", naps);
        naps = 0;
        cr_expect_eq(sp_wait_or_look(context, &stamp, true), CUDA_ERROR_NOT_READY);
        cr_expect_eq(naps, 0, "%u naps", naps);
        expect_patience();
        sp_stamp_drop(&stamp);
}

Test(in_vain, another_context_is_waited_for_all_the_same)
{
        CUcontext other;

        expect_patience();
        cr_assert_eq(sp_on_cuCtxCreate_v2(&other, 0, 1), CUDA_SUCCESS);
        keep_busy();
        expect_patience();
        expect_a_look();
}

Test(in_vain, what_has_ended_in_the_meantime_is_seen_by_a_look)
{
        expect_patience();
        sim_advance(2 * KERNEL_NS);
        naps = 0;
        cr_expect(sp_relieve_device(sp_context_current()->device, 0));
        cr_expect_eq(naps, 0);
}
