/* SPDX-License-Identifier: Apache-2.0 */

/*
 * On memory -- device memory the pool may serve
 *
 * The two functions that matter come first. Their cost, when the pool has a
 * block and nothing is wrong, in counts:
 *
 *   cuMemAlloc   1 driver call (the current context), and 1 lock (the model's), or 0
 *                while this thread has a block of the size at hand (hand.h)
 *   cuMemFree    0 driver calls, and 1 lock, or 0 while nothing that was submitted can
 *                still be running; one of every STREAMPOOL_BATCH frees records an
 *                event, and while one stream has work and the device is behind, the
 *                next launch may (model/work.c). Where threads have waited for one
 *                another at the lock, small blocks take one for a number of calls
 *   the two of a pair on one stream
 *                0 locks and 0 driver calls while this thread has blocks of the size
 *                at hand (hand.h), else 2 locks (the model's);
 *                on a default stream a driver call each, for the current context; on
 *                the legacy one 2 locks where there are streams that wait for it, and
 *                where one of them may have work two events, and a few calls around
 *                them (H6)
 *
 * and no host allocation but for a slab of records now and then. A test counts
 * them: tests/shim/hot_path.c. One of SP_TICK_CALLS allocations looks at the
 * clock, too, and ten times in STREAMPOOL_DECAY one takes the model's lock again.
 *
 * Whatever the pool does not serve is the driver's, with the caller's own
 * arguments: refusals, captures, memory of other kinds; but for what is past
 * STREAMPOOL_LIMIT (ask.h) or made to fail by STREAMPOOL_FAULT (fault.h), of which
 * the driver does not hear. Words of an error are always the driver's (D12), but
 * for a free of an address in memory of ours, which the driver does not know: that
 * is CUDA_ERROR_INVALID_VALUE, as the driver was measured to say (M15).
 *
 * What the pool serves is the model's to remember (track/held.h), what the driver
 * serves the ledger's. Around every free of the latter its entry is taken before
 * anything else, because the address can be in another thread's hands before the
 * call returns (E2).
 */

#include "route/route.h"

#include "base/config.h"
#include "base/life.h"
#include "report/counters.h"
#include "route/ask.h"
#include "route/fault.h"
#include "route/guard.h"
#include "route/hand.h"
#include "route/order.h"
#include "route/perform.h"
#include "route/tick.h"
#include "route/whole.h"
#include "route/work.h"
#include "track/export.h"
#include "track/held.h"
#include "track/ledger.h"
#include "track/mempool_place.h"
#include "track/state.h"

/* A free that the pool does not answer. */
struct freeing {
        CUdeviceptr address;
        const char *function;
        bool known; /* @entry holds the ledger's entry, which was taken */
        struct sp_ledger_entry entry;
};

static enum spm_status give_back(CUdeviceptr address, enum spm_free_kind kind, spm_stream stream,
                                 struct spm_magazine *full, struct spm_allocation *block);
static CUresult forward_alloc(CUdeviceptr *pointer, size_t size, bool pooled) SP_COLD;
static CUresult forward_free(CUdeviceptr address) SP_COLD;
static CUresult refuse(CUdeviceptr address, const char *function) SP_COLD;
static CUresult refuse_as(CUdeviceptr address, const char *function, CUresult result) SP_COLD;

/* Is it made to fail? As the driver leaves it then (3D). */
static CUresult fault(enum sp_kind kind, const char *function, CUdeviceptr *pointer, size_t size)
{
        CUresult result = sp_fault(kind, function, pointer ? size : 0);

        if (result == CUDA_ERROR_OUT_OF_MEMORY)
                *pointer = 0;
        return result;
}

/* With what a guard wants behind it, or else without: nobody is refused for that. */
static inline bool serve(spm_pool pool, spm_stream stream, size_t size,
                         struct spm_magazine *magazine, struct spm_allocation *block)
{
        size_t extra = sp_guard_extra();

        return sp_serve(pool, stream, size, extra, magazine, block) ||
               (extra && sp_serve(pool, stream, size, 0, magazine, block));
}

