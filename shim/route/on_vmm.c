/* SPDX-License-Identifier: Apache-2.0 */

/*
 * On VMM -- memory that the program maps itself (E14)
 *
 * A call is answered without the driver where nothing has to be done for it
 * (track/vmm.h), and only in a state in which the driver would do it: not while
 * something captures, and not once a context has failed, which the driver may tell
 * in any call. Else what was put off is done first, and then the call is
 * forwarded with the caller's own arguments.
 *
 * cuMemMapArrayAsync needs no hook: it takes memory made for it only, which is never kept.
 */

#include "base/config.h"
#include "route/ask.h"
#include "route/fault.h"
#include "route/give_back.h"
#include "route/perform.h"
#include "route/route.h"
#include "track/context.h"
#include "track/ledger.h"
#include "track/vmm.h"

static bool reuses(void)
{
        return sp_config()->vmm == SP_VMM_REUSE && sp_route_pools();
}

static bool is_any_poisoned(void)
{
        struct sp_context *context = NULL;

        while ((context = sp_context_each(context)))
                if (atomic_load_explicit(&context->poisoned, memory_order_relaxed) &&
                    !atomic_load_explicit(&context->gone, memory_order_relaxed))
                        return true;
        return false;
}

static bool may_answer(void)
{
        return reuses() && sp_route_may_act() && !is_any_poisoned();
}

/* physical memory */

/* Of this device, whether or not it is the current context's, which sp_relieve() looks at. */
static CUresult create(CUmemGenericAllocationHandle *handle, size_t size,
                       const CUmemAllocationProp *prop, unsigned long long flags, int device)
{
        CUresult result = sp_driver.cuMemCreate(handle, size, prop, flags);

        if (result == CUDA_ERROR_OUT_OF_MEMORY && sp_vmm_trim(device, 0))
                result = sp_driver.cuMemCreate(handle, size, prop, flags);
        return result;
}

CUresult CUDAAPI sp_on_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                                   const CUmemAllocationProp *prop, unsigned long long flags)
{
        /* It belongs to no context; memory of the host has no device. */
        bool is_device = handle && prop && prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
        struct sp_ask ask = {
                .kind = SP_KIND_VMM,
                .bytes = size,
                .device = is_device ? prop->location.id : -1,
        };
        CUresult result = sp_fault(SP_KIND_VMM, "cuMemCreate", handle && prop ? size : 0);

        if (result != CUDA_SUCCESS)
                return result;
        if (is_device && !flags && may_answer() && sp_vmm_create(handle, size, prop))
                return CUDA_SUCCESS;
        sp_vmm_begin_create(ask.device, size);
        result = SP_ASK_FOR(&ask, create(handle, size, prop, flags, ask.device));
        if (result == CUDA_SUCCESS) {
                struct sp_ledger_entry entry = {
                        .address = *handle,
                        .bytes = size,
                        .reserved = size,
                        .counted = ask.counted,
                        .kind = SP_KIND_VMM,
                        .device = ask.device,
                };

                sp_ledger_add(&entry);
                if (is_device && !flags && reuses())
                        sp_vmm_created(*handle, size, prop);
        }
        sp_vmm_end_create(ask.device, size);
        return result;
}

CUresult CUDAAPI sp_on_cuMemRelease(CUmemGenericAllocationHandle handle)
{
        if (may_answer() && sp_vmm_release(handle))
                return CUDA_SUCCESS;
        sp_vmm_forget(handle);
        return SP_GIVE_BACK(SP_SPACE_HANDLE, handle, "cuMemRelease",
                            sp_driver.cuMemRelease(handle));
}

/* addresses */

CUresult CUDAAPI sp_on_cuMemAddressReserve(CUdeviceptr *pointer, size_t size, size_t alignment,
                                           CUdeviceptr wish, unsigned long long flags)
{
        CUresult result;

        if (pointer && !wish && !flags && may_answer() && sp_vmm_reserve(pointer, size, alignment))
                return CUDA_SUCCESS;
        if (wish)
                sp_vmm_settle_range(wish, size);
        result = SP_ASK(sp_driver.cuMemAddressReserve(pointer, size, alignment, wish, flags));
        if (result == CUDA_SUCCESS && !flags && reuses())
                sp_vmm_reserved(*pointer, size);
        return result;
}

CUresult CUDAAPI sp_on_cuMemAddressFree(CUdeviceptr pointer, size_t size)
{
        if (may_answer() && sp_vmm_free(pointer, size))
                return CUDA_SUCCESS;
        sp_vmm_forget_reservation(pointer, size);
        return sp_driver.cuMemAddressFree(pointer, size);
}

/* mappings */

