/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reuse -- which memory of a pool may be used again
 *
 * The order in which the real driver looks, as measured (U6): memory that is
 * the stream's own or that the program has seen complete; memory that the
 * policies let it take; new memory; and only when there is none, memory whose
 * free the stream then waits for.
 */

#include "pool.h"

static bool is_fit(const struct sim_tile *tile, struct sim_stream *stream)
{
        const struct sim_pool *pool = tile->pool;
        const struct sim_freed *freed = tile->freed;

        if (tile->live || !tile->backed)
                return false;
        if (!freed || freed->stream == stream->id)
                return true;
        if (sim_tile_is_done(tile)) /* no edge is left to follow: "F--/done" is new memory (U6) */
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

/* Joins the tiles from @first on into one of @bytes. What is left of the last one still waits for
 * its free, whoever the rest was given to. */
static struct sim_tile *merge(struct sim_tile *first, uint64_t bytes)
{
        if (first->bytes > bytes)
                sim_tile_split(first, bytes);
        sim_tile_clean(first);
        while (first->bytes < bytes) {
                uint64_t missing = bytes - first->bytes;

                if (first->after->bytes > missing)
                        sim_tile_split(first->after, missing);
                sim_tile_swallow(first);
        }
        return first;
}

/* Adjoining tiles that each fit, joined because none fits alone. */
static struct sim_tile *find_run(struct sim_pool *pool, struct sim_stream *stream, uint64_t bytes)
{
        for (struct sim_tile *first = pool->tiles; first; first = first->after) {
                struct sim_tile *last = first;
                uint64_t sum = 0;

                for (; last && sum < bytes && is_fit(last, stream); last = last->after)
                        sum += last->bytes;
                if (sum >= bytes)
                        return merge(first, bytes);
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

                        sim_tile_back(tile, growth);
                        if (growth >= bytes && !(front && is_fit(front, stream)))
                                return tile;
                        sim_tile_clean(front); /* all of it is used, and what is left over is new */
                        sim_tile_swallow(front);
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
                for (struct sim_tile *tile = first; tile != last; tile = tile->after)
                        if (tile->freed && !sim_tile_is_done(tile))
                                sim_stream_follow(stream, tile->freed->operation);
                return merge(first, bytes);
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
        sim_tile_split(found, rounded);
        sim_tile_clean(found);
        found->live = true;
        found->requested = bytes;
        pool->live++;
        pool->used += bytes;
        if (pool->used > pool->used_high)
                pool->used_high = pool->used;
        sim_tiles_check(pool);
        *tile = found;
        return CUDA_SUCCESS;
}
