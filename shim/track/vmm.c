/* SPDX-License-Identifier: Apache-2.0 */

/*
 * VMM -- memory that the program maps itself, kept mapped between two uses
 *
 * What a call does to a pair when the driver need not hear of it, and what is
 * written down when it did. A step is taken only if the driver would certainly
 * have done it: the memory and the range are the program's, in the state that
 * the call asks for, and its arguments are those of a call that succeeded before.
 */

#include "track/vmm.h"

#include <string.h>

#include "report/counters.h"
#include "track/ledger.h"
#include "track/vmm_inner.h"

/* Per thread: its address is who takes halves, and its value the size of the memory that the driver
 * was asked for last, if there was none for it here. The addresses for that are the driver's as
 * well: a pair of ours would be lost for them. */
static __thread size_t self __attribute__((tls_model("initial-exec")));

/* giving out */

/* The half of a pair that this thread has the other half of; or else of the youngest pair that
 * the program has nothing of: the others age. */
static bool is_better(const struct sp_vmm_memory *memory, const struct sp_vmm_memory *best)
{
        return !best || best->taker != &self || memory->taker == &self;
}

static bool is_for_taking(const struct sp_vmm_memory *memory)
{
        return memory->taker == &self || (!memory->is_held && !memory->range->is_held);
}

/* The taker asks for the other half next; when it has both, nobody waits for anything. */
static void give_half_locked(struct sp_vmm_memory *memory)
{
        sp_vmm_busy_locked(memory);
        sp_vmm_idle_locked(memory);
        memory->taker = memory->is_held && memory->range->is_held ? NULL : &self;
}

bool sp_vmm_create(CUmemGenericAllocationHandle *handle, size_t size,
                   const CUmemAllocationProp *prop)
{
        struct sp_vmm_memory *memory = NULL, *best = NULL;

        self = size;
        if (sp_vmm_quiet())
                return false;
        sp_vmm_enter(0, 0, 0);
        while ((memory = sp_vmm_each_idle_locked(memory)))
                if (!memory->is_held && memory->size == size &&
                    memcmp(&memory->prop, prop, sizeof(*prop)) == 0 && is_for_taking(memory) &&
                    is_better(memory, best))
                        best = memory;
        if (best) {
                struct sp_ledger_entry entry = {
                        .address = best->handle,
                        .bytes = size,
                        .reserved = size,
                        .counted = best->counted,
                        .kind = SP_KIND_VMM,
                        .device = prop->location.id,
                };

                best->counted = 0;
                best->is_held = true;
                give_half_locked(best);
                sp_ledger_add(&entry);
                *handle = best->handle;
                self = 0;
        }
        sp_vmm_leave();
        sp_count_add(vmm_reused, best != NULL);
        return best;
}

static bool is_aligned(CUdeviceptr base, size_t alignment)
{
        return !alignment || ((alignment & (alignment - 1)) == 0 && base % alignment == 0);
}

bool sp_vmm_reserve(CUdeviceptr *base, size_t size, size_t alignment)
{
        struct sp_vmm_memory *memory = NULL, *best = NULL;
        bool is_drivers = self == size;

        self = 0;
        if (is_drivers || sp_vmm_quiet())
                return false;
        sp_vmm_enter(0, 0, 0);
        while ((memory = sp_vmm_each_idle_locked(memory)))
                if (!memory->range->is_held && memory->size == size &&
                    is_aligned(memory->range->base, alignment) && is_for_taking(memory) &&
                    is_better(memory, best))
                        best = memory;
        if (best) {
                best->range->is_held = true;
                give_half_locked(best);
                *base = best->range->base;
        }
        sp_vmm_leave();
        return best;
}

/* using */

bool sp_vmm_map(CUdeviceptr base, size_t size, CUmemGenericAllocationHandle handle)
{
        struct sp_vmm_memory *memory;
        bool maps;

        sp_vmm_enter(handle, base, size);
        memory = sp_vmm_pair_locked(base, size);
        maps = memory && memory->handle == handle && !memory->is_mapped && memory->is_held &&
               memory->range->is_held;
        if (maps) {
                sp_vmm_busy_locked(memory);
                memory->is_mapped = true;
                memset(memory->shown, 0, sizeof(memory->shown));
                sp_ledger_map(base, size, handle);
        }
        sp_vmm_leave();
        return maps;
}

void sp_vmm_mapped(CUdeviceptr base, size_t size, CUmemGenericAllocationHandle handle)
{
        struct sp_vmm_memory *memory;
        struct sp_vmm_range *range;

        sp_vmm_enter(handle, base, size);
        memory = sp_vmm_find_locked(handle);
        range = sp_vmm_find_range_locked(base);
        if (memory && !memory->range && memory->size == size && range && !range->memory &&
            range->size == size) {
                memory->range = range;
                range->memory = memory;
                memory->is_mapped = true;
                memset(memory->access, 0, sizeof(memory->access));
                memset(memory->shown, 0, sizeof(memory->shown));
        } else if (memory) {
                sp_vmm_drop_locked(memory);
        }
        sp_vmm_leave();
}

