/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Torture -- does anybody ever write into memory that is still in use?
 *
 * Each thread owns two streams and a few blocks of either family. A block is
 * filled with a value of its own, then watch kernels read it again and again
 * and count words that changed. Blocks are freed at random moments, most of
 * them while their kernels run, on their own stream, on another stream behind
 * an event, or by cuMemFree; what is allocated next is filled at once. If an
 * allocator hands out memory too early, the old owner's kernel counts it.
 *
 *   torture [rounds [threads [seed]]]         prints "mismatches 0"
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "cu.h"

#define BLOCKS      6
#define THREADS_MAX 16
#define BYTES_MAX   ((size_t)3 << 20)

struct block {
        CUdeviceptr p;
        CUstream last; /* the stream of its last kernel */
        bool async;
};

struct worker {
        pthread_t thread;
        CUcontext context;
        const struct cu_kernels *kernels;
        uint32_t *mismatches; /* pinned, added to by kernels */
        unsigned seed;
        int rounds;
        uint32_t serial; /* next fill value */
        CUstream streams[2];
        CUevent event;
        struct block blocks[BLOCKS];
        unsigned allocations, frees;
};

static unsigned pick(struct worker *w, unsigned limit)
{
        return (unsigned)rand_r(&w->seed) % limit;
}

/* Small ones mostly, and now and then one that is not. */
static size_t pick_bytes(struct worker *w)
{
        size_t limit = pick(w, 8) ? (size_t)128 << 10 : BYTES_MAX;

        return 256 + pick(w, (unsigned)limit) / 4 * 4;
}

static void take(struct worker *w, struct block *block)
{
        CUstream stream = w->streams[pick(w, 2)];
        size_t bytes = pick_bytes(w);
        uint64_t words = bytes / 4;
        uint32_t value = w->serial++;
        CUdeviceptr count = (CUdeviceptr)(uintptr_t)w->mismatches;

        block->async = pick(w, 2);
        block->last = stream;
        if (block->async)
                CU_OK(cu.MemAllocAsync(&block->p, bytes, stream));
        else
                CU_OK(cu.MemAlloc(&block->p, bytes));
        cu_owned(block->p, bytes);
        w->allocations++;
        CU_OK(cu_fill(w->kernels, stream, block->p, words, value));
        CU_OK(cu_watch(w->kernels, stream, block->p, words, value, 20000 + pick(w, 300000), count));
        if (!pick(w, 3))
                CU_OK(cu_check(w->kernels, stream, block->p, words, value, count));
}

/* Make @stream wait for what @from has been given so far. */
static void follow(struct worker *w, CUstream stream, CUstream from)
{
        CU_OK(cu.EventRecord(w->event, from));
        CU_OK(cu.StreamWaitEvent(stream, w->event, 0));
}

static void give(struct worker *w, struct block *block)
{
        CUstream stream = w->streams[pick(w, 2)];
        CUdeviceptr p = block->p;

        block->p = 0;
        w->frees++;
        if (!block->async && pick(w, 2)) {
                cu_disowned(p);
                CU_OK(cu.MemFree(p)); /* in use: no matter, cuMemFree allows it */
                return;
        }
        if (block->async && !pick(w, 4)) {
                CU_OK(cu.StreamSynchronize(block->last));
                cu_disowned(p);
                CU_OK(cu.MemFree(p)); /* of a pool's block, so the host must have waited */
                return;
        }
        if (stream != block->last)
                follow(w, stream, block->last);
        cu_disowned(p);
        CU_OK(cu.MemFreeAsync(p, stream));
}

static void change_stream(struct worker *w)
{
        unsigned which = pick(w, 2);
        CUstream old = w->streams[which];

        CU_OK(cu.StreamCreate(&w->streams[which], CU_STREAM_NON_BLOCKING));
        follow(w, w->streams[which], old);
        for (int i = 0; i < BLOCKS; i++)
                if (w->blocks[i].last == old)
                        w->blocks[i].last = w->streams[which];
        CU_OK(cu.StreamDestroy(old));
}

static void *work(void *argument)
{
        struct worker *w = argument;

        CU_OK(cu.CtxSetCurrent(w->context));
        CU_OK(cu.EventCreate(&w->event, CU_EVENT_DISABLE_TIMING));
        for (int i = 0; i < 2; i++)
                CU_OK(cu.StreamCreate(&w->streams[i], CU_STREAM_NON_BLOCKING));
        for (int round = 0; round < w->rounds; round++) {
                struct block *block = &w->blocks[pick(w, BLOCKS)];
                unsigned chance = pick(w, 100);

                if (block->p)
                        give(w, block);
                else
                        take(w, block);
                if (chance < 2)
                        change_stream(w);
                else if (chance < 6)
                        CU_OK(cu.StreamSynchronize(w->streams[chance & 1]));
                else if (chance < 7)
                        CU_OK(cu.CtxSynchronize());
                else if (chance < 17)
                        follow(w, w->streams[chance & 1], w->streams[!(chance & 1)]);
        }
        for (int i = 0; i < BLOCKS; i++)
                if (w->blocks[i].p)
                        give(w, &w->blocks[i]);
        for (int i = 0; i < 2; i++) {
                CU_OK(cu.StreamSynchronize(w->streams[i]));
                CU_OK(cu.StreamDestroy(w->streams[i]));
        }
        CU_OK(cu.EventDestroy(w->event));
        return NULL;
}

int main(int argc, char **argv)
{
        int rounds = argc > 1 ? atoi(argv[1]) : 200;
        int threads = argc > 2 ? atoi(argv[2]) : 4;
        unsigned seed = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
        struct worker workers[THREADS_MAX] = {0};
        CUcontext context = cu_start(0);
        unsigned allocations = 0, frees = 0;
        struct cu_kernels kernels;
        uint32_t *mismatches;
        bool wrong;

        if (threads > THREADS_MAX)
                threads = THREADS_MAX;
        cu_load_kernels(&kernels);
        mismatches = cu_counter(1);
        for (int i = 0; i < threads; i++) {
                workers[i] = (struct worker){
                        .context = context,
                        .kernels = &kernels,
                        .mismatches = mismatches,
                        .seed = seed * 100 + (unsigned)i,
                        .rounds = rounds,
                        .serial = 1 + ((uint32_t)i << 24),
                };
                if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
                        return 99;
        }
        for (int i = 0; i < threads; i++) {
                pthread_join(workers[i].thread, NULL);
                allocations += workers[i].allocations;
                frees += workers[i].frees;
        }
        CU_OK(cu.CtxSynchronize());
        printf("allocations %u frees %u mismatches %u\n", allocations, frees, *mismatches);
        wrong = *mismatches || allocations != frees;
        CU_OK(cu.MemFreeHost(mismatches));
        return wrong;
}
