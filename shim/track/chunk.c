/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Chunk -- physical memory, before it has an address and between two
 *
 * Made RDMA-capable where the device can, because cuMemAlloc memory is (3C), and
 * so that it can be given to another process, which costs nothing (measured).
 */

#include "track/chunk.h"

#include <fcntl.h>
#include <unistd.h>

#include "report/counters.h"
#include "track/limit.h"

static CUresult create(struct sp_chunk *chunk)
{
        CUmemAllocationProp wish = {
                .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                .requestedHandleTypes = chunk->device->has_shareable_vmm
                                                ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
                                                : CU_MEM_HANDLE_TYPE_NONE,
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = chunk->device->ordinal},
                .allocFlags.gpuDirectRDMACapable = chunk->device->has_rdma_vmm,
        };
        CUresult result;

        if (!sp_limit_take(chunk->device->ordinal, chunk->size))
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = sp_driver.cuMemCreate(&chunk->handle, chunk->size, &wish, 0);
        if (result == CUDA_SUCCESS)
                sp_count(segments_obtained);
        else
                sp_limit_give(chunk->device->ordinal, chunk->size);
        return result;
}

static bool take_spare(struct sp_chunk *chunk, struct sp_spares *spares)
{
        for (unsigned int i = 0; spares && i < spares->count; i++) {
                struct sp_chunk *spare = &spares->item[i];

                if (spare->device != chunk->device || spare->size != chunk->size)
                        continue;
                *chunk = *spare;
                *spare = spares->item[--spares->count];
                sp_count_add(segments_moved, chunk->was_mapped);
                return true;
        }
        return false;
}

CUresult sp_chunk_take(struct sp_chunk *chunk, struct sp_device *device, size_t size,
                       struct sp_spares *spares)
{
        CUresult result;

        *chunk = (struct sp_chunk){.device = device, .size = size};
        if (take_spare(chunk, spares))
                return CUDA_SUCCESS;
        result = create(chunk);
        if (result == CUDA_ERROR_OUT_OF_MEMORY && spares && sp_spares_drop(spares))
                result = create(chunk);
        return result;
}

/* One for all blocks in it; of two threads the second closes its own. */
CUresult sp_chunk_export(struct sp_chunk *chunk, int *descriptor)
{
        int made, none = 0;
        CUresult result;

        if (!atomic_load(&chunk->descriptor)) {
                result = sp_driver.cuMemExportToShareableHandle(
                        &made, chunk->handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
                if (result != CUDA_SUCCESS)
                        return result;
                fcntl(made, F_SETFD, FD_CLOEXEC);
                if (!atomic_compare_exchange_strong(&chunk->descriptor, &none, made + 1))
                        close(made);
        }
        *descriptor = atomic_load(&chunk->descriptor) - 1;
        return CUDA_SUCCESS;
}

void sp_chunk_give(const struct sp_chunk *chunk, struct sp_spares *spares)
{
        if (spares && spares->count < SP_SPARES_MAX) {
                spares->item[spares->count++] = *chunk;
                return;
        }
        if (atomic_load(&chunk->descriptor))
                close(atomic_load(&chunk->descriptor) - 1);
        sp_driver.cuMemRelease(chunk->handle);
        sp_limit_give(chunk->device->ordinal, chunk->size);
        sp_count(segments_given_back);
}

bool sp_spares_drop(struct sp_spares *spares)
{
        bool had_any = spares->count > 0;

        while (spares->count)
                sp_chunk_give(&spares->item[--spares->count], NULL);
        return had_any;
}
