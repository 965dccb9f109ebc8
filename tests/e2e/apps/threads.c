/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads -- per-thread default streams, and one thread that frees for all
 *
 *   threads [rounds]
 *
 * Built as nvcc builds with --default-stream per-thread: stream 0 of the _ptsz
 * functions is the calling thread's own. A worker fills a block and leaves a
 * kernel running on it; the main thread frees the block at once by cuMemFree,
 * and gives memory of that size to another worker (F5: nobody but the worker
 * can name its stream).
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "cu.h"

#define WORKERS 4
#define BYTES   ((size_t)1 << 18)
#define WORDS   (BYTES / 4)

static struct cu_kernels kernels;
static CUcontext context;
static uint32_t *mismatches;
static pthread_barrier_t barrier;
static CUdeviceptr blocks[WORKERS];
static int rounds;

static void launch(CUfunction function, void **arguments)
{
        CU_OK(cu.LaunchKernel_ptsz(function, 4, 1, 1, 128, 1, 1, 0, NULL, arguments, NULL));
}

static void use(CUdeviceptr p, uint32_t value)
{
        CUdeviceptr count = (CUdeviceptr)(uintptr_t)mismatches;
        uint64_t words = WORDS, duration = 300000;
        void *fill[] = {&p, &words, &value};
        void *watch[] = {&p, &words, &value, &duration, &count};

        launch(kernels.fill, fill);
        launch(kernels.watch, watch);
}

static void *worker(void *argument)
{
        uint32_t number = *(uint32_t *)argument;

        CU_OK(cu.CtxSetCurrent(context));
        for (int round = 0; round < rounds; round++) {
                uint32_t value = number << 16 | (uint32_t)round;
                CUdeviceptr p;

                pthread_barrier_wait(&barrier); /* blocks[] is there */
                use(blocks[number], value);
                CU_OK(cu.MemAllocAsync_ptsz(&p, BYTES, NULL));
                cu_owned(p, BYTES);
                use(p, value + (1u << 30));
                cu_disowned(p);
                CU_OK(cu.MemFreeAsync_ptsz(p, NULL));
                pthread_barrier_wait(&barrier); /* its kernels are launched */
        }
        return NULL;
}

int main(int argc, char **argv)
{
        pthread_t threads[WORKERS];
        uint32_t numbers[WORKERS];

        rounds = argc > 1 ? atoi(argv[1]) : 30;
        context = cu_start(0);
        cu_load_kernels(&kernels);
        mismatches = cu_counter(1);
        pthread_barrier_init(&barrier, NULL, WORKERS + 1);
        for (uint32_t i = 0; i < WORKERS; i++) {
                numbers[i] = i;
                if (pthread_create(&threads[i], NULL, worker, &numbers[i]))
                        return 99;
        }
        for (int round = 0; round < rounds; round++) {
                for (int i = 0; i < WORKERS; i++) {
                        CU_OK(cu.MemAlloc(&blocks[i], BYTES));
                        cu_owned(blocks[i], BYTES);
                }
                pthread_barrier_wait(&barrier);
                pthread_barrier_wait(&barrier);
                for (int i = 0; i < WORKERS; i++) {
                        cu_disowned(blocks[i]);
                        CU_OK(cu.MemFree(blocks[i]));
                }
        }
        for (int i = 0; i < WORKERS; i++)
                pthread_join(threads[i], NULL);
        CU_OK(cu.CtxSynchronize());
        printf("rounds %d mismatches %u\n", rounds, *mismatches);
        CU_OK(cu.MemFreeHost(mismatches));
        return 0;
}
