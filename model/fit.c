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

/* Where in a free block: at its start, but away from a hole, so that the hole and what is left of
 * the block stay together. */
static bool holds(const struct spm_block *block, size_t size, size_t align, uint64_t *start)
{
        uint64_t first = (block->address + align - 1) & ~(uint64_t)(align - 1);

        if (first - block->address > block->size || block->size - (first - block->address) < size)
                return false;
        if (block->is_shore && spm_block_is(block->previous, SPM_BLOCK_HOLE) &&
            !spm_block_is(block->next, SPM_BLOCK_HOLE))
                first = (block->address + (block->size - size)) & ~(uint64_t)(align - 1);
        *start = first;
        return true;
}

/* The smallest block of a set with room for @size bytes at a multiple of @align, or NULL. */
static struct spm_block *find_place(const struct spm_bins *bins, size_t size, size_t align,
                                    uint64_t *start)
{
        struct spm_block *block = spm_bins_at_least(bins, size);
        unsigned int tried;

        for (tried = 0; block && tried < CANDIDATES_MAX; tried++) {
                if (holds(block, size, align, start))
                        return block;
                block = spm_bins_after(bins, block);
        }
        if (!block || size + align < size)
                return NULL;
        block = spm_bins_at_least(bins, spm_fit_enough(bins, size, align));
        return block && holds(block, size, align, start) ? block : NULL;
}

struct spm_block *spm_fit_heap(const struct spm_heap *heap, size_t size, size_t align,
                               uint64_t *start)
{
        struct spm_block *block = NULL;

        if (!spm_bins_is_empty(&heap->ready))
                block = find_place(&heap->ready, size, align, start);
        return block ? block : find_place(&heap->shore, size, align, start);
}

const struct spm_bins *spm_fit_open(const struct spm_lane *lane, const struct spm_want *want)
{
        return &lane->open[want->heap - want->pool->heaps];
}

bool spm_fit_ready_block(const struct spm_want *want, struct spm_fit *fit)
{
        *fit = (struct spm_fit){0};
        fit->block = spm_fit_heap(want->heap, want->size, want->align, &fit->start);
        return fit->block != NULL;
}

struct spm_lane *spm_fit_own_lane(const struct spm_want *want)
{
        if (!want->stream || want->stream->capturing)
                return NULL;
        return spm_lane_find(want->pool, want->stream->object.id);
}

/* The best of a lane's open blocks, for its own stream. */
static struct spm_block *best_open(const struct spm_lane *lane, const struct spm_want *want,
                                   uint64_t *start)
{
        struct spm_block *slot;

        if (want->klass == SPM_NO_CLASS)
                return find_place(spm_fit_open(lane, want), want->size, want->align, start);
        slot = lane->slots[want->klass];
        if (slot)
                *start = slot->address;
        return slot;
}

/* Of two of the same size, the one that others cannot have; but what is not complete costs a stamp,
 * where the pool is synchronous. */
static bool is_better(const struct spm_want *want, const struct spm_block *own, struct spm_fit *fit)
{
        if (want->pool->config.kind != SPM_POOL_ASYNC)
                return !spm_fit_ready(want, fit) || own->size < fit->block->size;
        return own->size == want->size || !spm_fit_ready(want, fit) ||
               own->size <= fit->block->size;
}

/* Of a synchronous pool the sole stream has all that is freed, so that what is pending is its heap:
 * neighbours are joined before the best fit is looked for. Of others they stay apart while they
 * can, for streams that follow an earlier point. */
static void join_own(struct spm_model *model, const struct spm_want *want, struct spm_lane *lane)
{
        if (want->klass != SPM_NO_CLASS || want->pool->config.kind == SPM_POOL_ASYNC)
                return;
        while (spm_limbo_join(model, lane))
                ;
}

bool spm_fit_ready_or_own(struct spm_model *model, const struct spm_want *want, struct spm_fit *fit)
{
        struct spm_lane *lane = spm_fit_own_lane(want);
        struct spm_block *own;
        uint64_t start;

        if (!lane)
                return spm_fit_ready(want, fit);
        spm_limbo_reopen(model, lane);
        join_own(model, want, lane);
        own = best_open(lane, want, &start);
        if (own && is_better(want, own, fit))
                *fit = (struct spm_fit){.block = own, .start = start};
        else if (!own)
                spm_fit_ready(want, fit);
        return fit->block != NULL;
}

/* Of a block of another stream, everything but the first point: is the asking stream behind it
 * anyhow, or will it be by waiting for @stamp? */
