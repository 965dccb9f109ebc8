/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limbo -- freed, but work that may touch it can still be running
 *
 * Completion arrives as a clock and costs time by the number of blocks it
 * sets free, not by the number that wait. Only strays, whose lane could not
 * be had for lack of host memory, are looked at one by one.
 */

#include "limbo.h"

#include <assert.h>

#include "host.h"
#include "pool.h"
#include "stamp.h"
#include "state.h"

#define REOPEN_MAX 8

/* lanes */

struct spm_lane *spm_limbo_find(const struct spm_pool_state *pool, spm_stream stream)
{
        return (struct spm_lane *)spm_table_find(&pool->lanes, stream);
}

struct spm_lane *spm_limbo_lane(struct spm_model *model, struct spm_pool_state *pool,
                                struct spm_stream_state *stream)
{
        struct spm_lane *lane = spm_limbo_find(pool, stream->object.id);

        if (lane)
                return lane;
        lane = spm_host_new(model, sizeof(*lane));
        if (!lane)
                return NULL;
        lane->object.id = stream->object.id;
        if (!spm_table_put(model, &pool->lanes, &lane->object)) {
                spm_host_free(model, lane);
                return NULL;
        }
        lane->pool = pool;
        lane->stream = stream;
        lane->next = stream->lanes;
        stream->lanes = lane;
        return lane;
}

static void forget_lane(struct spm_model *model, struct spm_lane *lane)
{
        struct spm_lane **at = &lane->stream->lanes;

        assert(!lane->order.root && !lane->open.root);
        while (*at != lane)
                at = &(*at)->next;
        *at = lane->next;
        spm_table_remove(model, &lane->pool->lanes, &lane->object);
        spm_host_free(model, lane);
}

void spm_limbo_forget_stream(struct spm_model *model, struct spm_stream_state *stream)
{
        while (stream->lanes)
                forget_lane(model, stream->lanes);
}

void spm_limbo_forget_pool(struct spm_model *model, struct spm_pool_state *pool)
{
        while (pool->lanes.head)
                forget_lane(model, (struct spm_lane *)pool->lanes.head);
}

/* blocks */

static void drop_done(const struct spm_model *model, struct spm_block *block)
{
        const struct spm_pool_state *pool = block->segment->pool;
        unsigned int kept = 0;
        unsigned int i;

        for (i = 0; i < block->dep_count; i++)
                if (!spm_pool_is_done(model, pool, block->deps[i]))
                        block->deps[kept++] = block->deps[i];
        block->dep_count = kept;
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
        spm_stream id = block->deps[i].stream;

        if (spm_point_is_done(model, block->deps[i], false) ||
            spm_stream_covers(stream, block->deps[i]))
                return true;
        if (stream->kind == SPM_STREAM_NON_BLOCKING || !i)
                return false;
        return id == context->line->object.id ||
               (context->legacy_stream && id == context->legacy_stream->object.id);
}

/* May the stream of its lane have the block in stream order? */
static bool is_open(const struct spm_model *model, const struct spm_block *block,
                    const struct spm_lane *lane)
{
        unsigned int i;

        if (lane->pool->config.kind != SPM_POOL_ASYNC || lane->stream->kind == SPM_STREAM_LINE ||
            block->exported || block->barred)
                return false;
        for (i = 1; i < block->dep_count; i++)
                if (!spm_limbo_covers(model, lane->stream, block, i))
                        return false;
        return true;
}

static void put_in_lane(struct spm_lane *lane, struct spm_block *block, bool open)
{
        struct spm_stream_state *stream = lane->stream;
        uint64_t position = block->deps[0].position;

        block->state = SPM_BLOCK_PENDING;
        block->lane = lane;
        block->open = open;
        block->by_order.major = position;
        block->by_order.minor = block->address;
        spm_tree_insert(&lane->order, &block->by_order);
        if (open) {
                block->by_size.major = block->size;
                block->by_size.minor = block->address;
                spm_tree_insert(&lane->open, &block->by_size);
        } else {
                lane->shut++;
        }
        lane->bytes += block->size;
        if (stream->freed < position)
                stream->freed = position;
        if (!lane->unsynced || position < lane->unsynced)
                lane->unsynced = position;
        if (lane->last < position)
                lane->last = position;
}

