/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Capture -- streams that write a graph instead of working
 *
 * The calls that begin, end and look at a capture.
 */

#include "graph.h"

#include <stdlib.h>

/* ---- beginning ---- */

static CUresult begin(CUstream handle, CUstreamCaptureMode mode, struct sim_graph *graph,
                      struct sim_stream **stream)
{
        CUresult result = sim_stream_resolve(handle, stream);

        if (result)
                return result;
        if (mode > CU_STREAM_CAPTURE_MODE_RELAXED)
                return CUDA_ERROR_INVALID_VALUE;
        if ((*stream)->kind == SIM_STREAM_LEGACY)
                return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        if ((*stream)->capture)
                return CUDA_ERROR_ILLEGAL_STATE;
        sim_capture_begin(*stream, mode, graph);
        return CUDA_SUCCESS;
}

SIM_STREAM_PAIR(cuStreamBeginCapture, handle, (CUstream handle), (handle))
{
        struct sim_stream *stream;

        return begin(handle, CU_STREAM_CAPTURE_MODE_GLOBAL, NULL, &stream);
}

SIM_STREAM_PAIR(cuStreamBeginCapture_v2, handle, (CUstream handle, CUstreamCaptureMode mode),
                (handle, mode))
{
        struct sim_stream *stream;

        return begin(handle, mode, NULL, &stream);
}

#if CUDA_VERSION >= 12030
SIM_STREAM_PAIR(cuStreamBeginCaptureToGraph, handle,
                (CUstream handle, CUgraph graph, const CUgraphNode *needs,
                 const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode),
                (handle, graph, needs, edges, count, mode))
{
        struct sim_stream *stream;
        CUresult result;

        (void)edges;
        if (!graph || (count && !needs))
                return CUDA_ERROR_INVALID_VALUE;
        sim_handle_check(graph, SIM_GRAPH);
        result = begin(handle, mode, (struct sim_graph *)graph, &stream);
        if (result)
                return result;
        for (size_t i = 0; i < count; i++)
                sim_front_add(&sim_capture_branch(stream)->front,
                              sim_graph_index((struct sim_node *)needs[i]));
        return CUDA_SUCCESS;
}
#endif

/* ---- ending ---- */

/* Does every last node of every fork lead to a node of the origin's front? */
static bool is_joined(struct sim_capture *capture)
{
        struct sim_graph *graph = capture->graph;
        struct sim_front *end = &sim_capture_branch(capture->origin)->front;
        bool *leads = calloc(graph->count + 1, sizeof(bool));
        bool joined = true;

        if (!leads)
                sim_abort("out of host memory");
        for (size_t i = 0; i < end->count; i++)
                leads[end->node[i]] = true;
        for (size_t i = graph->count; i-- > 0;)
                for (size_t j = 0; leads[i] && j < graph->nodes[i]->need_count; j++)
                        leads[graph->nodes[i]->needs[j]] = true;
        for (struct sim_branch *branch = capture->branches; branch; branch = branch->next)
                for (size_t i = 0; i < branch->front.count; i++)
                        joined = joined && leads[branch->front.node[i]];
        free(leads);
        return joined;
}

SIM_STREAM_PAIR(cuStreamEndCapture, handle, (CUstream handle, CUgraph *graph), (handle, graph))
{
        struct sim_stream *stream;
        struct sim_capture *capture;
        CUresult result = sim_stream_resolve(handle, &stream);

        if (result)
                return result;
        capture = stream->capture;
        if (!graph)
                return CUDA_ERROR_INVALID_VALUE;
        if (!capture)
                return CUDA_ERROR_ILLEGAL_STATE;
        if (capture->origin != stream) {
                sim_capture_kill(capture);
                return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
        }
        if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != sim_thread()) {
                sim_capture_kill(capture);
                return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
        }
        if (capture->dead)
                result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        else if (!is_joined(capture))
                result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
        *graph = result ? NULL : (CUgraph)capture->graph;
        if (result && !capture->graph_is_lent)
                sim_graph_free(capture->graph);
        sim_capture_dissolve(capture);
        return result;
}

/* ---- looking ---- */

