/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Context -- what is current, and what is gone
 *
 * Every thread has a stack of contexts; a new thread has none (201). A context
 * that was destroyed may still be on somebody's stack, and its handle may come
 * back as another context: the id tells them apart. A primary context keeps its
 * handle for ever and stays current across a reset; until it is retained again
 * its calls answer 709.
 */

#include "context.h"
#include "control.h"

#define DEPTH_MAX 64

struct entry {
        struct sim_context *context; /* null: a pushed "none" */
        uint64_t id;
};

/* Per thread by definition: cuda.h calls it the current CPU thread's stack. */
static __thread struct entry stack[DEPTH_MAX];
static __thread int depth;

static struct entry *top(void)
{
        return depth ? &stack[depth - 1] : NULL;
}

/* Did the entry's context die? Its memory is never returned, so it may be read. */
static bool is_stale(const struct entry *entry)
{
        const struct sim_context *context = entry->context;

        if (context->handle.magic != SIM_CONTEXT)
                return true;
        return !context->primary && context->id != entry->id;
}

static CUresult state_of(const struct sim_context *context)
{
        return context->state == SIM_CONTEXT_ALIVE ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

struct sim_context *sim_context_peek(void)
{
        struct entry *entry = top();

        return entry && entry->context && !is_stale(entry) ? entry->context : NULL;
}

CUresult sim_context_named(struct sim_context **context)
{
        struct entry *entry = top();

        if (!entry || !entry->context)
                return CUDA_ERROR_INVALID_CONTEXT;
        if (is_stale(entry))
                return CUDA_ERROR_CONTEXT_IS_DESTROYED;
        *context = entry->context;
        return CUDA_SUCCESS;
}

/* The current context, poisoned or not. */
CUresult sim_context_current(struct sim_context **context)
{
        CUresult result = sim_context_named(context);

        return result == CUDA_SUCCESS ? state_of(*context) : result;
}

CUresult sim_current(struct sim_context **context)
{
        CUresult result = sim_context_current(context);

        return result == CUDA_SUCCESS ? (*context)->sticky : result;
}

CUresult sim_context_soft(void)
{
        struct sim_context *context;
        CUresult result = sim_current(&context);

        return result == CUDA_ERROR_INVALID_CONTEXT ? CUDA_SUCCESS : result;
}

CUresult sim_context_resolve(CUcontext handle, struct sim_context **context)
{
        struct sim_context *found = (struct sim_context *)handle;
        CUresult result;

        if (!found)
                return CUDA_ERROR_INVALID_CONTEXT;
        sim_handle_check(found, SIM_CONTEXT);
        result = state_of(found);
        if (result == CUDA_SUCCESS)
                result = found->sticky;
        if (result == CUDA_SUCCESS)
                *context = found;
        return result;
}

void sim_context_poison(CUresult code)
{
        struct sim_context *context = sim_context_peek();

        if (context)
                context->sticky = code;
}

void sim_poison(int code)
{
        pthread_mutex_lock(&sim_mutex);
        sim_context_poison((CUresult)code);
        pthread_mutex_unlock(&sim_mutex);
}

bool sim_context_push(struct sim_context *context)
{
        if (depth == DEPTH_MAX)
                return false;
        stack[depth++] = (struct entry){context, context ? context->id : 0};
        return true;
}

void sim_context_drop(const struct sim_context *context)
{
        if (depth && stack[depth - 1].context == context)
                depth--;
}

struct sim_context *sim_context_new(struct sim_device *device, unsigned int flags)
{
        struct sim_context *context = sim_handle_new(SIM_CONTEXT, sizeof(*context));

        context->device = device;
        context->flags = flags;
        context->id = sim_unique();
        context->state = SIM_CONTEXT_ALIVE;
        return context;
}

void sim_context_clear(struct sim_context *context)
{
        sim_context_close(context);
        sim_memory_close(context);
        sim_arrays_close(context);
        sim_pool_synchronized(context, 0); /* its streams' frees are complete for everybody */
        context->peers = 0;
        context->sticky = CUDA_SUCCESS;
}

/* ---- creating and destroying ---- */

static CUresult create(CUcontext *handle, unsigned int flags, CUdevice ordinal)
{
        struct sim_device *device = sim_device(ordinal);
        struct sim_context *context;

        if (!handle)
                return CUDA_ERROR_INVALID_VALUE;
        if (!device)
                return CUDA_ERROR_INVALID_DEVICE;
        if (depth == DEPTH_MAX)
                return CUDA_ERROR_OUT_OF_MEMORY;
        context = sim_context_new(device, flags);
        sim_context_open(context);
        sim_context_push(context);
        *handle = (CUcontext)context;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device)
{
        SIM_ENTER(cuCtxCreate);

        return create(context, flags, device);
}

CUresult CUDAAPI cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
        SIM_ENTER(cuCtxCreate_v2);

        return create(context, flags, device);
}

