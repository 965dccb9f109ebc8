/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Check -- every invariant by name
 *
 * What the structures say is checked here. That a block was served to nobody
 * who could meet its last owner (I2) is a statement about the device: the
 * tests check it against a graph of everything that was submitted. I6, I7 and
 * I11 are statements about answers, and checked there too.
 */

#include "check.h"

#include <stdlib.h>

#include "layout.h"
#include "ledger.h"
#include "limbo.h"
#include "pool.h"
#include "recall.h"
#include "segment.h"
#include "slab.h"
#include "stamp.h"
#include "state.h"
#include "subject.h"
#include "tag.h"
#include "text.h"

struct check {
        const struct spm_model *model;
        struct spm_text text;
        bool failed;
};

/* The first failure is the one that is told. */
static void fail(struct check *check, const char *what, uint64_t a, uint64_t b)
{
        if (check->failed)
                return;
        check->failed = true;
        spm_text_word(&check->text, what);
        spm_text_count(&check->text, ":", a);
        spm_text_count(&check->text, "against", b);
}

static void expect_equal(struct check *check, const char *what, uint64_t a, uint64_t b)
{
        if (a != b)
                fail(check, what, a, b);
}

static void expect_at_most(struct check *check, const char *what, uint64_t a, uint64_t b)
{
        if (a > b)
                fail(check, what, a, b);
}

struct sums {
        uint64_t reserved, used, rounded, pending, ready, sealed, live, blocks;
        uint64_t ready_count[2];
        uint64_t shore_count[2];
        uint64_t spanning, holes, held, kept;
};

static void check_pending(struct check *check, const struct spm_block *block)
{
        const struct spm_pool_state *pool = block->area->pool;

        if (!block->dep_count || block->dep_count > SPM_BLOCK_DEPS)
                fail(check, "I5 a pending block waits for something", block->address,
                     block->dep_count);
        if (block->lane)
                expect_equal(check, "I5 the first dependency names the lane", block->streams[0],
                             block->lane->object.id);
        if (block->open && pool->config.kind != SPM_POOL_ASYNC &&
            spm_work_sole(pool->work) != block->lane->stream)
                fail(check, "I8 a synchronous block is open to the sole stream only",
                     block->address, 0);
        if (block->open && block->exported)
                fail(check, "I10 an exported block is never open", block->address, 0);
}

static void check_live(struct check *check, const struct spm_block *block, struct sums *sums)
{
        sums->live++;
        sums->used += block->requested;
        sums->rounded += block->size;
        expect_at_most(check, "I3 requested fits reserved", block->requested, block->size);
        if (!block->is_slot)
                expect_at_most(check, "I1 a block fills a page of its area",
                               (uint64_t)1 << block->area->page_shift, block->size);
        if (spm_area_start(block->area, block->address) != block ||
            spm_area_live_at(block->area, block->address + (block->size - 1)) != block)
                fail(check, "I1 a live block is found by address", block->address, block->size);
}

static void check_ready(struct check *check, const struct spm_block *block, struct sums *sums)
{
        sums->ready += block->size;
        if (block->exported)
                fail(check, "I10 an exported block is never ready", block->address, 0);
        if (block->is_slot)
                return;
        if (block->is_shore)
                sums->shore_count[block->area->index]++;
        else
                sums->ready_count[block->area->index]++;
        if (block->is_shore != (spm_block_is(block->previous, SPM_BLOCK_HOLE) ||
                                spm_block_is(block->next, SPM_BLOCK_HOLE)))
                fail(check, "what is beside a hole is known to be", block->address, 0);
        sums->spanning += block->is_spanning;
        if (spm_block_is(block->next, SPM_BLOCK_READY))
                fail(check, "I5 ready neighbours are joined", block->address, 0);
        if (block->is_spanning != (spm_segment_last_in(block) != NULL))
                fail(check, "I9 what holds whole segments is listed", block->address, block->size);
}

static void check_block(struct check *check, const struct spm_block *block, struct sums *sums);

