/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serve -- a free block becomes the program's
 *
 * Everything that can fail comes first: records for what is cut off, a lane
 * for what may be freed on the stream later, room for what has to be asked.
 */

#include "serve.h"

#include <assert.h>

#include "action.h"
#include "state.h"

/* Takes what is served out of a free block; the rest stays as free as it was. */
static inline struct spm_block *carve(struct spm_model *model, struct spm_block *block,
                                      uint64_t start, size_t size)
{
        if (block->is_slot && spm_block_is(block, SPM_BLOCK_READY))
                return spm_slab_take(block->area->pool, block->klass);
        if (block->is_slot) {
                spm_limbo_take(model, block);
                return block;
        }
        if (spm_block_is(block, SPM_BLOCK_PENDING))
                return spm_limbo_cut(model, block, (size_t)(start - block->address), size);
        return spm_pool_cut_ready(model, block, start, size);
}

static bool is_complete(const struct spm_model *model, const struct spm_block *block)
{
        unsigned int i;

        if (spm_block_is(block, SPM_BLOCK_READY))
                return true;
        for (i = 0; i < block->dep_count; i++)
                if (!spm_point_is_done(model, spm_block_dep(block, i), false))
                        return false;
        return true;
}

/*
 * A6: what the memory waits for outlives a free that names no stream. The belt may be submitted
 * later than an observation of the stream begins, so the donor's point is among it; so is whatever
 * the stream is behind without having waited for it.
 *
 * The first point is that of the allocation itself, which has no position yet.
 *
 * Return: false if that is too much to remember.
 */
static bool find_birth(const struct spm_model *model, const struct spm_want *want,
                       const struct spm_fit *fit, struct spm_point born[SPM_BLOCK_BORN],
                       unsigned int *count)
{
        const struct spm_block *block = fit->block;
        unsigned int i;

        *count = 0;
        if (is_complete(model, block))
                return true;
        born[(*count)++].stream = want->stream->object.id;
        for (i = 0; i < block->dep_count; i++) {
                struct spm_point point = spm_block_dep(block, i);

                if (spm_point_is_done(model, point, false))
                        continue;
                if ((i || !fit->belt) && spm_stream_has_waited(want->stream, point))
                        continue;
                if (*count == SPM_BLOCK_BORN)
                        return false;
                born[(*count)++] = point;
        }
        return true;
}

static void ask_wait(struct spm_actions *actions, const struct spm_want *want,
                     struct spm_stamp_state *stamp)
{
        struct spm_action *action = spm_action_add(actions, SPM_ACT_WAIT_STREAM);

        stamp->lent = true;
        action->context = want->stream->context->object.id;
        action->stream = want->stream->object.id;
        action->stamp = stamp->object.id;
}

/* The belt, and what makes it an operation of a legacy stream; but while a stream captures that
 * waits for that, the driver would have refused, and complete memory needs nothing. */
static bool ask_order(struct spm_model *model, const struct spm_want *want,
                      const struct spm_fit *fit, bool complete, struct spm_actions *actions)
{
        bool traps = want->pool->config.kind == SPM_POOL_ASYNC && spm_work_is_trapped(want->stream);

        if (complete && !traps)
                return true;
        if (spm_actions_room(actions) < 2)
                return false;
        if (!complete && fit->belt)
                ask_wait(actions, want, fit->belt);
        return !traps || spm_stamp_trap(model, want->stream, false, actions) ||
               (complete && want->stream->context->captures);
}

static void give_life(struct spm_model *model, const struct spm_want *want, struct spm_block *block)
{
        block->requested = want->requested;
        block->streams[0] = want->stream ? want->stream->object.id : 0;
        block->positions[0] = want->stream ? spm_stream_submit(want->stream) : 0;
        if (want->pool->config.kind == SPM_POOL_ASYNC)
                want->stream->allocated = block->positions[0];
        block->user = want->user;
        block->generation = ++model->generation;
        spm_block_become(block, SPM_BLOCK_LIVE);
        if (!block->is_slot)
                spm_area_note(block, true);
        spm_pool_count_alloc(block);
}

enum spm_status spm_serve_fit(struct spm_model *model, const struct spm_want *want,
                              const struct spm_fit *fit, struct spm_block **served,
                              struct spm_actions *actions)
{
        struct spm_point born[SPM_BLOCK_BORN];
        struct spm_block *block;
        unsigned int count, before;

        if (!spm_block_reserve(model, 2))
                return SPM_E_HOST_MEMORY;
        if (want->stream && !spm_lane_make(model, want->pool, want->stream))
                return SPM_E_HOST_MEMORY;
        if (!find_birth(model, want, fit, born, &count))
                return SPM_E_UNKNOWN;
        assert(want->stream || !count);
        before = actions->count;
        if (want->stream && !ask_order(model, want, fit, !count, actions)) {
                actions->count = before;
                return SPM_E_UNKNOWN;
        }

        if (count && want->pool->config.kind != SPM_POOL_ASYNC)
                spm_work_served(want->stream->context, fit->block);
        block = carve(model, fit->block, fit->start, want->size);
        block->belted = count && fit->belt;
        /* Extras are at hand. */
        if (!spm_block_set_deps(model, block, born, count))
                assert(false);
        give_life(model, want, block);
        *served = block;
        return SPM_OK;
}

bool spm_serve_slab(struct spm_model *model, const struct spm_want *want)
{
        struct spm_pool_state *pool = want->pool;
        size_t size = spm_slab_run_size(pool, want->size);
        struct spm_block *run;
        uint64_t start;

        run = spm_fit_heap(want->heap, size, pool->page, &start);
        if (!run || !spm_block_reserve(model, 2))
                return false;
        run = carve(model, run, start, size);
        if (spm_slab_new(model, run, want->klass, want->size))
                return true;
        spm_pool_make_ready(model, run);
        return false;
}
