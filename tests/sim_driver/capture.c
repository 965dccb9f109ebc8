/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Capture -- streams that write a graph instead of working
 *
 * A capture begins on its origin stream and spreads to every stream that waits
 * for one of its points (an event recorded inside it). Each of its streams has a
 * front: the nodes that its next node will need. A call that the rules forbid
 * answers an error and kills the capture; a dead one stays with its streams until
 * it is ended, and still forbids what a live one forbids.
 *
 * The rules are table 3A as measured: calls that are unsafe are forbidden by the
 * captures that this thread's interaction mode takes notice of; queries and waits
 * of a capturing stream and of its whole context are forbidden always.
 */

#include "graph.h"
#include "control.h"

#include <stdlib.h>

/* Guarded by: sim_mutex. */
static struct sim_capture *captures;

static __thread CUstreamCaptureMode interaction = CU_STREAM_CAPTURE_MODE_GLOBAL;

CUstreamCaptureMode sim_capture_interaction(CUstreamCaptureMode mode)
{
        CUstreamCaptureMode old = interaction;

        interaction = mode;
        return old;
}

struct sim_branch *sim_capture_branch(struct sim_stream *stream)
{
        struct sim_branch *branch = stream->capture->branches;

        while (branch->stream != stream)
                branch = branch->next;
        return branch;
}

static struct sim_capture *find(uint64_t id)
{
        struct sim_capture *capture = captures;

        while (capture && capture->id != id)
                capture = capture->next;
        return capture;
}

static struct sim_branch *join(struct sim_capture *capture, struct sim_stream *stream)
{
        struct sim_branch *branch = calloc(1, sizeof(*branch));

        if (!branch)
                sim_abort("out of host memory");
        branch->stream = stream;
        branch->next = capture->branches;
        capture->branches = branch;
        stream->capture = capture;
        stream->context->captures++;
        return branch;
}

struct sim_graph *sim_capture_graph(struct sim_stream *stream, struct sim_front **front)
{
        if (!stream->capture || stream->capture->dead)
                return NULL;
        *front = &sim_capture_branch(stream)->front;
        return stream->capture->graph;
}

/* ---- what is forbidden ---- */

void sim_capture_kill(struct sim_capture *capture)
{
        capture->dead = true;
}

