/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Taint -- an event that others record says nothing of the order of a stream: graphs, other
 * processes, green contexts. And what is made or ended by the rarer functions is known all the
 * same.
 */

#include <criterion/criterion.h>
#include <streampool/model.h>

#include "route/route.h"
#include "tests/shim/begin.h"
#include "track/event.h"
#include "track/state.h"

#define BYTES ((size_t)8 << 20)

static CUstream stream, other;
static CUevent event, another;
static CUdeviceptr pointer;
static CUgraph graph;

static void start(void)
{
        begin_on(0);
        cr_assert_eq(sp_on_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_assert_eq(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS),
                     CUDA_SUCCESS);
        cr_assert_eq(cuEventCreate(&another, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
        cr_assert_eq(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemAllocAsync(&pointer, BYTES, stream), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuEventRecord(event, stream), CUDA_SUCCESS);
}

TestSuite(taint, .init = start);

/* May work on the other stream that waits for the event use what was allocated on the first? */
static bool orders(CUevent handle)
{
        spm_event known = sp_event_find(handle);
        bool is_ready;

        cr_assert(known);
        is_ready = spm_is_ready_on(sp_model_enter(), pointer, sp_stream_of(other)->model, known);
        sp_model_leave();
        return is_ready;
}

/* Whoever else records it can do so at any time: also after the program has. */
static bool is_tainted_forever(CUevent handle)
{
        if (orders(handle))
                return false;
        cr_assert_eq(sp_on_cuEventRecord(handle, stream), CUDA_SUCCESS);
        return !orders(handle);
}

Test(taint, is_not_of_a_record_with_flags)
{
        cr_assert_eq(sp_on_cuEventRecordWithFlags(another, stream, 0), CUDA_SUCCESS);
        cr_expect(orders(another));
        cr_expect(orders(event));
}

Test(taint, is_of_a_node_that_records)
{
        CUgraphNode node;

        cr_assert_eq(sp_on_cuGraphAddEventRecordNode(&node, graph, NULL, 0, event), CUDA_SUCCESS);
        cr_expect(is_tainted_forever(event));
}

Test(taint, is_of_a_node_that_records_it_from_now_on)
{
        CUgraphExec exec;
        CUgraphNode node;

        cr_assert_eq(sp_on_cuGraphAddEventRecordNode(&node, graph, NULL, 0, another), CUDA_SUCCESS);
        cr_assert_eq(sp_driver.cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
        cr_assert(orders(event));
        cr_assert_eq(sp_on_cuGraphEventRecordNodeSetEvent(node, event), CUDA_SUCCESS);
        cr_expect(is_tainted_forever(event));
}

Test(taint, is_of_such_a_node_of_a_graph_that_is_instantiated)
{
        CUgraphExec exec;
        CUgraphNode node;

        cr_assert_eq(sp_on_cuGraphAddEventRecordNode(&node, graph, NULL, 0, another), CUDA_SUCCESS);
        cr_assert_eq(sp_driver.cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuGraphExecEventRecordNodeSetEvent(exec, node, event), CUDA_SUCCESS);
        cr_expect(is_tainted_forever(event));
}

#if CUDA_VERSION >= 12020
static CUgraphNodeParams record_of(CUevent handle)
{
        return (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
                                   .eventRecord.event = handle};
}

Test(taint, is_of_a_node_by_its_parameters)
{
        CUgraphNodeParams params = record_of(event);
        CUgraphNode node;

        cr_assert_eq(sp_on_cuGraphAddNode(&node, graph, NULL, 0, &params), CUDA_SUCCESS);
        cr_expect(is_tainted_forever(event));
}

Test(taint, is_not_of_a_node_that_waits)
{
        CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT,
                                    .eventWait.event = event};
        CUgraphNode node;

        cr_assert_eq(sp_on_cuGraphAddNode(&node, graph, NULL, 0, &params), CUDA_SUCCESS);
        cr_expect(orders(event));
}

Test(taint, is_of_parameters_that_are_set)
{
        CUgraphNodeParams first = record_of(another), second = record_of(event);
        CUgraphNode node;

        cr_assert_eq(sp_on_cuGraphAddNode(&node, graph, NULL, 0, &first), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuGraphNodeSetParams(node, &second), CUDA_SUCCESS);
        cr_expect(is_tainted_forever(event));
}

Test(taint, is_of_parameters_that_are_set_where_it_is_instantiated)
{
        CUgraphNodeParams first = record_of(another), second = record_of(event);
        CUgraphExec exec;
        CUgraphNode node;

        cr_assert_eq(sp_on_cuGraphAddNode(&node, graph, NULL, 0, &first), CUDA_SUCCESS);
        cr_assert_eq(sp_driver.cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuGraphExecNodeSetParams(exec, node, &second), CUDA_SUCCESS);
        cr_expect(is_tainted_forever(event));
}
#endif

#if CUDA_VERSION >= 12030
Test(taint, is_of_a_node_with_edges)
{
        CUgraphNodeParams params = record_of(event);
        CUgraphNode node;

        cr_assert_eq(sp_on_cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params), CUDA_SUCCESS);
        cr_expect(is_tainted_forever(event));
}

Test(taint, while_a_capture_into_a_graph_lasts_the_driver_serves)
{
        uint64_t served = served_by_pools();
        CUdeviceptr block;

        cr_assert_eq(sp_on_cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0,
                                                       CU_STREAM_CAPTURE_MODE_RELAXED),
                     CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemAlloc_v2(&block, BYTES), CUDA_SUCCESS);
        cr_expect_eq(served_by_pools(), served);
        cr_assert_eq(sp_on_cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemAlloc_v2(&block, BYTES), CUDA_SUCCESS);
        cr_expect_eq(served_by_pools(), served + 1);
}
#endif

