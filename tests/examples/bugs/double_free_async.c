/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Double free async -- the second time on another stream
 *
 * Expect: double_free site=second freed_at=first allocation=made
 */
#include "cu.h"
int main(void)
{
        CUstream streams[2];
        CUdeviceptr block;

        cu_start(0);
        for (int i = 0; i < 2; i++)
                CU_OK(cu.StreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        CU_OK(cu.MemAllocAsync(&block, 1 << 20, streams[0])); /* here: made */
        CU_OK(cu.MemFreeAsync(block, streams[0]));            /* here: first */
        (void)cu.MemFreeAsync(block, streams[1]);             /* here: second */
        return 0;
}
