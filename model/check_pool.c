/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Check pool -- are a pool's blocks, the sets they are in, and its figures as they should be?
 *
 * One walk over the areas sums up what the blocks say of themselves; lanes, what
 * is kept, heaps and figures are held against that.
 */

#include "check.h"

#include "layout.h"
#include "limbo.h"
#include "pool.h"
#include "recall.h"
#include "segment.h"
#include "slab.h"
#include "state.h"

struct sums {
        uint64_t reserved, used, rounded, pending, ready, sealed, live, blocks;
        uint64_t ready_count[2];
        uint64_t shore_count[2];
        uint64_t spanning, holes, held, kept;
};

static void check_pending(struct spm_check *check, const struct spm_block *block)
{
        const struct spm_pool_state *pool = block->area->pool;

        if (!block->dep_count || block->dep_count > SPM_BLOCK_DEPS)
                spm_check_fail(check, "I5 a pending block waits for something", block->address,
                               block->dep_count);
        if (block->lane)
                spm_check_equal(check, "I5 the first dependency names the lane", block->streams[0],
                                block->lane->object.id);
        if (block->open && pool->config.kind != SPM_POOL_ASYNC &&
            spm_work_sole(pool->work) != block->lane->stream)
                spm_check_fail(check, "I8 a synchronous block is open to the sole stream only",
                               block->address, 0);
        if (block->open && block->exported)
                spm_check_fail(check, "I10 an exported block is never open", block->address, 0);
}

static void check_live(struct spm_check *check, const struct spm_block *block, struct sums *sums)
{
        sums->live++;
        sums->used += block->requested;
        sums->rounded += block->size;
        spm_check_at_most(check, "I3 requested fits reserved", block->requested, block->size);
        if (!block->is_slot)
                spm_check_at_most(check, "I1 a block fills a page of its area",
                                  (uint64_t)1 << block->area->page_shift, block->size);
        if (spm_area_start(block->area, block->address) != block ||
            spm_area_live_at(block->area, block->address + (block->size - 1)) != block)
                spm_check_fail(check, "I1 a live block is found by address", block->address,
                               block->size);
}

static void check_ready(struct spm_check *check, const struct spm_block *block, struct sums *sums)
{
        sums->ready += block->size;
        if (block->exported)
                spm_check_fail(check, "I10 an exported block is never ready", block->address, 0);
        if (block->is_slot)
                return;
        if (block->is_shore)
                sums->shore_count[block->area->index]++;
        else
                sums->ready_count[block->area->index]++;
        if (block->is_shore != (spm_block_is(block->previous, SPM_BLOCK_HOLE) ||
                                spm_block_is(block->next, SPM_BLOCK_HOLE)))
                spm_check_fail(check, "what is beside a hole is known to be", block->address, 0);
        sums->spanning += block->is_spanning;
        if (spm_block_is(block->next, SPM_BLOCK_READY))
                spm_check_fail(check, "I5 ready neighbours are joined", block->address, 0);
        if (block->is_spanning != (spm_segment_last_in(block) != NULL))
                spm_check_fail(check, "I9 what holds whole segments is listed", block->address,
                               block->size);
}

static void check_block(struct spm_check *check, const struct spm_block *block, struct sums *sums);

static void check_slab(struct spm_check *check, const struct spm_slab *slab, struct sums *sums)
{
        uint64_t ready = 0;
        uint32_t i;

        for (i = 0; i < slab->count; i++) {
                const struct spm_block *slot = &slab->slots[i];

                ready += spm_block_is(slot, SPM_BLOCK_READY);
                spm_check_equal(check, "I1 slots tile their run", slot->address,
                                slab->base + i * slab->slot_size);
                check_block(check, slot, sums);
        }
        spm_check_equal(check, "ready slots are counted", slab->ready_count, ready);
        /* The tail of the run is free, though nobody gets it. */
        sums->ready += slab->run->size - slab->count * slab->slot_size;
}

