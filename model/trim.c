/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trim -- what may be given back
 */

#include "trim.h"

#include "action.h"
#include "layout.h"
#include "recall.h"
#include "segment.h"
#include "state.h"

/* What a trim must leave. */
struct limits {
        uint64_t enough;   /* it ends when no more is reserved */
        uint64_t reserved; /* at least so many bytes stay reserved */
        uint64_t large;    /* likewise, where a large segment goes */
        uint64_t ready;    /* and so many ready */
        uint64_t from;     /* and all of [from, to) */
        uint64_t to;
        uint64_t least;    /* what is smaller stays */
        unsigned int room; /* and room for so many actions */
        bool moves;
};

static void ask_release(const struct spm_segment_state *segment, bool moves,
                        struct spm_actions *actions)
{
        struct spm_pool_state *pool = segment->area->pool;
        struct spm_action *action;

        pool->releases++;
        pool->moves += moves;
        if (pool->config.provider != SPM_PROVIDER_CALLER)
                return;
        action = spm_action_add(actions, SPM_ACT_RELEASE);
        action->context = pool->config.context;
        action->pool = pool->object.id;
        action->segment = segment->object.id;
        action->address = segment->base;
        action->size = segment->size;
        action->cookie = segment->cookie;
        action->moves = moves;
}

static void release(struct spm_model *model, struct spm_block *block,
                    struct spm_segment_state *segment, bool moves, struct spm_actions *actions)
{
        ask_release(segment, moves, actions);
        spm_segment_free(model, block, segment);
}

static bool may_release(const struct spm_pool_state *pool)
{
        return !pool->config.release_needs_idle || !pool->context || !pool->context->captures;
}

static bool has_room(const struct spm_pool_state *pool, unsigned int room,
                     const struct spm_actions *actions)
{
        return pool->config.provider != SPM_PROVIDER_CALLER || spm_actions_room(actions) > room;
}

/* sealed memory: it is known outside, so nobody is served it, but it can be given back */

static bool is_ready_or_sealed(const struct spm_block *tile)
{
        return spm_block_is(tile, SPM_BLOCK_READY) || spm_block_is(tile, SPM_BLOCK_SEALED);
}

/* The first tile of a segment that nobody uses, a part of which @sealed is; NULL if it is in use.
 */
static struct spm_block *unused_from(struct spm_block *sealed,
                                     const struct spm_segment_state *segment)
{
        struct spm_block *first = sealed;
        const struct spm_block *tile;

        while (first && first->address > segment->base)
                first = first->previous;
        for (tile = first; tile && tile->address < segment->base + segment->size; tile = tile->next)
                if (!is_ready_or_sealed(tile))
                        return NULL;
        return first;
}

/* The part of a tile that lies in the segment is READY then. Two records are at hand. Return: the
 * tile that holds the end of that part. */
static struct spm_block *unseal(struct spm_model *model, struct spm_block *tile,
                                const struct spm_segment_state *segment)
{
        uint64_t end = segment->base + segment->size;
        struct spm_block *part = tile;

        if (spm_block_is(tile, SPM_BLOCK_READY))
                return tile;
        spm_pool_unseal(tile);
        if (tile->address < segment->base) {
                part = spm_block_split(model, tile, (size_t)(segment->base - tile->address));
                tile->exported = true;
                spm_pool_make_ready(model, tile);
        }
        if (part->address + part->size > end) {
                struct spm_block *rest =
                        spm_block_split(model, part, (size_t)(end - part->address));

                rest->exported = true;
                spm_pool_make_ready(model, rest);
        }
        spm_pool_make_ready(model, part);
        return part;
}

/* Return: false if there was no room. @any: was something given back? */
static bool trim_sealed_segment(struct spm_model *model, struct spm_block *sealed,
                                struct spm_segment_state *segment, uint64_t *released, bool *any,
                                struct spm_actions *actions)
{
        struct spm_block *tile = unused_from(sealed, segment);
        uint64_t end = segment->base + segment->size;

        *any = false;
        if (!tile)
                return true;
        if (!has_room(segment->area->pool, 0, actions))
                return false;
        /* Without records for what is cut off it stays. The first tile and the last may be cut. */
        if (!spm_block_reserve(model, 4))
                return true;
        while (tile = unseal(model, tile, segment), tile->address + tile->size < end)
                tile = tile->next;
        *any = true;
        *released += segment->size;
        release(model, tile, segment, false, actions);
        return true;
}

static bool trim_sealed(struct spm_model *model, struct spm_pool_state *pool, uint64_t *released,
                        struct spm_actions *actions)
{
        struct spm_block *sealed = pool->sealed;

