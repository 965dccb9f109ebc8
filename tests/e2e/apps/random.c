/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random -- a correct program of one thread and many streams, made from a seed
 *
 *   random SEED STEPS
 *
 * Every block has a value that all of its words must hold, and the stream that
 * used it last. A kernel on another stream is ordered behind that by an event,
 * except where the legacy stream does it. Streams come and go, captures open
 * and close, blocks are freed by every call that may free them, at any moment.
 * What is printed depends on the seed alone, not on who serves the memory.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cu.h"

#define BLOCKS  24
#define STREAMS 8

struct block {
        CUdeviceptr p;
        uint64_t words;
        uint32_t value;
        int last; /* index of the stream of its last use */
        bool async;
};

static struct {
        struct cu_kernels kernels;
        CUstream streams[STREAMS]; /* 0 legacy, 1 per-thread, 2 3 blocking, others not */
        CUevent event;
        CUdeviceptr count;
        uint32_t *mismatches;
        unsigned seed;
        struct block blocks[BLOCKS];
        uint64_t sum;
        unsigned made, freed, captures;
} run;

static unsigned pick(unsigned limit)
{
        return (unsigned)rand_r(&run.seed) / 7 % limit;
}

static bool is_blocking(int stream)
{
        return stream < 4;
}

static void follow(int stream, int from)
{
        if (stream == from)
                return;
        /* The legacy stream waits for blocking ones and is waited for by them. */
        if ((stream == 0 && is_blocking(from)) || (from == 0 && is_blocking(stream)))
                return;
        CU_OK(cu.EventRecord(run.event, run.streams[from]));
        CU_OK(cu.StreamWaitEvent(run.streams[stream], run.event, 0));
}

static void use(struct block *block, int stream)
{
        CUstream handle = run.streams[stream];

        follow(stream, block->last);
        block->last = stream;
        switch (pick(4)) {
        case 0:
                block->value += 3;
                CU_OK(cu_add(&run.kernels, handle, block->p, block->words, 3));
                break;
        case 1:
                CU_OK(cu_watch(&run.kernels, handle, block->p, block->words, block->value,
                               10000 + pick(100000), run.count));
                break;
        case 2:
                CU_OK(cu.MemsetD32Async(block->p, block->value, block->words, handle));
                break;
        default:
                CU_OK(cu_check(&run.kernels, handle, block->p, block->words, block->value,
                               run.count));
        }
}

static void take(struct block *block)
{
        int stream = (int)pick(STREAMS);

        block->words = 64 + pick(pick(6) ? 20000 : 400000);
        block->async = pick(2);
        block->value = pick(1u << 20);
        block->last = stream;
        if (block->async)
                CU_OK(cu.MemAllocAsync(&block->p, block->words * 4, run.streams[stream]));
        else
                CU_OK(cu.MemAlloc(&block->p, block->words * 4));
        cu_owned(block->p, block->words * 4);
        run.made++;
        CU_OK(cu_fill(&run.kernels, run.streams[stream], block->p, block->words, block->value));
}

static void give(struct block *block)
{
        int stream = pick(2) ? block->last : (int)pick(STREAMS);
        CUdeviceptr p = block->p;

        block->p = 0;
        run.freed++;
        if (!block->async && pick(2)) {
                cu_disowned(p);
                CU_OK(cu.MemFree(p));
                return;
        }
        if (block->async && !pick(4)) {
                CU_OK(cu.StreamSynchronize(run.streams[block->last]));
                cu_disowned(p);
                CU_OK(cu.MemFree(p));
                return;
        }
        follow(stream, block->last);
        cu_disowned(p);
        CU_OK(cu.MemFreeAsync(p, run.streams[stream]));
}

