/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops -- which streams have work
 *
 * The program announces what it submits as seldom as it may (streampool/submit.h),
 * and not at all while something captures.
 */

#include "ops_inner.h"

void ops_forget_announced(struct ops *ops, int context)
{
        int i;

        for (i = 0; i < ops->world.stream_count; i++)
                if (world_context_of(&ops->world, i) == context)
                        ops->world.streams[i].announced = false;
}

void ops_announce(struct ops *ops, int stream)
{
        struct world *world = &ops->world;
        struct world_stream *self = &world->streams[stream];
        struct world_cause cause = {.self = stream, .submits = true};
        struct spm_actions actions;

        if (!world->watched[world_context_of(world, stream)] || self->announced ||
            world->captures[0] || world->captures[1])
                return;
        world_trace(world, "stream %d is announced", stream);
        ops_expect(ops, "submit", spm_submit(world->model, self->id, &actions));
        world_perform(world, &actions, cause, NULL);
        self->announced = true;
}

/* Pools 2 and 3 are the synchronous ones of the two contexts. */
void ops_note_freed(struct ops *ops, const struct spm_allocation *allocation, int pool)
{
        if (!allocation->announce)
                return;
        ops_forget_announced(ops, pool == 3);
        ops->freed_until[pool == 3] = ops->world.twin.time;
}

/* What is served may have been joined with what was freed last, and wait for that. */
void ops_note_early(struct ops *ops, const struct spm_allocation *allocation, int pool)
{
        if (!allocation->announce)
                return;
        ops_forget_announced(ops, pool == 3);
        ops->result->early++;
        if (ops->world.early_until[pool == 3] < ops->freed_until[pool == 3])
                ops->world.early_until[pool == 3] = ops->freed_until[pool == 3];
}

void op_work(struct ops *ops)
{
        struct world *world = &ops->world;
        struct world_cause cause = {.self = TWIN_NONE, .submits = true};
        struct spm_actions actions;
        int context = ops_choose(ops, 4) == 0;

        if (!world->watched[context] || world->context_gone[context])
                return;
        if (ops_choose(ops, 128) == 0) {
                world_trace(world, "context %d is shared", context);
                ops_expect(ops, "share",
                           spm_context_share(world->model, world->contexts[context], &actions));
                world_perform(world, &actions, cause, NULL);
                return;
        }
        if (world->captures[0] || world->captures[1])
                return;
        world_trace(world, "context %d is counted anew", context);
        ops_forget_announced(ops, context);
        ops_expect(ops, "recount",
                   spm_context_recount(world->model, world->contexts[context], &actions));
        world_perform(world, &actions, cause, NULL);
}

void ops_blur(struct ops *ops, int context)
{
        struct world *world = &ops->world;
        struct world_cause cause = {.self = TWIN_NONE, .submits = true};
        struct spm_actions actions;

        if (!world->watched[context] || world->context_gone[context])
                return;
        ops_expect(ops, "blur", spm_context_blur(world->model, world->contexts[context], &actions));
        world_perform(world, &actions, cause, NULL);
}

/* Before a capture begins in a context, which the model hears of by itself. */
void ops_blur_others(struct ops *ops, int context)
{
        ops_blur(ops, 1 - context);
}
