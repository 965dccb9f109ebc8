/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routing -- which shelf serves a request, and when it grows
 *
 * A request climbs the same ladder as one of a heap (ladder.h). Until the rung where pools grow
 * only the first shelf that takes its size is asked. From there on a shelf that is full is passed
 * over for the next one that takes it (C38), so what a cap costs first is a question or two, and a
 * spill after that.
 */

#include "layout.h"

#include "front.h"
#include "grow.h"
#include "ladder.h"
#include "piece.h"
#include "serve.h"
#include "state.h"
#include "trim.h"

#define LOOKS 5 /* in a period, and idle pages go when they were so often (C20) */

/* which shelf */

/* From the shelf @index on. */
static struct spm_shelf *next_shelf(struct spm_layout_state *layout, unsigned int index,
                                    uint64_t size)
{
        for (; index < layout->layout.count; index++)
                if (spm_shelf_accepts(&layout->shelves[index], size))
                        return &layout->shelves[index];
        return NULL;
}

static struct spm_shelf *first_shelf(const struct spm_want *want)
{
        struct spm_layout_state *layout = want->pool->layout;

        if (spm_persist_takes(want))
                return &layout->persistent;
        return next_shelf(layout, 0, want->size);
}

/* NULL behind a shelf that is not full, or where there is no other. */
static struct spm_shelf *spill_from(const struct spm_shelf *shelf, const struct spm_want *want)
{
        if (!spm_shelf_is_full(shelf))
                return NULL;
        return next_shelf(want->pool->layout, shelf->index + 1, want->size);
}

/* growing */

static void shed_direct(struct spm_model *model, const struct spm_shelf *shelf, uint64_t more,
                        struct spm_actions *actions)
{
        struct spm_area *page = shelf->first;

        while (page && shelf->config.reclaim && shelf->reserved + more > shelf->config.reclaim) {
                struct spm_area *next = page->page_next;

                spm_trim_page(model, page->first, actions);
                page = next;
        }
}

enum spm_status spm_routing_grow(struct spm_model *model, const struct spm_want *want, bool exact,
                                 struct spm_actions *actions)
{
        struct spm_shelf *shelf = first_shelf(want);
        struct spm_pool_state *pool = want->pool;
        uint64_t address = 0;
        uint64_t size;

        while (shelf && spm_shelf_is_full(shelf))
                shelf = spill_from(shelf, want);
        size = shelf ? spm_shelf_next_page(shelf, pool, want->size, exact) : 0;
        if (!size)
                return SPM_E_OUT_OF_MEMORY;
        if (shelf->config.kind == SPM_SHELF_DIRECT && !pool->config.release_needs_idle)
                shed_direct(model, shelf, size, actions);
        if (spm_grow_is_past_cap(pool, size))
                return SPM_E_OUT_OF_MEMORY;
        if (pool->config.range_size) {
                address =
                        spm_area_gap(model, pool->config.range_base, pool->config.range_size, size);
                if (!address)
                        return SPM_E_OUT_OF_MEMORY;
        }
        return spm_grow_page(model, pool, address, (size_t)size, exact, actions);
}

/* giving back */

static void look_at(struct spm_model *model, struct spm_shelf *shelf, struct spm_actions *actions)
{
        struct spm_area *page = shelf->first;

        while (page) {
                struct spm_area *next = page->page_next;

                if (!page->page_live && ++page->page_idle >= LOOKS) {
                        page->page_idle = LOOKS;
                        spm_trim_page(model, page->first, actions);
                }
                page = next;
        }
}

/* An exclusive shelf is looked at five times in a period. */
static void look_around(struct spm_model *model, struct spm_pool_state *pool,
                        struct spm_actions *actions)
{
        struct spm_layout_state *layout = pool->layout;
        unsigned int i;

        for (i = 0; i < layout->layout.count; i++) {
                struct spm_shelf *shelf = &layout->shelves[i];
                uint64_t every = spm_most(shelf->config.period / LOOKS, 1);

                if (!shelf->config.period || layout->allocs - shelf->looked < every)
                        continue;
                shelf->looked = layout->allocs;
                look_at(model, shelf, actions);
        }
}

