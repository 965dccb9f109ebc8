/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams -- which streams a thread may use, and what is in order
 *
 * Correct programs order the uses of a block by events, except where streams do
 * it themselves: one stream, or the legacy stream and a blocking one. An event
 * that is not needed is not recorded, because it would hide an allocator's mistake.
 */
#include "torture.h"

void streams_open(struct worker *w)
{
        for (int i = 0; i < 2; i++)
                CU_OK(cu.StreamCreate(&w->own[i], CU_STREAM_NON_BLOCKING));
        CU_OK(cu.StreamCreate(&w->blocking, CU_STREAM_DEFAULT));
        CU_OK(cu.StreamCreate(&w->capturing, CU_STREAM_NON_BLOCKING));
}

void streams_close(struct worker *w)
{
        for (int i = 0; i < 2; i++)
                CU_OK(cu.StreamDestroy(w->own[i]));
        CU_OK(cu.StreamDestroy(w->blocking));
        CU_OK(cu.StreamDestroy(w->capturing));
}

static CUstream any_nth(const struct worker *w, unsigned number)
{
        const CUstream streams[MANY] = {
                w->own[0], w->own[1],   w->shared->own,      w->own[0],
                w->own[1], w->blocking, w->shared->blocking, CU_STREAM_PER_THREAD,
        };

        if (w->phase.apart)
                return streams[number % APART];
        /* The legacy stream would put everything blocking into one row. */
        return number % 29 ? streams[number % MANY] : CU_STREAM_LEGACY;
}

CUstream stream_nth(struct worker *w, unsigned number)
{
        if (w->phase.intruders && number % 211 == 0)
                return any_nth(w, number / 211);
        switch (w->phase.kind) {
        case ONE_LEGACY:
                return CU_STREAM_LEGACY;
        case ONE_OWN:
                return w->shared->own;
        case ONE_BLOCKING:
                return number % 2 ? w->shared->blocking : CU_STREAM_LEGACY;
        default:
                return any_nth(w, number);
        }
}

CUstream stream_for_new_block(struct worker *w)
{
        unsigned number = pick(w, 1u << 20);

        /* What one stream has just given back, another one writes to. */
        return w->phase.intruders && !pick(w, 32) ? any_nth(w, number) : stream_nth(w, number);
}

bool legacy_is_allowed(const struct worker *w)
{
        if (w->phase.kind == SEVERAL)
                return !w->phase.apart;
        return w->phase.kind != ONE_OWN || w->phase.intruders;
}

/* Its handle means nothing from now on, or something else. */
static void leave(struct worker *w, CUstream old)
{
        for (int i = 0; i < SLOTS; i++) {
                if (w->slots[i].last != old)
                        continue;
                mark(&w->slots[i]);
                w->slots[i].last = NULL;
        }
}

static void replace(CUstream *place, unsigned flags)
{
        CU_OK(cu.StreamDestroy(*place));
        CU_OK(cu.StreamCreate(place, flags));
}

void stream_renew(struct worker *w)
{
        bool blocking = !pick(w, 3);
        CUstream *place = blocking ? &w->blocking : &w->own[pick(w, 2)];

        leave(w, *place);
        replace(place, blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING);
}

void stream_renew_shared(struct worker *w)
{
        leave(w, w->shared->own);
        pthread_barrier_wait(&w->shared->barrier);
        if (!w->number)
                replace(&w->shared->own, CU_STREAM_NON_BLOCKING);
        pthread_barrier_wait(&w->shared->barrier);
}

void stream_launch(struct worker *w, CUgraphExec exec, CUstream stream)
{
        pthread_rwlock_wrlock(&w->shared->launches);
        CU_OK(cu.GraphLaunch(exec, stream));
        pthread_rwlock_unlock(&w->shared->launches);
}

/* ---- order ---- */

static bool is_blocking(const struct worker *w, CUstream stream)
{
        return stream == CU_STREAM_PER_THREAD || stream == w->blocking ||
               stream == w->shared->blocking;
}

static bool in_order(const struct worker *w, CUstream later, CUstream earlier)
{
        return later == earlier || (later == CU_STREAM_LEGACY && is_blocking(w, earlier)) ||
               (earlier == CU_STREAM_LEGACY && is_blocking(w, later));
}

void mark(struct block *block)
{
        if (!block->marked && block->last)
                CU_OK(cu.EventRecord(block->event, block->last));
        block->marked = block->marked || block->last;
}

void follow(struct worker *w, CUstream stream, struct block *block)
{
        bool unused = !block->last && !block->marked;

        if (unused || (block->last && in_order(w, stream, block->last)))
                return;
        mark(block);
        pthread_rwlock_rdlock(&w->shared->launches);
        CU_OK(cu.StreamWaitEvent(stream, block->event, 0));
        pthread_rwlock_unlock(&w->shared->launches);
}

void used(struct block *block, CUstream stream)
{
        block->last = stream;
        block->marked = false;
}
