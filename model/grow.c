/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grow -- where more memory goes, and what makes way
 */

#include "grow.h"

#include "action.h"
#include "layout.h"
#include "piece.h"
#include "segment.h"
#include "state.h"
#include "trim.h"

#define HOLES_MAX 16 /* looked at */
#define WIDEN_MAX 8  /* neighbours on each side */
#define WAYS_MAX  64 /* steps in which a request has others make way */
#define LITTLE    4  /* parts of a piece: what is smaller than one moves last */
#define LITTLES   4  /* grains of that may be held beyond what the pool may hold */

/* Where a request would go. */
struct plan {
        struct spm_block *first; /* the first of the tiles that it may touch */
        uint64_t start;
        uint64_t end;
        uint64_t missing; /* bytes that are not backed */
};

struct piece {
        uint64_t address;
        uint64_t size;
};

/* What has to be there: room for the block, or for a run of slots of its class, so much of it that
 * it is found whatever the alignment. A block by itself is nearly always found where it fits just
 * so, and is not given more until that has been tried. 0 if that cannot be counted. */
static size_t wanted_size(const struct spm_want *want, bool again)
{
        const struct spm_bins *bins = &want->heap->ready;
        size_t enough;

        if (want->klass != SPM_NO_CLASS)
                return spm_fit_enough(bins, spm_slab_run_size(want->pool, want->size),
                                      want->pool->page);
        if (!again)
                return want->size;
        enough = spm_fit_enough(bins, want->size, want->align);
        return enough < want->size ? 0 : enough;
}

bool spm_grow_is_past_cap(const struct spm_pool_state *pool, uint64_t size)
{
        const struct spm_pool_config *config = &pool->config;

        return config->max_size && (pool->reserved_bytes > config->max_size ||
                                    size > config->max_size - pool->reserved_bytes);
}

/* where */

/* @own: what is freed to the stream that asks is as good, as it is stitched to what comes beside
 * it. */
static bool is_free(const struct spm_block *block, const struct spm_lane *own)
{
        return spm_block_is(block, SPM_BLOCK_HOLE) || spm_fit_may_stitch(block, own);
}

/* The part of a hole that backs [start, end), in whole grains. Return: false if there is none. */
static bool hole_part(const struct spm_block *tile, uint64_t start, uint64_t end, uint64_t *from,
                      uint64_t *to)
{
        uint64_t mask = tile->area->pool->config.grain - 1;

        if (!spm_block_is(tile, SPM_BLOCK_HOLE))
                return false;
        *from = start & ~mask;
        if (*from < tile->address)
                *from = tile->address;
        *to = (end + mask) & ~mask;
        if (*to > tile->address + tile->size)
                *to = tile->address + tile->size;
        return *from < *to;
}

static uint64_t missing(const struct spm_block *tile, uint64_t start, uint64_t end)
{
        uint64_t sum = 0;

        for (; tile && tile->address < end; tile = tile->next) {
                uint64_t from;
                uint64_t to;

                if (hole_part(tile, start, end, &from, &to))
                        sum += to - from;
        }
        return sum;
}

static void consider(struct plan *plan, struct spm_block *first, uint64_t start, size_t size)
{
        uint64_t bytes = missing(first, start, start + size);

        if (!bytes || (plan->first &&
                       (plan->missing < bytes || (plan->missing == bytes && plan->start <= start))))
                return;
        *plan = (struct plan){first, start, start + size, bytes};
}

/* A hole, with the free tiles beside it: the request goes to one of the two ends. */
static void consider_hole(struct plan *plan, const struct spm_lane *own, struct spm_block *hole,
                          size_t size, size_t align)
{
        const struct spm_block *last = hole;
        struct spm_block *first = hole;
        unsigned int steps;
        uint64_t start;
        uint64_t end;

        for (steps = 0; steps < WIDEN_MAX && is_free(first->previous, own); steps++)
                first = first->previous;
        for (steps = 0; steps < WIDEN_MAX && is_free(last->next, own); steps++)
                last = last->next;
        start = (first->address + (align - 1)) & ~(uint64_t)(align - 1);
        end = last->address + last->size;
        if (end < start || end - start < size)
                return;
        consider(plan, first, start, size);
        if (last->next)
                consider(plan, first, (end - size) & ~(uint64_t)(align - 1), size);
}

static void look(const struct spm_want *want, const struct spm_lane *own, size_t size,
                 struct plan *plan)
{
        size_t align = want->klass == SPM_NO_CLASS ? want->align : 1;
        const struct spm_heap *heap = want->heap;
        struct spm_block *hole = heap->holes;
        unsigned int looked;

        *plan = (struct plan){0};
        for (looked = 0; hole && looked < HOLES_MAX; looked++, hole = hole->right)
                if (!hole->area->is_lone)
                        consider_hole(plan, own, hole, size, align);
        if (heap->wild)
                consider_hole(plan, own, heap->wild, size, align);
}

