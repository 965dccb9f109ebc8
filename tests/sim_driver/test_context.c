/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Context -- stacks, destroy, reset, ids, peers, errors that stick
 */

#include <pthread.h>
#include <signal.h>
#include "test_support.h"

static unsigned long long id_of(CUcontext context)
{
#if CUDA_VERSION >= 12000
        unsigned long long id = 0;

        ok(cuCtxGetId(context, &id));
        return id;
#else
        static unsigned long long id; /* this header has no ids: always another one */

        (void)context;
        return ++id;
#endif
}

Test(sim, contexts_form_a_stack)
{
        struct world world = begin();
        CUcontext other, got;
        CUdevice device;

        ok(cuCtxCreate_v2(&other, 0, 1));
        ok(cuCtxGetCurrent(&got));
        cr_expect_eq(got, other);
        ok(cuCtxGetDevice(&device));
        cr_expect_eq(device, 1);
        ok(cuCtxPopCurrent(&got));
        cr_expect_eq(got, other);
        ok(cuCtxGetCurrent(&got));
        cr_expect_eq(got, world.context);
        ok(cuCtxPushCurrent(other));
        ok(cuCtxSetCurrent(NULL));
        ok(cuCtxGetCurrent(&got));
        cr_expect_eq(got, world.context);
        ok(cuCtxPopCurrent(&got));
        ok(cuCtxGetCurrent(&got));
        cr_expect_null(got);
        expect(201, cuCtxPopCurrent(&got));
        expect(201, cuCtxGetDevice(&device));
}

static void *alloc_in_a_thread(void *result)
{
        CUdeviceptr p;

        *(CUresult *)result = cuMemAlloc(&p, 64);
        return NULL;
}

Test(sim, a_new_thread_has_no_context)
{
        pthread_t thread;
        CUresult result;

        begin();
        pthread_create(&thread, NULL, alloc_in_a_thread, &result);
        pthread_join(thread, NULL);
        cr_expect_eq(result, 201);
}

/* M21, 3B: it waits, and takes device memory with it. */
Test(sim, destroying_a_context_waits_and_frees_its_memory)
{
        struct world world = begin();
        size_t before = free_bytes();
        CUcontext other;
        CUdeviceptr p;
        void *host;
        uint64_t start = sim_now_ns();

        ok(cuCtxCreate_v2(&other, 0, world.device));
        ok(cuMemAlloc(&p, MIB));
        ok(cuMemHostAlloc(&host, MIB, 0));
        world.spin = find_kernel("spin");
        spin(&world, NULL, 50 * MS);
        ok(cuCtxDestroy(other));
        cr_expect_geq(sim_now_ns() - start, 49 * MS);
        ok(cuCtxSetCurrent(world.context));
        expect(1, cuMemFree(p));
        expect(1, cuMemFreeHost(host));
        cr_expect_eq(before, free_bytes());
}

Test(sim, a_handle_comes_back_with_another_id)
{
        struct world world = begin();
        CUcontext first, second;
        unsigned long long id;

        ok(cuCtxCreate_v2(&first, 0, world.device));
        id = id_of(first);
        ok(cuCtxDestroy(first));
        ok(cuCtxCreate_v2(&second, 0, world.device));
        cr_expect_eq(first, second);
        cr_expect_neq(id, id_of(second));
}

Test(sim, a_destroyed_context_kills_its_user, .signal = SIGABRT)
{
        struct world world = begin();
        CUcontext other;
        unsigned int version;

        ok(cuCtxCreate_v2(&other, 0, world.device));
        ok(cuCtxDestroy(other));
        cuCtxGetApiVersion(other, &version);
}

