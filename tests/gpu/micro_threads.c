/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads -- pairs of 1 to 16 threads, each on a stream of its own
 *
 * All start together and count until the time is over; the figure is the sum.
 */
#include "micro.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 16
#define BATCH   32

struct worker {
        pthread_t thread;
        CUstream stream;
        uint64_t pairs;
};

static pthread_barrier_t barrier;
static atomic_bool over;

static void *work(void *argument)
{
        struct worker *worker = argument;
        uint64_t pairs = 0;

        CU_OK(cu.CtxSetCurrent(micro.context));
        pthread_barrier_wait(&barrier);
        while (!atomic_load_explicit(&over, memory_order_relaxed)) {
                for (int i = 0; i < BATCH; i++) {
                        CUdeviceptr p;

                        CU_OK(cu.MemAllocAsync(&p, 64 * MICRO_KIB, worker->stream));
                        CU_OK(cu.MemFreeAsync(p, worker->stream));
                }
                pairs += BATCH;
        }
        worker->pairs = pairs;
        return NULL;
}

/* Millions of pairs a second, all threads together. */
static double measure(struct worker *workers, unsigned count)
{
        struct timespec slice = {.tv_nsec = (long)(micro.slice_ns % 1000000000),
                                 .tv_sec = (time_t)(micro.slice_ns / 1000000000)};
        uint64_t before, pairs = 0;
        double seconds;

        atomic_store(&over, false);
        pthread_barrier_init(&barrier, NULL, count + 1);
        for (unsigned i = 0; i < count; i++)
                if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
                        exit(99);
        pthread_barrier_wait(&barrier);
        before = micro_now();
        nanosleep(&slice, NULL);
        atomic_store(&over, true);
        for (unsigned i = 0; i < count; i++) {
                pthread_join(workers[i].thread, NULL);
                pairs += workers[i].pairs;
        }
        seconds = (double)(micro_now() - before) / 1e9;
        pthread_barrier_destroy(&barrier);
        CU_OK(cu.CtxSynchronize());
        return (double)pairs / seconds / 1e6;
}

void micro_threads(const char *name)
{
        struct worker workers[THREADS];

        for (unsigned i = 0; i < THREADS; i++)
                workers[i].stream = micro_stream();
        for (unsigned count = 1; count <= THREADS; count *= 2) {
                char figure[16];

                snprintf(figure, sizeof(figure), "%u", count);
                micro_figure(name, figure, measure(workers, count));
        }
        for (unsigned i = 0; i < THREADS; i++)
                CU_OK(cu.StreamDestroy(workers[i].stream));
}