static void put_astray(struct spm_model *model, struct spm_block *block)
{
        block->state = SPM_BLOCK_PENDING;
        block->lane = NULL;
        block->open = false;
        block->by_order.left = NULL;
        block->by_order.right = model->strays ? &model->strays->by_order : NULL;
        if (model->strays)
                model->strays->by_order.left = &block->by_order;
        model->strays = block;
}

static void take_astray(struct spm_model *model, struct spm_block *block)
{
        struct spm_node *newer = block->by_order.left;
        struct spm_node *older = block->by_order.right;

        if (newer)
                newer->right = older;
        else
                model->strays = older ? spm_node_owner(older, struct spm_block, by_order) : NULL;
        if (older)
                older->left = newer;
}

void spm_limbo_take(struct spm_model *model, struct spm_block *block)
{
        struct spm_lane *lane = block->lane;

        assert(block->state == SPM_BLOCK_PENDING);
        if (!lane) {
                take_astray(model, block);
        } else {
                spm_tree_remove(&lane->order, &block->by_order);
                if (block->open)
                        spm_tree_remove(&lane->open, &block->by_size);
                else
                        lane->shut--;
                lane->bytes -= block->size;
        }
        block->segment->pool->pending_bytes -= block->size;
        spm_pool_count_busy(block, false);
        block->state = SPM_BLOCK_LOOSE;
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
                deps[i] = a->deps[i];
        for (j = 0; j < b->dep_count; j++) {
                for (i = 0; i < count; i++)
                        if (deps[i].stream == b->deps[j].stream)
                                break;
                if (i == SPM_BLOCK_DEPS)
                        return i + 1;
                if (i == count)
                        deps[count++] = b->deps[j];
                else if (deps[i].position < b->deps[j].position)
                        deps[i].position = b->deps[j].position;
        }
        return count;
}

/*
 * A neighbour is joined if it is open in the same lane and no stamp lies between the two frees.
 * Otherwise a stream that keeps freeing next to old blocks would make them look new for ever, and
 * nobody who follows its events could have them.
 */
static void try_join(struct spm_model *model, struct spm_block *block, struct spm_block *other,
                     const struct spm_lane *lane)
{
        struct spm_point deps[SPM_BLOCK_DEPS];
        unsigned int count;
        unsigned int i;

        if (!other || other->state != SPM_BLOCK_PENDING || other->lane != lane || !other->open)
                return;
        if (other->deps[0].position <= lane->stream->stamped)
                return;
        count = join_deps(block, other, deps);
        if (count > SPM_BLOCK_DEPS)
                return;
        spm_limbo_take(model, other);
        spm_block_absorb(model, block, other);
        block->dep_count = count;
        for (i = 0; i < count; i++)
                block->deps[i] = deps[i];
}

void spm_limbo_put(struct spm_model *model, struct spm_block *block)
{
        struct spm_stream_state *stream;
        struct spm_lane *lane;
        bool open;

        assert(block->state == SPM_BLOCK_LOOSE);
        drop_done(model, block);
        if (!block->dep_count) {
                block->barred = false;
                spm_pool_make_ready(model, block);
                return;
        }
        /* A point that is not complete has a stream. */
        stream = spm_subject_stream(model, block->deps[0].stream);
        lane = spm_limbo_lane(model, block->segment->pool, stream);
        open = lane && is_open(model, block, lane);
        if (open && block->deps[0].position > stream->stamped) {
                try_join(model, block, block->previous, lane);
                try_join(model, block, block->next, lane);
        }
        block->segment->pool->pending_bytes += block->size;
        spm_pool_count_busy(block, true);
        if (lane)
                put_in_lane(lane, block, open);
        else
                put_astray(model, block);
}