static inline __attribute__((always_inline)) CUresult alloc(CUdeviceptr *pointer, size_t size,
                                                            bool is_attended)
{
        unsigned int epoch = sp_epoch_now();
        struct sp_hand *hand = is_attended ? NULL : sp_hand_here();
        struct sp_context *context;
        struct spm_allocation block;

        /* 1. What this thread has at hand. */
        if (hand && hand->magazine && pointer && sp_hand_alloc(hand, size, pointer))
                return CUDA_SUCCESS;
        context = !pointer || !size ? NULL : hand ? hand->context : sp_route_pooling_context();
        /* 2. Null, zero, no context, a capture: what is wrong with it is the driver's to say.
         * 3. A ready block, or one from fresh memory. 4. Nothing: the driver has the last word. */
        if (!context || !(is_attended ? serve(context->sync_pool, 0, size, NULL, &block)
                                      : sp_serve(context->sync_pool, 0, size, 0,
                                                 hand ? sp_hand_missed(hand)
                                                      : sp_hand_visit_here(context, epoch),
                                                 &block)))
                return forward_alloc(pointer, size, context != NULL);

        if (is_attended && sp_guards())
                sp_guard_served(context, &block);
        *pointer = block.address;
        if (sp_tick_is_due())
                sp_tick();
        return CUDA_SUCCESS;
}

static SP_COLD CUresult alloc_attended(CUdeviceptr *pointer, size_t size)
{
        CUresult result = fault(SP_KIND_DEVICE, "cuMemAlloc", pointer, size);

        return result == CUDA_SUCCESS ? alloc(pointer, size, true) : result;
}

CUresult CUDAAPI sp_on_cuMemAlloc_v2(CUdeviceptr *pointer, size_t size)
{
        return sp_attends() ? alloc_attended(pointer, size) : alloc(pointer, size, false);
}

CUresult CUDAAPI sp_on_cuMemFree_v2(CUdeviceptr address)
{
        struct sp_hand *hand = sp_hand_back();
        struct spm_allocation block;
        enum spm_status status;

        /* 1. To what this thread has at hand. */
        if (hand && sp_hand_free(hand, address, "cuMemFree"))
                return CUDA_SUCCESS;
        /* 2. In a capture, or at the end of the process, the driver may refuse (M22). */
        if (!sp_route_is_quiet() && sp_route_owns(address)) {
                CUresult result = sp_route_ask_driver();

                if (result != CUDA_SUCCESS)
                        return refuse_as(address, "cuMemFree", result);
        }
        if (sp_order_is_on)
                sp_order_free_sync(address);
        if (sp_guards())
                sp_guard_free(address);
        /* 3. Into limbo: it waits there for everything its context had submitted. 4. No block of
         * ours: the driver has the last word. */
        status = give_back(address, SPM_FREE_SYNC, 0, hand ? hand->magazine : NULL, &block);
        if (status != SPM_OK)
                return status == SPM_E_FOREIGN ? forward_free(address)
                                               : refuse(address, "cuMemFree");

        /* 5. The driver's barrier, for programs that rely on it; its error, once it has one. */
        return sp_route_barrier(sp_context_by_pool(block.pool),
                                sp_config()->free_mode == SP_FREE_MODE_SYNC);
}

/* To the model, and what it asks for: one event for every batch of frees. @full: a magazine that
 * has not taken it, or NULL. */
static enum spm_status give_back(CUdeviceptr address, enum spm_free_kind kind, spm_stream stream,
                                 struct spm_magazine *full, struct spm_allocation *block)
{
        struct spm_actions actions;
        struct spm_model *model;
        enum spm_status status;

        if (!sp_route_pools())
                return SPM_E_FOREIGN;
        model = sp_model_enter();
        if (full)
                spm_magazine_flush(model, full);
        status = spm_free(model, address, 0, kind, stream, block, &actions);
        if (status == SPM_OK) {
                sp_work_note(block);
                sp_held_freed(block, kind == SPM_FREE_SYNC ? "cuMemFree" : "cuMemFreeAsync");
                /* Before another thread can give back what lies behind it. */
                if (block->exported)
                        sp_export_end(block);
        }
        sp_model_leave();
        if (status != SPM_OK)
                return status;
        sp_perform(&actions, NULL);
        return SPM_OK;
}

static CUresult ask_for_plain(CUdeviceptr *pointer, size_t size)
{
        uint64_t began = sp_native_begin();
        CUresult result = sp_driver.cuMemAlloc_v2(pointer, size);

        if (result == CUDA_SUCCESS)
                sp_native_end(SP_NATIVE_ALLOC, began);
        return result;
}

