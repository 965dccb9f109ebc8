/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Misuse -- the codes that the real driver answers to what programs do wrong
 *
 * One test for one line of the measurements on an H200, driver 580 (3D, M1-M35).
 */

#include <signal.h>
#include "test_support.h"

Test(sim, a_second_free_of_device_memory_is_refused)
{
        CUdeviceptr p, q;

        begin();
        ok(cuMemAlloc(&p, 1 << 20));
        ok(cuMemFree(p));
        expect(1, cuMemFree(p));
        ok(cuMemAlloc(&q, 1 << 20));
}

Test(sim, interior_and_foreign_addresses_are_refused)
{
        CUdeviceptr p;

        begin();
        ok(cuMemAlloc(&p, 1 << 20));
        expect(1, cuMemFree(p + 512));
        ok(cuMemFree(p));
        expect(1, cuMemFree(0x1234));
        expect(1, cuMemFree((CUdeviceptr)(size_t)&p));
}

Test(sim, null_can_be_freed)
{
        struct world world = begin();

        ok(cuMemFree(0));
        ok(cuMemFreeAsync(0, world.s1));
        ok(cuMemFreeHost(NULL));
}

Test(sim, zero_bytes_are_an_error_for_one_allocator_and_null_for_the_other)
{
        struct world world = begin();
        CUdeviceptr p = 7;
        void *host = &p;

        expect(1, cuMemAlloc(&p, 0));
        cr_assert_eq(p, 0);
        p = 7;
        expect(1, cuMemAlloc(NULL, 16));
        ok(cuMemAllocAsync(&p, 0, world.s1));
        cr_assert_eq(p, 0);
        expect(1, cuMemAllocManaged(&p, 0, CU_MEM_ATTACH_GLOBAL));
        ok(cuMemHostAlloc(&host, 0, 0));
        cr_assert_null(host);
}

Test(sim, stream_ordered_frees_refuse_what_is_not_live)
{
        struct world world = begin();
        CUdeviceptr p;

        ok(cuMemAllocAsync(&p, 4096, world.s1));
        ok(cuMemFreeAsync(p, world.s1));
        expect(1, cuMemFreeAsync(p, world.s1));
        ok(cuMemAlloc(&p, 4096));
        ok(cuMemFree(p));
        expect(1, cuMemFreeAsync(p, world.s1));
        expect(1, cuMemFreeAsync(0x1234, world.s1));
        ok(cuMemAllocAsync(&p, 4096, world.s1));
        expect(1, cuMemFreeAsync(p + 256, world.s1));
        ok(cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL));
        expect(801, cuMemFreeAsync(p, world.s1));
}

/* The real driver answers 0 and crashes in the next synchronization. */
Test(sim, cuMemFree_after_cuMemFreeAsync_of_device_memory_kills_the_process, .signal = SIGABRT)
{
        struct world world = begin();
        CUdeviceptr p;

        ok(cuMemAlloc(&p, 4096));
        ok(cuMemFreeAsync(p, world.s1));
        cuMemFree(p);
}

Test(sim, too_large_a_request_is_out_of_memory)
{
        struct world world = begin();
        CUdeviceptr p = 7;

        expect(2, cuMemAlloc(&p, (size_t)1 << 50));
        cr_assert_eq(p, 0);
        expect(2, cuMemAlloc(&p, SIZE_MAX));
        p = 7;
        expect(2, cuMemAllocAsync(&p, (size_t)1 << 50, world.s1));
        cr_expect_eq(p, 0);
        expect(2, cuMemAllocAsync(&p, SIZE_MAX, world.s1));
        expect(2, cuMemAllocManaged(&p, SIZE_MAX, CU_MEM_ATTACH_GLOBAL));
}

