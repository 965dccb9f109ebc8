/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Order -- which operation waits for which
 *
 * Virtual time: a kernel spins for so long, and what the clock shows after a wait
 * says what the wait was for. Facts by their names in the semantics contract.
 */

#include "test_bench.h"

#include <pthread.h>
#include <signal.h>

TestSuite(order, .init = bench_start, .timeout = 20);

/* Rounds away the few microseconds of polls and copies. */
static unsigned int elapsed_ms(void)
{
        return (unsigned int)((sim_now_ns() + MS / 2) / MS);
}

static bool ready(CUevent event)
{
        CUresult result = cuEventQuery(event);

        cr_assert(result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY);
        return result == CUDA_SUCCESS;
}

Test(order, a_stream_runs_its_operations_one_after_the_other)
{
        CUdeviceptr p = bench_alloc(4096);

        bench_spin(bench.n1, 10 * MS);
        bench_fill(bench.n1, p, 1024, 1);
        bench_add(bench.n1, p, 1024, 2);
        OK(cuStreamSynchronize(bench.n1));
        cr_expect_eq(elapsed_ms(), 10);
        cr_expect_eq(bench_value(p), 3);
}

Test(order, two_streams_run_at_the_same_time)
{
        bench_spin(bench.n1, 10 * MS);
        bench_spin(bench.n2, 10 * MS);
        OK(cuCtxSynchronize());
        cr_expect_eq(elapsed_ms(), 10);
}

Test(order, a_query_answers_not_ready_and_lets_time_pass)
{
        unsigned int polls = 0;

        bench_spin(bench.n1, 100 * 1000);
        while (cuStreamQuery(bench.n1) == CUDA_ERROR_NOT_READY)
                polls++;
        cr_expect_eq(polls, 100);
}

Test(order, time_stands_still_until_somebody_waits)
{
        bench_spin(bench.n1, 10 * MS);
        bench_spin(bench.n1, 10 * MS);
        cr_expect_eq(sim_pending(), 2);
        cr_expect(sim_step());
        cr_expect_eq(sim_pending(), 1);
        sim_advance(9 * MS);
        cr_expect_eq(sim_pending(), 1);
        sim_advance(1 * MS);
        cr_expect_eq(sim_pending(), 0);
        cr_expect_not(sim_step());
}

Test(order, an_event_waits_for_what_was_before_it)
{
        bench_spin(bench.n1, 10 * MS);
        OK(cuEventRecord(bench.event, bench.n1));
        bench_spin(bench.n1, 10 * MS);
        cr_expect_not(ready(bench.event));
        OK(cuEventSynchronize(bench.event));
        cr_expect_eq(elapsed_ms(), 10);
        cr_expect(ready(bench.event));
}

Test(order, an_event_never_recorded_is_complete)
{
        cr_expect(ready(bench.event), "M28");
        OK(cuStreamWaitEvent(bench.n1, bench.event, 0));
        OK(cuEventSynchronize(bench.event));
}

Test(order, a_stream_that_waits_for_an_event_keeps_the_old_moment)
{
        bench_spin(bench.n1, 10 * MS);
        OK(cuEventRecord(bench.event, bench.n1));
        OK(cuStreamWaitEvent(bench.n2, bench.event, 0));
        bench_spin(bench.n1, 50 * MS);
        OK(cuEventRecord(bench.event, bench.n1));
        OK(cuStreamSynchronize(bench.n2));
        cr_expect_eq(elapsed_ms(), 10);
}

Test(order, elapsed_time_is_virtual_time)
{
        CUevent start, silent;
        float milliseconds = 0;

        OK(cuEventCreate(&start, CU_EVENT_DEFAULT));
        OK(cuEventCreate(&silent, CU_EVENT_DISABLE_TIMING));
        OK(cuEventRecord(start, bench.n1));
        bench_spin(bench.n1, 20 * MS);
        OK(cuEventRecord(bench.event, bench.n1));
        OK(cuEventRecord(silent, bench.n1));
        cr_expect_eq(cuEventElapsedTime(&milliseconds, start, bench.event), CUDA_ERROR_NOT_READY);
        OK(cuCtxSynchronize());
        OK(cuEventElapsedTime(&milliseconds, start, bench.event));
        cr_expect_float_eq(milliseconds, 20.0f, 0.01f);
        cr_expect_eq(cuEventElapsedTime(&milliseconds, start, silent), CUDA_ERROR_INVALID_HANDLE);
}

