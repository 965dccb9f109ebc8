/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loop -- allocate, launch, free, and never wait
 *
 *   loop ROUNDS BYTES [async]
 *
 * The host runs ahead of the device. The bare cuMemFree would hold it back; a
 * pool must bound what it keeps by other means (O3). Prints how many blocks
 * held what was written to them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cu.h"

int main(int argc, char **argv)
{
        int rounds = argc > 1 ? atoi(argv[1]) : 100;
        size_t bytes = argc > 2 ? strtoull(argv[2], NULL, 10) : 1 << 20;
        bool async = argc > 3;
        uint32_t *mismatches;
        struct cu_kernels kernels;
        CUstream stream;

        cu_start(0);
        cu_load_kernels(&kernels);
        mismatches = cu_counter(1);
        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        for (int i = 0; i < rounds; i++) {
                CUdeviceptr p;

                if (async)
                        CU_OK(cu.MemAllocAsync(&p, bytes, stream));
                else
                        CU_OK(cu.MemAlloc(&p, bytes));
                cu_owned(p, bytes);
                CU_OK(cu_fill(&kernels, stream, p, 1024, (uint32_t)i));
                CU_OK(cu_spin(&kernels, stream, 100000));
                CU_OK(cu_check(&kernels, stream, p, 1024, (uint32_t)i,
                               (CUdeviceptr)(uintptr_t)mismatches));
                cu_disowned(p);
                if (async)
                        CU_OK(cu.MemFreeAsync(p, stream));
                else
                        CU_OK(cu.MemFree(p));
        }
        CU_OK(cu.CtxSynchronize());
        printf("rounds %d mismatches %u\n", rounds, *mismatches);
        CU_OK(cu.MemFreeHost(mismatches));
        return 0;
}
