/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Share -- handles that name memory to somebody else
 *
 * A descriptor is a file that names what is shared. Physical memory can be
 * imported by another process that got the descriptor, while its maker lives;
 * pools and their pointers within this process only: what is tested is that a
 * program's imported memory is told from its own.
 */

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "pool.h"

#define POSIX CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

enum named {
        NAMES_MEMORY = 0x6d656d,
        NAMES_POOL = 0x706f6f6c,
        NAMES_POINTER = 0x707472,
};

struct name {
        uint64_t what; /* of enum named */
        uint64_t id;
        struct sim_shared memory;
};

static CUresult export_name(void *shareable, struct name name)
{
        int file = memfd_create("sim-handle", MFD_CLOEXEC);

        if (file < 0)
                return CUDA_ERROR_OPERATING_SYSTEM;
        if (write(file, &name, sizeof(name)) != (ssize_t)sizeof(name)) {
                close(file);
                return CUDA_ERROR_OPERATING_SYSTEM;
        }
        *(int *)shareable = file;
        return CUDA_SUCCESS;
}

/* Does the descriptor name such a thing? */
static bool import_name(void *shareable, enum named what, struct name *name)
{
        ssize_t got = pread((int)(intptr_t)shareable, name, sizeof(*name), 0);

        return got == (ssize_t)sizeof(*name) && name->what == what;
}

/* ---- physical memory ---- */

CUresult CUDAAPI cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                              CUmemAllocationHandleType type,
                                              unsigned long long flags)
{
        SIM_ENTER(cuMemExportToShareableHandle);
        struct name name = {.what = NAMES_MEMORY};

        if (!shareable || flags)
                return CUDA_ERROR_INVALID_VALUE;
        if (type != POSIX)
                return CUDA_ERROR_NOT_SUPPORTED;
        if (!sim_vmm_export(handle, &name.memory))
                return CUDA_ERROR_INVALID_VALUE;
        return export_name(shareable, name);
}

CUresult CUDAAPI cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
                                                void *shareable, CUmemAllocationHandleType type)
{
        SIM_ENTER(cuMemImportFromShareableHandle);
        CUmemGenericAllocationHandle named;
        struct name name;

        if (!handle)
                return CUDA_ERROR_INVALID_VALUE;
        if (type != POSIX)
                return CUDA_ERROR_NOT_SUPPORTED;
        named = import_name(shareable, NAMES_MEMORY, &name) ? sim_vmm_import(&name.memory) : 0;
        if (!named)
                return CUDA_ERROR_INVALID_VALUE;
        *handle = named;
        return CUDA_SUCCESS;
}

/* ---- pools ---- */

CUresult CUDAAPI cuMemPoolExportToShareableHandle(void *shareable, CUmemoryPool handle,
                                                  CUmemAllocationHandleType type,
                                                  unsigned long long flags)
{
        SIM_ENTER(cuMemPoolExportToShareableHandle);
        struct sim_pool *pool;
        CUresult result = sim_pool_resolve(handle, &pool);

        if (result != CUDA_SUCCESS)
                return result;
        if (!shareable || flags || pool->imported || !(pool->props.handleTypes & type))
                return CUDA_ERROR_INVALID_VALUE;
        if (type != POSIX)
                return CUDA_ERROR_NOT_SUPPORTED;
        return export_name(shareable, (struct name){.what = NAMES_POOL, .id = pool->id});
}

CUresult CUDAAPI cuMemPoolImportFromShareableHandle(CUmemoryPool *handle, void *shareable,
                                                    CUmemAllocationHandleType type,
                                                    unsigned long long flags)
{
        SIM_ENTER(cuMemPoolImportFromShareableHandle);
        const struct sim_pool *exported;
        struct sim_pool *pool;
        struct name name;

        if (!handle || flags)
                return CUDA_ERROR_INVALID_VALUE;
        if (type != POSIX)
                return CUDA_ERROR_NOT_SUPPORTED;
        exported = import_name(shareable, NAMES_POOL, &name) ? sim_pool_by_id(name.id) : NULL;
        if (!exported)
                return CUDA_ERROR_INVALID_VALUE;
        pool = sim_pool_new(exported->device);
        if (!pool)
                return CUDA_ERROR_OUT_OF_MEMORY;
        pool->imported = true;
        *handle = sim_pool_handle(pool);
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr address)
{
        SIM_ENTER(cuMemPoolExportPointer);
        const struct sim_block *block = sim_block_at(address);
        struct name name = {.what = NAMES_POINTER};

        if (!data || !block || block->allocation.kind != SIM_MEMORY_POOL ||
            !block->allocation.pool->props.handleTypes)
                return CUDA_ERROR_INVALID_VALUE;
        name.id = block->allocation.buffer_id;
        memset(data, 0, sizeof(*data));
        memcpy(data, &name, offsetof(struct name, memory));
        return CUDA_SUCCESS;
}

static const struct sim_block *find_exported(const CUmemPoolPtrExportData *data)
{
        struct name name;

        memcpy(&name, data, offsetof(struct name, memory));
        for (size_t i = 0; name.what == NAMES_POINTER && i < sim_block_count(); i++) {
                const struct sim_block *block = sim_block_nth(i);

                if (block->allocation.kind == SIM_MEMORY_POOL &&
                    block->allocation.buffer_id == name.id)
                        return block;
        }
        return NULL;
}

/* Maps the bytes of a pool's allocation a second time, page by page. */
static bool map_again(const struct sim_block *block, uint64_t *address)
{
        const struct sim_pool *pool = block->allocation.pool;
        uint64_t inside = block->allocation.base % SIM_PAGE;
        uint64_t first = block->allocation.base - inside - pool->base;
        uint64_t span = sim_round(inside + block->allocation.bytes, SIM_PAGE), base;

        if (!sim_space_take(span, SIM_PAGE, &base))
                return false;
        for (uint64_t at = 0; at < span; at += SIM_PAGE)
                sim_space_map(base + at, pool->device,
                              pool->physical[(first + at) / SIM_UNIT] + (first + at) % SIM_UNIT,
                              SIM_PAGE);
        sim_space_protect(base, span, PROT_READ | PROT_WRITE);
        *address = base + inside;
        return true;
}

CUresult CUDAAPI cuMemPoolImportPointer(CUdeviceptr *address, CUmemoryPool handle,
                                        CUmemPoolPtrExportData *data)
{
        SIM_ENTER(cuMemPoolImportPointer);
        const struct sim_block *exported = data ? find_exported(data) : NULL;
        struct sim_block *block;
        struct sim_pool *pool;
        uint64_t base, bytes;
        CUresult result = sim_pool_resolve(handle, &pool);

        if (result != CUDA_SUCCESS)
                return result;
        if (!address || !exported || !pool->imported)
                return CUDA_ERROR_INVALID_VALUE;
        if (!map_again(exported, &base))
                return CUDA_ERROR_OUT_OF_MEMORY;
        bytes = exported->allocation.bytes;
        block = sim_block_new(SIM_MEMORY_IMPORTED, base, bytes,
                              sim_round(base + bytes, SIM_PAGE) - base);
        block->allocation.device = pool->device;
        block->allocation.pool = pool;
        *address = base;
        return CUDA_SUCCESS;
}
