/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Managed -- advice and prefetches
 *
 * Managed memory is in one place here, so nothing moves; a prefetch is an
 * operation of its stream all the same.
 */

#include "operation.h"

static CUresult prefetch(CUdeviceptr address, size_t bytes, CUstream handle)
{
        struct sim_work work = {.name = "prefetch", .duration_ns = sim_cost(bytes)};
        struct sim_stream *stream;
        CUresult result = sim_stream_resolve(handle, &stream);

        if (result)
                return result;
        if (!bytes || sim_memory_check(address, bytes))
                return CUDA_ERROR_INVALID_VALUE;
        if (sim_memory_find(address)->kind != SIM_MEMORY_MANAGED)
                return CUDA_ERROR_INVALID_VALUE;
        return sim_submit(stream, &work);
}

SIM_STREAM_PAIR(cuMemPrefetchAsync, stream,
                (CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream),
                (address, bytes, device, stream))
{
        (void)device;
        return prefetch(address, bytes, stream);
}

SIM_STREAM_PAIR(cuStreamAttachMemAsync, stream,
                (CUstream stream, CUdeviceptr address, size_t bytes, unsigned int flags),
                (stream, address, bytes, flags))
{
        struct sim_allocation *allocation = sim_memory_find(address);

        if (!allocation || address != allocation->base || flags > CU_MEM_ATTACH_SINGLE)
                return CUDA_ERROR_INVALID_VALUE;
        return prefetch(address, bytes ? bytes : allocation->bytes, stream);
}

static CUresult advise(CUdeviceptr address, size_t bytes)
{
        struct sim_context *context;
        CUresult result = sim_current(&context);

        if (result)
                return result;
        return bytes ? sim_memory_check(address, bytes) : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice,
                             CUdevice device)
{
        SIM_ENTER(cuMemAdvise);
        (void)advice, (void)device;
        return advise(address, bytes);
}

#if CUDA_VERSION >= 12020
SIM_STREAM_PAIR(cuMemPrefetchAsync_v2, stream,
                (CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned int flags,
                 CUstream stream),
                (address, bytes, location, flags, stream))
{
        (void)location;
        return flags ? CUDA_ERROR_INVALID_VALUE : prefetch(address, bytes, stream);
}

CUresult CUDAAPI cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise advice,
                                CUmemLocation location)
{
        SIM_ENTER(cuMemAdvise_v2);
        (void)advice, (void)location;
        return advise(address, bytes);
}
#endif

#if CUDA_VERSION >= 13000
static CUresult prefetch_all(CUdeviceptr *addresses, size_t *sizes, size_t count,
                             unsigned long long flags, CUstream stream)
{
        CUresult result =
                addresses && sizes && count && !flags ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

        for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++)
                result = prefetch(addresses[i], sizes[i], stream);
        return result;
}

SIM_STREAM_PAIR(cuMemPrefetchBatchAsync, stream,
                (CUdeviceptr * addresses, size_t *sizes, size_t count, CUmemLocation *places,
                 size_t *indices, size_t place_count, unsigned long long flags, CUstream stream),
                (addresses, sizes, count, places, indices, place_count, flags, stream))
{
        if (!places || !indices || !place_count)
                return CUDA_ERROR_INVALID_VALUE;
        return prefetch_all(addresses, sizes, count, flags, stream);
}

/* What is discarded may be read as anything, so also as what it was. */
SIM_STREAM_PAIR(cuMemDiscardBatchAsync, stream,
                (CUdeviceptr * addresses, size_t *sizes, size_t count, unsigned long long flags,
                 CUstream stream),
                (addresses, sizes, count, flags, stream))
{
        return prefetch_all(addresses, sizes, count, flags, stream);
}

SIM_STREAM_PAIR(cuMemDiscardAndPrefetchBatchAsync, stream,
                (CUdeviceptr * addresses, size_t *sizes, size_t count, CUmemLocation *places,
                 size_t *indices, size_t place_count, unsigned long long flags, CUstream stream),
                (addresses, sizes, count, places, indices, place_count, flags, stream))
{
        if (!places || !indices || !place_count)
                return CUDA_ERROR_INVALID_VALUE;
        return prefetch_all(addresses, sizes, count, flags, stream);
}
#endif
