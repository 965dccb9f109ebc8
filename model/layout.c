/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layout -- installed, replaced, and asked about
 *
 * Part of the front door (model.c). A pool that is given a layout has nothing in it: its heap, and
 * the areas of its range, go, and pages come as they are asked for. What is persistent outlives the
 * layout it was allocated under, so it is taken along from one to the next (C36).
 */

#include "layout.h"

#include <string.h>

#include "front.h"
#include "host.h"
#include "magazine.h"
#include "state.h"
#include "trim.h"

/* what may stand in the way */

static bool counts(const struct spm_area *area, bool persistent)
{
        return persistent || !area->shelf || area->shelf->config.kind != SPM_SHELF_PERSISTENT;
}

static void add_use(const struct spm_block *block, struct spm_layout_error *error)
{
        if (spm_block_is(block, SPM_BLOCK_LIVE))
                error->value += block->requested;
        else if (spm_block_is(block, SPM_BLOCK_SEALED) || spm_block_is(block, SPM_BLOCK_KEPT) ||
                 spm_block_is(block, SPM_BLOCK_PENDING) || spm_block_is(block, SPM_BLOCK_HELD))
                error->limit += block->size;
}

/* Slots are looked at by what the pool has counted of them: a layout has none. */
static bool is_in_use(const struct spm_pool_state *pool, bool persistent,
                      struct spm_layout_error *error)
{
        const struct spm_area *area;
        const struct spm_block *block;

        if (!pool->layout) {
                error->value = pool->used_bytes;
                error->limit = pool->pending_bytes + pool->sealed_bytes;
                return pool->live_blocks || error->limit;
        }
        for (area = pool->areas; area; area = area->next)
                for (block = area->first; block && counts(area, persistent); block = block->next)
                        add_use(block, error);
        return error->value || error->limit;
}

/* Segments that a layout would leave behind. */
static bool has_left(const struct spm_pool_state *pool, bool persistent)
{
        const struct spm_area *area = pool->areas;

        while (area && (!area->segment_count || !counts(area, persistent)))
                area = area->next;
        return area != NULL;
}

static bool is_idle(const struct spm_block *block)
{
        return spm_block_is(block, SPM_BLOCK_READY) || spm_block_is(block, SPM_BLOCK_SEALED);
}

/* Persistent pages that nobody uses go as well; those in use stay. */
static bool has_idle(const struct spm_pool_state *pool)
{
        const struct spm_area *area = pool->areas;

        while (area && (!area->segment_count || !is_idle(area->first) || counts(area, false)))
                area = area->next;
        return area != NULL;
}

/* One that serves nothing any more is not in the way, and its owner may be long in ending it. */
static bool has_magazine(const struct spm_pool_state *pool)
{
        const struct spm_magazine *magazine = pool->magazines;

        while (magazine && magazine->dead)
                magazine = magazine->next;
        return magazine != NULL;
}

static const char *unsupported(const struct spm_pool_state *pool)
{
        if (has_magazine(pool))
                return "a magazine";
        if (pool->config.large_align > pool->config.grain)
                return "large_align above the grain";
        return NULL;
}

/* replacing */

static struct spm_layout_state *make_layout(struct spm_model *model,
                                            const struct spm_pool_state *pool,
                                            const struct spm_layout *layout)
{
        static const struct spm_shelf_config persistent = {.kind = SPM_SHELF_PERSISTENT};
        struct spm_layout_state *made;
        unsigned int i;

        made = spm_host_new(model, sizeof(*made) + layout->count * sizeof(made->shelves[0]));
        if (!made)
                return NULL;
        memcpy(&made->layout, layout, sizeof(*layout));
        for (i = 0; i < layout->count; i++)
                spm_shelf_init(&made->shelves[i], pool, &layout->shelves[i], i);
        spm_shelf_init(&made->persistent, pool, &persistent, layout->count);
        return made;
}

/* Marks start anew, also those of what is taken along (C37). */
static void take_along(struct spm_layout_state *to, const struct spm_layout_state *from)
{
        unsigned int index = to->persistent.index;
        struct spm_area *page;

        to->windows = from->windows;
        to->windows_now = from->windows_now;
        to->persistent = from->persistent;
        to->persistent.index = index;
        to->persistent.pages_peak = from->persistent.pages;
        to->persistent.largest_alloc = 0;
        to->persistent.pages_unmapped = 0;
        for (page = to->persistent.first; page; page = page->page_next)
                page->shelf = &to->persistent;
}

void spm_routing_forget(struct spm_model *model, struct spm_pool_state *pool)
{
        spm_host_free(model, pool->layout);
        pool->layout = NULL;
}

static void put_layout(struct spm_model *model, struct spm_pool_state *pool,
                       struct spm_layout_state *made)
{
        if (pool->layout)
                take_along(made, pool->layout);
        else
                spm_pool_leave_heap(model, pool);
        spm_routing_forget(model, pool);
        pool->layout = made;
        pool->is_apart = true;
        pool->detour = true;
}

/* A pool that cannot have its heap again keeps its layout. */
static enum spm_status put_heap(struct spm_model *model, struct spm_pool_state *pool)
{
        struct spm_layout_state *old = pool->layout;
        enum spm_status status;

