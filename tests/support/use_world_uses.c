/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Use world -- uses and launches, and what the twin says of them
 */

#include "use_world.h"

#include <string.h>

/* uses */

static uint32_t bits_of(struct use_world *world, const struct spm_use_wait *waits,
                        unsigned int count)
{
        uint32_t streams = 0;

        for (unsigned int i = 0; i < count; i++) {
                uint32_t bit = (uint32_t)1 << use_world_number(world, waits[i].stream);

                use_world_expect(world, !(streams & bit), "B22 a stream is told twice");
                streams |= bit;
        }
        return streams;
}

/* The twin's answers are the least that has to be waited for, and the most that may be. */
static void compare(struct use_world *world, uint32_t told, uint32_t least, uint32_t most)
{
        use_world_expect(world, !(least & ~told),
                         "B30 a stream is not waited for whose use was not seen");
        use_world_expect(world, !world->is_exact || !(told & ~most),
                         "B14 a stream is waited for in vain");
}

uint32_t use_world_ask(struct use_world *world, struct use_block *block, enum spm_use_access access,
                       int stream)
{
        struct spm_use_wait waits[USE_STREAMS];
        unsigned int count = 0;
        uint32_t streams;

        use_world_must(world,
                       spm_use_waits(world->model, block->id, access, world->streams[stream], waits,
                                     USE_STREAMS, &count),
                       "a question about a live block is refused");
        streams = bits_of(world, waits, count);
        compare(world, streams, use_twin_waits(&world->twin, block, access, stream, true),
                use_twin_waits(&world->twin, block, access, stream, false));
        return streams;
}

struct use_set use_world_wait(struct use_world *world, struct use_block *block,
                              enum spm_use_access access, int stream)
{
        uint32_t streams = use_world_ask(world, block, access, stream);

        world->result->waits += streams != 0;
        if (!world->is_exact)
                return use_twin_behind(&world->twin, block, access, stream);
        for (int i = 0; i < USE_STREAMS; i++)
                if (streams >> i & 1)
                        use_world_order(world, i, stream);
        return (struct use_set){{0}};
}

void use_world_look(struct use_world *world, struct use_block *block)
{
        enum spm_life life;

        use_world_must(world, spm_life_of(world->model, block->id, &life),
                       "B5 a life is not known");
        if (world->result->failure[0])
                return;
        use_world_expect(world,
                         life == block->life || spm_life_may_become(block->life, life) ||
                                 spm_life_may_become(SPM_LIFE_RETIRED, life),
                         "B5 a life goes where it cannot");
        use_world_expect(world, life >= block->life, "B5 a life goes back");
        use_world_expect(world,
                         life < SPM_LIFE_QUARANTINED || use_twin_is_over(&world->twin, block),
                         "B5 what is complete is not");
        block->life = life;
}

/* the end of all uses */

void use_world_free_behind(struct use_world *world, struct use_block *block, int stream, bool ok)
{
        struct spm_stats before;
        struct spm_stats after;
        struct spm_actions actions;
        struct spm_use use;
        struct use_set behind;

        use_world_must(world,
                       spm_use_prepare(world->model, block->id, SPM_USE_FREE,
                                       world->streams[stream], &use),
                       "a free of a live block cannot be prepared");
        behind = use_world_wait(world, block, SPM_USE_FREE, stream);
        spm_stats(world->model, world->pool, &before);
        use_world_must(world, spm_use_free(world->model, &use, ok, NULL, &actions),
                       "the outcome of a free is refused");
        spm_stats(world->model, world->pool, &after);
        if (ok) {
                use_twin_obey(&world->twin, &behind, stream);
                use_world_forget(world, block, stream);
        } else {
                use_world_expect(world, !memcmp(&before, &after, sizeof(before)),
                                 "B15 a free that failed changes figures");
        }
        use_world_carry_out(world, &actions);
}

/* launches */

static void note_launch(struct use_world *world, struct use_block **blocks,
                        const enum spm_use_access *access, unsigned int count, int stream)
{
        int node = use_twin_submit(&world->twin, stream);

        for (unsigned int i = 0; i < count; i++) {
                bool writes = access[i] & SPM_USE_WRITE;
                bool again = false;

                for (unsigned int j = 0; j < count; j++) {
                        writes |= blocks[j] == blocks[i] && access[j] & SPM_USE_WRITE;
                        again |= j < i && blocks[j] == blocks[i];
                }
                if (!again)
                        use_twin_note(blocks[i], node, writes);
        }
        world->result->uses += count;
}

void use_world_launch(struct use_world *world, struct use_block **blocks,
                      const enum spm_use_access *access, unsigned int count, int stream, bool ok)
{
        const struct spm_use_wait *waits = NULL;
        struct use_set behind = {{0}};
        struct spm_launch *launch;
        unsigned int wait_count = 0;
        bool ready = true;
        uint32_t least = 0;
        uint32_t most = 0;

        if (!use_world_must(world,
                            spm_launch_new(world->model, world->streams[stream], true, &launch),
                            "a launch"))
                return;
        for (unsigned int i = 0; ready && i < count; i++)
                ready = use_world_must(world, spm_launch_add(launch, blocks[i]->id, access[i]),
                                       "a use of a launch");
        ready = ready && use_world_must(world, spm_launch_preflight(launch, &waits, &wait_count),
                                        "B34 a preflight");
        if (!ready) {
                spm_launch_free(launch);
                return;
        }
        for (unsigned int i = 0; i < count && !world->result->failure[0]; i++) {
                struct use_set more = use_twin_behind(&world->twin, blocks[i], access[i], stream);

                use_set_join(&behind, &more);
                least |= use_twin_waits(&world->twin, blocks[i], access[i], stream, true);
                most |= use_twin_waits(&world->twin, blocks[i], access[i], stream, false);
        }
        compare(world, bits_of(world, waits, wait_count), least, most);
        for (unsigned int i = 0; world->is_exact && i < wait_count; i++)
                use_world_order(world, use_world_number(world, waits[i].stream), stream);
        if (ok) {
                use_world_must(world, spm_launch_commit(launch), "B34 a commit");
                if (!world->is_exact)
                        use_twin_obey(&world->twin, &behind, stream);
                note_launch(world, blocks, access, count, stream);
        }
        spm_launch_free(launch);
}
