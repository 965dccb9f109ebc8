/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read after free -- a kernel's input was freed on another stream, which the kernel does not wait
 * for: without the fill it reads what was there, and the result looks right
 *
 * Bare: fails
 * Settings: STREAMPOOL_POISON=free
 * Prints: read 0xdfdfdfdf
 */
#include <stdio.h>

#include "cu.h"

#define WORDS 1024

int main(void)
{
        CUstream streams[2];
        CUdeviceptr input, output;
        struct cu_kernels kernels;
        uint32_t read;

        cu_start(0);
        cu_load_kernels(&kernels);
        for (int i = 0; i < 2; i++)
                CU_OK(cu.StreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        CU_OK(cu.MemAllocAsync(&input, 4 * WORDS, streams[0]));
        CU_OK(cu.MemAlloc(&output, 4 * WORDS));
        CU_OK(cu_fill(&kernels, streams[0], input, WORDS, 7));
        CU_OK(cu.MemFreeAsync(input, streams[0]));
        CU_OK(cu.StreamSynchronize(streams[0]));
        CU_OK(cu_copy(&kernels, streams[1], output, input, WORDS));
        CU_OK(cu.StreamSynchronize(streams[1]));
        CU_OK(cu.MemcpyDtoH(&read, output, sizeof(read)));
        printf("read 0x%x\n", read);
        CU_OK(cu.MemFree(output));
        return 0;
}
