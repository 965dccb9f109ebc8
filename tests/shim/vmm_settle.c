/* SPDX-License-Identifier: Apache-2.0 */

/*
 * VMM, settling -- the program sees nothing of what is put off
 *
 * Each way to do something else with memory that is kept is tried here, and
 * answered as the driver answers without us.
 */

#include "tests/shim/mapping.h"

TestSuite(vmm_settle, .init = start_mapping);

static void expect_unmapped(CUdeviceptr va)
{
        CUmemGenericAllocationHandle again;
        CUdeviceptr base;
        size_t size;

        cr_expect_eq(sp_on_cuMemGetAddressRange_v2(&base, &size, va + MIB), CUDA_ERROR_NOT_FOUND);
        cr_expect_eq(sp_on_cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)va),
                     CUDA_ERROR_INVALID_VALUE);
}

Test(vmm_settle, memory_mapped_elsewhere_is_not_where_it_was)
{
        struct array array = make(4 * MIB);
        CUdeviceptr other;

        ok(sp_on_cuMemAddressReserve(&other, 4 * MIB, 0, 0, 0));
        ok(sp_on_cuMemUnmap(array.va, array.size));
        ok(sp_on_cuMemMap(other, 4 * MIB, 0, array.handle, 0));
        ok(allow_rw(other, 4 * MIB, 0));
        expect_unmapped(array.va);
        ok(sp_on_cuMemAddressFree(array.va, array.size));
        array.va = other;
        give(array);
        cr_expect_eq(sp_vmm_kept(0), 4 * MIB);
}

Test(vmm_settle, other_memory_can_be_mapped_where_some_was)
{
        struct array one = make(4 * MIB), two = {.va = one.va, .size = 4 * MIB};

        ok(create(&two.handle, 4 * MIB, 0));
        ok(sp_on_cuMemUnmap(one.va, one.size));
        ok(sp_on_cuMemMap(one.va, one.size, 0, two.handle, 0));
        ok(allow_rw(one.va, one.size, 0));
        ok(sp_on_cuMemRelease(one.handle));
        cr_expect_eq(in_use(0), 4 * MIB);
        give(two);
        cr_expect_eq(sp_vmm_kept(0), 4 * MIB);
}

Test(vmm_settle, memory_that_is_mapped_twice_is_not_kept)
{
        struct array array = make(4 * MIB);
        CUdeviceptr other;

        ok(sp_on_cuMemAddressReserve(&other, 4 * MIB, 0, 0, 0));
        ok(sp_on_cuMemMap(other, 4 * MIB, 0, array.handle, 0));
        give(array);
        cr_expect_eq(sp_vmm_kept(0), 0);
        cr_expect_eq(in_use(0), 4 * MIB);
        ok(sp_on_cuMemUnmap(other, 4 * MIB));
        cr_expect_eq(in_use(0), 0);
}

/* The host's addresses are mostly given out side by side, under a sanitizer not always. */
static CUdeviceptr lower_of_neighbours(struct array one, struct array two)
{
        CUdeviceptr low = one.va < two.va ? one.va : two.va;

        if (one.va + two.va != 2 * low + 4 * MIB)
                cr_skip_test("the two are not side by side");
        return low;
}

Test(vmm_settle, one_unmap_can_end_several)
{
        struct array one = make(4 * MIB), two = make(4 * MIB);
        CUdeviceptr low = lower_of_neighbours(one, two);

        ok(sp_on_cuMemUnmap(one.va, one.size));
        ok(sp_on_cuMemUnmap(low, 8 * MIB));
        ok(sp_on_cuMemRelease(one.handle));
        ok(sp_on_cuMemRelease(two.handle));
        cr_expect_eq(in_use(0), 0);
        cr_expect_eq(ledger().kind[SP_KIND_MAPPED].tally.count, 0);
        cr_expect_eq(ledger().kind[SP_KIND_VMM].tally.count, 0);
}

Test(vmm_settle, what_the_driver_unmapped_can_be_a_pair_again)
{
        struct array one = make(4 * MIB), two = make(4 * MIB);
        CUdeviceptr low = lower_of_neighbours(one, two);

        ok(sp_on_cuMemUnmap(low, 8 * MIB));
        cr_expect_eq(allow_rw(one.va, one.size, 0), CUDA_ERROR_INVALID_VALUE);
        ok(sp_on_cuMemMap(one.va, one.size, 0, one.handle, 0));
        ok(allow_rw(one.va, one.size, 0));
        give(one);
        cr_expect_eq(sp_vmm_kept(0), 4 * MIB);
}