static void check_block(struct spm_check *check, const struct spm_block *block, struct sums *sums)
{
        sums->blocks++;
        switch (spm_block_state(block)) {
        case SPM_BLOCK_LIVE:
                check_live(check, block, sums);
                break;
        case SPM_BLOCK_HELD:
                sums->pending += block->size;
                sums->held += block->size;
                break;
        case SPM_BLOCK_KEPT:
                sums->pending += block->size;
                sums->kept += block->size;
                break;
        case SPM_BLOCK_PENDING:
                sums->pending += block->size;
                check_pending(check, block);
                break;
        case SPM_BLOCK_READY:
                check_ready(check, block, sums);
                break;
        case SPM_BLOCK_SEALED:
                sums->sealed += block->size;
                break;
        case SPM_BLOCK_HOLE:
                sums->holes++;
                if (spm_block_is(block->next, SPM_BLOCK_HOLE))
                        spm_check_fail(check, "neighbouring holes are joined", block->address, 0);
                break;
        case SPM_BLOCK_SLAB:
                check_slab(check, block->slab, sums);
                break;
        case SPM_BLOCK_LOOSE:
                spm_check_fail(check, "I1 no block is loose between inputs", block->address, 0);
                break;
        }
}

/* Holes are not backed, everything else is, by segments that end where the next begins. */
static uint64_t check_backing(struct spm_check *check, const struct spm_block *block)
{
        uint64_t grain = block->area->pool->config.grain;
        bool hole = spm_block_is(block, SPM_BLOCK_HOLE);
        uint64_t at = block->address;
        uint64_t bytes = 0;

        while (at < block->address + block->size) {
                const struct spm_segment_state *segment = spm_segment_at(check->model, at);

                if ((segment == NULL) != hole) {
                        spm_check_fail(check, "I1 memory is backed, holes are not", at,
                                       block->address);
                        return 0;
                }
                if (hole)
                        return 0;
                if (segment->base >= block->address)
                        bytes += segment->size;
                if (segment->size % grain || segment->area != block->area)
                        spm_check_fail(check, "I1 a segment is whole grains", segment->base,
                                       segment->size);
                at = segment->base + segment->size;
        }
        return bytes;
}

static void check_area(struct spm_check *check, const struct spm_area *area, struct sums *sums)
{
        const struct spm_block *block;
        uint64_t at = area->base;

        for (block = area->first; block; block = block->next) {
                spm_check_equal(check, "I1 blocks tile their area", block->address, at);
                if (block->area != area || (block->next && block->next->previous != block) ||
                    (!block->next && area->last != block))
                        spm_check_fail(check, "I1 blocks are linked both ways", block->address, 0);
                at += block->size;
                sums->reserved += check_backing(check, block);
                check_block(check, block, sums);
        }
        spm_check_equal(check, "I3 blocks fill their area", at, area->base + area->size);
}

static void check_lane(struct spm_check *check, const struct spm_lane *lane, uint64_t *bytes)
{
        const struct spm_block *block;
        uint64_t sum = 0;
        uint64_t shut = 0;
        uint64_t last = 0;
        size_t open = 0;
        size_t slots = 0;
        size_t count = 0;
        size_t counted;
        size_t more;

        for (block = lane->oldest; block; block = block->newer) {
                sum += block->size;
                shut += block->open ? 0 : block->size;
                open += block->open && !block->is_slot;
                slots += block->open && block->is_slot;
                count++;
                if (block->lane != lane || block->positions[0] < last)
                        spm_check_fail(check, "I5 a lane is ordered by position",
                                       block->positions[0], last);
                last = block->positions[0];
                if (spm_pool_is_done(check->model, lane->pool, spm_block_dep(block, 0)))
                        spm_check_fail(check, "what is complete does not stay in limbo",
                                       block->address, 0);
        }
        spm_check_equal(check, "I3 the lane's bytes are counted", lane->bytes, sum);
        spm_check_equal(check, "shut blocks are counted", lane->shut, count - open - slots);
        spm_check_equal(check, "their bytes are counted", lane->shut_bytes, shut);
        if (!spm_bins_check(&lane->open[0], &counted) || !spm_bins_check(&lane->open[1], &more) ||
            counted + more != open)
                spm_check_fail(check, "open blocks are in their bins", counted, open);
        *bytes += sum;
}

static void check_kept(struct spm_check *check, const struct spm_pool_state *pool,
                       const struct sums *sums)
{
        const struct spm_block *block, *last = NULL;
        uint64_t bytes = 0;

        for (block = pool->kept_oldest; block; last = block, block = block->newer) {
                bytes += block->size;
                if (!spm_block_is(block, SPM_BLOCK_KEPT) || block->older != last)
                        spm_check_fail(check, "what is kept is listed both ways", block->address,
                                       0);
        }
        if (last != pool->kept_newest)
                spm_check_fail(check, "what is kept has an end", bytes, 0);
        spm_check_equal(check, "what is kept is listed", bytes, sums->kept);
        spm_check_equal(check, "what is kept is counted", pool->kept_bytes, sums->kept);
        spm_check_at_most(check, "no more is kept than may be", sums->kept,
                          pool->config.quarantine);
}

