/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Overrun -- a kernel writes two words more than the block has, which no call says
 *
 * Settings: STREAMPOOL_REDZONE=256
 * Expect: overrun site=freed allocation=made outside=4000 beyond=8
 */
#include "cu.h"

#define WORDS 1000

int main(void)
{
        CUdeviceptr block, other;
        struct cu_kernels kernels;
        CUstream stream;

        cu_start(0);
        cu_load_kernels(&kernels);
        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.MemAlloc(&block, 4 * WORDS)); /* here: made */
        CU_OK(cu.MemAlloc(&other, 4 * WORDS));
        CU_OK(cu_fill(&kernels, stream, block, WORDS + 2, 7));
        CU_OK(cu_fill(&kernels, stream, other, WORDS, 7));
        CU_OK(cu.MemFree(other));
        CU_OK(cu.MemFree(block)); /* here: freed */
        return 0;
}
