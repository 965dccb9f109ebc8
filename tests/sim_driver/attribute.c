/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Attribute -- what each kind of memory looks like (table 3C)
 *
 * The singular query refuses an unknown pointer, the plural one answers with
 * defaults, or leaves what it has none for as it is (Q6). RANGE_* of a mapping are those of its
 * whole reservation, while cuMemGetAddressRange() names the mapping.
 */

#include <fcntl.h>
#include <string.h>
#include "memory.h"

static bool is_host(const struct sim_block *block)
{
        return block->allocation.kind == SIM_MEMORY_PINNED ||
               block->allocation.kind == SIM_MEMORY_REGISTERED;
}

static bool is_rdma_capable(const struct sim_block *block)
{
        if (block->allocation.kind == SIM_MEMORY_VMM)
                return sim_vmm_is_rdma_capable(block);
        return block->allocation.kind == SIM_MEMORY_DEVICE;
}

/* RANGE_START_ADDR and RANGE_SIZE. */
static void range_of(const struct sim_block *block, uint64_t *base, uint64_t *bytes)
{
        *base = block->allocation.base;
        *bytes = block->allocation.bytes;
        if (block->allocation.kind == SIM_MEMORY_VMM)
                sim_vmm_reservation(*base, base, bytes);
}

static CUresult get_address(const struct sim_block *block, CUpointer_attribute attribute,
                            CUdeviceptr address, void *value)
{
        uint64_t base, bytes;

        range_of(block, &base, &bytes);
        switch (attribute) {
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
                *(CUdeviceptr *)value = address;
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
                if (!is_host(block) && block->allocation.kind != SIM_MEMORY_MANAGED)
                        return CUDA_ERROR_INVALID_VALUE;
                *(void **)value = (void *)address;
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
                *(CUdeviceptr *)value = base;
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
                *(size_t *)value = bytes;
                return CUDA_SUCCESS;
#if CUDA_VERSION >= 11070
        case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
                *(CUdeviceptr *)value = block->allocation.base;
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
                *(size_t *)value = block->allocation.reserved;
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
                *(unsigned long long *)value = block->allocation.buffer_id;
                return CUDA_SUCCESS;
#endif
        default:
                return CUDA_ERROR_INVALID_VALUE;
        }
}

static CUresult get_number(const struct sim_block *block, CUpointer_attribute attribute,
                           void *value)
{
        const struct sim_allocation *allocation = &block->allocation;

        switch (attribute) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
                *(CUcontext *)value = (CUcontext)allocation->context;
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
                *(unsigned int *)value = is_host(block) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
                *(unsigned int *)value = block->sync_memops;
                return CUDA_SUCCESS;
#if CUDA_VERSION >= 12080
        case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
                *(int *)value = allocation->kind == SIM_MEMORY_DEVICE;
                return CUDA_SUCCESS;
#endif
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
                *(unsigned long long *)value = allocation->buffer_id;
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
                *(unsigned int *)value = allocation->kind == SIM_MEMORY_MANAGED;
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
                *(int *)value = allocation->device    ? allocation->device->ordinal
                                : allocation->context ? allocation->context->device->ordinal
                                                      : -2;
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
                *(int *)value = allocation->kind == SIM_MEMORY_DEVICE;
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_MAPPED:
                *(int *)value = allocation->kind != SIM_MEMORY_VMM || sim_vmm_has_access(block);
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
                *(unsigned long long *)value =
                        allocation->kind == SIM_MEMORY_VMM
                                ? (unsigned long long)sim_vmm_handle_types(block)
                                : 0;
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
                *(int *)value = is_rdma_capable(block);
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
                *(unsigned int *)value = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
                *(CUmemoryPool *)value =
                        allocation->pool ? sim_pool_handle(allocation->pool) : NULL;
                return CUDA_SUCCESS;
        default:
                return CUDA_ERROR_INVALID_VALUE;
        }
}

static CUresult get(const struct sim_block *block, CUpointer_attribute attribute,
                    CUdeviceptr address, void *value)
{
        CUresult result = get_number(block, attribute, value);

        return result == CUDA_SUCCESS ? result : get_address(block, attribute, address, value);
}

/* The live block that holds the address, or null. */
static struct sim_block *find_live(CUdeviceptr address)
{
        struct sim_block *block = sim_block_find(address);

        return block && !block->allocation.freeing ? block : NULL;
}

CUresult CUDAAPI cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
        SIM_ENTER(cuMemGetAddressRange_v2);
        struct sim_context *context;
        struct sim_allocation *allocation = sim_memory_find(address);
        CUresult result;

        if (!base && !bytes) /* nothing is asked, and nothing is looked at */
                return CUDA_SUCCESS;
        result = sim_current(&context);
        if (result != CUDA_SUCCESS)
                return result;
        if (!allocation)
                return CUDA_ERROR_NOT_FOUND;
        if (base)
                *base = allocation->base;
        if (bytes)
                *bytes = allocation->bytes;
        return CUDA_SUCCESS;
}

