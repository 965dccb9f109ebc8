/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Work -- what the model hears of submissions, seen by whether memory comes back at once
 */

#define _GNU_SOURCE

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "report/counters.h"
#include "route/work.h"
#include "tests/shim/begin.h"
#include "tests/sim_driver/control.h"
#include "track/context.h"

#define BYTES ((size_t)1 << 20)

static CUcontext context;
static CUstream one, two;
static CUfunction spin;

static void start(void)
{
        CUmodule module;

        context = begin_on(0);
        cr_assert_eq(sp_driver.cuModuleLoadData(&module, ""), CUDA_SUCCESS);
        cr_assert_eq(cuModuleGetFunction(&spin, module, "spin"), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuStreamCreate(&one, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuStreamCreate(&two, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
}

TestSuite(work, .init = start);

static CUdeviceptr alloc(void)
{
        CUdeviceptr pointer;

        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, BYTES), CUDA_SUCCESS);
        return pointer;
}

/* Is a block that was freed a moment ago served again, although nothing is known to be complete? */
static bool comes_back(void)
{
        CUdeviceptr first = alloc(), second;

        use_up_ready(BYTES);
        cr_assert_eq(sp_on_cuMemFree_v2(first), CUDA_SUCCESS);
        second = alloc();
        cr_assert_eq(sp_on_cuMemFree_v2(second), CUDA_SUCCESS);
        return second == first;
}

static void spin_on(CUstream stream)
{
        uint64_t nanoseconds = 1000000;
        void *arguments[] = {&nanoseconds};

        launch_on(stream);
        cr_assert_eq(sp_driver.cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL),
                     CUDA_SUCCESS);
}

/* With a kernel that is still running. */
static bool comes_back_to(CUstream stream)
{
        CUdeviceptr warm = alloc();
        bool back;

        spin_on(stream);
        back = comes_back();
        cr_assert_eq(sp_on_cuMemFree_v2(warm), CUDA_SUCCESS);
        return back;
}

/* A block is somebody else's while a kernel of its last owner is running. Return: when that ends.
 */
static uint64_t serve_early(void)
{
        CUdeviceptr first = alloc();
        uint64_t began = sim_now_ns();

        spin_on(one);
        use_up_ready(BYTES);
        cr_assert_eq(sp_on_cuMemFree_v2(first), CUDA_SUCCESS);
        cr_assert_eq(alloc(), first);
        return began + 1000000;
}

Test(work, of_another_stream_waits_on_the_device)
{
        uint64_t end = serve_early();

        sim_calls_reset();
        launch_on(two);
        cr_expect_eq(sim_calls("cuStreamWaitEvent"), 1);
        cr_expect_lt(sim_now_ns(), end);
}

Test(work, of_another_stream_is_waited_for_where_the_device_cannot)
{
        uint64_t end = serve_early();

        sim_fail("cuStreamWaitEvent", 1, CUDA_ERROR_UNKNOWN);
        launch_on(two);
        cr_expect_geq(sim_now_ns(), end);
}

/* A synchronous copy would not heed what the device was told to wait for. */
Test(work, of_the_legacy_stream_waits_on_the_host)
{
        uint64_t end = serve_early();

        launch_on(CU_STREAM_LEGACY);
        cr_expect_geq(sim_now_ns(), end);
}

Test(work, of_the_legacy_stream_waits_without_a_stamp_too)
{
        uint64_t end = serve_early();

        sim_fail("cuEventRecord", 1, CUDA_ERROR_UNKNOWN);
        launch_on(CU_STREAM_LEGACY);
        cr_expect_geq(sim_now_ns(), end);
}

Test(work, of_one_stream_brings_memory_back)
{
        cr_expect(comes_back_to(one));
}

Test(work, of_two_streams_does_not)
{
        alloc();
        launch_on(two);
        cr_expect_not(comes_back_to(one));
        cr_expect_eq(sp_counter_sum(SP_COUNTER_host_waits), 0);
}

Test(work, of_two_streams_is_forgotten_after_a_wait_of_the_program)
{
        alloc();
        launch_on(two);
        cr_expect_not(comes_back_to(one));
        cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
        cr_expect(comes_back_to(one));
        launch_on(two);
        cr_expect_not(comes_back_to(one));
}

/* Each time it was in vain the next try comes later. */
Test(work, is_not_counted_anew_all_the_time)
{
        unsigned int records;

        alloc();
        launch_on(one);
        launch_on(two);
        sim_calls_reset();
        for (int i = 0; i < 1000; i++) {
                cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
                launch_on(one);
                launch_on(two);
        }
        records = (unsigned int)sim_calls("cuCtxRecordEvent");
        cr_expect(records > 1 && records < 16, "%u", records);
}

Test(work, from_before_the_first_allocation_is_waited_for)
{
        launch_on(two);
        cr_expect(comes_back_to(one), "it has ended, and that was asked");
}

