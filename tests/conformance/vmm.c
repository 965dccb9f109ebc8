/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vmm -- memory that the program maps itself
 */
#include "conformance.h"

#define MIB ((size_t)1 << 20)

static CUmemAllocationProp on_device(void)
{
        return (CUmemAllocationProp){
                .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = conf.device},
        };
}

static void life(void)
{
        CUmemAllocationProp properties = on_device();
        CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        CUmemGenericAllocationHandle handle;
        uint32_t back = 0;
        CUdeviceptr va;

        CODE(MemAddressReserve, &va, 64 * MIB, 0, 0, 0);
        CODE(MemCreate, &handle, 4 * MIB, &properties, 0);
        CODE(MemMap, va, 4 * MIB, 0, handle, 0);
        CODE(MemSetAccess, va, 4 * MIB, &access, 1);
        CU_OK(cu_fill(&conf.kernels, conf.n1, va, MIB, 77));
        CODE(StreamSynchronize, conf.n1);
        CODE(MemcpyDtoH, &back, va + 4 * MIB - 4, 4);
        conf_say("value=%u", back);
        CODE(MemFree, va);
        CODE(MemRelease, handle);
        CODE(MemUnmap, va, 4 * MIB);
        CODE(MemAddressFree, va, 64 * MIB);
}

static void what_it_looks_like(void)
{
        CUmemAllocationProp properties = on_device();
        CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        CUmemGenericAllocationHandle handle, again = 0;
        CUcontext context = conf.context;
        CUipcMemHandle ipc;
        CUdeviceptr va, base = 0;
        unsigned int on = 1;
        size_t bytes = 0;

        CU_OK(cu.MemAddressReserve(&va, 64 * MIB, 0, 0, 0));
        CU_OK(cu.MemCreate(&handle, 4 * MIB, &properties, 0));
        CU_OK(cu.MemMap(va, 4 * MIB, 0, handle, 0));
        CU_OK(cu.MemSetAccess(va, 4 * MIB, &access, 1));
        CODE(PointerGetAttribute, &context, CU_POINTER_ATTRIBUTE_CONTEXT, va);
        conf_say("context=%s", context ? "some" : "null");
        CODE(MemGetAddressRange, &base, &bytes, va + 4096);
        conf_say("base=%d bytes=%zuM", base == va, bytes / MIB);
        CODE(PointerSetAttribute, &on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, va);
        CODE(IpcGetMemHandle, &ipc, va);
        if (!CODE(MemRetainAllocationHandle, &again, (void *)(uintptr_t)va))
                CU_OK(cu.MemRelease(again));
        CU_OK(cu.MemUnmap(va, 4 * MIB));
        CU_OK(cu.MemRelease(handle));
        CU_OK(cu.MemAddressFree(va, 64 * MIB));
}