/* M17: 512 byte steps in one page; more than 1 MiB starts a page; the pool knows only steps. */
Test(sim, alignment_is_the_measured_one)
{
        static const size_t sizes[] = {1, 100, 257, 513, 3145728, 1};
        static const size_t at[] = {0, 0x200, 0x400, 0x600, 0, 0xa00};
        static const size_t pool_at[] = {0, 0x200, 0x400, 0x600, 0xa00, 0x300a00};
        struct world world = begin();
        CUdeviceptr first, p, base;
        size_t bytes;

        for (int i = 0; i < 6; i++) {
                ok(cuMemAlloc(&p, sizes[i]));
                first = i ? first : p;
                if (i != 4)
                        cr_expect_eq(p - first, at[i], "%d: %llx", i, p - first);
                else
                        cr_expect_eq(p % (2 * MIB), 0);
                ok(cuMemGetAddressRange(&base, &bytes, p + sizes[i] - 1));
                cr_expect_eq(base, p);
                cr_expect_eq(bytes, sizes[i]);
        }
        for (int i = 0; i < 6; i++) {
                ok(cuMemAllocAsync(&p, sizes[i], world.s1));
                first = i ? first : p;
                cr_expect_eq(p - first, pool_at[i], "pool %d: %llx", i, p - first);
                ok(cuMemGetAddressRange(NULL, &bytes, p));
                cr_expect_eq(bytes, sizes[i]);
        }
}

/* M18 */
Test(sim, footprints_are_the_measured_ones)
{
        struct world world = begin();
        size_t before = free_bytes();
        CUdeviceptr p;

        for (int i = 0; i < 64; i++)
                ok(cuMemAlloc(&p, MIB));
        cr_expect_eq(before - free_bytes(), 64 * MIB);
        before = free_bytes();
        for (int i = 0; i < 64; i++)
                ok(cuMemAlloc(&p, 2 * MIB + 1));
        cr_expect_eq(before - free_bytes(), 256 * MIB);
        before = free_bytes();
        for (int i = 0; i < 64; i++)
                ok(cuMemAllocAsync(&p, MIB, world.s1));
        cr_expect_eq(before - free_bytes(), 64 * MIB);
}

Test(sim, freed_memory_comes_back_to_the_device)
{
        CUdeviceptr p[3];
        size_t before;

        begin();
        before = free_bytes();
        ok(cuMemAlloc(&p[0], 1));
        cr_expect_eq(before - free_bytes(), 2 * MIB);
        ok(cuMemAlloc(&p[1], 512 * 1024));
        cr_expect_eq(before - free_bytes(), 2 * MIB);
        ok(cuMemAlloc(&p[2], 3 * MIB));
        for (int i = 0; i < 3; i++)
                ok(cuMemFree(p[i]));
        cr_expect_eq(before, free_bytes());
        cr_expect_eq(sim_live_allocations(), 0);
}

/* M1, and 3B: a non-blocking stream too, and any size. */
Test(sim, cuMemFree_waits_for_the_context_of_the_block)
{
        struct world world = begin();
        CUdeviceptr p;
        uint64_t start;

        ok(cuMemAlloc(&p, 4096));
        spin(&world, world.s2, 50 * MS);
        start = sim_now_ns();
        ok(cuMemFree(p));
        cr_expect_geq(sim_now_ns() - start, 49 * MS);
        ok(cuStreamQuery(world.s2));
}

/* M4, M19: neither does it wait, nor does it keep the address from the next one. */
Test(sim, cuMemFree_of_pool_memory_waits_for_nothing)
{
        struct world world = begin();
        CUdeviceptr p, q;

        ok(cuMemAllocAsync(&p, MIB, world.s1));
        ok(cuStreamSynchronize(world.s1));
        spin(&world, world.s2, 50 * MS);
        ok(cuMemFree(p));
        expect(600, cuStreamQuery(world.s2));
        ok(cuMemAllocAsync(&q, MIB, world.s1));
        cr_expect_eq(p, q);
}

/* U31 */
Test(sim, cuMemFree_of_pool_memory_serves_another_stream_at_once)
{
        struct world world = begin();
        CUdeviceptr p, q;

        ok(cuMemAllocAsync(&p, MIB, world.s1));
        spin(&world, world.s1, 50 * MS);
        ok(cuMemFree(p));
        ok(cuMemAllocAsync(&q, MIB, world.s2));
        cr_expect_eq(p, q);
        ok(cuStreamSynchronize(world.s2));
        expect(600, cuStreamQuery(world.s1));
}

