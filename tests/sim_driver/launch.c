/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Launch -- kernels meet a stream
 *
 * Grid and block are checked for being there and change nothing else. Two launch
 * attributes record an event that is due before the kernel's end (H12): it stands
 * for an operation in front of the kernel.
 */

#include "kernel.h"

struct shape {
        unsigned int grid[3];
        unsigned int block[3];
};

static CUresult launch_with(CUfunction function, const struct shape *shape, CUstream handle,
                            void **parameters, void **extra, struct sim_event *early)
{
        struct sim_context *context;
        struct sim_stream *stream;
        struct sim_work work;
        CUresult result = sim_stream_resolve(handle, &stream);

        if (result)
                return result;
        if (!function)
                return CUDA_ERROR_INVALID_HANDLE;
        for (int i = 0; i < 3; i++)
                if (!shape->grid[i] || !shape->block[i])
                        return CUDA_ERROR_INVALID_VALUE;
        context = ((struct sim_function *)function)->module->context;
        if (context && context->device != stream->context->device)
                return CUDA_ERROR_INVALID_HANDLE;
        result = sim_kernel_work(&work, function, parameters, extra);
        if (result)
                return result;
        if (early && !stream->capture && !sim_capture_implicit(stream))
                sim_event_mark(early, stream);
        return sim_submit(stream, &work);
}

SIM_STREAM_PAIR(cuLaunchKernel, stream,
                (CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,
                 unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                 CUstream stream, void **parameters, void **extra),
                (function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra))
{
        struct shape shape = {{gx, gy, gz}, {bx, by, bz}};

        (void)shared;
        return launch_with(function, &shape, stream, parameters, extra, NULL);
}

SIM_STREAM_PAIR(cuLaunchCooperativeKernel, stream,
                (CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,
                 unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                 CUstream stream, void **parameters),
                (function, gx, gy, gz, bx, by, bz, shared, stream, parameters))
{
        struct shape shape = {{gx, gy, gz}, {bx, by, bz}};

        (void)shared;
        return launch_with(function, &shape, stream, parameters, NULL, NULL);
}

/* Each kernel on a stream of its own; that they are of different devices is not checked. */
CUresult CUDAAPI cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *list, unsigned int count,
                                                      unsigned int flags)
{
        SIM_ENTER(cuLaunchCooperativeKernelMultiDevice);
        CUresult result = list && count && !(flags & ~3u) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

        for (unsigned int i = 0; result == CUDA_SUCCESS && i < count; i++) {
                const CUDA_LAUNCH_PARAMS *one = &list[i];
                struct shape shape = {
                        {one->gridDimX, one->gridDimY, one->gridDimZ},
                        {one->blockDimX, one->blockDimY, one->blockDimZ},
                };

                if (!one->hStream)
                        return CUDA_ERROR_INVALID_VALUE;
                result = launch_with(one->function, &shape, one->hStream, one->kernelParams, NULL,
                                     NULL);
        }
        return result;
}

static struct sim_event *early_event(const CUlaunchConfig *config)
{
        for (unsigned int i = 0; i < config->numAttrs; i++) {
                const CUlaunchAttribute *attribute = &config->attrs[i];

                if (attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
                        return (struct sim_event *)attribute->value.programmaticEvent.event;
#if CUDA_VERSION >= 12030
                if (attribute->id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
                        return (struct sim_event *)attribute->value.launchCompletionEvent.event;
#endif
        }
        return NULL;
}

static CUresult launch_configured(const CUlaunchConfig *config, CUfunction function,
                                  void **parameters, void **extra, CUstream zero)
{
        struct sim_event *early;
        struct shape shape;

        if (!config || (config->numAttrs && !config->attrs))
                return CUDA_ERROR_INVALID_VALUE;
        shape = (struct shape){
                {config->gridDimX, config->gridDimY, config->gridDimZ},
                {config->blockDimX, config->blockDimY, config->blockDimZ},
        };
        early = early_event(config);
        if (early)
                sim_handle_check(early, SIM_EVENT);
        return launch_with(function, &shape, config->hStream ? config->hStream : zero, parameters,
                           extra, early);
}

CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function,
                                  void **parameters, void **extra)
{
        SIM_ENTER(cuLaunchKernelEx);
        return launch_configured(config, function, parameters, extra, CU_STREAM_LEGACY);
}

CUresult CUDAAPI cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function,
                                       void **parameters, void **extra)
{
        SIM_ENTER(cuLaunchKernelEx_ptsz);
        return launch_configured(config, function, parameters, extra, CU_STREAM_PER_THREAD);
}