static bool is_known(const CUmemAccessDesc *access)
{
        return access->location.type == CU_MEM_LOCATION_TYPE_DEVICE && access->location.id >= 0 &&
               access->location.id < SP_VMM_DEVICES && (unsigned int)access->flags < UINT8_MAX;
}

static bool is_set_locked(const struct sp_vmm_memory *memory, const CUmemAccessDesc *access)
{
        return is_known(access) &&
               memory->access[access->location.id] == (uint8_t)(access->flags + 1);
}

static void note_locked(struct sp_vmm_memory *memory, const CUmemAccessDesc *access, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                int device = access[i].location.id;

                memory->access[device] = (uint8_t)(access[i].flags + 1);
                memory->shown[device] = memory->access[device];
        }
}

bool sp_vmm_set_access(CUdeviceptr base, size_t size, const CUmemAccessDesc *access, size_t count)
{
        struct sp_vmm_memory *memory;
        bool is_set;

        sp_vmm_enter(0, base, size);
        memory = sp_vmm_pair_locked(base, size);
        is_set = memory && memory->is_mapped;
        for (size_t i = 0; is_set && i < count; i++)
                is_set = is_set_locked(memory, &access[i]);
        if (is_set)
                note_locked(memory, access, count);
        sp_vmm_leave();
        return is_set;
}

/* What was set of a part, or for whom we have no place, is not what the next one asks for. */
void sp_vmm_access_set(CUdeviceptr base, size_t size, const CUmemAccessDesc *access, size_t count)
{
        struct sp_vmm_memory *memory;
        bool is_followed;

        sp_vmm_enter(0, base, size);
        memory = sp_vmm_pair_locked(base, size);
        is_followed = memory && memory->is_mapped;
        for (size_t i = 0; is_followed && i < count; i++)
                is_followed = is_known(&access[i]);
        if (is_followed)
                note_locked(memory, access, count);
        else
                while ((memory = sp_vmm_used_in_locked(base, size)))
                        sp_vmm_drop_locked(memory);
        sp_vmm_leave();
}

/* taking back */

enum answer { NO, YES, CROWDED };

static uint64_t idle_bytes_locked(int device)
{
        struct sp_vmm_memory *memory = NULL;
        uint64_t bytes = 0;

        while ((memory = sp_vmm_each_idle_locked(memory)))
                if (memory->prop.location.id == device)
                        bytes += memory->size;
        return bytes;
}

static enum answer unmap(CUdeviceptr base, size_t size, int *device)
{
        struct sp_vmm_memory *memory;
        enum answer answer = NO;

        sp_vmm_enter(0, base, size);
        memory = sp_vmm_pair_locked(base, size);
        if (memory && memory->is_mapped) {
                *device = memory->prop.location.id;
                answer = idle_bytes_locked(*device) + size > SP_VMM_KEPT_MOST ? CROWDED : YES;
        }
        if (answer == YES) {
                memory->taker = NULL;
                sp_vmm_idle_locked(memory);
                sp_ledger_unmap(base, size);
        }
        sp_vmm_leave();
        return answer;
}

bool sp_vmm_unmap(CUdeviceptr base, size_t size)
{
        enum answer answer;
        int device;

        do
                answer = unmap(base, size, &device);
        while (answer == CROWDED && sp_vmm_give_oldest(device));
        return answer == YES;
}

void sp_vmm_unmapped(CUdeviceptr base, size_t size)
{
        struct sp_vmm_memory *memory;

        sp_vmm_enter(0, base, size);
        while ((memory = sp_vmm_used_in_locked(base, size)))
                sp_vmm_part_locked(memory);
        sp_vmm_leave();
}

bool sp_vmm_release(CUmemGenericAllocationHandle handle)
{
        struct sp_ledger_entry entry;
        struct sp_vmm_memory *memory;
        bool releases;

        sp_vmm_enter(handle, 0, 0);
        memory = sp_vmm_find_locked(handle);
        releases = memory && memory->range && !memory->is_mapped && memory->is_held;
        if (releases) {
                memory->is_held = false;
                memory->taker = NULL;
                sp_vmm_released_locked(memory);
                if (sp_ledger_take(SP_SPACE_HANDLE, handle, &entry)) {
                        memory->counted = sp_ledger_keep_counted(&entry);
                        sp_ledger_freed(&entry, "cuMemRelease");
                }
        }
        sp_vmm_leave();
        return releases;
}

bool sp_vmm_free(CUdeviceptr base, size_t size)
{
        struct sp_vmm_memory *memory;
        bool frees;

        sp_vmm_enter(0, base, size);
        memory = sp_vmm_pair_locked(base, size);
        frees = memory && !memory->is_mapped && memory->range->is_held;
        if (frees) {
                memory->range->is_held = false;
                memory->taker = NULL;
        }
        sp_vmm_leave();
        return frees;
}
