/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that are made again when memory was short
 *
 * A module is loaded while the driver says once that it has no memory for it. If
 * the pool holds idle memory, it gives that back and the program does not notice.
 */

#define _GNU_SOURCE

#include <cuda.h>

#include "routes.h"

int main(void)
{
        uint64_t (*calls)(const char *) =
                (uint64_t(*)(const char *))dlsym(RTLD_DEFAULT, "sim_calls");
        void (*fail)(const char *, unsigned int, int) =
                (void (*)(const char *, unsigned int, int))dlsym(RTLD_DEFAULT, "sim_fail");
        CUdeviceptr pointer;
        CUmodule module;
        CUcontext context;
        uint64_t before;

        if (!calls || !fail || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) ||
            cuCtxSetCurrent(context))
                return 2;

        before = calls("cuModuleLoadData");
        fail("cuModuleLoadData", 1, CUDA_ERROR_OUT_OF_MEMORY);
        CHECK(cuModuleLoadData(&module, "image") == CUDA_ERROR_OUT_OF_MEMORY, "nothing to give");
        CHECK(calls("cuModuleLoadData") == before + 1, "tried again for nothing");

        CHECK(cuMemAlloc(&pointer, 64 << 20) == CUDA_SUCCESS, "alloc");
        CHECK(cuMemFree(pointer) == CUDA_SUCCESS, "free");
        before = calls("cuModuleLoadData");
        fail("cuModuleLoadData", 1, CUDA_ERROR_OUT_OF_MEMORY);
        CHECK(cuModuleLoadData(&module, "image") == CUDA_SUCCESS, "the pool gave nothing back");
        CHECK(calls("cuModuleLoadData") == before + 2, "not tried again");

        /* Another error is the program's to see, although there is something to give again. */
        CHECK(cuMemAlloc(&pointer, 64 << 20) == CUDA_SUCCESS, "alloc");
        CHECK(cuMemFree(pointer) == CUDA_SUCCESS, "free");
        fail("cuModuleLoadData", 1, CUDA_ERROR_INVALID_IMAGE);
        CHECK(cuModuleLoadData(&module, "image") == CUDA_ERROR_INVALID_IMAGE, "another error");
        return RESULT();
}