static void check_slab(struct check *check, const struct spm_slab *slab, struct sums *sums)
{
        uint64_t ready = 0;
        uint32_t i;

        for (i = 0; i < slab->count; i++) {
                const struct spm_block *slot = &slab->slots[i];

                ready += spm_block_is(slot, SPM_BLOCK_READY);
                expect_equal(check, "I1 slots tile their run", slot->address,
                             slab->base + i * slab->slot_size);
                check_block(check, slot, sums);
        }
        expect_equal(check, "ready slots are counted", slab->ready_count, ready);
        /* The tail of the run is free, though nobody gets it. */
        sums->ready += slab->run->size - slab->count * slab->slot_size;
}

static void check_block(struct check *check, const struct spm_block *block, struct sums *sums)
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
                        fail(check, "neighbouring holes are joined", block->address, 0);
                break;
        case SPM_BLOCK_SLAB:
                check_slab(check, block->slab, sums);
                break;
        case SPM_BLOCK_LOOSE:
                fail(check, "I1 no block is loose between inputs", block->address, 0);
                break;
        }
}

/* Holes are not backed, everything else is, by segments that end where the next begins. */
static uint64_t check_backing(struct check *check, const struct spm_block *block)
{
        uint64_t grain = block->area->pool->config.grain;
        bool hole = spm_block_is(block, SPM_BLOCK_HOLE);
        uint64_t at = block->address;
        uint64_t bytes = 0;

        while (at < block->address + block->size) {
                const struct spm_segment_state *segment = spm_segment_at(check->model, at);

                if ((segment == NULL) != hole) {
                        fail(check, "I1 memory is backed, holes are not", at, block->address);
                        return 0;
                }
                if (hole)
                        return 0;
                if (segment->base >= block->address)
                        bytes += segment->size;
                if (segment->size % grain || segment->area != block->area)
                        fail(check, "I1 a segment is whole grains", segment->base, segment->size);
                at = segment->base + segment->size;
        }
        return bytes;
}

static void check_area(struct check *check, const struct spm_area *area, struct sums *sums)
{
        const struct spm_block *block;
        uint64_t at = area->base;

        for (block = area->first; block; block = block->next) {
                expect_equal(check, "I1 blocks tile their area", block->address, at);
                if (block->area != area || (block->next && block->next->previous != block) ||
                    (!block->next && area->last != block))
                        fail(check, "I1 blocks are linked both ways", block->address, 0);
                at += block->size;
                sums->reserved += check_backing(check, block);
                check_block(check, block, sums);
        }
        expect_equal(check, "I3 blocks fill their area", at, area->base + area->size);
}

static void check_lane(struct check *check, const struct spm_lane *lane, uint64_t *bytes)
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
                        fail(check, "I5 a lane is ordered by position", block->positions[0], last);
                last = block->positions[0];
                if (spm_pool_is_done(check->model, lane->pool, spm_block_dep(block, 0)))
                        fail(check, "what is complete does not stay in limbo", block->address, 0);
        }
        expect_equal(check, "I3 the lane's bytes are counted", lane->bytes, sum);
        expect_equal(check, "shut blocks are counted", lane->shut, count - open - slots);
        expect_equal(check, "their bytes are counted", lane->shut_bytes, shut);
        if (!spm_bins_check(&lane->open[0], &counted) || !spm_bins_check(&lane->open[1], &more) ||
            counted + more != open)
                fail(check, "open blocks are in their bins", counted, open);
        *bytes += sum;
}

static void check_kept(struct check *check, const struct spm_pool_state *pool,
                       const struct sums *sums)
{
        const struct spm_block *block, *last = NULL;
        uint64_t bytes = 0;

        for (block = pool->kept_oldest; block; last = block, block = block->newer) {
                bytes += block->size;
                if (!spm_block_is(block, SPM_BLOCK_KEPT) || block->older != last)
                        fail(check, "what is kept is listed both ways", block->address, 0);
        }
        if (last != pool->kept_newest)
                fail(check, "what is kept has an end", bytes, 0);
        expect_equal(check, "what is kept is listed", bytes, sums->kept);
        expect_equal(check, "what is kept is counted", pool->kept_bytes, sums->kept);
        expect_at_most(check, "no more is kept than may be", sums->kept, pool->config.quarantine);
}