static CUresult forward_alloc(CUdeviceptr *pointer, size_t size, bool pooled)
{
        struct sp_ask ask = sp_ask_for(SP_KIND_DEVICE, pointer ? size : 0);
        struct sp_context *context;
        CUresult result;

        ask.pooled = pooled;
        result = SP_ASK_FOR(&ask, ask_for_plain(pointer, size));
        /* As the driver leaves it (3D). */
        if (ask.unasked)
                *pointer = 0;
        if (result != CUDA_SUCCESS)
                return result;
        context = sp_context_current();
        sp_ask_write_down(&ask, *pointer, context,
                          context ? sp_mirror_alloc(context->sync_pool, 0, size) : 0);
        return result;
}

/* The rest of a free that was ours to refuse, or the driver's to carry out. */
static void conclude(const struct freeing *freeing, CUresult result)
{
        sp_ledger_free_ended(freeing->known ? &freeing->entry : NULL, SP_SPACE_DEVICE,
                             freeing->address, freeing->function, result);
}

/* No live block: the driver would not know it, or die of it. */
static CUresult refuse(CUdeviceptr address, const char *function)
{
        sp_ledger_bad_free(SP_SPACE_DEVICE, address, function, CUDA_ERROR_INVALID_VALUE);
        return CUDA_ERROR_INVALID_VALUE;
}

/* The driver would refuse it just now: the block stays, unless the driver is gone for good. */
static CUresult refuse_as(CUdeviceptr address, const char *function, CUresult result)
{
        struct spm_allocation block;

        if (result != CUDA_ERROR_DEINITIALIZED ||
            give_back(address, SPM_FREE_SYNC, 0, NULL, &block) != SPM_OK)
                sp_ledger_bad_free(SP_SPACE_DEVICE, address, function, result);
        return result;
}

/* The driver's own free of memory that belongs to a context waits for that context (M1, U29). */
static bool waits_for_context(const struct freeing *freeing)
{
        return freeing->known &&
               (freeing->entry.kind == SP_KIND_DEVICE || freeing->entry.kind == SP_KIND_PITCH ||
                freeing->entry.kind == SP_KIND_MANAGED);
}

static void mirror_free(const struct freeing *freeing, CUresult result, enum spm_free_kind kind,
                        spm_stream stream)
{
        if (freeing->known && result == CUDA_SUCCESS)
                sp_mirror_free(freeing->entry.shadow, kind, stream);
}

static struct freeing take(CUdeviceptr address, const char *function)
{
        struct freeing freeing = {.address = address, .function = function};

        freeing.known = sp_ledger_take(SP_SPACE_DEVICE, address, &freeing.entry);
        return freeing;
}

static CUresult forward_free(CUdeviceptr address)
{
        struct freeing freeing = take(address, "cuMemFree");
        struct sp_context *context =
                waits_for_context(&freeing) ? sp_context_by_model(freeing.entry.context) : NULL;
        struct spm_scope scope = {SPM_SCOPE_CONTEXT, context ? context->model : 0};
        struct sp_sync sync;
        uint64_t began;
        CUresult result;

        if (!freeing.known && sp_ledger_is_fatal(address))
                return refuse(address, "cuMemFree");
        sp_sync_start(&sync, context, scope);
        began = sp_native_begin();
        result = sp_driver.cuMemFree_v2(address);
        if (result == CUDA_SUCCESS && context)
                sp_native_end(SP_NATIVE_FREE, began);
        mirror_free(&freeing, result, SPM_FREE_SYNC, 0);
        conclude(&freeing, result);
        sp_sync_finish(&sync, SPM_SYNC_WAIT, result);
        return result;
}

bool sp_route_wait(struct sp_context *context, CUresult *result)
{
        struct spm_scope scope = {SPM_SCOPE_CONTEXT, context->model};
        struct sp_sync sync;
        CUcontext popped;

        if (!sp_life_is_on() || !sp_whole_enter(context))
                return false;
        sp_sync_start(&sync, context, scope);
        *result = sp_driver.cuCtxPushCurrent_v2(context->handle);
        if (*result == CUDA_SUCCESS) {
                *result = sp_driver.cuCtxSynchronize();
                sp_driver.cuCtxPopCurrent_v2(&popped);
        }
        sp_whole_leave(context);
        sp_sync_finish(&sync, SPM_SYNC_WAIT, *result);
        return true;
}

