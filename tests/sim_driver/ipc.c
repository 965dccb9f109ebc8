/* SPDX-License-Identifier: Apache-2.0 */

/*
 * IPC -- memory of one process in another, by a handle of 64 bytes
 *
 * A handle names the allocation, whichever of its addresses was asked about, so
 * it opens at the base (M26, U9). It says where the exporter's device file and
 * the bytes in it are; the importer opens that file through /proc. Opening it
 * again gives the same address, counted; the last close waits for the context
 * (measured).
 */

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "memory.h"

#define COOKIE 0x73696d697063ull

/* The last bytes of the 64 stay 0: the real driver ignores some of them (U9). */
struct contents {
        uint64_t cookie;
        uint64_t buffer_id;
        int32_t process;
        int32_t file;
        int32_t device;
        uint32_t unused;
        uint64_t offset; /* of the first byte in the file */
        uint64_t bytes;
};

_Static_assert(sizeof(struct contents) <= 56, "the tail of a handle stays 0");

CUresult CUDAAPI cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address)
{
        SIM_ENTER(cuIpcGetMemHandle);
        const struct sim_block *block = sim_block_find(address);
        struct contents contents = {.cookie = COOKIE};

        if (!handle || !block || block->allocation.freeing ||
            block->allocation.kind != SIM_MEMORY_DEVICE)
                return CUDA_ERROR_INVALID_VALUE;
        contents.buffer_id = block->allocation.buffer_id;
        contents.process = getpid();
        contents.file = sim_physical_file(block->allocation.device);
        contents.device = block->allocation.device->ordinal;
        contents.offset = block->physical;
        contents.bytes = block->allocation.bytes;
        memset(handle, 0, sizeof(*handle));
        memcpy(handle, &contents, sizeof(contents));
        return CUDA_SUCCESS;
}

/* The block that this handle was opened as in this context, or null. */
static struct sim_block *find_opened(const struct contents *contents,
                                     const struct sim_context *context)
{
        for (size_t i = 0; i < sim_block_count(); i++) {
                struct sim_block *block = sim_block_nth(i);

                if (block->allocation.kind == SIM_MEMORY_IMPORTED &&
                    block->allocation.context == context &&
                    block->exporter_id == contents->buffer_id &&
                    block->exporter == contents->process)
                        return block;
        }
        return NULL;
}

/* Maps the exporter's bytes; 0 if it is gone. */
static uint64_t map_exported(const struct contents *contents)
{
        uint64_t inside = contents->offset % SIM_PAGE, base;
        uint64_t span = sim_round(inside + contents->bytes, SIM_PAGE);
        int file = sim_open_file(contents->process, contents->file);

        if (file < 0)
                return 0;
        if (!sim_space_take(span, SIM_PAGE, &base)) {
                close(file);
                return 0;
        }
        sim_space_map_file(base, file, contents->offset - inside, span);
        sim_space_protect(base, span, PROT_READ | PROT_WRITE);
        close(file);
        return base + inside;
}

static CUresult open_handle(CUdeviceptr *address, const CUipcMemHandle *handle, unsigned int flags)
{
        struct sim_context *context;
        struct sim_block *block;
        struct contents contents;
        uint64_t base;
        CUresult result = sim_current(&context);

        if (result != CUDA_SUCCESS)
                return result;
        memcpy(&contents, handle, sizeof(contents));
        if (!address || flags > CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || contents.cookie != COOKIE)
                return CUDA_ERROR_INVALID_VALUE;
        if (contents.process == getpid())
                return CUDA_ERROR_INVALID_CONTEXT;
        block = find_opened(&contents, context);
        if (!block) {
                base = map_exported(&contents);
                if (!base)
                        return CUDA_ERROR_INVALID_HANDLE;
                block = sim_block_new(SIM_MEMORY_IMPORTED, base, contents.bytes,
                                      sim_round(base + contents.bytes, SIM_PAGE) - base);
                block->allocation.context = context;
                block->allocation.device = sim_device(contents.device);
                block->exporter = contents.process;
                block->exporter_id = contents.buffer_id;
        }
        block->opened++;
        *address = block->allocation.base;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuIpcOpenMemHandle(CUdeviceptr *address, CUipcMemHandle handle, unsigned int flags)
{
        SIM_ENTER(cuIpcOpenMemHandle);

        return open_handle(address, &handle, flags);
}

CUresult CUDAAPI cuIpcOpenMemHandle_v2(CUdeviceptr *address, CUipcMemHandle handle,
                                       unsigned int flags)
{
        SIM_ENTER(cuIpcOpenMemHandle_v2);

        return open_handle(address, &handle, flags);
}

CUresult CUDAAPI cuIpcCloseMemHandle(CUdeviceptr address)
{
        SIM_ENTER(cuIpcCloseMemHandle);
        struct sim_block *block = sim_block_at(address);

        if (!block || block->allocation.kind != SIM_MEMORY_IMPORTED)
                return CUDA_ERROR_INVALID_VALUE;
        return --block->opened ? CUDA_SUCCESS : sim_memory_free_after_barrier(block);
}
