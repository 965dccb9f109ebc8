/* SPDX-License-Identifier: Apache-2.0 */

/*
 * VMM, settling -- what the program believes is made true
 *
 * Under the lock a pair is taken apart, and what the program has no more leaves
 * the table: the driver may give the same numbers out again before its call
 * returns. What the program still has stays there, and whoever names it waits
 * for the end of the errand.
 */

#include "base/config.h"
#include "base/log.h"
#include "report/counters.h"
#include "track/ledger.h"
#include "track/limit.h"
#include "track/vmm_inner.h"

#define TICKS 10 /* to a decay, as in route/tick.c */

/* Guarded by: the lock. */
static unsigned int tick;
static uint64_t being_created[SP_VMM_DEVICES];

/* errands */

static void begin_locked(struct sp_vmm_errand *errand, struct sp_vmm_memory *memory)
{
        struct sp_vmm_range *range = memory->range;

        *errand = (struct sp_vmm_errand){
                .handle = memory->handle,
                .base = range->base,
                .size = range->size,
                .releases = !memory->is_held,
                .frees = !range->is_held,
                .device = memory->prop.location.id,
                .counted = memory->counted,
        };
        sp_vmm_part_locked(memory);
        if (errand->releases)
                sp_vmm_drop_locked(memory);
        if (errand->frees)
                sp_vmm_drop_range_locked(range);
        sp_vmm_start_locked(errand);
}

/* What the driver does not let go counts for ever. */
static void run(struct sp_vmm_errand *errand)
{
        CUresult result = sp_driver.cuMemUnmap(errand->base, errand->size);

        if (errand->releases && result == CUDA_SUCCESS)
                result = sp_driver.cuMemRelease(errand->handle);
        if (result != CUDA_SUCCESS)
                sp_log(SP_LOG_INFO, "%zu MiB of the program's could not be unmapped (%d)",
                       errand->size >> 20, (int)result);
        else if (errand->releases)
                sp_limit_give(errand->device, errand->counted);
        if (errand->frees)
                sp_driver.cuMemAddressFree(errand->base, errand->size);
        sp_count_add(vmm_given_back, errand->releases);
        sp_vmm_enter(0, 0, 0);
        sp_vmm_end_locked(errand);
        sp_vmm_leave();
}

/* settling */

static void settle(CUmemGenericAllocationHandle handle, bool if_held)
{
        struct sp_vmm_memory *memory;
        struct sp_vmm_errand errand;
        bool settles;

        if (sp_vmm_quiet())
                return;
        sp_vmm_enter(handle, 0, 0);
        memory = sp_vmm_find_locked(handle);
        settles = memory && memory->range && !memory->is_mapped && (if_held || !memory->is_held);
        if (settles)
                begin_locked(&errand, memory);
        sp_vmm_leave();
        if (settles)
                run(&errand);
}

void sp_vmm_settle(CUmemGenericAllocationHandle handle)
{
        settle(handle, true);
}

void sp_vmm_settle_released(CUmemGenericAllocationHandle handle)
{
        settle(handle, false);
}

static struct sp_vmm_memory *idle_in_locked(CUdeviceptr base, size_t size)
{
        struct sp_vmm_memory *memory = NULL;

        while ((memory = sp_vmm_each_idle_locked(memory)))
                if (memory->range->base < base + size &&
                    base < memory->range->base + memory->range->size)
                        break;
        return memory;
}

void sp_vmm_settle_range(CUdeviceptr base, size_t size)
{
        struct sp_vmm_memory *memory;
        struct sp_vmm_errand errand;

        while (!sp_vmm_quiet()) {
                sp_vmm_enter(0, base, size);
                memory = idle_in_locked(base, size);
                if (memory)
                        begin_locked(&errand, memory);
                sp_vmm_leave();
                if (!memory)
                        return;
                run(&errand);
        }
}

/* access that the program did not give again */

static void take_access(CUdeviceptr base, size_t size, int device)
{
        const CUmemAccessDesc nothing = {
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                .flags = CU_MEM_ACCESS_FLAGS_PROT_NONE,
        };

        sp_driver.cuMemSetAccess(base, size, &nothing, 1);
}

/* The memory is mapped for the program, so only the program could unmap it meanwhile. */
static void show_access(CUdeviceptr base, size_t size)
{
        bool hides[SP_VMM_DEVICES] = {false};
        struct sp_vmm_memory *memory;
        CUdeviceptr at = 0;
        size_t length = 0;

        sp_vmm_enter(0, base, size);
        memory = sp_vmm_used_in_locked(base, size);
        for (int i = 0; memory && i < SP_VMM_DEVICES; i++) {
                hides[i] = memory->access[i] && !memory->shown[i];
                memory->access[i] = memory->shown[i];
        }
        if (memory) {
                at = memory->range->base;
                length = memory->range->size;
        }
        sp_vmm_leave();
        for (int i = 0; i < SP_VMM_DEVICES; i++)
                if (hides[i])
                        take_access(at, length, i);
}

void sp_vmm_show_access(CUdeviceptr address)
{
        show_access(address, 1);
}

/* forgetting */