Test(sim, a_destroyed_context_on_a_stack_answers_709)
{
        struct world world = begin();
        CUcontext other, again;
        CUdeviceptr p;

        ok(cuCtxCreate_v2(&other, 0, world.device));
        ok(cuCtxPushCurrent(other));
        ok(cuCtxDestroy(other)); /* off the top, but still below */
        expect(709, cuMemAlloc(&p, 64));
        ok(cuCtxCreate_v2(&again, 0, world.device));
        cr_assert_eq(again, other);
        ok(cuMemAlloc(&p, 64));
        ok(cuCtxPopCurrent(&again));
        expect(709, cuMemAlloc(&p, 64)); /* the handle lives again, this context does not */
        ok(cuCtxPopCurrent(&again));
        ok(cuMemAlloc(&p, 64));
}

Test(sim, mapped_memory_and_pool_memory_survive_a_reset)
{
        struct world world = begin();
        CUmemAllocationProp prop = memory_of(world.device);
        CUmemAccessDesc access = {.location = prop.location,
                                  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        CUmemGenericAllocationHandle handle;
        unsigned int type, word = 0;
        CUcontext again;
        CUdeviceptr mapped, plain;

        ok(cuMemAlloc(&plain, MIB));
        ok(cuMemCreate(&handle, 2 * MIB, &prop, 0));
        ok(cuMemAddressReserve(&mapped, 2 * MIB, 0, 0, 0));
        ok(cuMemMap(mapped, 2 * MIB, 0, handle, 0));
        ok(cuMemSetAccess(mapped, 2 * MIB, &access, 1));
        ok(cuMemsetD32(mapped, 7, 16));
        ok(cuDevicePrimaryCtxReset(world.device));
        expect(709, cuMemcpyDtoH(&word, mapped, 4));
        ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, mapped));
        expect(1, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, plain));
        ok(cuDevicePrimaryCtxRetain(&again, world.device));
        ok(cuMemcpyDtoH(&word, mapped, 4));
        cr_expect_eq(word, 7);
        ok(cuMemUnmap(mapped, 2 * MIB));
        ok(cuMemRelease(handle));
        ok(cuMemAddressFree(mapped, 2 * MIB));
}

/* D16 */
Test(sim, a_reset_keeps_the_handle_and_changes_the_id)
{
        struct world world = begin();
        unsigned long long id = id_of(NULL);
        CUcontext got;
        CUdevice device;
        CUdeviceptr p, q, a;
        unsigned int flags;
        int active;

        ok(cuMemAlloc(&p, MIB));
        ok(cuMemAllocAsync(&a, MIB, world.s1));
        ok(cuDevicePrimaryCtxReset(world.device));
        ok(cuDevicePrimaryCtxGetState(world.device, &flags, &active));
        cr_expect_eq(active, 0);
        ok(cuCtxGetCurrent(&got));
        cr_expect_eq(got, world.context);
        expect(709, cuMemAlloc(&q, 64));
        expect(709, cuMemFree(p));
        expect(709, cuMemGetInfo(NULL, NULL));
        expect(709, cuStreamSynchronize(NULL));
        expect(709, cuCtxSynchronize());
        expect(709, cuMemAllocAsync(&q, 64, NULL));
#if CUDA_VERSION >= 12000
        expect(709, cuCtxGetId(NULL, &id));
        expect(709, cuCtxGetId(world.context, &id));
#endif
        ok(cuCtxPushCurrent(world.context));
        ok(cuCtxGetDevice(&device));
        cr_expect_eq(device, world.device);
        ok(cuCtxGetFlags(&flags));
        ok(cuCtxPopCurrent(&got));
        expect(201, cuCtxGetApiVersion(world.context, &flags));
        expect(709, cuMemFree(0));
        expect(709, cuMemsetD8(a, 1, 4096));
        ok(cuDevicePrimaryCtxRetain(&got, world.device));
        cr_expect_eq(got, world.context);
        cr_expect_neq(id_of(NULL), id);
        expect(1, cuMemFree(p));
        ok(cuMemAlloc(&q, 64));
        ok(cuMemFree(a));
        ok(cuDevicePrimaryCtxGetState(world.device, &flags, &active));
        cr_expect_eq(active, 1);
}

