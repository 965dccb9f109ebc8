/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graph -- memory that belongs to graphs, and graphs that use memory of the program
 */
#include "conformance.h"

#define MIB   ((size_t)1 << 20)
#define WORDS (MIB / 4)

static CUgraphExec instantiate(CUgraph graph, unsigned long long flags)
{
        CUgraphExec exec = NULL;

        CODE(GraphInstantiateWithFlags, &exec, graph, flags);
        return exec;
}

static void drop(CUgraphExec exec, CUgraph graph)
{
        CODE(GraphExecDestroy, exec);
        CODE(GraphDestroy, graph);
}

static void allocated_and_freed_inside(void)
{
        uint32_t *counter = cu_counter(1);
        CUgraphExec exec;
        CUgraph graph;
        CUdeviceptr p;

        CODE(StreamBeginCapture, conf.n1, CU_STREAM_CAPTURE_MODE_GLOBAL);
        CODE(MemAllocAsync, &p, MIB, conf.n1);
        CU_OK(cu_fill(&conf.kernels, conf.n1, p, WORDS, 5));
        CU_OK(cu_check(&conf.kernels, conf.n1, p, WORDS, 5, (CUdeviceptr)(uintptr_t)counter));
        CODE(MemFreeAsync, p, conf.n1);
        CODE(StreamEndCapture, conf.n1, &graph);
        exec = instantiate(graph, 0);
        for (int i = 0; i < 3; i++)
                CODE(GraphLaunch, exec, conf.n1);
        CODE(StreamSynchronize, conf.n1);
        conf_say("mismatches=%u", *counter);
        drop(exec, graph);
        CU_OK(cu.MemFreeHost(counter));
}

/* The graph allocates; the program frees, by either call. */
static void freed_by_the_program(void)
{
        for (int way = 0; way < 2; way++) {
                CUgraphExec exec;
                CUgraph graph;
                CUdeviceptr p;

                CU_OK(cu.StreamBeginCapture(conf.n1, CU_STREAM_CAPTURE_MODE_GLOBAL));
                CODE(MemAllocAsync, &p, MIB, conf.n1);
                CU_OK(cu_fill(&conf.kernels, conf.n1, p, WORDS, 5));
                CODE(StreamEndCapture, conf.n1, &graph);
                exec = instantiate(graph, 0);
                CODE(GraphLaunch, exec, conf.n1);
                CODE(GraphLaunch, exec, conf.n1);
                CODE(StreamSynchronize, conf.n1);
                if (way)
                        CODE(MemFree, p);
                else
                        CODE(MemFreeAsync, p, conf.n1);
                CODE(GraphLaunch, exec, conf.n1);
                CODE(StreamSynchronize, conf.n1);
                CODE(MemFreeAsync, p, conf.n1);
                CODE(StreamSynchronize, conf.n1);
                drop(exec, graph);
        }
}

static void freed_by_the_next_launch(void)
{
        CUgraphExec exec;
        CUgraph graph;
        CUdeviceptr p;

        CU_OK(cu.StreamBeginCapture(conf.n1, CU_STREAM_CAPTURE_MODE_GLOBAL));
        CODE(MemAllocAsync, &p, MIB, conf.n1);
        CU_OK(cu_fill(&conf.kernels, conf.n1, p, WORDS, 5));
        CODE(StreamEndCapture, conf.n1, &graph);
        exec = instantiate(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
        CODE(GraphLaunch, exec, conf.n1);
        CODE(GraphLaunch, exec, conf.n1);
        CODE(StreamSynchronize, conf.n1);
        CODE(MemFreeAsync, p, conf.n1);
        CODE(StreamSynchronize, conf.n1);
        drop(exec, graph);
}

static void node_by_hand(void)
{
        CUDA_MEM_ALLOC_NODE_PARAMS parameters = {
                .poolProps =
                        {
                                .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                             .id = conf.device},
                        },
                .bytesize = MIB,
        };
        CUgraphNode allocate, release;
        CUgraphExec exec;
        CUgraph graph;

        CODE(GraphCreate, &graph, 0);
        CODE(GraphAddMemAllocNode, &allocate, graph, NULL, 0, &parameters);
        CODE(GraphAddMemFreeNode, &release, graph, &allocate, 1, parameters.dptr);
        exec = instantiate(graph, 0);
        CODE(GraphLaunch, exec, conf.n1);
        CODE(GraphLaunch, exec, conf.n1);
        CODE(StreamSynchronize, conf.n1);
        drop(exec, graph);
}

/* Memset nodes take memory of both families. */
static void nodes_on_memory_of_the_program(void)
{
        CUgraphNode node;
        CUgraphExec exec;
        CUgraph graph;
        CUdeviceptr p[2];
        uint32_t back[2] = {0, 0};

        CU_OK(cu.MemAlloc(&p[0], 4096));
        CU_OK(cu.MemAllocAsync(&p[1], 4096, conf.n1));
        CODE(GraphCreate, &graph, 0);
        for (int i = 0; i < 2; i++) {
                CUDA_MEMSET_NODE_PARAMS set = {
                        .dst = p[i], .value = 31, .elementSize = 4, .width = 1024, .height = 1};

                CODE(GraphAddMemsetNode, &node, graph, NULL, 0, &set, conf.context);
        }
        exec = instantiate(graph, 0);
        CODE(GraphLaunch, exec, conf.n1);
        CODE(StreamSynchronize, conf.n1);
        for (int i = 0; i < 2; i++)
                CU_OK(cu.MemcpyDtoH(&back[i], p[i] + 4092, 4));
        conf_say("values=%u,%u", back[0], back[1]);
        drop(exec, graph);
        CODE(MemFree, p[0]);
        CODE(MemFreeAsync, p[1], conf.n1);
}

