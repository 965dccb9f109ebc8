/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Primary -- the context that a device's users share, and its green parts
 *
 * Its object and so its handle is the same for ever. A reset, or the release of
 * the last reference, empties it; the next retain opens it again under a new id
 * (D16). Both versions of every call do the same.
 */

#include "context.h"

static bool is_active(const struct sim_device *device)
{
        return device->primary && device->primary->state == SIM_CONTEXT_ALIVE;
}

static void open_primary(struct sim_device *device)
{
        if (is_active(device))
                return;
        if (!device->primary) {
                device->primary = sim_context_new(device, device->primary_flags);
                device->primary->primary = true;
        }
        device->primary->id = sim_unique();
        device->primary->state = SIM_CONTEXT_ALIVE;
        device->primary->flags = device->primary_flags;
        sim_context_open(device->primary);
}

static void reset(struct sim_device *device)
{
        if (!is_active(device))
                return;
        device->primary->state = SIM_CONTEXT_RESET;
        sim_context_clear(device->primary);
}

static void release(struct sim_device *device)
{
        device->primary_references--;
        if (!device->primary_references)
                reset(device);
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice ordinal)
{
        SIM_ENTER(cuDevicePrimaryCtxRetain);
        struct sim_device *device = sim_device(ordinal);

        if (!context)
                return CUDA_ERROR_INVALID_VALUE;
        if (!device)
                return CUDA_ERROR_INVALID_DEVICE;
        open_primary(device);
        device->primary_references++;
        *context = (CUcontext)device->primary;
        return CUDA_SUCCESS;
}

static CUresult release_call(CUdevice ordinal)
{
        struct sim_device *device = sim_device(ordinal);

        if (!device)
                return CUDA_ERROR_INVALID_DEVICE;
        if (!device->primary_references)
                return CUDA_ERROR_INVALID_CONTEXT;
        release(device);
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device)
{
        SIM_ENTER(cuDevicePrimaryCtxRelease);

        return release_call(device);
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
        SIM_ENTER(cuDevicePrimaryCtxRelease_v2);

        return release_call(device);
}

static CUresult reset_call(CUdevice ordinal)
{
        struct sim_device *device = sim_device(ordinal);

        if (!device)
                return CUDA_ERROR_INVALID_DEVICE;
        reset(device);
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice device)
{
        SIM_ENTER(cuDevicePrimaryCtxReset);

        return reset_call(device);
}

CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice device)
{
        SIM_ENTER(cuDevicePrimaryCtxReset_v2);

        return reset_call(device);
}

static CUresult set_flags(CUdevice ordinal, unsigned int flags)
{
        struct sim_device *device = sim_device(ordinal);

        if (!device)
                return CUDA_ERROR_INVALID_DEVICE;
        device->primary_flags = flags;
        if (device->primary)
                device->primary->flags = flags;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags)
{
        SIM_ENTER(cuDevicePrimaryCtxSetFlags);

        return set_flags(device, flags);
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags)
{
        SIM_ENTER(cuDevicePrimaryCtxSetFlags_v2);

        return set_flags(device, flags);
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned int *flags, int *active)
{
        SIM_ENTER(cuDevicePrimaryCtxGetState);
        struct sim_device *device = sim_device(ordinal);

        if (!device)
                return CUDA_ERROR_INVALID_DEVICE;
        if (!flags || !active)
                return CUDA_ERROR_INVALID_VALUE;
        *flags = device->primary_flags;
        *active = is_active(device);
        return CUDA_SUCCESS;
}

/* ---- green contexts: streams of their own, the memory of the primary ---- */

#if CUDA_VERSION >= 12040
#define MULTIPROCESSORS 132

CUresult CUDAAPI cuDeviceGetDevResource(CUdevice ordinal, CUdevResource *resource,
                                        CUdevResourceType type)
{
        SIM_ENTER(cuDeviceGetDevResource);

        if (!resource || type != CU_DEV_RESOURCE_TYPE_SM)
                return CUDA_ERROR_INVALID_VALUE;
        if (!sim_device(ordinal))
                return CUDA_ERROR_INVALID_DEVICE;
        *resource = (CUdevResource){.type = type};
        resource->sm.smCount = MULTIPROCESSORS;
        return CUDA_SUCCESS;
}

/* Every description is the same: all there is. */
CUresult CUDAAPI cuDevResourceGenerateDesc(CUdevResourceDesc *desc, CUdevResource *resources,
                                           unsigned int count)
{
        SIM_ENTER(cuDevResourceGenerateDesc);
        static int everything;

        if (!desc || !resources || !count)
                return CUDA_ERROR_INVALID_VALUE;
        *desc = (CUdevResourceDesc)&everything;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGreenCtxCreate(CUgreenCtx *handle, CUdevResourceDesc desc, CUdevice ordinal,
                                  unsigned int flags)
{
        SIM_ENTER(cuGreenCtxCreate);
        struct sim_device *device = sim_device(ordinal);
        struct sim_context *context;

        if (!handle || !desc || flags != CU_GREEN_CTX_DEFAULT_STREAM)
                return CUDA_ERROR_INVALID_VALUE;
        if (!device)
                return CUDA_ERROR_INVALID_DEVICE;
        open_primary(device);
        device->primary_references++;
        context = sim_context_new(device, 0);
        context->green_parent = device->primary;
        sim_context_open(context);
        *handle = (CUgreenCtx)context;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGreenCtxDestroy(CUgreenCtx handle)
{
        SIM_ENTER(cuGreenCtxDestroy);
        struct sim_context *context = (struct sim_context *)handle;

        if (!context)
                return CUDA_ERROR_INVALID_VALUE;
        sim_handle_check(context, SIM_CONTEXT);
        if (!context->green_parent)
                return CUDA_ERROR_INVALID_VALUE;
        context->state = SIM_CONTEXT_GONE;
        sim_context_clear(context);
        sim_context_drop(context);
        context->id = 0;
        release(context->device);
        sim_handle_free(&context->handle);
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx green)
{
        SIM_ENTER(cuCtxFromGreenCtx);

        if (!context || !green)
                return CUDA_ERROR_INVALID_VALUE;
        sim_handle_check(green, SIM_CONTEXT);
        *context = (CUcontext)green;
        return CUDA_SUCCESS;
}
#endif
