/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs -- an allocation and a free, alone, among 4096 others, and beside kernels
 *
 * Medians are of batches, so that the clock does not count; tails are of
 * single calls, less what the clock costs.
 */
#include "micro.h"

#include <stdlib.h>
#include <string.h>

#define BATCH   64
#define BATCHES 20000
#define LIVE    4096
#define SINGLES 400000

static double samples[SINGLES];

/* One block again and again: the median of batches, in nanoseconds a pair. */
static double hot_pair(const struct micro_family *family, size_t bytes, CUstream stream)
{
        uint64_t end = micro_now() + micro.slice_ns;
        size_t count = 0;

        for (uint64_t now = 0; now < end && count < BATCHES; count++) {
                uint64_t before = micro_now();

                for (int i = 0; i < BATCH; i++) {
                        CUdeviceptr p;

                        CU_OK(family->take(&p, bytes, stream));
                        CU_OK(family->give(p, stream));
                }
                now = micro_now();
                samples[count] = (double)(now - before) / BATCH;
        }
        CU_OK(cu.CtxSynchronize());
        return micro_percentile(samples, count, 50);
}

void micro_pairs(const char *name)
{
        CUstream stream = micro_stream();

        micro_figure(name, "sync", hot_pair(&micro_sync, 4 * MICRO_KIB, NULL));
        micro_figure(name, "async", hot_pair(&micro_async, 64 * MICRO_KIB, stream));
        micro_figure(name, "legacy", hot_pair(&micro_async, 64 * MICRO_KIB, NULL));
        micro_figure(name, "pinned", hot_pair(&micro_pinned, 8, NULL));
        CU_OK(cu.StreamDestroy(stream));
}

/* churn */

struct churn {
        const struct micro_family *family;
        CUstream stream;
        uint64_t random;
        size_t count;
        CUdeviceptr blocks[LIVE];
};

static void fill(struct churn *c, size_t count)
{
        c->random = 88172645463325252u;
        c->count = count;
        for (size_t i = 0; i < count; i++)
                CU_OK(c->family->take(&c->blocks[i], micro_size(&c->random), c->stream));
}

static void empty(struct churn *c)
{
        for (size_t i = 0; i < c->count; i++)
                CU_OK(c->family->give(c->blocks[i], c->stream));
        CU_OK(cu.CtxSynchronize());
}

static void replace(struct churn *c)
{
        CUdeviceptr *block = &c->blocks[micro_random(&c->random) % c->count];

        CU_OK(c->family->give(*block, c->stream));
        CU_OK(c->family->take(block, micro_size(&c->random), c->stream));
}

static double churn(struct churn *c)
{
        uint64_t end = micro_now() + micro.slice_ns;
        size_t count = 0;

        for (uint64_t now = 0; now < end && count < BATCHES; count++) {
                uint64_t before = micro_now();

                for (int i = 0; i < BATCH; i++)
                        replace(c);
                now = micro_now();
                samples[count] = (double)(now - before) / BATCH;
        }
        return micro_percentile(samples, count, 50);
}

void micro_churn(const char *name)
{
        static struct churn c;
        CUstream stream = micro_stream();

        for (int i = 0; i < 2; i++) {
                c.family = i ? &micro_async : &micro_sync;
                c.stream = stream;
                fill(&c, micro.quick ? 256 : LIVE);
                churn(&c); /* the pool has grown, and has had its holes */
                micro_figure(name, c.family->name, churn(&c));
                empty(&c);
        }
        CU_OK(cu.StreamDestroy(stream));
}

/* tails */

static double clock_cost(void)
{
        double cost[256];

        for (size_t i = 0; i < 256; i++) {
                uint64_t before = micro_now();

                cost[i] = (double)(micro_now() - before);
        }
        return micro_percentile(cost, 256, 50);
}

/* Frees and allocations, each timed alone; kernels in between, which are not. */
static size_t mix(struct churn *c, CUstream *streams, size_t limit)
{
        uint64_t end = micro_now() + 2 * micro.slice_ns;
        uint64_t now = 0;
        size_t count = 0;

        for (size_t round = 0; now < end && count + 2 <= limit; round++) {
                CUdeviceptr *block = &c->blocks[micro_random(&c->random) % c->count];
                uint64_t before, between;

                c->stream = streams[round % 4];
                if (round % 16 == 0)
                        CU_OK(cu_fill(&micro.kernels, c->stream, *block, 64, (uint32_t)round));
                if (round % 512 == 511) /* or the queues would fill up, and launches wait */
                        CU_OK(cu.CtxSynchronize());
                before = micro_now();
                CU_OK(c->family->give(*block, c->stream));
                between = micro_now();
                CU_OK(c->family->take(block, micro_size(&c->random), c->stream));
                now = micro_now();
                samples[count++] = (double)(between - before);
                samples[count++] = (double)(now - between);
        }
        CU_OK(cu.CtxSynchronize());
        return count;
}

