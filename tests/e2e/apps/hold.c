/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hold -- memory of three kinds from three places, and then more than is left
 *
 *   hold
 */
#include <stdio.h>

#include "cu.h"

#define MIB ((size_t)1 << 20)

int main(void)
{
        CUDA_ARRAY3D_DESCRIPTOR shape = {1024, 4096, 0, CU_AD_FORMAT_FLOAT, 1, 0};
        CUdeviceptr pointers[4], refused = 1;
        CUstream stream;
        CUarray array;

        cu_start(0);
        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        for (int i = 0; i < 3; i++)
                CU_OK(cu.MemAlloc(&pointers[i], 32 * MIB));
        CU_OK(cu.Array3DCreate(&array, &shape));
        CU_OK(cu.MemAllocAsync(&pointers[3], 8 * MIB, stream));
        printf("%d\n", (int)cu.MemAlloc(&refused, 200 * MIB));
        CU_OK(cu.MemFreeAsync(pointers[3], stream));
        CU_OK(cu.ArrayDestroy(array));
        for (int i = 0; i < 3; i++)
                CU_OK(cu.MemFree(pointers[i]));
        return 0;
}
