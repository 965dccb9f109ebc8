/* SPDX-License-Identifier: Apache-2.0 */

/*
 * VMM, the books -- what the ledger, cuMemGetInfo and the limits say of what is kept
 */

#include "tests/shim/mapping.h"
#include "track/limit.h"

TestSuite(vmm_books, .init = start_mapping);

Test(vmm_books, released_is_released)
{
        struct array array = make(4 * MIB);

        give(array);
        cr_expect_eq(ledger().kind[SP_KIND_VMM].tally.bytes, 0);
        cr_expect_eq(ledger().kind[SP_KIND_VMM].tally.freed, 3);
        cr_expect_eq(ledger().kind[SP_KIND_MAPPED].tally.count, 0);
        cr_expect_eq(ledger().device[0].bytes, 0);
        array = make(4 * MIB);
        cr_expect_eq(ledger().kind[SP_KIND_VMM].tally.bytes, 4 * MIB);
        cr_expect_eq(ledger().kind[SP_KIND_VMM].tally.made, 4);
        cr_expect_eq(ledger().kind[SP_KIND_MAPPED].tally.count, 1);
        ok(sp_on_cuMemRelease(array.handle));
        cr_expect_eq(ledger().kind[SP_KIND_VMM].tally.bytes, 4 * MIB, "it is mapped still");
        ok(sp_on_cuMemUnmap(array.va, array.size));
        cr_expect_eq(ledger().kind[SP_KIND_VMM].tally.bytes, 0);
        cr_expect_eq(in_use(0), 0);
}

Test(vmm_books, a_second_release_is_found)
{
        struct array array = make(4 * MIB);

        give(array);
        cr_expect_eq(sp_on_cuMemRelease(array.handle), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(ledger().findings[SP_FINDING_DOUBLE_FREE], 1);
        cr_expect_eq(in_use(0), 0);
        cr_expect_eq(sp_on_cuMemAddressFree(array.va, array.size), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_on_cuMemUnmap(array.va, array.size), CUDA_ERROR_INVALID_VALUE);
}

Test(vmm_books, a_second_free_of_addresses_is_refused)
{
        struct array array = make(4 * MIB);

        give(array);
        cr_expect_eq(sp_on_cuMemAddressFree(array.va, array.size), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_on_cuMemRelease(array.handle), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(ledger().findings[SP_FINDING_DOUBLE_FREE], 1);
}

Test(vmm_books, a_second_unmap_is_answered_by_the_driver)
{
        struct array array = make(4 * MIB);

        ok(sp_on_cuMemUnmap(array.va, array.size));
        ok(sp_on_cuMemUnmap(array.va, array.size));
        ok(sp_on_cuMemAddressFree(array.va, array.size));
        cr_expect_eq(sp_on_cuMemUnmap(array.va, array.size), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_on_cuMemMap(array.va, array.size, 0, array.handle, 0),
                     CUDA_ERROR_INVALID_VALUE);
        ok(sp_on_cuMemRelease(array.handle));
        cr_expect_eq(sp_vmm_kept(0), 0);
        cr_expect_eq(in_use(0), 0);
}

Test(vmm_books, it_is_free_for_cuMemGetInfo)
{
        struct array array;
        size_t before, now, total;

        ok(sp_on_cuMemGetInfo_v2(&before, &total));
        array = make(4 * MIB);
        ok(sp_on_cuMemGetInfo_v2(&now, &total));
        cr_expect_eq(before - now, 4 * MIB);
        ok(sp_on_cuMemUnmap(array.va, array.size));
        ok(sp_on_cuMemGetInfo_v2(&now, &total));
        cr_expect_eq(before - now, 4 * MIB);
        ok(sp_on_cuMemRelease(array.handle));
        ok(sp_on_cuMemGetInfo_v2(&now, &total));
        cr_expect_eq(before, now);
        cr_expect_eq(in_use(0), 4 * MIB);
}

/* the limit */

static void start_limited(void)
{
        setenv("STREAMPOOL_LIMIT", "34M", 1);
        setenv("STREAMPOOL_LOG", "0", 1);
        start_mapping();
}

Test(vmm_limit, it_counts_against_the_limit_until_it_goes, .init = start_limited)
{
        struct array array = make(4 * MIB);

        cr_expect_eq(sp_limit_counted(0), 4 * MIB);
        for (int i = 0; i < 3; i++) {
                give(array);
                cr_expect_eq(sp_limit_counted(0), 4 * MIB);
                array = make(4 * MIB);
                cr_expect_eq(sp_limit_counted(0), 4 * MIB);
        }
        give(array);
        sp_vmm_trim(0, 0);
        cr_expect_eq(sp_limit_counted(0), 0);
}

Test(vmm_limit, the_limit_refuses_nothing_for_it, .init = start_limited)
{
        struct array one = make(16 * MIB), two = make(16 * MIB);
        CUmemGenericAllocationHandle handle;
        CUdeviceptr pointer;

        give(two);
        two = make(18 * MIB);
        cr_expect_eq(create(&handle, 2 * MIB, 0), CUDA_ERROR_OUT_OF_MEMORY);
        give(one);
        give(two);
        cr_expect_eq(sp_vmm_kept(0), 34 * MIB);
        ok(sp_on_cuMemAlloc_v2(&pointer, 10 * MIB));
        cr_expect_leq(sp_limit_counted(0), 34 * MIB);
        ok(sp_on_cuMemFree_v2(pointer));
}

Test(vmm_limit, memory_of_a_device_that_nothing_else_is_known_of_makes_room, .init = start_limited)
{
        struct array one = make_on(1, 16 * MIB), two = make_on(1, 16 * MIB);
        CUmemGenericAllocationHandle handle;

        give(one);
        ok(create(&handle, 18 * MIB, 1));
        cr_expect_eq(sp_limit_counted(1), 34 * MIB);
        give(two);
}

Test(vmm_limit, beyond_the_soft_limit_it_goes_before_a_pool_grows)
{
        CUdeviceptr pointer;

        setenv("STREAMPOOL_SOFT_LIMIT", "16M", 1);
        start_mapping();
        give(make(12 * MIB));
        sim_memory_high_reset(0);
        ok(sp_on_cuMemAlloc_v2(&pointer, 8 * MIB));
        cr_expect_eq(sp_vmm_kept(0), 0);
        cr_expect_leq(sim_memory_high(0), 16 * MIB);
        ok(sp_on_cuMemFree_v2(pointer));
}

Test(vmm_limit, beyond_the_soft_limit_it_goes_at_the_next_wait)
{
        struct array one, two;

        setenv("STREAMPOOL_SOFT_LIMIT", "16M", 1);
        start_mapping();
        one = make(12 * MIB);
        two = make(12 * MIB);
        give(one);
        ok(sp_on_cuCtxSynchronize());
        cr_expect_eq(sp_vmm_kept(0), 0);
        give(two);
        ok(sp_on_cuCtxSynchronize());
        cr_expect_eq(sp_vmm_kept(0), 12 * MIB);
}
