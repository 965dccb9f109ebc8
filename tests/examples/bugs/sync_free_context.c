/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sync free context -- cuMemFree waits for the context that the memory is of, and another one uses
 * it. A second block beside it keeps the memory where it is.
 *
 * Settings: STREAMPOOL_CHECK=order
 * Expect: sync_free site=freed allocation=made earlier=used behind=write
 */
#include "cu.h"
int main(void)
{
        struct cu_kernels kernels;
        CUdeviceptr beside, block;
        CUcontext context;
        CUstream stream;

        cu_start(0);
        CU_OK(cu.MemAlloc(&beside, 1 << 16));
        CU_OK(cu.MemAlloc(&block, 1 << 16)); /* here: made */
        CU_OK(cu.CtxCreate(&context, 0, 0));
        cu_load_kernels(&kernels);
        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CU_OK(cu_spin(&kernels, stream, 50000000));
        CU_OK(cu.MemsetD32Async(block, 0, 1 << 14, stream)); /* here: used */
        CU_OK(cu.MemFree(block));                            /* here: freed */
        CU_OK(cu.StreamSynchronize(stream));
        CU_OK(cu.CtxDestroy(context));
        CU_OK(cu.MemFree(beside));
        return 0;
}
