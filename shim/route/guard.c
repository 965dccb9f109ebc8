/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Guard -- what device memory of the pool holds before and after the program has it
 *
 * What has to be complete before a call returns goes to a stream of our own, one for
 * each context, which waits for no other: the program's streams may have work that
 * ends only when the program goes on. Nothing earlier can touch the memory by then: it
 * is served when it is complete, because none is served early with guards (work_sole.c), and
 * freed when the context is idle.
 */

#include "route/guard.h"

#include "route/redzone.h"
#include "route/whole.h"
#include "track/held.h"
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

/* fills: of the block, and of what lies behind it */

struct fill {
        uint64_t address;
        size_t size;
        unsigned char byte;
};

struct fills {
        unsigned int count;
        struct fill item[2];
};

static void add_fill(struct fills *fills, uint64_t address, size_t size, unsigned char byte)
{
        if (size)
                fills->item[fills->count++] = (struct fill){address, size, byte};
}

static struct fills fills_of_served(const struct spm_allocation *block)
{
        struct fills fills = {0};

        if (sp_config()->poison & SP_POISON_ALLOC)
                add_fill(&fills, block->address, block->size, SP_POISON_SERVED);
        add_fill(&fills, block->address + block->size, sp_redzone_size(block), SP_REDZONE);
        return fills;
}

static struct fills fills_of_freed(const struct spm_allocation *block)
{
        struct fills fills = {0};

        if (sp_config()->poison & SP_POISON_FREE)
                add_fill(&fills, block->address, block->size, SP_POISON_FREED);
        return fills;
}

static CUresult fill(const struct fills *fills, CUstream stream)
{
        CUresult result = CUDA_SUCCESS;

        for (unsigned int i = 0; i < fills->count && result == CUDA_SUCCESS; i++) {
                const struct fill *item = &fills->item[i];

                result = sp_driver.cuMemsetD8Async(item->address, item->byte, item->size, stream);
        }
        return result;
}

static CUresult finish_on_own(const struct sp_redzone_look *look, const struct fills *fills,
                              CUstream own)
{
        CUresult result = look ? sp_redzone_look_now(look, own) : CUDA_SUCCESS;
        CUresult waited;

        if (result == CUDA_SUCCESS)
                result = fill(fills, own);
        /* Nobody else waits for this one: what was begun is waited for, whatever became of it. */
        waited = sp_driver.cuStreamSynchronize(own);
        return result == CUDA_SUCCESS ? waited : result;
}

/* Complete on return. @look: before the fills; may be NULL. Return: was all of it done? */
static bool do_now(struct sp_context *context, const struct sp_redzone_look *look,
                   const struct fills *fills)
{
        CUstream own;
        CUresult result;
        bool pushed;

        if (!sp_whole_enter(context))
                return false;
        result = enter(context, &pushed);
        if (result == CUDA_SUCCESS) {
                result = own_stream(context, &own);
                if (result == CUDA_SUCCESS)
                        result = finish_on_own(look, fills, own);
                leave(pushed);
        }
        sp_whole_leave(context);
        sp_context_note_result(context, result);
        return result == CUDA_SUCCESS;
}

/* In the order of @stream, of which it is work like any other. */
static CUresult submit(struct sp_stream *stream, const struct sp_redzone_look *look,
                       const struct fills *fills)
{
        struct sp_submitter *self = sp_submit_enter();
        CUresult result;

        sp_submit_mark(stream->handle, SP_SUBMIT_COPY);
        if (look)
                sp_redzone_look_later(look, stream);
        result = fill(fills, stream->handle);
        sp_submit_leave(self);
        return result;
}

static bool do_in_order(spm_stream model, const struct sp_redzone_look *look,
                        const struct fills *fills)
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
                result = submit(stream, look, fills);
                leave(pushed);
        }
        sp_stream_leave(stream);
        sp_context_note_result(context, result);
        return result == CUDA_SUCCESS;
}

/* what the handlers call */

/* Only what was filled is looked at. */
static void note_redzone(const struct spm_allocation *block)
{
        if (!sp_redzone_size(block))
                return;
        spm_set_user(sp_model_enter(), block->address, block->user | SP_HELD_REDZONE);
        sp_model_leave();
}

/* A stream has work of ours in the block: a free that names no stream waits for it, too. */
static void touch(CUdeviceptr address)
{
        spm_touch(sp_model_enter(), address);
        sp_model_leave();
}

void sp_guard_served(struct sp_context *context, const struct spm_allocation *block)
{
        struct fills fills = fills_of_served(block);

        if (fills.count && do_now(context, NULL, &fills))
                note_redzone(block);
}

void sp_guard_served_on(struct sp_stream *stream, const struct spm_allocation *block)
{
        struct fills fills = fills_of_served(block);

        if (!fills.count)
                return;
        if (do_in_order(stream->model, NULL, &fills))
                note_redzone(block);
        /* The first of two may be there although the second is not. */
        touch(block->address);
}

/* A per-thread stream's handle means another stream in any other thread. */
static void free_in_order(const struct spm_allocation *block, const struct sp_redzone_look *look,
                          const struct fills *fills)
{
        CUstream handle = sp_stream_handle(block->stream);

        if (!handle || handle == CU_STREAM_PER_THREAD)
                return;
        do_in_order(block->stream, look, fills);
        touch(block->address);
}

/* Is there anything to do before @block is freed? @look: NULL if its redzone is nothing to look
 * at, else @room */
static bool prepare(CUdeviceptr address, const char *function, struct spm_allocation *block,
                    struct fills *fills, struct sp_redzone_look *room,
                    const struct sp_redzone_look **look)
{
        if (!find(address, block))
                return false;
        *fills = fills_of_freed(block);
        *look = block->user & SP_HELD_REDZONE && sp_redzone_prepare(block, function, room) ? room
                                                                                           : NULL;
        return fills->count || *look;
}

void sp_guard_free(CUdeviceptr address)
{
        const struct sp_redzone_look *look;
        struct spm_allocation block;
        struct sp_redzone_look room;
        struct sp_context *context;
        struct fills fills;
        CUresult result;

        if (!prepare(address, "cuMemFree", &block, &fills, &room, &look))
                return;
        if (block.kind == SPM_POOL_ASYNC) {
                free_in_order(&block, look, &fills);
                return;
        }
        context = sp_context_by_pool(block.pool);
        if (context && sp_context_pools(context) && sp_route_wait(context, &result) &&
            result == CUDA_SUCCESS)
                do_now(context, look, &fills);
}

void sp_guard_free_on(struct sp_stream *stream, CUdeviceptr address)
{
        const struct sp_redzone_look *look;
        struct spm_allocation block;
        struct sp_redzone_look room;
        struct fills fills;

        if (prepare(address, "cuMemFreeAsync", &block, &fills, &room, &look))
                do_in_order(stream->model, look, &fills);
}
