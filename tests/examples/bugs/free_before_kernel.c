/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free before kernel -- the stream that allocated frees, and does not wait for the one where a
 * kernel was given the block
 *
 * Settings: STREAMPOOL_CHECK=arguments,order
 * Expect: free_before_use site=freed allocation=made earlier=used behind=argument
 */
#include "cu.h"
int main(void)
{
        struct cu_kernels kernels;
        CUstream streams[2];
        CUdeviceptr block;
        CUevent event;

        cu_start(0);
        cu_load_kernels(&kernels);
        for (int i = 0; i < 2; i++)
                CU_OK(cu.StreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        CU_OK(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
        CU_OK(cu.MemAllocAsync(&block, 1 << 16, streams[0])); /* here: made */
        CU_OK(cu.EventRecord(event, streams[0]));
        CU_OK(cu.StreamWaitEvent(streams[1], event, 0));
        CU_OK(cu_spin(&kernels, streams[1], 50000000));
        CU_OK(cu_fill(&kernels, streams[1], block, 1 << 14, 0)); /* here: used */
        CU_OK(cu.MemFreeAsync(block, streams[0]));               /* here: freed */
        CU_OK(cu.CtxSynchronize());
        return 0;
}
