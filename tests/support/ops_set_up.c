/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops -- what a program has to do with
 *
 * Contexts, streams, events and pools are the same for all programs; which of
 * them a program uses is its profile.
 */

#include <stdlib.h>

#include "ops_inner.h"

static const struct profile profiles[] = {
        /* Everything. */
        {{0, 1, 2, 3}, 16, {0, 1, 2, 3, 4, 5, 6, 7}, 8, WORLD_EVENTS, 1, OPS_ALL},
        {{0, 1, 2, 4}, 16, {0, 1, 2, 3, 4, 5, 6, 7}, 8, WORLD_EVENTS, 1, OPS_ALL},
        /* Streams that block, that do not, the legacy one and a thread's own. */
        {{0, 0, 0, 0}, 1, {2, 3, 4}, 3, 2, 1, 0},
        {{0, 0, 0, 0}, 2, {0, 1, 2}, 3, 2, 1, 0},
        {{0, 0, 0, 0}, 1, {0, 1, 3}, 3, 2, 0, 0},
        {{0, 0, 0, 1}, 2, {3, 4, 5}, 3, 1, 1, 0},
        {{0, 0, 0, 0}, 1, {0, 3, 5}, 3, 1, 0, 0},
        /* Two contexts, and what waits for a whole one. */
        {{0, 0, 0, 0}, 3, {4, 5, 6, 7}, 4, 4, 1, OPS_ALL},
        {{0, 0, 0, 0}, 1, {3, 4, 6}, 3, 2, 4, 0},
        {{2, 2, 2, 2}, 3, {1, 2, 3, 4}, 4, 2, 1, 0}, /* synchronous */
        {{1, 1, 1, 1}, 2, {3, 4}, 2, 2, 1, 0},       /* a cap */
        /* Streams that end, and streams that capture. */
        {{0, 0, 0, 0}, 1, {1, 3, 4}, 3, 2, 1, OPS_STREAMS_END},
        {{0, 0, 0, 0}, 1, {1, 3, 4}, 3, 2, 0, OPS_CAPTURES},
        {{0, 0, 0, 0}, 1, {3, 4}, 2, 1, 0, OPS_CAPTURES | OPS_STREAMS_END},
        /* Many blocks. */
        {{0, 0, 0, 2}, 16, {0, 1, 2, 3, 4, 5, 6, 7}, 8, WORLD_EVENTS, 1, OPS_ALL | OPS_BIG},
};

void ops_choose_profile(struct ops *ops)
{
        ops->profile = &profiles[ops_choose(ops, (int)(sizeof(profiles) / sizeof(profiles[0])))];
        ops->world.page_count = ops->profile->extra & OPS_BIG ? WORLD_PAGES : 40;
        ops->block_count = ops->profile->extra & OPS_BIG ? BLOCKS : 24;
}

/* host memory */

static void *host_alloc(size_t count, size_t size, void *user)
{
        struct ops *ops = user;
        const struct ops_options *options = ops->options;
        size_t number = ++ops->host_allocs;
        size_t at = options->fail_host_at;

        if (at &&
            (number == at || (options->fail_host_again && number > at && (number - at) % 7 == 0))) {
                ops->result->host_failures++;
                return NULL;
        }
        return calloc(count, size);
}

static void host_free(void *memory, void *user)
{
        (void)user;
        free(memory);
}

/* streams and pools */

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
        configs[0].range_base = WORLD_RANGE;
        configs[0].range_size = WORLD_PAGE * WORLD_PAGES;
        configs[0].growth = SPM_GROWTH_TIGHT;
        configs[0].small_size = 1024;
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
        configs[3].small_size = 2048;
        configs[4].kind = SPM_POOL_HOST;
        configs[4].context = world->contexts[0];
        configs[4].provider = SPM_PROVIDER_MODEL;
        configs[4].small_size = 2048;
        configs[4].max_size = 12 * WORLD_PAGE;
        for (i = 0; i < WORLD_POOLS; i++)
                if (spm_pool_create(world->model, &configs[i], &world->pools[i]))
                        return false;
        return true;
}

bool ops_set_up(struct ops *ops)
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
