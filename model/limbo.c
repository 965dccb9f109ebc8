/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limbo -- freed, but work that may touch it can still be running
 */

#include "limbo.h"

#include <assert.h>

#include "pool.h"
#include "stamp.h"
#include "state.h"

#define REOPEN_MAX 8
#define JOIN_MAX   32

/* blocks */

static void drop_done(struct spm_model *model, struct spm_block *block)
{
        const struct spm_pool_state *pool = block->area->pool;
        struct spm_point kept[SPM_BLOCK_DEPS];
        unsigned int count = 0;
        unsigned int i;

        for (i = 0; i < block->dep_count; i++) {
                struct spm_point point = spm_block_dep(block, i);

                if (!spm_pool_is_done(model, pool, point))
                        kept[count++] = point;
        }
        /* Fewer than there were, so there is room. */
        if (count < block->dep_count)
                spm_block_set_deps(model, block, kept, count);
}

/*
 * Does what is submitted next to @stream run after the block's point @i? A point of the legacy
 * stream, or of the line, that is not the lane's own stands for work on the legacy stream, after
 * which the blocking streams of its context run anyhow.
 */
bool spm_limbo_covers(const struct spm_model *model, const struct spm_stream_state *stream,
                      const struct spm_block *block, unsigned int i)
{
        const struct spm_context_state *context = stream->context;
        struct spm_point point = spm_block_dep(block, i);

        if (spm_point_is_done(model, point, false) || spm_stream_covers(stream, point))
                return true;
        if (stream->kind == SPM_STREAM_NON_BLOCKING || !i)
                return false;
        return point.stream == context->line->object.id ||
               (context->legacy_stream && point.stream == context->legacy_stream->object.id);
}

/* May the stream of its lane have the block in stream order? */
static bool is_open(const struct spm_model *model, const struct spm_block *block,
                    const struct spm_lane *lane)
{
        unsigned int i;

        if (lane->stream->kind == SPM_STREAM_LINE || block->exported || block->barred)
                return false;
        if (lane->pool->config.kind != SPM_POOL_ASYNC &&
            spm_work_early(lane->pool->work) != lane->stream)
                return false;
        for (i = 1; i < block->dep_count; i++)
                if (!spm_limbo_covers(model, lane->stream, block, i))
                        return false;
        return true;
}

/* So many blocks of this size more that are not open. */
static void count_shut(struct spm_lane *lane, const struct spm_block *block, int more)
{
        lane->shut += (size_t)more;
        lane->shut_bytes += (uint64_t)more * block->size;
}

/* Its figures and its set, wherever it is in the queue. A set that cannot grow is done without. */
static void count_in(struct spm_model *model, struct spm_lane *lane, struct spm_block *block,
                     bool open)
{
        spm_block_become(block, SPM_BLOCK_PENDING);
        block->lane = lane;
        block->open = open && spm_lane_add_open(model, lane, block);
        count_shut(lane, block, !block->open);
        lane->bytes += block->size;
}

static void put_in_lane(struct spm_model *model, struct spm_lane *lane, struct spm_block *block,
                        bool open)
{
        struct spm_stream_state *stream = lane->stream;
        uint64_t position;

        if (lane->newest && lane->newest->positions[0] > block->positions[0])
                block->positions[0] = lane->newest->positions[0];
        position = block->positions[0];
        spm_lane_link(lane, lane->newest, block);
        count_in(model, lane, block, open);
        if (stream->freed < position)
                stream->freed = position;
        if (!lane->unsynced || position < lane->unsynced)
                lane->unsynced = position;
        if (lane->last < position)
                lane->last = position;
}

static void put_astray(struct spm_model *model, struct spm_block *block)
{
        spm_block_become(block, SPM_BLOCK_PENDING);
        block->lane = NULL;
        block->open = false;
        block->older = NULL;
        block->newer = model->strays;
        if (model->strays)
                model->strays->older = block;
        model->strays = block;
}

