/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIMITING_H
#define LIMITING_H

/*
 * Limiting -- a program under a limit, and how it is refused
 */

#include <criterion/criterion.h>
#include <stdlib.h>

#include "report/counters.h"
#include "tests/shim/begin.h"
#include "tests/shim/growing.h"
#include "tests/sim_driver/control.h"

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

static CUstream stream;

static inline void start(const char *mode, const char *limit, int device)
{
        setenv("STREAMPOOL_MODE", mode, 1);
        setenv("STREAMPOOL_LIMIT", limit, 1);
        setenv("STREAMPOOL_LOG", "0", 1);
        begin_on(device);
        cr_assert_eq(sp_on_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_assert_eq(used(), 0);
}

static inline CUdeviceptr alloc(size_t size)
{
        CUdeviceptr pointer = 0;

        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, size), CUDA_SUCCESS, "%zu bytes", size);
        return pointer;
}

static inline void expect_refusal(size_t size)
{
        uint64_t before = sp_counter_sum(SP_COUNTER_allocs_refused);
        CUdeviceptr pointer = 5;

        cr_expect_eq(sp_on_cuMemAlloc_v2(&pointer, size), CUDA_ERROR_OUT_OF_MEMORY, "%zu bytes",
                     size);
        cr_expect_eq(pointer, 0, "as the driver leaves it");
        cr_expect_eq(sp_counter_sum(SP_COUNTER_allocs_refused), before + 1);
}

static inline void give(CUdeviceptr pointer)
{
        cr_assert_eq(sp_on_cuMemFree_v2(pointer), CUDA_SUCCESS);
}

#endif
