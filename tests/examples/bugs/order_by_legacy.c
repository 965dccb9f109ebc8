/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order by legacy -- blocking streams and the legacy stream wait for each other
 *
 * One blocking stream is behind another one if the legacy stream had work in between; a kernel is
 * enough, of which nobody asks what it touches.
 *
 * Settings: STREAMPOOL_CHECK=order
 */
#include "cu.h"
enum { WORDS = 1 << 14 };

int main(void)
{
        struct cu_kernels kernels;
        CUdeviceptr block, other;
        CUstream streams[2];

        cu_start(0);
        cu_load_kernels(&kernels);
        for (int i = 0; i < 2; i++)
                CU_OK(cu.StreamCreate(&streams[i], CU_STREAM_DEFAULT));
        CU_OK(cu.MemAlloc(&other, 4 * WORDS));
        for (int i = 0; i < 4; i++) {
                CU_OK(cu_spin(&kernels, streams[0], 1000000));
                CU_OK(cu.MemAllocAsync(&block, 4 * WORDS, streams[0]));
                CU_OK(cu.MemsetD32Async(block, 1, WORDS, streams[0]));
                CU_OK(cu_spin(&kernels, CU_STREAM_LEGACY, 1000000));
                CU_OK(cu.MemsetD32Async(block, 2, WORDS, streams[1]));
                CU_OK(cu.MemcpyDtoD(other, block, 4 * WORDS));
                CU_OK(cu.MemsetD32(other, 3, WORDS));
                CU_OK(cu.MemFreeAsync(block, streams[0]));
                CU_OK(cu.MemsetD32Async(other, 4, WORDS, streams[1]));
        }
        CU_OK(cu.CtxSynchronize());
        CU_OK(cu.MemFree(other));
        return 0;
}
