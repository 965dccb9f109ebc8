/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collect -- what has waited for points that are complete
 *
 * Completion arrives as a clock and costs time by the number of blocks it
 * sets free, not by the number that wait. Only strays, whose lane could not
 * be had for lack of host memory, are looked at one by one.
 */

#include "collect.h"

#include "limbo.h"
#include "pool.h"
#include "stamp.h"
#include "state.h"

static void collect_lane(struct spm_model *model, struct spm_lane *lane)
{
        struct spm_block *block;

        while ((block = lane->oldest) &&
               spm_pool_is_done(model, lane->pool, spm_block_dep(block, 0))) {
                spm_limbo_take(model, block);
                /* In another lane it would look like one that was freed a moment ago. */
                block->barred = block->barred || lane->pool->config.kind != SPM_POOL_ASYNC;
                spm_limbo_put(model, block);
        }
}

void spm_collect_strays(struct spm_model *model)
{
        struct spm_block *block = model->strays;

        while (block) {
                struct spm_block *next = block->newer;

                spm_limbo_take(model, block);
                spm_limbo_put(model, block);
                block = next;
        }
}

void spm_collect_pool(struct spm_model *model, struct spm_pool_state *pool)
{
        struct spm_object *object;

        /* Lanes made on the way are appended, and looked at too. */
        for (object = pool->lanes.head; object; object = spm_object_next(object))
                collect_lane(model, (struct spm_lane *)object);
        spm_collect_strays(model);
}

static void mark_synced(struct spm_lane *lane, uint64_t done)
{
        if (!lane->unsynced || lane->unsynced > done)
                return;
        lane->pool->synced = true;
        lane->unsynced = lane->last > done ? done + 1 : 0;
}

void spm_collect_stream(struct spm_model *model, struct spm_stream_state *stream)
{
        struct spm_lane *lane;
        bool empty = true;

        for (lane = stream->lanes; lane; lane = lane->next) {
                collect_lane(model, lane);
                mark_synced(lane, stream->done_sync);
                empty = empty && !lane->oldest;
        }
        spm_stamp_settle(model, stream);
        if (stream->kind == SPM_STREAM_LINE && !stream->retired)
                spm_work_settle(model, stream->context);

        /* H17, L1: a retired stream is kept for what still waits for it. */
        if (!stream->retired || !empty || stream->stamps.count ||
            stream->done_poll < stream->submitted)
                return;
        spm_lane_forget_stream(model, stream);
        spm_subject_remove_stream(model, stream);
}

void spm_collect_clock(struct spm_model *model, const struct spm_clock *clock, bool sync)
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
                if (stream->kind == SPM_STREAM_LINE)
                        atomic_store_explicit(&stream->context->line_done, stream->done_poll,
                                              memory_order_release);
                if (sync && stream->done_sync < position)
                        stream->done_sync = position;
        }
        for (i = 0; i < clock->count; i++) {
                struct spm_stream_state *stream =
                        spm_subject_stream(model, clock->points[i].stream);

                if (stream)
                        spm_collect_stream(model, stream);
        }
        if (model->strays)
                spm_collect_strays(model);
}
