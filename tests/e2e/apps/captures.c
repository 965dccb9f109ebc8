/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures -- one thread captures, others allocate and free; no capture is lost
 *
 *   captures [rounds]
 *
 * The capture is of a mode that lets other threads work, so whoever disturbs it
 * does something the program did not ask for (P34).
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cu.h"

#define WORKERS 3
#define BYTES   ((size_t)1 << 18)

static struct cu_kernels kernels;
static CUcontext context;
static atomic_bool over;
static atomic_int failures, allocated;

static void *worker(void *argument)
{
        CUstream stream;

        (void)argument;
        CU_OK(cu.CtxSetCurrent(context));
        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        while (!over) {
                CUdeviceptr p = 0, q = 0;

                failures += cu.MemAlloc(&p, BYTES) != CUDA_SUCCESS;
                failures += cu.MemAllocAsync(&q, BYTES, stream) != CUDA_SUCCESS;
                cu_owned(p, BYTES);
                cu_owned(q, BYTES);
                failures += cu_fill(&kernels, stream, p, 1000, 1) != CUDA_SUCCESS;
                failures += cu_fill(&kernels, stream, q, 1000, 1) != CUDA_SUCCESS;
                cu_disowned(p);
                failures += cu.MemFree(p) != CUDA_SUCCESS;
                cu_disowned(q);
                failures += cu.MemFreeAsync(q, stream) != CUDA_SUCCESS;
                allocated++;
        }
        CU_OK(cu.StreamSynchronize(stream));
        CU_OK(cu.StreamDestroy(stream));
        return NULL;
}

static int capture(CUstream stream, CUstreamCaptureMode mode, uint32_t *mismatches)
{
        CUgraph graph = NULL;
        CUgraphExec exec = NULL;
        CUdeviceptr p;
        int lost = 0;

        CU_OK(cu.StreamBeginCapture(stream, mode));
        lost += cu.MemAllocAsync(&p, BYTES, stream) != CUDA_SUCCESS;
        for (uint32_t i = 0; i < 20; i++) {
                lost += cu_fill(&kernels, stream, p, 1000, i) != CUDA_SUCCESS;
                lost += cu_check(&kernels, stream, p, 1000, i,
                                 (CUdeviceptr)(uintptr_t)mismatches) != CUDA_SUCCESS;
        }
        lost += cu.MemFreeAsync(p, stream) != CUDA_SUCCESS;
        lost += cu.StreamEndCapture(stream, &graph) != CUDA_SUCCESS;
        if (lost)
                return 1;
        CU_OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
        CU_OK(cu.GraphLaunch(exec, stream));
        CU_OK(cu.StreamSynchronize(stream));
        CU_OK(cu.GraphExecDestroy(exec));
        CU_OK(cu.GraphDestroy(graph));
        return 0;
}

int main(int argc, char **argv)
{
        int rounds = argc > 1 ? atoi(argv[1]) : 30, lost = 0;
        uint32_t *mismatches;
        pthread_t threads[WORKERS];
        CUstream stream;

        context = cu_start(0);
        cu_load_kernels(&kernels);
        mismatches = cu_counter(1);
        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        for (int i = 0; i < WORKERS; i++)
                if (pthread_create(&threads[i], NULL, worker, NULL))
                        return 99;
        /* Before the first capture, so that some of it is the pool's, and between others. */
        while (allocated < 10 * WORKERS)
                usleep(100);
        for (int i = 0; i < rounds; i++)
                lost += capture(stream,
                                i % 2 ? CU_STREAM_CAPTURE_MODE_RELAXED
                                      : CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                mismatches);
        over = true;
        for (int i = 0; i < WORKERS; i++)
                pthread_join(threads[i], NULL);
        printf("rounds %d lost %d failures %d mismatches %u\n", rounds, lost, failures,
               *mismatches);
        CU_OK(cu.MemFreeHost(mismatches));
        return 0;
}