static bool covers_rest(const struct spm_model *model, const struct spm_want *want,
                        const struct spm_block *block, const struct spm_stamp_state *stamp)
{
        unsigned int i;

        for (i = 1; i < block->dep_count; i++)
                if (!spm_clock_covers(&stamp->clock, spm_block_dep(block, i)) &&
                    !spm_limbo_covers(model, want->stream, block, i))
                        return false;
        return true;
}

/* The oldest stamp of the lane's stream by which the block can be had. */
static struct spm_stamp_state *find_belt(const struct spm_model *model, const struct spm_want *want,
                                         const struct spm_lane *lane, const struct spm_block *block)
{
        struct spm_stamp_state *stamp = spm_stamp_find(lane->stream, block->positions[0]);

        return stamp && covers_rest(model, want, block, stamp) ? stamp : NULL;
}

/* Another stream's block, by a stamp between the block's point and @reach. */
static bool belted(const struct spm_model *model, const struct spm_lane *lane,
                   const struct spm_want *want, uint64_t reach, struct spm_block *block,
                   struct spm_fit *fit)
{
        struct spm_stamp_state *stamp;
        uint64_t start;

        if (block->positions[0] > reach || !holds(block, want->size, want->align, &start))
                return false;
        stamp = find_belt(model, want, lane, block);
        if (!stamp || stamp->position > reach)
                return false;
        *fit = (struct spm_fit){block, start, stamp, NULL};
        return true;
}

/* Of another stream's blocks a few: of the smallest that fit, or of the oldest slots. */
static void follow_lane(const struct spm_model *model, const struct spm_lane *lane,
                        const struct spm_want *want, uint64_t reach, struct spm_fit *fit)
{
        bool small = want->klass != SPM_NO_CLASS;
        struct spm_block *block =
                small ? lane->oldest : spm_bins_at_least(spm_fit_open(lane, want), want->size);
        unsigned int tried;

        for (tried = 0; block && tried < CANDIDATES_MAX; tried++) {
                if (fit->block && fit->block->size <= block->size && !small)
                        return;
                if (small && (!block->open || !block->is_slot || block->klass != want->klass)) {
                        block = block->newer;
                        continue;
                }
                if (belted(model, lane, want, reach, block, fit))
                        return;
                block = small ? block->newer : spm_bins_after(spm_fit_open(lane, want), block);
        }
}

/* May the pool's blocks of @lane be had by way of a wait? */
static bool may_donate(const struct spm_lane *lane, const struct spm_want *want)
{
        return lane->stream != want->stream && lane->oldest &&
               spm_context_may_be_named(lane->stream->context) &&
               spm_stream_may_be_named(want->stream);
}

bool spm_fit_followed(const struct spm_model *model, const struct spm_want *want,
                      struct spm_fit *fit)
{
        struct spm_object *object;

        *fit = (struct spm_fit){0};
        if (!want->stream || want->pool->config.kind != SPM_POOL_ASYNC || !want->pool->follow)
                return false;
        for (object = want->pool->lanes.head; object; object = spm_object_next(object)) {
                struct spm_lane *lane = (struct spm_lane *)object;
                uint64_t reach;

                if (!may_donate(lane, want))
                        continue;
                reach = spm_stream_reaches(want->stream, object->id);
                if (reach)
                        follow_lane(model, lane, want, reach, fit);
        }
        return fit->block != NULL;
}

/* A stream of another thread cannot be stamped from here (F5). */
static bool may_be_stamped(const struct spm_stream_state *stream)
{
        return stream->kind != SPM_STREAM_PER_THREAD && spm_stream_may_be_named(stream);
}

bool spm_fit_internal(const struct spm_model *model, const struct spm_want *want,
                      struct spm_fit *fit)
{
        struct spm_object *object;

        *fit = (struct spm_fit){0};
        if (!want->stream || want->pool->config.kind != SPM_POOL_ASYNC || !want->pool->internal)
                return false;
        for (object = want->pool->lanes.head; object; object = spm_object_next(object)) {
                struct spm_lane *lane = (struct spm_lane *)object;
                struct spm_block *block;
                struct spm_stamp_state *stamp;
                uint64_t start;

                if (!may_donate(lane, want))
                        continue;
                block = best_open(lane, want, &start);
                if (!block || (fit->block && fit->block->size <= block->size))
                        continue;
                stamp = find_belt(model, want, lane, block);
                if (!stamp && !may_be_stamped(lane->stream))
                        continue;
                *fit = (struct spm_fit){.block = block, .start = start, .belt = stamp};
                fit->donor = stamp ? NULL : lane;
        }
        return fit->block != NULL;
}

