/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Streams -- their handles, and waiting for them
 *
 * A stream is little more than the newest operation put on it (order.c). The
 * legacy stream of a context is made with it; a per-thread stream when a thread
 * first names it. Destroying a stream returns at once: its work goes on, and its
 * handle is the next one given out (U20, M29).
 */

#include "operation.h"
#include "control.h"

#define LOWEST_PRIORITY  0
#define HIGHEST_PRIORITY (-5)

static struct sim_stream *stream_new(struct sim_context *context, enum sim_stream_kind kind)
{
        struct sim_stream *stream = sim_handle_new(SIM_STREAM, sizeof(*stream));

        stream->id = sim_unique();
        stream->kind = kind;
        stream->context = context;
        stream->blocking = true;
        if (kind == SIM_STREAM_LEGACY)
                return stream;
        stream->next = context->streams;
        context->streams = stream;
        return stream;
}

void sim_context_open(struct sim_context *context)
{
        sim_order_remember(context);
        context->legacy = stream_new(context, SIM_STREAM_LEGACY);
}

static struct sim_stream *own_stream(struct sim_context *context)
{
        uint64_t thread = sim_thread();
        struct sim_stream *stream = context->streams;

        while (stream && (stream->kind != SIM_STREAM_PER_THREAD || stream->thread != thread))
                stream = stream->next;
        if (!stream) {
                stream = stream_new(context, SIM_STREAM_PER_THREAD);
                stream->thread = thread;
        }
        return stream;
}

CUresult sim_stream_resolve(CUstream handle, struct sim_stream **stream)
{
        struct sim_context *context;
        struct sim_stream *found = (struct sim_stream *)handle;
        CUresult result;

        if (handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
                result = sim_current(&context);
                if (result)
                        return result;
                found = handle == CU_STREAM_LEGACY ? context->legacy : own_stream(context);
        }
        sim_handle_check(found, SIM_STREAM);
        if (found->context->sticky)
                return found->context->sticky;
        *stream = found;
        return CUDA_SUCCESS;
}

static void stream_delete(struct sim_stream *stream)
{
        struct sim_stream **place = &stream->context->streams;

        sim_capture_stream_gone(stream);
        sim_order_orphan(stream);
        while (*place && *place != stream)
                place = &(*place)->next;
        if (*place)
                *place = stream->next;
        sim_handle_free(&stream->handle);
}

void sim_context_close(struct sim_context *context)
{
        sim_wait_context(context);
        sim_modules_close(context);
        sim_events_close(context);
        while (context->streams)
                stream_delete(context->streams);
        stream_delete(context->legacy);
        context->legacy = NULL;
        sim_order_forget(context);
}

/* ---- creating and destroying ---- */

static CUresult create(struct sim_context *context, CUstream *handle, unsigned int flags,
                       int priority)
{
        struct sim_stream *stream;

        if (!handle || flags & ~(unsigned int)CU_STREAM_NON_BLOCKING)
                return CUDA_ERROR_INVALID_VALUE;
        stream = stream_new(context, SIM_STREAM_CREATED);
        stream->flags = flags;
        stream->blocking = !(flags & CU_STREAM_NON_BLOCKING) && !context->green_parent;
        stream->priority = priority;
        if (stream->priority > LOWEST_PRIORITY)
                stream->priority = LOWEST_PRIORITY;
        if (stream->priority < HIGHEST_PRIORITY)
                stream->priority = HIGHEST_PRIORITY;
        *handle = (CUstream)stream;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamCreate(CUstream *handle, unsigned int flags)
{
        struct sim_context *context;
        CUresult result;

        SIM_ENTER(cuStreamCreate);
        result = sim_current(&context);
        return result ? result : create(context, handle, flags, 0);
}

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream *handle, unsigned int flags, int priority)
{
        struct sim_context *context;
        CUresult result;

        SIM_ENTER(cuStreamCreateWithPriority);
        result = sim_current(&context);
        return result ? result : create(context, handle, flags, priority);
}

#if CUDA_VERSION >= 12050
CUresult CUDAAPI cuGreenCtxStreamCreate(CUstream *handle, CUgreenCtx green, unsigned int flags,
                                        int priority)
{
        struct sim_context *context;
        CUresult result;

        SIM_ENTER(cuGreenCtxStreamCreate);
        result = sim_context_resolve((CUcontext)green, &context);
        if (result)
                return result;
        if (!(flags & CU_STREAM_NON_BLOCKING))
                return CUDA_ERROR_INVALID_VALUE;
        return create(context, handle, flags, priority);
}
#endif

