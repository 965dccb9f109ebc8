/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Model -- who may have which memory, and when
 *
 * The front door: life, contexts and streams. Memory comes in by store.c, what
 * orders and observes the streams by observe.c, what is allocated and freed by
 * block.c. Every function checks, then changes, and leaves by
 * spm_model_finish() if it may ask for something.
 */

#include <assert.h>

#include "area.h"
#include "check.h"
#include "collect.h"
#include "front.h"
#include "layout.h"
#include "ledger.h"
#include "limbo.h"
#include "pool.h"
#include "quarantine.h"
#include "recall.h"
#include "segment.h"
#include "stamp.h"
#include "state.h"
#include "subject.h"
#include "trim.h"

#define BATCH_BLOCKS 128
#define BATCH_BYTES  ((size_t)32 << 20)
#define GUARD_BYTES  ((size_t)64 << 10)

/* Made-up addresses lie where no driver puts device memory. */
#define MODEL_BASE 0x7F0000000000u

void spm_model_tidy(struct spm_model *model, struct spm_actions *actions)
{
        if (model->unfinished)
                spm_trim_rest(model, actions);
        if (model->closed_pools)
                spm_trim_closed(model, actions);
        spm_stamp_flush(model, actions);
}

/* life */

enum spm_status spm_model_new(const struct spm_config *config, struct spm_model **result)
{
        struct spm_model scratch = {0};
        struct spm_model *model;

        if (config) {
                if (!config->alloc != !config->free)
                        return SPM_E_INVALID_VALUE;
                scratch.config = *config;
        }
        if (!scratch.config.batch_blocks)
                scratch.config.batch_blocks = BATCH_BLOCKS;
        if (!scratch.config.batch_bytes)
                scratch.config.batch_bytes = BATCH_BYTES;
        if (!scratch.config.guard_bytes)
                scratch.config.guard_bytes = GUARD_BYTES;
        model = spm_host_new(&scratch, sizeof(*model));
        if (!model)
                return SPM_E_HOST_MEMORY;
        *model = scratch;
        model->dropped_end = &model->dropped;
        model->next_base = MODEL_BASE;
        *result = model;
        return SPM_OK;
}

/* Whatever it was waiting for, and whoever knows of it: its memory is about to be given back. */
static void kill_block(struct spm_model *model, struct spm_block *block)
{
        switch (spm_block_state(block)) {
        case SPM_BLOCK_LIVE:
                if (block->area->pool->config.track_uses)
                        spm_ledger_drop(model, block, false);
                spm_pool_count_end(block, false);
                if (!block->is_slot)
                        spm_area_note(block, false);
                spm_block_become(block, SPM_BLOCK_LOOSE);
                break;
        case SPM_BLOCK_HELD:
                block->area->pool->pending_bytes -= block->size;
                if (!block->is_slot)
                        spm_area_note(block, false);
                spm_block_become(block, SPM_BLOCK_LOOSE);
                break;
        case SPM_BLOCK_PENDING:
                spm_limbo_take(model, block);
                break;
        case SPM_BLOCK_KEPT:
                spm_quarantine_take(block);
                break;
        case SPM_BLOCK_SEALED:
                spm_pool_unseal(block);
                break;
        default:
                return;
        }
        block->exported = false;
        spm_pool_make_ready(model, block);
}

static void kill_slots(struct spm_model *model, struct spm_slab *slab)
{
        uint32_t i;

        for (i = 0; i < slab->count; i++)
                kill_block(model, &slab->slots[i]);
}

static void kill_blocks(struct spm_model *model, struct spm_pool_state *pool)
{
        struct spm_area *area;
        struct spm_block *tile;

        spm_magazine_abandon(model, pool);
        /* A slab may be retired at its last slot, and joins its neighbours: then look again. */
        for (area = pool->areas; area; area = area->next)
                for (tile = area->first; tile; tile = tile->next)
                        if (spm_block_is(tile, SPM_BLOCK_SLAB))
                                kill_slots(model, tile->slab);
                        else
                                kill_block(model, tile);
        spm_slab_shed(model, pool);
}

/* Nothing is served from it between the steps in which its memory is given back. */
static void end_pool(struct spm_model *model, struct spm_pool_state *pool)
{
        kill_blocks(model, pool);
        model->closed_pools += !pool->closed;
        pool->closed = true;
        pool->is_apart = true;
        spm_pool_end(pool);
}

