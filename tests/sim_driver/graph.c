/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Graph -- work that was written down, to be launched later
 *
 * A launch is one action of its stream: its roots follow what the stream's next
 * operation would follow, and the stream's next operation follows all of it. Two
 * launches of one executable graph never overlap (H11).
 */

#include "graph.h"

#include <stdlib.h>

static void *enlarge(void *array, size_t count, size_t size)
{
        /* Room doubles at each power of two. */
        if (count & (count - 1))
                return array;
        array = realloc(array, (count ? count * 2 : 1) * size);
        if (!array)
                sim_abort("out of host memory");
        return array;
}

/* ---- sets of nodes ---- */

void sim_front_add(struct sim_front *front, size_t node)
{
        for (size_t i = 0; i < front->count; i++)
                if (front->node[i] == node)
                        return;
        front->node = enlarge(front->node, front->count, sizeof(*front->node));
        front->node[front->count++] = node;
}

void sim_front_join(struct sim_front *front, const struct sim_front *other)
{
        for (size_t i = 0; i < other->count; i++)
                sim_front_add(front, other->node[i]);
}

void sim_front_clear(struct sim_front *front)
{
        free(front->node);
        *front = (struct sim_front){0};
}

void sim_front_set(struct sim_front *front, size_t node)
{
        sim_front_clear(front);
        sim_front_add(front, node);
}

/* ---- graphs ---- */

struct sim_graph *sim_graph_new(enum sim_magic magic)
{
        return sim_handle_new(magic, sizeof(struct sim_graph));
}

/* Drops the lock while a launch still uses memory that dies with the graph. */
void sim_graph_free(struct sim_graph *graph)
{
        for (size_t i = 0; i < graph->count; i++)
                if (graph->nodes[i]->memory)
                        sim_wait_operation(graph->last_launch);
        for (size_t i = 0; i < graph->count; i++) {
                struct sim_node *node = graph->nodes[i];

                sim_work_drop(&node->work);
                sim_graph_memory_put(node->memory);
                free(node->needs);
                free(node);
        }
        free(graph->nodes);
        sim_operation_put(graph->last_launch);
        sim_handle_free(&graph->handle);
}

size_t sim_graph_index(const struct sim_node *node)
{
        size_t i = 0;

        while (node->graph->nodes[i] != node)
                i++;
        return i;
}

struct sim_node *sim_graph_add(struct sim_graph *graph, enum sim_node_kind kind,
                               const size_t *needs, size_t need_count)
{
        struct sim_node *node = calloc(1, sizeof(*node));

        graph->nodes = enlarge(graph->nodes, graph->count, sizeof(*graph->nodes));
        if (!node)
                sim_abort("out of host memory");
        node->kind = kind;
        node->graph = graph;
        node->work.name = "node";
        for (size_t i = 0; i < need_count; i++) {
                node->needs = enlarge(node->needs, i, sizeof(*node->needs));
                node->needs[i] = needs[i];
                node->need_count++;
        }
        graph->nodes[graph->count++] = node;
        return node;
}

void sim_graph_append(struct sim_graph *graph, const struct sim_graph *source, const size_t *needs,
                      size_t need_count)
{
        size_t first = graph->count;

        for (size_t i = 0; i < source->count; i++) {
                const struct sim_node *old = source->nodes[i];
                struct sim_node *node;

                if (old->need_count)
                        node = sim_graph_add(graph, old->kind, old->needs, old->need_count);
                else
                        node = sim_graph_add(graph, old->kind, needs, need_count);
                for (size_t j = 0; j < old->need_count; j++)
                        node->needs[j] += first;
                node->work = old->work;
                sim_work_copied(&node->work);
                node->event = old->event;
                node->memory = old->memory;
                if (node->memory)
                        node->memory->references++;
        }
}

/* ---- launching ---- */

static struct sim_operation *launch_node(const struct sim_node *node, struct sim_stream *stream,
                                         struct sim_operation **made, struct sim_operation *before)
{
        struct sim_operation *operation = sim_operation_new(&node->work, stream->id);

        for (size_t i = 0; i < node->need_count; i++)
                sim_operation_need(operation, made[node->needs[i]]);
        if (!node->need_count) {
                sim_order_stream(stream, operation);
                sim_operation_need(operation, before);
        }
        if (node->event)
                sim_handle_check(node->event, SIM_EVENT);
        if (node->kind == SIM_NODE_WAIT)
                sim_operation_need(operation, node->event->snapshot);
        sim_operation_submit(operation);
        if (node->kind == SIM_NODE_RECORD)
                sim_event_set(node->event, operation, stream->id);
        return operation;
}

static void launch(struct sim_graph *graph, struct sim_stream *stream)
{
        struct sim_operation **made = calloc(graph->count + 1, sizeof(struct sim_operation *));
        struct sim_work work = {.name = "graph launch"};
        struct sim_operation *end;

        if (!made)
                sim_abort("out of host memory");
        for (size_t i = 0; i < graph->count; i++)
                made[i] = launch_node(graph->nodes[i], stream, made, graph->last_launch);
        end = sim_operation_new(&work, stream->id);
        sim_order_stream(stream, end);
        sim_operation_need(end, graph->last_launch);
        for (size_t i = 0; i < graph->count; i++) {
                sim_operation_need(end, made[i]);
                sim_operation_put(made[i]);
        }
        free(made);
        sim_order_tail(stream, end);
        sim_operation_submit(end);
        sim_operation_put(graph->last_launch);
        graph->last_launch = end;
}