static CUresult destroy(CUstream handle)
{
        struct sim_stream *stream;
        CUresult result;

        if (!handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD)
                return CUDA_ERROR_INVALID_HANDLE;
        result = sim_stream_resolve(handle, &stream);
        if (result)
                return result;
        stream_delete(stream);
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamDestroy(CUstream handle)
{
        SIM_ENTER(cuStreamDestroy);
        return destroy(handle);
}

CUresult CUDAAPI cuStreamDestroy_v2(CUstream handle)
{
        SIM_ENTER(cuStreamDestroy_v2);
        return destroy(handle);
}

/* ---- waiting ---- */

static bool is_created(CUstream handle)
{
        return handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD;
}

SIM_STREAM_PAIR(cuStreamSynchronize, handle, (CUstream handle), (handle))
{
        struct sim_stream *stream;
        uint64_t id;
        CUresult result;

        if (sim_in_child()) /* nothing of the parent's runs here: it has ended */
                return is_created(handle) ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
        result = sim_stream_resolve(handle, &stream);
        if (result)
                return result;
        result = sim_capture_observe(stream);
        if (result)
                return result;
        id = stream->id;
        sim_wait_stream(stream);
        sim_pool_synchronized(NULL, id);
        return CUDA_SUCCESS;
}

SIM_STREAM_PAIR(cuStreamQuery, handle, (CUstream handle), (handle))
{
        struct sim_stream *stream;
        CUresult result = sim_stream_resolve(handle, &stream);

        if (result)
                return result;
        result = sim_capture_observe(stream);
        if (result)
                return result;
        if (sim_stream_is_idle(stream))
                return CUDA_SUCCESS;
        sim_engine_poll();
        return CUDA_ERROR_NOT_READY;
}

static CUresult synchronize_context(struct sim_context *context)
{
        CUresult result = sim_capture_context(context);

        if (result)
                return result;
        sim_wait_context(context);
        sim_pool_synchronized(context, 0);
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSynchronize(void)
{
        struct sim_context *context;
        CUresult result;

        SIM_ENTER(cuCtxSynchronize);
        result = sim_current(&context);
        return result ? result : synchronize_context(context);
}

#if CUDA_VERSION >= 13000
CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext handle)
{
        struct sim_context *context;
        CUresult result;

        SIM_ENTER(cuCtxSynchronize_v2);
        result = handle ? sim_context_resolve(handle, &context) : sim_current(&context);
        return result ? result : synchronize_context(context);
}
#endif

/* ---- asking ---- */

/* The context of a stream; for null, the current one (cuda.h, cuStreamGetCtx). */
SIM_STREAM_PAIR(cuStreamGetCtx, handle, (CUstream handle, CUcontext *context), (handle, context))
{
        struct sim_stream *stream;
        CUresult result = sim_stream_resolve(handle, &stream);

        if (result)
                return result;
        if (!context)
                return CUDA_ERROR_INVALID_VALUE;
        *context = (CUcontext)stream->context;
        return CUDA_SUCCESS;
}

#if CUDA_VERSION >= 12050
SIM_STREAM_PAIR(cuStreamGetCtx_v2, handle, (CUstream handle, CUcontext *context, CUgreenCtx *green),
                (handle, context, green))
{
        struct sim_stream *stream;
        CUresult result = sim_stream_resolve(handle, &stream);

        if (result)
                return result;
        if (!context || !green)
                return CUDA_ERROR_INVALID_VALUE;
        *green = stream->context->green_parent ? (CUgreenCtx)stream->context : NULL;
        *context = *green ? NULL : (CUcontext)stream->context;
        return CUDA_SUCCESS;
}
#endif

#if CUDA_VERSION >= 12080
SIM_STREAM_PAIR(cuStreamGetDevice, handle, (CUstream handle, CUdevice *device), (handle, device))
{
        struct sim_stream *stream;
        CUresult result = sim_stream_resolve(handle, &stream);

        if (result)
                return result;
        if (!device)
                return CUDA_ERROR_INVALID_VALUE;
        *device = stream->context->device->ordinal;
        return CUDA_SUCCESS;
}
#endif

SIM_STREAM_PAIR(cuStreamGetFlags, handle, (CUstream handle, unsigned int *flags), (handle, flags))
{
        struct sim_stream *stream;
        CUresult result = sim_stream_resolve(handle, &stream);

        if (result)
                return result;
        if (!flags)
                return CUDA_ERROR_INVALID_VALUE;
        *flags = stream->flags;
        return CUDA_SUCCESS;
}

SIM_STREAM_PAIR(cuStreamGetPriority, handle, (CUstream handle, int *priority), (handle, priority))
{
        struct sim_stream *stream;
        CUresult result = sim_stream_resolve(handle, &stream);

        if (result)
                return result;
        if (!priority)
                return CUDA_ERROR_INVALID_VALUE;
        *priority = stream->priority;
        return CUDA_SUCCESS;
}

#if CUDA_VERSION >= 12000
/* Illegal on a capturing stream in every mode (3A). */
SIM_STREAM_PAIR(cuStreamGetId, handle, (CUstream handle, unsigned long long *id), (handle, id))
{
        struct sim_stream *stream;
        CUresult result = sim_stream_resolve(handle, &stream);

        if (result)
                return result;
        if (!id)
                return CUDA_ERROR_INVALID_VALUE;
        if (stream->capture) {
                sim_capture_kill(stream->capture);
                return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
        *id = stream->id;
        return CUDA_SUCCESS;
}
#endif