static void take_astray(struct spm_model *model, struct spm_block *block)
{
        if (block->older)
                block->older->newer = block->newer;
        else
                model->strays = block->newer;
        if (block->newer)
                block->newer->older = block->older;
}

void spm_limbo_take(struct spm_model *model, struct spm_block *block)
{
        struct spm_lane *lane = block->lane;

        assert(spm_block_is(block, SPM_BLOCK_PENDING));
        if (!lane) {
                take_astray(model, block);
        } else {
                spm_lane_unlink(lane, block);
                if (block->open)
                        spm_lane_take_open(lane, block);
                else
                        count_shut(lane, block, -1);
                lane->bytes -= block->size;
        }
        block->area->pool->pending_bytes -= block->size;
        spm_block_become(block, SPM_BLOCK_LOOSE);
        block->lane = NULL;
}

/* joining */

/* The dependencies of both, in @deps. Return: how many; more than SPM_BLOCK_DEPS if too many. */
static unsigned int join_deps(const struct spm_block *a, const struct spm_block *b,
                              struct spm_point deps[SPM_BLOCK_DEPS])
{
        unsigned int count = a->dep_count;
        unsigned int i;
        unsigned int j;

        for (i = 0; i < count; i++)
                deps[i] = spm_block_dep(a, i);
        for (j = 0; j < b->dep_count; j++) {
                struct spm_point point = spm_block_dep(b, j);

                for (i = 0; i < count; i++)
                        if (deps[i].stream == point.stream)
                                break;
                if (i == SPM_BLOCK_DEPS)
                        return i + 1;
                if (i == count)
                        deps[count++] = point;
                else if (deps[i].position < point.position)
                        deps[i].position = point.position;
        }
        return count;
}

void spm_limbo_absorb(struct spm_model *model, struct spm_block *block, struct spm_block *other)
{
        struct spm_lane *lane = block->lane;
        struct spm_pool_state *pool = lane->pool;
        size_t more = other->size;

        if (spm_block_is(other, SPM_BLOCK_READY))
                spm_pool_take_ready(other);
        else
                spm_limbo_take(model, other);
        spm_lane_take_open(lane, block);
        spm_block_absorb(model, block, other);
        lane->bytes += more;
        pool->pending_bytes += more;
        block->open = spm_lane_add_open(model, lane, block);
        count_shut(lane, block, !block->open);
}

/* Synchronous memory that no stamp tells from later work may be barred. */
static bool is_unguarded(const struct spm_lane *lane, const struct spm_block *block)
{
        return lane->pool->config.kind != SPM_POOL_ASYNC &&
               block->positions[0] > lane->stream->stamped;
}

/* Nobody follows the events of a stream to synchronous memory, so only that keeps it apart. */
static bool may_join_over_stamps(const struct spm_lane *lane, const struct spm_block *older,
                                 const struct spm_block *newer)
{
        if (lane->pool->config.kind != SPM_POOL_ASYNC)
                return is_unguarded(lane, older) || !is_unguarded(lane, newer);
        return !spm_stamp_between(lane->stream, older->positions[0], newer->positions[0]);
}

/*
 * A neighbour is joined if it is open in the same lane, was freed earlier, and no stamp lies
 * between the two frees. Otherwise a stream that keeps freeing next to old blocks would make them
 * look new for ever, and nobody who follows its events could have them.
 */
static bool try_join(struct spm_model *model, struct spm_block *block, struct spm_block *other)
{
        const struct spm_lane *lane = block->lane;
        struct spm_point deps[SPM_BLOCK_DEPS];
        unsigned int count;

        if (!spm_block_is(other, SPM_BLOCK_PENDING) || other->lane != lane || !other->open ||
            !block->open || other->positions[0] > block->positions[0])
                return false;
        if (!may_join_over_stamps(lane, other, block))
                return false;
        count = join_deps(block, other, deps);
        if (!spm_block_set_deps(model, block, deps, count))
                return false;
        spm_limbo_absorb(model, block, other);
        return true;
}

