/* SPDX-License-Identifier: Apache-2.0 */

/*
 * On stream memory -- device memory in the order of a stream, which the pool may serve
 *
 * What the functions cost is at the head of on_memory.c.
 */

#include "route/route.h"

#include "base/life.h"
#include "report/counters.h"
#include "route/ask.h"
#include "route/guard.h"
#include "route/hand.h"
#include "route/memory.h"
#include "route/order.h"
#include "route/tick.h"
#include "route/whole.h"
#include "track/mempool_place.h"
#include "track/state.h"

static CUresult ask_for_async(CUdeviceptr *pointer, size_t size, CUstream handle)
{
        uint64_t began = sp_native_begin();
        CUresult result = sp_driver.cuMemAllocAsync(pointer, size, handle);

        if (result == CUDA_SUCCESS)
                sp_native_end(SP_NATIVE_ALLOC_ASYNC, began);
        return result;
}

static CUresult forward_alloc_async(CUdeviceptr *pointer, size_t size, CUstream handle, bool pooled)
{
        struct sp_stream *stream = sp_stream_of(handle);
        struct sp_ask ask = sp_ask_on(stream, handle, pointer ? size : 0);
        uint64_t shadow = 0;
        CUresult result;

        ask.pooled = pooled;
        result = SP_ASK_FOR(&ask, ask_for_async(pointer, size, handle));
        if (result != CUDA_SUCCESS || !*pointer)
                return result;
        /* In a capture this is a node of the graph, and the graph's memory (C1). */
        if (stream && sp_stream_captures(stream))
                return result;
        if (stream)
                shadow = sp_mirror_alloc(stream->context->device->async_pool, stream->model, size);
        sp_ask_write_down(&ask, *pointer, stream ? stream->context : NULL, shadow);
        if (sp_order_is_on)
                sp_order_alloc(handle, "cuMemAllocAsync", *pointer);
        return result;
}

/* The current pool can be destroyed by another thread just now: then there is another one. */
static bool serve_current(struct sp_stream *stream, size_t size, unsigned int epoch,
                          struct spm_allocation *block)
{
        const struct sp_device *device = stream->context->device;
        spm_pool now = sp_route_current_pool(device), pool;

        do {
                pool = now;
                if (pool && sp_memory_serve(pool, stream->model, size,
                                            sp_hand_visit(stream, pool, epoch), block))
                        return true;
                now = sp_route_current_pool(device);
        } while (now != pool);
        return false;
}

CUresult CUDAAPI sp_on_cuMemAllocAsync(CUdeviceptr *pointer, size_t size, CUstream handle)
{
        unsigned int epoch = sp_epoch_now();
        struct sp_hand *hand = sp_hand_of(handle);
        struct spm_allocation block;
        struct sp_stream *stream;
        CUresult result;

        if (hand && pointer && sp_hand_alloc(hand, size, pointer))
                return CUDA_SUCCESS;
        /* Where a call may be made to fail, nothing is at hand (hand.c). */
        result = sp_memory_fault(SP_KIND_ASYNC, "cuMemAllocAsync", pointer, size);
        if (result != CUDA_SUCCESS)
                return result;
        if (!pointer || !size)
                stream = NULL;
        else
                stream = hand ? hand->stream : sp_route_pooling_stream(handle);
        if (!stream || !serve_current(stream, size, epoch, &block))
                return forward_alloc_async(pointer, size, handle,
                                           stream &&
                                                   sp_route_current_pool(stream->context->device));
        if (sp_guards())
                sp_guard_served_on(stream, &block);
        if (sp_order_is_on)
                sp_order_alloc(handle, "cuMemAllocAsync", block.address);
        if (block.unseen)
                atomic_store_explicit(&stream->owes, true, memory_order_relaxed);
        *pointer = block.address;
        if (sp_tick_is_due())
                sp_tick();
        return CUDA_SUCCESS;
}

