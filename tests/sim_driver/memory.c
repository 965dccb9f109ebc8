/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Memory -- cuMemAlloc and its relatives, and cuMemFree
 *
 * Up to 1 MiB, allocations of a context share pages in steps of 512 bytes; above
 * that each has pages of its own (M17, M18). cuMemFree() waits for the context
 * that owns the block, not for the current one, and needs no current context at
 * all (M1, M14, M16); of pool memory it waits for nothing (M4).
 */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "memory.h"

#define SMALL ((size_t)1 << 20) /* the largest that shares a page */
#define PITCH 512

/* A page that small allocations of one context share. */
struct sim_chunk {
        struct sim_context *context;
        uint64_t base;
        uint64_t physical;
        struct sim_extents room;
        struct sim_chunk *next;
};

static struct sim_chunk *chunks;

/* New pages of the device, readable and writable. */
static CUresult take_pages(struct sim_device *device, uint64_t bytes, uint64_t *base,
                           uint64_t *physical)
{
        CUresult result = sim_physical_take(device, bytes, physical);

        if (result != CUDA_SUCCESS)
                return result;
        if (!sim_space_take(bytes, SIM_PAGE, base)) {
                sim_physical_give(device, *physical, bytes);
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
        sim_space_map(*base, device, *physical, bytes);
        sim_space_protect(*base, bytes, PROT_READ | PROT_WRITE);
        return CUDA_SUCCESS;
}

static void give_pages(struct sim_device *device, uint64_t bytes, uint64_t base, uint64_t physical)
{
        sim_space_unmap(base, bytes);
        sim_space_give(base, bytes);
        sim_physical_give(device, physical, bytes);
}

static CUresult chunk_new(struct sim_context *context, struct sim_chunk **chunk)
{
        struct sim_chunk *new = calloc(1, sizeof(*new));
        CUresult result;

        if (!new)
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = take_pages(context->device, SIM_PAGE, &new->base, &new->physical);
        if (result != CUDA_SUCCESS) {
                free(new);
                return result;
        }
        new->context = context;
        sim_extents_give(&new->room, new->base, SIM_PAGE);
        new->next = chunks;
        chunks = new;
        *chunk = new;
        return CUDA_SUCCESS;
}

static void chunk_put(struct sim_chunk *chunk, uint64_t base, uint64_t bytes)
{
        struct sim_chunk **link = &chunks;

        sim_extents_give(&chunk->room, base, bytes);
        if (chunk->room.list[0].bytes != SIM_PAGE)
                return;
        while (*link != chunk)
                link = &(*link)->next;
        *link = chunk->next;
        give_pages(chunk->context->device, SIM_PAGE, chunk->base, chunk->physical);
        sim_extents_fini(&chunk->room);
        free(chunk);
}

static CUresult take_small(struct sim_context *context, uint64_t bytes, struct sim_chunk **chunk,
                           uint64_t *base)
{
        CUresult result;

        for (*chunk = chunks; *chunk; *chunk = (*chunk)->next) {
                if ((*chunk)->context == context &&
                    sim_extents_take(&(*chunk)->room, bytes, SIM_STEP, base))
                        return CUDA_SUCCESS;
        }
        result = chunk_new(context, chunk);
        if (result == CUDA_SUCCESS)
                sim_extents_take(&(*chunk)->room, bytes, SIM_STEP, base);
        return result;
}

/* The context that owns what is allocated in this one: memory is the primary's, not a green one's.
 */
static struct sim_context *owner(struct sim_context *context)
{
        return context->green_parent ? context->green_parent : context;
}

/* @context: whose memory it is; null for a graph's. */
static CUresult take(struct sim_context *context, struct sim_device *device,
                     enum sim_memory_kind kind, size_t bytes, struct sim_block **block)
{
        struct sim_chunk *chunk = NULL;
        uint64_t base, physical = 0, reserved;
        CUresult result;

        if (bytes > device->total_bytes)
                return CUDA_ERROR_OUT_OF_MEMORY;
        reserved = sim_round(bytes, context && bytes <= SMALL ? SIM_STEP : SIM_PAGE);
        if (context && bytes <= SMALL)
                result = take_small(context, reserved, &chunk, &base);
        else
                result = take_pages(device, reserved, &base, &physical);
        if (result != CUDA_SUCCESS)
                return result;
        *block = sim_block_new(kind, base, bytes, reserved);
        (*block)->allocation.context = context;
        (*block)->allocation.device = device;
        (*block)->chunk = chunk;
        (*block)->physical = chunk ? chunk->physical + (base - chunk->base) : physical;
        return CUDA_SUCCESS;
}

void sim_memory_release(struct sim_block *block)
{
        struct sim_allocation was = block->allocation;
        struct sim_chunk *chunk = block->chunk;
        uint64_t physical = block->physical;

        sim_block_free(block);
        switch (was.kind) {
        case SIM_MEMORY_DEVICE:
        case SIM_MEMORY_GRAPH:
                if (chunk)
                        chunk_put(chunk, was.base, was.reserved);
                else
                        give_pages(was.device, was.reserved, was.base, physical);
                break;
        case SIM_MEMORY_MANAGED:
        case SIM_MEMORY_PINNED:
        case SIM_MEMORY_IMPORTED: /* which may begin inside its first page */
                was.reserved += was.base % SIM_PAGE;
                was.base -= was.base % SIM_PAGE;
                sim_space_unmap(was.base, was.reserved);
                sim_space_give(was.base, was.reserved);
                break;
        case SIM_MEMORY_REGISTERED:
                break;
        case SIM_MEMORY_POOL:
        case SIM_MEMORY_VMM:
                sim_abort("memory of kind %d has an owner of its own", (int)was.kind);
        }
}

void sim_memory_close(struct sim_context *context)
{
        for (size_t i = sim_block_count(); i--;) {
                struct sim_block *block = sim_block_nth(i);

                if (block->allocation.context == context)
                        sim_memory_release(block);
        }
}

/* ---- what cuMemFreeAsync freed and no pool owns (A4, A19) ---- */

/* Imported memory that the program frees as if it were its own; cuIpcCloseMemHandle() has the rest.
 */
static bool is_freed_by_program(const struct sim_block *block)
{
        return block->allocation.kind == SIM_MEMORY_IMPORTED &&
               (block->allocation.pool || block->entry);
}

CUresult sim_memory_free_async(struct sim_block *block, struct sim_stream *stream)
{
        if (block->allocation.kind == SIM_MEMORY_GRAPH)
                return sim_graph_memory_free(block->allocation.base, stream);
        const struct sim_allocation *allocation = &block->allocation;

        if (allocation->kind == SIM_MEMORY_MANAGED)
                return CUDA_ERROR_NOT_SUPPORTED;
        if (allocation->kind != SIM_MEMORY_DEVICE && !is_freed_by_program(block))
                return CUDA_ERROR_INVALID_VALUE;
        block->freed = sim_mark(stream, "cuMemFreeAsync");
        block->freed_stream = stream->id;
        sim_block_retire(block);
        return CUDA_SUCCESS;
}

void sim_memory_synchronized(struct sim_context *context, uint64_t stream_id)
{
        for (size_t i = sim_block_count(); i--;) {
                struct sim_block *block = sim_block_nth(i);

                if (!block->allocation.freeing || !sim_operation_done(block->freed))
                        continue;
                if (context ? block->allocation.context == context
                            : block->freed_stream == stream_id)
                        sim_memory_release(block);
        }
}

void sim_memory_reap(void)
{
        for (size_t i = sim_block_count(); i--;) {
                struct sim_block *block = sim_block_nth(i);

                if (block->allocation.freeing && sim_operation_done(block->freed))
                        sim_memory_release(block);
        }
}

/* ---- graphs ---- */

CUresult sim_graph_memory_take(struct sim_device *device, size_t bytes, CUdeviceptr *address)
{
        struct sim_block *block;
        CUresult result = take(NULL, device, SIM_MEMORY_GRAPH, bytes, &block);

        if (result == CUDA_SUCCESS)
                *address = block->allocation.base;
        return result;
}

void sim_graph_memory_give(CUdeviceptr address)
{
        struct sim_block *block = sim_block_at(address);

        if (!block || block->allocation.kind != SIM_MEMORY_GRAPH)
                sim_abort("%llx is no memory of a graph", (unsigned long long)address);
        sim_memory_release(block);
}

/* ---- the calls ---- */

CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
        SIM_ENTER(cuMemAlloc_v2);
        struct sim_context *context;
        struct sim_block *block;
        CUresult result = sim_capture_unsafe();

        if (result != CUDA_SUCCESS)
                return result;
        if (address && !bytes)
                *address = 0;
        if (!address || !bytes)
                return CUDA_ERROR_INVALID_VALUE;
        result = sim_current(&context);
        if (result != CUDA_SUCCESS)
                return result;
        result = take(owner(context), context->device, SIM_MEMORY_DEVICE, bytes, &block);
        *address = result == CUDA_SUCCESS ? block->allocation.base : 0;
        return result;
}

