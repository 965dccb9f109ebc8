/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Events -- moments in a stream or in a whole context
 *
 * An event is a reference to the operation that recorded it. Recording again
 * replaces the reference; whoever waited before keeps the old operation. An event
 * that was never recorded is complete (M28). One recorded inside a capture is a
 * point of that capture and nothing to wait for (capture.c).
 */

#include "operation.h"
#include "control.h"

#define EVENT_FLAGS                                                                                \
        (unsigned int)(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)

static CUresult event_resolve(CUevent handle, struct sim_event **event)
{
        if (!handle)
                return CUDA_ERROR_INVALID_HANDLE;
        sim_handle_check(handle, SIM_EVENT);
        *event = (struct sim_event *)handle;
        return (*event)->context->sticky;
}

/* Green contexts share the objects of their primary one. */
static const struct sim_context *family(const struct sim_context *context)
{
        return context->green_parent ? context->green_parent : context;
}

static void event_delete(struct sim_event *event)
{
        struct sim_event **place = &event->context->events;

        while (*place != event)
                place = &(*place)->next;
        *place = event->next;
        sim_operation_put(event->snapshot);
        sim_handle_free(&event->handle);
}

void sim_events_close(struct sim_context *context)
{
        while (context->events)
                event_delete(context->events);
}

/* ---- creating and destroying ---- */

struct sim_event *sim_event_new(struct sim_context *context, unsigned int flags)
{
        struct sim_event *event = sim_handle_new(SIM_EVENT, sizeof(*event));

        event->context = context;
        event->flags = flags;
        event->next = context->events;
        context->events = event;
        return event;
}

CUresult CUDAAPI cuEventCreate(CUevent *handle, unsigned int flags)
{
        struct sim_context *context;
        CUresult result;

        SIM_ENTER(cuEventCreate);
        result = sim_current(&context);
        if (result)
                return result;
        if (!handle || flags & ~EVENT_FLAGS)
                return CUDA_ERROR_INVALID_VALUE;
        if (flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING))
                return CUDA_ERROR_INVALID_VALUE;
        *handle = (CUevent)sim_event_new(context, flags);
        return CUDA_SUCCESS;
}

static CUresult destroy(CUevent handle)
{
        struct sim_event *event;
        CUresult result = event_resolve(handle, &event);

        if (!result)
                event_delete(event);
        return result;
}

CUresult CUDAAPI cuEventDestroy(CUevent handle)
{
        SIM_ENTER(cuEventDestroy);
        return destroy(handle);
}

CUresult CUDAAPI cuEventDestroy_v2(CUevent handle)
{
        SIM_ENTER(cuEventDestroy_v2);
        return destroy(handle);
}

/* ---- recording ---- */

void sim_event_set(struct sim_event *event, struct sim_operation *snapshot, uint64_t stream)
{
        sim_operation_get(snapshot);
        sim_operation_put(event->snapshot);
        event->snapshot = snapshot;
        event->stream = stream;
        event->capture = 0;
}

void sim_event_mark(struct sim_event *event, struct sim_stream *stream)
{
        struct sim_operation *snapshot = sim_mark(stream, "event record");

        sim_event_set(event, snapshot, stream->id);
        sim_operation_put(snapshot);
}

/* The stream is looked at first. */
static CUresult resolve_both(CUstream stream_handle, CUevent event_handle,
                             struct sim_stream **stream, struct sim_event **event)
{
        CUresult result = sim_stream_resolve(stream_handle, stream);

        return result ? result : event_resolve(event_handle, event);
}

static CUresult record(CUevent event_handle, CUstream stream_handle, unsigned int flags)
{
        struct sim_event *event;
        struct sim_stream *stream;
        CUresult result = resolve_both(stream_handle, event_handle, &stream, &event);

        if (result)
                return result;
        if (flags & ~(unsigned int)CU_EVENT_RECORD_EXTERNAL)
                return CUDA_ERROR_INVALID_VALUE;
        if (family(event->context) != family(stream->context))
                return CUDA_ERROR_INVALID_HANDLE;
        result = sim_capture_implicit(stream);
        if (result)
                return result;
        if (stream->capture)
                return sim_capture_record(stream, event, flags & CU_EVENT_RECORD_EXTERNAL);
        if (flags)
                return CUDA_ERROR_INVALID_VALUE;
        sim_event_mark(event, stream);
        return CUDA_SUCCESS;
}

SIM_STREAM_PAIR(cuEventRecord, stream, (CUevent event, CUstream stream), (event, stream))
{
        return record(event, stream, 0);
}

SIM_STREAM_PAIR(cuEventRecordWithFlags, stream,
                (CUevent event, CUstream stream, unsigned int flags), (event, stream, flags))
{
        return record(event, stream, flags);
}

/* ---- waiting ---- */

