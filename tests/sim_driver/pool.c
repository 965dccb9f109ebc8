/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Pool -- the calls of the stream-ordered allocator
 *
 * Memory comes from the current pool of the stream's device, whatever context
 * is current (A7), and belongs to no context: it outlives all of them (A20).
 */

#include <stdlib.h>
#include <string.h>
#include "pool.h"

static struct sim_pool *pools;

struct sim_pool *sim_pool_new(struct sim_device *device)
{
        struct sim_pool *pool = sim_handle_new(SIM_POOL, sizeof(*pool));

        pool->device = device;
        pool->id = sim_unique();
        if (!sim_tiles_init(pool)) {
                sim_handle_free(&pool->handle);
                return NULL;
        }
        pool->props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        pool->props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        pool->props.location.id = device->ordinal;
        pool->access[device->ordinal] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        pool->follow = pool->opportunistic = pool->internal = 1;
        pool->next = pools;
        pools = pool;
        return pool;
}

/* A destroyed pool goes when its last allocation is freed and that free is complete. */
static void pool_free_if_unused(struct sim_pool *pool)
{
        struct sim_pool **link = &pools;

        if (!pool->destroyed || pool->live)
                return;
        sim_tiles_observe_all(pool);
        sim_tiles_trim(pool, 0);
        if (pool->reserved)
                return;
        while (*link != pool)
                link = &(*link)->next;
        *link = pool->next;
        sim_tiles_fini(pool);
        sim_handle_free(&pool->handle);
}

void sim_pool_start(struct sim_device *device)
{
        device->default_pool = sim_pool_new(device);
        if (!device->default_pool)
                sim_abort("no addresses for a pool");
        device->current_pool = device->default_pool;
}

CUmemoryPool sim_pool_handle(struct sim_pool *pool)
{
        return (CUmemoryPool)pool;
}

CUresult sim_pool_resolve(CUmemoryPool handle, struct sim_pool **pool)
{
        struct sim_pool *found = (struct sim_pool *)handle;

        if (!found)
                return CUDA_ERROR_INVALID_VALUE;
        sim_handle_check(found, SIM_POOL);
        if (found->destroyed)
                sim_abort("%p is a destroyed pool", (void *)handle);
        *pool = found;
        return CUDA_SUCCESS;
}

struct sim_pool *sim_pool_by_id(uint64_t id)
{
        struct sim_pool *pool = pools;

        while (pool && pool->id != id)
                pool = pool->next;
        return pool && !pool->destroyed ? pool : NULL;
}

bool sim_pool_is_backed(uint64_t address, uint64_t bytes)
{
        for (const struct sim_pool *pool = pools; pool; pool = pool->next) {
                if (sim_tiles_are_backed(pool, address, bytes))
                        return true;
        }
        return false;
}

void sim_pool_synchronized(struct sim_context *context, uint64_t stream_id)
{
        sim_memory_synchronized(context, stream_id);
        for (struct sim_pool *pool = pools, *next; pool; pool = next) {
                next = pool->next;
                sim_tiles_observe(pool, context ? context->id : 0, stream_id);
                sim_tiles_trim(pool, pool->threshold);
                pool_free_if_unused(pool);
        }
}

void sim_pool_reclaim(struct sim_device *device)
{
        for (struct sim_pool *pool = pools; pool; pool = pool->next) {
                if (pool->device != device)
                        continue;
                sim_tiles_observe_all(pool);
                sim_tiles_trim(pool, 0);
        }
}

/* ---- allocations ---- */

static CUresult take(struct sim_pool *pool, struct sim_stream *stream, size_t bytes,
                     CUdeviceptr *address)
{
        struct sim_tile *tile;
        struct sim_block *block;
        CUresult result = sim_tiles_take(pool, stream, bytes, &tile);

        if (result != CUDA_SUCCESS)
                return result;
        block = sim_block_new(SIM_MEMORY_POOL, tile->base, bytes, tile->bytes);
        block->allocation.device = pool->device;
        block->allocation.pool = pool;
        block->entry = tile;
        sim_operation_put(sim_mark(stream, "cuMemAllocAsync"));
        *address = tile->base;
        return CUDA_SUCCESS;
}

