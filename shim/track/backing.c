/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Backing -- where the pool's memory comes from
 *
 * One handle a segment, however large: cuMemSetAccess costs the same for each
 * handle (M13), and large pages are what the copy engines are fast on.
 *
 * Mapped memory is made RDMA-capable where the device can, because cuMemAlloc
 * memory is (3C), and reachable from the devices that were given access before
 * it was made, because that is what cuCtxEnablePeerAccess and
 * cuMemPoolSetAccess mean for memory to come (Q9, A18).
 */

#include "track/backing.h"

#include <sched.h>
#include <stdlib.h>

#include "base/config.h"
#include "base/lock.h"
#include "report/counters.h"
#include "track/state.h"

#define GRAIN ((size_t)2 << 20)

/* Guarded by: list_lock. Every segment that is not given back. */
static struct sp_segment *segments;
static struct sp_lock list_lock = SP_LOCK_INIT(SP_RANK_CONTEXT);

static void enlist(struct sp_segment *segment)
{
        sp_lock_take(&list_lock);
        segment->next = segments;
        if (segments)
                segments->previous = segment;
        segments = segment;
        sp_lock_drop(&list_lock);
}

static void delist(struct sp_segment *segment)
{
        sp_lock_take(&list_lock);
        if (segment->next)
                segment->next->previous = segment->previous;
        if (segment->previous)
                segment->previous->next = segment->next;
        else
                segments = segment->next;
        sp_lock_drop(&list_lock);
}

/* mapped memory */

static CUmemAccessDesc access_of(int device, CUmemAccess_flags flags)
{
        return (CUmemAccessDesc){
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                .flags = flags,
        };
}

static CUmemAccess_flags peer_flags(spm_pool pool, int peer)
{
        enum spm_access access = SPM_ACCESS_NONE;

        spm_pool_get_access(sp_model_enter(), pool, peer, &access);
        sp_model_leave();
        return access == SPM_ACCESS_READ_WRITE ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
               : access == SPM_ACCESS_READ     ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                               : CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

static CUresult set_access(const struct sp_segment *segment, int device, CUmemAccess_flags flags)
{
        CUmemAccessDesc access = access_of(device, flags);

        return sp_driver.cuMemSetAccess(segment->base, segment->size, &access, 1);
}

/* Once the segment is in the list: a grant that is made meanwhile finds either it there, or its
 * own entry in the model's table here. */
static CUresult let_peers_in(const struct sp_segment *segment)
{
        CUresult result = CUDA_SUCCESS;

        for (struct sp_device *peer = sp_device_each(NULL); peer && result == CUDA_SUCCESS;
             peer = sp_device_each(peer)) {
                CUmemAccess_flags flags = peer == segment->device
                                                  ? CU_MEM_ACCESS_FLAGS_PROT_NONE
                                                  : peer_flags(segment->pool, peer->ordinal);

                if (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
                        result = set_access(segment, peer->ordinal, flags);
        }
        return result;
}

static CUresult map(struct sp_segment *segment)
{
        CUmemAllocationProp wish = {
                .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = segment->device->ordinal},
                .allocFlags.gpuDirectRDMACapable = segment->device->has_rdma_vmm,
        };
        CUresult result = sp_driver.cuMemCreate(&segment->handle, segment->size, &wish, 0);

        if (result != CUDA_SUCCESS)
                return result;
        result = sp_driver.cuMemAddressReserve(&segment->base, segment->size, GRAIN, 0, 0);
        if (result != CUDA_SUCCESS)
                goto undo_create;
        result = sp_driver.cuMemMap(segment->base, segment->size, 0, segment->handle, 0);
        if (result != CUDA_SUCCESS)
                goto undo_reserve;
        result = set_access(segment, segment->device->ordinal, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        if (result == CUDA_SUCCESS)
                return CUDA_SUCCESS;

        sp_driver.cuMemUnmap(segment->base, segment->size);
undo_reserve:
        sp_driver.cuMemAddressFree(segment->base, segment->size);
undo_create:
        sp_driver.cuMemRelease(segment->handle);
        return result;
}

static void unmap(struct sp_segment *segment)
{
        sp_driver.cuMemUnmap(segment->base, segment->size);
        sp_driver.cuMemRelease(segment->handle);
        sp_driver.cuMemAddressFree(segment->base, segment->size);
}

/* native memory */

static CUresult take_native(struct sp_segment *segment)
{
        CUcontext popped;
        CUresult result = CUDA_ERROR_INVALID_CONTEXT;

        if (!sp_context_enter(segment->context))
                return result;
        result = sp_driver.cuCtxPushCurrent_v2(segment->context->handle);
        if (result == CUDA_SUCCESS) {
                result = sp_driver.cuMemAlloc_v2(&segment->base, segment->size);
                sp_driver.cuCtxPopCurrent_v2(&popped);
        }
        sp_context_leave(segment->context);
        return result;
}

/* A context that is ending may not end after all; until that is known, so must this wait. */
static void give_native(const struct sp_segment *segment)
{
        while (!sp_context_enter(segment->context)) {
                if (atomic_load(&segment->context->gone))
                        return;
                sched_yield();
        }
        sp_driver.cuMemFree_v2(segment->base);
        sp_context_leave(segment->context);
}

/* both */

CUresult sp_backing_obtain(spm_pool pool, struct sp_device *device, struct sp_context *context,
                           size_t size, struct sp_segment **segment)
{
        bool is_native = context && (!device->has_vmm || sp_config()->backing == SP_BACKING_NATIVE);
        struct sp_segment *made = calloc(1, sizeof(*made));
        CUresult result;

        if (!made)
                return CUDA_ERROR_OUT_OF_MEMORY;
        made->size = size;
        made->pool = pool;
        made->device = device;
        made->context = is_native ? context : NULL;
        result = is_native ? take_native(made) : map(made);
        if (result != CUDA_SUCCESS) {
                free(made);
                return result;
        }
        sp_count(segments_obtained);
        enlist(made);
        result = is_native ? CUDA_SUCCESS : let_peers_in(made);
        if (result == CUDA_SUCCESS)
                *segment = made;
        else
                sp_backing_give_back(made);
        return result;
}

void sp_backing_give_back(struct sp_segment *segment)
{
        delist(segment);
        if (!sp_backing_is_native(segment))
                unmap(segment);
        else
                give_native(segment);
        sp_count(segments_given_back);
        free(segment);
}

CUresult sp_backing_grant(spm_pool pool, int peer, CUmemAccess_flags flags)
{
        CUmemAccessDesc access = access_of(peer, flags);
        CUresult result = CUDA_SUCCESS;
        struct range {
                CUdeviceptr base;
                size_t size;
        } * ranges;
        size_t count = 0;

        sp_lock_take(&list_lock);
        for (struct sp_segment *segment = segments; segment; segment = segment->next)
                count++;
        ranges = calloc(count + 1, sizeof(*ranges));
        count = 0;
        for (struct sp_segment *segment = segments; ranges && segment; segment = segment->next)
                if (segment->pool == pool && !sp_backing_is_native(segment))
                        ranges[count++] = (struct range){segment->base, segment->size};
        sp_lock_drop(&list_lock);

        if (!ranges)
                return CUDA_ERROR_OUT_OF_MEMORY;
        for (size_t i = 0; i < count; i++) {
                CUresult one = sp_driver.cuMemSetAccess(ranges[i].base, ranges[i].size, &access, 1);

                if (result == CUDA_SUCCESS)
                        result = one;
        }
        free(ranges);
        return result;
}