static void forget_pool(struct spm_model *model, struct spm_pool_state *pool)
{
        struct spm_object *object = model->segments.head;

        kill_blocks(model, pool);
        spm_pool_end(pool);
        while (object) {
                struct spm_segment_state *segment = (struct spm_segment_state *)object;

                object = spm_object_next(object);
                if (segment->area->pool == pool)
                        spm_segment_drop(model, segment);
        }
        spm_pool_free(model, pool);
}

/* Its streams are complete and gone; what waits for them becomes ready. */
static void forget_streams(struct spm_model *model, struct spm_context_state *context)
{
        struct spm_stream_state *stream;
        struct spm_stream_state *next;

        for (stream = context->streams; stream; stream = stream->next) {
                spm_magazine_recall_stream(model, stream, true);
                spm_stamp_drop_all(model, stream);
                stream->done_sync = UINT64_MAX;
                stream->done_poll = UINT64_MAX;
        }
        spm_collect_strays(model);
        for (stream = context->streams; stream; stream = next) {
                next = stream->next;
                model->stream_count -= !stream->retired && stream->kind != SPM_STREAM_LINE;
                stream->retired = true;
                spm_collect_stream(model, stream);
        }
        context->line = NULL;
}

void spm_model_free(struct spm_model *model)
{
        struct spm_model last;

        if (!model)
                return;
        while (model->pools.head)
                forget_pool(model, spm_pool_first(model));
        while (model->events.head)
                spm_subject_remove_event(model, (struct spm_event_state *)model->events.head);
        while (model->contexts.head) {
                struct spm_context_state *context =
                        (struct spm_context_state *)model->contexts.head;

                forget_streams(model, context);
                spm_subject_remove_context(model, context);
        }
        spm_ledger_forget(model);
        spm_stamp_forget(model);
        spm_snapshot_forget(model);
        spm_table_forget(model);
        spm_magazine_forget(model);
        spm_slab_forget(model);
        spm_block_forget_spares(model);
        spm_area_forget(model);
        last.config = model->config;
        spm_host_free(&last, model);
}

/* contexts and streams */

enum spm_status spm_context_add(struct spm_model *model, int device, spm_context *context)
{
        assert(model && context);
        return spm_subject_add_context(model, device, context);
}

enum spm_status spm_context_hide(struct spm_model *model, spm_context id)
{
        struct spm_context_state *context = spm_subject_context(model, id);

        if (!context || context->gone)
                return SPM_E_UNKNOWN;
        context->hidden = true;
        spm_magazine_recall_legacy(model, context);
        return SPM_OK;
}

enum spm_status spm_context_remove(struct spm_model *model, spm_context id,
                                   struct spm_actions *actions)
{
        struct spm_context_state *context = spm_subject_context(model, id);
        struct spm_pool_state *pool;
        struct spm_pool_state *next;
        bool more = false;

        actions->count = 0;
        if (!context)
                return SPM_E_UNKNOWN;
        if (!context->gone) {
                context->gone = true;
                context->captures = 0;
                spm_persist_settle(model);
                for (pool = spm_pool_first(model); pool; pool = spm_pool_next(pool))
                        if (pool->config.context == id)
                                end_pool(model, pool);
                forget_streams(model, context);
        }
        for (pool = spm_pool_first(model); pool; pool = next) {
                next = spm_pool_next(pool);
                if (pool->config.context != id)
                        continue;
                if (spm_trim_ended(model, pool, actions)) {
                        model->closed_pools -= pool->closed;
                        spm_pool_free(model, pool);
                } else {
                        more = true;
                }
        }
        spm_stamp_flush(model, actions);
        if (more || model->dropped)
                return spm_model_finish(model, SPM_AGAIN, actions);
        spm_subject_remove_context(model, context);
        return spm_model_finish(model, SPM_OK, actions);
}

enum spm_status spm_stream_add(struct spm_model *model, spm_context id, enum spm_stream_kind kind,
                               spm_stream *stream)
{
        struct spm_context_state *context = spm_subject_context(model, id);

        enum spm_status status;

        if (!context || context->gone)
                return SPM_E_UNKNOWN;
        if (model->config.max_streams && model->stream_count >= model->config.max_streams)
                return SPM_E_OUT_OF_BUDGET;
        status = spm_subject_add_stream(model, context, kind, stream);
        if (status != SPM_OK)
                return status;
        model->stream_count++;
        if (context->blocking)
                spm_magazine_recall_legacy(model, context);
        return SPM_OK;
}

static void end_stream(struct spm_model *model, struct spm_stream_state *stream)
{
        if (stream->context->legacy_stream == stream)
                stream->context->legacy_stream = NULL;
        stream->retired = true;
        model->stream_count--;
        spm_collect_stream(model, stream);
}

