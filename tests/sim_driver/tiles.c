/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tiles -- the memory of a pool, cut and joined
 *
 * Clean neighbours join; freed ones do not, because each waits for a free of
 * its own. Physical memory comes in at one end of a clean tile and leaves from
 * the last clean unit.
 */

#include <stdlib.h>
#include <sys/mman.h>
#include "pool.h"

#define SPAN_MAX ((uint64_t)64 << 30)

static void freed_put(struct sim_freed *freed)
{
        if (!freed || --freed->references)
                return;
        sim_operation_put(freed->operation);
        free(freed);
}

void sim_tile_clean(struct sim_tile *tile)
{
        freed_put(tile->freed);
        tile->freed = NULL;
}

bool sim_tile_is_done(const struct sim_tile *tile)
{
        return !tile->freed || sim_operation_done(tile->freed->operation);
}

static void must(bool holds, const char *what)
{
        if (!holds)
                sim_abort("a pool is broken: %s", what);
}

void sim_tiles_check(struct sim_pool *pool)
{
        uint64_t at = pool->base, reserved = 0, used = 0;

        /* A walk over all tiles: each time while there are few, less often when there are many. */
        if (pool->changes++ % (pool->live / 64 + 1))
                return;

        for (const struct sim_tile *tile = pool->tiles; tile; tile = tile->after) {
                must(tile->base == at && tile->bytes, "a gap");
                must(tile->backed || (!tile->live && !tile->freed), "unbacked and in use");
                must(!tile->live || !tile->freed, "live and freed");
                must(!tile->after || tile->after->before == tile, "its list");
                at += tile->bytes;
                reserved += tile->backed ? tile->bytes : 0;
                used += tile->live ? tile->requested : 0;
        }
        must(at == pool->base + pool->span, "its end");
        must(reserved == pool->reserved && reserved <= pool->reserved_high, "reserved");
        must(used == pool->used && used <= pool->used_high, "used");
}

static struct sim_tile *tile_new(struct sim_pool *pool, uint64_t base, uint64_t bytes)
{
        struct sim_tile *tile = calloc(1, sizeof(*tile));

        if (!tile)
                sim_abort("no host memory for a pool");
        tile->pool = pool;
        tile->base = base;
        tile->bytes = bytes;
        return tile;
}

/* Cuts the tile behind so many bytes; the rest is the same in everything else. */
void sim_tile_split(struct sim_tile *tile, uint64_t bytes)
{
        struct sim_tile *rest;

        if (tile->bytes == bytes)
                return;
        rest = tile_new(tile->pool, tile->base + bytes, tile->bytes - bytes);
        rest->backed = tile->backed;
        rest->freed = tile->freed;
        if (rest->freed)
                rest->freed->references++;
        rest->before = tile;
        rest->after = tile->after;
        if (rest->after)
                rest->after->before = rest;
        tile->after = rest;
        tile->bytes = bytes;
}

/* The tile takes the next one in. */
void sim_tile_swallow(struct sim_tile *tile)
{
        struct sim_tile *next = tile->after;

        tile->bytes += next->bytes;
        tile->after = next->after;
        if (tile->after)
                tile->after->before = tile;
        freed_put(next->freed);
        free(next);
}

static bool are_alike(const struct sim_tile *tile, const struct sim_tile *next)
{
        return !tile->live && !next->live && tile->backed == next->backed && !tile->freed &&
               !next->freed;
}

static struct sim_tile *join(struct sim_tile *tile)
{
        while (tile->after && are_alike(tile, tile->after))
                sim_tile_swallow(tile);
        while (tile->before && are_alike(tile->before, tile)) {
                tile = tile->before;
                sim_tile_swallow(tile);
        }
        return tile;
}

bool sim_tiles_init(struct sim_pool *pool)
{
        pool->span = sim_round(4 * pool->device->total_bytes, SIM_UNIT);
        if (pool->span > SPAN_MAX)
                pool->span = SPAN_MAX;
        pool->physical = calloc(pool->span / SIM_UNIT, sizeof(*pool->physical));
        if (!pool->physical)
                return false;
        if (!sim_space_take(pool->span, SIM_UNIT, &pool->base)) {
                free(pool->physical);
                return false;
        }
        pool->tiles = tile_new(pool, pool->base, pool->span);
        return true;
}

void sim_tiles_fini(struct sim_pool *pool)
{
        must(!pool->reserved && !pool->tiles->after, "used to the end");
        free(pool->tiles);
        free(pool->physical);
        sim_space_give(pool->base, pool->span);
}

