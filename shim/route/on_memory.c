/* SPDX-License-Identifier: Apache-2.0 */

/*
 * On memory -- device memory the pool may serve: of a context here, in the order of a
 * stream in on_stream_memory.c, and what both have in common in memory.h
 *
 * The two functions that matter come first. Their cost, when the pool has a
 * block and nothing is wrong, in counts:
 *
 *   cuMemAlloc   1 driver call (the current context), and 1 lock (the model's), or 0
 *                while this thread has a block of the size at hand (hand.h)
 *   cuMemFree    0 driver calls, and 1 lock, or 0 while nothing that was submitted can
 *                still be running; one of every STREAMPOOL_BATCH frees records an
 *                event, and while one stream has work and the device is behind, the
 *                next launch may (model/work_sole.c). Where threads have waited for one
 *                another at the lock, small blocks take one for a number of calls
 *   the two of a pair on one stream
 *                0 locks and 0 driver calls while this thread has blocks of the size
 *                at hand (hand.h), else 2 locks (the model's);
 *                on a default stream a driver call each, for the current context; on
 *                the legacy one 2 locks where there are streams that wait for it, and
 *                where one of them may have work an event and 2 driver calls each (H6)
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
 */

#include "route/route.h"

#include "base/config.h"
#include "base/life.h"
#include "report/counters.h"
#include "route/ask.h"
#include "route/guard.h"
#include "route/hand.h"
#include "route/memory.h"
#include "route/order.h"
#include "route/perform.h"
#include "route/tick.h"
#include "route/whole.h"
#include "track/ledger.h"
#include "track/state.h"

static CUresult forward_alloc(CUdeviceptr *pointer, size_t size, bool pooled) SP_COLD;
static CUresult forward_free(CUdeviceptr address) SP_COLD;

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
        if (!context || !(is_attended ? sp_memory_serve(context->sync_pool, 0, size, NULL, &block)
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
        CUresult result = sp_memory_fault(SP_KIND_DEVICE, "cuMemAlloc", pointer, size);

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
                        return sp_memory_refuse_as(address, "cuMemFree", result);
        }
        if (sp_order_is_on)
                sp_order_free_sync(address);
        if (sp_guards())
                sp_guard_free(address);
        /* 3. Into limbo: it waits there for everything its context had submitted. 4. No block of
         * ours: the driver has the last word. */
        status = sp_memory_give_back(address, SPM_FREE_SYNC, 0, hand ? hand->magazine : NULL,
                                     &block);
        if (status != SPM_OK)
                return status == SPM_E_FOREIGN ? forward_free(address)
                                               : sp_memory_refuse(address, "cuMemFree");

        /* 5. The driver's barrier, for programs that rely on it; its error, once it has one. */
        return sp_route_barrier(sp_context_by_pool(block.pool),
                                sp_config()->free_mode == SP_FREE_MODE_SYNC);
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

/* The driver's own free of memory that belongs to a context waits for that context (M1, U29). */
static bool waits_for_context(const struct sp_freeing *freeing)
{
        return freeing->known &&
               (freeing->entry.kind == SP_KIND_DEVICE || freeing->entry.kind == SP_KIND_PITCH ||
                freeing->entry.kind == SP_KIND_MANAGED);
}

static CUresult forward_free(CUdeviceptr address)
{
        struct sp_freeing freeing = sp_freeing_begin(address, "cuMemFree");
        struct sp_context *context =
                waits_for_context(&freeing) ? sp_context_by_model(freeing.entry.context) : NULL;
        struct spm_scope scope = {SPM_SCOPE_CONTEXT, context ? context->model : 0};
        struct sp_sync sync;
        uint64_t began;
        CUresult result;

        if (!freeing.known && sp_ledger_is_fatal(address))
                return sp_memory_refuse(address, "cuMemFree");
        sp_sync_start(&sync, context, scope);
        began = sp_native_begin();
        result = sp_driver.cuMemFree_v2(address);
        if (result == CUDA_SUCCESS && context)
                sp_native_end(SP_NATIVE_FREE, began);
        sp_freeing_mirror(&freeing, result, SPM_FREE_SYNC, 0);
        sp_freeing_end(&freeing, result);
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
