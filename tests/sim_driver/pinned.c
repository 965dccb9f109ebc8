/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Pinned -- host memory that the driver made or was told of
 *
 * The device sees host memory at its host address. cuMemFreeHost() and
 * cuMemHostUnregister() wait for the whole context (3B, U29).
 */

#include <sys/mman.h>
#include "memory.h"

#define CODE_ALREADY_REGISTERED CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
#define CODE_NOT_REGISTERED     CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED

static CUresult host_alloc(void **host, size_t bytes, unsigned int flags)
{
        struct sim_context *context;
        struct sim_block *block;
        uint64_t base, reserved = sim_round(bytes, SIM_PAGE);
        CUresult result = sim_capture_unsafe();

        if (result == CUDA_SUCCESS)
                result = sim_current(&context);
        if (result != CUDA_SUCCESS)
                return result;
        if (!host || flags & ~(unsigned int)(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP |
                                             CU_MEMHOSTALLOC_WRITECOMBINED))
                return CUDA_ERROR_INVALID_VALUE;
        if (!bytes) {
                *host = NULL;
                return CUDA_SUCCESS;
        }
        if (reserved < bytes || !sim_space_take(reserved, SIM_PAGE, &base))
                return CUDA_ERROR_OUT_OF_MEMORY;
        sim_space_protect(base, reserved, PROT_READ | PROT_WRITE);
        block = sim_block_new(SIM_MEMORY_PINNED, base, bytes, reserved);
        block->allocation.context = context;
        block->flags = flags | CU_MEMHOSTALLOC_DEVICEMAP; /* as UVA answers */
        *host = (void *)base;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostAlloc(void **host, size_t bytes, unsigned int flags)
{
        SIM_ENTER(cuMemHostAlloc);

        return host_alloc(host, bytes, flags);
}

CUresult CUDAAPI cuMemAllocHost_v2(void **host, size_t bytes)
{
        SIM_ENTER(cuMemAllocHost_v2);

        return host_alloc(host, bytes, 0);
}

CUresult CUDAAPI cuMemFreeHost(void *host)
{
        SIM_ENTER(cuMemFreeHost);
        struct sim_block *block = sim_block_at((uint64_t)host);
        CUresult result = sim_capture_unsafe();

        if (result == CUDA_SUCCESS)
                result = sim_context_soft();
        if (result != CUDA_SUCCESS || !host)
                return result;
        if (!block || block->allocation.kind != SIM_MEMORY_PINNED)
                return CUDA_ERROR_INVALID_VALUE;
        return sim_memory_free_after_barrier(block);
}

static CUresult host_register(void *host, size_t bytes, unsigned int flags)
{
        struct sim_context *context;
        struct sim_block *block;
        CUresult result = sim_capture_unsafe();

        if (result == CUDA_SUCCESS)
                result = sim_current(&context);
        if (result != CUDA_SUCCESS)
                return result;
        if (!host || !bytes)
                return CUDA_ERROR_INVALID_VALUE;
        if (sim_block_overlaps((uint64_t)host, bytes))
                return CODE_ALREADY_REGISTERED;
        block = sim_block_new(SIM_MEMORY_REGISTERED, (uint64_t)host, bytes, bytes);
        block->allocation.context = context;
        block->flags = flags;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostRegister(void *host, size_t bytes, unsigned int flags)
{
        SIM_ENTER(cuMemHostRegister);

        return host_register(host, bytes, flags);
}

CUresult CUDAAPI cuMemHostRegister_v2(void *host, size_t bytes, unsigned int flags)
{
        SIM_ENTER(cuMemHostRegister_v2);

        return host_register(host, bytes, flags);
}

CUresult CUDAAPI cuMemHostUnregister(void *host)
{
        SIM_ENTER(cuMemHostUnregister);
        struct sim_block *block = sim_block_at((uint64_t)host);
        CUresult result = sim_capture_unsafe();

        if (result == CUDA_SUCCESS)
                result = sim_context_soft();
        if (result != CUDA_SUCCESS)
                return result;
        if (!host)
                return CUDA_ERROR_INVALID_VALUE;
        if (!block || block->allocation.kind != SIM_MEMORY_REGISTERED)
                return CODE_NOT_REGISTERED;
        return sim_memory_free_after_barrier(block);
}

static struct sim_block *find_host(const void *host)
{
        struct sim_block *block = sim_block_find((uint64_t)host);

        if (!block || (block->allocation.kind != SIM_MEMORY_PINNED &&
                       block->allocation.kind != SIM_MEMORY_REGISTERED))
                return NULL;
        return block;
}

CUresult CUDAAPI cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *host, unsigned int flags)
{
        SIM_ENTER(cuMemHostGetDevicePointer_v2);
        struct sim_context *context;
        CUresult result = sim_current(&context);

        if (result != CUDA_SUCCESS)
                return result;
        if (!address || flags || !find_host(host))
                return CUDA_ERROR_INVALID_VALUE;
        *address = (CUdeviceptr)host;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostGetFlags(unsigned int *flags, void *host)
{
        SIM_ENTER(cuMemHostGetFlags);
        const struct sim_block *block = find_host(host);

        if (!flags || !block || block->allocation.kind != SIM_MEMORY_PINNED)
                return CUDA_ERROR_INVALID_VALUE;
        *flags = block->flags;
        return CUDA_SUCCESS;
}