Test(vmm_settle, a_pair_of_which_the_program_has_half_is_not_mapped)
{
        struct array array = make(4 * MIB);
        CUmemGenericAllocationHandle handle;

        ok(sp_on_cuMemUnmap(array.va, array.size));
        ok(sp_on_cuMemRelease(array.handle));
        cr_expect_eq(sp_on_cuMemMap(array.va, array.size, 0, array.handle, 0),
                     CUDA_ERROR_INVALID_VALUE);
        ok(sp_on_cuMemAddressFree(array.va, array.size));
        array = make(4 * MIB);
        give(array);
        ok(create(&handle, 4 * MIB, 0));
        cr_expect_eq(sp_on_cuMemMap(array.va, array.size, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
        ok(sp_on_cuMemRelease(handle));
        cr_expect_eq(in_use(0), 0);
}

Test(vmm_settle, a_part_of_the_memory_is_mapped_by_the_driver)
{
        struct array array = make(4 * MIB);
        CUdeviceptr va;

        cr_expect_eq(sp_on_cuMemMap(array.va, 2 * MIB, 2 * MIB, array.handle, 0),
                     CUDA_ERROR_NOT_SUPPORTED);
        give(array);
        array = make(4 * MIB);
        ok(sp_on_cuMemUnmap(array.va, array.size));
        cr_expect_eq(sp_on_cuMemMap(array.va, array.size, 2 * MIB, array.handle, 0),
                     CUDA_ERROR_NOT_SUPPORTED);
        ok(sp_on_cuMemAddressReserve(&va, 2 * MIB, 0, 0, 0));
        ok(sp_on_cuMemMap(va, 2 * MIB, 0, array.handle, 0));
        ok(sp_on_cuMemUnmap(va, 2 * MIB));
        ok(sp_on_cuMemRelease(array.handle));
        cr_expect_eq(in_use(0), 0);
}

Test(vmm_settle, access_to_what_was_unmapped_is_refused)
{
        struct array array = make(4 * MIB);

        ok(sp_on_cuMemUnmap(array.va, array.size));
        cr_expect_eq(allow_rw(array.va, array.size, 0), CUDA_ERROR_INVALID_VALUE);
}

Test(vmm_settle, parts_are_refused_as_the_driver_refuses_them)
{
        struct array array = make(4 * MIB);

        cr_expect_eq(sp_on_cuMemUnmap(array.va, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_on_cuMemAddressFree(array.va, array.size), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(allow_rw(array.va, 2 * MIB, 0), CUDA_ERROR_INVALID_VALUE);
        ok(sp_on_cuMemUnmap(array.va, array.size));
        cr_expect_eq(allow_rw(array.va, array.size, 0), CUDA_ERROR_INVALID_VALUE);
        ok(sp_on_cuMemRelease(array.handle));
        cr_expect_eq(sp_on_cuMemAddressFree(array.va, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
        ok(sp_on_cuMemAddressFree(array.va, array.size));
        cr_expect_eq(in_use(0), 0);
}

Test(vmm_settle, addresses_that_are_kept_look_unmapped)
{
        struct array array = make(4 * MIB);
        unsigned long long flags;
        unsigned int type;

        give(array);
        expect_unmapped(array.va);
        cr_expect_eq(in_use(0), 0);
        array = make(4 * MIB);
        give(array);
        cr_expect_neq(
                sp_on_cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, array.va),
                CUDA_SUCCESS);
        array = make(4 * MIB);
        give(array);
        cr_expect_neq(sp_on_cuMemGetAccess(&flags, &(CUmemLocation){.type = 1}, array.va),
                      CUDA_SUCCESS);
}

Test(vmm_settle, memory_that_was_released_has_no_properties)
{
        struct array array = make(4 * MIB);
        CUmemAllocationProp prop;

        ok(sp_on_cuMemUnmap(array.va, array.size));
        sim_calls_reset();
        ok(sp_on_cuMemGetAllocationPropertiesFromHandle(&prop, array.handle));
        cr_expect_eq(sim_calls("cuMemUnmap"), 0);
        ok(sp_on_cuMemRelease(array.handle));
        cr_expect_eq(sp_on_cuMemGetAllocationPropertiesFromHandle(&prop, array.handle),
                     CUDA_ERROR_INVALID_VALUE);
}

Test(vmm_settle, a_wished_address_is_free_although_it_was_kept)
{
        struct array array = make(4 * MIB);
        CUdeviceptr va;

        /* Under a sanitizer something of the host's may lie there. */
        ok(sp_driver.cuMemAddressReserve(&va, array.size, 0, array.va + 8 * MIB, 0));
        if (va != array.va + 8 * MIB)
                cr_skip_test("the driver itself has another address");
        ok(sp_driver.cuMemAddressFree(va, array.size));
        give(array);
        ok(sp_on_cuMemAddressReserve(&va, array.size, 0, array.va + 8 * MIB, 0));
        cr_expect_eq(va, array.va + 8 * MIB);
        cr_expect_eq(sp_vmm_kept(0), array.size);
        ok(sp_on_cuMemAddressReserve(&va, array.size, 0, array.va, 0));
        cr_expect_eq(va, array.va);
}

/* memory that somebody else knows */

static void expect_not_kept(struct array array)
{
        size_t before = in_use(0);

        give(array);
        cr_expect_eq(sp_vmm_kept(0), 0);
        cr_expect_eq(before - in_use(0), array.size);
}

Test(vmm_settle, exported_memory_is_not_kept)
{
        struct array array = make(4 * MIB);
        int file;

        ok(sp_on_cuMemExportToShareableHandle(&file, array.handle,
                                              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
        give(array);
        cr_expect_eq(sp_vmm_kept(0), 0);
}

Test(vmm_settle, retained_memory_is_not_kept)
{
        CUmemGenericAllocationHandle again;
        struct array array = make(4 * MIB);

        ok(sp_on_cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(array.va + MIB)));
        give(array);
        cr_expect_eq(sp_vmm_kept(0), 0);
        cr_expect_eq(in_use(0), 4 * MIB);
        ok(sp_on_cuMemRelease(again));
        cr_expect_eq(in_use(0), 0);
}

Test(vmm_settle, bound_memory_is_not_kept)
{
        struct array array = make(4 * MIB), other = make(2 * MIB);

        sp_on_cuMulticastBindMem(7, 0, array.handle, 0, 4 * MIB, 0);
        sp_on_cuMulticastBindAddr(7, 0, other.va, 2 * MIB, 0);
        expect_not_kept(array);
        expect_not_kept(other);
}

Test(vmm_settle, memory_of_a_range_that_has_a_handle_is_not_kept)
{
        struct array array = make(4 * MIB);
        int handle;

        sp_on_cuMemGetHandleForAddressRange(&handle, array.va, array.size,
                                            CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
        expect_not_kept(array);
}

/* access */

static unsigned long long access_of(int device, CUdeviceptr va)
{
        CUmemLocation place = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
        unsigned long long flags = 77;

        ok(sp_on_cuMemGetAccess(&flags, &place, va));
        return flags;
}

Test(vmm_settle, access_that_was_not_given_again_is_not_there)
{
        struct array array = make(4 * MIB);

        ok(allow_rw(array.va, array.size, 1));
        give(array);
        sim_calls_reset();
        array = make(4 * MIB);
        cr_expect_eq(sim_calls_all(), 0);
        cr_expect_eq(access_of(0, array.va), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        cr_expect_eq(access_of(1, array.va), CU_MEM_ACCESS_FLAGS_PROT_NONE);
        ok(allow_rw(array.va, array.size, 1));
        cr_expect_eq(access_of(1, array.va), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

Test(vmm_settle, exported_memory_has_the_access_that_was_given)
{
        struct array array = make(4 * MIB);
        CUmemGenericAllocationHandle again;

        ok(allow_rw(array.va, array.size, 1));
        give(array);
        array = make(4 * MIB);
        ok(sp_on_cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)array.va));
        cr_expect_eq(access_of(1, array.va), CU_MEM_ACCESS_FLAGS_PROT_NONE);
}

Test(vmm_settle, other_access_is_set_by_the_driver)
{
        struct array array = make(4 * MIB);

        give(array);
        ok(create(&array.handle, array.size, 0));
        ok(sp_on_cuMemAddressReserve(&array.va, array.size, 0, 0, 0));
        ok(sp_on_cuMemMap(array.va, array.size, 0, array.handle, 0));
        sim_calls_reset();
        ok(allow(array.va, array.size, 0, CU_MEM_ACCESS_FLAGS_PROT_READ));
        cr_expect_eq(sim_calls("cuMemSetAccess"), 1);
        ok(allow(array.va, array.size, 0, CU_MEM_ACCESS_FLAGS_PROT_READ));
        cr_expect_eq(sim_calls("cuMemSetAccess"), 1);
        cr_expect_eq(access_of(0, array.va), CU_MEM_ACCESS_FLAGS_PROT_READ);
}

Test(vmm_settle, access_of_several_at_once_is_followed_no_further)
{
        struct array one = make(4 * MIB), two = make(4 * MIB);
        CUdeviceptr low = lower_of_neighbours(one, two);

        ok(allow(low, 8 * MIB, 0, CU_MEM_ACCESS_FLAGS_PROT_READ));
        expect_not_kept(one);
        expect_not_kept(two);
}
