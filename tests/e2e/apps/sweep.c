/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sweep -- everything once, by a program that survives any answer
 *
 * The runner makes one driver call after the other fail (P21). A call that
 * failed gave nothing, so what depends on it is left out; the program ends with
 * status 0 whatever the driver said, unless somebody wrote to an argument that
 * a failed call must not touch, or crashed.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cu.h"

#define BYTES ((size_t)1 << 16)

static struct cu_kernels kernels;
static CUcontext context;
static CUdevice device;
static CUstream stream, other;
static CUevent event;
static int calls, failed;

/* True if the call gave what it was asked for. */
static bool did(CUresult result)
{
        calls++;
        failed += result != CUDA_SUCCESS;
        return result == CUDA_SUCCESS;
}

static void start(void)
{
        cu_load();
        for (int i = 0; i < 3 && !did(cu.Init(0)); i++)
                continue;
        did(cu.DeviceGet(&device, 0));
        for (int i = 0; i < 3 && !did(cu.DevicePrimaryCtxRetain(&context, device)); i++)
                continue;
        did(cu.CtxSetCurrent(context));
}

static void load_kernels(void)
{
        CUmodule module = NULL;

        /* The image does not matter to the simulated driver, which knows the kernels. */
        if (!did(cu.ModuleLoadData(&module, ".version 6.0")))
                return;
        did(cu.ModuleGetFunction(&kernels.fill, module, "fill"));
        did(cu.ModuleGetFunction(&kernels.spin, module, "spin"));
}

static void use(CUdeviceptr p, CUstream where)
{
        if (p && where && kernels.fill)
                did(cu_fill(&kernels, where, p, BYTES / 4, 1));
}

static void give(CUdeviceptr p)
{
        if (p && !did(cu.MemFree(p)))
                did(cu.MemFree(p));
}

