/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Correct -- nothing is wrong here, though much of it looks so
 *
 * Null is freed, memory of a stream by the other function and on another stream, a block's address
 * comes again, and a context takes what it has along.
 */
#include "cu.h"
int main(void)
{
        CUstream streams[2];
        CUcontext context;
        CUdeviceptr block;
        void *pages;

        cu_start(0);
        for (int i = 0; i < 2; i++)
                CU_OK(cu.StreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        CU_OK(cu.MemFree(0));
        for (int i = 0; i < 3; i++) {
                CU_OK(cu.MemAlloc(&block, 4096));
                CU_OK(cu.MemFree(block));
        }
        CU_OK(cu.MemAllocAsync(&block, 4096, streams[0]));
        CU_OK(cu.StreamSynchronize(streams[0]));
        CU_OK(cu.MemFreeAsync(block, streams[1]));
        CU_OK(cu.MemAllocAsync(&block, 4096, streams[0]));
        CU_OK(cu.MemFree(block));
        CU_OK(cu.MemHostAlloc(&pages, 4096, 0));
        CU_OK(cu.MemFreeHost(pages));
        CU_OK(cu.CtxCreate(&context, 0, 0));
        CU_OK(cu.MemAlloc(&block, 4096));
        CU_OK(cu.CtxDestroy(context));
        return 0;
}
