/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stage -- one block, three streams, and a way back
 */

#include "stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ladder.h"

struct stage stage;
uint64_t stage_served;

/* The model's memory is never given back before the whole is. */

static void *arena_alloc(size_t count, size_t size, void *user)
{
        size_t at = stage.used;

        (void)user;
        if (count * size > STAGE_ARENA - at)
                return NULL;
        stage.used += (count * size + 15) & ~(size_t)15;
        return memset(stage.arena + at, 0, count * size);
}

static void arena_free(void *memory, void *user)
{
        (void)memory;
        (void)user;
}

void stage_save(struct stage *place)
{
        memcpy(place, &stage, offsetof(struct stage, arena) + stage.used);
}

void stage_restore(const struct stage *place)
{
        memcpy(&stage, place, offsetof(struct stage, arena) + place->used);
}

void stage_must(enum spm_status status)
{
        if (status == SPM_OK)
                return;
        printf("%s\n", spm_status_name(status));
        exit(1);
}

void stage_set_up(const struct stage_scene *scene)
{
        /* Records, waits and growth succeed, host waits are waited for, and the device takes no
         * step of its own. */
        static const uint8_t plain = 2;
        struct spm_config config = {.alloc = arena_alloc, .free = arena_free};
        struct spm_pool_config pool = {
                .kind = SPM_POOL_ASYNC, .grain = WORLD_PAGE, .small_size = 512};
        struct spm_request request = {.size = WORLD_PAGE};
        struct world *world = &stage.world;
        struct spm_actions actions;
        int i;

        memset(&stage, 0, sizeof(stage));
        world->constant = &plain;
        twin_init(&world->twin);
        stage_must(spm_model_new(&config, &world->model));
        for (i = 0; i < 2; i++)
                stage_must(spm_context_add(world->model, 0, &world->contexts[i]));
        for (i = 0; i < STAGE_STREAMS; i++) {
                int context = scene->contexts[i];

                stage_must(spm_stream_add(world->model, world->contexts[context], scene->kinds[i],
                                          &world->streams[i].id));
                twin_add_stream(&world->twin, i, context, scene->kinds[i]);
        }
        world->stream_count = STAGE_STREAMS;
        stage_must(spm_event_add(world->model, &world->events[0]));
        world->event_nodes[0] = TWIN_NONE;
        stage_must(spm_pool_create(world->model, &pool, &world->pools[0]));
        world->page_count = 1;
        world->free_pages = 1;
        world_give(world, 0, WORLD_BASE, WORLD_PAGE, true);
        request.pool = world->pools[0];
        request.stream = world->streams[0].id;
        stage_must(spm_alloc(world->model, &request, &stage.block, &actions));
        stage.born = twin_pretend(&world->twin, 0);
}

/* operations */

struct world_cause stage_cause(int stream)
{
        return (struct world_cause){.self = stream};
}

struct spm_scope stage_scope(const struct stage_scene *scene, int stream)
{
        if (scene->whole && stream == STAGE_STREAMS - 1)
                return (struct spm_scope){SPM_SCOPE_CONTEXT, stage.world.contexts[1]};
        return (struct spm_scope){SPM_SCOPE_STREAM, stage.world.streams[stream].id};
}

bool stage_may_use(int stream)
{
        return !stage.freed && twin_may_rely(&stage.world.twin, stream, stage.born);
}

void stage_use(int stream)
{
        int node = twin_submit(&stage.world.twin, stream);

        twin_touch(&stage.world.twin, node, stage.block.generation, stage.block.address,
                   stage.block.address + stage.block.size);
        stage.uses[stage.use_count++] = node;
}

/* The program does not have to order behind what is over. */
bool stage_may_free(int stream)
{
        const struct twin *twin = &stage.world.twin;
        int i;

        for (i = 0; i < stage.use_count; i++)
                if (!twin_is_executed(twin, stage.uses[i]) &&
                    !twin_may_rely(twin, stream, stage.uses[i]))
                        return false;
        return stage_may_use(stream);
}

void stage_free(int stream)
{
        struct world *world = &stage.world;
        struct world_cause cause = stage_cause(stream);
        struct spm_actions actions;

        cause.frees_on_legacy = world->twin.streams[stream].kind == SPM_STREAM_LEGACY;
        twin_pretend(&world->twin, stream);
        stage_must(spm_free(world->model, stage.block.address, stage.block.generation,
                            SPM_FREE_ASYNC, world->streams[stream].id, NULL, &actions));
        world_perform(world, &actions, cause, NULL);
        stage.freed = true;
}

/* questions */

static bool is_safe(const struct spm_allocation *allocation, int stream)
{
        const struct twin *twin = &stage.world.twin;
        int i;

        for (i = 0; i < STAGE_STREAMS; i++) {
                bool follows = twin->streams[stream].kind == SPM_STREAM_LEGACY &&
                               twin_answers_for(twin, stream, i);

                if ((i == stream || follows) &&
                    twin_conflict(twin, i, allocation->generation, allocation->address,
                                  allocation->address + allocation->size) != TWIN_NONE)
                        return false;
        }
        return true;
}

static const char *ask(int stream, bool may_wait)
{
        struct world *world = &stage.world;
        struct spm_request request = {
                .pool = world->pools[0],
                .stream = world->streams[stream].id,
                .size = WORLD_PAGE,
                .may_wait = may_wait,
        };
        struct spm_allocation allocation;
        struct spm_actions actions;
        enum spm_status status;
        bool performed;

        do {
                struct world_cause cause = stage_cause(stream);

                status = spm_alloc(world->model, &request, &allocation, &actions);
                cause.in_alloc = true;
                cause.short_of = spm_ladder_is_short(&request);
                performed = world_perform(world, &actions, cause, &request);
        } while (status == SPM_AGAIN && !world->failure[0]);
        if (world->failure[0])
                return world->failure;
        if (status == SPM_OK && performed) {
                stage_served++;
                return is_safe(&allocation, stream) ? NULL : "served while its owner is at work";
        }
        if (status == SPM_E_OUT_OF_MEMORY && !may_wait)
                return NULL;
        return performed ? spm_status_name(status) : "a wait for a stamp that was not recorded";
}

const char *stage_ask(int *asked)
{
        static struct stage place;
        static char text[160];
        const char *wrong = NULL;
        int i;

        *asked = 0;
        if (!spm_check(stage.world.model, text, sizeof(text)))
                return text;
        if (!stage.freed)
                return NULL;
        stage_save(&place);
        for (i = 0; i < 2 * STAGE_STREAMS && !wrong; i++) {
                const struct world_stream *stream = &stage.world.streams[i / 2];

                *asked = i / 2;
                if (stream->retired || stream->capturing ||
                    stage.world.captures[world_context_of(&stage.world, i / 2)])
                        continue;
                wrong = ask(i / 2, i % 2);
                if (wrong)
                        wrong = strncpy(text, wrong, sizeof(text) - 1);
                stage_restore(&place);
        }
        return wrong;
}