static CUstreamCaptureStatus status_of(const struct sim_stream *stream)
{
        if (!stream->capture)
                return CU_STREAM_CAPTURE_STATUS_NONE;
        return stream->capture->dead ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                     : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/* 906 on a legacy stream that a capture shuts, and here alone the capture survives (cuda.h). */
static CUresult look(CUstream handle, struct sim_stream **found)
{
        CUresult result = sim_stream_resolve(handle, found);

        if (result)
                return result;
        if ((*found)->kind != SIM_STREAM_LEGACY)
                return CUDA_SUCCESS;
        for (struct sim_stream *other = (*found)->context->streams; other; other = other->next)
                if (other->capture && other->blocking)
                        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        return CUDA_SUCCESS;
}

SIM_STREAM_PAIR(cuStreamIsCapturing, handle, (CUstream handle, CUstreamCaptureStatus *status),
                (handle, status))
{
        struct sim_stream *stream;
        CUresult result = look(handle, &stream);

        if (result)
                return result;
        if (!status)
                return CUDA_ERROR_INVALID_VALUE;
        *status = status_of(stream);
        return CUDA_SUCCESS;
}

static CUresult info(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                     const CUgraphNode **needs, size_t *count)
{
        struct sim_stream *stream;
        struct sim_branch *branch;
        CUresult result = look(handle, &stream);

        if (result)
                return result;
        if (!status)
                return CUDA_ERROR_INVALID_VALUE;
        *status = status_of(stream);
        if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
                return CUDA_SUCCESS;
        branch = sim_capture_branch(stream);
        if (id)
                *id = stream->capture->id;
        if (graph)
                *graph = (CUgraph)stream->capture->graph;
        if (count)
                *count = branch->front.count;
        if (needs) {
                branch->shown =
                        realloc(branch->shown, (branch->front.count + 1) * sizeof(CUgraphNode));
                if (!branch->shown)
                        sim_abort("out of host memory");
                for (size_t i = 0; i < branch->front.count; i++)
                        branch->shown[i] =
                                (CUgraphNode)stream->capture->graph->nodes[branch->front.node[i]];
                *needs = branch->shown;
        }
        return CUDA_SUCCESS;
}

SIM_STREAM_PAIR(cuStreamGetCaptureInfo, handle,
                (CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id),
                (handle, status, id))
{
        return info(handle, status, id, NULL, NULL, NULL);
}

SIM_STREAM_PAIR(cuStreamGetCaptureInfo_v2, handle,
                (CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                 const CUgraphNode **needs, size_t *count),
                (handle, status, id, graph, needs, count))
{
        return info(handle, status, id, graph, needs, count);
}

#if CUDA_VERSION >= 12030
SIM_STREAM_PAIR(cuStreamGetCaptureInfo_v3, handle,
                (CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                 const CUgraphNode **needs, const CUgraphEdgeData **edges, size_t *count),
                (handle, status, id, graph, needs, edges, count))
{
        if (edges)
                *edges = NULL;
        return info(handle, status, id, graph, needs, count);
}
#endif

static CUresult update(CUstream handle, CUgraphNode *needs, size_t count, unsigned int flags)
{
        struct sim_stream *stream;
        struct sim_front *front;
        CUresult result = sim_stream_resolve(handle, &stream);

        if (result)
                return result;
        if (!stream->capture)
                return CUDA_ERROR_ILLEGAL_STATE;
        if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (count && !needs))
                return CUDA_ERROR_INVALID_VALUE;
        front = &sim_capture_branch(stream)->front;
        if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
                sim_front_clear(front);
        for (size_t i = 0; i < count; i++)
                sim_front_add(front, sim_graph_index((struct sim_node *)needs[i]));
        return CUDA_SUCCESS;
}

SIM_STREAM_PAIR(cuStreamUpdateCaptureDependencies, handle,
                (CUstream handle, CUgraphNode *needs, size_t count, unsigned int flags),
                (handle, needs, count, flags))
{
        return update(handle, needs, count, flags);
}

#if CUDA_VERSION >= 12030
SIM_STREAM_PAIR(cuStreamUpdateCaptureDependencies_v2, handle,
                (CUstream handle, CUgraphNode *needs, const CUgraphEdgeData *edges, size_t count,
                 unsigned int flags),
                (handle, needs, edges, count, flags))
{
        (void)edges;
        return update(handle, needs, count, flags);
}
#endif

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
        SIM_ENTER(cuThreadExchangeStreamCaptureMode);
        if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
                return CUDA_ERROR_INVALID_VALUE;
        *mode = sim_capture_interaction(*mode);
        return CUDA_SUCCESS;
}
