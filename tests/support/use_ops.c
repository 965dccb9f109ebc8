/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Use ops -- bytes become a program that uses blocks, under a budget
 */

#include "use_ops.h"

#include <stdio.h>
#include <string.h>

#include "use_world.h"

/* choices */

static uint8_t next(struct use_world *world)
{
        return world->at < world->size ? world->bytes[world->at++] : 0;
}

static int choose_stream(struct use_world *world)
{
        return next(world) % USE_STREAMS;
}

/* One of the live, or of the dead; NULL if there is none. */
static struct use_block *choose_block(struct use_world *world, bool live)
{
        struct use_twin *twin = &world->twin;
        unsigned int start = twin->block_count ? next(world) % twin->block_count : 0;

        for (unsigned int i = 0; i < twin->block_count; i++) {
                struct use_block *block = &twin->blocks[(start + i) % twin->block_count];

                if (block->is_live == live && block->count < USE_USES - 1)
                        return block;
        }
        return NULL;
}

static enum spm_use_access choose_access(struct use_world *world)
{
        return (enum spm_use_access)(1 + next(world) % 3);
}

/* steps */

static void step_alloc(struct use_world *world)
{
        static const size_t sizes[] = {300, 4096, 100000, 500000, 1000000, 2000000};
        int stream = choose_stream(world);
        uint8_t choice = next(world);

        use_world_alloc(world, stream, sizes[choice % 6] + choice, choice % 4);
}

static void step_record(struct use_world *world)
{
        struct use_block *block = choose_block(world, true);
        int stream = choose_stream(world);
        enum spm_use_access access = choose_access(world);
        int node;

        if (!block)
                return;
        if (!use_world_must(world,
                            spm_use_record(world->model, block->id, access, world->streams[stream]),
                            "a use of a live block is refused"))
                return;
        node = use_twin_submit(&world->twin, stream);
        use_twin_note(block, node, access & SPM_USE_WRITE);
        world->result->uses++;
}

static void step_question(struct use_world *world)
{
        struct use_block *block = choose_block(world, true);
        int stream = choose_stream(world);
        uint8_t choice = next(world) % 4;

        if (block)
                use_world_ask(world, block,
                              choice == 3 ? SPM_USE_FREE : (enum spm_use_access)(choice + 1),
                              stream);
}

static void step_prepare(struct use_world *world)
{
        struct use_block *block = choose_block(world, true);
        int stream = choose_stream(world);
        enum spm_use_access access = choose_access(world);
        struct use_open *open = &world->open[next(world) % USE_OPEN];

        if (!block || open->block)
                return;
        if (!use_world_must(world,
                            spm_use_prepare(world->model, block->id, access, world->streams[stream],
                                            &open->use),
                            "a use of a live block cannot be prepared"))
                return;
        open->block = block;
        open->stream = stream;
        open->behind = use_world_wait(world, block, access, stream);
}

static void step_finish(struct use_world *world)
{
        struct use_open *open = &world->open[next(world) % USE_OPEN];
        bool ok = next(world) % 4;
        enum spm_status status;

        if (!open->block)
                return;
        status = spm_use_finish(world->model, &open->use, ok);
        if (status != (open->block->is_live ? SPM_OK : SPM_E_USE_AFTER_FREE))
                use_world_fail(world, "the outcome of a use is refused, or it outlives its block");
        if (ok && open->block->is_live && open->block->count < USE_USES - 1) {
                use_twin_obey(&world->twin, &open->behind, open->stream);
                use_twin_note(open->block, use_twin_submit(&world->twin, open->stream),
                              open->use.access & SPM_USE_WRITE);
                world->result->uses++;
        } else if (ok && open->block->is_live) {
                world->at = world->size;
        }
        open->block = NULL;
}

static void step_free(struct use_world *world)
{
        struct use_block *block = choose_block(world, true);
        int stream = choose_stream(world);
        uint8_t choice = next(world);

        if (block && choice % 3)
                use_world_free(world, block, stream);
        else if (block)
                use_world_free_behind(world, block, stream, choice % 2);
}

static void step_order(struct use_world *world)
{
        int from = choose_stream(world);
        int to = choose_stream(world);

        use_world_order(world, from, to);
}

static void step_sync(struct use_world *world)
{
        int stream = choose_stream(world);
        uint8_t choice = next(world);

        use_world_sync(world, stream, choice % 8 == 0);
}

static void step_launch(struct use_world *world)
{
        struct use_block *blocks[3];
        enum spm_use_access access[3];
        unsigned int count = 1 + next(world) % 3;
        int stream = choose_stream(world);

        for (unsigned int i = 0; i < count; i++) {
                blocks[i] = choose_block(world, true);
                access[i] = choose_access(world);
                if (!blocks[i])
                        return;
        }
        use_world_launch(world, blocks, access, count, stream, next(world) % 4);
}

/* Whatever is done with an allocation that is no more: it is refused, and nothing changes. */
static void step_stale(struct use_world *world)
{
        struct use_block *block = choose_block(world, false);
        int stream = choose_stream(world);
        enum spm_status status;
        uint64_t hash;

        if (!block)
                return;
        hash = spm_hash(world->model);
        status = spm_use_record(world->model, block->id, choose_access(world),
                                world->streams[stream]);
        if (status != SPM_E_USE_AFTER_FREE && status != SPM_E_FOREIGN)
                use_world_fail(world, "B3 an old generation is used");
        if (spm_hash(world->model) != hash)
                use_world_fail(world, "B13 a use that is refused changes something");
}

static void step_life(struct use_world *world)
{
        struct use_block *block = choose_block(world, false);

        if (block)
                use_world_look(world, block);
}

static void step_reap(struct use_world *world)
{
        use_world_reap(world, next(world) % 4 == 0 ? choose_stream(world) : -1);
}

static void (*const steps[])(struct use_world *world) = {
        step_alloc,   step_alloc,  step_alloc,  step_alloc,    step_free,
        step_free,    step_record, step_record, step_question, step_question,
        step_prepare, step_finish, step_finish, step_order,    step_order,
        step_sync,    step_launch, step_stale,  step_life,     step_reap,
};

void use_ops_run(const uint8_t *bytes, size_t size, size_t fail_at, struct use_result *result)
{
        static struct use_world world;

        memset(result, 0, sizeof(*result));
        use_world_begin(&world, bytes, size, result);
        world.fail_at = fail_at ? world.allocations + fail_at : 0;
        while (world.at < world.size && !result->failure[0] && !use_twin_is_full(&world.twin)) {
                steps[next(&world) % (sizeof(steps) / sizeof(*steps))](&world);
                result->steps++;
                use_world_check(&world);
        }
        use_world_end(&world);
}

void use_ops_random(uint64_t seed, uint8_t *bytes, size_t size)
{
        for (size_t i = 0; i < size; i++) {
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                bytes[i] = (uint8_t)(seed >> 56);
        }
}
