/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Graph -- what was captured runs when it is launched, and in order
 */

#include "test_bench.h"

TestSuite(graph, .init = bench_start, .timeout = 20);

static CUgraphExec exec_of(CUgraph graph)
{
        CUgraphExec exec;

        OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
        return exec;
}

Test(graph, capturing_runs_nothing_and_launching_runs_it_each_time)
{
        CUdeviceptr p = bench_alloc(4096);
        CUgraph graph;
        CUgraphExec exec;
        size_t nodes = 0;

        bench_fill(bench.n1, p, 1024, 0);
        OK(cuStreamBeginCapture_v2(bench.n1, CU_STREAM_CAPTURE_MODE_GLOBAL));
        bench_add(bench.n1, p, 1024, 1);
        bench_add(bench.n1, p, 1024, 10);
        OK(cuStreamEndCapture(bench.n1, &graph));
        OK(cuGraphGetNodes(graph, NULL, &nodes));
        cr_expect_eq(nodes, 2);
        cr_expect_eq(bench_value(p), 0);
        exec = exec_of(graph);
        OK(cuGraphDestroy(graph));
        OK(cuGraphLaunch(exec, bench.n1));
        OK(cuGraphLaunch(exec, bench.n2));
        cr_expect_eq(bench_value(p), 22);
        OK(cuGraphExecDestroy(exec));
}

Test(graph, a_launch_is_one_action_of_its_stream)
{
        CUdeviceptr p = bench_alloc(4096);
        CUevent back;
        CUgraph graph;
        CUgraphExec exec;

        OK(cuEventCreate(&back, CU_EVENT_DISABLE_TIMING));
        OK(cuStreamBeginCapture_v2(bench.n1, CU_STREAM_CAPTURE_MODE_GLOBAL));
        OK(cuEventRecord(bench.event, bench.n1));
        OK(cuStreamWaitEvent(bench.n2, bench.event, 0));
        bench_spin(bench.n2, 20 * MS);
        bench_spin(bench.n1, 30 * MS);
        OK(cuEventRecord(back, bench.n2));
        OK(cuStreamWaitEvent(bench.n1, back, 0));
        bench_fill(bench.n1, p, 1024, 5);
        OK(cuStreamEndCapture(bench.n1, &graph));
        exec = exec_of(graph);

        bench_spin(bench.n1, 10 * MS);
        OK(cuGraphLaunch(exec, bench.n1));
        bench_add(bench.n1, p, 1024, 1);
        OK(cuStreamSynchronize(bench.n1));
        cr_expect_eq((sim_now_ns() + MS / 2) / MS, 40, "10 before, 20 and 30 side by side");
        cr_expect_eq(bench_value(p), 6);
}

Test(graph, two_launches_of_one_executable_do_not_overlap)
{
        CUgraph graph;
        CUgraphExec exec;

        OK(cuStreamBeginCapture_v2(bench.n1, CU_STREAM_CAPTURE_MODE_GLOBAL));
        bench_spin(bench.n1, 10 * MS);
        OK(cuStreamEndCapture(bench.n1, &graph));
        exec = exec_of(graph);
        OK(cuGraphLaunch(exec, bench.n1));
        OK(cuGraphLaunch(exec, bench.n2));
        OK(cuCtxSynchronize());
        cr_expect_eq((sim_now_ns() + MS / 2) / MS, 20, "H11");
}

Test(graph, an_event_record_node_records_at_each_launch)
{
        CUgraph graph;
        CUgraphNode node, first;
        CUgraphExec exec;
        CUevent other;
        uint64_t time = 10 * MS;
        CUDA_KERNEL_NODE_PARAMS_v1 spin = {
                .func = bench.spin,
                .kernelParams = (void *[]){&time},
        };

        OK(cuEventCreate(&other, CU_EVENT_DEFAULT));
        OK(cuGraphCreate(&graph, 0));
        OK(cuGraphAddKernelNode(&first, graph, NULL, 0, &spin));
        OK(cuGraphAddEventRecordNode(&node, graph, &first, 1, bench.event));
        exec = exec_of(graph);
        OK(cuGraphLaunch(exec, bench.n1));
        cr_expect_eq(cuEventQuery(bench.event), CUDA_ERROR_NOT_READY);
        OK(cuEventSynchronize(bench.event));
        OK(cuGraphExecEventRecordNodeSetEvent(exec, node, other));
        OK(cuGraphLaunch(exec, bench.n1));
        cr_expect_eq(cuEventQuery(bench.event), CUDA_SUCCESS);
        cr_expect_eq(cuEventQuery(other), CUDA_ERROR_NOT_READY);
}

