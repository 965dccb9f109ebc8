/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Set after free async -- on the stream that freed, so behind the free for certain
 *
 * Expect: use_after_free site=late freed_at=freed allocation=made access=write
 */
#include "cu.h"
int main(void)
{
        CUdeviceptr block;
        CUstream stream;

        cu_start(0);
        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.MemAllocAsync(&block, 1 << 16, stream)); /* here: made */
        CU_OK(cu.MemsetD32Async(block, 1, 1 << 14, stream));
        CU_OK(cu.MemFreeAsync(block, stream));              /* here: freed */
        (void)cu.MemsetD32Async(block, 0, 1 << 14, stream); /* here: late */
        CU_OK(cu.StreamSynchronize(stream));
        return 0;
}
