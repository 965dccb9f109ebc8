/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Capture -- table 3A, row by row
 *
 * A row is one call; each of its four columns opens a capture, makes the call and
 * ends the capture. What must come back: the call's code, then the code of the end.
 */

#include "test_bench.h"

#include <pthread.h>
#include <stdio.h>

static CUevent recorded; /* on n2, before the capture */
static CUdeviceptr block;

static void start(void)
{
        bench_start();
        OK(cuEventCreate(&recorded, CU_EVENT_DISABLE_TIMING));
        OK(cuEventRecord(recorded, bench.n2));
        block = bench_alloc(4096);
}

TestSuite(capture, .init = start, .timeout = 20);

/* ---- the calls; the capture is on n1 ---- */

static CUresult alloc(void)
{
        CUdeviceptr p;

        return cuMemAlloc_v2(&p, 4096);
}

static CUresult free_block(void)
{
        return cuMemFree_v2(block);
}

static CUresult alloc_async_elsewhere(void)
{
        CUdeviceptr p;

        return cuMemAllocAsync(&p, 4096, bench.n2);
}

static CUresult alloc_async_here(void)
{
        CUdeviceptr p;

        return cuMemAllocAsync(&p, 4096, bench.n1);
}

static CUresult free_async_of_plain_memory(void)
{
        return cuMemFreeAsync(block, bench.n1);
}

static CUresult event_query(void)
{
        return cuEventQuery(recorded);
}

static CUresult event_synchronize(void)
{
        return cuEventSynchronize(recorded);
}

static CUresult stream_query_elsewhere(void)
{
        return cuStreamQuery(bench.n2);
}

static CUresult stream_synchronize_legacy(void)
{
        return cuStreamSynchronize(NULL);
}

static CUresult stream_query_here(void)
{
        return cuStreamQuery(bench.n1);
}

static CUresult stream_synchronize_here(void)
{
        return cuStreamSynchronize(bench.n1);
}

#if CUDA_VERSION >= 12000
static CUresult stream_id_here(void)
{
        unsigned long long id;

        return cuStreamGetId(bench.n1, &id);
}
#endif

static CUresult context_synchronize(void)
{
        return cuCtxSynchronize();
}

#if CUDA_VERSION >= 12050
static CUresult context_record(void)
{
        return cuCtxRecordEvent(bench.context, bench.event);
}
#endif

static CUresult event_record_elsewhere(void)
{
        return cuEventRecord(bench.event, bench.n2);
}

static CUresult event_record_legacy(void)
{
        return cuEventRecord(bench.event, NULL);
}

static CUresult wait_elsewhere(void)
{
        return cuStreamWaitEvent(bench.n2, recorded, 0);
}

static CUresult stream_create(void)
{
        CUstream stream;

        return cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
}

static CUresult event_create(void)
{
        CUevent event;

        return cuEventCreate(&event, CU_EVENT_DEFAULT);
}

