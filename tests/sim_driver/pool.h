/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_POOL_H
#define SIM_POOL_H

/*
 * Pool -- stream-ordered memory: tiles, and the rules for using them again
 *
 * A pool has a range of addresses that tiles cover without gaps. Physical
 * memory comes and goes in units of 32 MiB (U4); a tile is backed or not as a
 * whole, so unit borders are tile borders where that changes. A free tile
 * remembers the free that made it until a synchronization of the program has
 * seen that free complete; a tile without such a memory is clean and fits
 * everybody.
 *
 * Invariants, checked after changes:
 *   - tiles tile [base, base + span) in order
 *   - a live tile is backed; an unbacked tile is clean
 *   - reserved is the sum of backed tiles, used that of requests of live tiles
 */

#include "memory.h"

#pragma GCC visibility push(hidden)

#define SIM_UNIT ((uint64_t)32 << 20)

/* One free, shared by the tiles that its memory was split into. */
struct sim_freed {
        unsigned int references;
        struct sim_operation *operation;
        uint64_t stream;
        uint64_t context; /* ids */
};

struct sim_tile {
        struct sim_pool *pool;
        uint64_t base;
        uint64_t bytes;
        bool backed;
        bool live;
        size_t requested;        /* of a live tile */
        struct sim_freed *freed; /* null: clean, or live */
        struct sim_tile *before;
        struct sim_tile *after;
};

struct sim_pool {
        struct sim_handle handle;
        struct sim_device *device;
        CUmemPoolProps props;
        size_t maximum; /* 0: the device's memory */
        uint64_t id;    /* never repeats */
        bool destroyed; /* waits for its last allocation */
        bool imported;  /* stands for another pool; allocates nothing itself */
        uint64_t base;
        uint64_t span;
        struct sim_tile *tiles;
        uint64_t *physical; /* by unit; offset in the device's file */
        size_t live;        /* tiles */
        size_t changes;     /* since it was made, for the rhythm of checks */
        int access[SIM_DEVICES_MAX];
        struct sim_pool *next;

        /* The eight attributes. */
        int follow, opportunistic, internal;
        uint64_t threshold, reserved, reserved_high, used, used_high;
};

/* ---- pool.c ---- */

/* Null: no addresses left. */
struct sim_pool *sim_pool_new(struct sim_device *device);
/* Null: there is none, or it was destroyed. */
struct sim_pool *sim_pool_by_id(uint64_t id);
/* 1 for null; a destroyed pool aborts. */
CUresult sim_pool_resolve(CUmemoryPool handle, struct sim_pool **pool);

/* ---- tiles.c ---- */

bool sim_tiles_init(struct sim_pool *pool);
/* Of a pool that has no memory left. */
void sim_tiles_fini(struct sim_pool *pool);

/* @stream: where in time it is free; null: now, for everybody. */
void sim_tiles_give(struct sim_tile *tile, struct sim_stream *stream);
/* A synchronization of this context or stream (the other is 0) was seen by the program. */
void sim_tiles_observe(struct sim_pool *pool, uint64_t context, uint64_t stream);
/* Every complete free was seen. */
void sim_tiles_observe_all(struct sim_pool *pool);
/* Releases clean units while more than so many bytes stay reserved. */
void sim_tiles_trim(struct sim_pool *pool, uint64_t keep);
/* Cuts the tile behind so many bytes; the rest is the same in everything else. */
void sim_tile_split(struct sim_tile *tile, uint64_t bytes);
/* The tile takes the next one in, and that one's free is forgotten. */
void sim_tile_swallow(struct sim_tile *tile);
/* Forgets the free that made it. */
void sim_tile_clean(struct sim_tile *tile);
bool sim_tile_is_done(const struct sim_tile *tile);
/* Backs the first so many bytes of an unbacked tile, whole units, which are known to fit. */
void sim_tile_back(struct sim_tile *tile, uint64_t bytes);
/* Aborts when an invariant does not hold. */
void sim_tiles_check(struct sim_pool *pool);
bool sim_tiles_are_backed(const struct sim_pool *pool, uint64_t address, uint64_t bytes);

/* ---- reuse.c ---- */

/* A live tile for the stream, by the pool's policies; 2 when nothing helps. */
CUresult sim_tiles_take(struct sim_pool *pool, struct sim_stream *stream, size_t bytes,
                        struct sim_tile **tile);

#pragma GCC visibility pop

#endif