static void mixed(const char *name, struct churn *c)
{
        static const struct {
                const char *name;
                double percent;
        } wanted[] = {{"p50", 50}, {"p99", 99}, {"p99.9", 99.9}};
        double clock = clock_cost();
        CUstream streams[4];
        size_t count;

        for (int i = 0; i < 4; i++)
                streams[i] = micro_stream();
        c->stream = streams[0];
        fill(c, micro.quick ? 64 : 1024);
        CU_OK(cu.CtxSynchronize());
        mix(c, streams, SINGLES / 8); /* the pool has grown */
        count = mix(c, streams, SINGLES);
        for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
                double value = micro_percentile(samples, count, wanted[i].percent) - clock;
                char figure[32];

                strcpy(figure, c->family->name);
                strcat(figure, ".");
                strcat(figure, wanted[i].name);
                micro_figure(name, figure, value > 0 ? value : 0);
        }
        empty(c);
        for (int i = 0; i < 4; i++)
                CU_OK(cu.StreamDestroy(streams[i]));
}

void micro_mixed(const char *name)
{
        static struct churn c;

        for (int i = 0; i < 2; i++) {
                c.family = i ? &micro_async : &micro_sync;
                mixed(name, &c);
        }
}

/* behind a kernel */

#define KERNEL_NS 50000000
#define BEHIND    64

/*
 * Blocks that a kernel of 50 ms may use are freed while it runs. A free that
 * waits for it is the only one of its kernel, one that does not is one of many.
 */
void micro_busy(const char *name)
{
        int kernels = micro.quick ? 2 : 8;
        CUstream stream = micro_stream();
        CUdeviceptr blocks[BEHIND];
        size_t count = 0;

        for (int kernel = 0; kernel < kernels; kernel++) {
                int freed = 0;
                uint64_t launched, now;

                for (int i = 0; i < BEHIND; i++)
                        CU_OK(cu.MemAlloc(&blocks[i], MICRO_MIB));
                CU_OK(cu_spin(&micro.kernels, stream, KERNEL_NS));
                launched = now = micro_now();
                while (freed < BEHIND && now - launched < KERNEL_NS / 2) {
                        CU_OK(cu.MemFree(blocks[freed++]));
                        samples[count++] = (double)(micro_now() - now);
                        now = micro_now();
                }
                CU_OK(cu.CtxSynchronize());
                while (freed < BEHIND)
                        CU_OK(cu.MemFree(blocks[freed++]));
        }
        micro_figure(name, "p50", micro_percentile(samples, count, 50));
        micro_figure(name, "p99", micro_percentile(samples, count, 99));
        CU_OK(cu.StreamDestroy(stream));
}

/* hand-over */

/*
 * A block is used and freed on one stream, and memory of its size taken on the
 * other, which waits for an event behind the free: the same address, if whoever
 * serves it saw the event.
 */
void micro_handover(const char *name)
{
        int rounds = micro.quick ? 50 : 2000, again = 0;
        CUstream streams[2] = {micro_stream(), micro_stream()};
        uint64_t spent = 0;
        CUevent event;
        CUdeviceptr p;

        CU_OK(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
        CU_OK(cu.MemAllocAsync(&p, 8 * MICRO_MIB, streams[0]));
        for (int i = 0; i < rounds; i++) {
                CUstream from = streams[i % 2], to = streams[(i + 1) % 2];
                CUdeviceptr old = p;
                uint64_t before;

                CU_OK(cu_fill(&micro.kernels, from, p, 64, (uint32_t)i));
                before = micro_now();
                CU_OK(cu.MemFreeAsync(p, from));
                CU_OK(cu.EventRecord(event, from));
                CU_OK(cu.StreamWaitEvent(to, event, 0));
                CU_OK(cu.MemAllocAsync(&p, 8 * MICRO_MIB, to));
                spent += micro_now() - before;
                again += p == old;
                if (i % 256 == 255)
                        CU_OK(cu.CtxSynchronize());
        }
        CU_OK(cu.MemFreeAsync(p, streams[rounds % 2]));
        CU_OK(cu.CtxSynchronize());
        micro_figure(name, "reuse", 100.0 * again / rounds);
        micro_figure(name, "ns", (double)spent / rounds);
        CU_OK(cu.EventDestroy(event));
        for (int i = 0; i < 2; i++)
                CU_OK(cu.StreamDestroy(streams[i]));
}
