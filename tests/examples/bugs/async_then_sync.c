/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Async then sync -- freed by cuMemFreeAsync, and by cuMemFree: alone, the driver ends the program
 *
 * Bare: dies
 * Also: STREAMPOOL_MODE=observe
 * Expect: double_free site=second freed_at=first allocation=made
 */
#include "cu.h"
int main(void)
{
        CUstream stream;
        CUdeviceptr block;

        cu_start(0);
        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.MemAlloc(&block, 4096));         /* here: made */
        CU_OK(cu.MemFreeAsync(block, stream));    /* here: first */
        return cu.MemFree(block) == CUDA_SUCCESS; /* here: second */
}
