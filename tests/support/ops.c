/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops -- bytes become a correct program
 */

#include "ops.h"

#include <stdlib.h>
#include <string.h>

#include "ops_inner.h"

#define NAMES  (BLOCKS * (USES + 1) + CALLS * (TWIN_STREAMS + 1) + WORLD_EVENTS + WORLD_STAMPS)
#define SELDOM 16 /* of a big program, a step out of so many is checked */

/* choices */

int ops_choose(struct ops *ops, int count)
{
        return world_byte(&ops->world) % count;
}

/* May the program use this stream now? On the legacy stream not while a blocking one captures. */
bool ops_may_use(const struct ops *ops, int stream)
{
        const struct world *world = &ops->world;
        const struct twin_stream *self = &world->twin.streams[stream];
        int i;

        if (world->streams[stream].retired || world->streams[stream].capturing ||
            world->context_gone[self->context])
                return false;
        if (self->kind != SPM_STREAM_LEGACY)
                return true;
        for (i = 0; i < world->stream_count; i++)
                if (world->streams[i].capturing && world_context_of(world, i) == self->context &&
                    world->twin.streams[i].kind != SPM_STREAM_NON_BLOCKING)
                        return false;
        return true;
}

int ops_choose_number(struct ops *ops)
{
        const struct profile *profile = ops->profile;
        int stream = profile->streams[ops_choose(ops, profile->stream_count)];

        while (ops->world.streams[stream].retired && ops->world.streams[stream].successor)
                stream = ops->world.streams[stream].successor;
        return stream;
}

/* Return: TWIN_NONE if the chosen one may not be used. */
int ops_choose_stream(struct ops *ops)
{
        int stream = ops_choose_number(ops);

        return ops_may_use(ops, stream) ? stream : TWIN_NONE;
}

struct block *ops_choose_block(struct ops *ops)
{
        int first = ops_choose(ops, ops->block_count);
        int i;

        for (i = 0; i < ops->block_count; i++) {
                struct block *block = &ops->blocks[(first + i) % ops->block_count];

                if (block->used)
                        return block;
        }
        return NULL;
}

struct world_cause ops_on_behalf_of(int stream)
{
        return (struct world_cause){.self = stream};
}

void ops_expect(struct ops *ops, const char *what, enum spm_status status)
{
        if (status == SPM_OK || (status == SPM_E_HOST_MEMORY && ops->world.host_may_fail))
                return;
        world_fail(&ops->world, "%s: %s", what, spm_status_name(status));
}

/* the device */

static void op_device(struct ops *ops)
{
        struct twin *twin = &ops->world.twin;
        int steps = ops_choose(ops, 4) + 1;

        while (twin->count && steps--)
                twin_step(twin, ops_choose(ops, 256) * twin->count / 256);
}

/* Of the nodes that somebody remembers. */
struct names {
        int *at[NAMES];
        int count;
};

static void name(struct names *names, int *node)
{
        names->at[names->count++] = node;
}

/* What is executed is as good as none. */
static void name_pending(const struct twin *twin, struct names *names, int *node)
{
        if (*node >= 0 && twin_is_executed(twin, *node))
                *node = TWIN_NONE;
        name(names, node);
}

static void name_block(const struct twin *twin, struct names *names, struct block *block)
{
        int kept = 0;
        int i;

        for (i = 0; i < block->use_count; i++)
                if (!twin_is_executed(twin, block->uses[i]))
                        block->uses[kept++] = block->uses[i];
        block->use_count = kept;
        for (i = 0; i < kept; i++)
                name(names, &block->uses[i]);
        name(names, &block->born);
}

static void forget(struct ops *ops)
{
        struct world *world = &ops->world;
        struct names names = {.count = 0};
        int i;
        int j;

        for (i = 0; i < WORLD_EVENTS; i++)
                name(&names, &world->event_nodes[i]);
        for (i = 0; i < WORLD_STAMPS; i++)
                if (world->stamps[i].recorded && !world->stamps[i].dropped)
                        name_pending(&world->twin, &names, &world->stamps[i].node);
        for (i = 0; i < CALLS; i++) {
                if (ops->calls[i].kind == CALL_NONE)
                        continue;
                name(&names, &ops->calls[i].node);
                for (j = 0; j < ops->calls[i].target_count; j++)
                        name_pending(&world->twin, &names, &ops->calls[i].targets[j]);
        }
        for (i = 0; i < BLOCKS; i++)
                if (ops->blocks[i].used)
                        name_block(&world->twin, &names, &ops->blocks[i]);
        twin_forget(&world->twin, names.at, names.count);
}

/*
 * The graph is full: what is executed and can matter no more is forgotten, and if that is not
 * enough the device executes the older half of what is left.
 */
static void make_room(struct ops *ops)
{
        struct twin *twin = &ops->world.twin;
        int i;

        forget(ops);
        if (twin->count < TWIN_NODES / 2)
                return;
        for (i = 0; i < twin->count / 2; i++)
                twin_execute(twin, i);
        forget(ops);
}

/* the loop */

