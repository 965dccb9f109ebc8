/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First -- the kernel's stream was the only one with work before
 *
 * Where one stream alone has work, an allocator may take its memory back at once
 * and order newcomers behind that stream when the first of them comes. If it does
 * so behind all that the stream has by then, the newcomer waits for a kernel that
 * only it would have ended.
 *
 * Each case does it in every way: what the second stream does first, and how it
 * opens the gate.
 */
#include "deadlock.h"

#include <time.h>

#define BLOCKS 8
#define LARGE  ((size_t)1 << 16)
#define LARGER ((size_t)1 << 20)
#define SMALL  ((size_t)2048) /* so little is freed that an allocator may leave it alone */

enum step { NOTHING, SYNC_BLOCK, ASYNC_BLOCK, SYNC_COPY, STEPS };

static const char *const step_names[] = {"nothing", "cuMemAlloc", "cuMemAllocAsync",
                                         "cuMemcpyHtoD"};

struct round {
        struct ground *g;
        CUstream first, second;
        enum opener opener;
        enum step step;
        size_t bytes;
        CUdeviceptr block; /* of the second stream */
};

/* Blocks come and go, most of them while the stream is still busy. */
static void work_before(struct ground *g, CUstream stream, size_t bytes)
{
        CUdeviceptr blocks[BLOCKS];

        for (int i = 0; i < BLOCKS; i++) {
                blocks[i] = i % 2 ? take(bytes) : take_async(stream, bytes);
                fill_and_check(g, stream, blocks[i], bytes / 4);
        }
        CU_OK(cu_spin(&g->kernels, stream, 500000));
        for (int i = 0; i < BLOCKS; i++)
                if (i % 4 == 1)
                        give(blocks[i]);
                else
                        give_async(blocks[i], stream);
        churn(g, stream, bytes);
}

static void *second_begins(void *argument)
{
        struct round *r = argument;
        struct ground *g = r->g;
        uint32_t words[256];

        CU_OK(cu.CtxSetCurrent(g->context));
        if (r->step == SYNC_BLOCK || r->step == SYNC_COPY)
                r->block = take(r->bytes);
        if (r->step == ASYNC_BLOCK)
                r->block = take_async(r->second, r->bytes);
        if (r->step == SYNC_COPY) {
                memset(words, 0, sizeof(words));
                CU_OK(cu.MemcpyHtoD(r->block, words, sizeof(words)));
        } else if (r->block) {
                fill_and_check(g, r->second, r->block, r->bytes / 4);
        }
        if (r->step == ASYNC_BLOCK)
                give_async(r->block, r->second);
        open_on(g, r->second, r->opener);
        CU_OK(cu.StreamSynchronize(r->second));
        return NULL;
}

static void create(CUstream *stream)
{
        CU_OK(cu.StreamCreate(stream, CU_STREAM_NON_BLOCKING));
}

static void one_round(struct round *r, bool later, bool by_thread)
{
        pthread_t thread;

        work_before(r->g, r->first, r->bytes);
        if (!later)
                create(&r->second);
        hold(r->g, r->first, r->opener);
        if (later)
                create(&r->second);
        if (!by_thread)
                second_begins(r);
        else if (pthread_create(&thread, NULL, second_begins, r))
                exit(99);
        else
                pthread_join(thread, NULL);
        CU_OK(cu.StreamSynchronize(r->first));
        if (r->step == SYNC_BLOCK || r->step == SYNC_COPY)
                give(r->block);
        CU_OK(cu.StreamDestroy(r->second));
}

static void every_way(struct ground *g, CUstream first, bool later, bool by_thread)
{
        /* A synchronous copy works on the legacy stream, behind what that is behind. */
        int ways = (first == g->a ? STEPS : SYNC_COPY) * OPENERS;

        g->first = first;
        for (int i = 0; i < ways; i++) {
                int way = (g->start + i) % ways;
                struct round round = {.g = g,
                                      .first = first,
                                      .opener = way % OPENERS,
                                      .step = way / OPENERS,
                                      .bytes = way % 2 ? LARGE : SMALL};

                if (!ground_settle(g))
                        return;
                fprintf(stderr, "way %d: %s, opener %d\n", way, step_names[round.step],
                        round.opener);
                one_round(&round, later, by_thread);
        }
}

void case_first_own(struct ground *g)
{
        every_way(g, g->a, false, false);
}

void case_first_own_created_later(struct ground *g)
{
        every_way(g, g->a, true, false);
}

void case_first_own_other_thread(struct ground *g)
{
        every_way(g, g->a, false, true);
}

void case_first_legacy(struct ground *g)
{
        every_way(g, CU_STREAM_LEGACY, false, false);
}

void case_first_legacy_created_later(struct ground *g)
{
        every_way(g, CU_STREAM_LEGACY, true, false);
}

void case_first_legacy_other_thread(struct ground *g)
{
        every_way(g, CU_STREAM_LEGACY, true, true);
}

void case_first_blocking(struct ground *g)
{
        every_way(g, g->blocking, false, false);
}

void case_first_blocking_created_later(struct ground *g)
{
        every_way(g, g->blocking, true, true);
}

void case_first_per_thread(struct ground *g)
{
        every_way(g, CU_STREAM_PER_THREAD, false, false);
}

/*
 * What is freed in stream order behind the kernel is not free for the only stream either: whoever
 * gets it may use it on another one.
 */
void case_first_freed_behind(struct ground *g)
{
        for (int opener = 0; opener < OPENERS; opener++) {
                CUdeviceptr old = take(LARGE), new;

                churn(g, g->a, LARGE);
                fill_and_check(g, g->a, old, LARGE / 4);
                hold(g, g->a, opener);
                give_async(old, g->a);
                new = take(LARGE);
                fill_and_check(g, g->b, new, LARGE / 4);
                open_on(g, g->b, opener);
                CU_OK(cu.StreamSynchronize(g->b));
                give(new);
                if (!ground_settle(g))
                        return;
        }
}

/* Another thread frees behind the kernel, and goes on; on the bare driver the free waits. */
struct freeing {
        struct ground *g;
        CUdeviceptr block;
};

static void *free_behind(void *argument)
{
        struct freeing *freeing = argument;
        struct ground *g = freeing->g;

        CU_OK(cu.CtxSetCurrent(g->context));
        give(freeing->block);
        CU_OK(cu_spin(&g->kernels, g->first, 1000));
        return NULL;
}

/* What this thread allocates does not fit beside what is left, and then it opens the gate. */
void case_first_alloc_opens(struct ground *g)
{
        const struct timespec moment = {.tv_nsec = 50000000};
        struct freeing freeing = {g, take(40 * LARGER)};
        CUdeviceptr live = take(40 * LARGER), more;
        pthread_t thread;

        fill_and_check(g, g->first, freeing.block, 256);
        fill_and_check(g, g->first, live, 256);
        hold(g, g->first, BY_HOST_FUNCTION);
        CU_OK(pthread_create(&thread, NULL, free_behind, &freeing) ? CUDA_ERROR_UNKNOWN
                                                                   : CUDA_SUCCESS);
        nanosleep(&moment, NULL);
        more = take(60 * LARGER);
        open_by_host(g);
        pthread_join(thread, NULL);
        CU_OK(cu.StreamSynchronize(g->first));
        give(live);
        give(more);
}
