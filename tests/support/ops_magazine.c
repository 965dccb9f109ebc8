/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops -- magazines
 *
 * What a thread has at hand for a stream. The threads of a program take turns
 * here, so nobody is inside when the model wants its blocks back.
 */

#include "ops_inner.h"

static struct magazine *find(struct ops *ops, int pool, int stream)
{
        int i;

        for (i = 0; i < MAGAZINES; i++) {
                struct magazine *magazine = &ops->magazines[i];

                if (magazine->it && magazine->pool == pool && magazine->stream == stream)
                        return magazine;
        }
        return NULL;
}

struct spm_magazine *ops_magazine_of(struct ops *ops, int pool, int stream)
{
        const struct magazine *magazine = find(ops, pool, stream);

        return magazine ? magazine->it : NULL;
}

bool ops_magazine_alloc(struct ops *ops, int pool, int stream, size_t size)
{
        const struct magazine *magazine = find(ops, pool, stream);
        struct spm_allocation allocation;

        if (!magazine || !spm_magazine_alloc(magazine->it, size, 0, &allocation))
                return false;
        world_trace(&ops->world, "alloc pool %d stream %d size %zu: from its magazine at %#llx",
                    pool, stream, size, (unsigned long long)allocation.address);
        if (allocation.size != size)
                world_fail(&ops->world, "a magazine serves what was not asked for");
        ops_count_alloc(ops, pool, size);
        ops_own(ops, &allocation, pool, stream);
        return true;
}

bool ops_magazine_free(struct ops *ops, const struct block *block, int stream,
                       struct spm_allocation *freed)
{
        const struct magazine *magazine = find(ops, block->pool, stream);
        const struct spm_allocation *allocation = &block->allocation;

        if (!magazine ||
            !spm_magazine_free(magazine->it, allocation->address, allocation->generation, freed))
                return false;
        if (block->stream == TWIN_NONE ? stream != TWIN_NONE : stream == TWIN_NONE)
                world_fail(&ops->world, "a magazine takes what is freed in another way");
        if (block->exported)
                world_fail(&ops->world, "a magazine takes what is not for it");
        return true;
}

void ops_magazine_flush(struct ops *ops, int pool)
{
        const struct magazine *magazine = find(ops, pool, TWIN_NONE);

        if (magazine && ops_choose(ops, 2))
                spm_magazine_flush(ops->world.model, magazine->it);
}

/* Whose stream or pool is gone, or that is retired, serves nothing; nobody takes a block twice,
 * from inside, or for an old owner. */
static void try_mistakes(struct ops *ops, const struct magazine *magazine)
{
        struct world *world = &ops->world;
        const struct block *block = ops_choose_block(ops);
        uint64_t hash = spm_hash(world->model);
        struct spm_allocation allocation;
        bool gone = magazine->retired || world->pool_gone[magazine->pool];

        if (magazine->stream != TWIN_NONE)
                gone = gone || world->streams[magazine->stream].retired ||
                       world->context_gone[world_context_of(world, magazine->stream)];

        if (gone && spm_magazine_alloc(magazine->it, 512, 0, &allocation))
                world_fail(world, "a magazine serves after its end");
        if (block && gone &&
            spm_magazine_free(magazine->it, block->allocation.address, 0, &allocation))
                world_fail(world, "a magazine takes a block after its end");
        if (block && spm_magazine_free(magazine->it, block->allocation.address + 1, 0, NULL))
                world_fail(world, "a magazine takes a block by an address inside");
        if (block && spm_magazine_free(magazine->it, block->allocation.address,
                                       block->allocation.generation + 1, NULL))
                world_fail(world, "a magazine takes a block for another owner");
        if (ops->last_freed.address && spm_magazine_free(magazine->it, ops->last_freed.address,
                                                         ops->last_freed.generation, NULL))
                world_fail(world, "a magazine takes a block twice");
        if (spm_hash(world->model) != hash)
                world_fail(world, "a mistake with a magazine changed something");
}

static void end(struct ops *ops, struct magazine *magazine)
{
        int i;

        for (i = 0; i < REQUESTS; i++)
                if (ops->requests[i].request.magazine == magazine->it)
                        ops->requests[i].request.magazine = NULL;
        world_trace(&ops->world, "the magazine of pool %d and stream %d ends", magazine->pool,
                    magazine->stream);
        spm_magazine_end(ops->world.model, magazine->it);
        magazine->it = NULL;
}

static void begin(struct ops *ops, struct magazine *magazine)
{
        struct world *world = &ops->world;
        int pool = ops->profile->pools[ops_choose(ops, 4)];
        bool sync = ops_is_sync(pool);
        int stream = sync ? TWIN_NONE : ops_choose_stream(ops);
        struct spm_magazine *fresh = NULL;
        struct spm_pool_config config;
        static struct spm_layout layout;
        enum spm_status status;

        if ((stream == TWIN_NONE && !sync) || world->pool_gone[pool])
                return;
        /* A second thread that has one of a synchronous pool is what the first is crowded by. */
        if (find(ops, pool, stream) && (!sync || ops_choose(ops, 2)))
                return;
        status = spm_magazine_new(world->model, world->pools[pool],
                                  sync ? 0 : world->streams[stream].id, &fresh);
        spm_pool_get_config(world->model, world->pools[pool], &config);
        if ((ops_is_async(pool) || sync) && config.range_size && !config.quarantine &&
            spm_pool_layout(world->model, world->pools[pool], &layout)) {
                ops_expect(ops, "magazine", status);
                if (status)
                        return;
                *magazine = (struct magazine){.it = fresh, .pool = pool, .stream = stream};
                if (ops_choose(ops, 2))
                        spm_magazine_crowd(world->model, fresh);
                world_trace(world, "a magazine of pool %d and stream %d", pool, stream);
        } else if (status == SPM_OK) {
                world_fail(world, "a magazine of a pool or stream that can have none");
        }
}

void ops_retire(struct ops *ops, int pool)
{
        int i;

        if (spm_magazine_retire(ops->world.model, ops->world.pools[pool]))
                world_fail(&ops->world, "a pool that is there has no magazines to retire");
        for (i = 0; i < MAGAZINES; i++)
                if (ops->magazines[i].it && ops->magazines[i].pool == pool)
                        ops->magazines[i].retired = true;
}

void op_magazine(struct ops *ops)
{
        struct magazine *magazine = &ops->magazines[ops_choose(ops, MAGAZINES)];

        if (!magazine->it)
                begin(ops, magazine);
        else if (ops_choose(ops, 4) == 0)
                end(ops, magazine);
        else
                try_mistakes(ops, magazine);
}
