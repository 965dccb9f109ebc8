/* SPDX-License-Identifier: Apache-2.0 */

/*
 * VMM -- what the program maps itself is given out again without the driver
 *
 * And the program sees none of it: each way to do something else with memory that
 * is kept is tried here, and answered as the driver answers without us.
 */

#include "tests/shim/mapping.h"

TestSuite(vmm, .init = start_mapping);

/* the usual way */

Test(vmm, the_same_arrays_again_take_no_call_of_the_driver)
{
        static const size_t sizes[] = {2 * MIB, 4 * MIB, 4 * MIB, 16 * MIB, 2 * MIB};
        struct array arrays[5];

        for (int round = 0; round < 3; round++) {
                if (round == 1)
                        sim_calls_reset();
                for (int i = 0; i < 5; i++)
                        arrays[i] = make(sizes[i]);
                for (int i = 0; i < 5; i++)
                        give(arrays[(i + round) % 5]);
        }
        cr_expect_eq(sim_calls_all(), 0);
        cr_expect_eq(sp_counter_sum(SP_COUNTER_vmm_reused), 10);
        cr_expect_eq(in_use(0), 28 * MIB);
        cr_expect_eq(sp_vmm_kept(0), 28 * MIB);
}

Test(vmm, in_another_order_too)
{
        struct array array = make(4 * MIB), again = {.size = 4 * MIB};

        ok(sp_on_cuMemUnmap(array.va, array.size));
        ok(sp_on_cuMemAddressFree(array.va, array.size));
        ok(sp_on_cuMemRelease(array.handle));
        sim_calls_reset();
        ok(sp_on_cuMemAddressReserve(&again.va, again.size, 0, 0, 0));
        ok(create(&again.handle, again.size, 0));
        ok(sp_on_cuMemMap(again.va, again.size, 0, again.handle, 0));
        ok(allow_rw(again.va, again.size, 0));
        cr_expect_eq(sim_calls_all(), 0);
        cr_expect_eq(again.va, array.va);
        give(again);
}

Test(vmm, two_halves_of_two_pairs_find_each_other)
{
        struct array one = make(4 * MIB), two = make(4 * MIB);

        give(one);
        give(two);
        sim_calls_reset();
        ok(create(&one.handle, 4 * MIB, 0));
        ok(create(&two.handle, 4 * MIB, 0));
        ok(sp_on_cuMemAddressReserve(&two.va, 4 * MIB, 0, 0, 0));
        ok(sp_on_cuMemMap(two.va, 4 * MIB, 0, two.handle, 0));
        ok(sp_on_cuMemAddressReserve(&one.va, 4 * MIB, 0, 0, 0));
        ok(sp_on_cuMemMap(one.va, 4 * MIB, 0, one.handle, 0));
        cr_expect_eq(sim_calls_all(), 0);
        cr_expect_neq(one.va, two.va);
}

Test(vmm, a_half_is_not_exchanged_for_what_was_given_back_later)
{
        struct array one = make(4 * MIB), two = make(4 * MIB);
        CUdeviceptr va;

        give(one);
        ok(create(&one.handle, 4 * MIB, 0));
        give(two);
        ok(sp_on_cuMemAddressReserve(&va, 4 * MIB, 0, 0, 0));
        cr_expect_eq(va, one.va);
        ok(sp_on_cuMemMap(va, 4 * MIB, 0, one.handle, 0));
        give(one);
        ok(sp_on_cuMemAddressReserve(&one.va, 4 * MIB, 0, 0, 0));
        give(make(2 * MIB));
        ok(create(&one.handle, 4 * MIB, 0));
        sim_calls_reset();
        ok(sp_on_cuMemMap(one.va, 4 * MIB, 0, one.handle, 0));
        cr_expect_eq(sim_calls_all(), 0);
}

Test(vmm, addresses_that_the_program_keeps_are_not_given_out_with_new_memory)
{
        struct array one = make(4 * MIB), two;

        ok(sp_on_cuMemUnmap(one.va, one.size));
        ok(sp_on_cuMemRelease(one.handle));
        sim_calls_reset();
        two = make(4 * MIB);
        cr_expect_eq(sim_calls("cuMemCreate"), 1);
        cr_expect_neq(two.va, one.va);
        ok(sp_on_cuMemAddressFree(one.va, one.size));
        cr_expect_eq(sp_vmm_kept(0), 4 * MIB);
}