Test(order, a_full_queue_makes_the_host_wait)
{
        for (int i = 0; i < 20000; i++)
                bench_spin(bench.n1, 1000);
        cr_expect_leq(sim_pending(), 16384);
        cr_expect_gt(sim_pending(), 16000);
        OK(cuStreamSynchronize(bench.n1));
        cr_expect_eq(elapsed_ms(), 20);
}

/* ---- the legacy stream (U2, U12) ---- */

Test(order, an_event_on_legacy_waits_for_blocking_streams)
{
        bench_spin(bench.b1, 10 * MS);
        OK(cuEventRecord(bench.event, CU_STREAM_LEGACY));
        cr_expect_not(ready(bench.event));
}

Test(order, an_event_on_legacy_does_not_wait_for_non_blocking_streams)
{
        bench_spin(bench.n1, 10 * MS);
        OK(cuEventRecord(bench.event, NULL));
        cr_expect(ready(bench.event));
}

Test(order, an_event_on_a_blocking_stream_waits_for_legacy)
{
        bench_spin(NULL, 10 * MS);
        OK(cuEventRecord(bench.event, bench.b1));
        cr_expect_not(ready(bench.event));
}

Test(order, a_mere_record_on_legacy_holds_later_work_of_blocking_streams)
{
        bench_spin(bench.b1, 10 * MS);
        OK(cuEventRecord(bench.event, NULL));
        bench_spin(bench.b2, 0);
        OK(cuStreamSynchronize(bench.b2));
        cr_expect_eq(elapsed_ms(), 10);
}

Test(order, a_blocking_stream_made_during_a_legacy_kernel_waits)
{
        CUstream late;

        bench_spin(NULL, 10 * MS);
        OK(cuStreamCreate(&late, CU_STREAM_DEFAULT));
        bench_spin(late, 0);
        OK(cuStreamSynchronize(late));
        cr_expect_eq(elapsed_ms(), 10);
}

Test(order, waiting_for_legacy_waits_for_blocking_streams_only)
{
        bench_spin(bench.n1, 50 * MS);
        bench_spin(bench.b1, 10 * MS);
        OK(cuStreamSynchronize(NULL));
        cr_expect_eq(elapsed_ms(), 10);
}

Test(order, a_blocking_stream_is_done_although_legacy_is_busy)
{
        bench_spin(bench.b1, 10 * MS);
        bench_spin(NULL, 50 * MS);
        OK(cuStreamSynchronize(bench.b1));
        cr_expect_eq(elapsed_ms(), 10);
}

Test(order, the_per_thread_stream_is_a_blocking_one)
{
        bench_spin(CU_STREAM_PER_THREAD, 10 * MS);
        OK(cuEventRecord(bench.event, NULL));
        cr_expect_not(ready(bench.event));
        cr_expect_eq(cuStreamQuery_ptsz(NULL), CUDA_ERROR_NOT_READY);
        cr_expect_eq(cuStreamQuery(bench.b1), CUDA_SUCCESS);
}

static void *spin_on_own_stream(void *unused)
{
        (void)unused;
        OK(cuCtxSetCurrent(bench.context));
        bench_spin(CU_STREAM_PER_THREAD, 10 * MS);
        return NULL;
}

