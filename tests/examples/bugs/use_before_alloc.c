/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Use before alloc -- a stream uses what another one allocates, and does not wait for it
 *
 * Settings: STREAMPOOL_CHECK=order
 * Expect: use_before_alloc site=used allocation=made earlier=made behind=allocation access=write
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
        CU_OK(cu.MemAllocAsync(&block, 1 << 16, streams[0]));    /* here: made */
        CU_OK(cu.MemsetD32Async(block, 0, 1 << 14, streams[1])); /* here: used */
        CU_OK(cu.StreamSynchronize(streams[1]));
        CU_OK(cu.MemFreeAsync(block, streams[0]));
        CU_OK(cu.StreamSynchronize(streams[0]));
        return 0;
}
