/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Table -- which allocation holds an address
 *
 * A sorted array of blocks that never overlap. Blocks that cuMemFreeAsync()
 * retired stay in it until their turn in the stream has come: to the program
 * they are unknown addresses, to the device they are still mapped.
 */

#include <stdlib.h>
#include <string.h>
#include "control.h"
#include "memory.h"

static struct sim_block **blocks;
static size_t count, room;

static const char *const kinds[] = {
        [SIM_MEMORY_DEVICE] = "cuMemAlloc",
        [SIM_MEMORY_POOL] = "cuMemAllocAsync",
        [SIM_MEMORY_MANAGED] = "cuMemAllocManaged",
        [SIM_MEMORY_PINNED] = "cuMemHostAlloc",
        [SIM_MEMORY_REGISTERED] = "cuMemHostRegister",
        [SIM_MEMORY_VMM] = "cuMemMap",
        [SIM_MEMORY_GRAPH] = "graph memory",
        [SIM_MEMORY_IMPORTED] = "cuIpcOpenMemHandle",
};

/* Index of the first block that starts behind the address. */
static size_t behind(uint64_t address)
{
        size_t low = 0, high = count;

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (blocks[middle]->allocation.base > address)
                        high = middle;
                else
                        low = middle + 1;
        }
        return low;
}

struct sim_block *sim_block_new(enum sim_memory_kind kind, uint64_t base, size_t bytes,
                                size_t reserved)
{
        struct sim_block *block = calloc(1, sizeof(*block));
        size_t at = behind(base);

        if (count == room) {
                room = room ? 2 * room : 256;
                blocks = realloc(blocks, room * sizeof(*blocks));
        }
        if (!block || !blocks)
                sim_abort("no host memory for the table of allocations");
        if (sim_block_overlaps(base, reserved))
                sim_abort("%llx is given out twice", (unsigned long long)base);
        block->allocation = (struct sim_allocation){
                .base = base,
                .bytes = bytes,
                .reserved = reserved,
                .kind = kind,
                .buffer_id = sim_unique(),
        };
        memmove(&blocks[at + 1], &blocks[at], (count - at) * sizeof(*blocks));
        blocks[at] = block;
        count++;
        sim_owner_begin(SIM_LEVEL_DRIVER, base, bytes, kinds[kind]);
        return block;
}

void sim_block_retire(struct sim_block *block)
{
        block->allocation.freeing = true;
        sim_owner_end(SIM_LEVEL_DRIVER, block->allocation.base);
}

void sim_block_free(struct sim_block *block)
{
        size_t at = behind(block->allocation.base) - 1;

        if (!block->allocation.freeing)
                sim_owner_end(SIM_LEVEL_DRIVER, block->allocation.base);
        count--;
        memmove(&blocks[at], &blocks[at + 1], (count - at) * sizeof(*blocks));
        sim_operation_put(block->freed);
        free(block);
}

struct sim_block *sim_block_find(uint64_t address)
{
        size_t at = behind(address);
        struct sim_block *block = at ? blocks[at - 1] : NULL;

        if (!block || address - block->allocation.base >= block->allocation.bytes)
                return NULL;
        return block;
}

struct sim_block *sim_block_at(uint64_t base)
{
        struct sim_block *block = sim_block_find(base);

        if (!block || block->allocation.base != base || block->allocation.freeing)
                return NULL;
        return block;
}

bool sim_block_overlaps(uint64_t base, uint64_t bytes)
{
        size_t at = behind(base);

        if (at && base - blocks[at - 1]->allocation.base < blocks[at - 1]->allocation.reserved)
                return true;
        return at < count && blocks[at]->allocation.base - base < bytes;
}

size_t sim_block_count(void)
{
        return count;
}

struct sim_block *sim_block_nth(size_t index)
{
        return blocks[index];
}

struct sim_allocation *sim_memory_find(CUdeviceptr address)
{
        struct sim_block *block = sim_block_find(address);

        return block && !block->allocation.freeing ? &block->allocation : NULL;
}

CUresult sim_memory_check(CUdeviceptr address, size_t bytes)
{
        while (bytes) {
                struct sim_block *block = sim_block_find(address);
                size_t left;

                if (!block || block->allocation.freeing)
                        return CUDA_ERROR_INVALID_VALUE;
                if (block->allocation.kind == SIM_MEMORY_VMM && !sim_vmm_has_access(block))
                        return CUDA_ERROR_INVALID_VALUE;
                left = block->allocation.base + block->allocation.bytes - address;
                if (left >= bytes)
                        return CUDA_SUCCESS;
                if (block->allocation.kind != SIM_MEMORY_VMM)
                        return CUDA_ERROR_INVALID_VALUE;
                address += left;
                bytes -= left;
        }
        return CUDA_SUCCESS;
}

bool sim_memory_is_mapped(CUdeviceptr address, size_t bytes)
{
        while (bytes) {
                size_t at = behind(address);
                struct sim_block *block = at ? blocks[at - 1] : NULL;
                size_t left;

                if (!block || address - block->allocation.base >= block->allocation.reserved)
                        return sim_pool_is_backed(address, bytes);
                if (block->allocation.kind == SIM_MEMORY_VMM && !sim_vmm_has_access(block))
                        return false;
                left = block->allocation.base + block->allocation.reserved - address;
                if (left >= bytes)
                        return true;
                address += left;
                bytes -= left;
        }
        return true;
}

size_t sim_live_allocations(void)
{
        size_t live = 0;

        pthread_mutex_lock(&sim_mutex);
        for (size_t i = 0; i < count; i++)
                live += !blocks[i]->allocation.freeing;
        pthread_mutex_unlock(&sim_mutex);
        return live;
}