SIM_STREAM_PAIR(cuGraphLaunch, handle, (CUgraphExec exec, CUstream handle), (exec, handle))
{
        struct sim_graph *graph = (struct sim_graph *)exec;
        struct sim_stream *stream;
        struct sim_front *front;
        CUresult result = sim_stream_resolve(handle, &stream);

        if (result)
                return result;
        if (!exec)
                return CUDA_ERROR_INVALID_VALUE;
        sim_handle_check(exec, SIM_GRAPH_EXEC);
        result = sim_capture_implicit(stream);
        if (result)
                return result;
        if (stream->capture) {
                struct sim_graph *target = sim_capture_graph(stream, &front);
                size_t first;

                if (!target)
                        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
                first = target->count;
                sim_graph_append(target, graph, front->node, front->count);
                for (size_t i = first; i < target->count; i++)
                        sim_front_add(front, i);
                return CUDA_SUCCESS;
        }
        result = sim_graph_memory_launch(graph);
        if (!result)
                launch(graph, stream);
        return result;
}

SIM_STREAM_PAIR(cuGraphUpload, handle, (CUgraphExec exec, CUstream handle), (exec, handle))
{
        struct sim_stream *stream;
        CUresult result = sim_stream_resolve(handle, &stream);

        if (result)
                return result;
        sim_handle_check(exec, SIM_GRAPH_EXEC);
        return sim_submit(stream, &(struct sim_work){.name = "graph upload"});
}

/* ---- making and destroying ---- */

static CUresult instantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
        struct sim_graph *copy;

        if (!exec || !graph)
                return CUDA_ERROR_INVALID_VALUE;
        sim_handle_check(graph, SIM_GRAPH);
        copy = sim_graph_new(SIM_GRAPH_EXEC);
        sim_graph_append(copy, (struct sim_graph *)graph, NULL, 0);
        copy->frees_on_launch = flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
        *exec = (CUgraphExec)copy;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *bad, char *log,
                                    size_t bytes)
{
        SIM_ENTER(cuGraphInstantiate);
        (void)bad, (void)log, (void)bytes;
        return instantiate(exec, graph, 0);
}

CUresult CUDAAPI cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *bad,
                                       char *log, size_t bytes)
{
        SIM_ENTER(cuGraphInstantiate_v2);
        (void)bad, (void)log, (void)bytes;
        return instantiate(exec, graph, 0);
}

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
                                             unsigned long long flags)
{
        SIM_ENTER(cuGraphInstantiateWithFlags);
        return instantiate(exec, graph, flags);
}

#if CUDA_VERSION >= 12000
static CUresult instantiate_with(CUgraphExec *exec, CUgraph graph,
                                 CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)
{
        CUresult result;

        if (!parameters)
                return CUDA_ERROR_INVALID_VALUE;
        result = instantiate(exec, graph, parameters->flags);
        if (!result)
                parameters->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
        return result;
}

CUresult CUDAAPI cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
                                              CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)
{
        SIM_ENTER(cuGraphInstantiateWithParams);
        return instantiate_with(exec, graph, parameters);
}

CUresult CUDAAPI cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph,
                                                   CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)
{
        SIM_ENTER(cuGraphInstantiateWithParams_ptsz);
        return instantiate_with(exec, graph, parameters);
}
#endif

CUresult CUDAAPI cuGraphCreate(CUgraph *graph, unsigned int flags)
{
        SIM_ENTER(cuGraphCreate);
        if (!graph || flags)
                return CUDA_ERROR_INVALID_VALUE;
        *graph = (CUgraph)sim_graph_new(SIM_GRAPH);
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphClone(CUgraph *clone, CUgraph graph)
{
        struct sim_graph *copy;

        SIM_ENTER(cuGraphClone);
        if (!clone || !graph)
                return CUDA_ERROR_INVALID_VALUE;
        sim_handle_check(graph, SIM_GRAPH);
        copy = sim_graph_new(SIM_GRAPH);
        sim_graph_append(copy, (struct sim_graph *)graph, NULL, 0);
        *clone = (CUgraph)copy;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphDestroy(CUgraph graph)
{
        SIM_ENTER(cuGraphDestroy);
        if (!graph)
                return CUDA_ERROR_INVALID_VALUE;
        sim_handle_check(graph, SIM_GRAPH);
        sim_graph_free((struct sim_graph *)graph);
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec exec)
{
        SIM_ENTER(cuGraphExecDestroy);
        if (!exec)
                return CUDA_ERROR_INVALID_VALUE;
        sim_handle_check(exec, SIM_GRAPH_EXEC);
        sim_graph_free((struct sim_graph *)exec);
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphGetNodes(CUgraph handle, CUgraphNode *nodes, size_t *count)
{
        struct sim_graph *graph = (struct sim_graph *)handle;

        SIM_ENTER(cuGraphGetNodes);
        if (!handle || !count)
                return CUDA_ERROR_INVALID_VALUE;
        sim_handle_check(handle, SIM_GRAPH);
        for (size_t i = 0; nodes && i < *count; i++)
                nodes[i] = i < graph->count ? (CUgraphNode)graph->nodes[i] : NULL;
        if (!nodes || *count > graph->count)
                *count = graph->count;
        return CUDA_SUCCESS;
}
