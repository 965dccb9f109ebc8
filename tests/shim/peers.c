/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Peers -- can another device use memory of the pool when the program says so?
 *
 * cuCtxEnablePeerAccess covers what a context holds and what it will hold; so
 * does cuMemPoolSetAccess for a pool. The driver does that by itself for memory
 * of its own; for mapped memory it is asked for each segment.
 */

#include <criterion/criterion.h>

#include "driver/driver.h"
#include "tests/shim/begin.h"
#include "tests/shim/growing.h"

#define GRAIN ((size_t)2 << 20)
#define BLOCK ((size_t)48 << 20)

static CUcontext here, there;

/* Two devices, both known because something was allocated on each; the second one's context is
 * current. */
static void start(void)
{
        CUdeviceptr pointer;

        here = begin_on(0);
        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, 512), CUDA_SUCCESS);
        there = begin_on(1);
        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, 512), CUDA_SUCCESS);
}

/* What device 0 may do with all of these bytes; each piece that was mapped has rights of its own.
 */
static unsigned long long rights_over(CUdeviceptr address, size_t size)
{
        CUmemLocation peer = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
        unsigned long long all = 0;

        for (size_t at = 0; at < size; at += GRAIN) {
                unsigned long long flags;

                cr_assert_eq(sp_driver.cuMemGetAccess(&flags, &peer, address + at), CUDA_SUCCESS);
                cr_expect(!at || flags == all, "%#zx", at);
                all = flags;
        }
        return all;
}

static CUdeviceptr alloc(void)
{
        CUdeviceptr pointer;

        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, BLOCK), CUDA_SUCCESS);
        return pointer;
}

static void tell(CUresult (*call)(CUcontext), CUcontext peer)
{
        cr_assert_eq(cuCtxSetCurrent(here), CUDA_SUCCESS);
        cr_assert_eq(call(peer), CUDA_SUCCESS);
        cr_assert_eq(cuCtxSetCurrent(there), CUDA_SUCCESS);
}

static CUresult enable(CUcontext peer)
{
        return sp_on_cuCtxEnablePeerAccess(peer, 0);
}

Test(peers, may_use_what_is_there_and_what_is_to_come, .init = start)
{
        CUdeviceptr before = alloc();

        cr_expect_eq(rights_over(before, BLOCK), CU_MEM_ACCESS_FLAGS_PROT_NONE);
        tell(enable, there);
        cr_expect_eq(rights_over(before, BLOCK), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        cr_expect_eq(rights_over(alloc(), BLOCK), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

Test(peers, may_use_it_no_longer_once_that_is_taken_back, .init = start)
{
        CUdeviceptr before = alloc();

        tell(enable, there);
        tell(sp_on_cuCtxDisablePeerAccess, there);
        cr_expect_eq(rights_over(before, BLOCK), CU_MEM_ACCESS_FLAGS_PROT_NONE);
        cr_expect_eq(rights_over(alloc(), BLOCK), CU_MEM_ACCESS_FLAGS_PROT_NONE);
}

Test(peers, of_a_pool_may_use_its_blocks, .init = start)
{
        CUmemAccessDesc access = {
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                .flags = CU_MEM_ACCESS_FLAGS_PROT_READ,
        };
        CUdeviceptr before, after;
        CUmemoryPool pool;

        cr_assert_eq(sp_driver.cuDeviceGetDefaultMemPool(&pool, 1), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemAllocAsync(&before, BLOCK, CU_STREAM_LEGACY), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemPoolSetAccess(pool, &access, 1), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemAllocAsync(&after, BLOCK, CU_STREAM_LEGACY), CUDA_SUCCESS);
        cr_expect_eq(rights_over(before, BLOCK), CU_MEM_ACCESS_FLAGS_PROT_READ);
        cr_expect_eq(rights_over(after, BLOCK), CU_MEM_ACCESS_FLAGS_PROT_READ);
        cr_expect_eq(rights_over(alloc(), BLOCK), CU_MEM_ACCESS_FLAGS_PROT_NONE, "another pool's");
}

Test(peers, may_use_every_segment_of_a_range_wherever_it_is_moved, .init = start)
{
        struct sp_context *context = sp_context_current();
        CUdeviceptr first = context->range.base + context->range.size / 2, next = first + BLOCK;
        struct spm_actions actions = forget(context->sync_pool);

        perform(&actions);
        grow(context->sync_pool, first, BLOCK);
        cr_expect_eq(rights_over(first, BLOCK), CU_MEM_ACCESS_FLAGS_PROT_NONE);
        tell(enable, there);
        cr_expect_eq(rights_over(first, BLOCK), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

        actions = forget(context->sync_pool);
        cr_assert_eq(actions.count, 1);
        actions.item[0].moves = true;
        add_grow(&actions, context->sync_pool, next, BLOCK);
        add_grow(&actions, context->sync_pool, next + BLOCK, BLOCK);
        perform(&actions);
        cr_expect_eq(rights_over(next, BLOCK), CU_MEM_ACCESS_FLAGS_PROT_READWRITE, "moved");
        cr_expect_eq(rights_over(next + BLOCK, BLOCK), CU_MEM_ACCESS_FLAGS_PROT_READWRITE, "new");

        tell(sp_on_cuCtxDisablePeerAccess, there);
        cr_expect_eq(rights_over(next, BLOCK), CU_MEM_ACCESS_FLAGS_PROT_NONE);
        cr_expect_eq(rights_over(next + BLOCK, BLOCK), CU_MEM_ACCESS_FLAGS_PROT_NONE);
}