SIM_STREAM_PAIR(cuStreamWaitEvent, handle,
                (CUstream handle, CUevent event_handle, unsigned int flags),
                (handle, event_handle, flags))
{
        struct sim_event *event;
        struct sim_stream *stream;
        CUresult result = resolve_both(handle, event_handle, &stream, &event);

        if (result)
                return result;
        if (flags & ~(unsigned int)CU_EVENT_WAIT_EXTERNAL)
                return CUDA_ERROR_INVALID_VALUE;
        result = sim_capture_implicit(stream);
        if (result)
                return result;
        if (event->capture || stream->capture)
                return sim_capture_wait(stream, event, flags & CU_EVENT_WAIT_EXTERNAL);
        if (flags)
                return CUDA_ERROR_INVALID_VALUE;
        sim_stream_follow(stream, event->snapshot);
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventQuery(CUevent handle)
{
        struct sim_event *event;
        CUresult result;

        SIM_ENTER(cuEventQuery);
        result = event_resolve(handle, &event);
        if (result)
                return result;
        result = sim_capture_event(event);
        if (result)
                return result;
        if (sim_operation_done(event->snapshot))
                return CUDA_SUCCESS;
        sim_engine_poll();
        return CUDA_ERROR_NOT_READY;
}

CUresult CUDAAPI cuEventSynchronize(CUevent handle)
{
        struct sim_event *event;
        struct sim_context *context;
        uint64_t stream;
        CUresult result;

        SIM_ENTER(cuEventSynchronize);
        result = event_resolve(handle, &event);
        if (result)
                return result;
        result = sim_capture_event(event);
        if (result)
                return result;
        if (!event->snapshot)
                return CUDA_SUCCESS;
        stream = event->stream;
        context = event->context;
        sim_wait_operation(event->snapshot);
        sim_pool_synchronized(stream ? NULL : context, stream);
        return CUDA_SUCCESS;
}

static CUresult elapsed(float *milliseconds, CUevent first_handle, CUevent last_handle)
{
        struct sim_event *first, *last;
        int64_t difference;
        CUresult result = event_resolve(first_handle, &first);

        if (result)
                return result;
        result = event_resolve(last_handle, &last);
        if (result)
                return result;
        if (!milliseconds)
                return CUDA_ERROR_INVALID_VALUE;
        if (first->flags & CU_EVENT_DISABLE_TIMING || last->flags & CU_EVENT_DISABLE_TIMING)
                return CUDA_ERROR_INVALID_HANDLE;
        if (!first->snapshot || !last->snapshot)
                return CUDA_ERROR_INVALID_HANDLE;
        if (!sim_operation_done(first->snapshot) || !sim_operation_done(last->snapshot))
                return CUDA_ERROR_NOT_READY;
        difference = (int64_t)(last->snapshot->end_ns - first->snapshot->end_ns);
        *milliseconds = (float)((double)difference / 1e6);
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventElapsedTime(float *milliseconds, CUevent first, CUevent last)
{
        SIM_ENTER(cuEventElapsedTime);
        return elapsed(milliseconds, first, last);
}

#if CUDA_VERSION >= 12080
CUresult CUDAAPI cuEventElapsedTime_v2(float *milliseconds, CUevent first, CUevent last)
{
        SIM_ENTER(cuEventElapsedTime_v2);
        return elapsed(milliseconds, first, last);
}
#endif

/* ---- a whole context ---- */

#if CUDA_VERSION >= 12040
static CUresult context_record(CUcontext context_handle, CUevent event_handle)
{
        struct sim_context *context;
        struct sim_event *event;
        struct sim_operation *join;
        CUresult result = sim_context_resolve(context_handle, &context);

        if (result)
                return result;
        result = event_resolve(event_handle, &event);
        if (result)
                return result;
        if (family(event->context) != family(context))
                return CUDA_ERROR_INVALID_HANDLE;
        result = sim_capture_context(context);
        if (result)
                return result;
        join = sim_join_context(context, "event record of a context");
        sim_event_set(event, join, 0);
        sim_operation_put(join);
        return CUDA_SUCCESS;
}

/* Every later operation of the context waits, also on streams created afterwards (U1, H9). */
static CUresult context_wait(CUcontext context_handle, CUevent event_handle)
{
        struct sim_work work = {.name = "wait of a context"};
        struct sim_context *context, *part = NULL;
        struct sim_event *event;
        CUresult result = sim_context_resolve(context_handle, &context);

        if (result)
                return result;
        result = event_resolve(event_handle, &event);
        if (result)
                return result;
        if (event->capture)
                return CUDA_ERROR_CAPTURED_EVENT;
        result = sim_capture_context(context);
        if (result)
                return result;
        while ((part = sim_order_contexts(context, part))) {
                struct sim_operation *fence = sim_operation_new(&work, 0);

                sim_operation_need(fence, part->fence);
                sim_operation_need(fence, event->snapshot);
                sim_operation_submit(fence);
                sim_operation_put(part->fence);
                part->fence = fence;
        }
        return CUDA_SUCCESS;
}

#if CUDA_VERSION >= 12050
CUresult CUDAAPI cuCtxRecordEvent(CUcontext context, CUevent event)
{
        SIM_ENTER(cuCtxRecordEvent);
        return context_record(context, event);
}

CUresult CUDAAPI cuCtxWaitEvent(CUcontext context, CUevent event)
{
        SIM_ENTER(cuCtxWaitEvent);
        return context_wait(context, event);
}
#endif

CUresult CUDAAPI cuGreenCtxRecordEvent(CUgreenCtx green, CUevent event)
{
        SIM_ENTER(cuGreenCtxRecordEvent);
        return context_record((CUcontext)green, event);
}

CUresult CUDAAPI cuGreenCtxWaitEvent(CUgreenCtx green, CUevent event)
{
        SIM_ENTER(cuGreenCtxWaitEvent);
        return context_wait((CUcontext)green, event);
}
#endif
