/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sync then async -- freed by cuMemFree, and by cuMemFreeAsync
 *
 * Expect: double_free site=second freed_at=first allocation=made
 */
#include "cu.h"
int main(void)
{
        CUstream stream;
        CUdeviceptr block;

        cu_start(0);
        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.MemAlloc(&block, 4096));                      /* here: made */
        CU_OK(cu.MemFree(block));                              /* here: first */
        return cu.MemFreeAsync(block, stream) == CUDA_SUCCESS; /* here: second */
}
