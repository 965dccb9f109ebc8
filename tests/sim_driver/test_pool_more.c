/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Pool, continued -- streams, contexts, several pools, full devices
 */

#include <unistd.h>
#include "test_support.h"

static CUmemoryPool make_pool(CUdevice device, size_t maximum)
{
        CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED};
        CUmemoryPool pool;

        props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        props.location.id = device;
#if CUDA_VERSION >= 12020
        props.maxSize = maximum;
#else
        (void)maximum;
#endif
        ok(cuMemPoolCreate(&pool, &props));
        return pool;
}

static uint64_t reserved(CUmemoryPool pool)
{
        cuuint64_t value;

        ok(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
        return value;
}

static CUmemoryPool pool_of(CUdeviceptr p)
{
        CUmemoryPool pool;

        ok(cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
        return pool;
}

Test(sim, the_same_stream_reuses_at_once)
{
        struct world world = begin();
        CUdeviceptr p, q, r;

        ok(cuMemAllocAsync(&p, MIB, world.s1));
        spin(&world, world.s1, 50 * MS);
        ok(cuMemFreeAsync(p, world.s1));
        ok(cuMemAllocAsync(&q, MIB / 2, world.s1));
        cr_expect_eq(p, q);
        ok(cuMemAllocAsync(&r, MIB / 2, world.s1));
        cr_expect_eq(r, p + MIB / 2, "the rest of a split block is still the stream's own");
}

Test(sim, the_same_stream_needs_no_policy)
{
        struct world world = begin();
        CUmemoryPool pool = make_pool(0, 0);
        CUdeviceptr p, q;
        int off = 0;

        for (int i = CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES;
             i <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES; i++)
                ok(cuMemPoolSetAttribute(pool, i, &off));
        ok(cuMemAllocFromPoolAsync(&p, MIB, pool, world.s1));
        spin(&world, world.s1, 50 * MS);
        ok(cuMemFreeAsync(p, world.s1));
        ok(cuMemAllocFromPoolAsync(&q, MIB, pool, world.s1));
        cr_expect_eq(p, q);
}

Test(sim, neighbours_freed_in_a_stream_serve_a_larger_request)
{
        struct world world = begin();
        CUdeviceptr p, q, r;

        ok(cuMemAllocAsync(&p, 16 * MIB, world.s1));
        ok(cuMemAllocAsync(&q, 16 * MIB, world.s1));
        spin(&world, world.s1, 50 * MS);
        ok(cuMemFreeAsync(p, world.s1));
        ok(cuMemFreeAsync(q, world.s1));
        ok(cuMemAllocAsync(&r, 32 * MIB, world.s1));
        cr_expect_eq(r, p);
        cr_expect_eq(reserved(pool_of(r)), 32 * MIB);
}

/* M29 */
Test(sim, a_destroyed_stream_keeps_its_pending_free)
{
        struct world world = begin();
        CUdeviceptr p, q;

        ok(cuMemAllocAsync(&p, MIB, world.s1));
        spin(&world, world.s1, 50 * MS);
        ok(cuMemFreeAsync(p, world.s1));
        ok(cuStreamDestroy(world.s1));
        ok(cuMemAllocAsync(&q, MIB, world.s2));
        cr_expect_neq(p, q);
        ok(cuCtxSynchronize());
}

/* M34: it waits in the stream, not on the host. */
Test(sim, a_full_device_makes_a_stream_wait_for_another)
{
        struct world world = begin();
        size_t most = free_bytes() / 10 * 6;
        uint64_t start;
        CUdeviceptr p, q;

        ok(cuMemAllocAsync(&p, most, world.s1));
        spin(&world, world.s1, 200 * MS);
        ok(cuMemFreeAsync(p, world.s1));
        start = sim_now_ns();
        ok(cuMemAllocAsync(&q, most, world.s2));
        cr_expect_eq(p, q);
        cr_expect_lt(sim_now_ns() - start, 100 * MS);
        expect(600, cuStreamQuery(world.s1));
        ok(cuStreamSynchronize(world.s2));
        cr_expect_geq(sim_now_ns() - start, 190 * MS);
        expect(2, cuMemAlloc(&p, most));
}

/* The stream that waits for a free does so for the bytes it takes; the rest is as busy as before.
 */
Test(sim, the_rest_of_memory_waited_for_is_not_free)
{
        struct world world = begin();
        size_t most = free_bytes() / 10 * 9;
        CUdeviceptr p, q, r;
        CUstream s3;

        ok(cuStreamCreate(&s3, CU_STREAM_NON_BLOCKING));
        ok(cuMemAllocAsync(&p, most, world.s1));
        spin(&world, world.s1, 200 * MS);
        ok(cuMemFreeAsync(p, world.s1));
        ok(cuMemAllocAsync(&q, most / 3, world.s2));
        ok(cuMemAllocAsync(&r, most / 3, s3));
        cr_expect_neq(q, r);
        expect(600, cuStreamQuery(world.s2));
        expect(600, cuStreamQuery(s3));
}

Test(sim, a_full_device_takes_the_idle_memory_of_another_pool)
{
        struct world world = begin();
        size_t most = free_bytes() / 10 * 6;
        CUmemoryPool pool = make_pool(0, 0);
        cuuint64_t all = UINT64_MAX;
        CUdeviceptr p, q;

        ok(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
        ok(cuMemAllocFromPoolAsync(&p, most, pool, world.s1));
        ok(cuMemFreeAsync(p, world.s1));
        ok(cuCtxSynchronize());
        ok(cuMemAllocAsync(&q, most, world.s1));
        cr_expect_eq(reserved(pool), 0);
}

Test(sim, without_that_policy_a_full_device_is_full)
{
        struct world world = begin();
        size_t most = free_bytes() / 10 * 6;
        CUmemoryPool pool = make_pool(0, 0);
        CUdeviceptr p, q;
        int off = 0;

        ok(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &off));
        ok(cuMemAllocFromPoolAsync(&p, most, pool, world.s1));
        spin(&world, world.s1, 200 * MS);
        ok(cuMemFreeAsync(p, world.s1));
        expect(2, cuMemAllocFromPoolAsync(&q, most, pool, world.s2));
}

/* A20, 3D */
Test(sim, pool_memory_outlives_the_context_of_its_stream)
{
        struct world world = begin();
        CUcontext other;
        CUdeviceptr p, q;
        CUstream s3;

        ok(cuCtxCreate_v2(&other, 0, world.device));
        ok(cuStreamCreate(&s3, CU_STREAM_NON_BLOCKING));
        ok(cuMemAllocAsync(&p, MIB, s3));
        ok(cuMemAlloc(&q, MIB));
        ok(cuCtxDestroy(other));
        ok(cuCtxSetCurrent(world.context));
        ok(cuMemsetD8(p, 1, MIB));
        ok(cuMemFree(p));
        expect(1, cuMemFree(q));
}

/* A7 */
Test(sim, memory_comes_from_the_device_of_the_stream)
{
        struct world world = begin();
        CUmemoryPool second;
        CUcontext other;
        CUdeviceptr p;

        ok(cuDevicePrimaryCtxRetain(&other, 1));
        ok(cuCtxSetCurrent(other));
        ok(cuMemAllocAsync(&p, MIB, world.s1));
        ok(cuDeviceGetDefaultMemPool(&second, 1));
        cr_expect_neq(pool_of(p), second);
        ok(cuMemAllocAsync(&p, MIB, NULL));
        cr_expect_eq(pool_of(p), second);
}

/* A16 */
Test(sim, the_current_pool_can_be_set_and_falls_back)
{
        struct world world = begin();
        CUmemoryPool mine = make_pool(0, 0), far = make_pool(1, 0), first, current;
        CUdeviceptr p;

        ok(cuDeviceGetDefaultMemPool(&first, 0));
        expect(1, cuDeviceSetMemPool(0, far));
        ok(cuDeviceSetMemPool(0, mine));
        ok(cuDeviceGetMemPool(&current, 0));
        cr_expect_eq(current, mine);
        ok(cuMemAllocAsync(&p, MIB, world.s1));
        cr_expect_eq(pool_of(p), mine);
        ok(cuMemPoolDestroy(mine));
        ok(cuDeviceGetMemPool(&current, 0));
        cr_expect_eq(current, first);
}

#if CUDA_VERSION >= 13000
Test(sim, the_names_of_CUDA_13_set_the_same_pool)
{
        CUmemoryPool mine, got;
        CUmemLocation place = {.type = CU_MEM_LOCATION_TYPE_DEVICE};

        begin();
        mine = make_pool(0, 0);
        ok(cuMemGetDefaultMemPool(&got, &place, CU_MEM_ALLOCATION_TYPE_PINNED));
        cr_expect_neq(got, mine);
        ok(cuMemSetMemPool(&place, CU_MEM_ALLOCATION_TYPE_PINNED, mine));
        ok(cuDeviceGetMemPool(&got, 0));
        cr_expect_eq(got, mine);
        ok(cuMemGetMemPool(&got, &place, CU_MEM_ALLOCATION_TYPE_PINNED));
        cr_expect_eq(got, mine);
}
#endif

/* M35 */
Test(sim, a_destroyed_pool_lives_until_its_last_free)
{
        struct world world = begin();
        size_t before = free_bytes();
        CUmemoryPool pool = make_pool(0, 0);
        cuuint64_t all = UINT64_MAX;
        CUdeviceptr p;

        ok(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
        ok(cuMemAllocFromPoolAsync(&p, 48 * MIB, pool, world.s1));
        ok(cuMemPoolDestroy(pool));
        ok(cuMemsetD8(p, 1, MIB));
        spin(&world, world.s1, 50 * MS);
        ok(cuMemFreeAsync(p, world.s1));
        cr_expect_eq(before - free_bytes(), 64 * MIB);
        ok(cuStreamSynchronize(world.s1));
        cr_expect_eq(before, free_bytes());
}

#if CUDA_VERSION >= 12020
Test(sim, a_pool_with_a_maximum_stops_there)
{
        struct world world = begin();
        CUmemoryPool pool = make_pool(0, 64 * MIB);
        CUdeviceptr p, q;

        ok(cuMemAllocFromPoolAsync(&p, 48 * MIB, pool, world.s1));
        expect(2, cuMemAllocFromPoolAsync(&q, 48 * MIB, pool, world.s1));
        ok(cuMemFreeAsync(p, world.s1));
        ok(cuMemAllocFromPoolAsync(&q, 48 * MIB, pool, world.s1));
}
#endif

/* A18 */
Test(sim, access_can_be_given_to_others_and_not_taken_from_the_home_device)
{
        CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        CUmemoryPool pool;
        CUmemAccess_flags flags;
        CUmemLocation place = {.type = CU_MEM_LOCATION_TYPE_DEVICE};

        begin();
        pool = make_pool(0, 0);
        ok(cuMemPoolGetAccess(&flags, pool, &place));
        cr_expect_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        place.id = 1;
        ok(cuMemPoolGetAccess(&flags, pool, &place));
        cr_expect_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
        access.location = place;
        ok(cuMemPoolSetAccess(pool, &access, 1));
        ok(cuMemPoolGetAccess(&flags, pool, &place));
        cr_expect_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        access.location.id = 7;
        expect(101, cuMemPoolSetAccess(pool, &access, 1));
        access.location.id = 0;
        access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
        expect(101, cuMemPoolSetAccess(pool, &access, 1));
}

/* U12: an allocation on the legacy stream is an action of that stream. */
Test(sim, legacy_allocation_orders_blocking_streams)
{
        struct world world = begin();
        CUstream b1, b2;
        CUdeviceptr p, q;

        ok(cuStreamCreate(&b1, CU_STREAM_DEFAULT));
        ok(cuStreamCreate(&b2, CU_STREAM_DEFAULT));
        ok(cuMemAllocAsync(&p, MIB, NULL));
        ok(cuCtxSynchronize());
        spin(&world, b1, 50 * MS);
        ok(cuMemFreeAsync(p, NULL));
        ok(cuMemAllocAsync(&q, MIB, NULL));
        cr_expect_eq(p, q);
        spin(&world, b2, 1 * MS);
        ok(cuStreamSynchronize(b2));
        ok(cuStreamQuery(b1));
        spin(&world, b1, 50 * MS);
        ok(cuMemAllocAsync(&p, MIB, NULL)); /* alone does it as well */
        spin(&world, b2, 1 * MS);
        ok(cuStreamSynchronize(b2));
        ok(cuStreamQuery(b1));
}

/* A19 */
Test(sim, an_imported_pool_maps_the_bytes_of_its_exporter)
{
        CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
        struct world world = begin();
        CUmemPoolPtrExportData pointer;
        CUmemoryPool exported, imported;
        CUdeviceptr p, q, skipped;
        uint32_t value = 0;
        int file;

        expect(1, cuMemPoolExportToShareableHandle(&file, make_pool(0, 0),
                                                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
        props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        ok(cuMemPoolCreate(&exported, &props));
        ok(cuMemPoolExportToShareableHandle(&file, exported,
                                            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
        ok(cuMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)file,
                                              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
        close(file);
        expect(1, cuMemAllocFromPoolAsync(&p, 64, imported, world.s1));
        expect(1, cuDeviceSetMemPool(0, imported));
        ok(cuMemAllocFromPoolAsync(&skipped, 3 * MIB + 512, exported, world.s1));
        ok(cuMemAllocFromPoolAsync(&p, 40 * MIB, exported, world.s1));
        ok(cuMemPoolExportPointer(&pointer, p));
        expect(1, cuMemPoolImportPointer(&q, exported, &pointer));
        ok(cuMemPoolImportPointer(&q, imported, &pointer));
        cr_expect_neq(p, q);
        ok(cuMemsetD32(p + 39 * MIB, 4711, 4));
        ok(cuMemcpyDtoH(&value, q + 39 * MIB, 4));
        cr_expect_eq(value, 4711);
        ok(cuMemFreeAsync(q, world.s1));
        expect(1, cuMemFreeAsync(q, world.s1));
        ok(cuStreamSynchronize(world.s1));
        ok(cuMemPoolImportPointer(&q, imported, &pointer));
        ok(cuMemFree(q));
        expect(1, cuMemFree(q));
        ok(cuMemFree(p));
        expect(1, cuMemPoolImportPointer(&q, imported, &pointer));
}
