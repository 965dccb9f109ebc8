/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Backing -- where the pool's memory comes from
 *
 * One handle a segment, however large: cuMemSetAccess costs the same for each
 * handle (M13), and large pages are what the copy engines are fast on. A block
 * may lie in several segments; to the device they are one piece of memory.
 *
 * What the driver would not unmap stays where it is, and its addresses taken,
 * until somebody wants to be there: then it is asked again.
 *
 * Mapped memory is reachable from the devices that were given access before it
 * was mapped, because that is what cuCtxEnablePeerAccess and cuMemPoolSetAccess
 * mean for memory to come (Q9, A18).
 */

#include "track/backing.h"

#include <sched.h>
#include <stdlib.h>

#include "base/config.h"
#include "base/lock.h"
#include "base/log.h"
#include "report/counters.h"
#include "track/limit.h"
#include "track/mempool.h"
#include "track/state.h"

/* Guarded by: list_lock. Every segment that is not given back, and what would not leave. */
static struct sp_segment *segments;
static struct sp_segment *stuck;
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
static CUresult let_in(const struct sp_segment *segment)
{
        int home = segment->device->ordinal, devices = 0;
        CUresult result = set_access(segment, home, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

        /* A device can be let in before anything was done on it. */
        sp_driver.cuDeviceGetCount(&devices);
        for (int peer = 0; peer < devices && result == CUDA_SUCCESS; peer++) {
                CUmemAccess_flags flags = peer == home ? CU_MEM_ACCESS_FLAGS_PROT_NONE
                                                       : peer_flags(segment->pool, peer);

                if (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
                        result = set_access(segment, peer, flags);
        }
        return result;
}

static void give_addresses(const struct sp_segment *segment)
{
        if (segment->range)
                sp_range_give(segment->range, segment->base, segment->size);
        else
                sp_driver.cuMemAddressFree(segment->base, segment->size);
}

/* Frees the record, or puts it aside. */
static bool unmap(struct sp_segment *segment, struct sp_spares *spares)
{
        if (sp_driver.cuMemUnmap(segment->base, segment->size) == CUDA_SUCCESS) {
                sp_chunk_give(&segment->chunk, spares);
                give_addresses(segment);
                free(segment);
                return true;
        }
        sp_log(SP_LOG_INFO, "%zu MiB could not be unmapped", segment->size >> 20);
        sp_lock_take(&list_lock);
        segment->next = stuck;
        stuck = segment;
        sp_lock_drop(&list_lock);
        return false;
}

static struct sp_segment *take_stuck(CUdeviceptr base, size_t size)
{
        struct sp_segment **at = &stuck, *found;

        sp_lock_take(&list_lock);
        while (*at && ((*at)->base >= base + size || base >= (*at)->base + (*at)->size))
                at = &(*at)->next;
        found = *at;
        if (found)
                *at = found->next;
        sp_lock_drop(&list_lock);
        return found;
}

/* Return: false if something is there that will not leave. */
static bool clear(CUdeviceptr base, size_t size)
{
        struct sp_segment *segment;

        while ((segment = take_stuck(base, size)))
                if (!unmap(segment, NULL))
                        return false;
        return true;
}

static CUresult take_place(struct sp_range *range, CUdeviceptr base, size_t size)
{
        CUresult result = sp_range_take(range, base, size);

        if (result != CUDA_ERROR_ALREADY_MAPPED)
                return result;
        return clear(base, size) ? sp_range_take(range, base, size) : CUDA_ERROR_MAP_FAILED;
}

/* At the address that was wished for, in the range of the pool, or at one of its own. */
static CUresult take_addresses(struct sp_segment *segment, const struct sp_backing_wish *wish)
{
        if (!wish->address)
                return sp_driver.cuMemAddressReserve(&segment->base, segment->size, SP_GRAIN, 0, 0);
        segment->base = wish->address;
        segment->range = wish->range;
        return take_place(wish->range, segment->base, segment->size);
}

static CUresult map(struct sp_segment *segment, const struct sp_backing_wish *wish)
{
        CUresult result = take_addresses(segment, wish);

        if (result != CUDA_SUCCESS)
                return result;
        result = sp_chunk_take(&segment->chunk, segment->device, segment->size, wish->spares);
        if (result != CUDA_SUCCESS)
                goto undo_addresses;
        result = sp_driver.cuMemMap(segment->base, segment->size, 0, segment->chunk.handle, 0);
        if (result != CUDA_SUCCESS)
                goto undo_take;
        segment->chunk.was_mapped = true;
        return CUDA_SUCCESS;

undo_take:
        sp_chunk_give(&segment->chunk, wish->spares);
undo_addresses:
        give_addresses(segment);
        return result;
}

/* native memory, pinned memory: a context's own */

static CUresult take_pinned(struct sp_segment *segment, unsigned int flags)
{
        void *host;
        CUresult result = sp_driver.cuMemHostAlloc(&host, segment->size, flags);

        if (result == CUDA_SUCCESS)
                segment->base = (CUdeviceptr)(uintptr_t)host;
        return result;
}

/* Memory of the host counts against no device. */
static int limited_device(const struct sp_segment *segment)
{
        return segment->is_pinned ? SP_LIMIT_HOST : segment->device->ordinal;
}

static CUresult take_native(struct sp_segment *segment, unsigned int host_flags)
{
        int device = limited_device(segment);
        CUcontext popped;
        CUresult result;

        if (!sp_limit_take(device, segment->size))
                return CUDA_ERROR_OUT_OF_MEMORY;
        if (!sp_context_enter(segment->context)) {
                sp_limit_give(device, segment->size);
                return CUDA_ERROR_INVALID_CONTEXT;
        }
        result = sp_driver.cuCtxPushCurrent_v2(segment->context->handle);
        if (result == CUDA_SUCCESS) {
                result = segment->is_pinned
                                 ? take_pinned(segment, host_flags)
                                 : sp_driver.cuMemAlloc_v2(&segment->base, segment->size);
                sp_driver.cuCtxPopCurrent_v2(&popped);
        }
        if (result == CUDA_SUCCESS)
                sp_count(segments_obtained);
        else
                sp_limit_give(device, segment->size);
        sp_context_leave(segment->context);
        return result;
}

/* A context that is ending may not end after all; until that is known, so must this wait. */
static void give_native(const struct sp_segment *segment)
{
        sp_count(segments_given_back);
        while (!sp_context_enter(segment->context)) {
                if (atomic_load(&segment->context->gone))
                        return;
                sched_yield();
        }
        if (segment->is_pinned)
                sp_driver.cuMemFreeHost((void *)(uintptr_t)segment->base);
        else
                sp_driver.cuMemFree_v2(segment->base);
        sp_context_leave(segment->context);
}

/* both */

static bool is_wished_native(const struct sp_backing_wish *wish)
{
        return wish->context && (wish->is_pinned || !wish->device->has_vmm ||
                                 sp_config()->backing == SP_BACKING_NATIVE);
}

CUresult sp_backing_obtain(const struct sp_backing_wish *wish, struct sp_segment **segment)
{
        bool is_native = is_wished_native(wish);
        struct sp_segment *made = calloc(1, sizeof(*made));
        CUresult result;

        if (!made)
                return CUDA_ERROR_OUT_OF_MEMORY;
        made->size = wish->size;
        made->pool = wish->pool;
        made->device = wish->device;
        made->context = is_native ? wish->context : NULL;
        made->is_pinned = wish->is_pinned;
        result = is_native ? take_native(made, wish->host_flags) : map(made, wish);
        if (result != CUDA_SUCCESS) {
                free(made);
                return result;
        }
        enlist(made);
        result = is_native ? CUDA_SUCCESS : let_in(made);
        if (result == CUDA_SUCCESS)
                *segment = made;
        else
                sp_backing_give_back(made, wish->spares);
        return result;
}

void sp_backing_give_back(struct sp_segment *segment, struct sp_spares *spares)
{
        delist(segment);
        if (!segment->context) {
                unmap(segment, spares);
                return;
        }
        give_native(segment);
        sp_limit_give(limited_device(segment), segment->size);
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
                if (segment->pool == pool && !segment->context)
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

/* memory of ours in other processes */

static bool overlaps(const struct sp_segment *segment, CUdeviceptr address, size_t size)
{
        return segment->base < address + size && address < segment->base + segment->size;
}

static int by_base(const void *left, const void *right)
{
        const struct sp_segment *a = *(struct sp_segment *const *)left;
        const struct sp_segment *b = *(struct sp_segment *const *)right;

        return a->base < b->base ? -1 : a->base > b->base;
}

/* The segments of a live block, which stay while it lives; NULL if the host has no memory. */
static struct sp_segment **segments_of(CUdeviceptr address, size_t size, size_t *count)
{
        struct sp_segment **found = NULL;
        size_t room = 0;

        *count = 0;
        sp_lock_take(&list_lock);
        for (struct sp_segment *segment = segments; segment; segment = segment->next)
                room += overlaps(segment, address, size);
        found = calloc(room + 1, sizeof(struct sp_segment *));
        for (struct sp_segment *segment = segments; found && segment; segment = segment->next)
                if (overlaps(segment, address, size))
                        found[(*count)++] = segment;
        sp_lock_drop(&list_lock);
        if (found)
                qsort(found, *count, sizeof(struct sp_segment *), by_base);
        return found;
}

CUresult sp_backing_export(CUdeviceptr address, size_t size, struct sp_backing_part **parts,
                           size_t *count)
{
        struct sp_segment **found = segments_of(address, size, count);
        struct sp_backing_part *made = calloc(*count + 1, sizeof(*made));
        CUresult result = found && made ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

        for (size_t i = 0; result == CUDA_SUCCESS && i < *count; i++) {
                result = sp_chunk_export(&found[i]->chunk, &made[i].descriptor);
                made[i].base = found[i]->base;
                made[i].size = found[i]->size;
        }
        if (result == CUDA_SUCCESS)
                *parts = made;
        else
                free(made);
        free(found);
        return result;
}

bool sp_backing_reserves(CUdeviceptr address)
{
        struct sp_context *context = NULL;
        struct sp_device *device = NULL;

        while ((context = sp_context_each(context)))
                if (sp_range_holds(&context->range, address))
                        return true;
        while ((device = sp_device_each(device)))
                if (sp_range_holds(&device->range, address))
                        return true;
        return sp_mempool_reserves(address);
}