static void check_magazines(struct check *check, const struct spm_pool_state *pool)
{
        const struct spm_magazine *magazine;

        for (magazine = pool->magazines; magazine; magazine = magazine->next)
                if ((magazine->dead || spm_magazine_is_barred(magazine->stream)) &&
                    !spm_magazine_is_empty(magazine))
                        fail(check, "H6 a magazine that is barred is empty", magazine->stream_id,
                             magazine->dead);
}

static void check_heaps(struct check *check, const struct spm_pool_state *pool,
                        const struct sums *sums)
{
        const struct spm_block *block;
        uint64_t spanning = 0;
        uint64_t holes = 0;
        unsigned int i;
        size_t count;

        for (i = 0; i < pool->heap_count; i++) {
                if (!spm_bins_check(&pool->heaps[i].ready, &count) || count != sums->ready_count[i])
                        fail(check, "I3 ready blocks are in their bins", count,
                             sums->ready_count[i]);
                if (!spm_bins_check(&pool->heaps[i].shore, &count) || count != sums->shore_count[i])
                        fail(check, "I3 ready blocks beside holes are in their bins", count,
                             sums->shore_count[i]);
                for (block = pool->heaps[i].holes; block; block = block->right)
                        holes++;
        }
        for (block = pool->spanning; block; block = block->newer)
                spanning++;
        expect_equal(check, "holes are listed", holes, sums->holes);
        expect_equal(check, "blocks that span are listed", spanning, sums->spanning);
}

static void check_pool(struct check *check, const struct spm_pool_state *pool, uint64_t *blocks)
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
        expect_equal(check, "I3 reserved", stats.reserved_current, sums.reserved);
        expect_equal(check, "I3 used", stats.used_current, sums.used);
        expect_equal(check, "I3 rounded", stats.rounded_current, sums.rounded);
        expect_equal(check, "I3 pending", stats.pending_bytes, sums.pending);
        expect_equal(check, "I3 pending is the sum over streams, magazines and what is kept",
                     stats.pending_bytes, in_lanes + sums.held + sums.kept);
        check_kept(check, pool, &sums);
        check_magazines(check, pool);
        expect_equal(check, "I3 ready", stats.ready_bytes, sums.ready);
        expect_equal(check, "I3 sealed", stats.sealed_bytes, sums.sealed);
        expect_equal(check, "I3 live blocks", stats.live_blocks, sums.live);
        expect_equal(check, "I3 every byte is counted once", stats.reserved_current,
                     stats.rounded_current + stats.pending_bytes + stats.ready_bytes +
                             stats.sealed_bytes);
        expect_at_most(check, "I3 used is reserved", stats.used_current, stats.reserved_current);
        expect_at_most(check, "I3 used high", stats.used_current, stats.used_high);
        expect_at_most(check, "I3 reserved high", stats.reserved_current, stats.reserved_high);
        expect_at_most(check, "I3 live high", stats.live_blocks, stats.live_blocks_high);
        expect_at_most(check, "what growth is measured by", pool->busy_high, INT64_MAX);
        expect_at_most(check, "what decay is measured by", pool->window_high, INT64_MAX);
        if (pool->config.max_size)
                expect_at_most(check, "the cap", pool->reserved_bytes, pool->config.max_size);
        check_heaps(check, pool, &sums);
        broken = spm_shelf_check(pool, &a, &b);
        if (broken)
                fail(check, broken, a, b);
        *blocks += sums.blocks;
}

static void check_clock(struct check *check, const struct spm_clock *clock)
{
        uint32_t i;

        for (i = 0; i < clock->count; i++) {
                const struct spm_stream_state *stream =
                        spm_subject_stream(check->model, clock->points[i].stream);

                if (i && clock->points[i - 1].stream >= clock->points[i].stream)
                        fail(check, "I4 a clock is ascending", i, clock->points[i].stream);
                if (stream)
                        expect_at_most(check, "I4 a clock knows no future",
                                       clock->points[i].position, stream->submitted);
        }
}

