/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Graph -- work that was written down, to be launched later
 *
 * Nodes added by hand: the kinds that the shim must take notice of (event
 * records), and those that a test needs around them. Copies between device and
 * host memory and sets are the same work as the calls make.
 */

#include "graph.h"
#include "copy.h"
#include "kernel.h"
#include "set.h"

#include <string.h>

#define NEEDS_MAX 64

/* Adds a node that needs the given ones; 1 for a null graph or a node of another graph. */
static CUresult add(CUgraph handle, enum sim_node_kind kind, const CUgraphNode *needs, size_t count,
                    CUgraphNode *handle_out, struct sim_node **added)
{
        size_t indices[NEEDS_MAX];

        if (!handle || !handle_out || (count && !needs) || count > NEEDS_MAX)
                return CUDA_ERROR_INVALID_VALUE;
        sim_handle_check(handle, SIM_GRAPH);
        for (size_t i = 0; i < count; i++) {
                const struct sim_node *need = (const struct sim_node *)needs[i];

                if (!need || need->graph != (struct sim_graph *)handle)
                        return CUDA_ERROR_INVALID_VALUE;
                indices[i] = sim_graph_index(need);
        }
        *added = sim_graph_add((struct sim_graph *)handle, kind, indices, count);
        *handle_out = (CUgraphNode)*added;
        return CUDA_SUCCESS;
}

static CUresult add_work(CUgraph graph, const CUgraphNode *needs, size_t count, CUgraphNode *node,
                         const struct sim_work *work)
{
        struct sim_node *added;
        CUresult result = add(graph, SIM_NODE_WORK, needs, count, node, &added);

        if (!result)
                added->work = *work;
        return result;
}

static CUresult add_event(CUgraph graph, enum sim_node_kind kind, const CUgraphNode *needs,
                          size_t count, CUgraphNode *node, CUevent event)
{
        struct sim_node *added;
        CUresult result;

        if (!event)
                return CUDA_ERROR_INVALID_VALUE;
        sim_handle_check(event, SIM_EVENT);
        result = add(graph, kind, needs, count, node, &added);
        if (!result)
                added->event = (struct sim_event *)event;
        return result;
}

CUresult CUDAAPI cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                     size_t count)
{
        struct sim_node *added;

        SIM_ENTER(cuGraphAddEmptyNode);
        return add(graph, SIM_NODE_EMPTY, needs, count, node, &added);
}

CUresult CUDAAPI cuGraphAddEventRecordNode(CUgraphNode *node, CUgraph graph,
                                           const CUgraphNode *needs, size_t count, CUevent event)
{
        SIM_ENTER(cuGraphAddEventRecordNode);
        return add_event(graph, SIM_NODE_RECORD, needs, count, node, event);
}

CUresult CUDAAPI cuGraphAddEventWaitNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                         size_t count, CUevent event)
{
        SIM_ENTER(cuGraphAddEventWaitNode);
        return add_event(graph, SIM_NODE_WAIT, needs, count, node, event);
}

/* ---- event nodes, changed later ---- */

static CUresult set_event(struct sim_node *node, CUevent event)
{
        if (!node || node->kind != SIM_NODE_RECORD || !event)
                return CUDA_ERROR_INVALID_VALUE;
        sim_handle_check(event, SIM_EVENT);
        node->event = (struct sim_event *)event;
        return CUDA_SUCCESS;
}

/* The copy of a node in an executable graph has the same place. */
static struct sim_node *in_exec(CUgraphExec exec, CUgraphNode node)
{
        struct sim_graph *graph = (struct sim_graph *)exec;
        size_t index;

        if (!exec || !node)
                return NULL;
        sim_handle_check(exec, SIM_GRAPH_EXEC);
        index = sim_graph_index((struct sim_node *)node);
        return index < graph->count ? graph->nodes[index] : NULL;
}

CUresult CUDAAPI cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event)
{
        SIM_ENTER(cuGraphEventRecordNodeSetEvent);
        return set_event((struct sim_node *)node, event);
}

CUresult CUDAAPI cuGraphEventRecordNodeGetEvent(CUgraphNode handle, CUevent *event)
{
        const struct sim_node *node = (const struct sim_node *)handle;

        SIM_ENTER(cuGraphEventRecordNodeGetEvent);
        if (!node || node->kind != SIM_NODE_RECORD || !event)
                return CUDA_ERROR_INVALID_VALUE;
        *event = (CUevent)node->event;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node,
                                                    CUevent event)
{
        SIM_ENTER(cuGraphExecEventRecordNodeSetEvent);
        return set_event(in_exec(exec, node), event);
}

/* ---- work nodes ---- */

static CUresult add_kernel(CUgraph graph, const CUgraphNode *needs, size_t count, CUgraphNode *node,
                           CUfunction function, void **parameters, void **extra)
{
        struct sim_work work;
        CUresult result;

        if (!function)
                return CUDA_ERROR_INVALID_VALUE;
        result = sim_kernel_work(&work, function, parameters, extra);
        return result ? result : add_work(graph, needs, count, node, &work);
}

CUresult CUDAAPI cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                      size_t count, const CUDA_KERNEL_NODE_PARAMS_v1 *kernel)
{
        SIM_ENTER(cuGraphAddKernelNode);
        if (!kernel)
                return CUDA_ERROR_INVALID_VALUE;
        return add_kernel(graph, needs, count, node, kernel->func, kernel->kernelParams,
                          kernel->extra);
}

