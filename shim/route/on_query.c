/* SPDX-License-Identifier: Apache-2.0 */

/*
 * On query -- what the program can see of its memory
 *
 * A block of ours lies inside a larger range that the driver knows. For its
 * addresses the driver's answers are corrected to what it says of a block of
 * its own, measured on a device (3C, and section 7 of the semantics notes):
 *
 *   range, buffer id       the block's own, with the size that was asked for
 *   context, pool          of a cuMemAlloc block its context and none; of an
 *                          asynchronous block none and its pool
 *   legacy IPC             a cuMemAlloc block can be shared (on_ipc.c), another cannot
 *   handles behind it      cuMemAlloc memory has none to show, and allows none
 *   SYNC_MEMOPS            mapped memory refuses the attribute; the context's
 *                          flag of the same name does it for all its memory
 *
 * Of page-locked memory only the range and the id are the block's own: the rest
 * is true of the chunk as well.
 *
 * A block that another process shared is one allocation, too, whatever was mapped
 * for it. Freed blocks are unknown pointers, like the driver's.
 */

#include "base/life.h"
#include "route/perform.h"
#include "route/room.h"
#include "route/route.h"
#include "route/whose.h"
#include "route/work.h"
#include "track/backing.h"
#include "track/export.h"
#include "track/held.h"
#include "track/import.h"
#include "track/ledger.h"
#include "track/limit.h"
#include "track/mempool.h"
#include "track/pinned.h"
#include "track/state.h"
#include "track/vmm.h"

enum sp_whose sp_whose(CUdeviceptr pointer, struct spm_allocation *block)
{
        enum spm_status status;

        if (!sp_route_pools() || !sp_life_has_begun())
                return SP_FOREIGN;
        status = spm_find(sp_model_enter(), pointer, block);
        sp_model_leave();
        if (status == SPM_E_FOREIGN && sp_backing_reserves(pointer))
                return SP_FREED;
        /* What the driver says of it is to be true. */
        if (status == SPM_E_FOREIGN) {
                sp_vmm_settle_range(pointer, 1);
                return SP_FOREIGN;
        }
        return status == SPM_OK ? SP_OURS : SP_FREED;
}

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

/* attributes */

/* The owner of a block; NULL of an asynchronous one. */
static struct sp_context *whose_context(const struct spm_allocation *block)
{
        struct sp_context *context = sp_context_by_pool(block->pool);

        return context ? context : sp_pinned_owner(block->pool, NULL);
}

bool sp_is_whole_native(const struct spm_allocation *block)
{
        return sp_backing_is_native(block->cookie) && block->address == block->segment_base &&
               block->reserved == block->segment_size;
}

/* The driver refuses asynchronous memory, which has no context (1). */
bool sp_can_be_exported(const struct spm_allocation *block)
{
        return sp_context_by_pool(block->pool) && sp_export_can(block);
}

/* The driver's answer is in *value; make it that for a block of its own. Yes-or-no attributes are
 * four bytes wide (measured). */
static void correct(void *value, CUpointer_attribute attribute, const struct spm_allocation *block)
{
        const struct sp_context *context = whose_context(block);

        switch ((int)attribute) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
                *(CUcontext *)value = context ? context->handle : NULL;
                break;
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
                *(unsigned long long *)value = block->buffer_id;
                break;
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
                *(CUdeviceptr *)value = block->address;
                break;
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
                *(size_t *)value = block->size;
                break;
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
                *(unsigned int *)value = sp_can_be_exported(block);
                break;
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
                if (!context)
                        *(unsigned int *)value = 0;
                break;
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
                *(unsigned long long *)value = 0;
                break;
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
                *(CUmemoryPool *)value = context ? NULL : sp_mempool_handle(block->pool);
                break;
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
                if (!sp_backing_is_pinned(block->cookie))
                        *(unsigned int *)value = (block->user & SP_HELD_SYNC_MEMOPS) != 0;
                break;
        default:
                break;
        }
}

static void set_user(const struct spm_allocation *block, uint64_t user)
{
        spm_set_user(sp_model_enter(), block->address, user);
        sp_model_leave();
}

void sp_known_outside(const struct spm_allocation *block)
{
        struct sp_context *context = whose_context(block);

        if (context)
                sp_work_share(context);
        spm_export(sp_model_enter(), block->address);
        sp_model_leave();
}

/* A block of another process, at whatever addresses of ours it was opened. */
static void correct_import(void *value, CUpointer_attribute attribute, CUdeviceptr pointer)
{
        struct sp_context *context;
        CUdeviceptr address;
        size_t size;

        if (!sp_import_find(pointer, &address, &size, &context))
                return;
        switch ((int)attribute) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
                *(CUcontext *)value = context->handle;
                break;
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
                *(CUdeviceptr *)value = address;
                break;
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
                *(size_t *)value = size;
                break;
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
                *(unsigned long long *)value = 0;
                break;
        default:
                break;
        }
}

