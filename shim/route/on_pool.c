/* SPDX-License-Identifier: Apache-2.0 */

/*
 * On pool -- the driver's pools, and ours behind the default one
 *
 * cuMemAllocAsync uses a device's current pool. While that is the default one,
 * we serve; when the program sets another, the driver does. Whatever it sets
 * on the default pool is set on ours as well, and what it reads is the sum of
 * both: USED and RESERVED of the driver's pool alone would leave out the blocks
 * that the program holds.
 */

#include "base/life.h"
#include "route/perform.h"
#include "route/route.h"
#include "track/backing.h"
#include "track/state.h"

/* The device whose default pool this is and for which we serve, or NULL. */
static struct sp_device *served(CUmemoryPool pool)
{
        struct sp_device *device = NULL;

        if (!pool || !sp_life_has_begun())
                return NULL;
        while ((device = sp_device_each(device)))
                if (device->default_pool == pool && device->async_pool)
                        break;
        return device;
}

static void set_current(int ordinal, CUmemoryPool pool)
{
        struct sp_device *device = sp_device_of_ordinal(ordinal);

        if (device)
                atomic_store(&device->is_default_current, pool == device->default_pool);
}

CUresult CUDAAPI sp_on_cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool pool)
{
        CUresult result = sp_driver.cuDeviceSetMemPool(ordinal, pool);

        if (result == CUDA_SUCCESS)
                set_current(ordinal, pool);
        return result;
}

#if CUDA_VERSION >= 13000
CUresult CUDAAPI sp_on_cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type,
                                       CUmemoryPool pool)
{
        CUresult result = sp_driver.cuMemSetMemPool(location, type, pool);

        if (result == CUDA_SUCCESS && location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
            type == CU_MEM_ALLOCATION_TYPE_PINNED)
                set_current(location->id, pool);
        return result;
}
#endif

/* Destroying the current pool makes the default one current again (A15). */
CUresult CUDAAPI sp_on_cuMemPoolDestroy(CUmemoryPool pool)
{
        CUresult result = sp_driver.cuMemPoolDestroy(pool);
        struct sp_device *device = NULL;
        CUmemoryPool current;

        if (result != CUDA_SUCCESS)
                return result;
        while ((device = sp_device_each(device)))
                if (device->default_pool &&
                    sp_driver.cuDeviceGetMemPool(&current, device->ordinal) == CUDA_SUCCESS)
                        set_current(device->ordinal, current);
        return result;
}

CUresult CUDAAPI sp_on_cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
        CUresult result = sp_driver.cuMemPoolTrimTo(pool, keep);
        struct sp_device *device = result == CUDA_SUCCESS ? served(pool) : NULL;

        if (device && sp_route_pools())
                sp_trim_pool(device->async_pool, keep);
        return result;
}

/* attributes: cuda.h gives the three policies an int, the rest 64 bits */

static bool is_policy(CUmemPool_attribute attribute)
{
        return attribute == CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES ||
               attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC ||
               attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

static bool is_figure(CUmemPool_attribute attribute)
{
        return attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ||
               attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH ||
               attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT ||
               attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
}

CUresult CUDAAPI sp_on_cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                             void *value)
{
        CUresult result = sp_driver.cuMemPoolSetAttribute(pool, attribute, value);
        struct sp_device *device = result == CUDA_SUCCESS ? served(pool) : NULL;
        uint64_t number;

        if (!device)
                return result;
        number = is_policy(attribute) ? (uint64_t) * (const int *)value : *(const uint64_t *)value;
        spm_pool_set_attribute(sp_model_enter(), device->async_pool,
                               (enum spm_pool_attribute)attribute, number);
        sp_model_leave();
        return result;
}

CUresult CUDAAPI sp_on_cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                             void *value)
{
        CUresult result = sp_driver.cuMemPoolGetAttribute(pool, attribute, value);
        struct sp_device *device =
                result == CUDA_SUCCESS && is_figure(attribute) && sp_route_pools() ? served(pool)
                                                                                   : NULL;
        uint64_t ours = 0;

        if (!device)
                return result;
        spm_pool_get_attribute(sp_model_enter(), device->async_pool,
                               (enum spm_pool_attribute)attribute, &ours);
        sp_model_leave();
        *(uint64_t *)value += ours;
        return result;
}

static enum spm_access access_of(CUmemAccess_flags flags)
{
        return flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? SPM_ACCESS_READ_WRITE
               : flags == CU_MEM_ACCESS_FLAGS_PROT_READ    ? SPM_ACCESS_READ
                                                           : SPM_ACCESS_NONE;
}

CUresult CUDAAPI sp_on_cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access,
                                          size_t count)
{
        CUresult result = sp_driver.cuMemPoolSetAccess(pool, access, count);
        struct sp_device *device = result == CUDA_SUCCESS ? served(pool) : NULL;

        for (size_t i = 0; device && i < count; i++) {
                spm_pool ours = device->async_pool;
                int peer = access[i].location.id;
                CUstreamCaptureMode mode;

                if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
                    peer == device->ordinal)
                        continue;
                spm_pool_set_access(sp_model_enter(), ours, peer, access_of(access[i].flags));
                sp_model_leave();
                mode = sp_bracket_open();
                sp_backing_grant(ours, peer, access[i].flags);
                sp_bracket_close(mode);
        }
        return result;
}