/* Where one stream alone uses a pool, nobody misses ready memory that it has as well. Of a
 * synchronous pool it would be missed: by whoever comes when a second stream has ended that, and by
 * who gives back what is idle. */
static bool try_join_ready(struct spm_model *model, struct spm_block *block,
                           struct spm_block *other)
{
        const struct spm_lane *lane = block->lane;

        if (!spm_block_is(other, SPM_BLOCK_READY) || !block->open ||
            lane->pool->config.kind != SPM_POOL_ASYNC || spm_object_next(lane->pool->lanes.head))
                return false;
        spm_limbo_absorb(model, block, other);
        return true;
}

static void join_neighbours(struct spm_model *model, struct spm_block *block)
{
        while (try_join(model, block, block->previous) ||
               try_join_ready(model, block, block->previous))
                ;
        while (try_join(model, block, block->next) || try_join_ready(model, block, block->next))
                ;
}

void spm_limbo_put_waiting(struct spm_model *model, struct spm_block *block)
{
        struct spm_pool_state *pool = block->area->pool;
        struct spm_lane *lane;

        assert(spm_block_is(block, SPM_BLOCK_LOOSE));
        drop_done(model, block);
        if (!block->dep_count) {
                spm_pool_put_ready(model, block);
                return;
        }
        pool->pending_bytes += block->size;
        /* A point that is not complete has a stream. */
        lane = spm_lane_make(model, pool, spm_subject_stream(model, block->streams[0]));
        if (!lane) {
                put_astray(model, block);
                return;
        }
        put_in_lane(model, lane, block, is_open(model, block, lane));
        if (block->open && block->size > SPM_HEAP_SMALL)
                join_neighbours(model, block);
}

struct spm_block *spm_limbo_cut(struct spm_model *model, struct spm_block *block, size_t front,
                                size_t size)
{
        struct spm_pool_state *pool = block->area->pool;
        struct spm_lane *lane = block->lane;
        struct spm_block *older = block->older;
        struct spm_block *middle = block;

        spm_limbo_take(model, block);
        if (front) {
                middle = spm_block_split(model, block, front);
                spm_lane_link(lane, older, block);
                count_in(model, lane, block, true);
                pool->pending_bytes += front;
                older = block;
        }
        if (size < middle->size) {
                struct spm_block *back = spm_block_split(model, middle, size);

                spm_lane_link(lane, older, back);
                count_in(model, lane, back, true);
                pool->pending_bytes += back->size;
        }
        return middle;
}

bool spm_limbo_join(struct spm_model *model, struct spm_lane *lane)
{
        struct spm_block *block = lane->joined ? lane->joined->newer : lane->oldest;
        unsigned int looked;

        /* From the oldest on, so that a block meets its elders. */
        for (looked = 0; block && looked < JOIN_MAX && !is_unguarded(lane, block); looked++) {
                lane->joined = block;
                if (!block->is_slot && block->open)
                        join_neighbours(model, block);
                block = block->newer;
        }
        return looked != 0;
}

void spm_limbo_reopen(struct spm_model *model, struct spm_lane *lane)
{
        struct spm_block *block = lane->oldest;
        unsigned int looked;

        if (!lane->shut || lane->pool->config.kind != SPM_POOL_ASYNC)
                return;
        for (looked = 0; block && looked < REOPEN_MAX; looked++, block = block->newer) {
                if (block->open || !is_open(model, block, lane))
                        continue;
                block->open = spm_lane_add_open(model, lane, block);
                count_shut(lane, block, -block->open);
        }
}

void spm_limbo_bar(struct spm_lane *lane, struct spm_block *block)
{
        spm_lane_take_open(lane, block);
        block->open = false;
        block->barred = true;
        count_shut(lane, block, 1);
}
