/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ladder -- from a request to a block, and what to try before giving up
 *
 * A rung that asks for something ends the step, and is stood on again after
 * the answers, with a look at what may be served first. Every rung counts its
 * tries or moves a cursor, so a request climbs in a bounded number of steps
 * whatever the caller answers.
 */

#include "ladder.h"

#include <assert.h>

#include "grow.h"
#include "layout.h"
#include "limbo.h"
#include "piece.h"
#include "poll.h"
#include "quarantine.h"
#include "recall.h"
#include "serve.h"
#include "state.h"
#include "trim.h"
#include "wait.h"

#define GROW_MAX     4    /* segments by themselves */
#define PIECES_MAX   4096 /* steps in a range: a large request in small pieces takes many */
#define DONORS_MAX   2    /* streams that a request may have stamped for it */
#define SHARED_MIN   (SPM_HEAP_SMALL / 2)   /* what takes a page of the large heap */
#define SHARED_MAX   (256 * SPM_HEAP_SMALL) /* bytes in use of a pool whose heaps help each other */

#define RASH_GAP_MAX 7 /* large requests between two questions that were in vain */

enum rung {
        START,
        POLLED,
        CROWDED,
        SPARING,
        GROWING,
        INTERNAL,
        WAITING,
        RELEASING,
        REGROWING,
        TOP
};

static void step_to(struct spm_request *request, enum rung rung)
{
        request->stage = rung;
        request->tries = 0;
        request->batch = 0;
}

bool spm_ladder_is_short(const struct spm_request *request)
{
        return request->stage >= INTERNAL;
}

bool spm_ladder_grows(const struct spm_request *request)
{
        return request->stage >= GROWING;
}

/* serve */

/* A slot that is ready, of a new slab if need be; or a block that is. */
static bool find_ready(struct spm_model *model, const struct spm_want *want, struct spm_fit *fit)
{
        return spm_fit_ready(want, fit) ||
               (want->klass != SPM_NO_CLASS && spm_serve_slab(model, want) &&
                spm_fit_ready(want, fit));
}

/* A legacy stream may be unable to have a pending block now (a capture is open). */
static enum spm_status serve(struct spm_model *model, const struct spm_want *want,
                             struct spm_fit *fit, struct spm_block **block,
                             struct spm_actions *actions)
{
        enum spm_status status = spm_serve_fit(model, want, fit, block, actions);

        if (status == SPM_E_UNKNOWN && find_ready(model, want, fit))
                status = spm_serve_fit(model, want, fit, block, actions);
        return status;
}

/* Nothing is there that nobody has to wait for. */
static SPM_COLD bool find_more(struct spm_model *model, const struct spm_want *want,
                               const struct spm_request *request, struct spm_fit *fit)
{
        struct spm_lane *lane;

        lane = want->stream ? spm_lane_find(want->pool, want->stream->object.id) : NULL;
        while (lane && want->klass == SPM_NO_CLASS && spm_limbo_join(model, lane))
                if (spm_fit_bare(model, want, fit))
                        return true;
        if (spm_fit_followed(model, want, fit) || spm_fit_stitched(model, want, fit))
                return true;
        return spm_ladder_is_short(request) && spm_fit_internal(model, want, fit) && fit->belt;
}

/* Not what was just obtained for this request. Return: true to look again. */
static bool breaks_up(struct spm_model *model, const struct spm_want *want,
                      const struct spm_fit *fit, struct spm_actions *actions)
{
        return want->pool->large_segments && want->klass == SPM_NO_CLASS &&
               spm_trim_break(model, fit->block, fit->start, want->size, actions);
}

/* @found: @fit is what spm_fit_bare() has found just now. */
static inline enum spm_status try_serve(struct spm_model *model, const struct spm_want *want,
                                        const struct spm_request *request, bool found,
                                        struct spm_fit *fit, struct spm_block **block,
                                        struct spm_actions *actions)
{
        for (;;) {
                if (!found && !find_more(model, want, request, fit)) {
                        if (want->klass == SPM_NO_CLASS || !spm_serve_slab(model, want))
                                return SPM_E_UNKNOWN;
                } else if (request->stage >= GROWING || !breaks_up(model, want, fit, actions)) {
                        return serve(model, want, fit, block, actions);
                }
                found = spm_fit_bare(model, want, fit);
        }
}

