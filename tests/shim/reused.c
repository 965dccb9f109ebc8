/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reused -- of a second free, who else has had the address
 *
 * First what the ledger knows, of addresses that no driver has given out. Then on the simulated
 * driver with blocks of the pools, and with all kinds that the driver serves in observe mode.
 */

#include <stdlib.h>

#include "ledger_acts.h"
#include "tests/shim/begin.h"

/* the ledger alone */

static void live_and_die(uint64_t address, size_t bytes, unsigned int end)
{
        add(SP_KIND_DEVICE, address, bytes);
        free_it(SP_SPACE_DEVICE, address, "cuMemFree", OK, &place[end]);
}

static void refuse(uint64_t address)
{
        cr_expect_not(free_it(SP_SPACE_DEVICE, address, "cuMemFree", INVALID_VALUE, &place[15]));
}

/* The one in the middle may be the one that was too many: both lives are told. */
Test(reused, the_last_life_counts_and_the_one_before_is_told)
{
        live_and_die(0x1000, 100, 1);
        live_and_die(0x1000, 200, 2);
        refuse(0x1000);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].kind, SP_FINDING_DOUBLE_FREE);
        cr_expect_eq(found[0].block.bytes, 200);
        cr_expect_eq(found[0].freed_at, &place[2]);
        cr_assert(found[0].has_reuse);
        cr_expect_eq(found[0].reuse.address, 0x1000);
        cr_expect_eq(found[0].reuse.bytes, 100);
        cr_expect_eq(found[0].reuse.site, &place[0]);
        cr_expect_eq(found[0].reuse.freed_at, &place[1]);
        cr_expect_str_eq(found[0].reuse.freed_by, "cuMemFree");
}

Test(reused, of_many_lives_it_is_the_last_but_one)
{
        for (unsigned int i = 1; i <= 4; i++)
                live_and_die(0x1000, 100 * i, i);
        refuse(0x1000);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].freed_at, &place[4]);
        cr_expect_eq(found[0].reuse.freed_at, &place[3]);
}

Test(reused, an_address_of_one_life_has_no_other)
{
        live_and_die(0x1000, 100, 1);
        refuse(0x1000);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].kind, SP_FINDING_DOUBLE_FREE);
        cr_expect_not(found[0].has_reuse);
}

/* A node is recycled with another address. */
Test(reused, nothing_is_left_of_what_was_forgotten)
{
        live_and_die(0x1000, 100, 1);
        live_and_die(0x1000, 200, 2);
        for (uint64_t i = 0; i < SP_LEDGER_HISTORY + 64; i++)
                live_and_die(0x100000 + i * 512, 1, 3);
        for (uint64_t i = 0; i < SP_LEDGER_HISTORY + 64; i++)
                refuse(0x100000 + i * 512);
        refuse(0x1000);
        cr_assert_eq(findings(), 2);
        for (size_t i = 0; i < 2; i++)
                cr_expect_not(found[i].has_reuse, "%zu", i);
        cr_expect_eq(totals().findings[SP_FINDING_FOREIGN], 65);
}

/* How it ended was not seen, so nobody is told to have freed it. */
Test(reused, a_life_that_was_lost_is_not_told)
{
        add(SP_KIND_DEVICE, 0x1000, 100);
        live_and_die(0x1000, 200, 2);
        refuse(0x1000);
        cr_assert_eq(findings(), 1);
        cr_expect_not(found[0].has_reuse);
}

Test(reused, what_lies_there_by_now_is_told)
{
        live_and_die(0x1000, 100, 1);
        add(SP_KIND_MANAGED, 0x800, 0x1000);
        refuse(0x1000);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].kind, SP_FINDING_DOUBLE_FREE, "%s", sp_finding_name(found[0].kind));
        cr_expect_eq(found[0].block.address, 0x1000);
        cr_expect_eq(found[0].freed_at, &place[1]);
        cr_assert(found[0].has_reuse);
        cr_expect_eq(found[0].reuse.address, 0x800);
        cr_expect_eq(found[0].reuse.kind, SP_KIND_MANAGED);
        cr_expect_null(found[0].reuse.freed_by);
        refuse(0x1001);
        cr_assert_eq(findings(), 2);
        cr_expect_eq(found[1].kind, SP_FINDING_INTERIOR, "no block has begun there");
}

Test(reused, also_after_the_end_of_its_context)
{
        live_and_die(0x1000, 100, 1);
        add(SP_KIND_DEVICE, 0x1000, 200);
        sp_ledger_context_gone(7);
        refuse(0x1000);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].kind, SP_FINDING_AFTER_CONTEXT);
        cr_assert(found[0].has_reuse);
        cr_expect_eq(found[0].reuse.freed_at, &place[1]);
}

/* blocks of the pools */

static CUdeviceptr pooled(size_t bytes)
{
        CUdeviceptr block;

        cr_assert_eq(sp_on_cuMemAlloc_v2(&block, bytes), CUDA_SUCCESS);
        return block;
}

static void free_pooled(CUdeviceptr block, const void *site)
{
        sp_caller = site;
        cr_assert_eq(sp_on_cuMemFree_v2(block), CUDA_SUCCESS);
}

Test(reused, blocks_of_the_pools_have_their_lives_told)
{
        CUdeviceptr block;

        begin_on(0);
        get_at_hand(1000);
        block = pooled(1000);
        free_pooled(block, &place[1]);
        cr_assert_eq(pooled(1001), block, "it is served again");
        free_pooled(block, &place[2]);
        cr_expect_eq(sp_on_cuMemFree_v2(block), CUDA_ERROR_INVALID_VALUE);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].kind, SP_FINDING_DOUBLE_FREE);
        cr_expect_eq(found[0].block.bytes, 1001);
        cr_expect_eq(found[0].freed_at, &place[2]);
        cr_assert(found[0].has_reuse);
        cr_expect_eq(found[0].reuse.bytes, 1000);
        cr_expect_eq(found[0].reuse.freed_at, &place[1]);
}