/* Whoever gets tokens will write past the driver, so the driver makes its own writes synchronous.
 */
static CUresult get_tokens(struct sim_block *block, CUDA_POINTER_ATTRIBUTE_P2P_TOKENS *tokens)
{
        if (is_host(block))
                return CUDA_ERROR_INVALID_VALUE;
        block->sync_memops = true;
        *tokens = (CUDA_POINTER_ATTRIBUTE_P2P_TOKENS){0};
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuPointerGetAttribute(void *value, CUpointer_attribute attribute,
                                       CUdeviceptr address)
{
        SIM_ENTER(cuPointerGetAttribute);
        struct sim_block *block = find_live(address);

        if (!value || !block)
                return CUDA_ERROR_INVALID_VALUE;
        if (attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS)
                return get_tokens(block, value);
        return get(block, attribute, address, value);
}

/*
 * What the plural query answers where the singular one refuses. Of a pointer that
 * it does not know it thinks as of host memory: the host reaches it at its own
 * address, and no range is written.
 */
static CUresult get_default(const struct sim_block *block, CUpointer_attribute attribute,
                            CUdeviceptr address, void *value)
{
        switch (attribute) {
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
                *(void **)value = block ? NULL : (void *)address;
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_CONTEXT:
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
#if CUDA_VERSION >= 11070
        case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
#endif
                memset(value, 0, sizeof(uint64_t));
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
                *(int *)value = -2; /* CU_DEVICE_INVALID */
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        case CU_POINTER_ATTRIBUTE_MAPPED:
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
#if CUDA_VERSION >= 12080
        case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
#endif
                *(int *)value = 0;
                return CUDA_SUCCESS;
        default:
                return CUDA_ERROR_INVALID_VALUE;
        }
}

CUresult CUDAAPI cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes,
                                        void **values, CUdeviceptr address)
{
        SIM_ENTER(cuPointerGetAttributes);
        const struct sim_block *block = find_live(address);
        CUresult result = CUDA_SUCCESS;

        if (!count || !attributes || !values)
                return CUDA_ERROR_INVALID_VALUE;
        for (unsigned int i = 0; i < count && result == CUDA_SUCCESS; i++) {
                if (!values[i])
                        return CUDA_ERROR_INVALID_VALUE;
                if (!block || get(block, attributes[i], address, values[i]) != CUDA_SUCCESS)
                        result = get_default(block, attributes[i], address, values[i]);
        }
        return result;
}

CUresult CUDAAPI cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
                                       CUdeviceptr address)
{
        SIM_ENTER(cuPointerSetAttribute);
        struct sim_block *block = find_live(address);

        if (!value || !block)
                return CUDA_ERROR_INVALID_VALUE;
        if (block->allocation.kind == SIM_MEMORY_VMM)
                return CUDA_ERROR_NOT_SUPPORTED;
        if (attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || is_host(block))
                return CUDA_ERROR_INVALID_VALUE;
        block->sync_memops = *(const unsigned int *)value != 0;
        return CUDA_SUCCESS;
}

/* Access is given to mappings only: of other memory it is 0. */
CUresult CUDAAPI cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                                CUdeviceptr address)
{
        SIM_ENTER(cuMemGetAccess);
        const struct sim_block *block = find_live(address);

        if (!flags || !location || !block || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
                return CUDA_ERROR_INVALID_VALUE;
        if (!sim_device(location->id))
                return CUDA_ERROR_INVALID_DEVICE;
        *flags = (unsigned long long)sim_vmm_access(block, sim_device(location->id));
        return CUDA_SUCCESS;
}

#if CUDA_VERSION >= 11070
#define HOST_PAGE 4096

/* The device's file stands for a dma-buf: a descriptor that keeps the range in use. */
CUresult CUDAAPI cuMemGetHandleForAddressRange(void *handle, CUdeviceptr address, size_t bytes,
                                               CUmemRangeHandleType type, unsigned long long flags)
{
        SIM_ENTER(cuMemGetHandleForAddressRange);
        const struct sim_block *block = find_live(address);
        int file;

        if (!handle || !block || !bytes || flags || address % HOST_PAGE || bytes % HOST_PAGE ||
            type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD)
                return CUDA_ERROR_INVALID_VALUE;
        if (sim_memory_check(address, bytes) != CUDA_SUCCESS || !is_rdma_capable(block))
                return CUDA_ERROR_INVALID_VALUE;
        file = fcntl(sim_physical_file(block->allocation.device), F_DUPFD_CLOEXEC, 0);
        if (file < 0)
                return CUDA_ERROR_OPERATING_SYSTEM;
        *(int *)handle = file;
        return CUDA_SUCCESS;
}
#endif