Test(order, each_thread_has_its_own_per_thread_stream)
{
        pthread_t thread;

        pthread_create(&thread, NULL, spin_on_own_stream, NULL);
        pthread_join(thread, NULL);
        cr_expect_eq(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
        cr_expect_eq(cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
}

/* ---- whole contexts (U1) ---- */

#if CUDA_VERSION >= 12050
Test(order, a_context_event_waits_for_every_stream)
{
        CUstream gone;

        OK(cuStreamCreate(&gone, CU_STREAM_NON_BLOCKING));
        bench_spin(gone, 20 * MS);
        OK(cuStreamDestroy_v2(gone));
        bench_spin(bench.n1, 10 * MS);
        OK(cuCtxRecordEvent(bench.context, bench.event));
        bench_spin(bench.n2, 50 * MS);
        OK(cuEventSynchronize(bench.event));
        cr_expect_eq(elapsed_ms(), 20);
        cr_expect_eq(cuStreamQuery(bench.n2), CUDA_ERROR_NOT_READY);
}

Test(order, a_context_event_delays_no_later_work)
{
        bench_spin(bench.n1, 10 * MS);
        OK(cuCtxRecordEvent(bench.context, bench.event));
        bench_spin(bench.n2, 0);
        cr_expect_eq(cuStreamQuery(bench.n2), CUDA_SUCCESS);
}

Test(order, a_context_wait_holds_streams_made_later)
{
        CUstream late;

        bench_spin(bench.n1, 10 * MS);
        OK(cuEventRecord(bench.event, bench.n1));
        OK(cuCtxWaitEvent(bench.context, bench.event));
        OK(cuStreamCreate(&late, CU_STREAM_NON_BLOCKING));
        bench_spin(late, 0);
        OK(cuStreamSynchronize(late));
        cr_expect_eq(elapsed_ms(), 10);
}
#endif

Test(order, freeing_memory_waits_for_the_whole_context)
{
        CUdeviceptr p = bench_alloc(4096);

        bench_spin(bench.n1, 10 * MS);
        OK(cuMemFree_v2(p));
        cr_expect_eq(elapsed_ms(), 10, "M1");
}

/* ---- handles ---- */

Test(order, a_destroyed_stream_finishes_its_work)
{
        CUdeviceptr p = bench_alloc(4096);

        bench_spin(bench.n1, 10 * MS);
        bench_fill(bench.n1, p, 1024, 7);
        OK(cuStreamDestroy_v2(bench.n1));
        cr_expect_eq(elapsed_ms(), 0, "M29");
        cr_expect_eq(bench_value(p), 7);
}

#if CUDA_VERSION >= 12000
Test(order, a_destroyed_stream_leaves_its_handle_to_the_next)
{
        CUstream next;
        unsigned long long old_id, new_id;

        bench_spin(bench.n1, 10 * MS);
        OK(cuStreamGetId(bench.n1, &old_id));
        OK(cuStreamDestroy_v2(bench.n1));
        OK(cuStreamCreate(&next, CU_STREAM_NON_BLOCKING));
        OK(cuStreamGetId(next, &new_id));
        cr_expect_eq(next, bench.n1, "U20");
        cr_expect_neq(old_id, new_id, "H21");
        cr_expect_eq(cuStreamQuery(next), CUDA_SUCCESS);
}
#endif

Test(order, a_stale_stream_aborts, .signal = SIGABRT)
{
        OK(cuStreamDestroy_v2(bench.n1));
        cuStreamQuery(bench.n1);
}

Test(order, a_stale_event_aborts, .signal = SIGABRT)
{
        OK(cuEventDestroy_v2(bench.event));
        cuEventQuery(bench.event);
}

Test(order, event_and_stream_of_two_contexts_do_not_meet)
{
        CUcontext other;
        CUevent event;

        OK(cuCtxCreate_v2(&other, 0, 0));
        OK(cuEventCreate(&event, CU_EVENT_DEFAULT));
        cr_expect_eq(cuEventRecord(event, bench.n1), CUDA_ERROR_INVALID_HANDLE);
        cr_expect_eq(cuEventRecord(bench.event, bench.n1), CUDA_SUCCESS);
        cr_expect_eq(cuStreamWaitEvent(bench.n1, event, 0), CUDA_SUCCESS, "waits may cross");
}

Test(order, special_streams_need_a_context)
{
        OK(cuCtxSetCurrent(NULL));
        cr_expect_eq(cuStreamSynchronize(NULL), CUDA_ERROR_INVALID_CONTEXT);
        cr_expect_eq(cuStreamSynchronize_ptsz(NULL), CUDA_ERROR_INVALID_CONTEXT);
        cr_expect_eq(cuStreamSynchronize(bench.n1), CUDA_SUCCESS);
}

Test(order, what_a_stream_says_about_itself)
{
        unsigned int flags = 9;
        CUcontext context;

        OK(cuStreamGetFlags(bench.n1, &flags));
        cr_expect_eq(flags, CU_STREAM_NON_BLOCKING);
        OK(cuStreamGetCtx(bench.b1, &context));
        cr_expect_eq(context, bench.context);
        cr_expect_eq(cuStreamCreate(&bench.n1, 2), CUDA_ERROR_INVALID_VALUE);
}

#if CUDA_VERSION >= 12000
Test(order, null_and_legacy_are_one_stream_and_per_thread_another)
{
        unsigned long long legacy, null, own;

        OK(cuStreamGetId(CU_STREAM_LEGACY, &legacy));
        OK(cuStreamGetId(NULL, &null));
        OK(cuStreamGetId_ptsz(NULL, &own));
        cr_expect_eq(legacy, null, "H21");
        cr_expect_neq(legacy, own);
}
#endif