CUresult CUDAAPI sp_on_cuPointerGetAttribute(void *value, CUpointer_attribute attribute,
                                             CUdeviceptr pointer)
{
        struct spm_allocation block;
        enum sp_whose whose = sp_whose(pointer, &block);
        CUresult result;

        if (whose == SP_FREED)
                return CUDA_ERROR_INVALID_VALUE;
        if (whose == SP_FOREIGN && attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS)
                sp_vmm_forget_range(pointer, 1);
        result = sp_driver.cuPointerGetAttribute(value, attribute, pointer);
        if (whose == SP_FOREIGN && result == CUDA_SUCCESS)
                correct_import(value, attribute, pointer);
        if (whose == SP_FOREIGN || result != CUDA_SUCCESS)
                return result;
        /* A token lets a device of another vendor in, and sets SYNC_MEMOPS (Q7). */
        if (attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS) {
                sp_known_outside(&block);
                set_user(&block, block.user | SP_HELD_SYNC_MEMOPS);
        }
        correct(value, attribute, &block);
        return result;
}

/* An unknown pointer is no error here: it counts as the program's own host memory. */
static CUresult answer_as_host(unsigned int count, CUpointer_attribute *attributes, void **values,
                               CUdeviceptr pointer)
{
        CUresult result = sp_driver.cuPointerGetAttributes(count, attributes, values,
                                                           (CUdeviceptr)(uintptr_t)&result);

        /* Also when a later attribute was refused: what came before it is written. */
        for (unsigned int i = 0; i < count; i++)
                if (attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER &&
                    *(void **)values[i] == &result)
                        *(void **)values[i] = (void *)(uintptr_t)pointer;
        return result;
}

CUresult CUDAAPI sp_on_cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes,
                                              void **values, CUdeviceptr pointer)
{
        struct spm_allocation block;
        enum sp_whose whose = sp_whose(pointer, &block);
        CUresult result;

        if (whose == SP_FREED && attributes && values)
                return answer_as_host(count, attributes, values, pointer);
        for (unsigned int i = 0; whose == SP_FOREIGN && attributes && i < count; i++)
                if (attributes[i] == CU_POINTER_ATTRIBUTE_P2P_TOKENS)
                        sp_vmm_forget_range(pointer, 1);
        result = sp_driver.cuPointerGetAttributes(count, attributes, values, pointer);
        for (unsigned int i = 0; result == CUDA_SUCCESS && i < count; i++) {
                if (whose == SP_OURS)
                        correct(values[i], attributes[i], &block);
                else
                        correct_import(values[i], attributes[i], pointer);
        }
        return result;
}

/* The flag makes every blocking copy in the context synchronous, which is more than was asked. */
static CUresult make_context_synchronous(const struct spm_allocation *block)
{
        CUresult result = CUDA_ERROR_NOT_SUPPORTED;

#if CUDA_VERSION >= 12010
        const struct sp_context *context = whose_context(block);
        unsigned int flags;
        CUcontext popped;

        if (!context)
                context = sp_context_current();
        if (!context)
                return CUDA_ERROR_INVALID_CONTEXT;
        if (sp_driver.cuCtxSetFlags &&
            sp_driver.cuCtxPushCurrent_v2(context->handle) == CUDA_SUCCESS) {
                result = sp_driver.cuCtxGetFlags(&flags);
                if (result == CUDA_SUCCESS)
                        result = sp_driver.cuCtxSetFlags(flags | CU_CTX_SYNC_MEMOPS);
                sp_driver.cuCtxPopCurrent_v2(&popped);
        }
#else
        (void)block;
#endif
        return result;
}

/* What was made synchronous around the block stays so, for the sake of its neighbours. */
static CUresult set_sync_memops(const struct spm_allocation *block, unsigned int on)
{
        uint64_t user = on ? block->user | SP_HELD_SYNC_MEMOPS : block->user & ~SP_HELD_SYNC_MEMOPS;
        CUresult result = CUDA_SUCCESS;

        if (on && sp_backing_is_native(block->cookie))
                result = sp_driver.cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
                                                         block->address);
        else if (on)
                result = make_context_synchronous(block);
        if (result == CUDA_SUCCESS)
                set_user(block, user);
        return result;
}

CUresult CUDAAPI sp_on_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
                                             CUdeviceptr pointer)
{
        struct spm_allocation block;
        enum sp_whose whose = sp_whose(pointer, &block);

        if (whose == SP_FREED)
                return CUDA_ERROR_INVALID_VALUE;
        if (whose == SP_FOREIGN || !value || sp_backing_is_pinned(block.cookie))
                return sp_driver.cuPointerSetAttribute(value, attribute, pointer);
        /* It is the only one that can be set. */
        return attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
                       ? set_sync_memops(&block, *(const unsigned int *)value)
                       : CUDA_ERROR_INVALID_VALUE;
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
        if (whose == SP_OURS && result == CUDA_SUCCESS && whose_context(&block) &&
            !sp_backing_is_pinned(block.cookie))
                *flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
        return result;
}
