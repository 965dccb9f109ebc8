/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Chunk -- physical memory, before it has an address and between two
 *
 * Made RDMA-capable where the device can, because cuMemAlloc memory is (3C).
 */

#include "track/chunk.h"

#include "report/counters.h"
#include "track/limit.h"

static CUresult create(struct sp_chunk *chunk)
{
        CUmemAllocationProp wish = {
                .type = CU_MEM_ALLOCATION_TYPE_PINNED,
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

void sp_chunk_give(const struct sp_chunk *chunk, struct sp_spares *spares)
{
        if (spares && spares->count < SP_SPARES_MAX) {
                spares->item[spares->count++] = *chunk;
                return;
        }
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
