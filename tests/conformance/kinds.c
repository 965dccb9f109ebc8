/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kinds -- pitched, managed, array, pinned and registered memory
 *
 * None of it comes from a pool; all of it is freed next to memory that does.
 */
#include "conformance.h"

#include <stdlib.h>

static void pitched(void)
{
        CUdeviceptr p, base = 0;
        size_t pitch = 0, bytes = 0;

        CODE(MemAllocPitch, &p, &pitch, 1000, 10, 4);
        CODE(MemGetAddressRange, &base, &bytes, p);
        conf_say("base=%d rows=%d", base == p, pitch >= 1000 && bytes >= 9 * pitch + 1000);
        CODE(MemFree, p);
        CODE(MemFree, p);
        CODE(MemAllocPitch, &p, &pitch, 0, 10, 4);
        CODE(MemAllocPitch, &p, &pitch, 1000, 10, 3);
}

static void managed(void)
{
        CUdeviceptr p;
        uint64_t is_managed = 0;

        CODE(MemAllocManaged, &p, 0, CU_MEM_ATTACH_GLOBAL);
        CODE(MemAllocManaged, &p, 4096, CU_MEM_ATTACH_GLOBAL);
        CODE(PointerGetAttribute, &is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p);
        conf_say("managed=%u", (unsigned)is_managed);
        CU_OK(cu_fill(&conf.kernels, conf.n1, p, 1024, 9));
        CODE(StreamSynchronize, conf.n1);
        conf_say("host=%u", ((volatile uint32_t *)(uintptr_t)p)[1023]);
        CODE(MemFree, p);
}

static void pinned(void)
{
        void *host;
        CUdeviceptr device;

        CODE(MemHostAlloc, &host, 0, 0);
        CODE(MemHostAlloc, &host, 4096, CU_MEMHOSTALLOC_DEVICEMAP);
        CODE(MemHostGetDevicePointer, &device, host, 0);
        conf_say("same=%d", device == (CUdeviceptr)(uintptr_t)host);
        CU_OK(cu_fill(&conf.kernels, conf.n1, device, 1024, 11));
        CODE(StreamSynchronize, conf.n1);
        conf_say("host=%u", ((volatile uint32_t *)host)[1023]);
        CODE(MemFreeHost, host);
        CODE(MemAllocHost, &host, 100);
        CODE(MemFreeHost, host);
}

static void registered(void)
{
        void *page = NULL;

        if (posix_memalign(&page, 4096, 8192))
                return;
        CODE(MemHostRegister, page, 8192, 0);
        CODE(MemHostRegister, page, 8192, 0);
        CODE(MemFreeHost, page);
        CODE(MemHostUnregister, page);
        CODE(MemHostUnregister, page);
        free(page);
}

static void arrays(void)
{
        CUDA_ARRAY_DESCRIPTOR flat = {64, 64, CU_AD_FORMAT_FLOAT, 1};
        CUDA_ARRAY3D_DESCRIPTOR deep = {64, 64, 4, CU_AD_FORMAT_FLOAT, 4, 0};
        CUarray array;

        CODE(ArrayCreate, &array, &flat);
        CODE(ArrayDestroy, array);
        CODE(Array3DCreate, &array, &deep);
        CODE(ArrayDestroy, array);
}

static void mipmaps(void)
{
        CUDA_ARRAY3D_DESCRIPTOR flat = {64, 64, 0, CU_AD_FORMAT_FLOAT, 1, 0};
        CUmipmappedArray array;

        CODE(MipmappedArrayCreate, &array, &flat, 4);
        CODE(MipmappedArrayDestroy, array);
}

/* All kinds at once, then freed in another order: nothing is mistaken for anything else. */
static void mixed(void)
{
        CUdeviceptr plain, async, pitched_block, managed_block, base;
        size_t pitch, bytes;
        void *host;

        CU_OK(cu.MemAlloc(&plain, 5000));
        CU_OK(cu.MemAllocAsync(&async, 6000, conf.n1));
        CU_OK(cu.MemAllocPitch(&pitched_block, &pitch, 100, 100, 4));
        CU_OK(cu.MemAllocManaged(&managed_block, 7000, CU_MEM_ATTACH_GLOBAL));
        CU_OK(cu.MemHostAlloc(&host, 8000, 0));
        CODE(MemFree, managed_block);
        CODE(MemFree, pitched_block);
        CODE(MemGetAddressRange, &base, &bytes, plain + 1);
        conf_say("plain=%zu", bytes);
        CODE(MemGetAddressRange, &base, &bytes, async + 1);
        conf_say("async=%zu", bytes);
        CODE(MemFreeAsync, async, conf.n1);
        CODE(MemFreeHost, host);
        CODE(MemFree, plain);
}

const struct conf_case conf_kinds[] = {
        {"kinds.pitched", pitched, 0, NULL}, {"kinds.managed", managed, 0, NULL},
        {"kinds.pinned", pinned, 0, NULL},   {"kinds.registered", registered, 0, NULL},
        {"kinds.arrays", arrays, 0, NULL},   {"kinds.mipmaps", mipmaps, 0, NULL},
        {"kinds.mixed", mixed, 0, NULL},     {NULL, NULL, 0, NULL},
};
