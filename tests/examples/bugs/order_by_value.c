/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order by value -- a stream, or the host, waits for a word that another stream writes, now or
 * later
 *
 * Either can be submitted first, so neither order of the two uses says anything. Does nothing where
 * the device has no such waits.
 *
 * Settings: STREAMPOOL_CHECK=order
 */
#include "cu.h"
enum { WORDS = 1 << 14 };

static CUstream streams[2];
static CUdeviceptr flag;

static void use(CUstream stream, CUdeviceptr block)
{
        CU_OK(cu.MemsetD32Async(block, 1, WORDS, stream));
}

/* The stream that wrote the word has more to do. Meanwhile the other one is kept busy, so that time
 * passes. */
static void wait_on_host(const struct cu_kernels *kernels, CUdeviceptr block)
{
        volatile uint32_t *word = cu_counter(1);

        CU_OK(cu_spin(kernels, streams[0], 1000000));
        use(streams[0], block);
        CU_OK(cu.StreamWriteValue32(streams[0], (CUdeviceptr)(uintptr_t)word, 1, 0));
        CU_OK(cu_spin(kernels, streams[0], 50000000));
        do {
                CU_OK(cu_spin(kernels, streams[1], 1000000));
                CU_OK(cu.StreamSynchronize(streams[1]));
        } while (!*word);
        use(streams[1], block);
        CU_OK(cu.CtxSynchronize());
        CU_OK(cu.MemFreeHost((void *)(uintptr_t)word));
}

int main(void)
{
        struct cu_kernels kernels;
        CUdeviceptr block;

        cu_start(0);
        if (!cu.StreamWaitValue32 || !cu.StreamWriteValue32)
                return 0;
        cu_load_kernels(&kernels);
        for (int i = 0; i < 2; i++)
                CU_OK(cu.StreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        CU_OK(cu.MemAlloc(&flag, 4));
        CU_OK(cu.MemAlloc(&block, 4 * WORDS));
        CU_OK(cu.MemsetD32(flag, 0, 1));
        CU_OK(cu.CtxSynchronize());
        wait_on_host(&kernels, block);
        for (unsigned int i = 1; i < 9; i += 2) {
                /* First who waits, */
                CU_OK(cu.StreamWaitValue32(streams[1], flag, i, CU_STREAM_WAIT_VALUE_GEQ));
                use(streams[1], block);
                CU_OK(cu_spin(&kernels, streams[0], 1000000));
                use(streams[0], block);
                CU_OK(cu.StreamWriteValue32(streams[0], flag, i, 0));
                CU_OK(cu.StreamSynchronize(streams[1]));
                /* or first who writes. */
                CU_OK(cu_spin(&kernels, streams[0], 1000000));
                use(streams[0], block);
                CU_OK(cu.StreamWriteValue32(streams[0], flag, i + 1, 0));
                CU_OK(cu.StreamWaitValue32(streams[1], flag, i + 1, CU_STREAM_WAIT_VALUE_GEQ));
                use(streams[1], block);
                CU_OK(cu.StreamSynchronize(streams[1]));
        }
        CU_OK(cu.CtxSynchronize());
        CU_OK(cu.MemFree(block));
        CU_OK(cu.MemFree(flag));
        return 0;
}
