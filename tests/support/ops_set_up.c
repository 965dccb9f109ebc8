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
        /* Announced; now and then by a second stream. */
        {{2, 2, 2, 2}, 2, {0, 0, 0, 0, 0, 0, 1, 3}, 8, 2, 1, OPS_WATCHED},
        {{2, 2, 2, 2}, 1, {3, 3, 3, 3, 3, 3, 3, 4}, 8, 1, 1, OPS_WATCHED},
        {{2, 2, 2, 2}, 3, {0, 1, 1, 1, 1, 1, 1, 2}, 8, 2, 1, OPS_WATCHED | OPS_STREAMS_END},
        {{2, 2, 2, 0}, 2, {0, 0, 0, 0, 0, 0, 2, 5}, 8, 2, 1, OPS_WATCHED | OPS_CAPTURES},
        {{2, 2, 3, 0}, 3, {0, 1, 3, 3, 3, 3, 6, 7}, 8, 3, 1, OPS_WATCHED | OPS_ALL},
        {{0, 0, 0, 0}, 1, {0, 1, 2}, 3, 2, 0, OPS_WATCHED},
        {{0, 0, 0, 2}, 1, {0, 0, 0, 0, 0, 3, 1, 2}, 8, 2, 0, OPS_WATCHED},
        {{2, 2, 0, 3}, 16, {0, 0, 0, 0, 3, 4, 5, 6}, 8, 4, 1, OPS_WATCHED | OPS_ALL | OPS_BIG},
        /* Layouts. */
        {{0, 1, 2, 4}, 16, {0, 1, 2, 3, 4, 5, 6, 7}, 8, WORLD_EVENTS, 1, OPS_LAYOUT | OPS_ALL},
        {{0, 0, 0, 0}, 3, {1, 3, 4}, 3, 2, 1, OPS_LAYOUT},
        {{2, 2, 2, 3}, 3, {0, 1, 1, 1, 1, 1, 2, 6}, 8, 2, 1, OPS_LAYOUT | OPS_WATCHED},
        {{0, 1, 2, 3}, 16, {0, 1, 2, 3, 4, 5, 6, 7}, 8, 4, 1, OPS_LAYOUT | OPS_ALL | OPS_BIG},
};

void ops_choose_profile(struct ops *ops)
{
        ops->profile = &profiles[ops_choose(ops, (int)(sizeof(profiles) / sizeof(profiles[0])))];
        ops->world.page_count = ops->profile->extra & OPS_BIG ? WORLD_PAGES : 40;
        ops->world.free_pages = ops->world.page_count;
        ops->first_size = ops_choose(ops, 16);
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

/* What a pool is like is a choice of the program, where it is not what the pool is for. */
static void vary(struct ops *ops, struct spm_pool_config *config, int pool)
{
        static const size_t small_sizes[] = {512, 1024, 2048, 0};
        int choice = ops_choose(ops, 256);

        config->growth = (enum spm_growth)(choice % 3);
        config->small_size = small_sizes[choice / 4 % 4];
        if (choice & 16 && pool != OPS_POOL_OF_MODEL) {
                config->range_base = WORLD_BASE + (uint64_t)(pool + 1) * WORLD_STRIDE;
                config->range_size = (size_t)ops->world.page_count * WORLD_PAGE;
        }
        if (choice & 32)
                config->decay = OPS_DECAY;
        if (choice & 64)
                config->segment_size = 4 * WORLD_PAGE;
        if (choice >= 192)
                config->quarantine = 3 * WORLD_PAGE;
}

static bool add_pools(struct ops *ops)
{
        struct world *world = &ops->world;
        struct spm_pool_config configs[WORLD_POOLS] = {
                [0] = {.kind = SPM_POOL_ASYNC},
                [1] = {.kind = SPM_POOL_ASYNC,
                       .release_threshold = 6 * WORLD_PAGE,
                       .max_size = 16 * WORLD_PAGE},
                [2] = {.kind = SPM_POOL_SYNC,
                       .context = world->contexts[0],
                       .release_needs_idle = true,
                       .large_size = 3000,
                       .large_align = 4096},
                [3] = {.kind = SPM_POOL_SYNC,
                       .context = world->contexts[1],
                       .keep = 2 * WORLD_PAGE},
                [OPS_POOL_OF_MODEL] = {.kind = SPM_POOL_HOST,
                                       .context = world->contexts[0],
                                       .provider = SPM_PROVIDER_MODEL,
                                       .max_size = 12 * WORLD_PAGE},
        };
        int i;

        for (i = 0; i < WORLD_POOLS; i++) {
                configs[i].grain = WORLD_PAGE;
                configs[i].align = 512;
                configs[i].pending_limit = 6 * WORLD_PAGE;
                vary(ops, &configs[i], i);
                if (spm_pool_create(world->model, &configs[i], &world->pools[i]))
                        return false;
                if (ops->profile->extra & OPS_LAYOUT)
                        ops_install(ops, i);
        }
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
                .guard_bytes = 6000,
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
        for (i = 0; i < 2 && ops->profile->extra & OPS_WATCHED; i++) {
                struct spm_actions actions;

                world->watched[i] = true;
                if (spm_context_watch(world->model, world->contexts[i], true, &actions))
                        return false;
                world_perform(world, &actions, OPS_NO_CAUSE, NULL);
        }
        for (i = 0; i < WORLD_EVENTS; i++) {
                world->event_nodes[i] = TWIN_NONE;
                if (spm_event_add(world->model, &world->events[i]))
                        return false;
        }
        return add_pools(ops);
}
