/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refill -- magazines that are made and ended, and their owners who come with the lock
 *
 * An owner whose magazine has nothing takes the caller's lock and asks the model;
 * on the way the magazine gets slots of the same class, figures by which it may
 * rise, and generations. It may have been recalled since, so it is looked into
 * once more before the model serves.
 */

#include "front.h"
#include "host.h"
#include "limbo.h"
#include "magazine.h"
#include "recall.h"
#include "ripe.h"
#include "state.h"

#define FILL        8
#define GENERATIONS 4096 /* reserved at once */

/* life */

enum spm_status spm_magazine_new(struct spm_model *model, spm_pool pool_id, spm_stream stream_id,
                                 struct spm_magazine **result)
{
        struct spm_pool_state *pool = spm_pool_find(model, pool_id);
        struct spm_stream_state *stream = spm_subject_usable(model, stream_id);
        struct spm_magazine *magazine;
        struct spm_area *area;
        unsigned int areas = 0;

        if (!pool || pool->closed)
                return SPM_E_UNKNOWN;
        if (pool->work && !stream_id)
                stream = pool->context->line;
        if (!stream)
                return SPM_E_UNKNOWN;
        if (pool->config.kind != (stream_id ? SPM_POOL_ASYNC : SPM_POOL_SYNC) ||
            !pool->config.range_size || pool->detour)
                return SPM_E_INVALID_VALUE;
        magazine = spm_host_new(model, sizeof(*magazine));
        if (!magazine)
                return SPM_E_HOST_MEMORY;
        for (area = pool->areas; area; area = area->next)
                if (!area->is_lone)
                        magazine->areas[areas++] = area;
        magazine->model = model;
        magazine->is_fenced = model->config.fence != NULL;
        magazine->stream_id = stream->object.id;
        magazine->stream = stream;
        magazine->is_sync = pool->work;
        magazine->line_id = stream->context->line->object.id;
        magazine->pool = pool;
        magazine->recalled = spm_magazine_is_barred(stream);
        magazine->next = pool->magazines;
        pool->magazines = magazine;
        stream->magazines++;
        magazine->told = pool->work ? pool->work->frees : SPM_WORK_FREE_COMPLETE;
        if (pool->work)
                spm_work_note(model, pool->context);
        /* Its last point may have been looked at already (subject.c). */
        spm_stream_submit(stream);
        *result = magazine;
        return SPM_OK;
}

void spm_magazine_end(struct spm_model *model, struct spm_magazine *magazine)
{
        struct spm_magazine **at = magazine->pool ? &magazine->pool->magazines : &model->orphans;

        if (magazine->pool)
                spm_magazine_empty(model, magazine);
        while (*at != magazine)
                at = &(*at)->next;
        *at = magazine->next;
        if (!magazine->dead)
                spm_magazine_kill(magazine);
        spm_host_free(model, magazine);
}

void spm_magazine_crowd(struct spm_model *model, struct spm_magazine *magazine)
{
        if (!magazine->is_sync || magazine->dead)
                return;
        magazine->stream->context->work.crowded = true;
        spm_work_note(model, magazine->stream->context);
}

enum spm_status spm_magazine_retire(struct spm_model *model, spm_pool id)
{
        struct spm_pool_state *pool = spm_pool_find(model, id);

        if (!pool)
                return SPM_E_UNKNOWN;
        spm_magazine_abandon(model, pool);
        return SPM_OK;
}

/* what it has besides */

/* Slots that nobody but the stream has to be asked for. */
static struct spm_block *next_slot(struct spm_model *model, const struct spm_magazine *magazine,
                                   const struct spm_want *want)
{
        struct spm_lane *lane =
                magazine->is_sync ? NULL : spm_lane_find(want->pool, magazine->stream_id);
        struct spm_block *slot = lane ? lane->slots[want->klass] : NULL;

        if (slot && spm_magazine_is_plain(magazine, slot)) {
                spm_limbo_take(model, slot);
                slot->dep_count = 1;
                return slot;
        }
        slot = spm_slab_take(want->pool, want->klass);
        if (slot)
                slot->streams[0] = magazine->stream_id;
        return slot;
}

static void fill(struct spm_model *model, struct spm_magazine *magazine,
                 const struct spm_want *want)
{
        unsigned int i;

        for (i = 0; i < FILL && magazine->small_count[want->klass] < SPM_MAGAZINE_SMALL; i++) {
                struct spm_block *slot = next_slot(model, magazine, want);

                if (!slot)
                        return;
                spm_block_become(slot, SPM_BLOCK_HELD);
                want->pool->pending_bytes += slot->size;
                spm_magazine_put(magazine, slot);
        }
}

/* What is complete serves any thread, so no more than has to be is laid up for this one (ripe.h).
 */
static bool may_lay_up(const struct spm_magazine *magazine, size_t size)
{
        return !magazine->is_sync ||
               (size <= SPM_RIPE_MAX && spm_ripe_now(magazine) == SPM_WORK_FREE_WAITS);
}

static bool is_for(const struct spm_magazine *magazine, const struct spm_want *want)
{
        return !magazine->dead && magazine->pool == want->pool &&
               (magazine->is_sync || magazine->stream == want->stream) &&
               !spm_magazine_is_barred(magazine->stream);
}

/* Greater ones than whatever was served with the lock. */
static void renew(struct spm_model *model, struct spm_magazine *magazine)
{
        if (magazine->generation != magazine->generation_end &&
            magazine->generation_end == model->generation + 1)
                return;
        magazine->generation = model->generation + 1;
        model->generation += GENERATIONS;
        magazine->generation_end = model->generation + 1;
}

bool spm_magazine_serve(struct spm_model *model, struct spm_magazine *magazine,
                        const struct spm_want *want, struct spm_allocation *allocation)
{
        size_t rounded = want->requested;
        struct spm_block **held;
        struct spm_block *block;
        unsigned int klass;

        if (!is_for(magazine, want))
                return false;
        spm_magazine_settle(magazine);
        renew(model, magazine);
        held = spm_magazine_find(magazine, &rounded, &klass);
        if (!held) {
                spm_magazine_spill(model, magazine);
                return false;
        }
        block = spm_magazine_take_out(magazine, held, klass);
        spm_magazine_give(magazine, block, want->requested, want->user, allocation);
        spm_magazine_settle(magazine);
        spm_pool_raise_marks(magazine->pool);
        spm_magazine_grant(magazine);
        spm_magazine_let_go(magazine);
        return true;
}

void spm_magazine_visit(struct spm_model *model, struct spm_magazine *magazine,
                        const struct spm_want *want)
{
        if (!is_for(magazine, want))
                return;
        spm_magazine_settle(magazine);
        magazine->legacy_id = magazine->stream->context->legacy_stream
                                      ? magazine->stream->context->legacy_stream->object.id
                                      : magazine->line_id;
        if (want->klass != SPM_NO_CLASS && !magazine->small[want->klass] &&
            may_lay_up(magazine, want->size))
                fill(model, magazine, want);
        spm_magazine_grant(magazine);
        renew(model, magazine);
        spm_magazine_let_go(magazine);
}
