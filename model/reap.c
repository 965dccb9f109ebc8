/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reap -- what was freed and is not complete, and how to wait for it
 *
 * Nothing is taken out before it was waited for, so nothing has to be put
 * back when a wait fails.
 */

#include "collect.h"
#include "front.h"
#include "lane.h"
#include "ledger.h"
#include "limbo.h"
#include "pool.h"
#include "trim.h"

static bool is_asked(const struct spm_pool_state *pool, spm_pool id)
{
        return !id || pool->object.id == id;
}

/* figures */

static uint64_t stray_bytes(const struct spm_model *model, const struct spm_pool_state *pool)
{
        const struct spm_block *block;
        uint64_t bytes = 0;

        for (block = model->strays; block; block = block->newer)
                bytes += block->area->pool == pool ? block->size : 0;
        return bytes;
}

static void count(const struct spm_model *model, const struct spm_pool_state *pool,
                  struct spm_outstanding *figures)
{
        const struct spm_object *object;
        struct spm_stats stats;

        spm_pool_figures(pool, &stats);
        figures->live_bytes += stats.rounded_current;
        figures->pending_bytes += stats.pending_bytes;
        figures->outstanding_bytes += stats.rounded_current + stats.pending_bytes;
        figures->stream_bytes += stray_bytes(model, pool);
        for (object = pool->lanes.head; object; object = spm_object_next(object))
                figures->stream_bytes += ((const struct spm_lane *)object)->bytes;
}

enum spm_status spm_outstanding(const struct spm_model *model, spm_pool id,
                                struct spm_outstanding *figures)
{
        const struct spm_pool_state *pool;

        if (id && !spm_pool_find(model, id))
                return SPM_E_UNKNOWN;
        *figures = (struct spm_outstanding){0};
        for (pool = spm_pool_first(model); pool; pool = spm_pool_next(pool))
                if (is_asked(pool, id))
                        count(model, pool, figures);
        return SPM_OK;
}

/* What to wait for: a stream that has ended cannot be named any more, and a per-thread stream by
 * its own thread only (F5). */
static struct spm_scope scope_of(const struct spm_stream_state *stream)
{
        if (stream->kind == SPM_STREAM_LINE || stream->kind == SPM_STREAM_PER_THREAD ||
            stream->retired)
                return (struct spm_scope){SPM_SCOPE_CONTEXT, stream->context->object.id};
        return (struct spm_scope){SPM_SCOPE_STREAM, stream->object.id};
}

enum spm_status spm_each_pending(const struct spm_model *model, spm_pool id,
                                 bool (*visit)(struct spm_scope where, uint64_t bytes, void *user),
                                 void *user)
{
        const struct spm_pool_state *pool;
        const struct spm_object *object;

        if (id && !spm_pool_find(model, id))
                return SPM_E_UNKNOWN;
        for (pool = spm_pool_first(model); pool; pool = spm_pool_next(pool))
                for (object = is_asked(pool, id) ? pool->lanes.head : NULL; object;
                     object = spm_object_next(object)) {
                        const struct spm_lane *lane = (const struct spm_lane *)object;

                        if (lane->bytes && !visit(scope_of(lane->stream), lane->bytes, user))
                                return SPM_OK;
                }
        return SPM_OK;
}

/* reap */

/* Of blocks that are in no lane, for lack of host memory. */
static struct spm_stream_state *find_astray(const struct spm_model *model, spm_pool id)
{
        const struct spm_block *block;
        unsigned int i;

        for (block = model->strays; block; block = block->newer)
                for (i = 0; is_asked(block->area->pool, id) && i < block->dep_count; i++) {
                        struct spm_point point = spm_block_dep(block, i);
                        struct spm_stream_state *stream = spm_subject_stream(model, point.stream);

                        if (stream && point.position > stream->done_sync &&
                            spm_context_may_be_named(stream->context))
                                return stream;
                }
        return NULL;
}

/* The next stream that something is pending on, and that was not waited for. A lane may be made,
 * or forgotten, by every wait. */
static struct spm_stream_state *find_due(const struct spm_model *model, spm_pool id)
{
        const struct spm_pool_state *pool;
        const struct spm_object *object;

        for (pool = spm_pool_first(model); pool; pool = spm_pool_next(pool))
                for (object = is_asked(pool, id) ? pool->lanes.head : NULL; object;
                     object = spm_object_next(object)) {
                        const struct spm_lane *lane = (const struct spm_lane *)object;
                        struct spm_stream_state *stream = lane->stream;

                        if (lane->oldest && lane->oldest->positions[0] > stream->done_sync &&
                            spm_context_may_be_named(stream->context))
                                return stream;
                }
        return find_astray(model, id);
}

/* All that was submitted before the wait is complete now. */
static enum spm_status wait_for(struct spm_model *model, struct spm_scope what,
                                bool (*wait)(struct spm_scope what, void *user), void *user)
{
        struct spm_ticket ticket;
        enum spm_status status = spm_sync_begin(model, what, &ticket);
        struct spm_snapshot *behind;
        bool ok;

        if (status)
                return status;
        behind = ticket.snapshot;
        ok = wait(what, user);
        if (ok) {
                model->proofs++;
                spm_collect_clock(model, &behind->clock, true);
        }
        spm_snapshot_free(model, behind);
        return ok ? SPM_OK : SPM_E_DRIVER;
}

enum spm_status spm_reap_pending(struct spm_model *model, spm_pool id,
                                 bool (*wait)(struct spm_scope what, void *user), void *user,
                                 struct spm_reaped *reaped, struct spm_actions *actions)
{
        struct spm_outstanding before;
        struct spm_outstanding after;
        enum spm_status status = spm_outstanding(model, id, &before);
        struct spm_stream_state *stream;

        actions->count = 0;
        if (status)
                return status;
        *reaped = (struct spm_reaped){0};
        while (status == SPM_OK && (stream = find_due(model, id))) {
                struct spm_scope what = scope_of(stream);

                status = wait_for(model, what, wait, user);
                if (status == SPM_OK)
                        reaped->waits++;
                else if (status == SPM_E_DRIVER)
                        reaped->failed = what;
        }
        if (spm_outstanding(model, id, &after) == SPM_OK)
                reaped->bytes = before.pending_bytes - after.pending_bytes;
        if (model->ledger)
                spm_ledger_sweep(model, true);
        spm_trim_synced(model, NULL, actions);
        return spm_model_finish(model, status, actions);
}
