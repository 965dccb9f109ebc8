/* SPDX-License-Identifier: Apache-2.0 */

/*
 * On attribute -- what a pointer says of the memory it is in
 *
 * What the driver says of the chunk around a block is corrected to what it says
 * of a block of its own, as in on_query.c:
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
 */

#include "route/route.h"
#include "route/whose.h"
#include "track/backing.h"
#include "track/held.h"
#include "track/import.h"
#include "track/mempool.h"
#include "track/state.h"
#include "track/vmm.h"

/* The driver's answer is in *value; make it that for a block of its own. Yes-or-no attributes are
 * four bytes wide (measured). */
static void correct(void *value, CUpointer_attribute attribute, const struct spm_allocation *block)
{
        const struct sp_context *context = sp_whose_context(block);

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
        const struct sp_context *context = sp_whose_context(block);
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
