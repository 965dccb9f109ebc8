/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graph -- captures beside threads that allocate, and graphs launched again and again
 *
 * A graph fills and watches a block of the program, and for half of them memory
 * of its own as well. It is launched several times while other blocks come and
 * go around it; its block is freed behind the last launch, before that has run.
 *
 * In a phase whose captures are global, every thread has made itself relaxed, as
 * it must to allocate at all; in a phase of thread-local ones the capturing
 * thread makes no call that is unsafe there.
 */
#include "torture.h"

#define GRAPH_WORDS 4096

static bool may_allocate(const struct worker *w)
{
        return w->phase.capture != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
}

static void capture_work(struct worker *w, uint32_t value)
{
        const struct cu_kernels *kernels = &w->shared->kernels;
        bool memory = pick(w, 2), busy = may_allocate(w) && pick(w, 2);
        struct block *block = &w->slots[pick(w, SLOTS)];
        CUdeviceptr q = 0;

        CU_OK(cu_fill(kernels, w->capturing, w->replay.p, GRAPH_WORDS, value));
        if (memory) {
                CU_OK(cu.MemAllocAsync(&q, (size_t)4 * GRAPH_WORDS, w->capturing));
                CU_OK(cu_fill(kernels, w->capturing, q, GRAPH_WORDS, ~value));
        }
        if (busy && block->p)
                block_give(w, block);
        watch(w, w->capturing, w->replay.p, GRAPH_WORDS, value);
        if (busy && !block->p)
                block_take(w, block);
        if (memory) {
                check(w, w->capturing, q, GRAPH_WORDS, ~value);
                CU_OK(cu.MemFreeAsync(q, w->capturing));
        }
        check(w, w->capturing, w->replay.p, GRAPH_WORDS, value);
}

void replay_begin(struct worker *w)
{
        CUgraph graph;

        replay_end(w);
        CU_OK(cu.MemAlloc(&w->replay.p, (size_t)4 * GRAPH_WORDS));
        cu_owned(w->replay.p, (size_t)4 * GRAPH_WORDS);
        w->made++;
        pthread_rwlock_rdlock(&w->shared->captures);
        CU_OK(cu.StreamBeginCapture(w->capturing, w->phase.capture));
        capture_work(w, w->serial++);
        CU_OK(cu.StreamEndCapture(w->capturing, &graph));
        pthread_rwlock_unlock(&w->shared->captures);
        CU_OK(cu.GraphInstantiateWithFlags(&w->replay.exec, graph, 0));
        CU_OK(cu.GraphDestroy(graph));
        w->replay.launches = 1 + pick(w, 6);
        replay_launch(w);
}

/* A launch follows the earlier ones of the same graph, on whatever stream it is. */
void replay_launch(struct worker *w)
{
        stream_launch(w, w->replay.exec, stream_nth(w, pick(w, 1u << 20)));
        if (!--w->replay.launches)
                replay_end(w);
}

void replay_end(struct worker *w)
{
        if (!w->replay.exec)
                return;
        cu_disowned(w->replay.p);
        CU_OK(cu.MemFree(w->replay.p));
        w->freed++;
        CU_OK(cu.GraphExecDestroy(w->replay.exec));
        w->replay = (struct replay){0};
}
