/* SPDX-License-Identifier: Apache-2.0 */

/*
 * On pinned -- page-locked host memory
 *
 * The driver takes half a millisecond to lock memory and a fifth of one to give
 * it back, and waits for the whole context before it does (U29). Programs that
 * do both for eight bytes at every step, as JAX does, spend their time there.
 *
 * The host uses a block at once, so one that was freed is served again only when
 * everything its context had been told before was seen to be done: never in the
 * order of a stream. What is counted for a pair that finds such a block:
 *
 *   cuMemHostAlloc   1 lock (the model's), 1 driver call (the current context), and
 *                    one for each device but the context's own
 *   cuMemFreeHost    1 lock, 0 driver calls; one of every STREAMPOOL_BATCH frees
 *                    records an event
 *
 * A free does not wait for the device, as that of cuMemAlloc's memory does not,
 * except when more lies idle than track/pinned.c would keep: then it waits as the
 * driver's own would, and what is too much goes back.
 *
 * Which blocks are the driver's to serve is said in track/pinned.c.
 */

#include "route/route.h"

#include "base/config.h"
#include "report/counters.h"
#include "route/fault.h"
#include "route/locked.h"
#include "route/order.h"
#include "route/perform.h"
#include "route/tick.h"
#include "track/held.h"
#include "track/ledger.h"
#include "track/pinned.h"
#include "track/state.h"

/* allocations */

static bool serve(void **pointer, size_t size, unsigned int flags)
{
        struct sp_context *context = pointer && size ? sp_route_pooling_context() : NULL;
        spm_pool pool = context ? sp_pinned_pool(context, size, flags) : 0;
        struct spm_allocation block;

        if (!pool || !sp_serve(pool, 0, size, 0, NULL, &block))
                return false;
        *pointer = (void *)(uintptr_t)block.address;
        if (sp_tick_is_due())
                sp_tick();
        return true;
}

/* @flags: NULL for the function that takes none */
static CUresult ask(void **pointer, size_t size, const unsigned int *flags)
{
        return flags ? sp_driver.cuMemHostAlloc(pointer, size, *flags)
                     : sp_driver.cuMemAllocHost_v2(pointer, size);
}

static CUresult forward_alloc(void **pointer, size_t size, const unsigned int *flags)
{
        size_t counted;
        CUresult result = sp_locked_take(pointer ? size : 0, &counted);
        uint64_t began;

        if (result != CUDA_SUCCESS)
                return result;
        began = sp_native_begin();
        result = ask(pointer, size, flags);
        if (result == CUDA_SUCCESS && size)
                sp_native_end(SP_NATIVE_ALLOC_HOST, began);
        if (result == CUDA_ERROR_OUT_OF_MEMORY && sp_relieve_host())
                result = ask(pointer, size, flags);
        if (result == CUDA_ERROR_OUT_OF_MEMORY && sp_relieve())
                result = ask(pointer, size, flags);
        sp_locked_ended(SP_KIND_PINNED, result == CUDA_SUCCESS ? (uintptr_t)*pointer : 0, size,
                        counted, result);
        return result;
}

CUresult CUDAAPI sp_on_cuMemAllocHost_v2(void **pointer, size_t size)
{
        CUresult result = sp_fault(SP_KIND_PINNED, "cuMemAllocHost", pointer ? size : 0);

        if (result != CUDA_SUCCESS || serve(pointer, size, 0))
                return result;
        return forward_alloc(pointer, size, NULL);
}

CUresult CUDAAPI sp_on_cuMemHostAlloc(void **pointer, size_t size, unsigned int flags)
{
        CUresult result = sp_fault(SP_KIND_PINNED, "cuMemHostAlloc", pointer ? size : 0);

        if (result != CUDA_SUCCESS || serve(pointer, size, flags))
                return result;
        return forward_alloc(pointer, size, &flags);
}

/* frees */

/* Return: SPM_E_FOREIGN for memory of the driver's, another error for a place in memory of ours
 * that this call cannot free. */
static enum spm_status give_back(uint64_t address, struct spm_allocation *block,
                                 struct spm_actions *actions)
{
        enum spm_status status;

        if (!sp_route_pools())
                return SPM_E_FOREIGN;
        status = spm_free(sp_model_enter(), address, 0, SPM_FREE_HOST, 0, block, actions);
        if (status == SPM_OK)
                sp_held_freed(block, "cuMemFreeHost");
        sp_model_leave();
        return status;
}

