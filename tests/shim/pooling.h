/* SPDX-License-Identifier: Apache-2.0 */
#ifndef POOLING_H
#define POOLING_H

/*
 * Pooling -- memory pools, a stream, and what the driver and the program are told of them
 *
 * What the driver's own pool has in use says who served: nothing if we did.
 */

#include <criterion/criterion.h>

#include "tests/shim/begin.h"
#include "tests/sim_driver/control.h"
#include "track/mempool.h"
#include "track/state.h"

#define MIB ((size_t)1 << 20)

static CUstream stream;

static inline void begin_pooling(void)
{
        begin_on(0);
        cr_assert_eq(sp_on_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
}

static inline CUmemoryPool make(CUmemPoolProps props)
{
        CUmemoryPool pool;

        props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        cr_assert_eq(sp_on_cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
        return pool;
}

static inline CUmemoryPool plain(void)
{
        return make((CUmemPoolProps){0});
}

static inline CUmemoryPool default_of(int ordinal)
{
        CUmemoryPool pool;

        cr_assert_eq(sp_driver.cuDeviceGetDefaultMemPool(&pool, ordinal), CUDA_SUCCESS);
        return pool;
}

static inline CUdeviceptr alloc_from(CUmemoryPool pool, size_t size)
{
        CUdeviceptr pointer = 0;

        cr_assert_eq(sp_on_cuMemAllocFromPoolAsync(&pointer, size, pool, stream), CUDA_SUCCESS);
        return pointer;
}

static inline CUdeviceptr alloc(size_t size)
{
        CUdeviceptr pointer = 0;

        cr_assert_eq(sp_on_cuMemAllocAsync(&pointer, size, stream), CUDA_SUCCESS);
        return pointer;
}

static inline void give_back(CUdeviceptr pointer)
{
        cr_assert_eq(sp_on_cuMemFreeAsync(pointer, stream), CUDA_SUCCESS);
}

static inline void synchronise(void)
{
        cr_assert_eq(sp_on_cuStreamSynchronize(stream), CUDA_SUCCESS);
}

static inline void destroy(CUmemoryPool pool)
{
        cr_assert_eq(sp_on_cuMemPoolDestroy(pool), CUDA_SUCCESS);
}

/* Of the driver's own pool; as the program is told; of the model's. */

static inline uint64_t drivers(CUmemoryPool pool, CUmemPool_attribute attribute)
{
        uint64_t value = 0; /* a policy writes half of it */

        cr_assert_eq(sp_driver.cuMemPoolGetAttribute(pool, attribute, &value), CUDA_SUCCESS);
        return value;
}

static inline uint64_t told(CUmemoryPool pool, CUmemPool_attribute attribute)
{
        uint64_t value = 0;

        cr_assert_eq(sp_on_cuMemPoolGetAttribute(pool, attribute, &value), CUDA_SUCCESS);
        return value;
}

static inline uint64_t models(CUmemoryPool pool, CUmemPool_attribute attribute)
{
        uint64_t value = 99;
        enum spm_status status = spm_pool_get_attribute(sp_model_enter(), sp_mempool_model(pool),
                                                        (enum spm_pool_attribute)attribute, &value);

        sp_model_leave();
        cr_assert_eq(status, SPM_OK);
        return value;
}

static inline bool is_drivers(CUmemoryPool pool)
{
        return drivers(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) != 0;
}

static inline void set(CUmemoryPool pool, CUmemPool_attribute attribute, uint64_t value)
{
        int policy = (int)value;
        bool is_policy = attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;

        cr_assert_eq(sp_on_cuMemPoolSetAttribute(pool, attribute,
                                                 is_policy ? (void *)&policy : (void *)&value),
                     CUDA_SUCCESS);
}

#endif