        while (sealed) {
                uint64_t at = sealed->address + (sealed->size - 1);
                bool any = false;

                while (!any && !sealed->is_slot) {
                        struct spm_segment_state *segment = spm_segment_at(model, at);

                        if (!trim_sealed_segment(model, sealed, segment, released, &any, actions))
                                return false;
                        if (any || segment->base <= sealed->address)
                                break;
                        at = segment->base - 1;
                }
                /* What was given back may have been this very block. */
                sealed = any ? pool->sealed : sealed->newer;
        }
        return true;
}

/* ready memory */

/* Return: false if there was more to give back than room for actions. */
static bool trim_block(struct spm_model *model, struct spm_block *block,
                       const struct limits *limits, uint64_t *released, struct spm_actions *actions)
{
        struct spm_segment_state *segment = spm_segment_last_in(block);
        struct spm_pool_state *pool = block->area->pool;

        while (segment && pool->reserved_bytes > limits->enough) {
                struct spm_segment_state *before = spm_segment_before(block, segment);
                bool is_large = spm_pool_is_large(pool, segment->size);
                uint64_t stays = is_large ? limits->large : limits->reserved;

                if (segment->size < limits->least || pool->reserved_bytes < stays + segment->size ||
                    pool->ready_bytes < limits->ready + segment->size ||
                    (segment->base < limits->to && limits->from < segment->base + segment->size)) {
                        segment = before;
                        continue;
                }
                if (!has_room(pool, limits->room, actions))
                        return false;
                if (!spm_block_reserve(model, 2))
                        return true;
                *released += segment->size;
                release(model, block, segment, limits->moves, actions);
                segment = before;
        }
        return true;
}

static bool trim_spanning(struct spm_model *model, struct spm_pool_state *pool,
                          const struct limits *limits, uint64_t *released,
                          struct spm_actions *actions)
{
        struct spm_block *last = pool->last_spanning;
        struct spm_block *block = pool->spanning;

        /* What is left of a block is put at the end of the list. */
        while (block && pool->reserved_bytes > limits->enough) {
                struct spm_block *next = block == last ? NULL : block->newer;

                if (!trim_block(model, block, limits, released, actions))
                        return false;
                block = next;
        }
        return true;
}

static bool trim(struct spm_model *model, struct spm_pool_state *pool, const struct limits *limits,
                 uint64_t *released, struct spm_actions *actions)
{
        if (!may_release(pool) || pool->reserved_bytes <= limits->enough || pool->ended)
                return true;
        spm_slab_shed(model, pool);
        if (pool->sealed && !limits->enough && !limits->ready &&
            !trim_sealed(model, pool, released, actions))
                return false;
        return trim_spanning(model, pool, limits, released, actions);
}

bool spm_trim_pool(struct spm_model *model, struct spm_pool_state *pool, uint64_t reserved,
                   uint64_t ready, uint64_t *released, struct spm_actions *actions)
{
        struct limits limits = {
                .enough = reserved, .reserved = reserved, .large = reserved, .ready = ready};

        return trim(model, pool, &limits, released, actions);
}

bool spm_trim_decay(struct spm_model *model, struct spm_pool_state *pool, uint64_t reserved,
                    uint64_t large, uint64_t *released, struct spm_actions *actions)
{
        struct limits limits = {.enough = reserved, .reserved = reserved, .large = large};

        return trim(model, pool, &limits, released, actions);
}

void spm_trim_away(struct spm_model *model, struct spm_pool_state *pool, uint64_t enough,
                   uint64_t least, uint64_t from, uint64_t to, struct spm_actions *actions)
{
        struct limits limits = {
                .enough = enough, .from = from, .to = to, .least = least, .room = 1, .moves = true};
        uint64_t released = 0;

        trim_spanning(model, pool, &limits, &released, actions);
}

/* large segments */

static bool lies_in(const struct spm_segment_state *segment, const struct spm_block *block)
{
        return segment->base >= block->address &&
               segment->size <= block->size - (segment->base - block->address);
}

/* Bytes of the segment that [start, end) does not cover. */
static uint64_t uncovered(const struct spm_segment_state *segment, uint64_t start, uint64_t end)
{
        uint64_t last = segment->base + segment->size;

        return segment->size -
               ((end < last ? end : last) - (start > segment->base ? start : segment->base));
}