static void check_stamps(struct check *check, const struct spm_stamp_list *list)
{
        const struct spm_stamp_state *stamp;
        unsigned int count = 0;

        for (stamp = list->first; stamp; stamp = stamp->next) {
                count++;
                check_clock(check, &stamp->clock);
                if (stamp->next && stamp->next->position <= stamp->position)
                        fail(check, "stamps are ascending", stamp->object.id, stamp->position);
        }
        expect_equal(check, "stamps are counted", list->count, count);
}

/* R1: one stream, or the legacy one and a blocking one, which is in order with it. */
static void check_work(struct check *check, const struct spm_context_state *context)
{
        const struct spm_work *work = &context->work;

        expect_at_most(check, "what is adopted was counted", work->adopted, work->epoch);
        if (!work->sole)
                return;
        if (!work->adopted || !work->alone || work->busy.per_thread || work->busy.streams > 2 ||
            (work->busy.streams == 2 && work->sole != context->legacy_stream))
                fail(check, "R1 the sole stream is the only one", work->sole->object.id,
                     work->busy.streams);
        expect_at_most(check, "R1 what was served early was freed", work->early,
                       work->sole->submitted);
}

static void check_context(struct check *check, const struct spm_context_state *context)
{
        const struct spm_stream_state *stream;
        unsigned int capturing = 0;

        check_clock(check, &context->base);
        check_clock(check, &context->legacy);
        check_stamps(check, &context->stamps);
        check_work(check, context);
        for (stream = context->streams; stream; stream = stream->next) {
                capturing += stream->capturing;
                check_clock(check, &stream->clock);
                check_stamps(check, &stream->stamps);
                expect_at_most(check, "I4 H_sync is below H_poll", stream->done_sync,
                               stream->done_poll);
                expect_at_most(check, "I4 what is done was submitted", stream->done_poll,
                               stream->submitted);
                if (!stream->awake &&
                    (stream->submitted > stream->done_sync || stream->clock.count))
                        fail(check, "a stream that rests has told all", stream->object.id,
                             stream->submitted);
                expect_at_most(check, "I4 stamps stand for the past", stream->stamped,
                               stream->submitted);
        }
        expect_equal(check, "captures are counted", context->captures, capturing);
}

static void check_ledger(struct check *check)
{
        const char *broken = NULL;

        if (check->model->ledger)
                broken = spm_ledger_check(check->model);
        if (!broken && check->model->ledger)
                broken = spm_tag_check(check->model);
        if (broken)
                fail(check, broken, 0, 0);
}

bool spm_check(const struct spm_model *model, char *buffer, size_t size)
{
        struct check check = {.model = model};
        const struct spm_pool_state *pool;
        const struct spm_object *object;
        uint64_t blocks = 0;
        size_t ended = 0;

        spm_text_start(&check.text, buffer, buffer ? size : 0);
        spm_magazine_stop_all(model, true);
        for (object = model->contexts.head; object; object = spm_object_next(object))
                check_context(&check, (const struct spm_context_state *)object);
        for (object = model->events.head; object; object = spm_object_next(object))
                check_clock(&check, &((const struct spm_event_state *)object)->clock);
        for (pool = spm_pool_first(model); pool; pool = spm_pool_next(pool)) {
                if (pool->ended)
                        ended++;
                else
                        check_pool(&check, pool, &blocks);
        }
        if (!ended)
                expect_equal(&check, "records are counted", model->blocks, blocks);
        check_ledger(&check);
        spm_magazine_go_on(model);
        return !check.failed;
}

#ifdef SPM_DEBUG
void spm_check_step(struct spm_model *model)
{
        char text[160];

        if (model->unchecked++ < model->blocks / 64)
                return;
        model->unchecked = 0;
        if (!spm_check(model, text, sizeof(text)))
                abort(); /* text says what is broken */
}
#endif