void spm_limbo_reopen(struct spm_model *model, struct spm_lane *lane)
{
        struct spm_node *node;
        unsigned int looked = 0;

        if (!lane->shut || lane->pool->config.kind != SPM_POOL_ASYNC)
                return;
        for (node = spm_tree_first(&lane->order); node && looked < REOPEN_MAX; looked++) {
                struct spm_block *block = spm_node_owner(node, struct spm_block, by_order);

                node = spm_tree_after(&lane->order, node);
                if (block->open || !is_open(model, block, lane))
                        continue;
                lane->shut--;
                block->open = true;
                block->by_size.major = block->size;
                block->by_size.minor = block->address;
                spm_tree_insert(&lane->open, &block->by_size);
        }
}

/* completion */

static void collect_lane(struct spm_model *model, struct spm_lane *lane)
{
        struct spm_node *node;

        while ((node = spm_tree_first(&lane->order))) {
                struct spm_block *block = spm_node_owner(node, struct spm_block, by_order);

                if (!spm_pool_is_done(model, lane->pool, block->deps[0]))
                        break;
                spm_limbo_take(model, block);
                spm_limbo_put(model, block);
        }
}

void spm_limbo_collect_strays(struct spm_model *model)
{
        struct spm_block *block = model->strays;

        while (block) {
                struct spm_node *older = block->by_order.right;
                struct spm_block *next =
                        older ? spm_node_owner(older, struct spm_block, by_order) : NULL;

                spm_limbo_take(model, block);
                spm_limbo_put(model, block);
                block = next;
        }
}

void spm_limbo_collect_pool(struct spm_model *model, struct spm_pool_state *pool)
{
        struct spm_object *object;

        /* Lanes made on the way are appended, and looked at too. */
        for (object = pool->lanes.head; object; object = spm_object_next(object))
                collect_lane(model, (struct spm_lane *)object);
        spm_limbo_collect_strays(model);
}

static void mark_synced(struct spm_lane *lane, uint64_t done)
{
        if (!lane->unsynced || lane->unsynced > done)
                return;
        lane->pool->synced = true;
        lane->unsynced = lane->last > done ? done + 1 : 0;
}

void spm_limbo_collect_stream(struct spm_model *model, struct spm_stream_state *stream)
{
        struct spm_lane *lane;
        bool empty = true;

        for (lane = stream->lanes; lane; lane = lane->next) {
                collect_lane(model, lane);
                mark_synced(lane, stream->done_sync);
                empty = empty && !lane->order.root;
        }
        spm_stamp_settle(model, stream);

        /* H17, L1: a retired stream is kept for what still waits for it. */
        if (!stream->retired || !empty || stream->stamps.count ||
            stream->done_poll < stream->submitted)
                return;
        spm_limbo_forget_stream(model, stream);
        spm_subject_remove_stream(model, stream);
}

void spm_limbo_complete(struct spm_model *model, const struct spm_clock *clock, bool sync)
{
        uint32_t i;

        /* All points first, so that a block that waits for several is looked at once. */
        for (i = 0; i < clock->count; i++) {
                struct spm_stream_state *stream =
                        spm_subject_stream(model, clock->points[i].stream);
                uint64_t position = clock->points[i].position;

                if (!stream)
                        continue;
                if (stream->done_poll < position)
                        stream->done_poll = position;
                if (sync && stream->done_sync < position)
                        stream->done_sync = position;
        }
        for (i = 0; i < clock->count; i++) {
                struct spm_stream_state *stream =
                        spm_subject_stream(model, clock->points[i].stream);

                if (stream)
                        spm_limbo_collect_stream(model, stream);
        }
        if (model->strays)
                spm_limbo_collect_strays(model);
}
