/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Copy -- bytes from here to there, in stream order
 *
 * The exported calls: each says which side is device memory, and whether the
 * host waits. Copies of arrays are not simulated (801).
 */

#include "copy.h"

#define ADDRESS(pointer) ((uint64_t)(uintptr_t)(pointer))

/* ---- one row ---- */

static CUresult row(CUstream stream, enum sim_side to, uint64_t to_address, enum sim_side from,
                    uint64_t from_address, size_t bytes, bool async)
{
        struct sim_box box = sim_box_row(to, to_address, from, from_address, bytes);

        return sim_copy(stream, &box, async);
}

SIM_DEFAULT_PAIR(cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t bytes), (to, from, bytes))
{
        return row(stream, SIM_SIDE_UNIFIED, to, SIM_SIDE_UNIFIED, from, bytes, false);
}

SIM_DEFAULT_PAIR(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t bytes),
                 (to, from, bytes))
{
        return row(stream, SIM_SIDE_DEVICE, to, SIM_SIDE_HOST, ADDRESS(from), bytes, false);
}

SIM_DEFAULT_PAIR(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes), (to, from, bytes))
{
        return row(stream, SIM_SIDE_HOST, ADDRESS(to), SIM_SIDE_DEVICE, from, bytes, false);
}

SIM_DEFAULT_PAIR(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes),
                 (to, from, bytes))
{
        return row(stream, SIM_SIDE_DEVICE, to, SIM_SIDE_DEVICE, from, bytes, false);
}

SIM_DEFAULT_PAIR(cuMemcpyPeer,
                 (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                  size_t bytes),
                 (to, to_context, from, from_context, bytes))
{
        (void)to_context, (void)from_context;
        return row(stream, SIM_SIDE_DEVICE, to, SIM_SIDE_DEVICE, from, bytes, false);
}