/*
 * Memory is short: a small request may have a page of its own where there is no room for a run, and
 * any request may have what lies in the other heap, a page of that at least.
 */
static SPM_COLD enum spm_status try_elsewhere(struct spm_model *model, const struct spm_want *want,
                                              const struct spm_request *request,
                                              struct spm_block **block, struct spm_actions *actions)
{
        struct spm_pool_state *pool = want->pool;
        enum spm_status status = SPM_E_UNKNOWN;
        unsigned int i;

        for (i = 0; i < pool->heap_count && status == SPM_E_UNKNOWN; i++) {
                struct spm_want other = *want;
                struct spm_fit fit;

                other.heap = &pool->heaps[i];
                other.klass = SPM_NO_CLASS;
                if (want->klass != SPM_NO_CLASS || other.size < other.heap->page)
                        other.size = other.align = other.heap->page;
                if (want->klass != SPM_NO_CLASS || other.heap != want->heap)
                        status = try_serve(model, &other, request,
                                           spm_fit_bare(model, &other, &fit), &fit, block, actions);
        }
        return status;
}

/*
 * A pool of a few chunks is too small for two heaps: each would have one that is idle, and as sizes
 * change it would go to and fro between them. There, what is small goes among what is large before
 * the pool grows, though it may stay for long where something large would like to be.
 */
static bool may_share(const struct spm_want *want, const struct spm_request *request)
{
        return request->stage == GROWING && want->klass == SPM_NO_CLASS &&
               want->size >= SHARED_MIN && want->size <= SPM_HEAP_SMALL &&
               want->pool->used_high <= SHARED_MAX;
}

/* grow */

void spm_ladder_refused(struct spm_request *request)
{
        if (request->stage == GROWING)
                step_to(request, INTERNAL);
        else if (request->stage == REGROWING)
                step_to(request, TOP);
}

void spm_ladder_whole(struct spm_request *request)
{
        if (request->whole || !request->tries)
                return;
        request->whole = true;
        request->tries--;
}

/* the other rungs: did they ask for anything? */

static bool ask_internal(struct spm_model *model, const struct spm_want *want,
                         struct spm_actions *actions)
{
        struct spm_fit fit;

        bool found = want->pool->layout ? spm_routing_internal(model, want, &fit)
                                        : spm_fit_internal(model, want, &fit);

        return found && fit.donor && spm_stamp_ask(model, fit.donor->stream, true, actions);
}

static bool ask_release(struct spm_model *model, const struct spm_want *want,
                        struct spm_actions *actions)
{
        uint64_t released = 0;

        spm_trim_pool(model, want->pool, 0, 0, &released, actions);
        return released != 0;
}

/* Where what is pending is less than a quarter of that, waiting for it is of little use. */
static bool spare(const struct spm_want *want, struct spm_request *request,
                  struct spm_actions *actions)
{
        uint64_t excess;

        if (!request->may_wait || !spm_work_sole(want->pool->work))
                return false;
        excess = spm_grow_excess(want, request);
        return excess && excess / 4 <= want->pool->pending_bytes &&
               spm_wait_ask_freed(want, request, actions);
}

/* A rung that asked for nothing is left. */
static enum spm_status go_on(struct spm_request *request, bool asked, enum rung next)
{
        if (asked)
                return SPM_AGAIN;
        step_to(request, next);
        return SPM_OK;
}

/* One rung. Return: SPM_OK to look again at once. */
SPM_COLD enum spm_status spm_ladder_step(struct spm_model *model, const struct spm_want *want,
                                         struct spm_request *request, struct spm_actions *actions)
{
        enum spm_status status;