static CUresult forward_alloc_from_pool(CUdeviceptr *pointer, size_t size, CUmemoryPool pool,
                                        CUstream handle, bool pooled)
{
        struct sp_stream *stream = sp_stream_of(handle);
        struct sp_ask ask = sp_ask_on(stream, handle, pointer ? size : 0);
        int place = sp_mempool_place(pool);
        CUresult result;

        ask.pooled = pooled;
        if (ask.device >= 0 && place != SP_PLACE_UNKNOWN)
                ask.device = place;
        result = SP_ASK_FOR(&ask, sp_driver.cuMemAllocFromPoolAsync(pointer, size, pool, handle));
        if (result != CUDA_SUCCESS || !*pointer || (stream && sp_stream_captures(stream)))
                return result;
        sp_ask_write_down(&ask, *pointer, stream ? stream->context : NULL, 0);
        if (sp_order_is_on)
                sp_order_alloc(handle, "cuMemAllocFromPoolAsync", *pointer);
        return result;
}

CUresult CUDAAPI sp_on_cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t size, CUmemoryPool pool,
                                               CUstream handle)
{
        CUresult result = sp_memory_fault(SP_KIND_ASYNC, "cuMemAllocFromPoolAsync", pointer, size);
        struct sp_stream *stream = NULL;
        struct spm_allocation block;
        spm_pool ours;

        if (result != CUDA_SUCCESS)
                return result;
        ours = pointer && size ? sp_route_pool_behind(pool, handle, &stream) : 0;
        if (!ours || !sp_memory_serve(ours, stream->model, size, NULL, &block))
                return forward_alloc_from_pool(pointer, size, pool, handle, ours);
        if (sp_guards())
                sp_guard_served_on(stream, &block);
        if (sp_order_is_on)
                sp_order_alloc(handle, "cuMemAllocFromPoolAsync", block.address);
        if (block.unseen)
                atomic_store_explicit(&stream->owes, true, memory_order_relaxed);
        *pointer = block.address;
        if (sp_tick_is_due())
                sp_tick();
        return CUDA_SUCCESS;
}

/* The address is ours, and the driver may have something to say: a capture, no context for a
 * default stream, the end of the process. cuMemFreeAsync(0) is judged by the same rules. */
static CUresult ask_about(CUstream handle, struct sp_stream **stream)
{
        if (*stream && sp_stream_captures(*stream)) {
                /* Only memory of the graph can be freed in it; the capture goes on (C2). */
                return CUDA_ERROR_INVALID_VALUE;
        }
        /* A context that is reset and brought back by another thread has a stream now and then. */
        for (int tries = 0; tries < 10; tries++) {
                CUresult result = sp_driver.cuMemFreeAsync(0, handle);

                if (result != CUDA_SUCCESS || *stream)
                        return result;
                *stream = sp_stream_of(handle);
        }
        return *stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult forward_free_async(CUdeviceptr address, CUstream handle,
                                   const struct sp_stream *stream)
{
        struct sp_freeing freeing = sp_freeing_begin(address, "cuMemFreeAsync");
        uint64_t began = sp_native_begin();
        CUresult result = sp_driver.cuMemFreeAsync(address, handle);

        if (result == CUDA_SUCCESS)
                sp_native_end(SP_NATIVE_FREE_ASYNC, began);
        sp_freeing_mirror(&freeing, result, SPM_FREE_ASYNC, stream ? stream->model : 0);
        sp_freeing_end(&freeing, result);
        return result;
}

CUresult CUDAAPI sp_on_cuMemFreeAsync(CUdeviceptr address, CUstream handle)
{
        struct sp_hand *hand = sp_hand_of(handle);
        enum spm_status status = SPM_E_FOREIGN;
        struct spm_allocation block;
        struct sp_stream *stream;

        if (hand && sp_hand_free(hand, address, "cuMemFreeAsync"))
                return CUDA_SUCCESS;
        stream = hand ? hand->stream : sp_stream_of(handle);
        if ((!stream || !sp_route_is_quiet() || !sp_context_pools(stream->context)) &&
            sp_route_owns(address)) {
                CUresult result = ask_about(handle, &stream);

                if (result != CUDA_SUCCESS)
                        return sp_memory_refuse_as(address, "cuMemFreeAsync", result);
        }
        if (sp_order_is_on)
                sp_order_free(handle, address);
        if (stream && sp_guards())
                sp_guard_free_on(stream, address);
        if (stream)
                status = sp_memory_give_back(address, SPM_FREE_ASYNC, stream->model, NULL, &block);
        if (status == SPM_E_FOREIGN)
                return forward_free_async(address, handle, stream);
        return status == SPM_OK ? CUDA_SUCCESS : sp_memory_refuse(address, "cuMemFreeAsync");
}