static void plain_memory(void)
{
        for (int i = 0; i < 4; i++) {
                CUdeviceptr p = 0;

                if (did(cu.MemAlloc(&p, BYTES << i))) {
                        CUdeviceptr base;
                        unsigned type;
                        size_t bytes;

                        use(p, stream);
                        did(cu.MemGetAddressRange(&base, &bytes, p + 1));
                        did(cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
                        give(p);
                }
        }
}

static void async_memory(void)
{
        for (int i = 0; i < 4 && stream; i++) {
                CUdeviceptr p = 0;

                if (!did(cu.MemAllocAsync(&p, BYTES << i, stream)))
                        continue;
                use(p, stream);
                if (event && other && did(cu.EventRecord(event, stream)))
                        did(cu.StreamWaitEvent(other, event, 0));
                if (!did(cu.MemFreeAsync(p, i & 1 && other ? other : stream)))
                        did(cu.MemFreeAsync(p, stream));
                if (i == 2)
                        did(cu.StreamSynchronize(stream));
        }
}

static void other_kinds(void)
{
        CUDA_ARRAY_DESCRIPTOR shape = {64, 64, CU_AD_FORMAT_FLOAT, 1};
        CUDA_ARRAY3D_DESCRIPTOR deep = {64, 64, 0, CU_AD_FORMAT_FLOAT, 1, 0};
        CUdeviceptr p = 0, q = 0;
        CUmipmappedArray mipmap = NULL;
        void *host = NULL, *page = NULL;
        CUarray array = NULL;
        size_t pitch;

        if (did(cu.MemAllocPitch(&p, &pitch, 1000, 10, 4)))
                give(p);
        if (did(cu.MemAllocManaged(&q, BYTES, CU_MEM_ATTACH_GLOBAL)))
                give(q);
        if (did(cu.ArrayCreate(&array, &shape)))
                did(cu.ArrayDestroy(array));
        array = NULL;
        if (did(cu.Array3DCreate(&array, &deep)))
                did(cu.ArrayDestroy(array));
        if (did(cu.MipmappedArrayCreate(&mipmap, &deep, 2)))
                did(cu.MipmappedArrayDestroy(mipmap));
        if (did(cu.MemHostAlloc(&host, BYTES, 0)))
                did(cu.MemFreeHost(host));
        host = NULL;
        if (did(cu.MemAllocHost(&host, BYTES)))
                did(cu.MemFreeHost(host));
        if (!posix_memalign(&page, 4096, BYTES) && did(cu.MemHostRegister(page, BYTES, 0)))
                did(cu.MemHostUnregister(page));
}

static void mapped_memory(void)
{
        CUmemAllocationProp properties = {
                .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
        };
        CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        CUmemGenericAllocationHandle handle = 0;
        CUdeviceptr va = 0;

        if (!did(cu.MemAddressReserve(&va, 2 << 20, 0, 0, 0)))
                return;
        if (did(cu.MemCreate(&handle, 2 << 20, &properties, 0))) {
                if (did(cu.MemMap(va, 2 << 20, 0, handle, 0))) {
                        did(cu.MemSetAccess(va, 2 << 20, &access, 1));
                        did(cu.MemUnmap(va, 2 << 20));
                }
                did(cu.MemRelease(handle));
        }
        did(cu.MemAddressFree(va, 2 << 20));
}

static void pools(void)
{
        CUmemPoolProps properties = {
                .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
        };
        CUmemoryPool pool = NULL, standard = NULL;
        uint64_t value = 0;
        CUdeviceptr p = 0;

        if (did(cu.DeviceGetDefaultMemPool(&standard, device))) {
                did(cu.MemPoolGetAttribute(standard, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
                did(cu.MemPoolTrimTo(standard, 0));
        }
        if (!did(cu.MemPoolCreate(&pool, &properties)))
                return;
        did(cu.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
        if (stream && did(cu.MemAllocFromPoolAsync(&p, BYTES, pool, stream)))
                did(cu.MemFreeAsync(p, stream));
        if (did(cu.DeviceSetMemPool(device, pool)) && standard)
                did(cu.DeviceSetMemPool(device, standard));
        did(cu.MemPoolDestroy(pool));
}

static void capture(void)
{
        CUgraphExec exec = NULL;
        CUgraph graph = NULL;
        CUdeviceptr p = 0;

        if (!stream || !did(cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED)))
                return;
        if (did(cu.MemAllocAsync(&p, BYTES, stream))) {
                use(p, stream);
                did(cu.MemFreeAsync(p, stream));
        }
        if (!did(cu.StreamEndCapture(stream, &graph)) && !did(cu.StreamEndCapture(stream, &graph)))
                return;
        if (graph && did(cu.GraphInstantiateWithFlags(&exec, graph, 0))) {
                did(cu.GraphLaunch(exec, stream));
                did(cu.StreamSynchronize(stream));
                did(cu.GraphExecDestroy(exec));
        }
        if (graph)
                did(cu.GraphDestroy(graph));
}

static void misuse(void)
{
        CUdeviceptr p = 0;

        did(cu.MemFree(0x1234));
        did(cu.MemFree(0));
        if (did(cu.MemAlloc(&p, BYTES))) {
                did(cu.MemFree(p));
                did(cu.MemFree(p));
        }
        did(cu.MemAlloc(NULL, BYTES));
        did(cu.MemAlloc(&p, 0));
        did(cu.MemGetInfo(NULL, NULL));
}

static void another_context(void)
{
        CUcontext second = NULL;
        CUdeviceptr p = 0;

        if (!did(cu.CtxCreate(&second, 0, device)))
                return;
        did(cu.MemAlloc(&p, BYTES));
        if (did(cu.MemAlloc(&p, BYTES)))
                did(cu.MemFree(p));
        did(cu.CtxDestroy(second));
        did(cu.CtxSetCurrent(context));
}

int main(void)
{
        size_t left, total;

        start();
        if (!context) {
                printf("done, without a context, %d of %d refused\n", failed, calls);
                return 0;
        }
        load_kernels();
        did(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        did(cu.StreamCreate(&other, CU_STREAM_NON_BLOCKING));
        did(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
        for (int i = 0; i < 3; i++) {
                plain_memory();
                async_memory();
                other_kinds();
                mapped_memory();
                pools();
                capture();
                misuse();
                another_context();
                did(cu.MemGetInfo(&left, &total));
                if (event) {
                        did(cu.EventQuery(event));
                        did(cu.EventSynchronize(event));
                }
                if (stream)
                        did(cu.StreamQuery(stream));
                did(cu.CtxSynchronize());
        }
        if (event)
                did(cu.EventDestroy(event));
        if (other)
                did(cu.StreamDestroy(other));
        if (stream)
                did(cu.StreamDestroy(stream));
        did(cu.DevicePrimaryCtxRelease(device));
        printf("done, %d of %d refused\n", failed, calls);
        return 0;
}
