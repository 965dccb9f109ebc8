/* SPDX-License-Identifier: Apache-2.0 */
#ifndef POOLS_H
#define POOLS_H

/*
 * Pools -- what the cases about memory pools have in common
 */

#include "conformance.h"

#include <stdint.h>

#define MIB ((size_t)1 << 20)

/* At most so many bytes; 0: no limit. */
static inline CUmemoryPool new_pool(size_t bytes_max)
{
        CUmemPoolProps properties = {
                .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = conf.device},
        };
        CUmemoryPool pool;

#if CUDA_VERSION >= 12020
        properties.maxSize = bytes_max;
#else
        (void)bytes_max;
#endif
        CU_OK(cu.MemPoolCreate(&pool, &properties));
        return pool;
}

static inline CUmemoryPool default_pool(void)
{
        CUmemoryPool pool;

        CU_OK(cu.DeviceGetDefaultMemPool(&pool, conf.device));
        return pool;
}

static inline CUmemoryPool pool_of(CUdeviceptr p)
{
        CUmemoryPool pool = NULL;

        CU_OK(cu.PointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
        return pool;
}

static inline uint64_t figure(CUmemoryPool pool, CUmemPool_attribute attribute)
{
        uint64_t value = 0;

        CU_OK(cu.MemPoolGetAttribute(pool, attribute, &value));
        return value;
}

static inline void set_threshold(CUmemoryPool pool, uint64_t bytes)
{
        CU_OK(cu.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes));
}

#endif