#if CUDA_VERSION >= 12000
CUresult CUDAAPI cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                         size_t count, const CUDA_KERNEL_NODE_PARAMS_v2 *kernel)
{
        SIM_ENTER(cuGraphAddKernelNode_v2);
        if (!kernel)
                return CUDA_ERROR_INVALID_VALUE;
        return add_kernel(graph, needs, count, node,
                          kernel->func ? kernel->func : (CUfunction)kernel->kern,
                          kernel->kernelParams, kernel->extra);
}
#endif

CUresult CUDAAPI cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                      size_t count, const CUDA_MEMSET_NODE_PARAMS *set,
                                      CUcontext context)
{
        struct sim_work work;
        CUresult result;

        SIM_ENTER(cuGraphAddMemsetNode);
        (void)context;
        if (!set)
                return CUDA_ERROR_INVALID_VALUE;
        if (set->elementSize != 1 && set->elementSize != 2 && set->elementSize != 4)
                return CUDA_ERROR_INVALID_VALUE;
        result = sim_set_work(&work, set->dst, set->pitch, set->elementSize, set->value, set->width,
                              set->height);
        return result ? result : add_work(graph, needs, count, node, &work);
}

CUresult CUDAAPI cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                      size_t count, const CUDA_MEMCPY3D *copy, CUcontext context)
{
        struct sim_work work;
        CUresult result;

        SIM_ENTER(cuGraphAddMemcpyNode);
        (void)context;
        result = sim_copy_work(&work, copy);
        return result ? result : add_work(graph, needs, count, node, &work);
}

CUresult CUDAAPI cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                    size_t count, const CUDA_HOST_NODE_PARAMS *host)
{
        struct sim_work work = {.name = "host node", .kind = SIM_WORK_HOST};

        SIM_ENTER(cuGraphAddHostNode);
        if (!host || !host->fn)
                return CUDA_ERROR_INVALID_VALUE;
        memcpy(&work.word[0], &host->fn, sizeof(host->fn));
        work.word[1] = (uintptr_t)host->userData;
        return add_work(graph, needs, count, node, &work);
}

/* ---- memory nodes ---- */

CUresult CUDAAPI cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                        size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *alloc)
{
        struct sim_device *device;
        struct sim_node *added;
        CUdeviceptr address;
        CUresult result;

        SIM_ENTER(cuGraphAddMemAllocNode);
        device = alloc ? sim_device(alloc->poolProps.location.id) : NULL;
        if (!device || !alloc->bytesize)
                return CUDA_ERROR_INVALID_VALUE;
        result = sim_graph_memory_take(device, alloc->bytesize, &address);
        if (result)
                return result;
        result = add(graph, SIM_NODE_ALLOC, needs, count, node, &added);
        if (result) {
                sim_graph_memory_give(address);
                return result;
        }
        added->memory = sim_graph_memory_new(address);
        alloc->dptr = address;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                       size_t count, CUdeviceptr address)
{
        struct sim_graph_memory *memory;
        struct sim_node *added;
        CUresult result;

        SIM_ENTER(cuGraphAddMemFreeNode);
        if (!graph)
                return CUDA_ERROR_INVALID_VALUE;
        sim_handle_check(graph, SIM_GRAPH);
        memory = sim_graph_memory_find((struct sim_graph *)graph, address);
        if (!memory)
                return CUDA_ERROR_INVALID_VALUE;
        result = add(graph, SIM_NODE_FREE, needs, count, node, &added);
        if (result)
                return result;
        memory->freed = true;
        memory->references++;
        added->memory = memory;
        return CUDA_SUCCESS;
}

/* ---- nodes of any kind ---- */

#if CUDA_VERSION >= 12020
static CUresult add_any(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs, size_t count,
                        const CUgraphNodeParams *parameters)
{
        struct sim_node *added;

        if (!parameters)
                return CUDA_ERROR_INVALID_VALUE;
        switch (parameters->type) {
        case CU_GRAPH_NODE_TYPE_EMPTY:
                return add(graph, SIM_NODE_EMPTY, needs, count, node, &added);
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
                return add_event(graph, SIM_NODE_RECORD, needs, count, node,
                                 parameters->eventRecord.event);
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
                return add_event(graph, SIM_NODE_WAIT, needs, count, node,
                                 parameters->eventWait.event);
        case CU_GRAPH_NODE_TYPE_KERNEL:
                return add_kernel(graph, needs, count, node, parameters->kernel.func,
                                  parameters->kernel.kernelParams, parameters->kernel.extra);
        default:
                return CUDA_ERROR_NOT_SUPPORTED;
        }
}

CUresult CUDAAPI cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                size_t count, CUgraphNodeParams *parameters)
{
        SIM_ENTER(cuGraphAddNode);
        return add_any(node, graph, needs, count, parameters);
}

static CUresult change(struct sim_node *node, const CUgraphNodeParams *parameters)
{
        if (!parameters)
                return CUDA_ERROR_INVALID_VALUE;
        if (parameters->type != CU_GRAPH_NODE_TYPE_EVENT_RECORD)
                return CUDA_ERROR_NOT_SUPPORTED;
        return set_event(node, parameters->eventRecord.event);
}

CUresult CUDAAPI cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *parameters)
{
        SIM_ENTER(cuGraphNodeSetParams);
        return change((struct sim_node *)node, parameters);
}

CUresult CUDAAPI cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                          CUgraphNodeParams *parameters)
{
        SIM_ENTER(cuGraphExecNodeSetParams);
        return change(in_exec(exec, node), parameters);
}
#endif

#if CUDA_VERSION >= 12030
CUresult CUDAAPI cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                   const CUgraphEdgeData *edges, size_t count,
                                   CUgraphNodeParams *parameters)
{
        SIM_ENTER(cuGraphAddNode_v2);
        (void)edges;
        return add_any(node, graph, needs, count, parameters);
}
#endif