Test(vmm, memory_stays_where_it_was_mapped_when_the_program_maps_it_there_again)
{
        struct array array = make(4 * MIB);

        sim_calls_reset();
        ok(sp_on_cuMemUnmap(array.va, array.size));
        ok(sp_on_cuMemMap(array.va, array.size, 0, array.handle, 0));
        cr_expect_eq(sim_calls_all(), 0);
        give(array);
}

Test(vmm, addresses_for_memory_of_the_drivers_are_the_drivers)
{
        struct array array = make(4 * MIB);

        give(array);
        sim_calls_reset();
        give(make_on(1, 4 * MIB));
        cr_expect_eq(sim_calls("cuMemAddressReserve"), 1);
        cr_expect_eq(sp_vmm_kept(0), 4 * MIB);
        cr_expect_eq(sp_vmm_kept(1), 4 * MIB);
}

/* only what is equal */

Test(vmm, other_properties_or_another_size_are_the_drivers)
{
        CUmemAllocationProp prop = prop_on(0);
        CUmemGenericAllocationHandle handle;
        struct array array = make(4 * MIB);
        CUdeviceptr va;

        give(array);
        sim_calls_reset();
        prop.allocFlags.gpuDirectRDMACapable = 1;
        ok(sp_on_cuMemCreate(&handle, 4 * MIB, &prop, 0));
        ok(create(&handle, 2 * MIB, 0));
        ok(create(&handle, 4 * MIB, 1));
        cr_expect_eq(sim_calls("cuMemCreate"), 3);
        cr_expect_eq(sp_vmm_kept(0), 4 * MIB);
        ok(sp_on_cuMemAddressReserve(&va, 2 * MIB, 0, 0, 0));
        ok(sp_on_cuMemAddressReserve(&va, 4 * MIB, (size_t)1 << 40, 0, 0));
        cr_expect_eq(sim_calls("cuMemAddressReserve"), 2);
        cr_expect_eq(va % ((size_t)1 << 40), 0);
}

Test(vmm, what_the_driver_refuses_it_is_asked)
{
        CUmemGenericAllocationHandle handle = 5;
        CUmemAllocationProp prop = prop_on(0);
        struct array array = make(4 * MIB);
        CUdeviceptr va = 5;

        cr_expect_eq(sp_on_cuMemSetAccess(array.va, array.size, NULL, 1), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(
                sp_on_cuMemSetAccess(array.va, array.size, &(CUmemAccessDesc){.location.id = 0}, 0),
                CUDA_ERROR_INVALID_VALUE);
        give(array);
        array = make(4 * MIB);
        give(array);
        cr_expect_eq(sp_vmm_kept(0), 4 * MIB);
        cr_expect_eq(sp_on_cuMemCreate(NULL, 4 * MIB, &prop, 0), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_on_cuMemCreate(&handle, 4 * MIB, NULL, 0), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_on_cuMemCreate(&handle, 4 * MIB, &prop, 1), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_on_cuMemAddressReserve(NULL, 4 * MIB, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_on_cuMemAddressReserve(&va, 4 * MIB, array.va, 0, 0),
                     CUDA_ERROR_INVALID_VALUE, "no power of two");
        cr_expect_eq(sp_on_cuMemAddressReserve(&va, 4 * MIB, 0, 0, 1), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_vmm_kept(0), 4 * MIB);
        cr_expect_eq(handle, 5);
        cr_expect_eq(va, 5);
}

Test(vmm, large_memory_and_parts_of_a_reservation_are_the_drivers)
{
        CUmemGenericAllocationHandle handle;
        CUdeviceptr va;

        give(make(34 * MIB));
        cr_expect_eq(in_use(0), 0);
        ok(create(&handle, 4 * MIB, 0));
        ok(sp_on_cuMemAddressReserve(&va, 8 * MIB, 0, 0, 0));
        ok(sp_on_cuMemMap(va, 4 * MIB, 0, handle, 0));
        ok(sp_on_cuMemUnmap(va, 8 * MIB));
        ok(sp_on_cuMemRelease(handle));
        cr_expect_eq(in_use(0), 0);
        ok(sp_on_cuMemAddressFree(va, 8 * MIB));
}

/* anything else is made true first */

static void expect_unmapped(CUdeviceptr va)
{
        CUmemGenericAllocationHandle again;
        CUdeviceptr base;
        size_t size;

        cr_expect_eq(sp_on_cuMemGetAddressRange_v2(&base, &size, va + MIB), CUDA_ERROR_NOT_FOUND);
        cr_expect_eq(sp_on_cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)va),
                     CUDA_ERROR_INVALID_VALUE);
}