/* ---- physical memory ---- */

/* Backs the first so many bytes of an unbacked tile, whole units, which are known to fit. */
void sim_tile_back(struct sim_tile *tile, uint64_t bytes)
{
        struct sim_pool *pool = tile->pool;

        sim_tile_split(tile, bytes);
        for (uint64_t at = tile->base; at < tile->base + bytes; at += SIM_UNIT) {
                uint64_t *physical = &pool->physical[(at - pool->base) / SIM_UNIT];

                if (sim_physical_take(pool->device, SIM_UNIT, physical) != CUDA_SUCCESS)
                        sim_abort("room for a pool vanished");
                sim_space_map(at, pool->device, *physical, SIM_UNIT);
                sim_space_protect(at, SIM_UNIT, PROT_READ | PROT_WRITE);
        }
        tile->backed = true;
        pool->reserved += bytes;
        if (pool->reserved > pool->reserved_high)
                pool->reserved_high = pool->reserved;
}

/* Gives back the unit, which lies in one clean tile; the tile that holds it afterwards. */
static struct sim_tile *unback(struct sim_tile *tile, uint64_t unit)
{
        struct sim_pool *pool = tile->pool;

        if (unit > tile->base) {
                sim_tile_split(tile, unit - tile->base);
                tile = tile->after;
        }
        sim_tile_split(tile, SIM_UNIT);
        tile->backed = false;
        sim_space_unmap(unit, SIM_UNIT);
        sim_physical_give(pool->device, pool->physical[(unit - pool->base) / SIM_UNIT], SIM_UNIT);
        pool->reserved -= SIM_UNIT;
        return join(tile);
}

void sim_tiles_trim(struct sim_pool *pool, uint64_t keep)
{
        struct sim_tile *tile = pool->tiles;
        bool again = true;

        /* From the end: what was added last goes first. */
        while (again && pool->reserved >= SIM_UNIT && pool->reserved - SIM_UNIT >= keep) {
                again = false;
                for (tile = pool->tiles; tile->after; tile = tile->after)
                        ;
                for (; tile; tile = tile->before) {
                        uint64_t end = (tile->base + tile->bytes) / SIM_UNIT * SIM_UNIT;

                        if (tile->live || !tile->backed || tile->freed)
                                continue;
                        if (end < tile->base + SIM_UNIT)
                                continue;
                        unback(tile, end - SIM_UNIT);
                        again = true;
                        break;
                }
        }
        sim_tiles_check(pool);
}

bool sim_tiles_are_backed(const struct sim_pool *pool, uint64_t address, uint64_t bytes)
{
        if (address < pool->base || address + bytes > pool->base + pool->span)
                return false;
        for (const struct sim_tile *tile = pool->tiles; tile; tile = tile->after) {
                if (tile->base + tile->bytes > address && tile->base < address + bytes &&
                    !tile->backed)
                        return false;
        }
        return true;
}

/* ---- the end of a tile's use ---- */

void sim_tiles_give(struct sim_tile *tile, struct sim_stream *stream)
{
        struct sim_pool *pool = tile->pool;

        tile->live = false;
        pool->live--;
        pool->used -= tile->requested;
        if (stream) {
                tile->freed = calloc(1, sizeof(*tile->freed));
                if (!tile->freed)
                        sim_abort("no host memory for a free");
                tile->freed->references = 1;
                tile->freed->operation = sim_mark(stream, "cuMemFreeAsync");
                tile->freed->stream = stream->id;
                tile->freed->context = stream->context->id;
        } else {
                join(tile);
        }
        sim_tiles_check(pool);
}

static void observe(struct sim_pool *pool, uint64_t context, uint64_t stream)
{
        for (struct sim_tile *tile = pool->tiles; tile; tile = tile->after) {
                const struct sim_freed *freed = tile->freed;

                if (!freed || !sim_tile_is_done(tile))
                        continue;
                if ((context && freed->context != context) || (stream && freed->stream != stream))
                        continue;
                sim_tile_clean(tile);
                tile = join(tile);
        }
        sim_tiles_check(pool);
}

void sim_tiles_observe(struct sim_pool *pool, uint64_t context, uint64_t stream)
{
        observe(pool, context, stream);
}

void sim_tiles_observe_all(struct sim_pool *pool)
{
        observe(pool, 0, 0);
}
