/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Overlap of rows -- the gaps between them are taken out in place
 *
 * Expect: overlap site=packed allocation=made access=write
 */
#include "cu.h"

enum { WIDTH = 400, PITCH = 512, ROWS = 16 };

int main(void)
{
        CUDA_MEMCPY2D copy = {
                .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                .srcPitch = PITCH,
                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                .dstPitch = WIDTH,
                .WidthInBytes = WIDTH,
                .Height = ROWS,
        };
        CUdeviceptr image;

        cu_start(0);
        CU_OK(cu.MemAlloc(&image, PITCH * ROWS)); /* here: made */
        CU_OK(cu.MemsetD8(image, 1, PITCH * ROWS));
        copy.srcDevice = copy.dstDevice = image;
        CU_OK(cu.Memcpy2D(&copy)); /* here: packed */
        CU_OK(cu.CtxSynchronize());
        CU_OK(cu.MemFree(image));
        return 0;
}