SIM_STREAM_PAIR(cuMemcpyAsync, stream,
                (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
                (to, from, bytes, stream))
{
        return row(stream, SIM_SIDE_UNIFIED, to, SIM_SIDE_UNIFIED, from, bytes, true);
}

SIM_STREAM_PAIR(cuMemcpyHtoDAsync_v2, stream,
                (CUdeviceptr to, const void *from, size_t bytes, CUstream stream),
                (to, from, bytes, stream))
{
        return row(stream, SIM_SIDE_DEVICE, to, SIM_SIDE_HOST, ADDRESS(from), bytes, true);
}

SIM_STREAM_PAIR(cuMemcpyDtoHAsync_v2, stream,
                (void *to, CUdeviceptr from, size_t bytes, CUstream stream),
                (to, from, bytes, stream))
{
        return row(stream, SIM_SIDE_HOST, ADDRESS(to), SIM_SIDE_DEVICE, from, bytes, true);
}

SIM_STREAM_PAIR(cuMemcpyDtoDAsync_v2, stream,
                (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
                (to, from, bytes, stream))
{
        return row(stream, SIM_SIDE_DEVICE, to, SIM_SIDE_DEVICE, from, bytes, true);
}

SIM_STREAM_PAIR(cuMemcpyPeerAsync, stream,
                (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                 size_t bytes, CUstream stream),
                (to, to_context, from, from_context, bytes, stream))
{
        (void)to_context, (void)from_context;
        return row(stream, SIM_SIDE_DEVICE, to, SIM_SIDE_DEVICE, from, bytes, true);
}

/* ---- boxes ---- */

static CUresult place(struct sim_place *place, CUmemorytype type, const void *host,
                      CUdeviceptr device, size_t offset, size_t pitch, size_t rows)
{
        switch (type) {
        case CU_MEMORYTYPE_HOST:
                place->side = SIM_SIDE_HOST;
                place->address = ADDRESS(host);
                break;
        case CU_MEMORYTYPE_DEVICE:
                place->side = SIM_SIDE_DEVICE;
                place->address = device;
                break;
        case CU_MEMORYTYPE_UNIFIED:
                place->side = SIM_SIDE_UNIFIED;
                place->address = device;
                break;
        case CU_MEMORYTYPE_ARRAY:
                return CUDA_ERROR_NOT_SUPPORTED;
        default:
                return CUDA_ERROR_INVALID_VALUE;
        }
        if (place->address)
                place->address += offset;
        place->pitch = pitch;
        place->slice = pitch * rows;
        return CUDA_SUCCESS;
}

static CUresult copy_2d(CUstream stream, const CUDA_MEMCPY2D *copy, bool async)
{
        struct sim_box box = {.depth = 1};
        CUresult result;

        if (!copy)
                return CUDA_ERROR_INVALID_VALUE;
        box.width = copy->WidthInBytes;
        box.height = copy->Height;
        result = place(&box.from, copy->srcMemoryType, copy->srcHost, copy->srcDevice,
                       copy->srcY * copy->srcPitch + copy->srcXInBytes, copy->srcPitch,
                       copy->Height);
        if (result)
                return result;
        result = place(&box.to, copy->dstMemoryType, copy->dstHost, copy->dstDevice,
                       copy->dstY * copy->dstPitch + copy->dstXInBytes, copy->dstPitch,
                       copy->Height);
        if (result)
                return result;
        if (box.height > 1 && (box.from.pitch < box.width || box.to.pitch < box.width))
                return CUDA_ERROR_INVALID_VALUE;
        return sim_copy(stream, &box, async);
}

SIM_DEFAULT_PAIR(cuMemcpy2D_v2, (const CUDA_MEMCPY2D *copy), (copy))
{
        return copy_2d(stream, copy, false);
}

SIM_DEFAULT_PAIR(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D *copy), (copy))
{
        return copy_2d(stream, copy, false);
}

SIM_STREAM_PAIR(cuMemcpy2DAsync_v2, stream, (const CUDA_MEMCPY2D *copy, CUstream stream),
                (copy, stream))
{
        return copy_2d(stream, copy, true);
}

static CUresult box_3d(struct sim_box *box, const CUDA_MEMCPY3D *copy)
{
        size_t from_rows, to_rows;
        CUresult result;

        if (!copy || copy->srcLOD || copy->dstLOD)
                return CUDA_ERROR_INVALID_VALUE;
        box->width = copy->WidthInBytes;
        box->height = copy->Height;
        box->depth = copy->Depth;
        from_rows = copy->srcHeight ? copy->srcHeight : copy->Height;
        to_rows = copy->dstHeight ? copy->dstHeight : copy->Height;
        result = place(&box->from, copy->srcMemoryType, copy->srcHost, copy->srcDevice,
                       (copy->srcZ * from_rows + copy->srcY) * copy->srcPitch + copy->srcXInBytes,
                       copy->srcPitch, from_rows);
        if (result)
                return result;
        result = place(&box->to, copy->dstMemoryType, copy->dstHost, copy->dstDevice,
                       (copy->dstZ * to_rows + copy->dstY) * copy->dstPitch + copy->dstXInBytes,
                       copy->dstPitch, to_rows);
        if (result)
                return result;
        if (box->height > 1 && (box->from.pitch < box->width || box->to.pitch < box->width))
                return CUDA_ERROR_INVALID_VALUE;
        return CUDA_SUCCESS;
}

static CUresult copy_3d(CUstream stream, const CUDA_MEMCPY3D *copy, bool async)
{
        struct sim_box box;
        CUresult result = box_3d(&box, copy);

        return result ? result : sim_copy(stream, &box, async);
}

CUresult sim_copy_work(struct sim_work *work, const CUDA_MEMCPY3D *copy)
{
        struct sim_box box;
        CUresult result = box_3d(&box, copy);

        return result ? result : sim_box_work(work, &box);
}

SIM_DEFAULT_PAIR(cuMemcpy3D_v2, (const CUDA_MEMCPY3D *copy), (copy))
{
        return copy_3d(stream, copy, false);
}

SIM_STREAM_PAIR(cuMemcpy3DAsync_v2, stream, (const CUDA_MEMCPY3D *copy, CUstream stream),
                (copy, stream))
{
        return copy_3d(stream, copy, true);
}

/* A CUDA_MEMCPY3D with two contexts in the reserved fields. */
static CUDA_MEMCPY3D without_contexts(const CUDA_MEMCPY3D_PEER *peer)
{
        return (CUDA_MEMCPY3D){
                .srcXInBytes = peer->srcXInBytes,
                .srcY = peer->srcY,
                .srcZ = peer->srcZ,
                .srcLOD = peer->srcLOD,
                .srcMemoryType = peer->srcMemoryType,
                .srcHost = peer->srcHost,
                .srcDevice = peer->srcDevice,
                .srcPitch = peer->srcPitch,
                .srcHeight = peer->srcHeight,
                .dstXInBytes = peer->dstXInBytes,
                .dstY = peer->dstY,
                .dstZ = peer->dstZ,
                .dstLOD = peer->dstLOD,
                .dstMemoryType = peer->dstMemoryType,
                .dstHost = peer->dstHost,
                .dstDevice = peer->dstDevice,
                .dstPitch = peer->dstPitch,
                .dstHeight = peer->dstHeight,
                .WidthInBytes = peer->WidthInBytes,
                .Height = peer->Height,
                .Depth = peer->Depth,
        };
}

SIM_DEFAULT_PAIR(cuMemcpy3DPeer, (const CUDA_MEMCPY3D_PEER *peer), (peer))
{
        CUDA_MEMCPY3D copy;

        if (!peer)
                return CUDA_ERROR_INVALID_VALUE;
        copy = without_contexts(peer);
        return copy_3d(stream, &copy, false);
}

SIM_STREAM_PAIR(cuMemcpy3DPeerAsync, stream, (const CUDA_MEMCPY3D_PEER *peer, CUstream stream),
                (peer, stream))
{
        CUDA_MEMCPY3D copy;

        if (!peer)
                return CUDA_ERROR_INVALID_VALUE;
        copy = without_contexts(peer);
        return copy_3d(stream, &copy, true);
}
