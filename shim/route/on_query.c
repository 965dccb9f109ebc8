/* SPDX-License-Identifier: Apache-2.0 */

/*
 * On query -- what the program can see of its memory
 *
 * A block of ours lies inside a larger range that the driver knows. For its
 * addresses the driver's answers are corrected to what it says of a block of
 * its own, measured on a device (3C, and section 7 of the semantics notes): here
 * where the block is and what is behind it, in on_attribute.c the attributes of a
 * pointer.
 *
 * A block that another process shared is one allocation, too, whatever was mapped
 * for it. Freed blocks are unknown pointers, like the driver's. And of a device it
 * sees how much is free.
 */

#include "base/life.h"
#include "route/room.h"
#include "route/route.h"
#include "route/whose.h"
#include "track/backing.h"
#include "track/import.h"
#include "track/ledger.h"
#include "track/limit.h"
#include "track/vmm.h"

/* ranges */

/* What the driver says of a pointer that is not ours, or is at least mapped: of memory that was
 * opened it knows all chunks. */
static CUresult ask_for_range(CUdeviceptr *base, size_t *size, CUdeviceptr pointer)
{
        CUresult result = sp_driver.cuMemGetAddressRange_v2(base, size, pointer);
        struct sp_context *context;
        CUdeviceptr address;
        size_t length;

        if (result != CUDA_SUCCESS || !sp_import_find(pointer, &address, &length, &context))
                return result;
        if (base)
                *base = address;
        if (size)
                *size = length;
        return result;
}

CUresult CUDAAPI sp_on_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr pointer)
{
        struct spm_allocation block;
        enum sp_whose whose = sp_whose(pointer, &block);
        CUdeviceptr start;
        size_t length;
        CUresult result;

        if (whose == SP_FOREIGN || (!base && !size))
                return ask_for_range(base, size, pointer);
        /* The address is mapped, so what the driver refuses is the caller: no context, a dead one.
         */
        result = sp_driver.cuMemGetAddressRange_v2(&start, &length, pointer);
        if (result != CUDA_SUCCESS)
                return result;
        if (whose == SP_FREED || pointer >= block.address + block.size)
                return CUDA_ERROR_NOT_FOUND;
        if (base)
                *base = block.address;
        if (size)
                *size = block.size;
        return CUDA_SUCCESS;
}

/* memory in all */

static uint64_t least(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

/* What the pool holds and nobody uses is as good as free: it is given back when it is wanted. A
 * limit makes a smaller device of this one. */
static void correct_info(const struct sp_device *device, size_t *free_bytes, size_t *total_bytes)
{
        uint64_t idle = sp_route_pools() ? sp_room_idle(device) : 0;
        uint64_t cap = sp_limit_cap(device->ordinal);
        uint64_t counted = sp_limit_counted(device->ordinal);
        uint64_t held = counted > idle ? counted - idle : 0;
        uint64_t left = cap == SP_LIMIT_NONE ? cap : cap - least(held, cap);

        if (free_bytes)
                *free_bytes = least(least(*free_bytes + idle, device->total_bytes), left);
        if (total_bytes)
                *total_bytes = least(*total_bytes, cap);
}

CUresult CUDAAPI sp_on_cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
        CUresult result = sp_driver.cuMemGetInfo_v2(free_bytes, total_bytes);
        struct sp_context *context;

        if (result != CUDA_SUCCESS || !sp_life_has_begun() ||
            !((free_bytes && sp_route_pools()) || sp_limit_is_set()))
                return result;
        context = sp_context_current();
        if (context)
                correct_info(context->device, free_bytes, total_bytes);
        return result;
}

CUresult CUDAAPI sp_on_cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
        CUresult result = sp_driver.cuDeviceTotalMem_v2(bytes, device);

        if (result == CUDA_SUCCESS && sp_life_has_begun())
                *bytes = least(*bytes, sp_limit_cap(device));
        return result;
}

/* memory that leaves the process */

CUresult CUDAAPI sp_on_cuMemGetHandleForAddressRange(void *handle, CUdeviceptr pointer, size_t size,
                                                     CUmemRangeHandleType type,
                                                     unsigned long long flags)
{
        struct spm_allocation block;
        enum sp_whose whose = sp_whose(pointer, &block);
        CUresult result;

        if (whose == SP_FREED ||
            (whose == SP_OURS && size > block.address + block.reserved - pointer))
                return CUDA_ERROR_INVALID_VALUE;
        if (whose == SP_FOREIGN)
                sp_vmm_forget_range(pointer, size);
        result = sp_driver.cuMemGetHandleForAddressRange(handle, pointer, size, type, flags);
        if (whose == SP_OURS && result == CUDA_SUCCESS)
                sp_known_outside(&block);
        return result;
}

static bool is_import(CUdeviceptr pointer)
{
        struct sp_context *context;
        CUdeviceptr address;
        size_t size;

        return sp_import_find(pointer, &address, &size, &context);
}

CUresult CUDAAPI sp_on_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle,
                                                   void *address)
{
        CUdeviceptr pointer = (CUdeviceptr)(uintptr_t)address;
        struct spm_allocation block;
        CUresult result;

        if (sp_whose(pointer, &block) != SP_FOREIGN || is_import(pointer))
                return CUDA_ERROR_INVALID_VALUE;
        sp_vmm_forget_range(pointer, 1);
        result = sp_driver.cuMemRetainAllocationHandle(handle, address);
        if (result == CUDA_SUCCESS)
                sp_ledger_retain(*handle, pointer);
        return result;
}

/* Of cuMemAlloc memory the driver says that nobody has access, which is what it was asked: the
 * question is about mappings (measured). */
CUresult CUDAAPI sp_on_cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                                      CUdeviceptr pointer)
{
        struct spm_allocation block;
        enum sp_whose whose = sp_whose(pointer, &block);
        CUresult result;

        if (whose == SP_FREED)
                return CUDA_ERROR_INVALID_VALUE;
        if (whose == SP_FOREIGN)
                sp_vmm_show_access(pointer);
        result = sp_driver.cuMemGetAccess(flags, location, pointer);
        if (whose == SP_OURS && result == CUDA_SUCCESS && sp_whose_context(&block) &&
            !sp_backing_is_pinned(block.cookie))
                *flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
        return result;
}