CUresult sp_route_barrier(struct sp_context *context, bool waits)
{
        CUresult result = CUDA_SUCCESS;

        if (!context)
                return CUDA_SUCCESS;
        if (atomic_load_explicit(&context->poisoned, memory_order_relaxed))
                return sp_route_ask_driver();
        if (waits)
                sp_route_wait(context, &result);
        return result;
}

/* asynchronous */

static CUresult ask_for_async(CUdeviceptr *pointer, size_t size, CUstream handle)
{
        uint64_t began = sp_native_begin();
        CUresult result = sp_driver.cuMemAllocAsync(pointer, size, handle);

        if (result == CUDA_SUCCESS)
                sp_native_end(SP_NATIVE_ALLOC_ASYNC, began);
        return result;
}

static CUresult forward_alloc_async(CUdeviceptr *pointer, size_t size, CUstream handle, bool pooled)
{
        struct sp_stream *stream = sp_stream_of(handle);
        struct sp_ask ask = sp_ask_on(stream, handle, pointer ? size : 0);
        uint64_t shadow = 0;
        CUresult result;

        ask.pooled = pooled;
        result = SP_ASK_FOR(&ask, ask_for_async(pointer, size, handle));
        if (result != CUDA_SUCCESS || !*pointer)
                return result;
        /* In a capture this is a node of the graph, and the graph's memory (C1). */
        if (stream && sp_stream_captures(stream))
                return result;
        if (stream)
                shadow = sp_mirror_alloc(stream->context->device->async_pool, stream->model, size);
        sp_ask_write_down(&ask, *pointer, stream ? stream->context : NULL, shadow);
        if (sp_order_is_on)
                sp_order_alloc(handle, "cuMemAllocAsync", *pointer);
        return result;
}

/* The current pool can be destroyed by another thread just now: then there is another one. */
static bool serve_current(struct sp_stream *stream, size_t size, unsigned int epoch,
                          struct spm_allocation *block)
{
        const struct sp_device *device = stream->context->device;
        spm_pool now = sp_route_current_pool(device), pool;

        do {
                pool = now;
                if (pool &&
                    serve(pool, stream->model, size, sp_hand_visit(stream, pool, epoch), block))
                        return true;
                now = sp_route_current_pool(device);
        } while (now != pool);
        return false;
}

CUresult CUDAAPI sp_on_cuMemAllocAsync(CUdeviceptr *pointer, size_t size, CUstream handle)
{
        struct sp_hand *hand = sp_hand_of(handle);
        unsigned int epoch = sp_epoch_now();
        struct spm_allocation block;
        struct sp_stream *stream;
        CUresult result;

        if (hand && pointer && sp_hand_alloc(hand, size, pointer))
                return CUDA_SUCCESS;
        /* Where a call may be made to fail, nothing is at hand (hand.c). */
        result = fault(SP_KIND_ASYNC, "cuMemAllocAsync", pointer, size);
        if (result != CUDA_SUCCESS)
                return result;
        if (!pointer || !size)
                stream = NULL;
        else
                stream = hand ? hand->stream : sp_route_pooling_stream(handle);
        if (!stream || !serve_current(stream, size, epoch, &block))
                return forward_alloc_async(pointer, size, handle,
                                           stream &&
                                                   sp_route_current_pool(stream->context->device));
        if (sp_guards())
                sp_guard_served_on(stream, &block);
        if (sp_order_is_on)
                sp_order_alloc(handle, "cuMemAllocAsync", block.address);
        if (block.unseen)
                atomic_store_explicit(&stream->owes, true, memory_order_relaxed);
        *pointer = block.address;
        if (sp_tick_is_due())
                sp_tick();
        return CUDA_SUCCESS;
}