CUresult CUDAAPI sp_on_cuMemMap(CUdeviceptr pointer, size_t size, size_t offset,
                                CUmemGenericAllocationHandle handle, unsigned long long flags)
{
        CUresult result = sp_fault(SP_KIND_MAPPED, "cuMemMap", size);

        if (result != CUDA_SUCCESS)
                return result;
        if (!offset && !flags && may_answer() && sp_vmm_map(pointer, size, handle))
                return CUDA_SUCCESS;
        sp_vmm_settle(handle);
        sp_vmm_settle_range(pointer, size);
        if (offset || flags)
                sp_vmm_forget(handle);
        result = SP_ASK(sp_driver.cuMemMap(pointer, size, offset, handle, flags));
        if (result == CUDA_SUCCESS) {
                sp_ledger_map(pointer, size, handle);
                sp_vmm_mapped(pointer, size, handle);
        }
        return result;
}

CUresult CUDAAPI sp_on_cuMemSetAccess(CUdeviceptr pointer, size_t size,
                                      const CUmemAccessDesc *access, size_t count)
{
        CUresult result;

        if (access && count && may_answer() && sp_vmm_set_access(pointer, size, access, count))
                return CUDA_SUCCESS;
        sp_vmm_settle_range(pointer, size);
        result = SP_ASK(sp_driver.cuMemSetAccess(pointer, size, access, count));
        if (result == CUDA_SUCCESS)
                sp_vmm_access_set(pointer, size, access, count);
        else
                sp_vmm_forget_range(pointer, size);
        return result;
}

CUresult CUDAAPI sp_on_cuMemUnmap(CUdeviceptr pointer, size_t size)
{
        CUresult result;

        if (may_answer() && sp_vmm_unmap(pointer, size))
                return CUDA_SUCCESS;
        sp_vmm_settle_range(pointer, size);
        result = sp_driver.cuMemUnmap(pointer, size);
        if (result == CUDA_SUCCESS) {
                sp_vmm_unmapped(pointer, size);
                sp_ledger_unmap(pointer, size);
        }
        return result;
}

/* from here on somebody else may know the memory */

CUresult CUDAAPI sp_on_cuMemExportToShareableHandle(void *shareable,
                                                    CUmemGenericAllocationHandle handle,
                                                    CUmemAllocationHandleType type,
                                                    unsigned long long flags)
{
        sp_vmm_forget(handle);
        return sp_driver.cuMemExportToShareableHandle(shareable, handle, type, flags);
}

CUresult CUDAAPI sp_on_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
                                                      void *source, CUmemAllocationHandleType type)
{
        CUresult result = sp_fault(SP_KIND_SHARED, "cuMemImportFromShareableHandle",
                                   handle ? SP_FAULT_UNSIZED : 0);

        if (result == CUDA_SUCCESS)
                result = SP_ASK(sp_driver.cuMemImportFromShareableHandle(handle, source, type));
        if (result == CUDA_SUCCESS)
                sp_route_write_down(SP_KIND_SHARED, *handle, 0);
        return result;
}

CUresult CUDAAPI sp_on_cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                              CUmemGenericAllocationHandle handle)
{
        sp_vmm_settle_released(handle);
        return sp_driver.cuMemGetAllocationPropertiesFromHandle(prop, handle);
}

#if CUDA_VERSION >= 12010
CUresult CUDAAPI sp_on_cuMulticastBindMem(CUmemGenericAllocationHandle object, size_t to,
                                          CUmemGenericAllocationHandle handle, size_t from,
                                          size_t size, unsigned long long flags)
{
        sp_vmm_forget(handle);
        return SP_ASK(sp_driver.cuMulticastBindMem(object, to, handle, from, size, flags));
}

CUresult CUDAAPI sp_on_cuMulticastBindAddr(CUmemGenericAllocationHandle object, size_t to,
                                           CUdeviceptr pointer, size_t size,
                                           unsigned long long flags)
{
        sp_vmm_forget_range(pointer, size);
        return SP_ASK(sp_driver.cuMulticastBindAddr(object, to, pointer, size, flags));
}
#endif

#if CUDA_VERSION >= 13010
CUresult CUDAAPI sp_on_cuMulticastBindMem_v2(CUmemGenericAllocationHandle object, CUdevice device,
                                             size_t to, CUmemGenericAllocationHandle handle,
                                             size_t from, size_t size, unsigned long long flags)
{
        sp_vmm_forget(handle);
        return SP_ASK(
                sp_driver.cuMulticastBindMem_v2(object, device, to, handle, from, size, flags));
}

CUresult CUDAAPI sp_on_cuMulticastBindAddr_v2(CUmemGenericAllocationHandle object, CUdevice device,
                                              size_t to, CUdeviceptr pointer, size_t size,
                                              unsigned long long flags)
{
        sp_vmm_forget_range(pointer, size);
        return SP_ASK(sp_driver.cuMulticastBindAddr_v2(object, device, to, pointer, size, flags));
}
#endif
