/* SPDX-License-Identifier: Apache-2.0 */

/*
 * External -- memory that another library made, seen by the device
 *
 * A descriptor of a file is mapped where the device sees it. The pointer is the
 * program's to give to cuMemFree(), as cuda.h says, and to nothing else.
 */

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "memory.h"

struct external {
        int file;
        uint64_t bytes;
};

CUresult CUDAAPI cuImportExternalMemory(CUexternalMemory *handle,
                                        const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc)
{
        SIM_ENTER(cuImportExternalMemory);
        struct sim_context *context;
        struct external *external;
        CUresult result = sim_current(&context);

        if (result != CUDA_SUCCESS)
                return result;
        if (!handle || !desc || !desc->size)
                return CUDA_ERROR_INVALID_VALUE;
        if (desc->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD)
                return CUDA_ERROR_NOT_SUPPORTED;
        external = calloc(1, sizeof(*external));
        if (!external)
                return CUDA_ERROR_OUT_OF_MEMORY;
        external->file = desc->handle.fd; /* ours from now on, as cuda.h says */
        external->bytes = desc->size;
        *handle = (CUexternalMemory)external;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuExternalMemoryGetMappedBuffer(CUdeviceptr *address, CUexternalMemory handle,
                                                 const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)
{
        SIM_ENTER(cuExternalMemoryGetMappedBuffer);
        const struct external *external = (const struct external *)handle;
        struct sim_context *context;
        struct sim_block *block;
        uint64_t base, reserved;
        CUresult result = sim_current(&context);

        if (result != CUDA_SUCCESS)
                return result;
        if (!external)
                return CUDA_ERROR_INVALID_HANDLE;
        if (!address || !desc || !desc->size || desc->flags || desc->offset > external->bytes ||
            desc->size > external->bytes - desc->offset)
                return CUDA_ERROR_INVALID_VALUE;
        reserved = sim_round(desc->size, SIM_PAGE);
        if (!sim_space_take(reserved, SIM_PAGE, &base))
                return CUDA_ERROR_OUT_OF_MEMORY;
        if (mmap((void *)base, reserved, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                 external->file, (off_t)desc->offset) == MAP_FAILED) {
                sim_space_give(base, reserved);
                return CUDA_ERROR_INVALID_VALUE;
        }
        block = sim_block_new(SIM_MEMORY_IMPORTED, base, desc->size, reserved);
        block->allocation.context = context;
        block->allocation.device = context->device;
        block->entry = (void *)external;
        *address = base;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDestroyExternalMemory(CUexternalMemory handle)
{
        SIM_ENTER(cuDestroyExternalMemory);
        struct external *external = (struct external *)handle;

        if (!external)
                return CUDA_ERROR_INVALID_HANDLE;
        close(external->file);
        free(external);
        return CUDA_SUCCESS;
}
