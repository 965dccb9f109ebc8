/* SPDX-License-Identifier: Apache-2.0 */

/*
 * On pool -- the driver's pools, and ours behind them
 *
 * Which pools have one of ours behind them, track/mempool.h says. Of those the
 * driver's is always asked first, and its answer is what the program gets.
 * Whatever it sets on one is set on ours as well, and what it reads is the sum
 * of both: USED and RESERVED of the driver's pool alone would leave out the
 * blocks that the program holds. A sum of two high marks can be more than there
 * was at any one time.
 */

#include <string.h>

#include "base/life.h"
#include "route/perform.h"
#include "route/route.h"
#include "track/mempool.h"
#include "track/mempool_place.h"
#include "track/mempool_set.h"
#include "track/state.h"

/* The pool of ours behind the driver's, or 0. */
static spm_pool ours_behind(CUmemoryPool pool)
{
        return pool && sp_life_has_begun() ? sp_mempool_model(pool) : 0;
}

/* which one cuMemAllocAsync uses */

static void follow_current(int ordinal)
{
        struct sp_device *device = sp_device_of_ordinal(ordinal);

        if (device)
                sp_mempool_follow_current(device);
}

CUresult CUDAAPI sp_on_cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool pool)
{
        CUresult result = sp_driver.cuDeviceSetMemPool(ordinal, pool);

        if (result == CUDA_SUCCESS)
                follow_current(ordinal);
        return result;
}

#if CUDA_VERSION >= 13000
CUresult CUDAAPI sp_on_cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type,
                                       CUmemoryPool pool)
{
        CUresult result = sp_driver.cuMemSetMemPool(location, type, pool);

        if (result == CUDA_SUCCESS && location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
            type == CU_MEM_ALLOCATION_TYPE_PINNED)
                follow_current(location->id);
        return result;
}
#endif

/* the life of a pool */

/* Everything but what makes it so is 0, also what newer headers have names for (A15). */
static bool is_plain(const CUmemPoolProps *props)
{
        CUmemPoolProps plain;

        memset(&plain, 0, sizeof(plain));
        plain.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        plain.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
        plain.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        plain.location.id = props->location.id;
        return memcmp(&plain, props, sizeof(plain)) == 0;
}

CUresult CUDAAPI sp_on_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
        CUresult result = SP_ASK(sp_driver.cuMemPoolCreate(pool, props));

        if (result != CUDA_SUCCESS || !sp_life_has_begun())
                return result;
        sp_mempool_place_set(*pool, sp_mempool_place_of(props));
        if (is_plain(props))
                sp_mempool_made(*pool, props->location.id);
        return CUDA_SUCCESS;
}

/* What is live stays until it is freed. @stats: what there was */
static void destroy_ours(spm_pool pool, struct spm_stats *stats)
{
        struct spm_actions actions;
        enum spm_status status;

        (void)spm_stats(sp_model_enter(), pool, stats);
        sp_model_leave();

        do {
                status = spm_pool_destroy(sp_model_enter(), pool, &actions);
                sp_model_leave();
                sp_perform(&actions, NULL);
        } while (status == SPM_AGAIN);
}

/* Destroying the current pool makes the default one current again (A15). */
CUresult CUDAAPI sp_on_cuMemPoolDestroy(CUmemoryPool pool)
{
        struct sp_mempool *ours = pool && sp_life_has_begun() ? sp_mempool_take(pool) : NULL;
        int place = pool ? sp_mempool_place_take(pool) : SP_PLACE_UNKNOWN;
        CUresult result = sp_driver.cuMemPoolDestroy(pool);
        struct sp_device *device = NULL;
        struct spm_stats stats = {0};

        if (result != CUDA_SUCCESS) {
                sp_mempool_place_set(pool, place);
                if (ours)
                        sp_mempool_put_back(ours);
                return result;
        }
        while ((device = sp_device_each(device)))
                sp_mempool_follow_current(device);
        if (!ours)
                return result;
        if (ours->model)
                destroy_ours(ours->model, &stats);
        sp_mempool_end(ours, &stats);
        return result;
}

static uint64_t reserved_by_driver(CUmemoryPool pool)
{
        CUstreamCaptureMode mode = sp_bracket_open();
        uint64_t reserved = 0;

        if (sp_driver.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
                                            &reserved) != CUDA_SUCCESS)
                reserved = 0;
        sp_bracket_close(mode);
        return reserved;
}

/* What the driver's pool still holds counts for what is to be kept. */
CUresult CUDAAPI sp_on_cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
        CUresult result = sp_driver.cuMemPoolTrimTo(pool, keep);
        spm_pool ours = result == CUDA_SUCCESS && sp_route_pools() ? ours_behind(pool) : 0;
        uint64_t kept;

        if (!ours)
                return result;
        kept = reserved_by_driver(pool);
        sp_trim_pool(ours, keep > kept ? keep - (size_t)kept : 0);
        return result;
}

/* what is set, and what is asked */

/* Whichever call comes first: what options say of a pool is in force when the program looks. */
static bool knows(CUmemoryPool pool, int *ordinal)
{
        return pool && sp_life_has_begun() && sp_mempool_knows(pool, ordinal);
}

static bool is_figure(CUmemPool_attribute attribute)
{
        return attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ||
               attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH ||
               attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT ||
               attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
}

/* Where an option has the last word, its value is set again instead of the program's. */
CUresult CUDAAPI sp_on_cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                             void *value)
{
        union sp_mempool_value forced;
        int ordinal = 0;
        bool ours = knows(pool, &ordinal);
        bool is_forced = ours && value && sp_mempool_is_forced(ordinal, attribute, &forced);
        CUresult result =
                sp_driver.cuMemPoolSetAttribute(pool, attribute, is_forced ? &forced : value);

        if (ours && result == CUDA_SUCCESS)
                sp_mempool_was_set(pool, attribute);
        return result;
}

CUresult CUDAAPI sp_on_cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                             void *value)
{
        int ordinal = 0;
        bool is_ours = knows(pool, &ordinal);
        CUresult result = sp_driver.cuMemPoolGetAttribute(pool, attribute, value);
        uint64_t number = 0;
        spm_pool ours;

        if (!is_ours || result != CUDA_SUCCESS || !is_figure(attribute) || !sp_route_pools())
                return result;
        ours = sp_mempool_model(pool);
        if (!ours)
                return result;
        spm_pool_get_attribute(sp_model_enter(), ours, (enum spm_pool_attribute)attribute, &number);
        sp_model_leave();
        *(uint64_t *)value += number;
        return result;
}

CUresult CUDAAPI sp_on_cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access,
                                          size_t count)
{
        int ordinal = 0;
        bool ours = knows(pool, &ordinal);
        CUresult result = sp_driver.cuMemPoolSetAccess(pool, access, count);

        if (!ours || result != CUDA_SUCCESS)
                return result;
        for (size_t i = 0; i < count; i++)
                if (access[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE)
                        sp_mempool_was_shared(pool, access[i].location.id);
        follow_current(ordinal);
        return result;
}