CUresult CUDAAPI cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *params, int count,
                                unsigned int flags, CUdevice device)
{
        SIM_ENTER(cuCtxCreate_v3);

        if (count < 0 || (count && !params))
                return CUDA_ERROR_INVALID_VALUE;
        return create(context, flags, device);
}

#if CUDA_VERSION >= 12050
CUresult CUDAAPI cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *params, unsigned int flags,
                                CUdevice device)
{
        SIM_ENTER(cuCtxCreate_v4);

        (void)params; /* null is fine, and neither kind of parameter changes memory */
        return create(context, flags, device);
}
#endif

static CUresult destroy(CUcontext handle)
{
        struct sim_context *context = (struct sim_context *)handle;

        if (!context)
                return CUDA_ERROR_INVALID_VALUE;
        sim_handle_check(context, SIM_CONTEXT);
        if (context->primary || context->green_parent)
                return CUDA_ERROR_INVALID_CONTEXT;
        if (context->state == SIM_CONTEXT_GONE)
                sim_abort("context %p is destroyed by two threads", (void *)handle);
        context->state = SIM_CONTEXT_GONE;
        sim_context_clear(context);
        sim_context_drop(context);
        context->id = 0; /* stale on every stack */
        sim_handle_free(&context->handle);
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxDestroy(CUcontext context)
{
        SIM_ENTER(cuCtxDestroy);

        return destroy(context);
}

CUresult CUDAAPI cuCtxDestroy_v2(CUcontext context)
{
        SIM_ENTER(cuCtxDestroy_v2);

        return destroy(context);
}

CUresult CUDAAPI cuCtxDetach(CUcontext context)
{
        SIM_ENTER(cuCtxDetach);

        return destroy(context);
}

/* ---- what is current ---- */

static CUresult push(CUcontext handle)
{
        if (!handle)
                return CUDA_ERROR_INVALID_CONTEXT;
        sim_handle_check(handle, SIM_CONTEXT);
        return sim_context_push((struct sim_context *)handle) ? CUDA_SUCCESS
                                                              : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult CUDAAPI cuCtxPushCurrent(CUcontext context)
{
        SIM_ENTER(cuCtxPushCurrent);

        return push(context);
}

CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext context)
{
        SIM_ENTER(cuCtxPushCurrent_v2);

        return push(context);
}

static CUresult pop(CUcontext *context)
{
        if (!depth)
                return CUDA_ERROR_INVALID_CONTEXT;
        depth--;
        if (context)
                *context = (CUcontext)stack[depth].context;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxPopCurrent(CUcontext *context)
{
        SIM_ENTER(cuCtxPopCurrent);

        return pop(context);
}

CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext *context)
{
        SIM_ENTER(cuCtxPopCurrent_v2);

        return pop(context);
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext handle)
{
        SIM_ENTER(cuCtxSetCurrent);

        if (handle)
                sim_handle_check(handle, SIM_CONTEXT);
        if (depth)
                depth--;
        if (handle)
                sim_context_push((struct sim_context *)handle);
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext *context)
{
        SIM_ENTER(cuCtxGetCurrent);

        if (!context)
                return CUDA_ERROR_INVALID_VALUE;
        *context = depth ? (CUcontext)top()->context : NULL;
        return CUDA_SUCCESS;
}