/* The second half of a block was one of its own before. */
Test(reused, a_block_of_the_pools_that_lies_over_the_freed_one_is_told)
{
        CUdeviceptr first, second, both;

        begin_on(0);
        first = pooled(4 << 20);
        second = pooled(4 << 20);
        free_pooled(first, &place[1]);
        free_pooled(second, &place[2]);
        cr_assert_eq(cuCtxSynchronize(), CUDA_SUCCESS);
        both = pooled(8 << 20);
        cr_assert(both < second && second < both + (8 << 20), "it lies over both");
        cr_expect_eq(sp_on_cuMemFree_v2(second), CUDA_ERROR_INVALID_VALUE);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].kind, SP_FINDING_DOUBLE_FREE, "%s", sp_finding_name(found[0].kind));
        cr_expect_eq(found[0].block.address, second);
        cr_expect_eq(found[0].freed_at, &place[2]);
        cr_assert(found[0].has_reuse);
        cr_expect_eq(found[0].reuse.address, both);
        cr_expect_null(found[0].reuse.freed_by);
}

/* what the driver serves */

static CUresult plain(uint64_t *object)
{
        return sp_on_cuMemAlloc_v2((CUdeviceptr *)object, 4096);
}

static CUresult pitched(uint64_t *object)
{
        size_t pitch;

        return sp_on_cuMemAllocPitch_v2((CUdeviceptr *)object, &pitch, 100, 7, 4);
}

static CUresult managed(uint64_t *object)
{
        return sp_on_cuMemAllocManaged((CUdeviceptr *)object, 4096, CU_MEM_ATTACH_GLOBAL);
}

static CUresult ordered(uint64_t *object)
{
        return sp_on_cuMemAllocAsync((CUdeviceptr *)object, 4096, CU_STREAM_LEGACY);
}

static CUresult from_pool(uint64_t *object)
{
        CUmemPoolProps properties = {
                .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
        };
        CUmemoryPool pool;

        cr_assert_eq(sp_on_cuMemPoolCreate(&pool, &properties), CUDA_SUCCESS);
        return sp_on_cuMemAllocFromPoolAsync((CUdeviceptr *)object, 4096, pool, CU_STREAM_LEGACY);
}

static CUresult pinned(uint64_t *object)
{
        return sp_on_cuMemHostAlloc((void **)object, 4096, 0);
}

static CUresult physical(uint64_t *object)
{
        CUmemAllocationProp properties = {
                .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
        };

        return sp_on_cuMemCreate((CUmemGenericAllocationHandle *)object, 2 << 20, &properties, 0);
}

static CUresult free_host(CUdeviceptr address)
{
        return sp_on_cuMemFreeHost((void *)address); // NOLINT
}

static CUresult free_ordered(CUdeviceptr address)
{
        return sp_on_cuMemFreeAsync(address, CU_STREAM_LEGACY);
}

struct served {
        CUresult (*make)(uint64_t *object);
        CUresult (*end)(CUdeviceptr object);
        enum sp_kind kind;
};

static const struct served all_served[] = {
        {plain, sp_on_cuMemFree_v2, SP_KIND_DEVICE},
        {pitched, sp_on_cuMemFree_v2, SP_KIND_PITCH},
        {managed, sp_on_cuMemFree_v2, SP_KIND_MANAGED},
        {ordered, free_ordered, SP_KIND_ASYNC},
        {from_pool, free_ordered, SP_KIND_ASYNC},
        {pinned, free_host, SP_KIND_PINNED},
        {physical, sp_on_cuMemRelease, SP_KIND_VMM},
};

/* Twice: the driver may give out the same address again, and then both lives are told. */
static void free_too_often(const struct served *row, size_t number)
{
        uint64_t first, second;

        sp_caller = &place[1];
        cr_assert_eq(row->make(&first), CUDA_SUCCESS);
        sp_caller = &place[2];
        cr_assert_eq(row->end(first), CUDA_SUCCESS);
        sp_caller = &place[3];
        cr_assert_eq(row->make(&second), CUDA_SUCCESS);
        sp_caller = &place[4];
        cr_assert_eq(row->end(second), CUDA_SUCCESS);
        sp_caller = &place[8 + number];
        cr_expect_neq(row->end(second), CUDA_SUCCESS);
        cr_assert_eq(findings(), number + 1, "row %zu", number);
        cr_expect_eq(found[number].kind, SP_FINDING_DOUBLE_FREE, "row %zu is %s", number,
                     sp_finding_name(found[number].kind));
        cr_expect_eq(found[number].block.kind, row->kind, "row %zu", number);
        cr_expect_eq(found[number].block.site, &place[3], "row %zu", number);
        cr_expect_eq(found[number].freed_at, &place[4], "row %zu", number);
        cr_expect_eq(found[number].site, &place[8 + number], "row %zu", number);
        cr_expect_eq(found[number].has_reuse, first == second, "row %zu", number);
        if (first == second)
                cr_expect_eq(found[number].reuse.freed_at, &place[2], "row %zu", number);
}

Test(reused, all_kinds_that_the_driver_serves_are_told)
{
        setenv("STREAMPOOL_MODE", "observe", 1);
        begin_on(0);
        for (size_t i = 0; i < sizeof(all_served) / sizeof(all_served[0]); i++)
                free_too_often(&all_served[i], i);
        cr_expect_eq(served_by_pools(), 0);
}