/* What the capture must refuse without ending: a free of memory that is no graph's. */
static void free_of_other_memory_inside(void)
{
        CUgraph graph = NULL;
        CUdeviceptr p, q;

        CU_OK(cu.MemAlloc(&p, 4096));
        CU_OK(cu.MemAllocAsync(&q, 4096, conf.n1));
        CU_OK(cu.StreamSynchronize(conf.n1));
        CU_OK(cu.StreamBeginCapture(conf.n1, CU_STREAM_CAPTURE_MODE_GLOBAL));
        CODE(MemFreeAsync, p, conf.n1);
        CODE(MemFreeAsync, q, conf.n1);
        CODE(MemFreeAsync, 0x1234, conf.n1);
        if (!CODE(StreamEndCapture, conf.n1, &graph))
                CU_OK(cu.GraphDestroy(graph));
        CODE(MemFree, p);
        CODE(MemFreeAsync, q, conf.n1);
}

/* A launch keeps using the memory it was captured with; the program may free it behind it. */
static void memory_freed_behind_a_launch(void)
{
        uint32_t *counter = cu_counter(1);
        CUgraphExec exec;
        CUgraph graph;
        CUdeviceptr p, q;

        CU_OK(cu.MemAlloc(&p, MIB));
        cu_owned(p, MIB);
        CU_OK(cu.StreamBeginCapture(conf.n1, CU_STREAM_CAPTURE_MODE_GLOBAL));
        CU_OK(cu_fill(&conf.kernels, conf.n1, p, WORDS, 5));
        CU_OK(cu_watch(&conf.kernels, conf.n1, p, WORDS, 5, 20000000,
                       (CUdeviceptr)(uintptr_t)counter));
        CU_OK(cu.StreamEndCapture(conf.n1, &graph));
        exec = instantiate(graph, 0);
        CODE(GraphLaunch, exec, conf.n1);
        cu_disowned(p);
        CODE(MemFree, p);
        CODE(MemAlloc, &q, MIB);
        cu_owned(q, MIB);
        CU_OK(cu_fill(&conf.kernels, conf.n2, q, WORDS, 6));
        CODE(StreamSynchronize, conf.n2);
        CODE(StreamSynchronize, conf.n1);
        conf_say("mismatches=%u", *counter);
        cu_disowned(q);
        CODE(MemFree, q);
        drop(exec, graph);
        CU_OK(cu.MemFreeHost(counter));
}

/* A second stream joins the capture through an event, and allocates in it. */
static void forked_capture(void)
{
        uint32_t *counter = cu_counter(1);
        CUevent out, in;
        CUgraphExec exec;
        CUgraph graph;
        CUdeviceptr p;

        CU_OK(cu.EventCreate(&out, CU_EVENT_DISABLE_TIMING));
        CU_OK(cu.EventCreate(&in, CU_EVENT_DISABLE_TIMING));
        CU_OK(cu.StreamBeginCapture(conf.n1, CU_STREAM_CAPTURE_MODE_GLOBAL));
        CODE(EventRecord, out, conf.n1);
        CODE(StreamWaitEvent, conf.n2, out, 0);
        CODE(MemAllocAsync, &p, MIB, conf.n2);
        CU_OK(cu_fill(&conf.kernels, conf.n2, p, WORDS, 8));
        CU_OK(cu_check(&conf.kernels, conf.n2, p, WORDS, 8, (CUdeviceptr)(uintptr_t)counter));
        CODE(MemFreeAsync, p, conf.n2);
        CODE(EventRecord, in, conf.n2);
        CODE(StreamWaitEvent, conf.n1, in, 0);
        CODE(StreamEndCapture, conf.n1, &graph);
        exec = instantiate(graph, 0);
        CODE(GraphLaunch, exec, conf.n1);
        CODE(StreamSynchronize, conf.n1);
        conf_say("mismatches=%u", *counter);
        drop(exec, graph);
        CU_OK(cu.EventDestroy(out));
        CU_OK(cu.EventDestroy(in));
        CU_OK(cu.MemFreeHost(counter));
}

const struct conf_case conf_graph[] = {
        {"graph.allocated_and_freed_inside", allocated_and_freed_inside, 0, NULL},
        {"graph.freed_by_the_program", freed_by_the_program, 0, NULL},
        {"graph.freed_by_the_next_launch", freed_by_the_next_launch, 0, NULL},
        {"graph.node_by_hand", node_by_hand, 0, NULL},
        {"graph.nodes_on_memory_of_the_program", nodes_on_memory_of_the_program, 0, NULL},
        {"graph.free_of_other_memory_inside", free_of_other_memory_inside, 0, NULL},
        {"graph.memory_freed_behind_a_launch", memory_freed_behind_a_launch, 0, NULL},
        {"graph.forked_capture", forked_capture, 0, NULL},
        {NULL, NULL, 0, NULL},
};