/* A request that was faster served, or has gone another way, has left them. One that is about to
 * take such a page asks again. */
static void shed_unclaimed(struct spm_model *model, struct spm_pool_state *pool,
                           struct spm_actions *actions)
{
        struct spm_area *page = pool->areas;

        while (page && pool->layout->unclaimed) {
                struct spm_area *next = page->next;

                if (!page->shelf)
                        spm_trim_page(model, page->first, actions);
                page = next;
        }
}

void spm_routing_synced(struct spm_model *model, struct spm_pool_state *pool,
                        struct spm_actions *actions)
{
        struct spm_layout_state *layout = pool->layout;
        unsigned int i;

        shed_unclaimed(model, pool, actions);
        if (!pool->config.release_needs_idle)
                return;
        look_around(model, pool, actions);
        for (i = 0; i < layout->layout.count; i++)
                if (layout->shelves[i].config.kind == SPM_SHELF_DIRECT)
                        shed_direct(model, &layout->shelves[i], 0, actions);
}

/* serving */

static enum spm_status serve(struct spm_model *model, const struct spm_want *want,
                             const struct spm_shelf *shelf, const struct spm_fit *fit,
                             struct spm_block **block, struct spm_actions *actions)
{
        struct spm_want whole = *want;

        if (!spm_shelf_is_sliced(shelf))
                whole.size = fit->block->size;
        return spm_serve_fit(model, &whole, fit, block, actions);
}

/* The lane's neighbours are joined a few at a time, with a look after each. */
static bool find_more(struct spm_model *model, const struct spm_want *want,
                      const struct spm_shelf *shelf, bool internal, struct spm_fit *fit)
{
        struct spm_lane *own = spm_fit_own_lane(want);

        while (own && spm_shelf_is_sliced(shelf) && spm_limbo_join(model, own))
                if (spm_place_bare(model, want, shelf, fit))
                        return true;
        return spm_place_more(model, want, shelf, internal, fit) && !fit->donor;
}

static enum spm_status serve_from(struct spm_model *model, const struct spm_want *want,
                                  struct spm_shelf *shelf, bool internal, struct spm_block **block,
                                  struct spm_actions *actions)
{
        enum spm_status status = SPM_E_UNKNOWN;
        struct spm_fit fit;

        if (spm_place_bare(model, want, shelf, &fit))
                status = serve(model, want, shelf, &fit, block, actions);
        if (status == SPM_E_UNKNOWN && spm_shelf_claim(shelf, want->pool, want->size) &&
            spm_place_bare(model, want, shelf, &fit))
                status = serve(model, want, shelf, &fit, block, actions);
        if (status == SPM_E_UNKNOWN && find_more(model, want, shelf, internal, &fit))
                status = serve(model, want, shelf, &fit, block, actions);
        return status;
}

static void count_spills(const struct spm_want *want, struct spm_shelf *first,
                         const struct spm_shelf *last)
{
        struct spm_shelf *shelf = first;

        for (; shelf != last; shelf = next_shelf(want->pool->layout, shelf->index + 1, want->size))
                shelf->spills++;
}

static enum spm_status serve_any(struct spm_model *model, const struct spm_want *want,
                                 const struct spm_request *request, struct spm_block **block,
                                 struct spm_actions *actions)
{
        struct spm_shelf *first = first_shelf(want);
        struct spm_shelf *shelf = first;
        enum spm_status status = SPM_E_UNKNOWN;

        while (shelf && status == SPM_E_UNKNOWN) {
                status = serve_from(model, want, shelf, spm_ladder_is_short(request), block,
                                    actions);
                if (status == SPM_OK)
                        count_spills(want, first, shelf);
                shelf = spm_ladder_grows(request) ? spill_from(shelf, want) : NULL;
        }
        return status;
}

bool spm_routing_internal(struct spm_model *model, const struct spm_want *want, struct spm_fit *fit)
{
        struct spm_shelf *shelf = first_shelf(want);

        *fit = (struct spm_fit){0};
        return shelf && spm_place_more(model, want, shelf, true, fit);
}

/* requests */

