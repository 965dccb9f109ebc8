/* SPDX-License-Identifier: Apache-2.0 */

/*
 * VMM, the table -- memory, ranges, and which of them are idle
 *
 * Only what could ever be kept is in here; all else is the driver's alone. When
 * the host has no memory for a record, that is not kept either.
 */

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/lock.h"
#include "track/vmm_inner.h"

static struct sp_lock lock = SP_LOCK_INIT(SP_RANK_VMM);

/* Guarded by: lock. */
static struct sp_vmm_memory *memories;
static struct sp_vmm_range *ranges;
static struct sp_vmm_memory *idle; /* oldest first; a device has some dozens at most */
static struct sp_vmm_errand *errands;

/* Atomic, written under the lock: how many are in those two lists. */
static atomic_uint pending;

/* the lock */

static bool touches(const struct sp_vmm_errand *errand, CUmemGenericAllocationHandle handle,
                    CUdeviceptr base, size_t size)
{
        return (handle && errand->handle == handle) ||
               (size && base < errand->base + errand->size && errand->base < base + size);
}

static bool is_settled_now_locked(CUmemGenericAllocationHandle handle, CUdeviceptr base,
                                  size_t size)
{
        const struct sp_vmm_errand *errand = errands;

        while (errand && !touches(errand, handle, base, size))
                errand = errand->next;
        return errand;
}

/* An errand takes some ten microseconds. */
void sp_vmm_pause_locked(void)
{
        const struct timespec moment = {.tv_nsec = 20000};

        sp_lock_drop(&lock);
        nanosleep(&moment, NULL);
        sp_lock_take(&lock);
}

void sp_vmm_enter(CUmemGenericAllocationHandle handle, CUdeviceptr base, size_t size)
{
        sp_lock_take(&lock);
        while (is_settled_now_locked(handle, base, size))
                sp_vmm_pause_locked();
}

void sp_vmm_leave(void)
{
        sp_lock_drop(&lock);
}

/* records */

struct sp_vmm_memory *sp_vmm_find_locked(CUmemGenericAllocationHandle handle)
{
        struct sp_vmm_memory *memory;

        assert(sp_lock_held() == SP_RANK_VMM);
        HASH_FIND(hh, memories, &handle, sizeof(handle), memory);
        return memory;
}

struct sp_vmm_range *sp_vmm_find_range_locked(CUdeviceptr base)
{
        struct sp_vmm_range *range;

        assert(sp_lock_held() == SP_RANK_VMM);
        HASH_FIND(hh, ranges, &base, sizeof(base), range);
        return range;
}

struct sp_vmm_memory *sp_vmm_pair_locked(CUdeviceptr base, size_t size)
{
        struct sp_vmm_range *range = sp_vmm_find_range_locked(base);

        return range && range->size == size ? range->memory : NULL;
}

static bool is_used(const struct sp_vmm_range *range)
{
        return range->memory && range->memory->is_mapped;
}

struct sp_vmm_memory *sp_vmm_used_in_locked(CUdeviceptr base, size_t size)
{
        struct sp_vmm_range *range = sp_vmm_find_range_locked(base);

        /* All of it is in one range, as a rule. */
        if (range && size <= range->size)
                return is_used(range) ? range->memory : NULL;
        for (range = ranges; range; range = range->hh.next)
                if (is_used(range) && range->base < base + size && base < range->base + range->size)
                        return range->memory;
        return NULL;
}

/* No device, or a kind of memory, that nobody has tried; or more than is ever kept. */
static bool is_eligible(size_t size, const CUmemAllocationProp *prop)
{
        return size <= SP_VMM_LARGEST && prop->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
               prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE && prop->location.id >= 0 &&
               prop->location.id < SP_VMM_DEVICES && !prop->win32HandleMetaData &&
               !prop->allocFlags.compressionType && !prop->allocFlags.usage;
}

/* What is there under the same number has gone without our knowing. */
void sp_vmm_created(CUmemGenericAllocationHandle handle, size_t size,
                    const CUmemAllocationProp *prop)
{
        struct sp_vmm_memory *memory;

        sp_vmm_enter(handle, 0, 0);
        memory = sp_vmm_find_locked(handle);
        if (memory)
                sp_vmm_drop_locked(memory);
        memory = is_eligible(size, prop) ? calloc(1, sizeof(*memory)) : NULL;
        if (memory) {
                memory->handle = handle;
                memory->prop = *prop;
                memory->size = size;
                memory->is_held = true;
                HASH_ADD(hh, memories, handle, sizeof(memory->handle), memory);
                if (!memory->hh.tbl)
                        free(memory);
        }
        sp_vmm_leave();
}

void sp_vmm_reserved(CUdeviceptr base, size_t size)
{
        struct sp_vmm_range *range;

        if (size > SP_VMM_LARGEST)
                return;
        sp_vmm_enter(0, base, size);
        range = sp_vmm_find_range_locked(base);
        if (range)
                sp_vmm_drop_range_locked(range);
        range = calloc(1, sizeof(*range));
        if (range) {
                range->base = base;
                range->size = size;
                range->is_held = true;
                HASH_ADD(hh, ranges, base, sizeof(range->base), range);
                if (!range->hh.tbl)
                        free(range);
        }
        sp_vmm_leave();
}

void sp_vmm_part_locked(struct sp_vmm_memory *memory)
{
        if (!memory->range)
                return;
        if (!memory->is_mapped)
                sp_vmm_busy_locked(memory);
        memory->range->memory = NULL;
        memory->range = NULL;
        memory->is_mapped = false;
}

void sp_vmm_drop_locked(struct sp_vmm_memory *memory)
{
        sp_vmm_part_locked(memory);
        HASH_DELETE(hh, memories, memory);
        free(memory);
}

void sp_vmm_drop_range_locked(struct sp_vmm_range *range)
{
        if (range->memory)
                sp_vmm_part_locked(range->memory);
        HASH_DELETE(hh, ranges, range);
        free(range);
}

/* idle */

struct sp_vmm_memory *sp_vmm_each_idle_locked(const struct sp_vmm_memory *memory)
{
        return memory ? memory->next : idle;
}

void sp_vmm_idle_locked(struct sp_vmm_memory *memory)
{
        struct sp_vmm_memory **at = &idle;

        while (*at)
                at = &(*at)->next;
        memory->next = NULL;
        memory->is_mapped = false;
        *at = memory;
        atomic_fetch_add(&pending, 1);
}

void sp_vmm_busy_locked(struct sp_vmm_memory *memory)
{
        struct sp_vmm_memory **at = &idle;

        while (*at && *at != memory)
                at = &(*at)->next;
        assert(*at);
        *at = memory->next;
        atomic_fetch_sub(&pending, 1);
}

/* errands */

bool sp_vmm_quiet(void)
{
        return atomic_load(&pending) == 0;
}

void sp_vmm_start_locked(struct sp_vmm_errand *errand)
{
        errand->next = errands;
        errands = errand;
        atomic_fetch_add(&pending, 1);
}

uint64_t sp_vmm_going_locked(int device)
{
        uint64_t bytes = 0;

        for (const struct sp_vmm_errand *errand = errands; errand; errand = errand->next)
                if (errand->releases && errand->device == device)
                        bytes += errand->size;
        return bytes;
}

void sp_vmm_end_locked(struct sp_vmm_errand *errand)
{
        struct sp_vmm_errand **at = &errands;

        while (*at != errand)
                at = &(*at)->next;
        *at = errand->next;
        atomic_fetch_sub(&pending, 1);
}
