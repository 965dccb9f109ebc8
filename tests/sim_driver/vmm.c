/* SPDX-License-Identifier: Apache-2.0 */

/*
 * VMM -- physical memory and addresses, apart
 *
 * A handle is physical memory. It lives while the program holds the handle or
 * maps it anywhere, and may be mapped at two places. That of another process is
 * a part of that process's file, and ends here when it is let go here. Nothing here waits for the
 * device (M2), nothing needs a current context, and nothing minds a capture
 * (3A). A mapping is one block; only whole mappings can be unmapped.
 */

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "memory.h"

struct physical {
        uint64_t handle; /* never repeats */
        struct sim_device *device;
        CUmemAllocationProp prop;
        uint64_t offset;
        uint64_t bytes;
        unsigned int held;   /* handles the program has not released */
        unsigned int mapped; /* mappings */
        bool exported;       /* other processes may have it */
        int file;            /* of the process that made it, or -1: ours */
        struct physical *next;
};

struct mapping {
        struct physical *physical;
        int access[SIM_DEVICES_MAX]; /* CUmemAccess_flags */
};

struct reservation {
        uint64_t base;
        uint64_t bytes;
        struct reservation *next;
};

static struct physical *physicals;
static struct reservation *reservations;

static struct physical *find_physical(CUmemGenericAllocationHandle handle)
{
        struct physical *physical = physicals;

        while (physical && physical->handle != handle)
                physical = physical->next;
        return physical && physical->held ? physical : NULL;
}

static void put_if_unused(struct physical *physical)
{
        struct physical **link = &physicals;

        if (physical->held || physical->mapped)
                return;
        while (*link != physical)
                link = &(*link)->next;
        *link = physical->next;
        if (physical->file >= 0)
                close(physical->file);
        else if (physical->exported)
                sim_physical_leave(physical->device, physical->bytes);
        else
                sim_physical_give(physical->device, physical->offset, physical->bytes);
        free(physical);
}

/* The reservation that holds the whole range, or null. */
static struct reservation *find_reservation(uint64_t base, uint64_t bytes)
{
        struct reservation *at = reservations;

        while (at && (base < at->base || bytes > at->bytes || base - at->base > at->bytes - bytes))
                at = at->next;
        return at;
}

static struct mapping *mapping_of(const struct sim_block *block)
{
        return block && block->allocation.kind == SIM_MEMORY_VMM ? block->entry : NULL;
}

/* ---- what other files ask ---- */

bool sim_vmm_reservation(uint64_t address, uint64_t *base, uint64_t *bytes)
{
        struct reservation *at = find_reservation(address, 1);

        if (!at)
                return false;
        *base = at->base;
        *bytes = at->bytes;
        return true;
}

bool sim_vmm_has_access(const struct sim_block *block)
{
        const struct mapping *mapping = mapping_of(block);

        for (int i = 0; mapping && i < SIM_DEVICES_MAX; i++) {
                if (mapping->access[i])
                        return true;
        }
        return false;
}

int sim_vmm_access(const struct sim_block *block, const struct sim_device *device)
{
        const struct mapping *mapping = mapping_of(block);

        return mapping ? mapping->access[device->ordinal] : 0;
}

bool sim_vmm_is_rdma_capable(const struct sim_block *block)
{
        return mapping_of(block)->physical->prop.allocFlags.gpuDirectRDMACapable;
}

int sim_vmm_handle_types(const struct sim_block *block)
{
        return (int)mapping_of(block)->physical->prop.requestedHandleTypes;
}