        switch ((enum rung)request->stage) {
        case START:
                if (spm_poll_ask(model, want, request, actions))
                        return SPM_AGAIN;
                if (want->pool->work)
                        spm_work_missed(model, want->pool->context);
                step_to(request, POLLED);
                return SPM_OK;
        case POLLED:
                return go_on(request,
                             request->may_wait && spm_wait_ask_pressure(want, request, actions),
                             CROWDED);
        case CROWDED:
                if (!request->tries && want->pool->magazines)
                        spm_magazine_recall(model, want->pool);
                return go_on(request, spm_poll_ask_all(model, want, request, actions), SPARING);
        case SPARING:
                return go_on(request, spare(want, request, actions), GROWING);
        case GROWING:
        case REGROWING:
                status = SPM_E_OUT_OF_MEMORY;
                if (request->tries++ < (want->pool->config.range_size ? PIECES_MAX : GROW_MAX))
                        status = spm_grow_ask(model, want, request, request->stage == REGROWING,
                                              actions);
                if (status != SPM_E_OUT_OF_MEMORY)
                        return status;
                spm_ladder_refused(request);
                return SPM_OK;
        case INTERNAL:
                if (!request->tries && spm_quarantine_end(model, want->pool))
                        return SPM_OK;
                return go_on(request,
                             request->tries++ < DONORS_MAX && ask_internal(model, want, actions),
                             WAITING);
        case WAITING:
                return go_on(request,
                             request->may_wait && spm_wait_ask_host(model, want, request, actions),
                             RELEASING);
        case RELEASING:
                return go_on(request, ask_release(model, want, actions) && actions->count,
                             REGROWING);
        case TOP:
                break;
        }
        return SPM_E_OUT_OF_MEMORY;
}

/*
 * A large request would be cut out of something larger, while frees may be complete that nobody has
 * asked about: one question is cheaper than what a bad place costs later. Where questions are in
 * vain, fewer are asked.
 */
static bool is_rash(const struct spm_want *want, const struct spm_request *request,
                    const struct spm_fit *fit)
{
        if (request->stage != START || want->size <= SPM_HEAP_SMALL ||
            want->pool->config.kind == SPM_POOL_ASYNC || want->stream ||
            !want->pool->pending_bytes || fit->block->size == want->size)
                return false;
        if (request->tries || !want->pool->rash_skip)
                return true;
        want->pool->rash_skip--;
        return false;
}

static void learn_rashness(struct spm_pool_state *pool, const struct spm_block *block,
                           const struct spm_request *request)
{
        if (block->size <= SPM_HEAP_SMALL || pool->config.kind == SPM_POOL_ASYNC)
                return;
        if (request->stage == START && request->tries) {
                pool->rash_gap = 0;
        } else if (request->stage == POLLED) {
                if (pool->rash_gap < RASH_GAP_MAX)
                        pool->rash_gap = 2 * pool->rash_gap + 1;
                pool->rash_skip = pool->rash_gap;
        }
}

static void note_served(struct spm_pool_state *pool, const struct spm_block *block,
                        const struct spm_request *request)
{
        uint64_t busy = spm_piece_busy(pool);

        pool->hits += !block->fresh;
        learn_rashness(pool, block, request);
        /* What was pending when it had to grow, after all questions, was not to be had. */
        if (request->stage >= GROWING && pool->busy_high < busy)
                pool->busy_high = busy;
}

/* What was missed may be memory that is the sole stream's to have early. */
static void look_early(struct spm_want *want)
{
        if (!want->stream && want->pool->config.kind != SPM_POOL_ASYNC)
                want->stream = spm_work_early(want->pool->work);
}

enum spm_status spm_ladder_climb(struct spm_model *model, struct spm_want *want,
                                 struct spm_request *request, struct spm_block **block,
                                 struct spm_actions *actions)
{
        enum spm_status status;
        struct spm_fit fit;

        assert(request->stage <= TOP);
        do {
                bool found = spm_fit_bare(model, want, &fit);

                status = SPM_E_UNKNOWN;
                if (!found || !is_rash(want, request, &fit))
                        status = try_serve(model, want, request, found, &fit, block, actions);
                if (status == SPM_E_UNKNOWN &&
                    (spm_ladder_is_short(request) || may_share(want, request)))
                        status = try_elsewhere(model, want, request, block, actions);
                if (status == SPM_OK)
                        note_served(want->pool, *block, request);
                if (status != SPM_E_UNKNOWN)
                        return status;
                /* The rungs count on an empty list: what was broken up goes first. */
                if (actions->count)
                        return SPM_AGAIN;
                status = spm_ladder_step(model, want, request, actions);
                look_early(want);
        } while (status == SPM_OK);
        return status;
}
