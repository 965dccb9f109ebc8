/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plugin -- a library that is unloaded before the report is written
 */
#include <cuda.h>

int lose_in_library(CUresult (*alloc)(CUdeviceptr *, size_t));

int lose_in_library(CUresult (*alloc)(CUdeviceptr *, size_t))
{
        CUdeviceptr p = 0;
        CUresult result = alloc(&p, 4000);

        return result == CUDA_SUCCESS && p;
}
