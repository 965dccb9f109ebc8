/* SPDX-License-Identifier: Apache-2.0 */

/*
 * On order -- what an event says when its record did not go as it usually does
 */

#include <criterion/criterion.h>
#include <pthread.h>
#include <streampool/model.h>

#include "report/counters.h"
#include "route/route.h"
#include "tests/shim/begin.h"
#include "tests/sim_driver/control.h"
#include "track/event.h"
#include "track/state.h"

#define KIB ((size_t)1 << 10)

enum spm_status __real_spm_record_begin(struct spm_model *model, spm_event event,
                                        struct spm_scope where, struct spm_ticket *ticket,
                                        struct spm_actions *actions);
enum spm_status __wrap_spm_record_begin(struct spm_model *model, spm_event event,
                                        struct spm_scope where, struct spm_ticket *ticket,
                                        struct spm_actions *actions);

static bool is_host_full;
static CUstream stream, other;
static CUevent event;
static CUdeviceptr pointer;

/* As if the host had no memory for what the event is to say: what was asked for by then stays. */
enum spm_status __wrap_spm_record_begin(struct spm_model *model, spm_event id,
                                        struct spm_scope where, struct spm_ticket *ticket,
                                        struct spm_actions *actions)
{
        enum spm_status status = __real_spm_record_begin(model, id, where, ticket, actions);

        if (!is_host_full || status != SPM_OK)
                return status;
        spm_record_end(model, ticket, false);
        return SPM_E_HOST_MEMORY;
}

static void start(void)
{
        begin_on(0);
        cr_assert_eq(sp_on_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_assert_eq(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemAllocAsync(&pointer, 8192 * KIB, stream), CUDA_SUCCESS);
}

TestSuite(on_order, .init = start);

/* May work on the other stream that waits for the event use what was allocated on the first? */
static bool event_orders(void)
{
        struct sp_stream *consumer = sp_stream_of(other);
        spm_event known = sp_event_find(event);
        bool is_ready;

        cr_assert(consumer && known);
        is_ready = spm_is_ready_on(sp_model_enter(), pointer, consumer->model, known);
        sp_model_leave();
        return is_ready;
}

Test(on_order, is_learnt_from_a_record)
{
        cr_assert_eq(sp_on_cuEventRecord(event, stream), CUDA_SUCCESS);
        cr_expect(event_orders());
}

/* The event stands for other work then, and we do not know for which. */
Test(on_order, is_forgotten_when_the_event_is_recorded_where_nobody_looked)
{
        cr_assert_eq(sp_on_cuEventRecord(event, stream), CUDA_SUCCESS);
        sim_fail("cuCtxGetCurrent", 1, CUDA_ERROR_UNKNOWN);
        cr_assert_eq(sp_on_cuEventRecord(event, CU_STREAM_LEGACY), CUDA_SUCCESS);
        cr_expect_not(event_orders());
        cr_assert_eq(sp_on_cuEventRecord(event, stream), CUDA_SUCCESS);
        cr_expect(event_orders(), "now we know again");
}

Test(on_order, costs_no_stamp_when_the_host_is_full)
{
        uint64_t recorded = sp_counter_sum(SP_COUNTER_stamps_recorded);

        cr_assert_eq(sp_on_cuMemFreeAsync(pointer, stream), CUDA_SUCCESS);
        is_host_full = true;
        sim_calls_reset();
        cr_assert_eq(sp_on_cuEventRecord(event, stream), CUDA_SUCCESS);
        cr_expect_eq(sim_calls("cuEventRecord"), 2, "the model's, and the program's");
        cr_expect_eq(sp_counter_sum(SP_COUNTER_stamps_recorded), recorded + 1);
}

/* An allocation that the driver does not see is waited for like one that it sees. */
Test(on_order, of_an_allocation_behind_the_legacy_stream_is_waited_for)
{
        uint64_t nanoseconds = 1000000, began = sim_now_ns();
        void *arguments[] = {&nanoseconds};
        CUdeviceptr first, second;
        CUstream blocking;
        CUfunction spin;
        CUmodule module;

        cr_assert_eq(sp_driver.cuModuleLoadData(&module, ""), CUDA_SUCCESS);
        cr_assert_eq(cuModuleGetFunction(&spin, module, "spin"), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuStreamCreate(&blocking, CU_STREAM_DEFAULT), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemAllocAsync(&first, 64 * KIB, blocking), CUDA_SUCCESS);
        launch_on(CU_STREAM_LEGACY);
        cr_assert_eq(sp_driver.cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, CU_STREAM_LEGACY,
                                              arguments, NULL),
                     CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemFreeAsync(first, blocking), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemAllocAsync(&second, 64 * KIB, blocking), CUDA_SUCCESS);
        cr_assert_eq(second, first, "in the order of the stream");
        cr_expect_eq(sp_on_cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
        cr_assert_eq(sp_on_cuStreamSynchronize(blocking), CUDA_SUCCESS);
        cr_expect(sim_now_ns() - began >= nanoseconds);
}

/* By a library that was there before us, say. It is a stream like any other, and not the default
 * one. */
Test(on_order, of_a_stream_that_was_made_unseen_is_its_own)
{
        struct spm_allocation block;
        CUdeviceptr first, second;
        CUstream unseen;

        cr_assert_eq(sp_driver.cuStreamCreate(&unseen, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_assert_null(sp_stream_find(unseen));
        cr_assert_eq(sp_on_cuMemAllocAsync(&first, 8192 * KIB, unseen), CUDA_SUCCESS);
        cr_assert_not_null(sp_stream_find(unseen));
        cr_assert_eq(spm_find(sp_model_enter(), first, &block), SPM_OK);
        sp_model_leave();
        cr_expect_eq(block.stream, sp_stream_find(unseen)->model);
        cr_expect_neq(block.stream, sp_stream_of(CU_STREAM_LEGACY)->model);
        cr_assert_eq(sp_on_cuMemFreeAsync(first, unseen), CUDA_SUCCESS);
        launch_on(unseen);
        cr_assert_eq(sp_on_cuMemAllocAsync(&second, 8192 * KIB, unseen), CUDA_SUCCESS);
        cr_expect_eq(second, first, "in its own order at once");
        cr_expect_eq(served_by_pools(), 3);
}

static void *own_stream(void *unused)
{
        (void)unused;
        cr_assert_eq(cuCtxSetCurrent(sp_context_each(NULL)->handle), CUDA_SUCCESS);
        return (void *)(uintptr_t)sp_stream_of(CU_STREAM_PER_THREAD)->model;
}

Test(on_order, of_the_default_stream_of_each_thread_is_its_own)
{
        spm_stream legacy = sp_stream_of(CU_STREAM_LEGACY)->model;
        spm_stream own = sp_stream_of(CU_STREAM_PER_THREAD)->model;
        pthread_t thread;
        void *others;

        cr_assert_eq(pthread_create(&thread, NULL, own_stream, NULL), 0);
        cr_assert_eq(pthread_join(thread, &others), 0);
        cr_expect_neq(own, legacy);
        cr_expect_neq((spm_stream)(uintptr_t)others, own);
        cr_expect_neq((spm_stream)(uintptr_t)others, legacy);
        cr_expect_eq(sp_stream_of(CU_STREAM_LEGACY)->model, legacy);
        cr_expect_eq(sp_stream_of(CU_STREAM_PER_THREAD)->model, own);
}
