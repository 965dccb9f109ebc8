/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Misuse, continued -- captures, host memory, arrays, addresses, full devices
 */

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "test_support.h"

/* M22 */
Test(sim, a_global_capture_dies_of_cuMemAlloc)
{
        struct world world = begin();
        CUdeviceptr p = 0, q = 0;
        CUgraph graph;

        ok(cuStreamBeginCapture(world.s1, CU_STREAM_CAPTURE_MODE_GLOBAL));
        expect(900, cuMemAlloc(&p, 4096));
        expect(900, cuMemFree(p));
        expect(901, cuMemAllocAsync(&q, 4096, world.s1));
        expect(901, cuMemFreeAsync(q ? q : 4096, world.s1));
        expect(901, cuStreamEndCapture(world.s1, &graph));
}

/* The first two rows of table 3A, this half's part. */
Test(sim, calls_that_a_capture_forbids_kill_it)
{
        struct world world = begin();
        CUmemoryPool pool;
        cuuint64_t value;
        static char host[4096];
        CUdeviceptr p, freed;
        void *pinned;
        CUgraph graph;

        ok(cuDeviceGetDefaultMemPool(&pool, world.device));
        ok(cuMemAllocAsync(&freed, 64, world.s2));
        for (int call = 0; call < 12; call++) {
                CUresult got = CUDA_SUCCESS;

                ok(cuStreamBeginCapture(world.s1, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
                got = call == 0    ? cuMemAlloc(&p, 64)
                      : call == 1  ? cuMemFree(0)
                      : call == 2  ? cuMemAllocAsync(&p, 64, world.s2)
                      : call == 3  ? cuMemAllocManaged(&p, 64, CU_MEM_ATTACH_GLOBAL)
                      : call == 4  ? cuMemHostAlloc(&pinned, 64, 0)
                      : call == 5  ? cuMemHostRegister(host, sizeof(host), 0)
                      : call == 6  ? cuMemHostUnregister(host)
                      : call == 7  ? cuMemPoolTrimTo(pool, 0)
                      : call == 8  ? cuMemFreeAsync(0, world.s2)
                      : call == 9  ? cuMemFreeAsync(freed, world.s2)
                      : call == 10 ? cuMemFree(0x1234)
                                   : cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
                                                           &value);
                cr_expect_eq(got, 900, "call %d answers %d", call, got);
                expect(901, cuStreamEndCapture(world.s1, &graph));
        }
}

Test(sim, a_free_of_nothing_is_no_node_and_harms_no_capture)
{
        struct world world = begin();
        CUgraph graph;
        size_t nodes;

        ok(cuStreamBeginCapture(world.s1, CU_STREAM_CAPTURE_MODE_GLOBAL));
        ok(cuMemFreeAsync(0, world.s1));
        ok(cuStreamEndCapture(world.s1, &graph));
        ok(cuGraphGetNodes(graph, NULL, &nodes));
        cr_expect_eq(nodes, 0);
        ok(cuStreamBeginCapture(world.s1, CU_STREAM_CAPTURE_MODE_RELAXED));
        ok(cuMemFreeAsync(0, world.s2));
        ok(cuMemFree(0));
        expect(1, cuMemFree(0x1234));
        ok(cuStreamEndCapture(world.s1, &graph));
}

/* The last row of table 3A. */
Test(sim, calls_that_a_capture_does_not_mind)
{
        struct world world = begin();
        CUmemAllocationProp prop = memory_of(0);
        CUmemGenericAllocationHandle handle;
        CUipcMemHandle ipc;
        CUdeviceptr p, va;
        CUcontext context;
        CUgraph graph;
        int type;

        ok(cuMemAlloc(&p, 64));
        ok(cuStreamBeginCapture(world.s1, CU_STREAM_CAPTURE_MODE_GLOBAL));
        ok(cuMemGetInfo(NULL, NULL));
        ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
        ok(cuMemGetAddressRange(NULL, NULL, p));
        ok(cuCtxGetCurrent(&context));
        ok(cuIpcGetMemHandle(&ipc, p));
        ok(cuMemCreate(&handle, 2 * MIB, &prop, 0));
        ok(cuMemAddressReserve(&va, 2 * MIB, 0, 0, 0));
        ok(cuMemMap(va, 2 * MIB, 0, handle, 0));
        ok(cuMemUnmap(va, 2 * MIB));
        ok(cuMemRelease(handle));
        ok(cuMemAddressFree(va, 2 * MIB));
        expect(1, cuMemFreeAsync(p, world.s1)); /* no memory of this graph; the capture survives */
        ok(cuStreamEndCapture(world.s1, &graph));
}

/* M24, without the query that is the other half's. */
Test(sim, a_relaxed_capture_does_not_mind_cuMemAlloc)
{
        struct world world = begin();
        CUdeviceptr p;
        CUgraph graph;

        ok(cuStreamBeginCapture(world.s1, CU_STREAM_CAPTURE_MODE_RELAXED));
        ok(cuMemAlloc(&p, 4096));
        ok(cuMemAllocAsync(&p, 4096, world.s2));
        ok(cuMemFree(p));
        ok(cuStreamEndCapture(world.s1, &graph));
}

/* U29 */
Test(sim, freeing_host_and_managed_memory_waits)
{
        struct world world = begin();
        static char registered[4096];
        CUdeviceptr p;
        void *host;

        ok(cuMemAllocManaged(&p, MIB, CU_MEM_ATTACH_GLOBAL));
        ok(cuMemAllocHost(&host, MIB));
        ok(cuMemHostRegister(registered, sizeof(registered), 0));
        spin(&world, world.s1, 50 * MS);
        ok(cuMemFree(p));
        ok(cuStreamQuery(world.s1));
        spin(&world, world.s1, 50 * MS);
        ok(cuMemFreeHost(host));
        ok(cuStreamQuery(world.s1));
        spin(&world, world.s1, 50 * MS);
        ok(cuMemHostUnregister(registered));
        ok(cuStreamQuery(world.s1));
}

Test(sim, host_memory_answers_for_itself)
{
        static char memory[8192];
        unsigned int flags;
        CUdeviceptr p;
        void *host;

        begin();
        ok(cuMemHostAlloc(&host, 100, CU_MEMHOSTALLOC_PORTABLE));
        memset(host, 1, 100);
        ok(cuMemHostGetDevicePointer(&p, host, 0));
        cr_expect_eq(p, (CUdeviceptr)host);
        ok(cuMemHostGetFlags(&flags, host));
        cr_expect(flags & CU_MEMHOSTALLOC_PORTABLE);
        expect(1, cuMemFree((CUdeviceptr)host));
        ok(cuMemAlloc(&p, 16));
        expect(1, cuMemFreeHost((void *)p));
        ok(cuMemFreeHost(host));
        expect(1, cuMemFreeHost(host));
        ok(cuMemHostRegister(memory, sizeof(memory), 0));
        expect(712, cuMemHostRegister(memory + 100, 10, 0));
        expect(713, cuMemHostUnregister(memory + 100));
        ok(cuMemHostUnregister(memory));
        expect(713, cuMemHostUnregister(memory));
}

/* M3, M2 and the rest of 3B: what does not wait. */
Test(sim, allocating_waits_for_nothing)
{
        struct world world = begin();
        CUdeviceptr p;
        size_t pitch;
        void *host;

        spin(&world, world.s1, 50 * MS);
        ok(cuMemAlloc(&p, 256 * MIB));
        ok(cuMemAllocPitch(&p, &pitch, 100, 10, 4));
        ok(cuMemAllocManaged(&p, MIB, CU_MEM_ATTACH_HOST));
        ok(cuMemHostAlloc(&host, MIB, 0));
        ok(cuMemAllocAsync(&p, MIB, world.s2));
        ok(cuMemFreeAsync(p, world.s2));
        free_bytes();
        expect(600, cuStreamQuery(world.s1));
}

Test(sim, pitch_rows_start_at_texture_alignment)
{
        CUdeviceptr p;
        size_t pitch, bytes;

        begin();
        ok(cuMemAllocPitch(&p, &pitch, 1000, 10, 4));
        cr_expect_eq(pitch, 1024);
        ok(cuMemGetAddressRange(NULL, &bytes, p));
        cr_expect_eq(bytes, 10240);
        expect(1, cuMemAllocPitch(&p, &pitch, 1000, 10, 3));
        expect(1, cuMemAllocPitch(&p, &pitch, 0, 10, 4));
        ok(cuMemFree(p));
}

Test(sim, an_address_behind_the_end_is_not_found)
{
        CUdeviceptr p, base;
        size_t bytes;

        begin();
        ok(cuMemAlloc(&p, 1000));
        ok(cuMemGetAddressRange(&base, &bytes, p + 999));
        cr_expect_eq(base, p);
        cr_expect_eq(bytes, 1000);
        expect(500, cuMemGetAddressRange(&base, &bytes, p + 1000));
        ok(cuMemGetAddressRange(NULL, NULL, p));
        ok(cuMemFree(p));
        expect(500, cuMemGetAddressRange(&base, &bytes, p));
}

/* M31 */
Test(sim, setting_freed_memory_is_refused)
{
        CUdeviceptr p;

        begin();
        ok(cuMemAlloc(&p, MIB));
        ok(cuMemsetD8(p, 1, 4096));
        ok(cuMemFree(p));
        expect(1, cuMemsetD8(p, 1, 4096));
        ok(cuCtxSynchronize());
}

Test(sim, bytes_really_move)
{
        uint32_t out[256], in[256];
        CUdeviceptr p, q;

        begin();
        for (uint32_t i = 0; i < 256; i++)
                out[i] = i * i;
        ok(cuMemAlloc(&p, sizeof(out)));
        ok(cuMemAllocAsync(&q, sizeof(out), NULL));
        ok(cuMemcpyHtoD(p, out, sizeof(out)));
        ok(cuMemcpyDtoD(q, p, sizeof(out)));
        ok(cuMemcpyDtoH(in, q, sizeof(in)));
        cr_assert_arr_eq(in, out, sizeof(in));
}

/* M34 and U24: full is not full as long as something idle can be given back. */
Test(sim, a_full_device_takes_back_idle_pool_memory)
{
        struct world world = begin();
        size_t most = free_bytes() / 10 * 9;
        CUmemoryPool pool;
        cuuint64_t all = UINT64_MAX;
        CUdeviceptr p, q;

        ok(cuDeviceGetDefaultMemPool(&pool, world.device));
        ok(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
        ok(cuMemAllocAsync(&p, most, world.s1));
        expect(2, cuMemAlloc(&q, most));
        ok(cuMemFreeAsync(p, world.s1));
        ok(cuStreamSynchronize(world.s1));
        ok(cuMemAlloc(&q, most));
}

Test(sim, two_devices_have_memory_of_their_own)
{
        struct world world = begin();
        size_t first = free_bytes();
        CUcontext other;
        CUdeviceptr p;

        ok(cuDevicePrimaryCtxRetain(&other, 1));
        ok(cuCtxSetCurrent(other));
        ok(cuMemAlloc(&p, 64 * MIB));
        ok(cuCtxSetCurrent(world.context));
        cr_expect_eq(free_bytes(), first);
        ok(cuMemAllocAsync(&p, 64 * MIB, world.s1));
        cr_expect_eq(free_bytes(), first - 64 * MIB);
}

Test(sim, arrays_hold_memory_until_they_are_destroyed)
{
        struct world world = begin();
        CUDA_ARRAY3D_DESCRIPTOR shape = {
                .Width = 1024, .Height = 1024, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
        size_t before = free_bytes();
        CUmipmappedArray mipmap;
        CUarray array;

        ok(cuArray3DCreate(&array, &shape));
        cr_expect_eq(before - free_bytes(), 4 * MIB);
        ok(cuMipmappedArrayCreate(&mipmap, &shape, 5));
        spin(&world, world.s1, 50 * MS);
        ok(cuArrayDestroy(array));
        ok(cuStreamQuery(world.s1));
        expect(400, cuArrayDestroy(array));
        expect(400, cuArrayDestroy((CUarray)mipmap));
        ok(cuMipmappedArrayDestroy(mipmap));
        cr_expect_eq(before, free_bytes());
        shape.Width = 0;
        expect(1, cuArray3DCreate(&array, &shape));
}

Test(sim, external_memory_is_freed_as_if_it_were_ones_own)
{
        CUDA_EXTERNAL_MEMORY_HANDLE_DESC what = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
                                                 .size = MIB};
        CUDA_EXTERNAL_MEMORY_BUFFER_DESC where = {.offset = 4096, .size = 8192};
        struct world world = begin();
        CUexternalMemory memory;
        CUdeviceptr p;
        int file = memfd_create("external", 0);
        char byte;

        ok(ftruncate(file, MIB));
        what.handle.fd = dup(file);
        ok(cuImportExternalMemory(&memory, &what));
        ok(cuExternalMemoryGetMappedBuffer(&p, memory, &where));
        ok(cuMemsetD8(p, 7, 8192));
        ok(cuCtxSynchronize());
        cr_expect_eq(pread(file, &byte, 1, 4096 + 8191), 1);
        cr_expect_eq(byte, 7);
        ok(cuMemFree(p));
        expect(1, cuMemFree(p));
        ok(cuExternalMemoryGetMappedBuffer(&p, memory, &where));
        ok(cuMemFreeAsync(p, world.s1));
        where.offset = MIB;
        expect(1, cuExternalMemoryGetMappedBuffer(&p, memory, &where));
        ok(cuDestroyExternalMemory(memory));
}
