/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_VMM_INNER_H
#define SP_TRACK_VMM_INNER_H

/*
 * VMM, inside -- what its files share
 *
 *   vmm.c          what the program's calls do without the driver
 *   vmm_table.c    memory, ranges, and which of them are idle
 *   vmm_settle.c   what the program believes is made true
 */

#include <stdint.h>

#include "base/table.h"
#include "track/vmm.h"

#define SP_VMM_LARGEST   ((size_t)32 << 20)
#define SP_VMM_KEPT_MOST ((size_t)64 << 20)
#define SP_VMM_SLACK     ((size_t)16 << 20) /* beyond the peak */
#define SP_VMM_DEVICES   32

struct sp_vmm_range;

/* Guarded by: the lock behind sp_vmm_enter(). */
struct sp_vmm_memory {
        CUmemGenericAllocationHandle handle;
        CUmemAllocationProp prop;
        size_t size;
        bool is_held;       /* by the program; else: */
        size_t counted;     /* against the limit */
        unsigned int since; /* the tick at which it was released */

        struct sp_vmm_range *range; /* in which the driver has it mapped, or NULL */
        bool is_mapped;             /* for the program, too */
        struct sp_vmm_memory *next; /* of the idle ones */

        /* By device: CUmemAccess_flags plus 1, or 0. What was set, and what was set since the
         * program mapped it. */
        uint8_t access[SP_VMM_DEVICES], shown[SP_VMM_DEVICES];

        /* Its thread was given only one half of the pair so far, and will ask for the other. */
        const void *taker;
        UT_hash_handle hh;
};

struct sp_vmm_range {
        CUdeviceptr base;
        size_t size;
        bool is_held;
        struct sp_vmm_memory *memory; /* a pair, or NULL */
        UT_hash_handle hh;
};

/* What a thread tells the driver at the moment, without the lock. On its stack. */
struct sp_vmm_errand {
        CUmemGenericAllocationHandle handle;
        CUdeviceptr base;
        size_t size;
        bool releases, frees;
        int device;
        size_t counted;
        struct sp_vmm_errand *next;
};

/** sp_vmm_enter() - the lock, and nobody settles anything that these name; 0 names nothing. */
void sp_vmm_enter(CUmemGenericAllocationHandle handle, CUdeviceptr base, size_t size);
void sp_vmm_leave(void);

/** sp_vmm_pause_locked() - the lock is free for a moment. */
void sp_vmm_pause_locked(void);

/* All of these need the lock. */

struct sp_vmm_memory *sp_vmm_find_locked(CUmemGenericAllocationHandle handle);
struct sp_vmm_range *sp_vmm_find_range_locked(CUdeviceptr base);

/** sp_vmm_pair_locked() - what is mapped at exactly this range, or NULL. */
struct sp_vmm_memory *sp_vmm_pair_locked(CUdeviceptr base, size_t size);

/** sp_vmm_each_idle_locked() - oldest first: NULL for the first; NULL after the last. */
struct sp_vmm_memory *sp_vmm_each_idle_locked(const struct sp_vmm_memory *memory);

/** sp_vmm_idle_locked() - the pair becomes the youngest idle one. */
void sp_vmm_idle_locked(struct sp_vmm_memory *memory);
void sp_vmm_busy_locked(struct sp_vmm_memory *memory);

/** sp_vmm_released_locked() - from now on it ages. */
void sp_vmm_released_locked(struct sp_vmm_memory *memory);

void sp_vmm_part_locked(struct sp_vmm_memory *memory);
void sp_vmm_drop_locked(struct sp_vmm_memory *memory);
void sp_vmm_drop_range_locked(struct sp_vmm_range *range);

/** sp_vmm_used_in_locked() - a pair that is in use within, or across, a range; NULL if none is. */
struct sp_vmm_memory *sp_vmm_used_in_locked(CUdeviceptr base, size_t size);

/** sp_vmm_quiet() - nothing is idle, and nothing is being settled. */
bool sp_vmm_quiet(void);

void sp_vmm_start_locked(struct sp_vmm_errand *errand);
void sp_vmm_end_locked(struct sp_vmm_errand *errand);

/** sp_vmm_going_locked() - bytes on @device that the driver is being given back. */
uint64_t sp_vmm_going_locked(int device);

/** sp_vmm_give_oldest() - the oldest of what is kept on @device goes; the bytes, 0 if there is
 * none. */
size_t sp_vmm_give_oldest(int device);

#endif