static bool find_place(const struct spm_want *want, const struct spm_request *request, size_t size,
                       struct plan *plan)
{
        const struct spm_lane *own =
                request->apart || want->klass != SPM_NO_CLASS ? NULL : spm_fit_own_lane(want);

        look(want, own, size, plan);
        /* Nothing is missing where it has freed so much, which was in vain. */
        if (!plan->first && own)
                look(want, NULL, size, plan);
        return plan->first != NULL;
}

/* asking */

static enum spm_status obtain(struct spm_model *model, struct spm_pool_state *pool,
                              const struct piece *piece, uint64_t preferred, uint64_t missing,
                              bool last, struct spm_actions *actions)
{
        struct spm_action *action;

        if (pool->config.provider == SPM_PROVIDER_MODEL) {
                struct spm_segment_state *segment;
                enum spm_status status = spm_segment_new(model, pool, piece->address,
                                                         (size_t)piece->size, NULL, &segment);

                pool->grows += status == SPM_OK;
                return status;
        }
        action = spm_action_add(actions, SPM_ACT_GROW);
        action->context = pool->config.context;
        action->pool = pool->object.id;
        action->address = piece->address;
        action->size = (size_t)piece->size;
        action->last = last;
        action->preferred = (size_t)preferred;
        action->missing = (size_t)missing;
        return SPM_OK;
}

/* What is to be backed of one hole, [*from, *to), to a whole piece, if that is allowed. */
static void round_up(const struct spm_block *hole, const struct spm_measure *measure,
                     uint64_t *from, uint64_t *to)
{
        const struct spm_pool_state *pool = hole->area->pool;
        uint64_t size = *to - *from;
        uint64_t more = (size + measure->piece - 1) / measure->piece * measure->piece - size;
        uint64_t above = hole->address + hole->size - *to;
        uint64_t below = *from - hole->address;

        if (measure->exact || measure->whole || spm_grow_is_past_cap(pool, size + more) ||
            pool->reserved_bytes + size + more > measure->allowed)
                return;
        if (above)
                *to += more < above ? more : above;
        else
                *from -= more < below ? more : below;
}

/* The size of the next piece of [from, to). */
static uint64_t next_piece(const struct plan *plan, const struct spm_measure *measure,
                           uint64_t grain, uint64_t from, uint64_t to)
{
        uint64_t covered = spm_least(plan->end & ~(grain - 1), to);
        uint64_t piece = measure->piece;

        if (measure->whole)
                return to - from;
        if (from >= plan->start && from < covered)
                piece = spm_most(piece, spm_least(measure->cover, covered - from));
        return spm_least(piece, to - from);
}

/* What to ask for of the plan, at most @room pieces. Asking changes the tiles, so this comes first.
 */
static unsigned int cut(const struct plan *plan, const struct spm_measure *measure,
                        struct piece *pieces, unsigned int room)
{
        const struct spm_block *tile = plan->first;
        uint64_t grain = tile->area->pool->config.grain;
        unsigned int count = 0;
        uint64_t from;
        uint64_t to;

        for (; tile && tile->address < plan->end; tile = tile->next) {
                if (!hole_part(tile, plan->start, plan->end, &from, &to))
                        continue;
                round_up(tile, measure, &from, &to);
                for (; from < to && count < room; count++) {
                        uint64_t size = next_piece(plan, measure, grain, from, to);

                        pieces[count] = (struct piece){from, size};
                        from += size;
                }
        }
        return count;
}

/* Not for ever: of two requests each may move what the other has just obtained. To move a little
 * costs as much as to move a piece, and more will be wanted there soon. */
static void make_way(struct spm_model *model, struct spm_pool_state *pool,
                     const struct spm_request *request, uint64_t size, const struct plan *plan,
                     const struct spm_measure *measure, struct spm_actions *actions)
{
        uint64_t target = measure->allowed > size ? measure->allowed - size : 0;

        if (measure->exact || measure->whole || request->tries > WAYS_MAX ||
            pool->config.release_needs_idle || pool->reserved_bytes <= target)
                return;
        spm_trim_away(model, pool, target, measure->piece / LITTLE, plan->start, plan->end,
                      actions);
        if (measure->piece / LITTLE > pool->config.grain && !pool->config.max_size)
                target += LITTLES * pool->config.grain;
        spm_trim_away(model, pool, target, 0, plan->start, plan->end, actions);
}