Test(graph, memory_of_a_graph_lives_as_long_as_the_graph)
{
        CUdeviceptr p;
        CUgraph graph;
        CUgraphExec exec;
        size_t before = sim_live_allocations();

        OK(cuStreamBeginCapture_v2(bench.n1, CU_STREAM_CAPTURE_MODE_GLOBAL));
        OK(cuMemAllocAsync(&p, 4096, bench.n1));
        bench_fill(bench.n1, p, 1024, 3);
        OK(cuMemFreeAsync(p, bench.n1));
        cr_expect_eq(cuMemFreeAsync(p, bench.n1), CUDA_ERROR_INVALID_VALUE, "freed already");
        OK(cuStreamEndCapture(bench.n1, &graph));
        exec = exec_of(graph);
        OK(cuGraphDestroy(graph));
        cr_expect_eq(sim_live_allocations(), before + 1);
        for (int i = 0; i < 3; i++)
                OK(cuGraphLaunch(exec, bench.n1));
        OK(cuCtxSynchronize());
        OK(cuGraphExecDestroy(exec));
        cr_expect_eq(sim_live_allocations(), before);
}

Test(graph, memory_that_no_node_frees_is_out_until_the_program_frees_it)
{
        CUdeviceptr p;
        CUgraph graph;
        CUgraphExec exec, freeing;
        size_t before = sim_live_allocations();

        OK(cuStreamBeginCapture_v2(bench.n1, CU_STREAM_CAPTURE_MODE_GLOBAL));
        OK(cuMemAllocAsync(&p, 4096, bench.n1));
        OK(cuStreamEndCapture(bench.n1, &graph));
        exec = exec_of(graph);
        OK(cuGraphInstantiateWithFlags(&freeing, graph,
                                       CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
        cr_expect_eq(cuMemFreeAsync(p, bench.n1), CUDA_ERROR_INVALID_VALUE, "not allocated yet");
        OK(cuGraphLaunch(exec, bench.n1));
        cr_expect_eq(cuGraphLaunch(exec, bench.n1), CUDA_ERROR_INVALID_VALUE);
        OK(cuMemFree_v2(p));
        OK(cuGraphLaunch(exec, bench.n1));
        OK(cuGraphLaunch(freeing, bench.n1));
        OK(cuCtxSynchronize());
        OK(cuGraphExecDestroy(exec));
        OK(cuGraphExecDestroy(freeing));
        OK(cuGraphDestroy(graph));
        bench_fill(bench.n1, p, 1024, 1);
        OK(cuMemFreeAsync(p, bench.n1));
        cr_expect_eq(sim_live_allocations(), before);
}

Test(graph, a_launch_inside_a_capture_becomes_part_of_it)
{
        CUdeviceptr p = bench_alloc(4096);
        CUgraph inner, outer;

        bench_fill(bench.n1, p, 1024, 0);
        OK(cuStreamBeginCapture_v2(bench.n1, CU_STREAM_CAPTURE_MODE_GLOBAL));
        bench_add(bench.n1, p, 1024, 1);
        OK(cuStreamEndCapture(bench.n1, &inner));
        OK(cuStreamBeginCapture_v2(bench.n1, CU_STREAM_CAPTURE_MODE_GLOBAL));
        OK(cuGraphLaunch(exec_of(inner), bench.n1));
        bench_add(bench.n1, p, 1024, 1);
        OK(cuStreamEndCapture(bench.n1, &outer));
        OK(cuGraphLaunch(exec_of(outer), bench.n1));
        cr_expect_eq(bench_value(p), 2);
}