Test(vmm, memory_mapped_elsewhere_is_not_where_it_was)
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

Test(vmm, other_memory_can_be_mapped_where_some_was)
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

Test(vmm, memory_that_is_mapped_twice_is_not_kept)
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

Test(vmm, one_unmap_can_end_several)
{
        struct array one = make(4 * MIB), two = make(4 * MIB);
        CUdeviceptr low = one.va < two.va ? one.va : two.va;

        cr_assert_eq(one.va + two.va, 2 * low + 4 * MIB, "side by side");
        ok(sp_on_cuMemUnmap(one.va, one.size));
        ok(sp_on_cuMemUnmap(low, 8 * MIB));
        ok(sp_on_cuMemRelease(one.handle));
        ok(sp_on_cuMemRelease(two.handle));
        cr_expect_eq(in_use(0), 0);
        cr_expect_eq(ledger().kind[SP_KIND_MAPPED].tally.count, 0);
        cr_expect_eq(ledger().kind[SP_KIND_VMM].tally.count, 0);
}

Test(vmm, what_the_driver_unmapped_can_be_a_pair_again)
{
        struct array one = make(4 * MIB), two = make(4 * MIB);
        CUdeviceptr low = one.va < two.va ? one.va : two.va;

        ok(sp_on_cuMemUnmap(low, 8 * MIB));
        cr_expect_eq(allow_rw(one.va, one.size, 0), CUDA_ERROR_INVALID_VALUE);
        ok(sp_on_cuMemMap(one.va, one.size, 0, one.handle, 0));
        ok(allow_rw(one.va, one.size, 0));
        give(one);
        cr_expect_eq(sp_vmm_kept(0), 4 * MIB);
}

Test(vmm, a_pair_of_which_the_program_has_half_is_not_mapped)
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

Test(vmm, a_part_of_the_memory_is_mapped_by_the_driver)
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

Test(vmm, access_to_what_was_unmapped_is_refused)
{
        struct array array = make(4 * MIB);

        ok(sp_on_cuMemUnmap(array.va, array.size));
        cr_expect_eq(allow_rw(array.va, array.size, 0), CUDA_ERROR_INVALID_VALUE);
}

Test(vmm, parts_are_refused_as_the_driver_refuses_them)
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

Test(vmm, addresses_that_are_kept_look_unmapped)
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

Test(vmm, memory_that_was_released_has_no_properties)
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

Test(vmm, a_wished_address_is_free_although_it_was_kept)
{
        struct array array = make(4 * MIB);
        CUdeviceptr va;

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

Test(vmm, exported_memory_is_not_kept)
{
        struct array array = make(4 * MIB);
        int file;

        ok(sp_on_cuMemExportToShareableHandle(&file, array.handle,
                                              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
        give(array);
        cr_expect_eq(sp_vmm_kept(0), 0);
}

Test(vmm, retained_memory_is_not_kept)
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

Test(vmm, bound_memory_is_not_kept)
{
        struct array array = make(4 * MIB), other = make(2 * MIB);

        sp_on_cuMulticastBindMem(7, 0, array.handle, 0, 4 * MIB, 0);
        sp_on_cuMulticastBindAddr(7, 0, other.va, 2 * MIB, 0);
        expect_not_kept(array);
        expect_not_kept(other);
}

Test(vmm, memory_of_a_range_that_has_a_handle_is_not_kept)
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

Test(vmm, access_that_was_not_given_again_is_not_there)
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

Test(vmm, exported_memory_has_the_access_that_was_given)
{
        struct array array = make(4 * MIB);
        CUmemGenericAllocationHandle again;

        ok(allow_rw(array.va, array.size, 1));
        give(array);
        array = make(4 * MIB);
        ok(sp_on_cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)array.va));
        cr_expect_eq(access_of(1, array.va), CU_MEM_ACCESS_FLAGS_PROT_NONE);
}

Test(vmm, other_access_is_set_by_the_driver)
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

Test(vmm, access_of_several_at_once_is_followed_no_further)
{
        struct array one = make(4 * MIB), two = make(4 * MIB);
        CUdeviceptr low = one.va < two.va ? one.va : two.va;

        ok(allow(low, 8 * MIB, 0, CU_MEM_ACCESS_FLAGS_PROT_READ));
        expect_not_kept(one);
        expect_not_kept(two);
}