/* stitching */

/* Joins [@first, @end), which are such; the one freed last stands for all. */
static struct spm_block *stitch(struct spm_model *model, struct spm_block *first,
                                const struct spm_block *end)
{
        struct spm_block *latest = NULL;
        struct spm_block *other;

        for (other = first; other != end; other = other->next)
                if (spm_block_is(other, SPM_BLOCK_PENDING) &&
                    (!latest || latest->positions[0] <= other->positions[0]))
                        latest = other;
        /* A set that cannot grow ends it: what is in none is not absorbed into. */
        while (latest != first && latest->open) {
                bool last = latest->previous == first;

                spm_limbo_absorb(model, latest, latest->previous);
                if (last)
                        break;
        }
        while (latest->next != end && latest->open)
                spm_limbo_absorb(model, latest, latest->next);
        return latest;
}

/* Grows [*first, *end) over neighbours; a few on each side. */
static void widen(const struct spm_lane *lane, struct spm_block **first, struct spm_block **end)
{
        unsigned int steps;

        for (steps = 0; steps < CANDIDATES_MAX && spm_fit_may_stitch((*first)->previous, lane);
             steps++)
                *first = (*first)->previous;
        for (steps = 0; steps < CANDIDATES_MAX && spm_fit_may_stitch(*end, lane); steps++)
                *end = (*end)->next;
}

bool spm_fit_stitch_at(struct spm_model *model, const struct spm_want *want,
                       struct spm_block *block, struct spm_fit *fit)
{
        struct spm_block *first = block;
        struct spm_block *end = block->next;
        struct spm_block whole = {0};

        if (block->dep_count == 1)
                widen(block->lane, &first, &end);
        whole.address = first->address;
        whole.size = (size_t)((end ? end->address : block->area->base + block->area->size) -
                              first->address);
        *fit = (struct spm_fit){0};
        if (!holds(&whole, want->size, want->align, &fit->start))
                return false;
        fit->block = stitch(model, first, end);
        /* Its set could not grow. */
        if (!fit->block->open)
                fit->block = NULL;
        return true;
}

bool spm_fit_stitched(struct spm_model *model, const struct spm_want *want, struct spm_fit *fit)
{
        struct spm_lane *lane = spm_fit_own_lane(want);
        struct spm_block *block;
        unsigned int tried;

        *fit = (struct spm_fit){0};
        if (!lane || want->klass != SPM_NO_CLASS)
                return false;
        block = spm_bins_largest(spm_fit_open(lane, want));
        for (tried = 0; block && tried < CANDIDATES_MAX; tried++) {
                if (spm_fit_stitch_at(model, want, block, fit))
                        return fit->block != NULL;
                block = spm_bins_before(spm_fit_open(lane, want), block);
        }
        return false;
}

/* one block, for layouts */

bool spm_fit_here(const struct spm_want *want, const struct spm_lane *own, struct spm_block *block,
                  struct spm_fit *fit)
{
        uint64_t start;

        if (!spm_block_is(block, SPM_BLOCK_READY) &&
            (!own || !spm_block_is(block, SPM_BLOCK_PENDING) || block->lane != own || !block->open))
                return false;
        if (!holds(block, want->size, want->align, &start))
                return false;
        *fit = (struct spm_fit){.block = block, .start = start};
        return true;
}

bool spm_fit_by_wait(const struct spm_model *model, const struct spm_want *want,
                     struct spm_block *block, bool internal, struct spm_fit *fit)
{
        struct spm_stamp_state *stamp;
        struct spm_lane *lane;
        uint64_t reach;
        uint64_t start;

        if (!want->stream || want->pool->config.kind != SPM_POOL_ASYNC ||
            !spm_block_is(block, SPM_BLOCK_PENDING) || !block->lane || !block->open)
                return false;
        lane = block->lane;
        if (!may_donate(lane, want) || !holds(block, want->size, want->align, &start))
                return false;
        reach = want->pool->follow ? spm_stream_reaches(want->stream, lane->object.id) : 0;
        if (reach && belted(model, lane, want, reach, block, fit))
                return true;
        if (!internal || !want->pool->internal)
                return false;
        stamp = find_belt(model, want, lane, block);
        if (!stamp && !may_be_stamped(lane->stream))
                return false;
        *fit = (struct spm_fit){.block = block, .start = start, .belt = stamp};
        fit->donor = stamp ? NULL : lane;
        return true;
}