bool sim_vmm_export(CUmemGenericAllocationHandle handle, struct sim_shared *shared)
{
        struct physical *physical = find_physical(handle);

        if (!physical || physical->file >= 0 ||
            !(physical->prop.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
                return false;
        physical->exported = true;
        *shared = (struct sim_shared){
                .process = getpid(),
                .file = sim_physical_file(physical->device),
                .device = physical->device->ordinal,
                .handle = handle,
                .offset = physical->offset,
                .bytes = physical->bytes,
        };
        return true;
}

static CUmemGenericAllocationHandle add(struct physical *physical)
{
        physical->handle = sim_unique();
        physical->held = 1;
        physical->next = physicals;
        physicals = physical;
        return physical->handle;
}

CUmemGenericAllocationHandle sim_vmm_import(const struct sim_shared *shared)
{
        struct physical *physical;

        if (shared->process == getpid()) {
                physical = find_physical(shared->handle);
                if (physical)
                        physical->held++;
                return physical ? physical->handle : 0;
        }
        physical = calloc(1, sizeof(*physical));
        if (!physical)
                return 0;
        physical->file = sim_open_file(shared->process, shared->file);
        physical->device = sim_device(shared->device);
        if (physical->file < 0 || !physical->device) {
                free(physical);
                return 0;
        }
        physical->prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        physical->prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        physical->prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        physical->prop.location.id = shared->device;
        physical->offset = shared->offset;
        physical->bytes = shared->bytes;
        return add(physical);
}

/* ---- physical memory ---- */

static CUresult check_prop(const CUmemAllocationProp *prop)
{
        if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
                return CUDA_ERROR_INVALID_VALUE;
        if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
                return CUDA_ERROR_NOT_SUPPORTED;
        return sim_device(prop->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                             const CUmemAllocationProp *prop, unsigned long long flags)
{
        SIM_ENTER(cuMemCreate);
        struct physical *physical;
        CUresult result = check_prop(prop);

        if (result != CUDA_SUCCESS)
                return result;
        if (!handle || !bytes || bytes % SIM_PAGE || flags)
                return CUDA_ERROR_INVALID_VALUE;
        physical = calloc(1, sizeof(*physical));
        if (!physical)
                return CUDA_ERROR_OUT_OF_MEMORY;
        physical->device = sim_device(prop->location.id);
        result = sim_physical_take(physical->device, bytes, &physical->offset);
        if (result != CUDA_SUCCESS) {
                free(physical);
                return result;
        }
        physical->prop = *prop;
        physical->bytes = bytes;
        physical->file = -1;
        *handle = add(physical);
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle)
{
        SIM_ENTER(cuMemRelease);
        struct physical *physical = find_physical(handle);

        if (!physical)
                return CUDA_ERROR_INVALID_VALUE;
        physical->held--;
        put_if_unused(physical);
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
        SIM_ENTER(cuMemRetainAllocationHandle);
        struct mapping *mapping = mapping_of(sim_block_find((uint64_t)address));

        if (!handle || !mapping)
                return CUDA_ERROR_INVALID_VALUE;
        mapping->physical->held++;
        *handle = mapping->physical->handle;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                        CUmemGenericAllocationHandle handle)
{
        SIM_ENTER(cuMemGetAllocationPropertiesFromHandle);
        struct physical *physical = find_physical(handle);

        if (!prop || !physical)
                return CUDA_ERROR_INVALID_VALUE;
        *prop = physical->prop;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                               CUmemAllocationGranularity_flags option)
{
        SIM_ENTER(cuMemGetAllocationGranularity);
        CUresult result = check_prop(prop);

        if (result != CUDA_SUCCESS)
                return result;
        if (!granularity || (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
                             option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
                return CUDA_ERROR_INVALID_VALUE;
        *granularity = SIM_PAGE;
        return CUDA_SUCCESS;
}

/* ---- addresses ---- */

CUresult CUDAAPI cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment,
                                     CUdeviceptr wish, unsigned long long flags)
{
        SIM_ENTER(cuMemAddressReserve);
        struct reservation *reservation;
        uint64_t base;

        if (!address || !bytes || bytes % SIM_PAGE || (alignment & (alignment - 1)) || flags)
                return CUDA_ERROR_INVALID_VALUE;
        reservation = calloc(1, sizeof(*reservation));
        if (!reservation)
                return CUDA_ERROR_OUT_OF_MEMORY;
        if (wish && sim_space_take_at(wish, bytes)) {
                base = wish;
        } else if (!sim_space_take(bytes, alignment, &base)) {
                free(reservation);
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
        reservation->base = base;
        reservation->bytes = bytes;
        reservation->next = reservations;
        reservations = reservation;
        *address = base;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAddressFree(CUdeviceptr base, size_t bytes)
{
        SIM_ENTER(cuMemAddressFree);
        struct reservation **link = &reservations, *reservation;

        while (*link && (*link)->base != base)
                link = &(*link)->next;
        reservation = *link;
        if (!reservation || reservation->bytes != bytes || sim_block_overlaps(base, bytes))
                return CUDA_ERROR_INVALID_VALUE;
        *link = reservation->next;
        sim_space_give(base, bytes);
        free(reservation);
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemMap(CUdeviceptr base, size_t bytes, size_t offset,
                          CUmemGenericAllocationHandle handle, unsigned long long flags)
{
        SIM_ENTER(cuMemMap);
        struct physical *physical = find_physical(handle);
        struct mapping *mapping;
        struct sim_block *block;

        if (!physical || !bytes || flags)
                return CUDA_ERROR_INVALID_VALUE;
        if (offset)
                return CUDA_ERROR_NOT_SUPPORTED;
        if (base % SIM_PAGE || bytes % SIM_PAGE || bytes > physical->bytes ||
            !find_reservation(base, bytes) || sim_block_overlaps(base, bytes))
                return CUDA_ERROR_INVALID_VALUE;
        mapping = calloc(1, sizeof(*mapping));
        if (!mapping)
                return CUDA_ERROR_OUT_OF_MEMORY;
        mapping->physical = physical;
        physical->mapped++;
        sim_space_map_file(
                base, physical->file < 0 ? sim_physical_file(physical->device) : physical->file,
                physical->offset, bytes);
        block = sim_block_new(SIM_MEMORY_VMM, base, bytes, bytes);
        block->allocation.device = physical->device;
        block->physical = physical->offset;
        block->entry = mapping;
        return CUDA_SUCCESS;
}

/* Is the range tiled by whole mappings? */
static bool is_mapped_whole(uint64_t base, uint64_t bytes)
{
        while (bytes) {
                struct sim_block *block = sim_block_at(base);

                if (!mapping_of(block) || block->allocation.bytes > bytes)
                        return false;
                base += block->allocation.bytes;
                bytes -= block->allocation.bytes;
        }
        return true;
}

/* Is every mapping that the range touches wholly inside it? */
static bool cuts_no_mapping(uint64_t base, uint64_t bytes)
{
        for (size_t i = 0; i < sim_block_count(); i++) {
                const struct sim_allocation *at = &sim_block_nth(i)->allocation;

                if (at->base >= base + bytes || at->base + at->bytes <= base)
                        continue;
                if (at->kind != SIM_MEMORY_VMM || at->base < base ||
                    at->base + at->bytes > base + bytes)
                        return false;
        }
        return true;
}

/* All mappings in a range that begins in a reservation; there may be holes, or nothing at all. */
CUresult CUDAAPI cuMemUnmap(CUdeviceptr base, size_t bytes)
{
        SIM_ENTER(cuMemUnmap);

        if (!bytes || !find_reservation(base, 1) || !cuts_no_mapping(base, bytes))
                return CUDA_ERROR_INVALID_VALUE;
        for (size_t i = sim_block_count(); i--;) {
                struct sim_block *block = sim_block_nth(i);
                uint64_t at = block->allocation.base;
                struct mapping *mapping = mapping_of(block);

                if (at < base || at - base >= bytes)
                        continue;
                sim_engine_unmap(at, block->allocation.bytes);
                sim_space_unmap(at, block->allocation.bytes);
                mapping->physical->mapped--;
                put_if_unused(mapping->physical);
                free(mapping);
                sim_block_free(block);
        }
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemSetAccess(CUdeviceptr base, size_t bytes, const CUmemAccessDesc *desc,
                                size_t count)
{
        SIM_ENTER(cuMemSetAccess);

        if (!bytes || !desc || !count || !is_mapped_whole(base, bytes))
                return CUDA_ERROR_INVALID_VALUE;
        for (size_t i = 0; i < count; i++) {
                if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
                        return CUDA_ERROR_INVALID_VALUE;
                if (!sim_device(desc[i].location.id))
                        return CUDA_ERROR_INVALID_DEVICE;
        }
        while (bytes) {
                struct sim_block *block = sim_block_at(base);
                size_t part = block->allocation.bytes;

                for (size_t i = 0; i < count; i++)
                        mapping_of(block)->access[desc[i].location.id] = (int)desc[i].flags;
                sim_space_protect(base, part,
                                  sim_vmm_has_access(block) ? PROT_READ | PROT_WRITE : PROT_NONE);
                base += part;
                bytes -= part;
        }
        return CUDA_SUCCESS;
}