static void step(struct ops *ops)
{
        static void (*const table[])(struct ops * ops) = {
                op_alloc, op_alloc,    op_alloc,         op_continue, op_use,  op_use,  op_use,
                op_free,  op_free,     op_free,          op_device,   op_end,  op_end,  op_pool,
                op_taint, op_bad_free, op_replace_event, op_magazine, op_tick, op_work,
        };
        static const struct {
                void (*op)(struct ops *ops);
                unsigned extra;
        } extras[] = {
                {op_stream, OPS_STREAMS_END},     {op_capture, OPS_CAPTURES},
                {op_export, OPS_EXPORTS},         {op_remove_context, OPS_POOLS_END},
                {op_destroy_pool, OPS_POOLS_END}, {op_layout, OPS_LAYOUT},
        };
        int count = (int)(sizeof(table) / sizeof(table[0]));
        int all = (int)(sizeof(extras) / sizeof(extras[0]));
        int more = ops->profile->extra & OPS_LAYOUT ? all : ops->profile->extra ? all - 1 : 0;
        int code = ops_choose(ops, count + 8 + more);

        if (code < count)
                table[code](ops);
        else if (code < count + 3)
                ops_begin_call(ops, CALL_RECORD);
        else if (code < count + 6)
                ops_begin_call(ops, CALL_WAIT);
        else if (code < count + 8)
                ops_begin_call(ops, CALL_SYNC);
        else if (ops->profile->extra & extras[code - count - 8].extra)
                extras[code - count - 8].op(ops);
}

/* A walk over all blocks finds what the figures say. */
static void check_survey(struct ops *ops, int pool, const struct spm_stats *stats)
{
        struct spm_survey survey;

        if (spm_survey(ops->world.model, ops->world.pools[pool], ops->time, &survey) != SPM_OK ||
            survey.time != ops->time)
                world_fail(&ops->world, "A52: there is no survey of pool %d", pool);
        if (survey.live.count != stats->live_blocks || survey.live.bytes != stats->used_current ||
            survey.has_leaks != (stats->live_blocks > 0))
                world_fail(&ops->world, "A50: pool %d has other sizes than it counts", pool);
        if (survey.free_bytes > stats->ready_bytes || survey.largest_free < stats->largest_ready ||
            survey.largest_free > survey.free_bytes)
                world_fail(&ops->world, "A51: pool %d is free in other pieces than it counts",
                           pool);
}

static void check_figures(struct ops *ops)
{
        struct spm_stats stats;
        uint64_t reserved;
        uint64_t segments;
        int i;

        for (i = 0; i < WORLD_POOLS; i++) {
                if (spm_stats(ops->world.model, ops->world.pools[i], &stats))
                        continue;
                if (stats.used_current != ops->used[i] || stats.live_blocks != ops->count[i])
                        world_fail(&ops->world, "I3: pool %d counts otherwise than the program", i);
                if (stats.used_high != ops->used_high[i] ||
                    stats.live_blocks_high != ops->count_high[i])
                        world_fail(&ops->world, "I3: pool %d has another peak than the program", i);
                if (stats.rounded_current + stats.pending_bytes + stats.ready_bytes +
                            stats.sealed_bytes !=
                    stats.reserved_current)
                        world_fail(&ops->world, "I3: pool %d does not add up", i);
                if (ops->world.steps % SELDOM == 0)
                        check_survey(ops, i, &stats);
                world_reserved(&ops->world, i, &reserved, &segments);
                if (i != OPS_POOL_OF_MODEL &&
                    (stats.reserved_current != reserved || stats.segments != segments))
                        world_fail(&ops->world, "I3: pool %d has not what it was given", i);
        }
}

void ops_run(const uint8_t *bytes, size_t size, const struct ops_options *options,
             struct ops_result *result)
{
        struct ops *ops = calloc(1, sizeof(*ops));
        struct world *world = &ops->world;
        int i;

        *result = (struct ops_result){0};
        ops->result = result;
        ops->options = options;
        twin_init(&world->twin);
        world->bytes = bytes;
        world->left = size;
        world->host_may_fail = options->fail_host_at != 0;
        world->trace = options->trace;
        ops_choose_profile(ops);

        if (ops_set_up(ops))
                while (world->left && !world->failure[0]) {
                        if (twin_is_full(&world->twin))
                                make_room(ops);
                        step(ops);
                        world->steps++;
                        if (options->unchecked ||
                            (ops->profile->extra & OPS_BIG && world->steps % SELDOM))
                                continue;
                        world_check(world, "a step");
                        check_figures(ops);
                }
        for (i = 0; i < CALLS && world->model; i++)
                if (ops->calls[i].kind != CALL_NONE)
                        ops_end_call(ops, &ops->calls[i]);
        if (world->model)
                result->hash = ops_mix(result->hash, spm_hash(world->model));
        spm_model_free(world->model);
        result->steps = world->steps;
        memcpy(result->failure, world->failure, sizeof(result->failure));
        free(ops);
}

void ops_random(uint64_t seed, uint8_t *bytes, size_t size)
{
        uint64_t x = seed * 0x9e3779b97f4a7c15u + 1;
        size_t i;

        for (i = 0; i < size; i++) {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                bytes[i] = (uint8_t)(x >> 32);
        }
}
