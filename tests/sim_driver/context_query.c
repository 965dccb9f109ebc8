/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Context queries -- id, device, flags, limits, and access between contexts
 *
 * Queries answer also after a sticky error (3D). After a reset a thread still knows
 * the device and the flags of its context, but the handle has no id and no version.
 */

#include "context.h"

#define API_VERSION 3020
#define LIMITS_MAX  16

static size_t limits[LIMITS_MAX] = {
        [CU_LIMIT_STACK_SIZE] = 1024,
        [CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20,
        [CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20,
};

/* The given context, or for null the current one; poisoned ones too. */
static CUresult given_or_current(CUcontext handle, struct sim_context **context)
{
        if (!handle)
                return sim_context_current(context);
        sim_handle_check(handle, SIM_CONTEXT);
        *context = (struct sim_context *)handle;
        return (*context)->state == SIM_CONTEXT_ALIVE ? CUDA_SUCCESS
                                                      : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

#if CUDA_VERSION >= 12000
CUresult CUDAAPI cuCtxGetId(CUcontext handle, unsigned long long *id)
{
        SIM_ENTER(cuCtxGetId);
        struct sim_context *context;
        CUresult result = id ? given_or_current(handle, &context) : CUDA_ERROR_INVALID_VALUE;

        if (result == CUDA_SUCCESS)
                *id = context->id;
        return result;
}
#endif

CUresult CUDAAPI cuCtxGetDevice(CUdevice *device)
{
        SIM_ENTER(cuCtxGetDevice);
        struct sim_context *context;
        CUresult result = device ? sim_context_named(&context) : CUDA_ERROR_INVALID_VALUE;

        if (result == CUDA_SUCCESS)
                *device = context->device->ordinal;
        return result;
}

#if CUDA_VERSION >= 13000
CUresult CUDAAPI cuCtxGetDevice_v2(CUdevice *device, CUcontext handle)
{
        SIM_ENTER(cuCtxGetDevice_v2);
        struct sim_context *context;
        CUresult result = device ? given_or_current(handle, &context) : CUDA_ERROR_INVALID_VALUE;

        if (result == CUDA_SUCCESS)
                *device = context->device->ordinal;
        return result;
}
#endif

CUresult CUDAAPI cuCtxGetApiVersion(CUcontext handle, unsigned int *version)
{
        SIM_ENTER(cuCtxGetApiVersion);
        struct sim_context *context;
        CUresult result = version ? given_or_current(handle, &context) : CUDA_ERROR_INVALID_VALUE;

        if (result == CUDA_ERROR_CONTEXT_IS_DESTROYED && handle)
                return CUDA_ERROR_INVALID_CONTEXT;
        if (result == CUDA_SUCCESS)
                *version = API_VERSION;
        return result;
}

CUresult CUDAAPI cuCtxGetFlags(unsigned int *flags)
{
        SIM_ENTER(cuCtxGetFlags);
        struct sim_context *context;
        CUresult result = flags ? sim_context_named(&context) : CUDA_ERROR_INVALID_VALUE;

        if (result == CUDA_SUCCESS)
                *flags = context->flags;
        return result;
}

#if CUDA_VERSION >= 12010
CUresult CUDAAPI cuCtxSetFlags(unsigned int flags)
{
        SIM_ENTER(cuCtxSetFlags);
        struct sim_context *context;
        CUresult result = sim_context_current(&context);

        if (result == CUDA_SUCCESS)
                context->flags = flags;
        return result;
}
#endif

CUresult CUDAAPI cuCtxGetLimit(size_t *value, CUlimit limit)
{
        SIM_ENTER(cuCtxGetLimit);
        struct sim_context *context;
        CUresult result = sim_context_current(&context);

        if (result != CUDA_SUCCESS)
                return result;
        if (!value)
                return CUDA_ERROR_INVALID_VALUE;
        if ((unsigned int)limit >= LIMITS_MAX)
                return CUDA_ERROR_UNSUPPORTED_LIMIT;
        *value = limits[limit];
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSetLimit(CUlimit limit, size_t value)
{
        SIM_ENTER(cuCtxSetLimit);
        struct sim_context *context;
        CUresult result = sim_context_current(&context);

        if (result != CUDA_SUCCESS)
                return result;
        if ((unsigned int)limit >= LIMITS_MAX)
                return CUDA_ERROR_UNSUPPORTED_LIMIT;
        limits[limit] = value;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
        SIM_ENTER(cuCtxGetStreamPriorityRange);
        struct sim_context *context;
        CUresult result = sim_context_current(&context);

        if (result != CUDA_SUCCESS)
                return result;
        if (least)
                *least = 0;
        if (greatest)
                *greatest = -5;
        return CUDA_SUCCESS;
}

/* ---- peers ---- */

CUresult CUDAAPI cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
        SIM_ENTER(cuDeviceCanAccessPeer);

        if (!can)
                return CUDA_ERROR_INVALID_VALUE;
        if (!sim_device(device) || !sim_device(peer))
                return CUDA_ERROR_INVALID_DEVICE;
        *can = device != peer;
        return CUDA_SUCCESS;
}

static CUresult resolve_peer(CUcontext handle, struct sim_context **context,
                             struct sim_context **peer)
{
        CUresult result = sim_current(context);

        if (result == CUDA_SUCCESS)
                result = sim_context_resolve(handle, peer);
        if (result == CUDA_SUCCESS && *context == *peer)
                result = CUDA_ERROR_INVALID_CONTEXT;
        return result;
}

CUresult CUDAAPI cuCtxEnablePeerAccess(CUcontext handle, unsigned int flags)
{
        SIM_ENTER(cuCtxEnablePeerAccess);
        struct sim_context *context, *peer;
        CUresult result = resolve_peer(handle, &context, &peer);
        uint64_t bit;

        if (result != CUDA_SUCCESS)
                return result;
        if (flags)
                return CUDA_ERROR_INVALID_VALUE;
        if (context->device == peer->device)
                return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
        bit = (uint64_t)1 << peer->device->ordinal;
        if (context->peers & bit)
                return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
        context->peers |= bit;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxDisablePeerAccess(CUcontext handle)
{
        SIM_ENTER(cuCtxDisablePeerAccess);
        struct sim_context *context, *peer;
        CUresult result = resolve_peer(handle, &context, &peer);
        uint64_t bit;

        if (result != CUDA_SUCCESS)
                return result;
        bit = (uint64_t)1 << peer->device->ordinal;
        if (!(context->peers & bit))
                return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
        context->peers &= ~bit;
        return CUDA_SUCCESS;
}