/* M20, U3b, U30 */
Test(sim, device_memory_freed_in_a_stream_comes_back_at_a_synchronization)
{
        struct world world = begin();
        size_t before;
        CUdeviceptr p, q;

        ok(cuMemAlloc(&p, 64 * MIB));
        before = free_bytes();
        spin(&world, world.s1, 50 * MS);
        ok(cuMemFreeAsync(p, world.s1));
        ok(cuMemAlloc(&q, 64 * MIB));
        cr_expect_neq(p, q);
        ok(cuMemFreeAsync(q, world.s2));
        sim_run_all();
        cr_expect_eq(free_bytes(), before - 64 * MIB);
        ok(cuStreamSynchronize(world.s1));
        cr_expect_eq(free_bytes(), before);
        ok(cuCtxSynchronize());
        cr_expect_eq(free_bytes(), before + 64 * MIB);
}

/* M14, U7 */
Test(sim, cuMemFree_does_not_wait_for_another_context)
{
        struct world world = begin();
        CUcontext other;
        CUdeviceptr p;
        CUstream s3;

        ok(cuMemAlloc(&p, MIB));
        ok(cuCtxCreate_v2(&other, 0, world.device));
        ok(cuStreamCreate(&s3, CU_STREAM_NON_BLOCKING));
        world.spin = find_kernel("spin");
        spin(&world, s3, 50 * MS);
        ok(cuMemFree(p));
        expect(600, cuStreamQuery(s3));
        ok(cuMemAlloc(&p, MIB));
        ok(cuCtxSetCurrent(world.context));
        spin(&world, world.s1, 60 * MS);
        world.spin = NULL;
        ok(cuMemFree(p)); /* waits for s3, not for s1 */
        expect(600, cuStreamQuery(world.s1));
        ok(cuStreamQuery(s3));
}

/* Whatever names its context by a handle needs no current one. */
Test(sim, without_a_context_streams_and_events_of_one_work)
{
        struct world world = begin();
        CUcontext context;
        unsigned int flags;
        CUevent event, other;

        ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
        ok(cuCtxSetCurrent(NULL));
        expect(201, cuEventCreate(&other, CU_EVENT_DISABLE_TIMING));
        expect(201, cuStreamQuery(CU_STREAM_LEGACY));
        expect(201, cuStreamGetCtx(CU_STREAM_LEGACY, &context));
        expect(201, cuMemFreeAsync(0, CU_STREAM_LEGACY));
        expect(1, cuMemPoolTrimTo(NULL, 0));
        ok(cuStreamGetCtx(world.s1, &context));
        cr_expect_eq(context, world.context);
        ok(cuStreamGetFlags(world.s1, &flags));
#if CUDA_VERSION >= 12050
        ok(cuCtxRecordEvent(world.context, event));
        ok(cuEventQuery(event));
#endif
        ok(cuEventRecord(event, world.s1));
        ok(cuEventSynchronize(event));
        ok(cuStreamWaitEvent(world.s2, event, 0));
        ok(cuStreamQuery(world.s2));
        ok(cuStreamSynchronize(world.s2));
        ok(cuEventDestroy(event));
}

/* M16 */
Test(sim, without_a_context_only_frees_work)
{
        struct world world = begin();
        CUdeviceptr p, q;

        ok(cuMemAlloc(&q, 16));
        ok(cuCtxSetCurrent(NULL));
        expect(201, cuMemAlloc(&p, 16));
        expect(1, cuMemFree(0x1234));
        expect(201, cuStreamSynchronize(NULL));
        expect(201, cuMemAllocAsync(&p, 16, NULL));
        expect(201, cuMemAllocAsync(&p, 0, NULL));
        ok(cuMemAllocAsync(&p, 16, world.s1));
        expect(201, cuMemGetInfo(NULL, NULL));
        expect(201, cuMemGetAddressRange(&p, NULL, q));
        ok(cuMemGetAddressRange(NULL, NULL, q)); /* nothing is asked */
        expect(201, cuMemHostAlloc((void **)&p, 16, 0));
        ok(cuMemFree(q));
}
