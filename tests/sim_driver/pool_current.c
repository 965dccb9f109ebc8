/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Current pools -- which pool a device allocates from, and who else may use it
 *
 * cuDeviceSetMemPool() and cuMemSetMemPool() set the same thing (A16).
 */

#include "pool.h"

CUresult CUDAAPI cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice ordinal)
{
        SIM_ENTER(cuDeviceGetDefaultMemPool);
        struct sim_device *device = sim_device(ordinal);

        if (!pool)
                return CUDA_ERROR_INVALID_VALUE;
        if (!device)
                return CUDA_ERROR_INVALID_DEVICE;
        *pool = sim_pool_handle(device->default_pool);
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice ordinal)
{
        SIM_ENTER(cuDeviceGetMemPool);
        struct sim_device *device = sim_device(ordinal);

        if (!pool)
                return CUDA_ERROR_INVALID_VALUE;
        if (!device)
                return CUDA_ERROR_INVALID_DEVICE;
        *pool = sim_pool_handle(device->current_pool);
        return CUDA_SUCCESS;
}

static CUresult set_current(CUdevice ordinal, CUmemoryPool handle)
{
        struct sim_device *device = sim_device(ordinal);
        struct sim_pool *pool;
        CUresult result;

        if (!device)
                return CUDA_ERROR_INVALID_DEVICE;
        result = sim_pool_resolve(handle, &pool);
        if (result != CUDA_SUCCESS)
                return result;
        if (pool->device != device || pool->imported)
                return CUDA_ERROR_INVALID_VALUE;
        device->current_pool = pool;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool pool)
{
        SIM_ENTER(cuDeviceSetMemPool);

        return set_current(ordinal, pool);
}

#if CUDA_VERSION >= 13000
static CUresult check_place(const CUmemLocation *location, CUmemAllocationType type)
{
        if (!location)
                return CUDA_ERROR_INVALID_VALUE;
        if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || type != CU_MEM_ALLOCATION_TYPE_PINNED)
                return CUDA_ERROR_NOT_SUPPORTED;
        return sim_device(location->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult CUDAAPI cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location,
                                        CUmemAllocationType type)
{
        SIM_ENTER(cuMemGetDefaultMemPool);
        CUresult result = pool ? check_place(location, type) : CUDA_ERROR_INVALID_VALUE;

        if (result == CUDA_SUCCESS)
                *pool = sim_pool_handle(sim_device(location->id)->default_pool);
        return result;
}

CUresult CUDAAPI cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location,
                                 CUmemAllocationType type)
{
        SIM_ENTER(cuMemGetMemPool);
        CUresult result = pool ? check_place(location, type) : CUDA_ERROR_INVALID_VALUE;

        if (result == CUDA_SUCCESS)
                *pool = sim_pool_handle(sim_device(location->id)->current_pool);
        return result;
}

CUresult CUDAAPI cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type,
                                 CUmemoryPool pool)
{
        SIM_ENTER(cuMemSetMemPool);
        CUresult result = check_place(location, type);

        return result == CUDA_SUCCESS ? set_current(location->id, pool) : result;
}
#endif

/* The home device keeps its access (A18). */
CUresult CUDAAPI cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *map, size_t count)
{
        SIM_ENTER(cuMemPoolSetAccess);
        struct sim_pool *pool;
        CUresult result = sim_pool_resolve(handle, &pool);

        if (result != CUDA_SUCCESS || !count)
                return result;
        if (!map)
                return CUDA_ERROR_INVALID_VALUE;
        for (size_t i = 0; i < count; i++) {
                if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
                        return CUDA_ERROR_INVALID_VALUE;
                if (!sim_device(map[i].location.id))
                        return CUDA_ERROR_INVALID_DEVICE;
                if (map[i].location.id == pool->device->ordinal &&
                    map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
                        return CUDA_ERROR_INVALID_DEVICE;
        }
        for (size_t i = 0; i < count; i++)
                pool->access[map[i].location.id] = (int)map[i].flags;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool handle,
                                    CUmemLocation *location)
{
        SIM_ENTER(cuMemPoolGetAccess);
        struct sim_pool *pool;
        CUresult result = sim_pool_resolve(handle, &pool);

        if (result != CUDA_SUCCESS)
                return result;
        if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
                return CUDA_ERROR_INVALID_VALUE;
        if (!sim_device(location->id))
                return CUDA_ERROR_INVALID_DEVICE;
        *flags = (CUmemAccess_flags)pool->access[location->id];
        return CUDA_SUCCESS;
}
