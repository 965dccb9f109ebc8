/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Peers -- can another device use memory of the pool when the program says so?
 *
 * cuCtxEnablePeerAccess covers what a context holds and what it will hold; so
 * does cuMemPoolSetAccess for a pool. The driver does that by itself for memory
 * of its own; for mapped memory it is asked once a segment.
 */

#include <criterion/criterion.h>

#include "driver/driver.h"
#include "tests/shim/begin.h"
#include "tests/shim/growing.h"
#include "tests/sim_driver/control.h"

#define BLOCK ((size_t)48 << 20) /* more than a usual segment: each has one of its own */

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

static uint64_t grants_of_an_allocation(void)
{
        uint64_t before = sim_calls("cuMemSetAccess");
        CUdeviceptr pointer;

        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, BLOCK), CUDA_SUCCESS);
        return sim_calls("cuMemSetAccess") - before;
}

static uint64_t grants_of(CUresult (*call)(CUcontext), CUcontext peer)
{
        uint64_t before = sim_calls("cuMemSetAccess");

        cr_assert_eq(cuCtxSetCurrent(here), CUDA_SUCCESS);
        cr_assert_eq(call(peer), CUDA_SUCCESS);
        cr_assert_eq(cuCtxSetCurrent(there), CUDA_SUCCESS);
        return sim_calls("cuMemSetAccess") - before;
}

static CUresult enable(CUcontext peer)
{
        return sp_on_cuCtxEnablePeerAccess(peer, 0);
}

Test(peers, may_use_what_is_there_and_what_is_to_come, .init = start)
{
        cr_expect_eq(grants_of_an_allocation(), 1, "the device itself");
        cr_expect_eq(grants_of(enable, there), 2, "one for each segment that was there");
        cr_expect_eq(grants_of_an_allocation(), 2, "the device itself and its peer");
}

Test(peers, may_use_it_no_longer_once_that_is_taken_back, .init = start)
{
        cr_expect_eq(grants_of(enable, there), 1);
        cr_expect_eq(grants_of(sp_on_cuCtxDisablePeerAccess, there), 1);
        cr_expect_eq(grants_of_an_allocation(), 1);
}

Test(peers, of_a_pool_may_use_its_blocks, .init = start)
{
        CUmemAccessDesc access = {
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        CUmemoryPool pool;
        CUdeviceptr pointer;
        uint64_t before;

        cr_assert_eq(sp_driver.cuDeviceGetDefaultMemPool(&pool, 1), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemAllocAsync(&pointer, BLOCK, CU_STREAM_LEGACY), CUDA_SUCCESS);
        before = sim_calls("cuMemSetAccess");
        cr_assert_eq(sp_on_cuMemPoolSetAccess(pool, &access, 1), CUDA_SUCCESS);
        cr_expect_eq(sim_calls("cuMemSetAccess") - before, 1);
        before = sim_calls("cuMemSetAccess");
        cr_assert_eq(sp_on_cuMemAllocAsync(&pointer, BLOCK, CU_STREAM_LEGACY), CUDA_SUCCESS);
        cr_expect_eq(sim_calls("cuMemSetAccess") - before, 2);
}

/* Segments of one range are mapped one by one, and each mapping has rights of its own. */

static unsigned long long rights_at(CUdeviceptr address)
{
        CUmemLocation peer = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
        unsigned long long flags = 77;

        cr_assert_eq(sp_driver.cuMemGetAccess(&flags, &peer, address), CUDA_SUCCESS);
        return flags;
}

Test(peers, may_use_every_segment_of_a_range_wherever_it_is_moved, .init = start)
{
        struct sp_context *context = sp_context_current();
        CUdeviceptr first = context->range.base + context->range.size / 2, next = first + BLOCK;
        struct spm_actions actions = forget(context->sync_pool);

        perform(&actions);
        grow(context->sync_pool, first, BLOCK);
        cr_expect_eq(rights_at(first), CU_MEM_ACCESS_FLAGS_PROT_NONE);
        grants_of(enable, there);
        cr_expect_eq(rights_at(first), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

        actions = forget(context->sync_pool);
        cr_assert_eq(actions.count, 1);
        actions.item[0].moves = true;
        add_grow(&actions, context->sync_pool, next, BLOCK);
        add_grow(&actions, context->sync_pool, next + BLOCK, BLOCK);
        perform(&actions);
        cr_expect_eq(rights_at(next), CU_MEM_ACCESS_FLAGS_PROT_READWRITE, "moved");
        cr_expect_eq(rights_at(next + BLOCK), CU_MEM_ACCESS_FLAGS_PROT_READWRITE, "new");

        grants_of(sp_on_cuCtxDisablePeerAccess, there);
        cr_expect_eq(rights_at(next), CU_MEM_ACCESS_FLAGS_PROT_NONE);
        cr_expect_eq(rights_at(next + BLOCK), CU_MEM_ACCESS_FLAGS_PROT_NONE);
}
