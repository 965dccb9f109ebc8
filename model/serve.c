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

/* Cuts what is before @start and after @start + @size off a LOOSE block, into @front and @back. */
static struct spm_block *carve(struct spm_model *model, struct spm_block *block, uint64_t start,
                               size_t size, struct spm_block **front, struct spm_block **back)
{
        *front = NULL;
        *back = NULL;
        if (start > block->address) {
                *front = block;
                block = spm_block_split(model, block, (size_t)(start - block->address));
        }
        if (size < block->size)
                *back = spm_block_split(model, block, size);
        return block;
}

static void put_back(struct spm_model *model, struct spm_block *block)
{
        if (!block)
                return;
        if (block->dep_count)
                spm_limbo_put(model, block);
        else
                spm_pool_make_ready(model, block);
}

static bool is_complete(const struct spm_model *model, const struct spm_block *block)
{
        unsigned int i;

        if (block->state == SPM_BLOCK_READY)
                return true;
        for (i = 0; i < block->dep_count; i++)
                if (!spm_point_is_done(model, block->deps[i], false))
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
                if (spm_point_is_done(model, block->deps[i], false))
                        continue;
                if ((i || !fit->belt) && spm_stream_has_waited(want->stream, block->deps[i]))
                        continue;
                if (*count == SPM_BLOCK_BORN)
                        return false;
                born[(*count)++] = block->deps[i];
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

/*
 * The belt, and the legacy trap (H6): the driver would have made every blocking stream wait for
 * an allocation on the legacy stream, and that stream for them. An allocation that the driver
 * does not see does not, so something that it does see is submitted.
 */
static bool ask_order(struct spm_model *model, const struct spm_want *want,
                      const struct spm_fit *fit, struct spm_actions *actions)
{
        struct spm_stamp_state *stamp;

        if (spm_actions_room(actions) < 3)
                return false;
        if (fit->belt)
                ask_wait(actions, want, fit->belt);
        if (want->stream->kind != SPM_STREAM_LEGACY)
                return true;
        stamp = spm_stamp_ask(model, want->stream, true, actions);
        if (stamp)
                ask_wait(actions, want, stamp);
        return stamp != NULL;
}

static void give_life(struct spm_model *model, const struct spm_want *want, struct spm_block *block)
{
        block->requested = want->requested;
        block->stream = want->stream ? want->stream->object.id : 0;
        block->position = want->stream ? ++want->stream->submitted : 0;
        if (block->dep_count)
                block->deps[0].position = block->position;
        block->user = 0;
        block->hit = false;
        block->generation = ++model->generation;
        spm_block_enliven(model, block);
        spm_pool_count_live(block, true);
}

enum spm_status spm_serve_fit(struct spm_model *model, const struct spm_want *want,
                              const struct spm_fit *fit, struct spm_block **served,
                              struct spm_actions *actions)
{
        struct spm_block *block = fit->block;
        struct spm_point born[SPM_BLOCK_BORN];
        struct spm_block *front;
        struct spm_block *back;
        unsigned int count;
        unsigned int i;

        if (!spm_block_reserve(model, 2))
                return SPM_E_HOST_MEMORY;
        if (want->stream && !spm_limbo_lane(model, want->pool, want->stream))
                return SPM_E_HOST_MEMORY;
        if (!find_birth(model, want, fit, born, &count))
                return SPM_E_UNKNOWN;
        if (count) {
                unsigned int before = actions->count;

                assert(want->stream);
                if (!ask_order(model, want, fit, actions)) {
                        actions->count = before;
                        return SPM_E_UNKNOWN;
                }
        }

        if (block->state == SPM_BLOCK_READY)
                spm_pool_take_ready(block);
        else
                spm_limbo_take(model, block);
        block = carve(model, block, fit->start, want->size, &front, &back);
        put_back(model, front);
        put_back(model, back);

        block->belted = count && fit->belt;
        block->dep_count = count;
        for (i = 0; i < count; i++)
                block->deps[i] = born[i];
        give_life(model, want, block);
        *served = block;
        return SPM_OK;
}
