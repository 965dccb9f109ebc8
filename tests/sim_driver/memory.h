/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

/*
 * Memory -- what the memory half of the simulated driver shares
 *
 * Three resources, kept apart as on the device:
 *   - addresses: one arena for all devices, handed out in whole pages (space.c);
 *   - physical memory: an offset in the device's file, counted against its size
 *     (space.c), so one piece can be seen at two addresses and in two processes;
 *   - allocations: which bytes belong to which call of the program (table.c).
 *
 * All of it is guarded by sim_mutex.
 */

#include "sim.h"

#pragma GCC visibility push(hidden)

#define SIM_PAGE ((uint64_t)2 << 20)
#define SIM_STEP 512 /* alignment of small allocations and of pool memory (M17) */

static inline uint64_t sim_round(uint64_t bytes, uint64_t step)
{
        return (bytes + step - 1) / step * step;
}

/* ---- extents.c: free ranges, lowest address first ---- */

struct sim_extent {
        uint64_t base;
        uint64_t bytes;
};

/* Sorted, disjoint and never adjoining. */
struct sim_extents {
        struct sim_extent *list;
        size_t count;
        size_t room;
};

void sim_extents_give(struct sim_extents *extents, uint64_t base, uint64_t bytes);
bool sim_extents_take(struct sim_extents *extents, uint64_t bytes, uint64_t align, uint64_t *base);
bool sim_extents_take_at(struct sim_extents *extents, uint64_t base, uint64_t bytes);
void sim_extents_fini(struct sim_extents *extents);

/* ---- space.c: addresses and physical memory ---- */

bool sim_space_start(void);
bool sim_space_take(uint64_t bytes, uint64_t align, uint64_t *base);
bool sim_space_take_at(uint64_t base, uint64_t bytes);
void sim_space_give(uint64_t base, uint64_t bytes);

bool sim_physical_fits(const struct sim_device *device, uint64_t bytes);
/* Gives back what nobody uses, of every owner. */
void sim_physical_reclaim(struct sim_device *device);
/* Reclaims when the device is full; 2 if that was not enough. */
CUresult sim_physical_take(struct sim_device *device, uint64_t bytes, uint64_t *offset);
void sim_physical_give(struct sim_device *device, uint64_t offset, uint64_t bytes);
/* Counts no more, but the bytes stay: another process may have them. */
void sim_physical_leave(struct sim_device *device, uint64_t bytes);
int sim_physical_file(const struct sim_device *device);
/* A file of another process by its descriptor there; -1: it is gone. The caller closes it. */
int sim_open_file(int process, int file);

/* Maps the pages without access, gives or takes access, and hides them again. */
void sim_space_map(uint64_t base, const struct sim_device *device, uint64_t offset, uint64_t bytes);
void sim_space_map_file(uint64_t base, int file, uint64_t offset, uint64_t bytes);
void sim_space_protect(uint64_t base, uint64_t bytes, int protection);
void sim_space_unmap(uint64_t base, uint64_t bytes);

/* ---- table.c: allocations by address ---- */

struct sim_chunk;

struct sim_block {
        struct sim_allocation allocation; /* first: sim_memory_find() returns it */
        unsigned int flags;               /* as the program gave them: host and managed memory */
        bool sync_memops;
        uint64_t physical;       /* offset of the first byte in the device's file */
        struct sim_chunk *chunk; /* the page that small allocations share, or null */

        /* By a cuMemFreeAsync() of memory that no pool owns. */
        struct sim_operation *freed;
        uint64_t freed_stream;

        unsigned int opened;  /* imported: cuIpcOpenMemHandle() calls not closed yet */
        uint64_t exporter_id; /* imported: what the handle names */
        int32_t exporter;     /* and whose it is */
        void *entry;          /* pool: its tile; VMM: its mapping; imported: external memory */
};

