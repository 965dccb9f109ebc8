/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Guard -- what device memory of the pool holds before and after the program has it
 *
 * What has to be complete before a call returns goes to a stream of our own, one for
 * each context, which waits for no other: the program's streams may have work that
 * ends only when the program goes on. Nothing earlier can touch the memory by then: it
 * is served when it is complete, because none is served early with guards (work.c), and
 * freed when the context is idle.
 */

#include "route/guard.h"

#include "route/whole.h"
#include "track/submit.h"

/* The block that begins at @address, if it is live. */
static bool find(CUdeviceptr address, struct spm_allocation *block)
{
        enum spm_status status;

        if (!sp_route_pools())
                return false;
        status = spm_find(sp_model_enter(), address, block);
        sp_model_leave();
        return status == SPM_OK && block->address == address && block->kind != SPM_POOL_HOST;
}

/* contexts */

static CUresult enter(const struct sp_context *context, bool *pushed)
{
        CUcontext current;

        *pushed = sp_driver.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != context->handle;
        return *pushed ? sp_driver.cuCtxPushCurrent_v2(context->handle) : CUDA_SUCCESS;
}

static void leave(bool pushed)
{
        CUcontext popped;

        if (pushed)
                sp_driver.cuCtxPopCurrent_v2(&popped);
}

/* Ours, of the context that is current; of two threads that make it one is too late. */
static CUresult own_stream(struct sp_context *context, CUstream *own)
{
        CUstream before = NULL, made;
        CUresult result;

        *own = atomic_load(&context->guard_stream);
        if (*own)
                return CUDA_SUCCESS;
        result = sp_driver.cuStreamCreate(&made, CU_STREAM_NON_BLOCKING);
        if (result != CUDA_SUCCESS)
                return result;
        *own = made;
        if (!atomic_compare_exchange_strong(&context->guard_stream, &before, made)) {
                *own = before;
                sp_driver.cuStreamDestroy_v2(made);
        }
        return CUDA_SUCCESS;
}

/* fills */

static CUresult fill_on_own(struct sp_context *context, const struct spm_allocation *block,
                            unsigned char byte)
{
        CUstream own;
        CUresult result = own_stream(context, &own);

        if (result == CUDA_SUCCESS)
                result = sp_driver.cuMemsetD8Async(block->address, byte, block->size, own);
        /* Nobody else waits for this one: what was begun is waited for, whatever became of it. */
        return result == CUDA_SUCCESS ? sp_driver.cuStreamSynchronize(own) : result;
}

/* Complete on return. */
static void fill_now(struct sp_context *context, const struct spm_allocation *block,
                     unsigned char byte)
{
        CUresult result;
        bool pushed;

        if (!sp_whole_enter(context))
                return;
        result = enter(context, &pushed);
        if (result == CUDA_SUCCESS) {
                result = fill_on_own(context, block, byte);
                leave(pushed);
        }
        sp_whole_leave(context);
        sp_context_note_result(context, result);
}

/* In the order of @stream, of which it is work like any other. */
static CUresult submit(const struct sp_stream *stream, const struct spm_allocation *block,
                       unsigned char byte)
{
        struct sp_submitter *self = sp_submit_enter();
        CUresult result;

        sp_submit_mark(stream->handle, SP_SUBMIT_COPY);
        result = sp_driver.cuMemsetD8Async(block->address, byte, block->size, stream->handle);
        sp_submit_leave(self);
        return result;
}

static bool fill_in_order(spm_stream model, const struct spm_allocation *block, unsigned char byte)
{
        struct sp_stream *stream = sp_stream_enter(model);
        struct sp_context *context;
        CUresult result;
        bool pushed;

        if (!stream)
                return false;
        context = stream->context;
        result = enter(context, &pushed);
        if (result == CUDA_SUCCESS) {
                result = submit(stream, block, byte);
                leave(pushed);
        }
        sp_stream_leave(stream);
        sp_context_note_result(context, result);
        return result == CUDA_SUCCESS;
}

/* A stream has work of ours in the block: a free that names no stream waits for it, too. */
static void touch(CUdeviceptr address)
{
        spm_touch(sp_model_enter(), address);
        sp_model_leave();
}

/* what the handlers call */

void sp_guard_served(struct sp_context *context, const struct spm_allocation *block)
{
        if (sp_config()->poison & SP_POISON_ALLOC)
                fill_now(context, block, SP_POISON_SERVED);
}

void sp_guard_served_on(struct sp_stream *stream, const struct spm_allocation *block)
{
        if ((sp_config()->poison & SP_POISON_ALLOC) &&
            fill_in_order(stream->model, block, SP_POISON_SERVED))
                touch(block->address);
}

/* A per-thread stream's handle means another stream in any other thread. */
static void free_in_order(const struct spm_allocation *block)
{
        CUstream handle = sp_stream_handle(block->stream);

        if (handle && handle != CU_STREAM_PER_THREAD &&
            fill_in_order(block->stream, block, SP_POISON_FREED))
                touch(block->address);
}

void sp_guard_free(CUdeviceptr address)
{
        struct spm_allocation block;
        struct sp_context *context;
        CUresult result;

        if (!(sp_config()->poison & SP_POISON_FREE) || !find(address, &block))
                return;
        if (block.kind == SPM_POOL_ASYNC) {
                free_in_order(&block);
                return;
        }
        context = sp_context_by_pool(block.pool);
        if (context && sp_context_pools(context) && sp_route_wait(context, &result) &&
            result == CUDA_SUCCESS)
                fill_now(context, &block, SP_POISON_FREED);
}

void sp_guard_free_on(struct sp_stream *stream, CUdeviceptr address)
{
        struct spm_allocation block;

        if ((sp_config()->poison & SP_POISON_FREE) && find(address, &block))
                fill_in_order(stream->model, &block, SP_POISON_FREED);
}
