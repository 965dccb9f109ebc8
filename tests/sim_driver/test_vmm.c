/* SPDX-License-Identifier: Apache-2.0 */

/*
 * VMM -- the rules of physical memory and addresses, and what they do not do
 */

#include <signal.h>
#include <unistd.h>
#include "test_support.h"

struct piece {
        CUmemGenericAllocationHandle handle;
        CUdeviceptr va;
};

static CUmemGenericAllocationHandle create(size_t bytes)
{
        CUmemAllocationProp prop = memory_of(0);
        CUmemGenericAllocationHandle handle;

        ok(cuMemCreate(&handle, bytes, &prop, 0));
        return handle;
}

static CUresult allow(CUdeviceptr va, size_t bytes, CUmemAccess_flags flags)
{
        CUmemAccessDesc access = {.flags = flags};

        access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        return cuMemSetAccess(va, bytes, &access, 1);
}

static struct piece map(size_t bytes)
{
        struct piece piece = {.handle = create(bytes)};

        ok(cuMemAddressReserve(&piece.va, bytes, 0, 0, 0));
        ok(cuMemMap(piece.va, bytes, 0, piece.handle, 0));
        ok(allow(piece.va, bytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
        return piece;
}

Test(sim, sizes_come_in_pages_of_2_MiB)
{
        CUmemAllocationProp prop = memory_of(0);
        CUmemGenericAllocationHandle handle;
        CUdeviceptr va;
        size_t page;

        begin();
        ok(cuMemGetAllocationGranularity(&page, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
        cr_expect_eq(page, 2 * MIB);
        ok(cuMemGetAllocationGranularity(&page, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
        cr_expect_eq(page, 2 * MIB);
        expect(1, cuMemCreate(&handle, MIB, &prop, 0));
        expect(1, cuMemCreate(&handle, 0, &prop, 0));
        expect(1, cuMemAddressReserve(&va, MIB, 0, 0, 0));
        expect(1, cuMemAddressReserve(&va, 2 * MIB, 3, 0, 0));
        prop.location.id = 99;
        expect(101, cuMemCreate(&handle, 2 * MIB, &prop, 0));
        prop = memory_of(0);
        expect(2, cuMemCreate(&handle, (size_t)1 << 50, &prop, 0));
}

Test(sim, an_offset_into_physical_memory_is_not_supported)
{
        CUmemGenericAllocationHandle handle;
        CUdeviceptr va;

        begin();
        handle = create(4 * MIB);
        ok(cuMemAddressReserve(&va, 8 * MIB, 0, 0, 0));
        expect(801, cuMemMap(va, 2 * MIB, 2 * MIB, handle, 0));
        ok(cuMemMap(va, 4 * MIB, 0, handle, 0));
}

Test(sim, one_piece_can_be_mapped_twice)
{
        struct piece piece;
        uint32_t value = 0;
        CUdeviceptr second;

        begin();
        piece = map(2 * MIB);
        ok(cuMemAddressReserve(&second, 2 * MIB, 0, 0, 0));
        ok(cuMemMap(second, 2 * MIB, 0, piece.handle, 0));
        ok(allow(second, 2 * MIB, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
        ok(cuMemsetD32(piece.va, 4711, 16));
        ok(cuMemcpyDtoH(&value, second + 60, 4));
        cr_expect_eq(value, 4711);
}

Test(sim, mapping_needs_a_free_place_in_a_reservation)
{
        CUmemGenericAllocationHandle handle;
        CUdeviceptr va;

        begin();
        handle = create(2 * MIB);
        ok(cuMemAddressReserve(&va, 4 * MIB, 0, 0, 0));
        expect(1, cuMemMap(va + 4 * MIB, 2 * MIB, 0, handle, 0));
        expect(1, cuMemMap(va + 4096, 2 * MIB, 0, handle, 0));
        expect(1, cuMemMap(va, 4 * MIB, 0, handle, 0));
        ok(cuMemMap(va, 2 * MIB, 0, handle, 0));
        expect(1, cuMemMap(va, 2 * MIB, 0, handle, 0));
        ok(cuMemMap(va + 2 * MIB, 2 * MIB, 0, handle, 0));
        expect(1, cuMemMap(va, 2 * MIB, 0, 4711, 0));
}

Test(sim, only_whole_mappings_are_unmapped)
{
        struct piece piece;

        begin();
        piece = map(4 * MIB);
        expect(1, cuMemUnmap(piece.va, 2 * MIB));
        expect(1, cuMemUnmap(piece.va + 2 * MIB, 2 * MIB));
        expect(1, cuMemUnmap(piece.va, 0));
        expect(1, cuMemAddressFree(piece.va, 4 * MIB));
        ok(cuMemUnmap(piece.va, 4 * MIB));
        expect(1, cuMemsetD8(piece.va, 1, 16));
        ok(cuMemUnmap(piece.va, 4 * MIB)); /* nothing is left there */
        ok(cuMemUnmap(piece.va + 4096, 4096));
        expect(1, cuMemAddressFree(piece.va, 2 * MIB));
        ok(cuMemAddressFree(piece.va, 4 * MIB));
        expect(1, cuMemUnmap(piece.va, 4 * MIB));
        expect(1, cuMemAddressFree(piece.va, 4 * MIB));
}

Test(sim, one_unmap_covers_a_reservation_with_holes)
{
        size_t before;
        CUdeviceptr va, p;

        begin();
        before = free_bytes();
        ok(cuMemAddressReserve(&va, 16 * MIB, 0, 0, 0));
        for (int i = 0; i < 2; i++) {
                CUmemGenericAllocationHandle handle = create(4 * MIB);

                ok(cuMemMap(va + 8 * MIB * (size_t)i, 4 * MIB, 0, handle, 0));
                ok(cuMemRelease(handle));
        }
        expect(1, cuMemUnmap(va + 2 * MIB, 14 * MIB));
        expect(1, cuMemUnmap(va, 10 * MIB));
        ok(cuMemUnmap(va, 16 * MIB));
        cr_expect_eq(free_bytes(), before);
        ok(cuMemAddressFree(va, 16 * MIB));
        ok(cuMemAlloc(&p, 4 * MIB));
        expect(1, cuMemUnmap(p, 4 * MIB));
}

Test(sim, one_unmap_and_one_access_cover_adjoining_mappings)
{
        CUdeviceptr va;

        begin();
        ok(cuMemAddressReserve(&va, 8 * MIB, 0, 0, 0));
        for (int i = 0; i < 3; i++)
                ok(cuMemMap(va + 2 * MIB * (size_t)i, 2 * MIB, 0, create(2 * MIB), 0));
        expect(1, allow(va, 8 * MIB, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
        ok(allow(va, 6 * MIB, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
        ok(cuMemsetD8(va + MIB, 1, 4 * MIB));
        ok(cuCtxSynchronize());
        ok(cuMemUnmap(va, 6 * MIB));
}

Test(sim, memory_lives_while_it_is_held_or_mapped)
{
        struct piece piece;
        size_t before;
        CUmemGenericAllocationHandle again;
        CUmemAllocationProp prop;

        begin();
        before = free_bytes();
        piece = map(4 * MIB);
        cr_expect_eq(before - free_bytes(), 4 * MIB);
        ok(cuMemRelease(piece.handle));
        expect(1, cuMemRelease(piece.handle));
        cr_expect_eq(before - free_bytes(), 4 * MIB);
        ok(cuMemsetD8(piece.va, 1, 4 * MIB));
        ok(cuCtxSynchronize());
        ok(cuMemRetainAllocationHandle(&again, (void *)(piece.va + 100)));
        cr_expect_eq(again, piece.handle);
        ok(cuMemUnmap(piece.va, 4 * MIB));
        cr_expect_eq(before - free_bytes(), 4 * MIB);
        ok(cuMemGetAllocationPropertiesFromHandle(&prop, again));
        ok(cuMemRelease(again));
        cr_expect_eq(before, free_bytes());
        expect(1, cuMemGetAllocationPropertiesFromHandle(&prop, again));
}

Test(sim, access_is_asked_and_answered_per_device)
{
        struct piece piece;
        CUmemLocation place = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
        unsigned long long flags;
        CUdeviceptr p;

        begin();
        piece = map(2 * MIB);
        ok(cuMemGetAccess(&flags, &place, piece.va));
        cr_expect_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        place.id = 1;
        ok(cuMemGetAccess(&flags, &place, piece.va));
        cr_expect_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
        ok(allow(piece.va, 2 * MIB, CU_MEM_ACCESS_FLAGS_PROT_NONE));
        expect(1, cuMemsetD8(piece.va, 1, 16));
        ok(cuMemAlloc(&p, 64));
        flags = 7;
        ok(cuMemGetAccess(&flags, &place, p));
        cr_expect_eq(flags, 0);
}

/* M2, M27: nothing waits, and a mapping is no allocation. */
Test(sim, unmapping_and_releasing_do_not_wait)
{
        struct world world = begin();
        struct piece piece = map(4 * MIB);
        CUdeviceptr base;
        size_t bytes;

        spin(&world, world.s1, 50 * MS);
        ok(cuMemGetAddressRange(&base, &bytes, piece.va + 4096));
        cr_expect_eq(base, piece.va);
        cr_expect_eq(bytes, 4 * MIB);
        expect(1, cuMemFree(piece.va));
        expect(1, cuMemFreeAsync(piece.va, world.s1));
        ok(cuMemRelease(piece.handle));
        ok(cuMemUnmap(piece.va, 4 * MIB));
        expect(600, cuStreamQuery(world.s1));
}

/* P57: nothing holds an unmap back, so the kernel faults. */
Test(sim, unmapping_what_a_kernel_uses_kills_the_process, .signal = SIGABRT)
{
        struct world world = begin();
        CUfunction fill = find_kernel("fill");
        struct piece piece = map(2 * MIB);
        uint64_t count = 1024;
        uint32_t value = 1;
        void *arguments[] = {&piece.va, &count, &value};

        spin(&world, world.s1, 50 * MS);
        ok(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, world.s1, arguments, NULL));
        ok(cuMemUnmap(piece.va, 2 * MIB));
        cuStreamSynchronize(world.s1);
}

Test(sim, a_wished_address_is_given_when_it_is_free)
{
        CUdeviceptr va, other;

        begin();
        ok(cuMemAddressReserve(&va, 64 * MIB, 0, 0, 0));
        ok(cuMemAddressReserve(&other, 64 * MIB, 0, va, 0));
        cr_expect_neq(va, other);
        ok(cuMemAddressFree(va, 64 * MIB));
        ok(cuMemAddressReserve(&other, 64 * MIB, 0, va, 0));
        cr_expect_eq(va, other);
        ok(cuMemAddressReserve(&va, 2 * MIB, 1 << 30, 0, 0));
        cr_expect_eq(va % (1 << 30), 0);
}

Test(sim, a_terabyte_of_addresses_costs_nothing)
{
        size_t before;
        CUdeviceptr va;

        begin();
        before = free_bytes();
        ok(cuMemAddressReserve(&va, (size_t)1 << 39, 0, 0, 0));
        cr_expect_eq(before, free_bytes());
        ok(cuMemAddressFree(va, (size_t)1 << 39));
}

/* A20, L2: it belongs to no context. */
Test(sim, mappings_outlive_contexts)
{
        struct world world = begin();
        struct piece piece = map(2 * MIB);

        ok(cuDevicePrimaryCtxReset(world.device));
        ok(cuDevicePrimaryCtxRetain(&world.context, world.device));
        ok(cuMemsetD8(piece.va, 1, 16));
        ok(cuCtxSynchronize());
        ok(cuMemUnmap(piece.va, 2 * MIB));
}

Test(sim, a_file_descriptor_stands_for_memory)
{
        CUmemAllocationProp prop = memory_of(0);
        CUmemGenericAllocationHandle handle, same;
        int file = -1;

        begin();
        expect(1, cuMemExportToShareableHandle(&file, create(2 * MIB),
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
        prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        ok(cuMemCreate(&handle, 2 * MIB, &prop, 0));
        ok(cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                        0));
        ok(cuMemImportFromShareableHandle(&same, (void *)(intptr_t)file,
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
        cr_expect_eq(handle, same);
        close(file);
        ok(cuMemRelease(same));
        ok(cuMemRelease(handle));
        expect(1, cuMemRelease(handle));
}
