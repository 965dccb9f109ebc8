/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Overrun async -- a kernel writes a word behind the block; the free waits for
 * nothing, and what it has seen is told at the end
 *
 * Settings: STREAMPOOL_REDZONE=64
 * Expect: overrun site=freed allocation=made outside=8192 beyond=4
 */
#include "cu.h"

#define WORDS 2048

int main(void)
{
        struct cu_kernels kernels;
        CUdeviceptr block;
        CUstream stream;

        cu_start(0);
        cu_load_kernels(&kernels);
        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.MemAllocAsync(&block, 4 * WORDS, stream)); /* here: made */
        CU_OK(cu_fill(&kernels, stream, block, WORDS + 1, 7));
        CU_OK(cu.MemFreeAsync(block, stream)); /* here: freed */
        CU_OK(cu.StreamSynchronize(stream));
        return 0;
}