Test(sim, the_last_release_resets)
{
        struct world world = begin();
        CUcontext again;
        CUdeviceptr p;

        ok(cuDevicePrimaryCtxRetain(&again, world.device));
        ok(cuMemAlloc(&p, 64));
        ok(cuDevicePrimaryCtxRelease(world.device));
        ok(cuMemFree(p));
        ok(cuDevicePrimaryCtxRelease(world.device));
        expect(709, cuMemAlloc(&p, 64));
        expect(201, cuDevicePrimaryCtxRelease(world.device));
        expect(201, cuCtxDestroy(world.context));
}

Test(sim, peers_are_other_devices)
{
        struct world world = begin();
        CUcontext other, twin;
        int can;

        ok(cuDevicePrimaryCtxRetain(&other, 1));
        ok(cuDeviceCanAccessPeer(&can, 0, 1));
        cr_expect_eq(can, 1);
        ok(cuDeviceCanAccessPeer(&can, 0, 0));
        cr_expect_eq(can, 0);
        ok(cuCtxEnablePeerAccess(other, 0));
        expect(704, cuCtxEnablePeerAccess(other, 0));
        expect(201, cuCtxEnablePeerAccess(world.context, 0));
        ok(cuCtxDisablePeerAccess(other));
        expect(705, cuCtxDisablePeerAccess(other));
        ok(cuCtxCreate_v2(&twin, 0, 0));
        ok(cuCtxSetCurrent(world.context));
        expect(217, cuCtxEnablePeerAccess(twin, 0));
}

/* 3D, L5 */
Test(sim, after_an_illegal_access_a_context_answers_nothing_else)
{
        struct world world = begin();
        CUmemAllocationProp prop = memory_of(0);
        CUmemGenericAllocationHandle handle;
        CUdeviceptr p, q;
        CUcontext other;
        CUevent event;
        int type;

        ok(cuMemAlloc(&p, 64));
        ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
        sim_fail("cuStreamSynchronize", 1, 700);
        expect(700, cuStreamSynchronize(world.s1));
        expect(700, cuMemAlloc(&q, 64));
        expect(700, cuMemFree(p));
        expect(700, cuMemAllocAsync(&q, 64, world.s1));
        expect(700, cuMemFreeAsync(p, world.s1));
        expect(700, cuEventRecord(event, world.s1));
        expect(700, cuEventQuery(event));
        expect(700, cuStreamQuery(world.s1));
        expect(700, cuCtxSynchronize());
        ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
        ok(cuMemCreate(&handle, 2 * MIB, &prop, 0));
        cr_expect_gt(id_of(NULL), 0);
        ok(cuCtxCreate_v2(&other, 0, 1));
        ok(cuMemAlloc(&q, 64));
}

#if CUDA_VERSION >= 12050
Test(sim, a_green_context_has_streams_and_no_memory_of_its_own)
{
        struct world world = begin();
        CUdevResource resource;
        CUdevResourceDesc desc;
        CUgreenCtx green;
        CUcontext context, owner;
        CUstream stream;
        CUdeviceptr p;

        ok(cuDeviceGetDevResource(world.device, &resource, CU_DEV_RESOURCE_TYPE_SM));
        ok(cuDevResourceGenerateDesc(&desc, &resource, 1));
        ok(cuGreenCtxCreate(&green, desc, world.device, CU_GREEN_CTX_DEFAULT_STREAM));
        ok(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
        ok(cuCtxFromGreenCtx(&context, green));
        ok(cuCtxSetCurrent(context));
        ok(cuMemAlloc(&p, 64));
        ok(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, p));
        cr_expect_eq(owner, world.context);
        ok(cuCtxSetCurrent(world.context));
        spin(&world, stream, 50 * MS);
        ok(cuMemFree(p));
        ok(cuStreamQuery(stream));
        ok(cuGreenCtxDestroy(green));
}
#endif