Test(taint, is_of_what_another_process_may_record)
{
        CUipcEventHandle handle;
        CUevent opened;

        cr_assert_eq(sp_on_cuIpcGetEventHandle(&handle, event), CUDA_SUCCESS);
        cr_expect(is_tainted_forever(event));
        cr_assert_eq(sp_on_cuIpcOpenEventHandle(&opened, handle), CUDA_SUCCESS);
        cr_expect(is_tainted_forever(opened));
}

Test(taint, a_stream_with_a_priority_is_known)
{
        CUstream urgent;

        cr_assert_eq(sp_on_cuStreamCreateWithPriority(&urgent, CU_STREAM_NON_BLOCKING, 0),
                     CUDA_SUCCESS);
        cr_expect_not_null(sp_stream_find(urgent));
}

#if CUDA_VERSION >= 12050
/* Nobody goes on recording it there: it is believed again. */
Test(taint, is_of_a_record_in_a_green_context_until_the_next_one)
{
        cr_assert_eq(sp_on_cuGreenCtxRecordEvent(make_green(), event), CUDA_SUCCESS);
        cr_expect_not(orders(event));
        cr_assert_eq(sp_on_cuEventRecord(event, stream), CUDA_SUCCESS);
        cr_expect(orders(event));
}

Test(taint, on_a_stream_of_a_green_context_the_driver_serves_while_it_lives)
{
        CUgreenCtx green = make_green();
        uint64_t served = served_by_pools();
        CUdeviceptr block;
        CUcontext handle;
        CUstream its;

        cr_assert_eq(sp_on_cuGreenCtxStreamCreate(&its, green, CU_STREAM_NON_BLOCKING, 0),
                     CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemAllocAsync(&block, BYTES, its), CUDA_SUCCESS);
        cr_expect_eq(served_by_pools(), served);
        cr_assert_eq(sp_on_cuMemFreeAsync(block, its), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuCtxFromGreenCtx(&handle, green), CUDA_SUCCESS);
        cr_expect(atomic_load(&sp_context_of(handle)->forward_only));
        cr_assert_eq(sp_on_cuGreenCtxDestroy(green), CUDA_SUCCESS);
        cr_expect_null(sp_stream_find(its));
}
#endif