static enum spm_status grow_range(struct spm_model *model, const struct spm_want *want,
                                  struct spm_request *request, const struct plan *plan,
                                  const struct spm_measure *measure, struct spm_actions *actions)
{
        struct spm_pool_state *pool = want->pool;
        struct piece pieces[SPM_ACTIONS_MAX];
        uint64_t bytes = 0;
        unsigned int count;
        unsigned int i;

        if (spm_grow_is_past_cap(pool, plan->missing))
                return SPM_E_OUT_OF_MEMORY;
        count = cut(plan, measure, pieces, spm_actions_room(actions));
        for (i = 0; i < count; i++) {
                enum spm_status status = obtain(model, pool, &pieces[i], pieces[i].size,
                                                plan->missing, measure->exact, actions);

                if (status)
                        return status;
                bytes += pieces[i].size;
        }
        /* If it is not found there then, it is not again where others may have been faster. */
        request->apart = bytes >= plan->missing;
        return pool->config.provider == SPM_PROVIDER_MODEL ? SPM_OK : SPM_AGAIN;
}

/* A segment of its own. */
static enum spm_status grow_anywhere(struct spm_model *model, const struct spm_want *want,
                                     const struct spm_request *request,
                                     const struct spm_measure *measure, struct spm_actions *actions)
{
        static const struct plan nowhere;
        struct spm_pool_state *pool = want->pool;
        size_t size = wanted_size(want, true);
        const struct spm_pool_config *config = &pool->config;
        size_t grain = config->grain;
        size_t need;
        size_t usual = (size_t)measure->piece;

        if (config->provider == SPM_PROVIDER_MODEL)
                return SPM_E_OUT_OF_MEMORY;
        /* It begins at a multiple of the grain, so most alignments are for nothing. */
        if (want->klass == SPM_NO_CLASS && want->align <= grain)
                size = want->size;
        need = (size + (grain - 1)) & ~(grain - 1);
        if (!size || need < size || spm_grow_is_past_cap(pool, need))
                return SPM_E_OUT_OF_MEMORY;
        if (!pool->reserved_bytes && usual < config->initial_size)
                usual = (config->initial_size + grain - 1) & ~(grain - 1);
        if (usual < need || measure->exact || measure->whole || spm_grow_is_past_cap(pool, usual))
                usual = need;
        make_way(model, pool, request, usual, &nowhere, measure, actions);
        if (spm_actions_room(actions))
                obtain(model, pool, &(struct piece){0, need}, usual, need, measure->exact, actions);
        return SPM_AGAIN;
}

/* There is so much idle memory that its pieces move here, or soon will. They are of the usual size,
 * and to map them elsewhere costs no more than to give them back for a large one, unless there are
 * very many. */
static bool is_crowded(const struct spm_pool_state *pool, const struct plan *plan,
                       const struct spm_measure *measure)
{
        return pool->reserved_bytes + plan->missing > measure->allowed &&
               pool->ready_bytes + pool->pending_bytes >= plan->missing;
}

enum spm_status spm_grow_ask(struct spm_model *model, const struct spm_want *want,
                             struct spm_request *request, bool exact, struct spm_actions *actions)
{
        size_t size = wanted_size(want, request->tries > 1);
        struct spm_measure measure;
        struct plan plan;

        if (want->pool->layout)
                return spm_routing_grow(model, want, exact, actions);
        if (!size)
                return SPM_E_OUT_OF_MEMORY;
        measure = spm_piece_measure(want->pool, size, exact);
        measure.whole = request->whole;
        if (want->pool->config.range_size && find_place(want, request, size, &plan)) {
                if (is_crowded(want->pool, &plan, &measure))
                        measure.cover = measure.least;
                make_way(model, want->pool, request, plan.missing, &plan, &measure, actions);
                /* That has made new holes, and perhaps a better place. */
                if (find_place(want, request, size, &plan))
                        return grow_range(model, want, request, &plan, &measure, actions);
        }
        return grow_anywhere(model, want, request, &measure, actions);
}

enum spm_status spm_grow_page(struct spm_model *model, struct spm_pool_state *pool,
                              uint64_t address, size_t size, bool last, struct spm_actions *actions)
{
        const struct piece page = {address, size};
        enum spm_status status = SPM_AGAIN;

        if (!spm_actions_room(actions))
                return status;
        status = obtain(model, pool, &page, size, size, last, actions);
        return status || pool->config.provider == SPM_PROVIDER_MODEL ? status : SPM_AGAIN;
}

uint64_t spm_grow_excess(const struct spm_want *want, const struct spm_request *request)
{
        const struct spm_pool_state *pool = want->pool;
        size_t size = wanted_size(want, false);
        uint64_t allowed;
        struct plan plan;

        if (!size || !pool->config.range_size || !find_place(want, request, size, &plan))
                return 0;
        allowed = spm_piece_measure(pool, size, false).allowed;
        return pool->reserved_bytes + plan.missing > allowed
                       ? pool->reserved_bytes + plan.missing - allowed
                       : 0;
}

enum spm_status spm_grow_initial(struct spm_model *model, struct spm_pool_state *pool, size_t size)
{
        struct spm_segment_state *segment;
        enum spm_status status =
                spm_segment_new(model, pool, pool->config.range_base, size, NULL, &segment);

        pool->grows += status == SPM_OK;
        return status == SPM_E_INVALID_VALUE ? SPM_E_OUT_OF_MEMORY : status;
}