static void give(struct sim_block *block, struct sim_stream *stream)
{
        struct sim_tile *tile = block->entry;
        struct sim_pool *pool = tile->pool;

        sim_block_free(block);
        sim_tiles_give(tile, stream);
        pool_free_if_unused(pool);
}

void sim_pool_free_now(struct sim_block *block)
{
        give(block, NULL);
}

/* In a fork child there is no memory to be had, nor anything that could take some back. */
static CUresult resolve(CUstream handle, struct sim_stream **stream)
{
        if (!sim_in_child())
                return sim_stream_resolve(handle, stream);
        return handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD
                       ? CUDA_ERROR_NOT_INITIALIZED
                       : CUDA_ERROR_OUT_OF_MEMORY;
}

/* @pool: null for the current one of the stream's device. */
static CUresult alloc_async(CUdeviceptr *address, size_t bytes, struct sim_pool *pool,
                            CUstream handle)
{
        struct sim_stream *stream;
        CUresult result;

        if (!address)
                return CUDA_ERROR_INVALID_VALUE;
        result = resolve(handle, &stream);
        if (result != CUDA_SUCCESS)
                return result;
        if (!bytes) {
                *address = 0;
                return CUDA_SUCCESS;
        }
        if (sim_is_capturing(stream))
                return sim_capture_alloc(stream, bytes, address);
        result = sim_capture_unsafe();
        if (result != CUDA_SUCCESS)
                return result;
        *address = 0; /* what a program finds if there is no memory */
        return take(pool ? pool : stream->context->device->current_pool, stream, bytes, address);
}

SIM_STREAM_PAIR(cuMemAllocAsync, stream, (CUdeviceptr * address, size_t bytes, CUstream stream),
                (address, bytes, stream))
{
        return alloc_async(address, bytes, NULL, stream);
}

SIM_STREAM_PAIR(cuMemAllocFromPoolAsync, stream,
                (CUdeviceptr * address, size_t bytes, CUmemoryPool handle, CUstream stream),
                (address, bytes, handle, stream))
{
        struct sim_pool *pool;
        CUresult result = sim_pool_resolve(handle, &pool);

        if (result == CUDA_SUCCESS && pool->imported)
                result = CUDA_ERROR_INVALID_VALUE;
        return result == CUDA_SUCCESS ? alloc_async(address, bytes, pool, stream) : result;
}

SIM_STREAM_PAIR(cuMemFreeAsync, handle, (CUdeviceptr address, CUstream handle), (address, handle))
{
        struct sim_stream *stream;
        struct sim_block *block = sim_block_at(address);
        CUresult result = resolve(handle, &stream);

        if (result != CUDA_SUCCESS)
                return sim_in_child() && !block ? CUDA_ERROR_INVALID_VALUE : result;
        if (sim_is_capturing(stream))
                return address ? sim_capture_free(stream, address) : CUDA_SUCCESS;
        result = sim_capture_unsafe();
        if (result != CUDA_SUCCESS || !address)
                return result;
        if (!block)
                return CUDA_ERROR_INVALID_VALUE;
        if (block->allocation.kind != SIM_MEMORY_POOL)
                return sim_memory_free_async(block, stream);
        give(block, stream);
        return CUDA_SUCCESS;
}

/* ---- pools ---- */

CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool *handle, const CUmemPoolProps *props)
{
        SIM_ENTER(cuMemPoolCreate);
        struct sim_device *device;
        struct sim_pool *pool;

        if (!handle || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
                return CUDA_ERROR_INVALID_VALUE;
        if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
                return CUDA_ERROR_NOT_SUPPORTED;
        device = sim_device(props->location.id);
        if (!device)
                return CUDA_ERROR_INVALID_DEVICE;
        pool = sim_pool_new(device);
        if (!pool)
                return CUDA_ERROR_OUT_OF_MEMORY;
        pool->props = *props;
#if CUDA_VERSION >= 12020
        pool->maximum = props->maxSize;
#endif
        *handle = sim_pool_handle(pool);
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool handle)
{
        SIM_ENTER(cuMemPoolDestroy);
        struct sim_pool *pool;
        CUresult result = sim_pool_resolve(handle, &pool);

        if (result != CUDA_SUCCESS)
                return result;
        if (pool == pool->device->default_pool)
                return CUDA_ERROR_INVALID_VALUE;
        if (pool == pool->device->current_pool)
                pool->device->current_pool = pool->device->default_pool;
        pool->destroyed = true;
        pool_free_if_unused(pool);
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolTrimTo(CUmemoryPool handle, size_t keep)
{
        SIM_ENTER(cuMemPoolTrimTo);
        struct sim_pool *pool;
        CUresult result = sim_capture_unsafe();

        if (result == CUDA_SUCCESS)
                result = sim_pool_resolve(handle, &pool);
        if (result != CUDA_SUCCESS)
                return result;
        sim_tiles_observe_all(pool);
        sim_tiles_trim(pool, keep);
        return CUDA_SUCCESS;
}

static CUresult read_attribute(const struct sim_pool *pool, CUmemPool_attribute attribute,
                               void *value)
{
        switch (attribute) {
        case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
                *(int *)value = pool->follow;
                return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
                *(int *)value = pool->opportunistic;
                return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
                *(int *)value = pool->internal;
                return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
                *(cuuint64_t *)value = pool->threshold;
                return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
                *(cuuint64_t *)value = pool->reserved;
                return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
                *(cuuint64_t *)value = pool->reserved_high;
                return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
                *(cuuint64_t *)value = pool->used;
                return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
                *(cuuint64_t *)value = pool->used_high;
                return CUDA_SUCCESS;
        default:
                return CUDA_ERROR_INVALID_VALUE;
        }
}

CUresult CUDAAPI cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute,
                                       void *value)
{
        SIM_ENTER(cuMemPoolGetAttribute);
        struct sim_pool *pool;
        CUresult result = sim_capture_unsafe();

        if (result == CUDA_SUCCESS)
                result = sim_pool_resolve(handle, &pool);
        if (result != CUDA_SUCCESS)
                return result;
        return value ? read_attribute(pool, attribute, value) : CUDA_ERROR_INVALID_VALUE;
}

/* A high mark can be set to 0 only, and then takes the current value (A12). */
static CUresult reset_high(uint64_t *high, uint64_t current, const void *value)
{
        if (*(const cuuint64_t *)value)
                return CUDA_ERROR_INVALID_VALUE;
        *high = current;
        return CUDA_SUCCESS;
}

static CUresult write_attribute(struct sim_pool *pool, CUmemPool_attribute attribute,
                                const void *value)
{
        switch (attribute) {
        case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
                pool->follow = *(const int *)value != 0;
                return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
                pool->opportunistic = *(const int *)value != 0;
                return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
                pool->internal = *(const int *)value != 0;
                return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
                pool->threshold = *(const cuuint64_t *)value;
                return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
                return reset_high(&pool->reserved_high, pool->reserved, value);
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
                return reset_high(&pool->used_high, pool->used, value);
        default:
                return CUDA_ERROR_INVALID_VALUE;
        }
}

CUresult CUDAAPI cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute,
                                       void *value)
{
        SIM_ENTER(cuMemPoolSetAttribute);
        struct sim_pool *pool;
        CUresult result = sim_capture_unsafe();

        if (result == CUDA_SUCCESS)
                result = sim_pool_resolve(handle, &pool);
        if (result != CUDA_SUCCESS)
                return result;
        return value ? write_attribute(pool, attribute, value) : CUDA_ERROR_INVALID_VALUE;
}