static CUresult is_capturing(void)
{
        CUstreamCaptureStatus status;
        CUresult result = cuStreamIsCapturing(bench.n1, &status);

        cr_expect_eq(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
        return result;
}

static CUresult module_load(void)
{
        CUmodule module;

        return cuModuleLoadData(&module, "any image");
}

static CUresult blocking_copy(void)
{
        uint32_t value;

        return cuMemcpyDtoH_v2(&value, block, sizeof(value));
}

static CUresult blocking_set(void)
{
        return cuMemsetD32_v2(block, 1, 4);
}

/* ---- the table ---- */

/* U: 900 and the capture is dead. O: 0 and it lives. I: 1 and it lives. */
static const struct row {
        const char *name;
        CUresult (*call)(void);
        const char *expected; /* same thread, other thread, relaxed capture, exchanged thread */
} rows[] = {
        {"cuMemAlloc", alloc, "UUOO"},
        {"cuMemFree", free_block, "UUOO"},
        {"cuMemAllocAsync elsewhere", alloc_async_elsewhere, "UUOO"},
        {"cuEventQuery", event_query, "UUOO"},
        {"cuEventSynchronize", event_synchronize, "UUOO"},
        {"cuStreamQuery elsewhere", stream_query_elsewhere, "UUOO"},
        {"cuStreamSynchronize(0)", stream_synchronize_legacy, "UUOO"},
        {"cuStreamQuery(cs)", stream_query_here, "UUUU"},
        {"cuStreamSynchronize(cs)", stream_synchronize_here, "UUUU"},
#if CUDA_VERSION >= 12000
        {"cuStreamGetId(cs)", stream_id_here, "UUUU"},
#endif
        {"cuCtxSynchronize", context_synchronize, "UUUU"},
#if CUDA_VERSION >= 12050
        {"cuCtxRecordEvent", context_record, "UUUU"},
#endif
        {"cuMemAllocAsync(cs)", alloc_async_here, "OOOO"},
        {"cuMemFreeAsync(plain, cs)", free_async_of_plain_memory, "IIII"},
        {"cuEventRecord elsewhere", event_record_elsewhere, "OOOO"},
        {"cuEventRecord(0)", event_record_legacy, "OOOO"},
        {"cuStreamWaitEvent elsewhere", wait_elsewhere, "OOOO"},
        {"cuStreamCreate", stream_create, "OOOO"},
        {"cuEventCreate", event_create, "OOOO"},
        {"cuStreamIsCapturing", is_capturing, "OOOO"},
        {"cuModuleLoadData", module_load, "OOOO"},
        {"cuMemcpyDtoH", blocking_copy, "OOOO"},
        {"cuMemsetD32", blocking_set, "OOOO"},
};

static const struct row *row_of_thread;
static CUresult result_of_thread;

static void *call_elsewhere(void *unused)
{
        (void)unused;
        OK(cuCtxSetCurrent(bench.context));
        result_of_thread = row_of_thread->call();
        return NULL;
}

static CUresult on_another_thread(const struct row *row)
{
        pthread_t thread;

        row_of_thread = row;
        pthread_create(&thread, NULL, call_elsewhere, NULL);
        pthread_join(thread, NULL);
        return result_of_thread;
}

static void check(const struct row *row, int column)
{
        CUstreamCaptureMode opened =
                column == 2 ? CU_STREAM_CAPTURE_MODE_RELAXED : CU_STREAM_CAPTURE_MODE_GLOBAL;
        CUstreamCaptureMode exchanged = CU_STREAM_CAPTURE_MODE_RELAXED;
        char expected = row->expected[column];
        CUresult called, ended;
        CUgraph graph = NULL;

        OK(cuStreamBeginCapture_v2(bench.n1, opened));
        if (column == 3)
                OK(cuThreadExchangeStreamCaptureMode(&exchanged));
        called = column == 1 ? on_another_thread(row) : row->call();
        ended = cuStreamEndCapture(bench.n1, &graph);
        if (column == 3)
                OK(cuThreadExchangeStreamCaptureMode(&exchanged));
        cr_expect_eq(called,
                     expected == 'U'   ? 900
                     : expected == 'I' ? 1
                                       : 0,
                     "%s, column %d: the call says %d", row->name, column, called);
        cr_expect_eq(ended, expected == 'U' ? 901 : 0, "%s, column %d: the end says %d", row->name,
                     column, ended);
        cr_expect_eq(graph != NULL, expected != 'U');
        if (graph)
                OK(cuGraphDestroy(graph));
        if (row->call == free_block && called == CUDA_SUCCESS)
                block = bench_alloc(4096);
}

Test(capture, table_3A_holds)
{
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
                for (int column = 0; column < 4; column++)
                        check(&rows[i], column);
}

Test(capture, a_thread_local_capture_is_no_concern_of_other_threads)
{
        CUgraph graph;

        OK(cuStreamBeginCapture_v2(bench.n1, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        cr_expect_eq(on_another_thread(&rows[0]), CUDA_SUCCESS);
        cr_expect_eq(alloc(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        cr_expect_eq(cuStreamEndCapture(bench.n1, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

Test(capture, a_dead_capture_still_forbids_until_it_ends)
{
        CUgraph graph = (CUgraph)1;
        CUstreamCaptureStatus status;
        CUdeviceptr p;

        OK(cuStreamBeginCapture_v2(bench.n1, CU_STREAM_CAPTURE_MODE_GLOBAL));
        cr_expect_eq(alloc(), 900);
        cr_expect_eq(cuMemFree_v2(0), 900, "M22");
        cr_expect_eq(cuMemAllocAsync(&p, 4096, bench.n1), 901);
        OK(cuStreamIsCapturing(bench.n1, &status));
        cr_expect_eq(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
        cr_expect_eq(cuStreamEndCapture(bench.n1, &graph), 901);
        cr_expect_null(graph);
        cr_expect_eq(alloc(), 0);
}

Test(capture, a_captured_event_is_nothing_to_wait_for)
{
        CUgraph graph;

        OK(cuStreamBeginCapture_v2(bench.n1, CU_STREAM_CAPTURE_MODE_RELAXED));
        OK(cuEventRecord(bench.event, bench.n1));
        cr_expect_eq(cuEventQuery(bench.event), CUDA_ERROR_CAPTURED_EVENT, "M24");
        cr_expect_eq(cuStreamEndCapture(bench.n1, &graph), 901);
        OK(cuEventRecord(bench.event, bench.n1));
        cr_expect_eq(cuEventQuery(bench.event), CUDA_SUCCESS);
}

Test(capture, legacy_work_kills_a_capture_of_a_blocking_stream)
{
        CUgraph graph;
        CUstreamCaptureStatus status;

        OK(cuStreamBeginCapture_v2(bench.b1, CU_STREAM_CAPTURE_MODE_RELAXED));
        cr_expect_eq(cuStreamIsCapturing(NULL, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        OK(cuStreamIsCapturing(bench.b1, &status));
        cr_expect_eq(status, CU_STREAM_CAPTURE_STATUS_ACTIVE, "asking alone does no harm");
        cr_expect_eq(cuEventRecord(bench.event, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        cr_expect_eq(cuStreamEndCapture(bench.b1, &graph), 901);

        OK(cuStreamBeginCapture_v2(bench.b1, CU_STREAM_CAPTURE_MODE_RELAXED));
        cr_expect_eq(cuMemsetD8Async(block, 0, 1, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        cr_expect_eq(cuStreamEndCapture(bench.b1, &graph), 901);
}

Test(capture, uncaptured_work_may_not_enter)
{
        CUgraph graph;

        OK(cuStreamBeginCapture_v2(bench.n1, CU_STREAM_CAPTURE_MODE_RELAXED));
        OK(cuStreamWaitEvent(bench.n1, bench.event, 0));
        cr_expect_eq(cuStreamWaitEvent(bench.n1, recorded, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
        cr_expect_eq(cuStreamEndCapture(bench.n1, &graph), 901);
}

Test(capture, two_captures_may_not_meet)
{
        CUgraph graph;

        OK(cuStreamBeginCapture_v2(bench.n1, CU_STREAM_CAPTURE_MODE_RELAXED));
        OK(cuStreamBeginCapture_v2(bench.n2, CU_STREAM_CAPTURE_MODE_RELAXED));
        OK(cuEventRecord(bench.event, bench.n1));
        cr_expect_eq(cuStreamWaitEvent(bench.n2, bench.event, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
        cr_expect_eq(cuStreamEndCapture(bench.n1, &graph), 901);
        cr_expect_eq(cuStreamEndCapture(bench.n2, &graph), 901);
        cr_expect_eq(sim_open_captures(), 0);
}

Test(capture, a_fork_must_be_joined)
{
        CUevent back;
        CUgraph graph;

        OK(cuEventCreate(&back, CU_EVENT_DISABLE_TIMING));
        OK(cuStreamBeginCapture_v2(bench.n1, CU_STREAM_CAPTURE_MODE_GLOBAL));
        OK(cuEventRecord(bench.event, bench.n1));
        OK(cuStreamWaitEvent(bench.n2, bench.event, 0));
        bench_fill(bench.n2, block, 1024, 1);
        OK(cuEventRecord(back, bench.n2));
        cr_expect_eq(cuStreamEndCapture(bench.n2, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
        cr_expect_eq(cuStreamEndCapture(bench.n1, &graph), 901);

        OK(cuStreamBeginCapture_v2(bench.n1, CU_STREAM_CAPTURE_MODE_GLOBAL));
        OK(cuEventRecord(bench.event, bench.n1));
        OK(cuStreamWaitEvent(bench.n2, bench.event, 0));
        bench_fill(bench.n2, block, 1024, 1);
        cr_expect_eq(cuStreamEndCapture(bench.n1, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
        cr_expect_eq(cuStreamQuery(bench.n2), CUDA_SUCCESS, "the fork is free again");
}

static void *end_elsewhere(void *graph)
{
        OK(cuCtxSetCurrent(bench.context));
        result_of_thread = cuStreamEndCapture(bench.n1, graph);
        return NULL;
}

Test(capture, only_a_relaxed_capture_ends_on_another_thread)
{
        pthread_t thread;
        CUgraph graph;

        OK(cuStreamBeginCapture_v2(bench.n1, CU_STREAM_CAPTURE_MODE_RELAXED));
        pthread_create(&thread, NULL, end_elsewhere, &graph);
        pthread_join(thread, NULL);
        cr_expect_eq(result_of_thread, CUDA_SUCCESS);

        OK(cuStreamBeginCapture_v2(bench.n1, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        pthread_create(&thread, NULL, end_elsewhere, &graph);
        pthread_join(thread, NULL);
        cr_expect_eq(result_of_thread, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
}

Test(capture, the_legacy_stream_cannot_capture)
{
        cr_expect_eq(cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_RELAXED), 900);
        OK(cuStreamBeginCapture_v2_ptsz(NULL, CU_STREAM_CAPTURE_MODE_RELAXED));
        cr_expect_eq(cuStreamBeginCapture_v2_ptsz(NULL, CU_STREAM_CAPTURE_MODE_RELAXED),
                     CUDA_ERROR_ILLEGAL_STATE);
}
