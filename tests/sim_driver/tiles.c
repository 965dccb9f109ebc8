/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tiles -- which memory of a pool may be used again
 *
 * The order in which the real driver looks, as measured (U6): memory that is
 * the stream's own or that the program has seen complete; memory that the
 * policies let it take; new memory; and only when there is none, memory whose
 * free the stream then waits for.
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

static void clean(struct sim_tile *tile)
{
        freed_put(tile->freed);
        tile->freed = NULL;
}

static bool is_done(const struct sim_tile *tile)
{
        return !tile->freed || sim_operation_done(tile->freed->operation);
}

static void must(bool holds, const char *what)
{
        if (!holds)
                sim_abort("a pool is broken: %s", what);
}

static void check(const struct sim_pool *pool)
{
        uint64_t at = pool->base, reserved = 0, used = 0;

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
static void split(struct sim_tile *tile, uint64_t bytes)
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
static void swallow(struct sim_tile *tile)
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
                swallow(tile);
        while (tile->before && are_alike(tile->before, tile)) {
                tile = tile->before;
                swallow(tile);
        }
        return tile;
}

bool sim_tiles_init(struct sim_pool *pool)
{
        pool->span = sim_round(8 * pool->device->total_bytes, SIM_UNIT);
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
static void back(struct sim_tile *tile, uint64_t bytes)
{
        struct sim_pool *pool = tile->pool;

        split(tile, bytes);
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
                split(tile, unit - tile->base);
                tile = tile->after;
        }
        split(tile, SIM_UNIT);
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
        check(pool);
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

/* ---- which tile ---- */

static bool is_fit(const struct sim_tile *tile, struct sim_stream *stream)
{
        const struct sim_pool *pool = tile->pool;
        const struct sim_freed *freed = tile->freed;

        if (tile->live || !tile->backed)
                return false;
        if (!freed || freed->stream == stream->id)
                return true;
        if (is_done(tile)) /* no edge is left to follow: "F--/done" is new memory (U6) */
                return pool->opportunistic;
        return pool->follow && sim_operation_before(freed->operation, stream);
}

static struct sim_tile *find_best(struct sim_pool *pool, struct sim_stream *stream, uint64_t bytes)
{
        struct sim_tile *best = NULL;

        for (struct sim_tile *tile = pool->tiles; tile; tile = tile->after) {
                if (tile->bytes >= bytes && is_fit(tile, stream) &&
                    (!best || tile->bytes < best->bytes))
                        best = tile;
        }
        return best;
}

/* Adjoining tiles that each fit, joined because none fits alone. */
static struct sim_tile *find_run(struct sim_pool *pool, struct sim_stream *stream, uint64_t bytes)
{
        for (struct sim_tile *first = pool->tiles; first; first = first->after) {
                struct sim_tile *last = first;
                uint64_t sum = 0;

                for (; last && sum < bytes && is_fit(last, stream); last = last->after)
                        sum += last->bytes;
                if (sum < bytes)
                        continue;
                clean(first);
                while (first->bytes < bytes) {
                        split(first->after, bytes - first->bytes < first->after->bytes
                                                    ? bytes - first->bytes
                                                    : first->after->bytes);
                        swallow(first);
                }
                return first;
        }
        return NULL;
}

/* The lowest place for new memory: an unbacked tile and the fitting one in front of it. */
static struct sim_tile *find_place(struct sim_pool *pool, struct sim_stream *stream, uint64_t bytes,
                                   uint64_t *growth)
{
        for (struct sim_tile *tile = pool->tiles; tile; tile = tile->after) {
                struct sim_tile *front = tile->before;
                uint64_t have;

                if (tile->backed)
                        continue;
                have = front && is_fit(front, stream) ? front->bytes : 0;
                *growth = sim_round(bytes - have, SIM_UNIT);
                if (tile->bytes >= *growth)
                        return tile;
        }
        return NULL;
}

static struct sim_tile *grow(struct sim_pool *pool, struct sim_stream *stream, uint64_t bytes)
{
        for (int attempt = 0; attempt < 2; attempt++) {
                uint64_t growth;
                struct sim_tile *tile = find_place(pool, stream, bytes, &growth);

                if (!tile || (pool->maximum && pool->reserved + growth > pool->maximum))
                        return NULL;
                if (sim_physical_fits(pool->device, growth)) {
                        struct sim_tile *front = tile->before;

                        back(tile, growth);
                        if (growth >= bytes && !(front && is_fit(front, stream)))
                                return tile;
                        clean(front); /* all of it is used, and what is left over is new */
                        swallow(front);
                        return front;
                }
                sim_physical_reclaim(pool->device);
        }
        return NULL;
}

/* The stream waits for the frees of the first run that is large enough. */
static struct sim_tile *depend(struct sim_pool *pool, struct sim_stream *stream, uint64_t bytes)
{
        for (struct sim_tile *first = pool->tiles; first; first = first->after) {
                struct sim_tile *last = first;
                uint64_t sum = 0;

                for (; last && sum < bytes && last->backed && !last->live; last = last->after)
                        sum += last->bytes;
                if (sum < bytes)
                        continue;
                for (struct sim_tile *tile = first; tile != last; tile = tile->after) {
                        if (tile->freed && !is_done(tile))
                                sim_stream_follow(stream, tile->freed->operation);
                        clean(tile);
                }
                while (first->bytes < bytes)
                        swallow(first);
                return first;
        }
        return NULL;
}

CUresult sim_tiles_take(struct sim_pool *pool, struct sim_stream *stream, size_t bytes,
                        struct sim_tile **tile)
{
        uint64_t rounded = sim_round(bytes, SIM_STEP);
        struct sim_tile *found;

        if (bytes > pool->span)
                return CUDA_ERROR_OUT_OF_MEMORY;
        found = find_best(pool, stream, rounded);
        if (!found)
                found = find_run(pool, stream, rounded);
        if (!found)
                found = grow(pool, stream, rounded);
        if (!found && pool->internal)
                found = depend(pool, stream, rounded);
        if (!found)
                return CUDA_ERROR_OUT_OF_MEMORY;
        split(found, rounded);
        clean(found);
        found->live = true;
        found->requested = bytes;
        pool->live++;
        pool->used += bytes;
        if (pool->used > pool->used_high)
                pool->used_high = pool->used;
        check(pool);
        *tile = found;
        return CUDA_SUCCESS;
}

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
        check(pool);
}

static void observe(struct sim_pool *pool, uint64_t context, uint64_t stream)
{
        for (struct sim_tile *tile = pool->tiles; tile; tile = tile->after) {
                const struct sim_freed *freed = tile->freed;

                if (!freed || !is_done(tile))
                        continue;
                if ((context && freed->context != context) || (stream && freed->stream != stream))
                        continue;
                clean(tile);
                tile = join(tile);
        }
        check(pool);
}

void sim_tiles_observe(struct sim_pool *pool, uint64_t context, uint64_t stream)
{
        observe(pool, context, stream);
}

void sim_tiles_observe_all(struct sim_pool *pool)
{
        observe(pool, 0, 0);
}
