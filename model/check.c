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

#include <assert.h>
#include <stdlib.h>

#include "limbo.h"
#include "pool.h"
#include "segment.h"
#include "stamp.h"
#include "state.h"
#include "subject.h"
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
        uint64_t used, rounded, pending, ready, sealed, live, blocks;
        uint64_t ready_count;
};

static void check_pending(struct check *check, const struct spm_block *block)
{
        const struct spm_pool_state *pool = block->segment->pool;

        if (!block->dep_count || block->dep_count > SPM_BLOCK_DEPS)
                fail(check, "I5 a pending block waits for something", block->address,
                     block->dep_count);
        if (block->lane)
                expect_equal(check, "I5 the first dependency names the lane", block->deps[0].stream,
                             block->lane->object.id);
        if (block->open && pool->config.kind != SPM_POOL_ASYNC)
                fail(check, "I8 a synchronous block is never open", block->address, 0);
        if (block->open && block->exported)
                fail(check, "I10 an exported block is never open", block->address, 0);
}

static void check_block(struct check *check, const struct spm_block *block, struct sums *sums)
{
        sums->blocks++;
        switch (block->state) {
        case SPM_BLOCK_LIVE:
                sums->live++;
                sums->used += block->requested;
                sums->rounded += block->size;
                expect_at_most(check, "I3 requested fits reserved", block->requested, block->size);
                break;
        case SPM_BLOCK_PENDING:
                sums->pending += block->size;
                check_pending(check, block);
                break;
        case SPM_BLOCK_READY:
                sums->ready += block->size;
                sums->ready_count++;
                if (block->exported)
                        fail(check, "I10 an exported block is never ready", block->address, 0);
                if (block->next && block->next->state == SPM_BLOCK_READY)
                        fail(check, "I5 ready neighbours are joined", block->address, 0);
                break;
        case SPM_BLOCK_SEALED:
                sums->sealed += block->size;
                break;
        case SPM_BLOCK_LOOSE:
                fail(check, "I1 no block is loose between inputs", block->address, 0);
                break;
        }
}

static uint64_t check_segment(struct check *check, const struct spm_segment_state *segment,
                              struct sums *sums)
{
        const struct spm_block *block;
        uint64_t at = segment->base;
        uint64_t busy = 0;

        for (block = segment->first; block; block = block->next) {
                expect_equal(check, "I1 blocks tile their segment", block->address, at);
                if (block->segment != segment || (block->next && block->next->previous != block))
                        fail(check, "I1 blocks are linked both ways", block->address, 0);
                at += block->size;
                busy += block->state == SPM_BLOCK_LIVE || block->state == SPM_BLOCK_PENDING;
                check_block(check, block, sums);
        }
        expect_equal(check, "I3 blocks fill their segment", at, segment->base + segment->size);
        expect_equal(check, "I9 busy blocks are counted", segment->busy, busy);
        return segment->size;
}

static void check_lane(struct check *check, const struct spm_lane *lane, uint64_t *bytes)
{
        struct spm_node *node = spm_tree_first(&lane->order);
        uint64_t sum = 0;
        size_t open = 0;
        size_t count = 0;
        size_t counted;

        for (; node; node = spm_tree_after(&lane->order, node)) {
                const struct spm_block *block = spm_node_owner(node, struct spm_block, by_order);

                sum += block->size;
                open += block->open;
                count++;
                expect_equal(check, "I5 a lane is ordered by position", node->major,
                             block->deps[0].position);
                if (spm_pool_is_done(check->model, lane->pool, block->deps[0]))
                        fail(check, "what is complete does not stay in limbo", block->address, 0);
        }
        expect_equal(check, "I3 the lane's bytes are counted", lane->bytes, sum);
        expect_equal(check, "shut blocks are counted", lane->shut, count - open);
        if (!spm_tree_check(&lane->open, &counted) || counted != open)
                fail(check, "open blocks are in order", counted, open);
        *bytes += sum;
}

