/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fit -- which free block
 *
 * The sets are ordered by size, so the best block that needs no alignment, or
 * is not refused for another reason, is one search away. Otherwise a handful
 * of candidates is tried, and then one that is large enough whatever its
 * address. No search walks the blocks of a set. A search for other streams'
 * blocks walks the streams that use the pool.
 */

#include "fit.h"

#include "state.h"

#define CANDIDATES_MAX 8

static bool holds(const struct spm_block *block, const struct spm_want *want, uint64_t *start)
{
        uint64_t first = (block->address + want->align - 1) & ~(uint64_t)(want->align - 1);

        if (first - block->address > block->size ||
            block->size - (first - block->address) < want->size)
                return false;
        *start = first;
        return true;
}

static struct spm_block *by_size(struct spm_node *node)
{
        return node ? spm_node_owner(node, struct spm_block, by_size) : NULL;
}

/* The best of a set of blocks, all of which the request may have. */
static struct spm_block *best_of(const struct spm_tree *tree, const struct spm_want *want,
                                 uint64_t *start)
{
        struct spm_node *node = spm_tree_at_least(tree, want->size, 0);
        unsigned int tried;

        for (tried = 0; node && tried < CANDIDATES_MAX; tried++) {
                if (holds(by_size(node), want, start))
                        return by_size(node);
                node = spm_tree_after(tree, node);
        }
        if (!node)
                return NULL;
        node = spm_tree_at_least(tree, (uint64_t)want->size + want->align, 0);
        return node && holds(by_size(node), want, start) ? by_size(node) : NULL;
}

bool spm_fit_ready(const struct spm_want *want, struct spm_fit *fit)
{
        *fit = (struct spm_fit){0};
        fit->block = best_of(&want->pool->ready, want, &fit->start);
        return fit->block != NULL;
}

static struct spm_lane *own_lane(const struct spm_want *want)
{
        if (!want->stream || want->stream->capturing)
                return NULL;
        return spm_limbo_find(want->pool, want->stream->object.id);
}

bool spm_fit_bare(struct spm_model *model, const struct spm_want *want, struct spm_fit *fit)
{
        struct spm_lane *lane = own_lane(want);
        struct spm_block *own;
        uint64_t start;

        spm_fit_ready(want, fit);
        if (!lane)
                return fit->block != NULL;
        spm_limbo_reopen(model, lane);
        own = best_of(&lane->open, want, &start);
        /* Of two of the same size, the one that others cannot have. */
        if (own && (!fit->block || own->size <= fit->block->size))
                *fit = (struct spm_fit){.block = own, .start = start};
        return fit->block != NULL;
}

/* Of a block of another stream, everything but the first point: is the asking stream behind it
 * anyhow, or will it be by waiting for @stamp? */
static bool covers_rest(const struct spm_model *model, const struct spm_want *want,
                        const struct spm_block *block, const struct spm_stamp_state *stamp)
{
        unsigned int i;

        for (i = 1; i < block->dep_count; i++)
                if (!spm_clock_covers(&stamp->clock, block->deps[i]) &&
                    !spm_limbo_covers(model, want->stream, block, i))
                        return false;
        return true;
}

/* The oldest stamp of the lane's stream by which the block can be had. */
static struct spm_stamp_state *find_belt(const struct spm_model *model, const struct spm_want *want,
                                         const struct spm_lane *lane, const struct spm_block *block)
{
        struct spm_stamp_state *stamp = spm_stamp_find(lane->stream, block->deps[0].position);

        return stamp && covers_rest(model, want, block, stamp) ? stamp : NULL;
}

/* Another stream's block, by a stamp between the block's point and @reach. */
static bool belted(const struct spm_model *model, const struct spm_lane *lane,
                   const struct spm_want *want, uint64_t reach, struct spm_fit *fit)
{
        struct spm_node *node = spm_tree_at_least(&lane->open, want->size, 0);
        unsigned int tried;

        for (tried = 0; node && tried < CANDIDATES_MAX; tried++) {
                struct spm_block *block = by_size(node);
                uint64_t start;

                if (fit->block && fit->block->size <= block->size)
                        return false;
                if (block->deps[0].position <= reach && holds(block, want, &start)) {
                        struct spm_stamp_state *stamp = find_belt(model, want, lane, block);

                        if (stamp && stamp->position <= reach) {
                                *fit = (struct spm_fit){block, start, stamp, NULL};
                                return true;
                        }
                }
                node = spm_tree_after(&lane->open, node);
        }
        return false;
}

