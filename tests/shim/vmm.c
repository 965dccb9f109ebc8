/* SPDX-License-Identifier: Apache-2.0 */

/*
 * VMM -- what the program maps itself is given out again without the driver
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