static void check_pool(struct check *check, const struct spm_pool_state *pool, uint64_t *blocks)
{
        const struct spm_segment_state *segment;
        const struct spm_object *object;
        struct sums sums = {0};
        uint64_t reserved = 0;
        uint64_t in_lanes = 0;
        size_t count = 0;
        const struct spm_block *stray;

        for (segment = pool->idle; segment; segment = segment->next)
                reserved += check_segment(check, segment, &sums);
        for (segment = pool->busy; segment; segment = segment->next)
                reserved += check_segment(check, segment, &sums);
        for (object = pool->lanes.head; object; object = spm_object_next(object))
                check_lane(check, (const struct spm_lane *)object, &in_lanes);
        for (stray = check->model->strays; stray;
             stray = stray->by_order.right
                             ? spm_node_owner(stray->by_order.right, struct spm_block, by_order)
                             : NULL)
                in_lanes += stray->segment->pool == pool ? stray->size : 0;

        expect_equal(check, "I3 reserved", pool->reserved_bytes, reserved);
        expect_equal(check, "I3 used", pool->used_bytes, sums.used);
        expect_equal(check, "I3 rounded", pool->rounded_bytes, sums.rounded);
        expect_equal(check, "I3 pending", pool->pending_bytes, sums.pending);
        expect_equal(check, "I3 pending is the sum over streams", pool->pending_bytes, in_lanes);
        expect_equal(check, "I3 ready", pool->ready_bytes, sums.ready);
        expect_equal(check, "I3 sealed", pool->sealed_bytes, sums.sealed);
        expect_equal(check, "I3 live blocks", pool->live_blocks, sums.live);
        expect_at_most(check, "I3 used is reserved", pool->used_bytes, pool->reserved_bytes);
        expect_at_most(check, "I3 used high", pool->used_bytes, pool->used_high);
        expect_at_most(check, "I3 reserved high", pool->reserved_bytes, pool->reserved_high);
        expect_at_most(check, "I3 live high", pool->live_blocks, pool->live_blocks_high);
        if (pool->config.max_size)
                expect_at_most(check, "the cap", pool->reserved_bytes, pool->config.max_size);
        if (!spm_tree_check(&pool->ready, &count) || count != sums.ready_count)
                fail(check, "I3 ready blocks are in order", count, sums.ready_count);
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

static void check_context(struct check *check, const struct spm_context_state *context)
{
        const struct spm_stream_state *stream;
        unsigned int capturing = 0;

        check_clock(check, &context->base);
        check_clock(check, &context->legacy);
        check_stamps(check, &context->stamps);
        for (stream = context->streams; stream; stream = stream->next) {
                capturing += stream->capturing;
                check_clock(check, &stream->clock);
                check_stamps(check, &stream->stamps);
                expect_at_most(check, "I4 H_sync is below H_poll", stream->done_sync,
                               stream->done_poll);
                expect_at_most(check, "I4 what is done was submitted", stream->done_poll,
                               stream->submitted);
                expect_at_most(check, "I4 stamps stand for the past", stream->stamped,
                               stream->submitted);
        }
        expect_equal(check, "captures are counted", context->captures, capturing);
}

bool spm_check(const struct spm_model *model, char *buffer, size_t size)
{
        struct check check = {.model = model};
        const struct spm_pool_state *pool;
        const struct spm_object *object;
        uint64_t live = 0;
        uint64_t blocks = 0;
        size_t count = 0;

        spm_text_start(&check.text, buffer, buffer ? size : 0);
        for (object = model->contexts.head; object; object = spm_object_next(object))
                check_context(&check, (const struct spm_context_state *)object);
        for (object = model->events.head; object; object = spm_object_next(object))
                check_clock(&check, &((const struct spm_event_state *)object)->clock);
        for (pool = spm_pool_first(model); pool; pool = spm_pool_next(pool)) {
                check_pool(&check, pool, &blocks);
                live += pool->live_blocks;
        }
        if (!spm_tree_check(&model->live, &count) || count != live)
                fail(&check, "I1 live blocks are found by address", count, live);
        expect_equal(&check, "records are counted", model->blocks, blocks);
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
