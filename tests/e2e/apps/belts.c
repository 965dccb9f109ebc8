/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Belts -- reuse that is right only if somebody adds a dependency
 *
 *   belts birth|edge|legacy|threads|own|between|internal [rounds]
 *
 * birth   a block served by stream order is given back by cuMemFree, while older
 *         work of its stream still uses the bytes (A6). The bare driver hands it
 *         on at once, so only a pool is asked for this.
 * edge    a free and an allocation on two streams, ordered by the program's event
 * legacy  a free and an allocation on the legacy stream, used on two blocking
 *         streams (H6)
 * threads the same, used on the per-thread streams of two threads that call nothing
 *         but launches with them, so that nobody else has heard of these streams
 * own     the same on one stream, which needs nothing
 * between a block that one blocking stream uses and another frees, in order by an allocation, or a
 *         free, of another block on the legacy stream and by nothing else (H6)
 * internal  (last, for a device without room for two blocks) nothing orders the two
 *         streams, and only the pending block is left: the allocator adds the dependency
 *
 * Prints how often the address came back, and the words that changed too early.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cu.h"

/* More than half of what a pool gets from the driver at once: the second block of this size is
 * the first one again, or new memory. Kernels touch the start of it. */
#define BYTES ((size_t)24 << 20)
#define WORDS ((uint64_t)1 << 16)

static struct cu_kernels kernels;
static CUdeviceptr count;
static CUstream n1, n2, b1, b2;
static CUevent event;
static CUcontext context;
static uint64_t watch_ns = 500000;

/* A block from @from, filled and watched on @user for a while. */
static CUdeviceptr watched(CUstream from, CUstream user)
{
        CUdeviceptr p;

        CU_OK(cu.MemAllocAsync(&p, BYTES, from));
        cu_owned(p, BYTES);
        CU_OK(cu_fill(&kernels, user, p, WORDS, 1));
        CU_OK(cu_watch(&kernels, user, p, WORDS, 1, watch_ns, count));
        return p;
}

static CUdeviceptr taken(CUstream from, CUstream user)
{
        CUdeviceptr p;

        CU_OK(cu.MemAllocAsync(&p, BYTES, from));
        cu_owned(p, BYTES);
        CU_OK(cu_fill(&kernels, user, p, WORDS, 2));
        return p;
}

static void release(CUdeviceptr p, CUstream stream)
{
        cu_disowned(p);
        CU_OK(cu.MemFreeAsync(p, stream));
}

static bool birth(void)
{
        CUdeviceptr p = watched(n1, n1), q, r;

        release(p, n1);
        CU_OK(cu.MemAllocAsync(&q, BYTES, n1));
        CU_OK(cu.MemFree(q));
        r = taken(n2, n2);
        release(r, n2);
        return r == p;
}

static bool edge(void)
{
        CUdeviceptr p = watched(n1, n1), q;

        release(p, n1);
        CU_OK(cu.EventRecord(event, n1));
        CU_OK(cu.StreamWaitEvent(n2, event, 0));
        q = taken(n2, n2);
        release(q, n2);
        CU_OK(cu.EventRecord(event, n2));
        CU_OK(cu.StreamWaitEvent(n1, event, 0));
        return p == q;
}

/* No other belt may have blocking streams: see threads. */
static void add_blocking(void)
{
        if (b1)
                return;
        CU_OK(cu.StreamCreate(&b1, CU_STREAM_DEFAULT));
        CU_OK(cu.StreamCreate(&b2, CU_STREAM_DEFAULT));
}

static bool legacy(void)
{
        CUdeviceptr p, q;

        add_blocking();
        p = watched(CU_STREAM_LEGACY, b1);
        release(p, CU_STREAM_LEGACY);
        q = taken(CU_STREAM_LEGACY, b2);
        release(q, CU_STREAM_LEGACY);
        return p == q;
}

static bool between(void)
{
        CUdeviceptr p, q, other;

        add_blocking();
        p = watched(b1, b1);
        CU_OK(cu.MemAllocAsync(&other, BYTES, CU_STREAM_LEGACY));
        release(p, b2);
        q = taken(b2, b2);
        release(q, b2);
        CU_OK(cu.CtxSynchronize());
        p = watched(b1, b1);
        CU_OK(cu.MemFreeAsync(other, CU_STREAM_LEGACY));
        release(p, b2);
        q = taken(b2, b2);
        release(q, b2);
        return p == q;
}

static void *fill_by_thread(void *block)
{
        CU_OK(cu.CtxSetCurrent(context));
        CU_OK(cu_fill(&kernels, CU_STREAM_PER_THREAD, *(CUdeviceptr *)block, WORDS, 2));
        CU_OK(cu.StreamSynchronize(CU_STREAM_PER_THREAD));
        return NULL;
}

static bool threads(void)
{
        CUdeviceptr p = watched(CU_STREAM_LEGACY, CU_STREAM_PER_THREAD), q;
        pthread_t thread;

        release(p, CU_STREAM_LEGACY);
        CU_OK(cu.MemAllocAsync(&q, BYTES, CU_STREAM_LEGACY));
        cu_owned(q, BYTES);
        pthread_create(&thread, NULL, fill_by_thread, &q);
        pthread_join(thread, NULL);
        release(q, CU_STREAM_LEGACY);
        return p == q;
}

static bool own(void)
{
        CUdeviceptr p = watched(n1, n1), q;

        release(p, n1);
        q = taken(n1, n1);
        release(q, n1);
        return p == q;
}

static bool internal(void)
{
        CUdeviceptr p, q;

        watch_ns = 2000000000; /* longer than anybody waits for it on the host */
        p = watched(n1, n1);
        release(p, n1);
        q = taken(n2, n2);
        release(q, n2);
        CU_OK(cu.StreamSynchronize(n2));
        return p == q;
}

int main(int argc, char **argv)
{
        static const struct {
                const char *name;
                bool (*round)(void);
        } belts[] = {
                {"birth", birth},       {"edge", edge}, {"legacy", legacy},
                {"threads", threads},   {"own", own},   {"between", between},
                {"internal", internal},
        };
        int rounds = argc > 2 ? atoi(argv[2]) : 20;
        uint32_t *mismatches;

        context = cu_start(0);
        cu_load_kernels(&kernels);
        mismatches = cu_counter(1);
        count = (CUdeviceptr)(uintptr_t)mismatches;
        CU_OK(cu.StreamCreate(&n1, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.StreamCreate(&n2, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
        for (size_t i = 0; i < sizeof(belts) / sizeof(belts[0]); i++) {
                int reused = 0;

                if (argc > 1 && strcmp(argv[1], belts[i].name))
                        continue;
                for (int round = 0; round < rounds; round++)
                        reused += belts[i].round();
                CU_OK(cu.CtxSynchronize());
                printf("%s reused %d of %d mismatches %u\n", belts[i].name, reused, rounds,
                       *mismatches);
        }
        CU_OK(cu.MemFreeHost(mismatches));
        return 0;
}