/* The first large segment of @block of which too little would be used. */
static struct spm_segment_state *find_ill_used(const struct spm_block *block, uint64_t start,
                                               uint64_t end)
{
        const struct spm_pool_state *pool = block->area->pool;

        while (start < end) {
                struct spm_segment_state *segment = *spm_area_segment(block->area, start);

                if (spm_pool_is_large(pool, segment->size) && lies_in(segment, block) &&
                    uncovered(segment, start, end) > segment->size / 8)
                        return segment;
                start = segment->base + segment->size;
        }
        return NULL;
}

bool spm_trim_break(struct spm_model *model, struct spm_block *block, uint64_t start, size_t size,
                    struct spm_actions *actions)
{
        struct spm_pool_state *pool = block->area->pool;
        struct spm_segment_state *segment;

        if (block->area->is_lone || pool->config.release_needs_idle)
                return false;
        segment = find_ill_used(block, start, start + size);
        if (!segment)
                return false;
        pool->is_varied = true;
        if (!spm_block_is(block, SPM_BLOCK_READY) || !has_room(pool, 0, actions) ||
            !spm_block_reserve(model, 2))
                return false;
        release(model, block, segment, false, actions);
        return true;
}

bool spm_trim_page(struct spm_model *model, struct spm_block *block, struct spm_actions *actions)
{
        struct spm_pool_state *pool = block->area->pool;

        if (!spm_block_is(block, SPM_BLOCK_READY) || !may_release(pool) ||
            !has_room(pool, 1, actions) || !spm_block_reserve(model, 2))
                return false;
        release(model, block, spm_segment_last_in(block), false, actions);
        return true;
}

bool spm_trim_ended(struct spm_model *model, struct spm_pool_state *pool,
                    struct spm_actions *actions)
{
        struct spm_object *object = model->segments.head;

        while (object) {
                struct spm_segment_state *segment = (struct spm_segment_state *)object;

                object = spm_object_next(object);
                if (segment->area->pool != pool)
                        continue;
                if (pool->config.provider == SPM_PROVIDER_CALLER && !spm_actions_room(actions))
                        return false;
                ask_release(segment, false, actions);
                spm_segment_drop(model, segment);
        }
        return true;
}

static bool concerns(const struct spm_pool_state *pool, const struct spm_context_state *context)
{
        if (pool->context)
                return pool->context == context;
        return pool->config.device == context->device;
}

static void trim_synced(struct spm_model *model, struct spm_pool_state *pool,
                        struct spm_actions *actions)
{
        uint64_t released = 0;

        if (pool->layout && !pool->closed) {
                spm_routing_synced(model, pool, actions);
                return;
        }
        model->unfinished -= pool->unfinished;
        pool->unfinished = !spm_trim_pool(model, pool, pool->config.release_threshold,
                                          pool->config.keep, &released, actions);
        model->unfinished += pool->unfinished;
}

/* Is there more than a synchronisation leaves, and may some of it be at hand somewhere? The program
 * can look at what these pools hold (U5). */
static bool has_more_at_hand(const struct spm_pool_state *pool)
{
        return pool->magazines && !pool->closed && pool->config.kind == SPM_POOL_ASYNC &&
               !pool->config.release_needs_idle &&
               pool->reserved_bytes > pool->config.release_threshold &&
               pool->reserved_bytes - pool->rounded_bytes > pool->config.keep;
}

void spm_trim_synced(struct spm_model *model, const struct spm_context_state *context,
                     struct spm_actions *actions)
{
        struct spm_pool_state *pool;

        for (pool = spm_pool_first(model); pool; pool = spm_pool_next(pool)) {
                bool due;

                if (has_more_at_hand(pool))
                        spm_magazine_recall(model, pool);
                due = pool->synced && !pool->config.release_needs_idle;
                pool->synced = false;
                if (due || (context && concerns(pool, context)))
                        trim_synced(model, pool, actions);
        }
}

void spm_trim_rest(struct spm_model *model, struct spm_actions *actions)
{
        struct spm_pool_state *pool = spm_pool_first(model);

        for (; pool; pool = spm_pool_next(pool))
                if (pool->unfinished && !pool->config.release_needs_idle)
                        trim_synced(model, pool, actions);
}

void spm_trim_closed(struct spm_model *model, struct spm_actions *actions)
{
        struct spm_pool_state *pool = spm_pool_first(model);

        while (model->closed_pools && pool) {
                struct spm_pool_state *next = spm_pool_next(pool);
                uint64_t released = 0;

                if (pool->closed && !pool->config.release_needs_idle)
                        spm_trim_pool(model, pool, 0, 0, &released, actions);
                if (pool->closed && !pool->ended && !pool->segment_count) {
                        spm_pool_free(model, pool);
                        model->closed_pools--;
                }
                pool = next;
        }
}
