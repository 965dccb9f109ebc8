/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leak async -- memory of a stream outlives its stream
 *
 * Expect: leak memory=async count=1 site=made
 */
#include "cu.h"
int main(void)
{
        CUstream stream;
        CUdeviceptr block;

        cu_start(0);
        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.MemAllocAsync(&block, 3 << 20, stream)); /* here: made */
        CU_OK(cu.StreamSynchronize(stream));
        CU_OK(cu.StreamDestroy(stream));
        return 0;
}