/* Why it was refused: all shelves that take it are full, or nobody has more memory. */
static void note_refusal(const struct spm_want *want)
{
        struct spm_layout_error *refusal = &want->pool->layout->refusal;
        const struct spm_shelf *shelf = first_shelf(want);
        const struct spm_shelf *next;

        /* Only a persistent page took this size, and it has gone meanwhile. */
        if (!shelf)
                return;
        for (next = spill_from(shelf, want); next; next = spill_from(shelf, want))
                shelf = next;
        *refusal = (struct spm_layout_error){
                .fault = SPM_LAYOUT_CAPACITY_EXCEEDED,
                .index = shelf->index,
                .value = want->requested,
                .limit = spm_shelf_is_full(shelf) ? shelf->pages_most * shelf->page
                                                  : shelf->reserved,
                .in_use = shelf->requested,
        };
}

static enum spm_status refuse_size(const struct spm_want *want)
{
        struct spm_layout_state *layout = want->pool->layout;
        uint64_t most = 0;
        unsigned int i;

        for (i = 0; i < layout->layout.count; i++)
                most = spm_most(most, spm_shelf_most(&layout->shelves[i]));
        layout->refusal = (struct spm_layout_error){
                .fault = SPM_LAYOUT_TOO_BIG, .value = want->requested, .limit = most};
        return SPM_E_TOO_BIG;
}

static enum spm_status climb(struct spm_model *model, struct spm_want *want,
                             struct spm_request *request, struct spm_block **block,
                             struct spm_actions *actions)
{
        enum spm_status status;

        do {
                status = serve_any(model, want, request, block, actions);
                if (status != SPM_E_UNKNOWN)
                        return status;
                if (actions->count)
                        return SPM_AGAIN;
                status = spm_ladder_step(model, want, request, actions);
                /* What was missed may be memory that is the sole stream's to have early. */
                if (!want->stream && want->pool->config.kind != SPM_POOL_ASYNC)
                        want->stream = spm_work_early(want->pool->work);
        } while (status == SPM_OK);
        return status;
}

static enum spm_status make_want(struct spm_model *model, const struct spm_request *request,
                                 struct spm_want *want)
{
        size_t size = request->size + request->extra;

        if (size >= request->size)
                want->size = spm_pool_reserve_size(want->pool, size, &want->align);
        if (want->size < request->size)
                return SPM_E_INVALID_VALUE;
        want->heap = &want->pool->heaps[0];
        want->klass = SPM_NO_CLASS;
        if (want->pool->config.kind == SPM_POOL_ASYNC) {
                want->stream = spm_subject_usable(model, request->stream);
                return want->stream ? SPM_OK : SPM_E_UNKNOWN;
        }
        want->stream = spm_work_early(want->pool->work);
        return SPM_OK;
}

/* As spm_alloc() does, which is told by hand there for the sake of its length. */
static void answer(const struct spm_block *block, struct spm_allocation *allocation)
{
        bool is_async = block->area->pool->config.kind == SPM_POOL_ASYNC;

        spm_block_describe(block, allocation);
        allocation->announce = !is_async && block->dep_count;
        allocation->unseen = is_async && block->dep_count > 1 && !block->belted;
}

enum spm_status spm_routing_alloc(struct spm_model *model, struct spm_pool_state *pool,
                                  struct spm_request *request, struct spm_allocation *allocation,
                                  struct spm_actions *actions)
{
        struct spm_want want = {.pool = pool, .requested = request->size, .user = request->user};
        struct spm_block *block = NULL;
        enum spm_status status = make_want(model, request, &want);

        if (status)
                return status;
        if (!first_shelf(&want))
                return spm_model_finish(model, refuse_size(&want), actions);
        status = climb(model, &want, request, &block, actions);
        if (status == SPM_OK) {
                pool->hits += !block->fresh;
                spm_shelf_served(pool->layout, block);
                answer(block, allocation);
                if (!pool->config.release_needs_idle)
                        look_around(model, pool, actions);
        } else if (status == SPM_E_OUT_OF_MEMORY) {
                note_refusal(&want);
        }
        return spm_model_finish(model, status, actions);
}
