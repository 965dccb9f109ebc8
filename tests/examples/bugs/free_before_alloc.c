/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free before alloc -- on a stream that does not wait for the one that allocates
 *
 * Settings: STREAMPOOL_CHECK=order
 * Expect: free_before_alloc site=freed allocation=made earlier=made behind=allocation
 */
#include "cu.h"
int main(void)
{
        struct cu_kernels kernels;
        CUstream streams[2];
        CUdeviceptr block;

        cu_start(0);
        cu_load_kernels(&kernels);
        for (int i = 0; i < 2; i++)
                CU_OK(cu.StreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        CU_OK(cu_spin(&kernels, streams[0], 50000000));
        CU_OK(cu.MemAllocAsync(&block, 1 << 16, streams[0])); /* here: made */
        CU_OK(cu.MemFreeAsync(block, streams[1]));            /* here: freed */
        CU_OK(cu.CtxSynchronize());
        return 0;
}