CUresult CUDAAPI cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width,
                                    size_t height, unsigned int element_bytes)
{
        SIM_ENTER(cuMemAllocPitch_v2);
        struct sim_context *context;
        struct sim_block *block;
        size_t row = sim_round(width, PITCH), bytes;
        CUresult result = sim_capture_unsafe();

        if (result != CUDA_SUCCESS)
                return result;
        if (!address || !pitch || !width || !height ||
            (element_bytes != 4 && element_bytes != 8 && element_bytes != 16))
                return CUDA_ERROR_INVALID_VALUE;
        result = sim_current(&context);
        if (result != CUDA_SUCCESS)
                return result;
        if (row < width || __builtin_mul_overflow(row, height, &bytes))
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = take(owner(context), context->device, SIM_MEMORY_DEVICE, bytes, &block);
        if (result != CUDA_SUCCESS)
                return result;
        *address = block->allocation.base;
        *pitch = row;
        return CUDA_SUCCESS;
}

/* Host memory that the device sees: it is not counted until it migrates, which it never does. */
CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned int flags)
{
        SIM_ENTER(cuMemAllocManaged);
        struct sim_context *context;
        struct sim_block *block;
        uint64_t base, reserved = sim_round(bytes, SIM_PAGE);
        CUresult result = sim_capture_unsafe();

        if (result != CUDA_SUCCESS)
                return result;
        if (!address || !bytes || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
                return CUDA_ERROR_INVALID_VALUE;
        result = sim_current(&context);
        if (result != CUDA_SUCCESS)
                return result;
        if (reserved < bytes || !sim_space_take(reserved, SIM_PAGE, &base))
                return CUDA_ERROR_OUT_OF_MEMORY;
        sim_space_protect(base, reserved, PROT_READ | PROT_WRITE);
        block = sim_block_new(SIM_MEMORY_MANAGED, base, bytes, reserved);
        block->allocation.context = owner(context);
        block->allocation.device = context->device;
        block->flags = flags;
        block->sync_memops = true;
        *address = base;
        return CUDA_SUCCESS;
}

CUresult sim_memory_free_after_barrier(struct sim_block *block)
{
        uint64_t base = block->allocation.base, id = block->allocation.buffer_id;

        sim_wait_context(block->allocation.context);

        /* Whoever else freed it while we slept was right, and we are the double free. */
        block = sim_block_at(base);
        if (!block || block->allocation.buffer_id != id)
                return CUDA_ERROR_INVALID_VALUE;
        sim_memory_release(block);
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemFree_v2(CUdeviceptr address)
{
        SIM_ENTER(cuMemFree_v2);
        struct sim_block *block = sim_block_find(address);
        CUresult result = sim_capture_unsafe();

        if (result == CUDA_SUCCESS)
                result = sim_context_soft();
        if (result != CUDA_SUCCESS || !address)
                return result;
        if (!block || block->allocation.base != address)
                return CUDA_ERROR_INVALID_VALUE;
        if (block->allocation.freeing) /* the real driver says 0 and dies later (M5) */
                sim_abort("cuMemFree of %llx after cuMemFreeAsync", (unsigned long long)address);
        switch (block->allocation.kind) {
        case SIM_MEMORY_DEVICE:
        case SIM_MEMORY_MANAGED:
                return sim_memory_free_after_barrier(block);
        case SIM_MEMORY_POOL:
                sim_pool_free_now(block);
                return CUDA_SUCCESS;
        case SIM_MEMORY_GRAPH:
                return sim_graph_memory_free(address, NULL);
        case SIM_MEMORY_IMPORTED:
                if (!is_freed_by_program(block))
                        return CUDA_ERROR_INVALID_VALUE;
                sim_memory_release(block);
                return CUDA_SUCCESS;
        default:
                return CUDA_ERROR_INVALID_VALUE;
        }
}

CUresult CUDAAPI cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
        SIM_ENTER(cuMemGetInfo_v2);
        struct sim_context *context;
        CUresult result = sim_current(&context);

        if (result != CUDA_SUCCESS)
                return result;
        if (free_bytes)
                *free_bytes = context->device->total_bytes - context->device->used_bytes;
        if (total_bytes)
                *total_bytes = context->device->total_bytes;
        return CUDA_SUCCESS;
}
