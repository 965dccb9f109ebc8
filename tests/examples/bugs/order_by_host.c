/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order by host -- the host waits, and what it submits then is behind that, on whichever stream
 *
 * For a stream, an event, the context; until a question is answered with "done"; by a copy that
 * returns when it is done, also of memory that is not page-locked; in a function that a stream
 * calls.
 *
 * Settings: STREAMPOOL_CHECK=order
 */
#include <stdatomic.h>

#include "cu.h"
enum { WORDS = 1 << 14, WAYS = 7 };

static struct cu_kernels kernels;
static CUstream streams[2];
static CUevent event;
static uint32_t here[WORDS];

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
                CU_OK(cu.StreamSynchronize(streams[0]));
                break;
        default:
                wait_for_function(streams[0]);
        }
}

int main(void)
{
        CUdeviceptr block, other;

        cu_start(0);
        cu_load_kernels(&kernels);
        for (int i = 0; i < 2; i++)
                CU_OK(cu.StreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        CU_OK(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
        CU_OK(cu.MemAlloc(&other, 4 * WORDS));
        for (int way = 0; way < WAYS; way++) {
                CU_OK(cu_spin(&kernels, streams[0], 1000000));
                CU_OK(cu.MemAllocAsync(&block, 4 * WORDS, streams[0]));
                CU_OK(cu.MemsetD32Async(block, 1, WORDS, streams[0]));
                wait(way, block);
                /* What is submitted behind the wait holds nobody up. */
                CU_OK(cu_spin(&kernels, streams[0], 1000000));
                CU_OK(cu.MemsetD32Async(block, 2, WORDS, streams[1]));
                CU_OK(cu.MemcpyHtoD(other, here, sizeof(here)));
                CU_OK(cu.MemsetD32Async(other, 2, WORDS, streams[1]));
                CU_OK(cu.MemFreeAsync(block, streams[1]));
                CU_OK(cu.StreamSynchronize(streams[1]));
        }
        CU_OK(cu.CtxSynchronize());
        CU_OK(cu.MemFree(other));
        return 0;
}
