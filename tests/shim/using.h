/* SPDX-License-Identifier: Apache-2.0 */
#ifndef USING_H
#define USING_H

/*
 * Using -- memory of the pools and of the driver for a test to touch, and what is found of that
 */

#include "route/uses.h"

#include "tests/shim/begin.h"
#include "tests/shim/findings.h"

static inline void begin_using(void)
{
        begin_on(0);
}

static inline CUdeviceptr pooled(size_t bytes)
{
        CUdeviceptr block;

        cr_assert_eq(sp_on_cuMemAlloc_v2(&block, bytes), CUDA_SUCCESS);
        return block;
}

static inline CUdeviceptr managed(size_t bytes)
{
        CUdeviceptr block;

        cr_assert_eq(sp_on_cuMemAllocManaged(&block, bytes, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
        return block;
}

#endif