void sp_vmm_forget(CUmemGenericAllocationHandle handle)
{
        struct sp_vmm_memory *memory;
        CUdeviceptr base = 0;
        size_t size = 0;

        sp_vmm_settle(handle);
        sp_vmm_enter(handle, 0, 0);
        memory = sp_vmm_find_locked(handle);
        if (memory && memory->range) {
                base = memory->range->base;
                size = memory->size;
        }
        sp_vmm_leave();
        if (!memory)
                return;
        if (size)
                show_access(base, size);
        sp_vmm_enter(handle, 0, 0);
        memory = sp_vmm_find_locked(handle);
        if (memory)
                sp_vmm_drop_locked(memory);
        sp_vmm_leave();
}

void sp_vmm_forget_range(CUdeviceptr base, size_t size)
{
        CUmemGenericAllocationHandle handle = 0;
        struct sp_vmm_memory *memory;

        sp_vmm_settle_range(base, size);
        do {
                sp_vmm_enter(0, base, size);
                memory = sp_vmm_used_in_locked(base, size);
                if (memory)
                        handle = memory->handle;
                sp_vmm_leave();
                if (memory)
                        sp_vmm_forget(handle);
        } while (memory);
}

/* While it is mapped the driver refuses to free it. */
void sp_vmm_forget_reservation(CUdeviceptr base, size_t size)
{
        struct sp_vmm_range *range;

        sp_vmm_settle_range(base, size);
        sp_vmm_enter(0, base, size);
        range = sp_vmm_find_range_locked(base);
        if (range && range->size == size && !range->memory)
                sp_vmm_drop_range_locked(range);
        sp_vmm_leave();
}

/* how much is kept */

static uint64_t kept_locked(int device)
{
        struct sp_vmm_memory *memory = NULL;
        uint64_t bytes = 0;

        while ((memory = sp_vmm_each_idle_locked(memory)))
                if (!memory->is_held && memory->prop.location.id == device)
                        bytes += memory->size;
        return bytes;
}

uint64_t sp_vmm_kept(int device)
{
        uint64_t bytes;

        if (sp_vmm_quiet())
                return 0;
        sp_vmm_enter(0, 0, 0);
        bytes = kept_locked(device);
        sp_vmm_leave();
        return bytes;
}

/* Of @device, and since before @age ticks. */
static size_t give_oldest(int device, unsigned int age)
{
        struct sp_vmm_memory *memory = NULL;
        struct sp_vmm_errand errand;

        sp_vmm_enter(0, 0, 0);
        while ((memory = sp_vmm_each_idle_locked(memory)))
                if (!memory->is_held && (device < 0 || memory->prop.location.id == device) &&
                    tick - memory->since >= age)
                        break;
        if (memory)
                begin_locked(&errand, memory);
        sp_vmm_leave();
        if (!memory)
                return 0;
        run(&errand);
        return errand.size;
}

size_t sp_vmm_give_oldest(int device)
{
        return give_oldest(device, 0);
}

/* Who is short of memory gets what another thread gives back just now. */
static uint64_t wait_for_others(int device)
{
        uint64_t bytes;

        if (sp_vmm_quiet())
                return 0;
        sp_vmm_enter(0, 0, 0);
        bytes = sp_vmm_going_locked(device);
        while (sp_vmm_going_locked(device))
                sp_vmm_pause_locked();
        sp_vmm_leave();
        return bytes;
}

uint64_t sp_vmm_trim(int device, uint64_t keep)
{
        uint64_t given = 0;

        while (sp_vmm_kept(device) > keep)
                given += give_oldest(device, 0);
        return given + wait_for_others(device);
}

void sp_vmm_released_locked(struct sp_vmm_memory *memory)
{
        memory->since = tick;
}

void sp_vmm_tick(void)
{
        if (sp_vmm_quiet())
                return;
        sp_vmm_enter(0, 0, 0);
        tick++;
        sp_vmm_leave();
        while (give_oldest(-1, TICKS + 1))
                ;
}

/* room for more */

/* A program that uses a few sizes in turn is never at its peak in all of them. With a limit there
 * is none: what was within it once is again. */
static uint64_t slack(void)
{
        return sp_limit_is_set() || sp_config()->growth == SP_GROWTH_TIGHT ? 0 : SP_VMM_SLACK;
}

static bool is_too_much(int device)
{
        uint64_t held;
        bool is_more;

        sp_vmm_enter(0, 0, 0);
        held = kept_locked(device) + sp_vmm_going_locked(device);
        is_more = held && held > sp_ledger_below_peak(device, being_created[device]) + slack();
        sp_vmm_leave();
        return is_more;
}

void sp_vmm_begin_create(int device, size_t size)
{
        if (device < 0 || device >= SP_VMM_DEVICES)
                return;
        sp_vmm_enter(0, 0, 0);
        being_created[device] += size;
        sp_vmm_leave();
        while (is_too_much(device))
                if (!give_oldest(device, 0))
                        wait_for_others(device);
}

void sp_vmm_end_create(int device, size_t size)
{
        if (device < 0 || device >= SP_VMM_DEVICES)
                return;
        sp_vmm_enter(0, 0, 0);
        being_created[device] -= size;
        sp_vmm_leave();
}
