/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Question -- what is known of live blocks, and a little that is noted of them
 *
 * Part of the front door (model.c).
 */

#include "front.h"
#include "limbo.h"
#include "recall.h"
#include "slab.h"
#include "state.h"
#include "subject.h"

static struct spm_block *live_at(const struct spm_model *model, uint64_t address)
{
        struct spm_block *block;

        return spm_block_find_live(model, address, &block) == SPM_OK ? block : NULL;
}

enum spm_status spm_find(const struct spm_model *model, uint64_t address,
                         struct spm_allocation *allocation)
{
        struct spm_block *block;
        enum spm_status status = spm_block_find_live(model, address, &block);

        if (status == SPM_OK) {
                spm_block_describe(block, allocation);
                spm_block_place(block, allocation);
        }
        return status;
}

enum spm_status spm_set_user(struct spm_model *model, uint64_t address, uint64_t user)
{
        struct spm_block *block = live_at(model, address);

        if (!block)
                return SPM_E_FOREIGN;
        block->user = user;
        return SPM_OK;
}

/* The first point is there already, and only moves: nothing is needed for that. */
enum spm_status spm_touch(struct spm_model *model, uint64_t address)
{
        struct spm_block *block = live_at(model, address);
        struct spm_stream_state *stream;

        if (!block || block->address != address || block->area->pool->config.kind != SPM_POOL_ASYNC)
                return SPM_E_FOREIGN;
        stream = spm_subject_usable(model, block->streams[0]);
        if (!stream)
                return SPM_E_UNKNOWN;
        block->positions[0] = spm_stream_submit(stream);
        if (!block->dep_count)
                block->dep_count = 1;
        return SPM_OK;
}

enum spm_status spm_export(struct spm_model *model, uint64_t address)
{
        struct spm_block *block = live_at(model, address);

        if (!block)
                return SPM_E_FOREIGN;
        block->exported = true;
        return SPM_OK;
}

/* The point of its allocation, if that is in the order of a stream. */
static struct spm_point born_at(const struct spm_block *block)
{
        if (block->area->pool->config.kind != SPM_POOL_ASYNC)
                return (struct spm_point){0};
        return (struct spm_point){block->streams[0], block->positions[0]};
}

bool spm_is_ready(const struct spm_model *model, uint64_t address)
{
        const struct spm_block *block = live_at(model, address);

        struct spm_point born;

        if (!block)
                return false;
        born = born_at(block);
        return !born.stream || spm_point_is_done(model, born, false);
}

bool spm_is_ready_on(const struct spm_model *model, uint64_t address, spm_stream consumer,
                     spm_event id)
{
        const struct spm_block *block = live_at(model, address);
        const struct spm_stream_state *stream = spm_subject_usable(model, consumer);
        const struct spm_event_state *event = spm_subject_event(model, id);
        struct spm_point born;

        if (!block || !stream)
                return false;
        born = born_at(block);
        if (!born.stream || spm_point_is_done(model, born, false) ||
            spm_stream_covers(stream, born))
                return true;
        return event && event->status == SPM_EVENT_KNOWN && spm_clock_covers(&event->clock, born);
}

enum spm_status spm_pending_on(const struct spm_model *model, spm_stream id, uint64_t *bytes)
{
        const struct spm_stream_state *stream = spm_subject_stream(model, id);
        const struct spm_lane *lane;

        if (!stream)
                return SPM_E_UNKNOWN;
        *bytes = 0;
        for (lane = stream->lanes; lane; lane = lane->next)
                *bytes += lane->bytes;
        return SPM_OK;
}

/* Return: false to end the walk. */
static bool visit_block(const struct spm_block *block, spm_pool pool,
                        bool (*visit)(const struct spm_allocation *allocation, void *user),
                        void *user)
{
        struct spm_allocation allocation;

        if (!spm_block_is(block, SPM_BLOCK_LIVE))
                return true;
        spm_block_describe(block, &allocation);
        return (pool && allocation.pool != pool) || visit(&allocation, user);
}

static bool visit_tile(const struct spm_block *tile, spm_pool pool,
                       bool (*visit)(const struct spm_allocation *allocation, void *user),
                       void *user)
{
        uint32_t i;

        if (!spm_block_is(tile, SPM_BLOCK_SLAB))
                return visit_block(tile, pool, visit, user);
        for (i = 0; i < tile->slab->count; i++)
                if (!visit_block(&tile->slab->slots[i], pool, visit, user))
                        return false;
        return true;
}

void spm_each_live(const struct spm_model *model, spm_pool pool,
                   bool (*visit)(const struct spm_allocation *allocation, void *user), void *user)
{
        bool go_on = true;
        size_t i;

        spm_magazine_stop_all(model, false);
        for (i = 0; go_on && i < model->area_count; i++) {
                const struct spm_block *tile = model->areas[i]->first;

                for (; go_on && tile; tile = tile->next)
                        go_on = visit_tile(tile, pool, visit, user);
        }
        spm_magazine_go_on(model);
}