static void check_magazines(struct spm_check *check, const struct spm_pool_state *pool)
{
        const struct spm_magazine *magazine;

        for (magazine = pool->magazines; magazine; magazine = magazine->next)
                if ((magazine->dead || spm_magazine_is_barred(magazine->stream)) &&
                    !spm_magazine_is_empty(magazine))
                        spm_check_fail(check, "H6 a magazine that is barred is empty",
                                       magazine->stream_id, magazine->dead);
}

static void check_heaps(struct spm_check *check, const struct spm_pool_state *pool,
                        const struct sums *sums)
{
        const struct spm_block *block;
        uint64_t spanning = 0;
        uint64_t holes = 0;
        unsigned int i;
        size_t count;

        for (i = 0; i < pool->heap_count; i++) {
                if (!spm_bins_check(&pool->heaps[i].ready, &count) || count != sums->ready_count[i])
                        spm_check_fail(check, "I3 ready blocks are in their bins", count,
                                       sums->ready_count[i]);
                if (!spm_bins_check(&pool->heaps[i].shore, &count) || count != sums->shore_count[i])
                        spm_check_fail(check, "I3 ready blocks beside holes are in their bins",
                                       count, sums->shore_count[i]);
                for (block = pool->heaps[i].holes; block; block = block->right)
                        holes++;
        }
        for (block = pool->spanning; block; block = block->newer)
                spanning++;
        spm_check_equal(check, "holes are listed", holes, sums->holes);
        spm_check_equal(check, "blocks that span are listed", spanning, sums->spanning);
}

void spm_check_pool(struct spm_check *check, const struct spm_pool_state *pool, uint64_t *blocks)
{
        const struct spm_object *object;
        const struct spm_block *stray;
        const struct spm_area *area;
        struct sums sums = {0};
        struct spm_stats stats;
        uint64_t in_lanes = 0;
        const char *broken;
        uint64_t a, b;

        for (area = pool->areas; area; area = area->next)
                check_area(check, area, &sums);
        for (object = pool->lanes.head; object; object = spm_object_next(object))
                check_lane(check, (const struct spm_lane *)object, &in_lanes);
        for (stray = check->model->strays; stray; stray = stray->newer)
                in_lanes += stray->area->pool == pool ? stray->size : 0;

        spm_pool_figures(pool, &stats);
        spm_check_equal(check, "I3 reserved", stats.reserved_current, sums.reserved);
        spm_check_equal(check, "I3 used", stats.used_current, sums.used);
        spm_check_equal(check, "I3 rounded", stats.rounded_current, sums.rounded);
        spm_check_equal(check, "I3 pending", stats.pending_bytes, sums.pending);
        spm_check_equal(check, "I3 pending is the sum over streams, magazines and what is kept",
                        stats.pending_bytes, in_lanes + sums.held + sums.kept);
        check_kept(check, pool, &sums);
        check_magazines(check, pool);
        spm_check_equal(check, "I3 ready", stats.ready_bytes, sums.ready);
        spm_check_equal(check, "I3 sealed", stats.sealed_bytes, sums.sealed);
        spm_check_equal(check, "I3 live blocks", stats.live_blocks, sums.live);
        spm_check_equal(check, "I3 every byte is counted once", stats.reserved_current,
                        stats.rounded_current + stats.pending_bytes + stats.ready_bytes +
                                stats.sealed_bytes);
        spm_check_at_most(check, "I3 used is reserved", stats.used_current, stats.reserved_current);
        spm_check_at_most(check, "I3 used high", stats.used_current, stats.used_high);
        spm_check_at_most(check, "I3 reserved high", stats.reserved_current, stats.reserved_high);
        spm_check_at_most(check, "I3 live high", stats.live_blocks, stats.live_blocks_high);
        spm_check_at_most(check, "what growth is measured by", pool->busy_high, INT64_MAX);
        spm_check_at_most(check, "what decay is measured by", pool->window_high, INT64_MAX);
        if (pool->config.max_size)
                spm_check_at_most(check, "the cap", pool->reserved_bytes, pool->config.max_size);
        check_heaps(check, pool, &sums);
        broken = spm_shelf_check(pool, &a, &b);
        if (broken)
                spm_check_fail(check, broken, a, b);
        *blocks += sums.blocks;
}
