/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops -- bytes become a correct program
 */

#include "ops.h"

#include <stdlib.h>
#include <string.h>

#include "ops_inner.h"

static const struct profile profiles[] = {
        {{0, 1, 2, 3}, 16, TWIN_STREAMS, 0, false}, /* everything */
        {{0, 1, 2, 4}, 16, TWIN_STREAMS, 0, false},
        {{0, 0, 0, 0}, 1, 3, 2, true},  /* a blocking stream, and two that do not block */
        {{0, 0, 0, 0}, 2, 3, 0, true},  /* the legacy stream, and two blocking ones */
        {{0, 0, 0, 1}, 2, 3, 3, true},  /* two that do not block, and a thread's own */
        {{0, 0, 0, 0}, 3, 4, 4, false}, /* two contexts */
        {{2, 2, 2, 2}, 3, 4, 1, true},  /* synchronous */
        {{1, 1, 1, 1}, 2, 2, 3, true},  /* two streams, and a cap */
};

/* set-up */

static void *host_alloc(size_t count, size_t size, void *user)
{
        struct ops *ops = user;
        size_t at = ops->options->fail_host_at;

        ops->host_allocs++;
        if (at && ops->host_allocs >= at && (ops->host_allocs - at) % 7 == 0)
                return NULL;
        return calloc(count, size);
}

static void host_free(void *memory, void *user)
{
        (void)user;
        free(memory);
}

bool ops_add_stream(struct ops *ops, int context, enum spm_stream_kind kind)
{
        struct world *world = &ops->world;
        int number = world->stream_count;

        if (number >= TWIN_STREAMS)
                return true;
        world->streams[number] = (struct world_stream){0};
        if (spm_stream_add(world->model, world->contexts[context], kind,
                           &world->streams[number].id))
                return false;
        twin_add_stream(&world->twin, number, context, kind);
        world->stream_count++;
        return true;
}

static bool add_pools(struct ops *ops)
{
        struct world *world = &ops->world;
        struct spm_pool_config base = {
                .grain = WORLD_PAGE,
                .segment_size = 4 * WORLD_PAGE,
                .align = 512,
                .pending_limit = 6 * WORLD_PAGE,
        };
        struct spm_pool_config configs[WORLD_POOLS];
        int i;

        for (i = 0; i < WORLD_POOLS; i++)
                configs[i] = base;
        configs[0].kind = SPM_POOL_ASYNC;
        configs[1].kind = SPM_POOL_ASYNC;
        configs[1].release_threshold = 6 * WORLD_PAGE;
        configs[1].max_size = 16 * WORLD_PAGE;
        configs[2].kind = SPM_POOL_SYNC;
        configs[2].context = world->contexts[0];
        configs[2].release_needs_idle = true;
        configs[2].large_size = 3000;
        configs[2].large_align = 4096;
        configs[3].kind = SPM_POOL_SYNC;
        configs[3].context = world->contexts[1];
        configs[3].keep = 2 * WORLD_PAGE;
        configs[4].kind = SPM_POOL_HOST;
        configs[4].context = world->contexts[0];
        configs[4].provider = SPM_PROVIDER_MODEL;
        configs[4].max_size = 12 * WORLD_PAGE;
        for (i = 0; i < WORLD_POOLS; i++)
                if (spm_pool_create(world->model, &configs[i], &world->pools[i]))
                        return false;
        return true;
}

static bool set_up(struct ops *ops)
{
        struct world *world = &ops->world;
        struct spm_config config = {
                .alloc = host_alloc,
                .free = host_free,
                .user = ops,
                .batch_blocks = 3,
                .batch_bytes = 8192,
        };
        int i;

        if (spm_model_new(&config, &world->model))
                return false;
        if (spm_context_add(world->model, 0, &world->contexts[0]) ||
            spm_context_add(world->model, 0, &world->contexts[1]))
                return false;
        if (!ops_add_stream(ops, 0, SPM_STREAM_LEGACY) ||
            !ops_add_stream(ops, 0, SPM_STREAM_BLOCKING) ||
            !ops_add_stream(ops, 0, SPM_STREAM_BLOCKING) ||
            !ops_add_stream(ops, 0, SPM_STREAM_NON_BLOCKING) ||
            !ops_add_stream(ops, 0, SPM_STREAM_NON_BLOCKING) ||
            !ops_add_stream(ops, 0, SPM_STREAM_PER_THREAD) ||
            !ops_add_stream(ops, 1, SPM_STREAM_NON_BLOCKING) ||
            !ops_add_stream(ops, 1, SPM_STREAM_BLOCKING))
                return false;
        for (i = 0; i < WORLD_EVENTS; i++) {
                world->event_nodes[i] = TWIN_NONE;
                if (spm_event_add(world->model, &world->events[i]))
                        return false;
        }
        return add_pools(ops);
}

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
        int count = ops->world.stream_count - profile->first;

        return profile->first +
               ops_choose(ops, count < profile->streams ? count : profile->streams);
}

/* Return: TWIN_NONE if the chosen one may not be used. */
int ops_choose_stream(struct ops *ops)
{
        int stream = ops_choose_number(ops);

        return ops_may_use(ops, stream) ? stream : TWIN_NONE;
}

struct block *ops_choose_block(struct ops *ops)
{
        int first = ops_choose(ops, BLOCKS);
        int i;

        for (i = 0; i < BLOCKS; i++) {
                struct block *block = &ops->blocks[(first + i) % BLOCKS];

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

/* the loop */

static void step(struct ops *ops)
{
        static void (*const table[])(struct ops * ops) = {
                op_alloc,  op_alloc,   op_alloc,  op_continue,       op_use,           op_use,
                op_use,    op_free,    op_free,   op_free,           op_device,        op_end,
                op_end,    op_pool,    op_taint,  op_bad_free,       op_replace_event, /* 17 */
                op_stream, op_capture, op_export, op_remove_context, op_destroy_pool,
        };
        int count = ops->profile->alive ? 17 : (int)(sizeof(table) / sizeof(table[0]));
        int code = ops_choose(ops, count + 8);

        if (code < count)
                table[code](ops);
        else if (code < count + 3)
                ops_begin_call(ops, CALL_RECORD);
        else if (code < count + 6)
                ops_begin_call(ops, CALL_WAIT);
        else
                ops_begin_call(ops, CALL_SYNC);
}

static void check_figures(struct ops *ops)
{
        struct spm_stats stats;
        int i;

        for (i = 0; i < WORLD_POOLS; i++) {
                if (spm_stats(ops->world.model, ops->world.pools[i], &stats))
                        continue;
                if (stats.used_current != ops->used[i] || stats.live_blocks != ops->count[i])
                        world_fail(&ops->world, "I3: pool %d counts otherwise than the program", i);
                if (stats.rounded_current + stats.pending_bytes + stats.ready_bytes +
                            stats.sealed_bytes !=
                    stats.reserved_current)
                        world_fail(&ops->world, "I3: pool %d does not add up", i);
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
        ops->profile = &profiles[world_byte(world) % (sizeof(profiles) / sizeof(profiles[0]))];

        if (set_up(ops))
                while (world->left && !world->failure[0] && !twin_is_full(&world->twin)) {
                        step(ops);
                        world->steps++;
                        if (options->unchecked)
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