static void refusals(void)
{
        CUmemAllocationProp properties = on_device();
        CUmemGenericAllocationHandle handle;
        CUdeviceptr va;
        size_t grain = 0;

        CODE(MemGetAllocationGranularity, &grain, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
        conf_say("grain=%zuM", grain / MIB);
        CODE(MemCreate, &handle, 1000, &properties, 0);
        CU_OK(cu.MemCreate(&handle, 4 * MIB, &properties, 0));
        CU_OK(cu.MemAddressReserve(&va, 8 * MIB, 0, 0, 0));
        CODE(MemMap, va, 2 * MIB, 2 * MIB, handle, 0);
        CODE(MemUnmap, va, 4 * MIB);
        CU_OK(cu.MemMap(va, 4 * MIB, 0, handle, 0));
        CODE(MemUnmap, va, 2 * MIB);
        CODE(MemUnmap, va + 2 * MIB, 2 * MIB);
        CODE(MemUnmap, va, 0);
        CODE(MemUnmap, va, 8 * MIB);
        CU_OK(cu.MemRelease(handle));
        CU_OK(cu.MemAddressFree(va, 8 * MIB));
        CODE(MemUnmap, va, 8 * MIB);
}

/* Mapped memory belongs to no context. */
static void after_a_reset(void)
{
        CUmemAllocationProp properties = on_device();
        CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        CUmemGenericAllocationHandle handle;
        uint32_t back = 0;
        CUcontext again;
        CUdeviceptr va;

        CU_OK(cu.MemAddressReserve(&va, 4 * MIB, 0, 0, 0));
        CU_OK(cu.MemCreate(&handle, 4 * MIB, &properties, 0));
        CU_OK(cu.MemMap(va, 4 * MIB, 0, handle, 0));
        CU_OK(cu.MemSetAccess(va, 4 * MIB, &access, 1));
        CU_OK(cu_fill(&conf.kernels, conf.n1, va, MIB, 77));
        CU_OK(cu.CtxSynchronize());
        CODE(DevicePrimaryCtxReset, conf.device);
        CODE(MemcpyDtoH, &back, va, 4);
        CODE(DevicePrimaryCtxRetain, &again, conf.device);
        CU_OK(cu.CtxSetCurrent(again));
        CODE(MemcpyDtoH, &back, va, 4);
        conf_say("value=%u", back);
        CODE(MemUnmap, va, 4 * MIB);
        CODE(MemRelease, handle);
        CODE(MemAddressFree, va, 4 * MIB);
}

struct array {
        CUmemGenericAllocationHandle handle;
        CUdeviceptr va;
};

static struct array make(size_t bytes)
{
        CUmemAllocationProp properties = on_device();
        CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        struct array array;

        CU_OK(cu.MemCreate(&array.handle, bytes, &properties, 0));
        CU_OK(cu.MemAddressReserve(&array.va, bytes, 2 * MIB, 0, 0));
        CU_OK(cu.MemMap(array.va, bytes, 0, array.handle, 0));
        CU_OK(cu.MemSetAccess(array.va, bytes, &access, 1));
        return array;
}

static void fill(CUdeviceptr va, uint32_t value)
{
        CU_OK(cu_fill(&conf.kernels, conf.n1, va, MIB, value));
        CU_OK(cu.StreamSynchronize(conf.n1));
}

static uint32_t last_of(CUdeviceptr va, size_t bytes)
{
        uint32_t back = 0;

        CU_OK(cu.MemcpyDtoH(&back, va + bytes - 4, 4));
        return back;
}

/* As JAX does for every array. */
static void again_and_again(void)
{
        for (uint32_t round = 1; round <= 3; round++) {
                struct array one = make(4 * MIB), two = make(4 * MIB);
                unsigned int type = 0;
                CUdeviceptr base;
                size_t bytes;

                fill(one.va, round);
                fill(two.va, 100 + round);
                conf_say("%u %u", last_of(one.va, 4 * MIB), last_of(two.va, 4 * MIB));
                CODE(MemUnmap, one.va, 4 * MIB);
                CODE(MemRelease, one.handle);
                conf_say("%u", last_of(two.va, 4 * MIB));
                CODE(MemAddressFree, one.va, 4 * MIB);
                if (round == 2) {
                        CODE(MemGetAddressRange, &base, &bytes, one.va);
                        CODE(PointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, one.va);
                }
                CODE(MemUnmap, two.va, 4 * MIB);
                CODE(MemAddressFree, two.va, 4 * MIB);
                CODE(MemRelease, two.handle);
        }
}

static void mapped_elsewhere(void)
{
        CUmemAllocationProp properties = on_device();
        CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        struct array one = make(4 * MIB), two = make(4 * MIB);

        fill(one.va, 1);
        fill(two.va, 2);
        CODE(MemUnmap, one.va, 4 * MIB);
        CODE(MemUnmap, two.va, 4 * MIB);
        CODE(MemMap, one.va, 4 * MIB, 0, two.handle, 0);
        CODE(MemMap, two.va, 4 * MIB, 0, one.handle, 0);
        CODE(MemSetAccess, one.va, 4 * MIB, &access, 1);
        CODE(MemSetAccess, two.va, 4 * MIB, &access, 1);
        conf_say("%u %u", last_of(one.va, 4 * MIB), last_of(two.va, 4 * MIB));
        CODE(MemUnmap, one.va, 4 * MIB);
        CODE(MemMap, one.va, 4 * MIB, 0, two.handle, 0);
        CODE(MemSetAccess, one.va, 4 * MIB, &access, 1);
        conf_say("%u", last_of(one.va, 4 * MIB));
        CODE(MemUnmap, one.va, 4 * MIB);
        CODE(MemUnmap, two.va, 4 * MIB);
        CODE(MemRelease, one.handle);
        CODE(MemRelease, two.handle);
        CODE(MemAddressFree, one.va, 4 * MIB);
        CODE(MemAddressFree, two.va, 4 * MIB);
}

static void access_again(void)
{
        CUmemAllocationProp properties = on_device();
        CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

        for (int round = 0; round < 2; round++) {
                struct array array = make(4 * MIB);
                unsigned long long flags = 99;

                CODE(MemGetAccess, &flags, &properties.location, array.va);
                conf_say("flags=%llu", flags);
                CODE(MemSetAccess, array.va, 4 * MIB, &access, 1);
                CODE(MemSetAccess, array.va, 4 * MIB, NULL, 1);
                CODE(MemUnmap, array.va, 4 * MIB);
                CODE(MemSetAccess, array.va, 4 * MIB, &access, 1);
                CODE(MemRelease, array.handle);
                CODE(MemAddressFree, array.va, 4 * MIB);
        }
}

const struct conf_case conf_vmm[] = {
        {"vmm.life", life, 0, NULL},
        {"vmm.what_it_looks_like", what_it_looks_like, 0, NULL},
        {"vmm.refusals", refusals, 0, NULL},
        {"vmm.again_and_again", again_and_again, 0, NULL},
        {"vmm.mapped_elsewhere", mapped_elsewhere, 0, NULL},
        {"vmm.access_again", access_again, 0, NULL},
        {"vmm.after_a_reset", after_a_reset, CONF_ALONE, NULL},
        {NULL, NULL, 0, NULL},
};