/* A new block in the table, with a new buffer id. The oracle hears of it. */
struct sim_block *sim_block_new(enum sim_memory_kind kind, uint64_t base, size_t bytes,
                                size_t reserved);
/* Out of the table and gone; addresses and bytes are the caller's to give back. */
void sim_block_free(struct sim_block *block);
/* Dead to the program, though its bytes stay mapped. */
void sim_block_retire(struct sim_block *block);
/* The block that holds the address, also a retired one; or null. */
struct sim_block *sim_block_find(uint64_t address);
/* The live block that starts there, or null. */
struct sim_block *sim_block_at(uint64_t base);
/* Does the range touch a block? */
bool sim_block_overlaps(uint64_t base, uint64_t bytes);
/* For loops that may free the block they are given: counts down from sim_block_count(). */
size_t sim_block_count(void);
struct sim_block *sim_block_nth(size_t index);

/* ---- memory.c ---- */

/* Releases a block of any kind that is not pool, VMM or graph memory. */
void sim_memory_release(struct sim_block *block);
/* Waits for the block's context, then releases it; 1 if somebody else did meanwhile. */
CUresult sim_memory_free_after_barrier(struct sim_block *block);
/* The context is going: what dies with it (L2). */
void sim_memory_close(struct sim_context *context);
/* Blocks freed by cuMemFreeAsync() whose turn has come, seen by a sync of this stream or context.
 */
void sim_memory_synchronized(struct sim_context *context, uint64_t stream_id);
/* Every block whose turn has come: the device is full. */
void sim_memory_reap(void);
/* cuMemFreeAsync() of memory that no pool owns. */
CUresult sim_memory_free_async(struct sim_block *block, struct sim_stream *stream);

/* ---- pool.c ---- */

void sim_pool_start(struct sim_device *device);
/* cuMemFree() of pool memory: reusable at once, by anybody (M19). */
void sim_pool_free_now(struct sim_block *block);
/* Gives idle pool memory of the device back (U24). */
void sim_pool_reclaim(struct sim_device *device);
CUmemoryPool sim_pool_handle(struct sim_pool *pool);
/* Is the range pool memory that has not gone back to the device? */
bool sim_pool_is_backed(uint64_t address, uint64_t bytes);

/* ---- vmm.c ---- */

bool sim_vmm_reservation(uint64_t address, uint64_t *base, uint64_t *bytes);
bool sim_vmm_has_access(const struct sim_block *block);
int sim_vmm_access(const struct sim_block *block, const struct sim_device *device);
bool sim_vmm_is_rdma_capable(const struct sim_block *block);
int sim_vmm_handle_types(const struct sim_block *block);

/* Physical memory as another process has to know it. */
struct sim_shared {
        int32_t process;
        int32_t file; /* the device's, in that process */
        int32_t device;
        uint32_t unused;
        uint64_t handle; /* in that process */
        uint64_t offset;
        uint64_t bytes;
};

/* False if it was not made to be exported, and for what is no handle. Its bytes stay from then on,
 * because nobody here knows when the last importer has gone. */
bool sim_vmm_export(CUmemGenericAllocationHandle handle, struct sim_shared *shared);
/* A handle to it, in its own process one more reference to the same; 0: it is gone. */
CUmemGenericAllocationHandle sim_vmm_import(const struct sim_shared *shared);

/* ---- array.c ---- */

/* The arrays of a dying context. */
void sim_arrays_close(struct sim_context *context);

/* ---- device.c, context.c ---- */

/* Reads SIM_DEVICES and SIM_MEMORY; false: no device. */
bool sim_devices_start(void);
/* The current context answers nothing but the code from now on. */
void sim_context_poison(CUresult code);
/* Is a context current at all, and which, whatever its state? Null: none. */
struct sim_context *sim_context_peek(void);
/* 0, or what even a call that needs no context answers in this one: 709, a sticky error. */
CUresult sim_context_soft(void);

#pragma GCC visibility pop

#endif