/* The driver's barrier, for programs that rely on it; and where it is the price of giving back what
 * lies idle. The figures are looked at after a large block, and now and then. */
static bool must_wait(const struct spm_allocation *block)
{
        if (sp_config()->free_mode == SP_FREE_MODE_SYNC)
                return true;
        return (block->reserved > SP_HOST_SMALL || sp_tick_is_due()) &&
               sp_pinned_is_heavy(block->pool);
}

static CUresult forward_free(void *pointer)
{
        uint64_t began = sp_native_begin();
        CUresult result = sp_driver.cuMemFreeHost(pointer);

        if (result == CUDA_SUCCESS && pointer)
                sp_native_end(SP_NATIVE_FREE_HOST, began);
        return result;
}

/* No block of ours: the driver has the last word. */
static SP_COLD CUresult free_of_driver(void *pointer)
{
        struct sp_ledger_entry entry;
        bool known = sp_ledger_take(SP_SPACE_HOST, (uintptr_t)pointer, &entry);
        CUresult result = forward_free(pointer);

        sp_ledger_free_ended(known ? &entry : NULL, SP_SPACE_HOST, (uintptr_t)pointer,
                             "cuMemFreeHost", result);
        return result;
}

/* @result: what there is to be said against a free of memory of ours. */
static SP_COLD CUresult refuse(uint64_t address, CUresult result)
{
        struct spm_allocation block;
        struct spm_actions actions;

        if (result == CUDA_ERROR_DEINITIALIZED && give_back(address, &block, &actions) == SPM_OK)
                sp_perform(&actions, NULL);
        else
                sp_ledger_bad_free(SP_SPACE_HOST, address, "cuMemFreeHost", result);
        return result;
}

CUresult CUDAAPI sp_on_cuMemFreeHost(void *pointer)
{
        uint64_t address = (uintptr_t)pointer;
        struct spm_allocation block;
        struct spm_actions actions;
        enum spm_status status;

        /* The driver's own waits for the device, and a program may rely on that. */
        if (sp_order_is_on)
                sp_order_blur();
        /* In a capture, or at the end of the process, the driver may refuse, and the block stays.
         */
        if (!sp_route_is_quiet() && sp_route_owns(address)) {
                CUresult result = sp_route_ask_driver();

                if (result != CUDA_SUCCESS)
                        return refuse(address, result);
        }
        status = give_back(address, &block, &actions);
        if (status == SPM_E_FOREIGN)
                return free_of_driver(pointer);
        if (status != SPM_OK)
                return refuse(address, CUDA_ERROR_INVALID_VALUE);
        sp_perform(&actions, NULL);
        return sp_route_barrier(sp_pinned_owner(block.pool, NULL), must_wait(&block));
}

/* questions: the driver knows the chunk; what it would say of its beginning it says of a block's */

struct place {
        void *host;   /* what to ask about instead */
        size_t shift; /* from there to what was asked about */
        bool freed;   /* in memory of ours, but in no live block: the driver would not know it */
};

static struct place place_of(void *host)
{
        struct place place = {.host = host};
        struct spm_allocation block;
        enum spm_status status = SPM_E_FOREIGN;

        if (sp_route_pools()) {
                status = spm_find(sp_model_enter(), (uintptr_t)host, &block);
                sp_model_leave();
        }
        place.freed = status == SPM_E_DOUBLE_FREE;
        if (status == SPM_OK) {
                place.shift = block.address - block.segment_base;
                place.host = (char *)host - place.shift;
        }
        return place;
}

CUresult CUDAAPI sp_on_cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *host,
                                                    unsigned int flags)
{
        struct place place = place_of(host);
        CUdeviceptr found;
        CUresult result =
                sp_driver.cuMemHostGetDevicePointer_v2(address ? &found : NULL, place.host, flags);

        if (result != CUDA_SUCCESS)
                return result;
        if (place.freed)
                return CUDA_ERROR_INVALID_VALUE;
        *address = found + place.shift;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI sp_on_cuMemHostGetFlags(unsigned int *flags, void *host)
{
        struct place place = place_of(host);
        unsigned int found;
        CUresult result = sp_driver.cuMemHostGetFlags(flags ? &found : NULL, place.host);

        if (result != CUDA_SUCCESS)
                return result;
        if (place.freed)
                return CUDA_ERROR_INVALID_VALUE;
        *flags = found;
        return CUDA_SUCCESS;
}
