/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Overlap, correct -- copies within a block that share no byte, and one of a block to itself
 *
 * Nothing is to be found.
 */
#include "cu.h"

enum { WIDTH = 512, ROWS = 16 };

int main(void)
{
        /* The left half of each row goes into its right half. */
        CUDA_MEMCPY2D copy = {
                .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                .srcPitch = WIDTH,
                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                .dstXInBytes = WIDTH / 2,
                .dstPitch = WIDTH,
                .WidthInBytes = WIDTH / 2,
                .Height = ROWS,
        };
        CUdeviceptr image;

        cu_start(0);
        CU_OK(cu.MemAlloc(&image, WIDTH * ROWS));
        CU_OK(cu.MemsetD8(image, 1, WIDTH * ROWS));
        CU_OK(cu.MemcpyDtoD(image, image + WIDTH * ROWS / 2, WIDTH * ROWS / 2));
        CU_OK(cu.MemcpyDtoD(image, image, WIDTH * ROWS));
        copy.srcDevice = copy.dstDevice = image;
        CU_OK(cu.Memcpy2D(&copy));
        CU_OK(cu.CtxSynchronize());
        CU_OK(cu.MemFree(image));
        return 0;
}