static CUresult forward_alloc_from_pool(CUdeviceptr *pointer, size_t size, CUmemoryPool pool,
                                        CUstream handle, bool pooled)
{
        struct sp_stream *stream = sp_stream_of(handle);
        struct sp_ask ask = sp_ask_on(stream, handle, pointer ? size : 0);
        int place = sp_mempool_place(pool);
        CUresult result;

        ask.pooled = pooled;
        if (ask.device >= 0 && place != SP_PLACE_UNKNOWN)
                ask.device = place;
        result = SP_ASK_FOR(&ask, sp_driver.cuMemAllocFromPoolAsync(pointer, size, pool, handle));
        if (result != CUDA_SUCCESS || !*pointer || (stream && sp_stream_captures(stream)))
                return result;
        sp_ask_write_down(&ask, *pointer, stream ? stream->context : NULL, 0);
        if (sp_order_is_on)
                sp_order_alloc(handle, "cuMemAllocFromPoolAsync", *pointer);
        return result;
}

CUresult CUDAAPI sp_on_cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t size, CUmemoryPool pool,
                                               CUstream handle)
{
        CUresult result = fault(SP_KIND_ASYNC, "cuMemAllocFromPoolAsync", pointer, size);
        struct sp_stream *stream = NULL;
        struct spm_allocation block;
        spm_pool ours;

        if (result != CUDA_SUCCESS)
                return result;
        ours = pointer && size ? sp_route_pool_behind(pool, handle, &stream) : 0;
        if (!ours || !serve(ours, stream->model, size, NULL, &block))
                return forward_alloc_from_pool(pointer, size, pool, handle, ours);
        if (sp_guards())
                sp_guard_served_on(stream, &block);
        if (sp_order_is_on)
                sp_order_alloc(handle, "cuMemAllocFromPoolAsync", block.address);
        if (block.unseen)
                atomic_store_explicit(&stream->owes, true, memory_order_relaxed);
        *pointer = block.address;
        if (sp_tick_is_due())
                sp_tick();
        return CUDA_SUCCESS;
}

/* The address is ours, and the driver may have something to say: a capture, no context for a
 * default stream, the end of the process. cuMemFreeAsync(0) is judged by the same rules. */
static CUresult ask_about(CUstream handle, struct sp_stream **stream)
{
        if (*stream && sp_stream_captures(*stream)) {
                /* Only memory of the graph can be freed in it; the capture goes on (C2). */
                return CUDA_ERROR_INVALID_VALUE;
        }
        /* A context that is reset and brought back by another thread has a stream now and then. */
        for (int tries = 0; tries < 10; tries++) {
                CUresult result = sp_driver.cuMemFreeAsync(0, handle);

                if (result != CUDA_SUCCESS || *stream)
                        return result;
                *stream = sp_stream_of(handle);
        }
        return *stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult forward_free_async(CUdeviceptr address, CUstream handle,
                                   const struct sp_stream *stream)
{
        struct freeing freeing = take(address, "cuMemFreeAsync");
        uint64_t began = sp_native_begin();
        CUresult result = sp_driver.cuMemFreeAsync(address, handle);

        if (result == CUDA_SUCCESS)
                sp_native_end(SP_NATIVE_FREE_ASYNC, began);
        mirror_free(&freeing, result, SPM_FREE_ASYNC, stream ? stream->model : 0);
        conclude(&freeing, result);
        return result;
}

CUresult CUDAAPI sp_on_cuMemFreeAsync(CUdeviceptr address, CUstream handle)
{
        struct sp_hand *hand = sp_hand_of(handle);
        enum spm_status status = SPM_E_FOREIGN;
        struct spm_allocation block;
        struct sp_stream *stream;

        if (hand && sp_hand_free(hand, address, "cuMemFreeAsync"))
                return CUDA_SUCCESS;
        stream = hand ? hand->stream : sp_stream_of(handle);
        if ((!stream || !sp_route_is_quiet() || !sp_context_pools(stream->context)) &&
            sp_route_owns(address)) {
                CUresult result = ask_about(handle, &stream);

                if (result != CUDA_SUCCESS)
                        return refuse_as(address, "cuMemFreeAsync", result);
        }
        if (sp_order_is_on)
                sp_order_free(handle, address);
        if (stream && sp_guards())
                sp_guard_free_on(stream, address);
        if (stream)
                status = give_back(address, SPM_FREE_ASYNC, stream->model, NULL, &block);
        if (status == SPM_E_FOREIGN)
                return forward_free_async(address, handle, stream);
        return status == SPM_OK ? CUDA_SUCCESS : refuse(address, "cuMemFreeAsync");
}