/* May the pool's blocks of @lane be had by way of a wait? */
static bool may_donate(const struct spm_lane *lane, const struct spm_want *want)
{
        return lane->stream != want->stream && lane->open.root &&
               spm_context_may_be_named(lane->stream->context) &&
               spm_stream_may_be_named(want->stream);
}

bool spm_fit_followed(const struct spm_model *model, const struct spm_want *want,
                      struct spm_fit *fit)
{
        struct spm_object *object;

        *fit = (struct spm_fit){0};
        if (!want->stream || !want->pool->follow)
                return false;
        for (object = want->pool->lanes.head; object; object = spm_object_next(object)) {
                struct spm_lane *lane = (struct spm_lane *)object;
                uint64_t reach;

                if (!may_donate(lane, want))
                        continue;
                reach = spm_stream_reaches(want->stream, object->id);
                if (reach)
                        belted(model, lane, want, reach, fit);
        }
        return fit->block != NULL;
}

bool spm_fit_internal(const struct spm_model *model, const struct spm_want *want,
                      struct spm_fit *fit)
{
        struct spm_object *object;

        *fit = (struct spm_fit){0};
        if (!want->stream || !want->pool->internal)
                return false;
        for (object = want->pool->lanes.head; object; object = spm_object_next(object)) {
                struct spm_lane *lane = (struct spm_lane *)object;
                struct spm_block *block;
                struct spm_stamp_state *stamp;
                uint64_t start;

                if (!may_donate(lane, want))
                        continue;
                block = best_of(&lane->open, want, &start);
                if (!block || (fit->block && fit->block->size <= block->size))
                        continue;
                stamp = find_belt(model, want, lane, block);
                /* A stream of another thread cannot be stamped from here (F5). */
                if (!stamp && (lane->stream->kind == SPM_STREAM_PER_THREAD ||
                               !spm_stream_may_be_named(lane->stream)))
                        continue;
                *fit = (struct spm_fit){.block = block, .start = start, .belt = stamp};
                fit->donor = stamp ? NULL : lane;
        }
        return fit->block != NULL;
}

/* stitching */

static bool may_stitch(const struct spm_block *block, const struct spm_lane *lane)
{
        if (!block)
                return false;
        return block->state == SPM_BLOCK_READY ||
               (block->state == SPM_BLOCK_PENDING && block->lane == lane && block->open &&
                block->dep_count == 1);
}

/* Joins @block with the neighbours that its lane's stream may have as well. */
static struct spm_block *stitch(struct spm_model *model, struct spm_lane *lane,
                                struct spm_block *first, const struct spm_block *end)
{
        struct spm_point latest = {.stream = lane->object.id};
        struct spm_block *other;

        for (other = first; other != end; other = other->next) {
                if (other->state == SPM_BLOCK_READY) {
                        spm_pool_take_ready(other);
                        continue;
                }
                if (latest.position < other->deps[0].position)
                        latest.position = other->deps[0].position;
                spm_limbo_take(model, other);
        }
        while (first->next != end)
                spm_block_absorb(model, first, first->next);
        first->dep_count = 1;
        first->deps[0] = latest;
        /* It lies in its lane as one block now; the latest point stands for all. */
        spm_limbo_put(model, first);
        return first;
}

/* Grows [*first, *end) over neighbours; a few on each side. */
static void widen(const struct spm_lane *lane, struct spm_block **first, struct spm_block **end)
{
        unsigned int steps;

        for (steps = 0; steps < CANDIDATES_MAX && may_stitch((*first)->previous, lane); steps++)
                *first = (*first)->previous;
        for (steps = 0; steps < CANDIDATES_MAX && may_stitch(*end, lane); steps++)
                *end = (*end)->next;
}

bool spm_fit_stitched(struct spm_model *model, const struct spm_want *want, struct spm_fit *fit)
{
        struct spm_lane *lane = own_lane(want);
        struct spm_node *node = lane ? spm_tree_last(&lane->open) : NULL;
        unsigned int tried;

        *fit = (struct spm_fit){0};
        for (tried = 0; node && tried < CANDIDATES_MAX; tried++) {
                struct spm_block *first = by_size(node);
                struct spm_block *end = first->next;
                const struct spm_segment_state *segment = first->segment;
                struct spm_block whole = {0};

                if (first->dep_count == 1)
                        widen(lane, &first, &end);
                whole.address = first->address;
                whole.size = (size_t)((end ? end->address : segment->base + segment->size) -
                                      first->address);
                if (holds(&whole, want, &fit->start)) {
                        fit->block = stitch(model, lane, first, end);
                        return true;
                }
                node = spm_tree_before(&lane->open, node);
        }
        return false;
}