Test(work, of_a_stream_with_the_handle_of_an_old_one_is_another_streams)
{
        CUstream again;

        alloc();
        launch_on(one);
        cr_assert_eq(sp_on_cuStreamDestroy_v2(one), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuStreamCreate(&again, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_assert_eq(again, one);
        cr_expect_not(comes_back_to(again), "the old one may still be at work");
}

Test(work, of_two_contexts_is_kept_apart_from_memory)
{
        CUcontext other;
        CUstream stream;

        cr_expect(comes_back_to(one));
        cr_assert_eq(sp_driver.cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
        cr_assert_eq(cuCtxSetCurrent(other), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        launch_on(stream);
        cr_assert_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
        cr_expect_not(comes_back_to(one));
}

/* One on the device of the first, current and with memory of its own. */
static CUcontext start_other(void)
{
        CUcontext other;

        alloc();
        cr_assert_eq(sp_on_cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
        alloc();
        return other;
}

/* The mark that the first one's default stream left is the same as that of the other one's. */
Test(work, on_the_legacy_stream_of_another_context_is_not_overlooked)
{
        CUcontext other = start_other();

        cr_assert_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
        launch_on(CU_STREAM_LEGACY);
        cr_assert_eq(cuCtxSetCurrent(other), CUDA_SUCCESS);
        cr_expect_not(comes_back_to(CU_STREAM_LEGACY));
}

/* Where the other thread wants the processor, too, that has it. */
static void stand_back(void)
{
        struct sched_param none = {0};

        pthread_setschedparam(pthread_self(), SCHED_IDLE, &none);
}

static void *alloc_in(void *handle)
{
        if (handle == context)
                stand_back();
        cr_assert_eq(cuCtxSetCurrent((CUcontext)handle), CUDA_SUCCESS);
        alloc();
        return NULL;
}

/* Both wait for the model's lock, and whoever comes with the other context is mostly the first to
 * have it, and has it again before the other thread wakes up. */
Test(work, of_two_contexts_that_are_new_at_once_is_kept_apart_from_memory)
{
        pthread_t threads[2];
        CUcontext other;
        cpu_set_t one_cpu;

        CPU_ZERO(&one_cpu);
        CPU_SET(sched_getcpu(), &one_cpu);
        sched_setaffinity(0, sizeof(one_cpu), &one_cpu);
        cr_assert_eq(sp_on_cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
        sp_model_enter();
        cr_assert_eq(pthread_create(&threads[0], NULL, alloc_in, other), 0);
        usleep(20000);
        cr_assert_eq(pthread_create(&threads[1], NULL, alloc_in, context), 0);
        usleep(20000);
        sp_model_leave();
        pthread_join(threads[0], NULL);
        pthread_join(threads[1], NULL);
        cr_assert_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
        cr_expect_not(comes_back_to(one));
}

/* The driver's own cuMemFree() waits for it: what the context waits for may be in its memory. */
Test(work, elsewhere_that_a_stream_without_work_waits_for_is_not_overlooked)
{
        CUstream elsewhere;
        CUevent event;

        start_other();
        cr_assert_eq(sp_on_cuStreamCreate(&elsewhere, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_assert_eq(sp_driver.cuEventCreate(&event, 0), CUDA_SUCCESS);
        spin_on(elsewhere);
        cr_assert_eq(sp_on_cuEventRecord(event, elsewhere), CUDA_SUCCESS);
        cr_assert_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuStreamWaitEvent(one, event, 0), CUDA_SUCCESS);
        cr_expect_not(comes_back());
}

/* An event behind a kernel on the one stream, where memory has come back to that. The model does
 * not know the event: what it makes of a wait for one that it knows is not asked here. */
static CUevent event_behind_one(void)
{
        CUevent event;

        cr_expect(comes_back_to(one));
        cr_assert_eq(sp_driver.cuEventCreate(&event, 0), CUDA_SUCCESS);
        cr_assert_eq(sp_driver.cuEventRecord(event, one), CUDA_SUCCESS);
        return event;
}

Test(work, is_what_a_stream_waits_for)
{
        cr_assert_eq(sp_on_cuStreamWaitEvent(two, event_behind_one(), 0), CUDA_SUCCESS);
        cr_expect_not(comes_back_to(one));
}

Test(work, is_what_a_whole_context_waits_for)
{
        cr_assert_eq(sp_on_cuCtxWaitEvent(context, event_behind_one()), CUDA_SUCCESS);
        cr_expect_not(comes_back_to(one));
}

#if CUDA_VERSION >= 12050
Test(work, is_what_a_green_context_waits_for)
{
        CUevent event = event_behind_one();
        CUgreenCtx green = make_green();

        cr_expect(comes_back_to(one));
        cr_assert_eq(sp_on_cuGreenCtxWaitEvent(green, event), CUDA_SUCCESS);
        cr_expect_not(comes_back_to(one));
}

/* It has the memory of the first one, so that a kernel there may use it. */
Test(work, on_the_legacy_stream_of_a_green_context_is_not_overlooked)
{
        CUgreenCtx green = make_green();
        CUdeviceptr first;
        CUcontext converted;

        cr_expect(comes_back_to(CU_STREAM_LEGACY));
        first = alloc();
        spin_on(CU_STREAM_LEGACY);

        cr_assert_eq(sp_on_cuCtxFromGreenCtx(&converted, green), CUDA_SUCCESS);
        cr_assert_eq(cuCtxSetCurrent(converted), CUDA_SUCCESS);
        spin_on(CU_STREAM_LEGACY);
        cr_assert_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
        use_up_ready(BYTES);
        cr_assert_eq(sp_on_cuMemFree_v2(first), CUDA_SUCCESS);
        cr_expect_neq(alloc(), first);
}
#endif

static void copy_on(CUstream stream)
{
        struct sp_submitter *self = sp_submit_enter();

        sp_submit_mark(stream, SP_SUBMIT_COPY);
        sp_submit_leave(self);
}

Test(work, of_a_copy_from_another_context_is_noticed)
{
        CUcontext other;

        cr_expect(comes_back_to(CU_STREAM_LEGACY));
        copy_on(CU_STREAM_LEGACY);
        cr_expect(comes_back_to(CU_STREAM_LEGACY));
        cr_assert_eq(sp_driver.cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
        cr_assert_eq(cuCtxSetCurrent(other), CUDA_SUCCESS);
        copy_on(CU_STREAM_LEGACY);
        cr_assert_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
        cr_expect_not(comes_back_to(CU_STREAM_LEGACY));
}

Test(work, of_peers_is_nothing_we_hear_of)
{
        CUcontext other;

        cr_expect(comes_back_to(one));
        cr_assert_eq(sp_driver.cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
        cr_assert_eq(cuCtxSetCurrent(other), CUDA_SUCCESS);
        cr_expect_eq(sp_on_cuCtxEnablePeerAccess(context, 0), CUDA_SUCCESS);
        cr_assert_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
        cr_expect_not(comes_back_to(one));
}

Test(work, of_whoever_has_a_handle_of_the_memory_is_none_either)
{
        CUdeviceptr pointer = alloc();
        int descriptor;

        cr_expect(comes_back_to(one));
        cr_assert_eq(sp_on_cuMemGetHandleForAddressRange(&descriptor, pointer, BYTES,
                                                         CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
                     CUDA_SUCCESS);
        cr_expect_not(comes_back_to(one));
}

/* While something captures nothing is told, so what was told before is worth nothing after. */
Test(work, during_a_capture_is_not_told)
{
        CUgraph graph;

        cr_expect(comes_back_to(one));
        cr_assert_eq(sp_on_cuStreamBeginCapture_v2(two, CU_STREAM_CAPTURE_MODE_RELAXED),
                     CUDA_SUCCESS);
        launch_on(one);
        cr_assert_eq(sp_on_cuStreamEndCapture(two, &graph), CUDA_SUCCESS);
        cr_expect_not(comes_back_to(one));
        cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
        cr_expect(comes_back_to(one));
}

static void never_early(void)
{
        setenv("STREAMPOOL_EARLY", "0", 1);
        start();
}

Test(work_never_early, is_not_relied_on, .init = never_early)
{
        CUdeviceptr pointer = alloc();

        cr_expect_not(comes_back_to(one));
        cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemFree_v2(pointer), CUDA_SUCCESS);
        cr_expect_not(comes_back_to(one));
}

static void observe(void)
{
        setenv("STREAMPOOL_MODE", "observe", 1);
        start();
}

Test(work_observe, is_told_to_nobody_where_nothing_is_pooled, .init = observe)
{
        launch_on(one);
        launch_on(CU_STREAM_PER_THREAD);
        cr_expect_eq(sp_counter_sum(SP_COUNTER_streams_marked), 0);
}

/* What was served early is still in the program's hands then. */
Test(work, is_told_when_nothing_is_pooled_any_more)
{
        sp_life_off("this is a test");
        launch_on(one);
        cr_expect_eq(sp_counter_sum(SP_COUNTER_streams_marked), 1);
}

Test(work, is_told_to_nobody_at_the_end_of_the_process)
{
        sp_life_leaving();
        launch_on(one);
        cr_expect_eq(sp_counter_sum(SP_COUNTER_streams_marked), 0);
}

Test(work, of_a_function_that_nobody_lists_is_not_told)
{
        cr_expect(comes_back_to(one));
        cr_assert(sp_submit_unknown("cuNewAsync"));
        sp_work_give_up();
        cr_expect_not(comes_back_to(one));
        cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
        cr_expect_not(comes_back_to(one), "for ever");
}