enum spm_status spm_stream_undo(struct spm_model *model, spm_stream id)
{
        struct spm_stream_state *stream = spm_subject_usable(model, id);

        if (!stream)
                return SPM_E_UNKNOWN;
        assert(!stream->submitted && !stream->magazines && !stream->capturing);
        end_stream(model, stream);
        SPM_CHECK(model);
        return SPM_OK;
}

/* Nobody has told the legacy stream anything, so neither it nor whoever watches it is behind
 * @stream's work; a stamp of the context is (U1). */
static void part_from_legacy(struct spm_model *model, const struct spm_stream_state *stream)
{
        struct spm_context_state *context = stream->context;
        const struct spm_stream_state *legacy = context->legacy_stream;
        struct spm_point point = {context->line->object.id, spm_stream_submit(context->line)};
        struct spm_lane *lane;
        struct spm_block *block;

        context->unstamped = true;
        for (lane = legacy->lanes; lane; lane = lane->next)
                for (block = lane->newest; block && block->positions[0] > legacy->stamped;
                     block = block->older) {
                        if (block->open)
                                spm_limbo_bar(lane, block);
                        if (!spm_block_wait_more(model, block, point))
                                block->exported = true; /* nobody's: nothing else is safe */
                }
}

/* Has something been allocated there that the driver did not see, and may @stream have had work? */
static bool is_behind_unseen(const struct spm_stream_state *legacy,
                             const struct spm_stream_state *stream)
{
        return stream->kind == SPM_STREAM_BLOCKING && legacy->allocated > legacy->stamped &&
               legacy->allocated > legacy->done_poll && spm_work_may_have(stream);
}

/*
 * What was freed or allocated on the legacy stream is behind the work that blocking streams had
 * then, and so is whatever comes later there, but a call that the driver does not see leaves no
 * mark of that. As long as @stream is there, whatever is seen of the legacy stream says something
 * of its work, too; nothing says so once it is destroyed. So the legacy stream is stamped now: from
 * then on it is behind that work by itself.
 */
static void leave_legacy(struct spm_model *model, struct spm_stream_state *stream,
                         struct spm_actions *actions)
{
        struct spm_stream_state *legacy = stream->context->legacy_stream;

        if (!legacy || !spm_stream_waits_for_legacy(stream) ||
            !(spm_stamp_is_due(legacy) || is_behind_unseen(legacy, stream)))
                return;
        /* For a thread that ends nothing can be stamped any more (F5). */
        if (stream->kind == SPM_STREAM_PER_THREAD || !spm_stamp_ask(model, legacy, true, actions))
                part_from_legacy(model, stream);
}

enum spm_status spm_stream_retire(struct spm_model *model, spm_stream id,
                                  struct spm_actions *actions)
{
        struct spm_stream_state *stream = spm_subject_usable(model, id);

        actions->count = 0;
        if (!stream)
                return SPM_E_UNKNOWN;
        spm_magazine_recall_stream(model, stream, true);
        if (spm_work_relies_on(stream))
                spm_work_blur(model, stream->context, actions);
        if (spm_stamp_is_due(stream))
                spm_stamp_ask(model, stream, true, actions);
        leave_legacy(model, stream, actions);
        stream->context->captures -= stream->capturing;
        spm_persist_settle(model);
        stream->capturing = 0;
        end_stream(model, stream);
        return spm_model_finish(model, SPM_OK, actions);
}

enum spm_status spm_capture_begin(struct spm_model *model, spm_stream id,
                                  struct spm_actions *actions)
{
        struct spm_stream_state *stream = spm_subject_usable(model, id);

        actions->count = 0;
        if (!stream)
                return SPM_E_UNKNOWN;
        spm_magazine_recall_stream(model, stream, false);
        spm_magazine_recall_stream(model, stream->context->line, false);
        spm_work_blur(model, stream->context, actions);
        /* The last moment for stamps (C5). */
        if (spm_stamp_is_due(stream))
                spm_stamp_ask(model, stream, true, actions);
        if (stream->context->unstamped)
                spm_stamp_ask(model, stream->context->line, true, actions);
        stream->capturing++;
        stream->context->captures++;
        return spm_model_finish(model, SPM_OK, actions);
}

enum spm_status spm_capture_end(struct spm_model *model, spm_stream id)
{
        struct spm_stream_state *stream = spm_subject_usable(model, id);

        if (!stream)
                return SPM_E_UNKNOWN;
        if (stream->capturing) {
                stream->capturing--;
                stream->context->captures--;
                spm_magazine_go_on(model);
                spm_persist_settle(model);
        }
        SPM_CHECK(model);
        return SPM_OK;
}
