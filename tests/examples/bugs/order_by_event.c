/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order by event -- streams wait for each other, some of them over a third one
 *
 * What is used on one stream is freed on another, and two write one half each. The event is
 * recorded anew each time, and a wait for one that was never recorded is for nothing.
 *
 * Settings: STREAMPOOL_CHECK=order
 */
#include "cu.h"
enum { WORDS = 1 << 14, STREAMS = 3 };

static CUstream streams[STREAMS];
static CUevent event, never;

static void order(CUstream before, CUstream after)
{
        CU_OK(cu.EventRecord(event, before));
        CU_OK(cu.StreamWaitEvent(after, event, 0));
}

static void round_of(const struct cu_kernels *kernels)
{
        CUdeviceptr block;

        CU_OK(cu.StreamWaitEvent(streams[0], never, 0));
        CU_OK(cu_spin(kernels, streams[0], 1000000));
        CU_OK(cu.MemAllocAsync(&block, 4 * WORDS, streams[0]));
        CU_OK(cu.MemsetD32Async(block, 1, WORDS, streams[0]));
        order(streams[0], streams[1]);
        order(streams[1], streams[2]);
        CU_OK(cu.MemsetD32Async(block, 2, WORDS / 2, streams[2]));
        CU_OK(cu_fill(kernels, streams[1], block + 2 * WORDS, WORDS / 2, 3));
        CU_OK(cu.MemsetD32Async(block + 2 * WORDS, 3, WORDS / 2, streams[1]));
        order(streams[2], streams[0]);
        order(streams[1], streams[0]);
        CU_OK(cu.MemFreeAsync(block, streams[0]));
}

int main(void)
{
        struct cu_kernels kernels;

        cu_start(0);
        cu_load_kernels(&kernels);
        for (int i = 0; i < STREAMS; i++)
                CU_OK(cu.StreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        CU_OK(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
        CU_OK(cu.EventCreate(&never, CU_EVENT_DISABLE_TIMING));
        for (int i = 0; i < 4; i++)
                round_of(&kernels);
        CU_OK(cu.CtxSynchronize());
        return 0;
}
