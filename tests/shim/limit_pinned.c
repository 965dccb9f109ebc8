/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Limit of page-locked memory -- STREAMPOOL_PINNED_LIMIT, in pools and at the driver
 */

#include <stdlib.h>

#include "tests/shim/begin.h"
#include "tests/sim_driver/control.h"
#include "track/limit.h"

#define MIB ((size_t)1 << 20)

static void start(const char *mode, const char *limit)
{
        setenv("STREAMPOOL_MODE", mode, 1);
        setenv("STREAMPOOL_PINNED_LIMIT", limit, 1);
        setenv("STREAMPOOL_LOG", "0", 1);
        begin_on(0);
}

static void *lock(size_t size)
{
        void *pointer = NULL;

        cr_assert_eq(sp_on_cuMemHostAlloc(&pointer, size, 0), CUDA_SUCCESS, "%zu bytes", size);
        return pointer;
}

static void give(void *pointer)
{
        cr_assert_eq(sp_on_cuMemFreeHost(pointer), CUDA_SUCCESS);
}

static uint64_t asked(void)
{
        return sim_calls("cuMemHostAlloc") + sim_calls("cuMemAllocHost_v2") +
               sim_calls("cuMemHostRegister_v2");
}

/* All three calls, in a word. */
static void expect_refusal(size_t size)
{
        void *own = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
        uint64_t before = asked();
        void *pointer = &before;

        cr_expect_eq(sp_on_cuMemHostAlloc(&pointer, size, 0), CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect_eq(sp_on_cuMemAllocHost_v2(&pointer, size), CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect_eq(sp_on_cuMemHostRegister_v2(own, size, 0), CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect_eq(pointer, &before, "written on success only");
        cr_expect_eq(asked(), before, "the driver was asked");
        free(own);
}

Test(limit_pinned, is_reached_and_not_passed)
{
        void *own = aligned_alloc(4096, 4 * MIB);
        void *first, *second;

        start("observe", "8M");
        first = lock(3 * MIB + 1);
        cr_expect_eq(sp_limit_counted(SP_LIMIT_HOST), 3 * MIB + 4096, "in pages");
        cr_assert_eq(sp_on_cuMemHostRegister_v2(own, 4 * MIB, 0), CUDA_SUCCESS);
        expect_refusal(MIB);
        second = lock(MIB - 4096);
        cr_expect_eq(sp_limit_counted(SP_LIMIT_HOST), 8 * MIB);
        expect_refusal(1);
        give(first);
        cr_assert_eq(sp_on_cuMemHostUnregister(own), CUDA_SUCCESS);
        give(second);
        cr_expect_eq(sp_limit_counted(SP_LIMIT_HOST), 0);
        give(lock(8 * MIB));
        free(own);
}

Test(limit_pinned, is_reached_and_not_passed_by_the_pool)
{
        void *held[64];
        size_t count = 0;

        start("pool", "8M");
        while (count < 64 && sp_on_cuMemHostAlloc(&held[count], MIB / 4, 0) == CUDA_SUCCESS) {
                cr_assert_leq(sp_limit_counted(SP_LIMIT_HOST), 8 * MIB, "block %zu", count);
                count++;
        }
        cr_expect_eq(count, 32, "%zu blocks of 256 KiB", count);
        while (count)
                give(held[--count]);
        cr_expect_gt(sp_limit_counted(SP_LIMIT_HOST), 0, "it is kept");
        give(lock(7 * MIB));
        cr_expect_leq(sp_limit_counted(SP_LIMIT_HOST), 8 * MIB);
}

/* What is idle makes way, before anybody is refused. */
Test(limit_pinned, makes_the_pool_give_back_what_it_holds_idle)
{
        void *own = aligned_alloc(4096, 8 * MIB);

        start("pool", "8M");
        give(lock(2 * MIB));
        cr_expect_geq(sp_limit_counted(SP_LIMIT_HOST), 2 * MIB);
        cr_expect_eq(sp_on_cuMemHostRegister_v2(own, 8 * MIB, 0), CUDA_SUCCESS);
        cr_expect_eq(sp_limit_counted(SP_LIMIT_HOST), 8 * MIB);
        cr_expect_eq(sp_on_cuMemHostUnregister(own), CUDA_SUCCESS);
        free(own);
}

Test(limit_pinned, counts_nothing_that_failed)
{
        void *pointer;

        start("observe", "8M");
        sim_fail("cuMemHostAlloc", 1, CUDA_ERROR_UNKNOWN);
        cr_expect_eq(sp_on_cuMemHostAlloc(&pointer, MIB, 0), CUDA_ERROR_UNKNOWN);
        cr_expect_eq(sp_limit_counted(SP_LIMIT_HOST), 0);
        pointer = lock(8 * MIB);
        sim_fail("cuMemFreeHost", 1, CUDA_ERROR_UNKNOWN);
        cr_expect_eq(sp_on_cuMemFreeHost(pointer), CUDA_ERROR_UNKNOWN);
        expect_refusal(1);
        give(pointer);
        cr_expect_eq(sp_on_cuMemHostAlloc(&pointer, 0, 0), CUDA_SUCCESS);
        cr_expect_eq(sp_limit_counted(SP_LIMIT_HOST), 0);
}

Test(limit_pinned, ends_with_the_context_of_what_it_counts)
{
        CUcontext context;

        start("observe", "8M");
        cr_assert_eq(sp_on_cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
        lock(6 * MIB);
        expect_refusal(3 * MIB);
        cr_assert_eq(sp_on_cuCtxDestroy_v2(context), CUDA_SUCCESS);
        cr_expect_eq(sp_limit_counted(SP_LIMIT_HOST), 0);
}

Test(limit_pinned, is_none_of_a_device_and_none_unless_it_is_set)
{
        CUdeviceptr pointer;

        start("observe", "1M");
        cr_expect_not(sp_limit_is_set());
        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, 64 * MIB), CUDA_SUCCESS);
        cr_expect_eq(sp_limit_counted(SP_LIMIT_HOST), 0);
        expect_refusal(2 * MIB);
}

Test(limit_pinned, unset_refuses_nobody)
{
        start("observe", "0");
        give(lock(64 * MIB));
}
