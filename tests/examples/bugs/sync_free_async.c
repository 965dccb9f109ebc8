/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sync free async -- cuMemFree does not wait for anything if the memory is of cuMemAllocAsync
 *
 * Settings: STREAMPOOL_CHECK=order
 * Bare: fails
 * Expect: sync_free site=freed allocation=made earlier=used behind=write
 */
#include "cu.h"
int main(void)
{
        struct cu_kernels kernels;
        CUdeviceptr block;
        CUstream stream;

        cu_start(0);
        cu_load_kernels(&kernels);
        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.MemAllocAsync(&block, 1 << 16, stream)); /* here: made */
        CU_OK(cu_spin(&kernels, stream, 50000000));
        CU_OK(cu.MemsetD32Async(block, 0, 1 << 14, stream)); /* here: used */
        CU_OK(cu.MemFree(block));                            /* here: freed */
        CU_OK(cu.StreamSynchronize(stream));
        return 0;
}