/* Read one word back, and know that it is right. */
static void look(struct block *block)
{
        CUstream stream = run.streams[block->last];
        uint32_t word = 0;

        CU_OK(cu.MemcpyDtoHAsync(&word, block->p + (block->words - 1) * 4, 4, stream));
        CU_OK(cu.StreamSynchronize(stream));
        run.sum = run.sum * 31 + word;
        if (word != block->value)
                ++*run.mismatches;
}

static void change_stream(void)
{
        int which = 4 + (int)pick(STREAMS - 4);
        CUstream old = run.streams[which];

        CU_OK(cu.StreamCreate(&run.streams[which], CU_STREAM_NON_BLOCKING));
        CU_OK(cu.EventRecord(run.event, old));
        CU_OK(cu.StreamWaitEvent(run.streams[which], run.event, 0));
        CU_OK(cu.StreamDestroy(old));
}

/* A graph with memory of its own, captured while the program's other memory comes and goes. */
static void capture(void)
{
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        CUstream stream = run.streams[7];
        struct block *other = &run.blocks[pick(BLOCKS)];
        CUgraphExec exec;
        CUgraph graph;
        CUdeviceptr p, q;

        CU_OK(cu.StreamBeginCapture(stream, mode));
        CU_OK(cu.MemAllocAsync(&p, 40000, stream));
        CU_OK(cu_fill(&run.kernels, stream, p, 10000, 77));
        CU_OK(cu.MemAlloc(&q, 50000));
        if (other->p && !other->async) {
                cu_disowned(other->p);
                CU_OK(cu.MemFree(other->p));
                other->p = 0;
                run.freed++;
        }
        CU_OK(cu_check(&run.kernels, stream, p, 10000, 77, run.count));
        CU_OK(cu.MemFree(q));
        CU_OK(cu.MemFreeAsync(p, stream));
        CU_OK(cu.StreamEndCapture(stream, &graph));
        CU_OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
        CU_OK(cu.GraphLaunch(exec, stream));
        CU_OK(cu.GraphLaunch(exec, stream));
        CU_OK(cu.StreamSynchronize(stream));
        CU_OK(cu.GraphExecDestroy(exec));
        CU_OK(cu.GraphDestroy(graph));
        run.captures++;
}

static void step(void)
{
        struct block *block = &run.blocks[pick(BLOCKS)];
        unsigned chance = pick(1000);

        if (chance < 4)
                capture();
        else if (chance < 20)
                change_stream();
        else if (chance < 40)
                CU_OK(cu.StreamSynchronize(run.streams[pick(STREAMS)]));
        else if (chance < 45)
                CU_OK(cu.CtxSynchronize());
        else if (!block->p)
                take(block);
        else if (chance < 450)
                give(block);
        else if (chance < 500)
                look(block);
        else
                use(block, (int)pick(STREAMS));
}

int main(int argc, char **argv)
{
        unsigned seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
        int steps = argc > 2 ? atoi(argv[2]) : 1000;

        cu_start(0);
        cu_load_kernels(&run.kernels);
        run.seed = seed;
        run.mismatches = cu_counter(1);
        run.count = (CUdeviceptr)(uintptr_t)run.mismatches;
        CU_OK(cu.EventCreate(&run.event, CU_EVENT_DISABLE_TIMING));
        run.streams[0] = CU_STREAM_LEGACY;
        run.streams[1] = CU_STREAM_PER_THREAD;
        for (int i = 2; i < STREAMS; i++)
                CU_OK(cu.StreamCreate(&run.streams[i],
                                      is_blocking(i) ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
        for (int i = 0; i < steps; i++)
                step();
        for (int i = 0; i < BLOCKS; i++)
                if (run.blocks[i].p)
                        give(&run.blocks[i]);
        CU_OK(cu.CtxSynchronize());
        printf("seed %u steps %d made %u freed %u captures %u sum %016llx mismatches %u\n", seed,
               steps, run.made, run.freed, run.captures, (unsigned long long)run.sum,
               *run.mismatches);
        CU_OK(cu.MemFreeHost(run.mismatches));
        return 0;
}
