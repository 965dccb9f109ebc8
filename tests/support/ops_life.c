/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops -- what begins, changes and ends
 *
 * Captures and streams, pools and what they are given, time, and contexts.
 */

#include "ops_inner.h"

void op_capture(struct ops *ops)
{
        struct world *world = &ops->world;
        int stream = ops_choose_number(ops);
        struct world_stream *self = &world->streams[stream];
        struct world_cause cause = {.self = stream, .tail = true};
        struct spm_actions actions;
        int context = world_context_of(world, stream);

        if (self->retired || world->context_gone[context] ||
            world->twin.streams[stream].kind == SPM_STREAM_LEGACY)
                return;
        world_trace(world, "stream %d captures %d times", stream, self->capturing);
        if (self->capturing) {
                ops_expect(ops, "capture end", spm_capture_end(world->model, self->id));
                self->capturing--;
                world->captures[context]--;
                return;
        }
        if (ops_choose(ops, 3))
                return;
        ops_blur_others(ops, context);
        cause.tail = !world->captures[context];
        ops_expect(ops, "capture begin", spm_capture_begin(world->model, self->id, &actions));
        world_perform(world, &actions, cause, NULL);
        self->capturing++;
        world->captures[context]++;
}

void op_stream(struct ops *ops)
{
        struct world *world = &ops->world;
        int stream = ops_choose_stream(ops);
        struct world_cause cause = {.self = stream, .tail = true};
        struct spm_actions actions;
        int context;

        if (stream == TWIN_NONE || ops_choose(ops, 3) || world->stream_count == TWIN_STREAMS ||
            world->twin.streams[stream].kind == SPM_STREAM_LEGACY)
                return;
        context = world_context_of(world, stream);
        cause.tail = !world->captures[context];
        ops_expect(ops, "retire",
                   spm_stream_retire(world->model, world->streams[stream].id, &actions));
        world_perform(world, &actions, cause, NULL);
        world->streams[stream].retired = true;
        world->streams[stream].successor = world->stream_count;
        if (ops_add_stream(ops, context, world->twin.streams[stream].kind))
                return;
        world->streams[stream].successor = 0;
        if (!world->host_may_fail)
                world_fail(world, "a stream could not be added");
}

/* Memory that nobody asked for, by itself or in the pool's range. */
static void give(struct ops *ops, int pool)
{
        struct spm_pool_config config;
        int pages = 1 + ops_choose(ops, 3);
        bool ranged = ops_choose(ops, 2);
        uint64_t base;

        if (pool == OPS_POOL_OF_MODEL ||
            spm_pool_get_config(ops->world.model, ops->world.pools[pool], &config))
                return;
        base = world_find_room(&ops->world, ranged && config.range_size ? pool + 1 : 0, pages);
        if (base)
                world_give(&ops->world, pool, base, (uint64_t)pages * WORLD_PAGE, false);
}

/* More may come out of magazines and of quarantine than a survey sees, but no less. */
static void trim(struct ops *ops, int pool)
{
        struct world *world = &ops->world;
        struct spm_survey before = {.is_trimmed = true};
        struct spm_actions actions;
        enum spm_status status;
        size_t keep, released = 0, sum = 0;
        bool all = true;

        (void)spm_survey(world->model, world->pools[pool], ops->time, &before);
        do {
                keep = (size_t)ops_choose(ops, 8) * WORLD_PAGE;
                all = all && !keep;
                status = spm_trim(world->model, world->pools[pool], keep, &released, &actions);
                sum += released;
                world_perform(world, &actions, OPS_NO_CAUSE, NULL);
        } while (status == SPM_AGAIN);
        ops_expect(ops, "trim", status);
        if (all && !before.is_trimmed && !sum)
                world_fail(world, "A52: pool %d had something to give back, and gave nothing",
                           pool);
}

void op_pool(struct ops *ops)
{
        static const uint64_t thresholds[] = {0, 2 * WORLD_PAGE, UINT64_MAX};
        struct world *world = &ops->world;
        int pool = ops_choose(ops, WORLD_POOLS);
        int attribute = 1 + ops_choose(ops, 8);
        uint64_t value = attribute == SPM_ATTR_RELEASE_THRESHOLD ? thresholds[ops_choose(ops, 3)]
                                                                 : (uint64_t)ops_choose(ops, 2);
        enum spm_status status;

        if (world->pool_gone[pool])
                return;
        if (ops_choose(ops, 4) == 0) {
                give(ops, pool);
                return;
        }
        if (!ops_choose(ops, 2)) {
                trim(ops, pool);
                return;
        }
        status = spm_pool_set_attribute(world->model, world->pools[pool],
                                        (enum spm_pool_attribute)attribute, value);
        if (status == SPM_OK && attribute == SPM_ATTR_USED_MEM_HIGH)
                ops->used_high[pool] = ops->used[pool];
}

void op_tick(struct ops *ops)
{
        struct spm_actions actions;
        enum spm_status status;

        ops->time += (uint64_t)ops_choose(ops, 8) * OPS_DECAY / 4;
        do {
                status = spm_tick(ops->world.model, ops->time, &actions);
                world_perform(&ops->world, &actions, OPS_NO_CAUSE, NULL);
        } while (status == SPM_AGAIN);
        ops_expect(ops, "tick", status);
}

static void drop_blocks(struct ops *ops, int pool)
{
        int i;

        world_forget_live(&ops->world, pool);
        for (i = 0; i < BLOCKS; i++)
                if (ops->blocks[i].pool == pool)
                        ops->blocks[i].used = false;
        ops->used[pool] = 0;
        ops->count[pool] = 0;
}

void op_remove_context(struct ops *ops)
{
        struct world *world = &ops->world;
        struct spm_actions actions;
        enum spm_status status;

        if (world->context_gone[1] || ops_choose(ops, 16))
                return;
        twin_execute_context(&world->twin, 1);
        drop_blocks(ops, 3);
        do {
                status = spm_context_remove(world->model, world->contexts[1], &actions);
                world_perform(world, &actions, OPS_NO_CAUSE, NULL);
        } while (status == SPM_AGAIN);
        ops_expect(ops, "context remove", status);
        world->context_gone[1] = true;
        world->captures[1] = 0;
        world->pool_gone[3] = true;
}

void op_destroy_pool(struct ops *ops)
{
        struct world *world = &ops->world;
        struct spm_actions actions;
        enum spm_status status;

        if (world->pool_gone[1] || ops_choose(ops, 16))
                return;
        do {
                status = spm_pool_destroy(world->model, world->pools[1], &actions);
                world_perform(world, &actions, OPS_NO_CAUSE, NULL);
        } while (status == SPM_AGAIN);
        ops_expect(ops, "pool destroy", status);
        world->pool_gone[1] = true;
}