static bool forbids(const struct sim_capture *capture)
{
        if (interaction == CU_STREAM_CAPTURE_MODE_RELAXED)
                return false;
        if (capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
                return false;
        if (capture->thread == sim_thread())
                return true;
        return interaction == CU_STREAM_CAPTURE_MODE_GLOBAL &&
               capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult sim_capture_unsafe(void)
{
        CUresult result = CUDA_SUCCESS;

        for (struct sim_capture *capture = captures; capture; capture = capture->next) {
                if (!forbids(capture))
                        continue;
                sim_capture_kill(capture);
                result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
        return result;
}

static CUresult kill_in(struct sim_context *context, bool blocking_only, CUresult code)
{
        CUresult result = CUDA_SUCCESS;

        for (struct sim_stream *stream = context->streams; stream; stream = stream->next) {
                if (!stream->capture || (blocking_only && !stream->blocking))
                        continue;
                sim_capture_kill(stream->capture);
                result = code;
        }
        return result;
}

CUresult sim_capture_context(struct sim_context *context)
{
        struct sim_context *part = NULL;
        CUresult result = CUDA_SUCCESS;

        while ((part = sim_order_contexts(context, part)))
                if (kill_in(part, false, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED))
                        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        return result;
}

CUresult sim_capture_implicit(struct sim_stream *stream)
{
        if (stream->kind != SIM_STREAM_LEGACY || !stream->context->captures)
                return CUDA_SUCCESS;
        return kill_in(stream->context, true, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

CUresult sim_capture_observe(struct sim_stream *stream)
{
        CUresult result;

        if (stream->capture) {
                sim_capture_kill(stream->capture);
                return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
        result = sim_capture_implicit(stream);
        return result ? result : sim_capture_unsafe();
}

CUresult sim_capture_event(const struct sim_event *event)
{
        struct sim_capture *capture = find(event->capture);

        if (!event->capture)
                return sim_capture_unsafe();
        if (capture)
                sim_capture_kill(capture);
        return CUDA_ERROR_CAPTURED_EVENT;
}

bool sim_is_capturing(const struct sim_stream *stream)
{
        return stream->capture;
}

size_t sim_open_captures(void)
{
        size_t count = 0;

        pthread_mutex_lock(&sim_mutex);
        for (struct sim_capture *capture = captures; capture; capture = capture->next)
                count++;
        pthread_mutex_unlock(&sim_mutex);
        return count;
}

/* ---- what is written ---- */

static struct sim_node *add_node(struct sim_stream *stream, enum sim_node_kind kind)
{
        struct sim_branch *branch = sim_capture_branch(stream);
        struct sim_graph *graph = stream->capture->graph;
        struct sim_node *node = sim_graph_add(graph, kind, branch->front.node, branch->front.count);

        sim_front_set(&branch->front, graph->count - 1);
        return node;
}

CUresult sim_capture_work(struct sim_stream *stream, const struct sim_work *work)
{
        if (stream->capture->dead)
                return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        add_node(stream, SIM_NODE_WORK)->work = *work;
        sim_work_copied(work);
        return CUDA_SUCCESS;
}

CUresult sim_capture_record(struct sim_stream *stream, struct sim_event *event, bool external)
{
        struct sim_capture *capture = stream->capture;

        if (capture->dead)
                return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        if (external) {
                add_node(stream, SIM_NODE_RECORD)->event = event;
                return CUDA_SUCCESS;
        }
        capture->marks = realloc(capture->marks,
                                 sizeof(struct sim_front) * (size_t)(capture->mark_count + 1));
        if (!capture->marks)
                sim_abort("out of host memory");
        capture->marks[capture->mark_count] = (struct sim_front){0};
        sim_front_join(&capture->marks[capture->mark_count], &sim_capture_branch(stream)->front);
        sim_event_set(event, NULL, 0);
        event->capture = capture->id;
        event->mark = capture->mark_count++;
        return CUDA_SUCCESS;
}

CUresult sim_capture_wait(struct sim_stream *stream, struct sim_event *event, bool external)
{
        struct sim_capture *capture = find(event->capture);
        struct sim_branch *branch;

        if (stream->capture && stream->capture->dead)
                return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        if (external && stream->capture) {
                add_node(stream, SIM_NODE_WAIT)->event = event;
                return CUDA_SUCCESS;
        }
        if (!event->capture) {
                /* Only an event that was never recorded brings no uncaptured work along. */
                if (!event->snapshot)
                        return CUDA_SUCCESS;
                sim_capture_kill(stream->capture);
                return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
        }
        if (!capture)
                return CUDA_ERROR_CAPTURED_EVENT;
        if (capture->dead)
                return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        if (stream->kind == SIM_STREAM_LEGACY) {
                sim_capture_kill(capture);
                return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
        if (stream->capture && stream->capture != capture) {
                sim_capture_kill(capture);
                sim_capture_kill(stream->capture);
                return CUDA_ERROR_STREAM_CAPTURE_MERGE;
        }
        branch = stream->capture ? sim_capture_branch(stream) : join(capture, stream);
        sim_front_join(&branch->front, &capture->marks[event->mark]);
        return CUDA_SUCCESS;
}

CUresult sim_capture_alloc(struct sim_stream *stream, size_t bytes, CUdeviceptr *address)
{
        struct sim_node *node;
        CUdeviceptr taken;
        CUresult result;

        if (stream->capture->dead)
                return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        result = sim_graph_memory_take(stream->context->device, bytes, &taken);
        if (result)
                return result;
        node = add_node(stream, SIM_NODE_ALLOC);
        node->work.name = "graph allocation";
        node->memory = sim_graph_memory_new(taken);
        *address = taken;
        return CUDA_SUCCESS;
}

CUresult sim_capture_free(struct sim_stream *stream, CUdeviceptr address)
{
        struct sim_graph_memory *memory;
        struct sim_node *node;

        if (stream->capture->dead)
                return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        memory = sim_graph_memory_find(stream->capture->graph, address);
        if (!memory)
                return CUDA_ERROR_INVALID_VALUE;
        memory->freed = true;
        memory->references++;
        node = add_node(stream, SIM_NODE_FREE);
        node->work.name = "graph free";
        node->memory = memory;
        return CUDA_SUCCESS;
}

/* ---- beginning and ending, for capture_calls.c ---- */

struct sim_capture *sim_capture_begin(struct sim_stream *stream, CUstreamCaptureMode mode,
                                      struct sim_graph *graph)
{
        struct sim_capture *capture = calloc(1, sizeof(*capture));

        if (!capture)
                sim_abort("out of host memory");
        capture->id = sim_unique();
        capture->mode = mode;
        capture->thread = sim_thread();
        capture->origin = stream;
        capture->graph = graph ? graph : sim_graph_new(SIM_GRAPH);
        capture->graph_is_lent = graph;
        capture->next = captures;
        captures = capture;
        join(capture, stream);
        return capture;
}

void sim_capture_dissolve(struct sim_capture *capture)
{
        struct sim_capture **place = &captures;

        while (*place != capture)
                place = &(*place)->next;
        *place = capture->next;
        while (capture->branches) {
                struct sim_branch *branch = capture->branches;

                capture->branches = branch->next;
                branch->stream->capture = NULL;
                branch->stream->context->captures--;
                sim_front_clear(&branch->front);
                free(branch->shown);
                free(branch);
        }
        for (int i = 0; i < capture->mark_count; i++)
                sim_front_clear(&capture->marks[i]);
        free(capture->marks);
        free(capture);
}

/* A destroyed origin takes its capture along; any other stream leaves a fork without an end. */
void sim_capture_stream_gone(struct sim_stream *stream)
{
        struct sim_capture *capture = stream->capture;
        struct sim_branch **place, *branch;

        if (!capture)
                return;
        if (capture->origin == stream) {
                if (!capture->graph_is_lent)
                        sim_graph_free(capture->graph);
                sim_capture_dissolve(capture);
                return;
        }
        sim_capture_kill(capture);
        branch = sim_capture_branch(stream);
        place = &capture->branches;
        while (*place != branch)
                place = &(*place)->next;
        *place = branch->next;
        stream->capture = NULL;
        stream->context->captures--;
        sim_front_clear(&branch->front);
        free(branch->shown);
        free(branch);
}
