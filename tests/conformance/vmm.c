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

const struct conf_case conf_vmm[] = {
        {"vmm.life", life, 0, NULL},
        {"vmm.what_it_looks_like", what_it_looks_like, 0, NULL},
        {"vmm.refusals", refusals, 0, NULL},
        {"vmm.after_a_reset", after_a_reset, CONF_ALONE, NULL},
        {NULL, NULL, 0, NULL},
};