        pool->layout = NULL;
        status = spm_pool_make_heap(model, pool);
        if (status) {
                spm_pool_leave_heap(model, pool);
                pool->layout = old;
                return status;
        }
        spm_host_free(model, old);
        pool->is_apart = pool->config.track_uses;
        pool->detour = pool->config.track_uses || pool->config.quarantine;
        return SPM_OK;
}

static enum spm_status replace(struct spm_model *model, struct spm_pool_state *pool,
                               const struct spm_layout *layout)
{
        struct spm_layout_state *made;

        if (!layout)
                return pool->layout ? put_heap(model, pool) : SPM_OK;
        made = make_layout(model, pool, layout);
        if (!made)
                return SPM_E_HOST_MEMORY;
        put_layout(model, pool, made);
        return SPM_OK;
}

static enum spm_status refuse(struct spm_layout_error *error, const struct spm_layout_error *why,
                              enum spm_status status)
{
        spm_layout_refuse(error, why);
        return status;
}

/* As far as it can be told before what is idle is given back. */
static enum spm_status check(const struct spm_pool_state *pool, const struct spm_layout *layout,
                             struct spm_layout_error *error)
{
        struct spm_layout_error why = {.fault = SPM_LAYOUT_UNSUPPORTED};

        if (!pool || pool->closed)
                return SPM_E_UNKNOWN;
        if (layout && spm_layout_check(layout, error))
                return SPM_E_INVALID_VALUE;
        why.field = unsupported(pool);
        if (why.field)
                return refuse(error, &why, SPM_E_UNSUPPORTED);
        why.fault = SPM_LAYOUT_POOLS_IN_USE;
        return is_in_use(pool, !layout, &why) ? refuse(error, &why, SPM_E_IN_USE) : SPM_OK;
}

enum spm_status spm_pool_may_install(const struct spm_model *model, spm_pool id,
                                     const struct spm_layout *layout,
                                     struct spm_layout_error *error)
{
        const struct spm_pool_state *pool = spm_pool_find(model, id);
        enum spm_status status = check(pool, layout, error);

        if (status == SPM_OK && (has_left(pool, !layout) || has_idle(pool)))
                return SPM_AGAIN;
        return status;
}

enum spm_status spm_pool_install(struct spm_model *model, spm_pool id,
                                 const struct spm_layout *layout, struct spm_layout_error *error,
                                 struct spm_actions *actions)
{
        struct spm_pool_state *pool = spm_pool_find(model, id);
        enum spm_status status = check(pool, layout, error);
        uint64_t released = 0;

        actions->count = 0;
        if (status)
                return status;
        if (!spm_trim_pool(model, pool, 0, 0, &released, actions))
                return spm_model_finish(model, SPM_AGAIN, actions);
        if (has_left(pool, !layout)) {
                static const struct spm_layout_error left = {.fault = SPM_LAYOUT_POOLS_IN_USE};

                return spm_model_finish(model, refuse(error, &left, SPM_E_IN_USE), actions);
        }
        return spm_model_finish(model, replace(model, pool, layout), actions);
}

/* questions */

enum spm_status spm_pool_layout(const struct spm_model *model, spm_pool id,
                                struct spm_layout *layout)
{
        const struct spm_pool_state *pool = spm_pool_find(model, id);

        if (!pool || !pool->layout)
                return SPM_E_UNKNOWN;
        memcpy(layout, &pool->layout->layout, sizeof(*layout));
        return SPM_OK;
}

static const struct spm_shelf *shelf_at(const struct spm_layout_state *layout, unsigned int index)
{
        if (index < layout->layout.count)
                return &layout->shelves[index];
        return index == layout->layout.count ? &layout->persistent : NULL;
}

enum spm_status spm_layout_stats(const struct spm_model *model, spm_pool id, unsigned int index,
                                 struct spm_shelf_stats *stats)
{
        const struct spm_pool_state *pool = spm_pool_find(model, id);
        const struct spm_shelf *shelf;

        if (!pool || !pool->layout)
                return SPM_E_UNKNOWN;
        shelf = shelf_at(pool->layout, index);
        if (!shelf)
                return SPM_E_INVALID_VALUE;
        *stats = (struct spm_shelf_stats){
                .kind = shelf->config.kind,
                .live_blocks = shelf->live,
                .requested = shelf->requested,
                .padding = shelf->padding,
                .reserved = shelf->reserved,
                .page = shelf->page,
                .pages = shelf->pages,
                .pages_most = shelf->pages_most,
                .pages_peak = shelf->pages_peak,
                .pages_unmapped = shelf->pages_unmapped,
                .largest_alloc = shelf->largest_alloc,
                .spills = shelf->spills,
        };
        return SPM_OK;
}

enum spm_status spm_layout_refusal(const struct spm_model *model, spm_pool id,
                                   struct spm_layout_error *error)
{
        const struct spm_pool_state *pool = spm_pool_find(model, id);

        if (!pool || !pool->layout)
                return SPM_E_UNKNOWN;
        *error = pool->layout->refusal;
        return SPM_OK;
}

bool spm_layout_warn(struct spm_model *model, spm_pool id, unsigned int *index)
{
        const struct spm_pool_state *pool = spm_pool_find(model, id);
        unsigned int i;

        for (i = 0; pool && pool->layout && i < pool->layout->layout.count; i++) {
                struct spm_shelf *shelf = &pool->layout->shelves[i];

                if (!shelf->spills || shelf->warned)
                        continue;
                shelf->warned = true;
                *index = i;
                return true;
        }
        return false;
}
