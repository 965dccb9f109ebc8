/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order by host -- the host waits, and what it submits then is behind that, on whichever stream
 *
 * For a stream, an event, the context; until a question is answered with "done"; by a copy that
 * returns when it is done, also of memory that is not page-locked; in a function that a stream
 * calls; for a word that a kernel writes, if the stream has nothing else to do then.
 *
 * Settings: STREAMPOOL_CHECK=order
 */
#include <stdatomic.h>

#include "cu.h"
enum { WORDS = 1 << 14, FUNCTION = 6, FLAG, WAYS };

static struct cu_kernels kernels;
static CUstream streams[2];
static CUevent event;
static uint32_t here[WORDS];
static volatile uint32_t *flag;

static void CUDA_CB note(void *done)
{
        atomic_store((atomic_bool *)done, true);
}

static void wait_for_function(CUstream stream)
{
        atomic_bool done = false;

        CU_OK(cu.LaunchHostFunc(stream, note, &done));
        while (!atomic_load(&done))
                (void)cu.StreamQuery(stream);
}

/* Meanwhile the other stream is kept busy, so that time passes. */
static void wait_for_flag(CUstream stream)
{
        CU_OK(cu_fill(&kernels, stream, (CUdeviceptr)(uintptr_t)flag, 1, 1));
        do {
                CU_OK(cu_spin(&kernels, streams[1], 1000000));
                CU_OK(cu.StreamSynchronize(streams[1]));
        } while (!*flag);
}

static void wait(int way, CUdeviceptr block)
{
        switch (way) {
        case 0:
                CU_OK(cu.StreamSynchronize(streams[0]));
                break;
        case 1:
                CU_OK(cu.EventRecord(event, streams[0]));
                CU_OK(cu.EventSynchronize(event));
                break;
        case 2:
                CU_OK(cu.CtxSynchronize());
                break;
        case 3:
                while (cu.StreamQuery(streams[0]) == CUDA_ERROR_NOT_READY)
                        ;
                break;
        case 4:
                CU_OK(cu.EventRecord(event, streams[0]));
                while (cu.EventQuery(event) == CUDA_ERROR_NOT_READY)
                        ;
                break;
        case 5:
                CU_OK(cu.MemcpyDtoHAsync(here, block, sizeof(here), streams[0]));
                break;
        case FUNCTION:
                wait_for_function(streams[0]);
                break;
        default:
                wait_for_flag(streams[0]);
        }
}

int main(void)
{
        CUdeviceptr block, other;
        void *pages;

        cu_start(0);
        cu_load_kernels(&kernels);
        for (int i = 0; i < 2; i++)
                CU_OK(cu.StreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        CU_OK(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
        CU_OK(cu.MemAlloc(&other, 4 * WORDS));
        CU_OK(cu.MemHostAlloc(&pages, 4 * WORDS, 0));
        flag = cu_counter(1);
        for (int way = 0; way < WAYS; way++) {
                CU_OK(cu_spin(&kernels, streams[0], 1000000));
                CU_OK(cu.MemAllocAsync(&block, 4 * WORDS, streams[0]));
                CU_OK(cu.MemsetD32Async(block, 1, WORDS, streams[0]));
                wait(way, block);
                /* What is submitted behind the wait holds nobody up. */
                if (way != FLAG)
                        CU_OK(cu_spin(&kernels, streams[0], 1000000));
                CU_OK(cu.MemsetD32Async(block, 2, WORDS, streams[1]));
                CU_OK(cu.MemcpyHtoD(other, pages, 4 * WORDS));
                CU_OK(cu_spin(&kernels, CU_STREAM_LEGACY, 1000000));
                CU_OK(cu.MemsetD32Async(other, 2, WORDS, streams[1]));
                CU_OK(cu.MemFreeAsync(block, streams[1]));
                CU_OK(cu.StreamSynchronize(streams[1]));
        }
        CU_OK(cu.CtxSynchronize());
        CU_OK(cu.MemFree(other));
        CU_OK(cu.MemFreeHost((void *)(uintptr_t)flag));
        CU_OK(cu.MemFreeHost(pages));
        return 0;
}
