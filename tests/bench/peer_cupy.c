/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer cupy -- best fit in memory obtained by exact size, as in CuPy's pool
 *
 * Published in cupy/cuda/memory.pyx. Sizes are rounded to 512 bytes. Each
 * stream has an arena, a set of free chunks ordered by size; the smallest that
 * fits is split, and chunks of one allocation of the driver join when they are
 * freed. What no chunk can hold is obtained in its own size. Allocations that
 * are free as a whole go back when there is no memory left.
 *
 * Left out: its lock, and that its records are objects of Python.
 */

#include <stdlib.h>

#include "arena.h"
#include "map.h"
#include "measure.h"

#define STEP 512

struct cupy {
        struct arena arena;
        struct set free; /* of all streams, each in a part of its own */
        struct map live;
};

static struct peer *make(const struct peer_options *options)
{
        struct cupy *cupy = must_calloc(1, sizeof(*cupy));

        arena_init(&cupy->arena, &peer_cupy, options);
        return &cupy->arena.peer;
}

static void unmake(struct peer *peer)
{
        struct cupy *cupy = (struct cupy *)peer;

        map_fini(&cupy->live);
        arena_fini(&cupy->arena);
        free(cupy);
}

static void put(struct cupy *cupy, struct block *block)
{
        block->is_free = true;
        block->node.high = (uint64_t)block->stream << STREAM_SHIFT | block->size;
        block->node.low = block->address;
        set_insert(&cupy->free, &block->node);
}

static void take(struct cupy *cupy, struct block *block)
{
        set_remove(&cupy->free, &block->node);
        block->is_free = false;
}

static struct block *find(struct cupy *cupy, uint32_t stream, uint64_t size)
{
        struct set_node *node =
                set_at_least(&cupy->free, (uint64_t)stream << STREAM_SHIFT | size, 0);

        if (!node || node->high >> STREAM_SHIFT != stream)
                return NULL;
        return (struct block *)node;
}

static void release_whole(struct cupy *cupy)
{
        struct set_node *node = set_at_least(&cupy->free, 0, 0);

        while (node) {
                struct block *block = (struct block *)node;
                uint64_t high = node->high;
                uint64_t low = node->low;

                if (!block->before && !block->after) {
                        take(cupy, block);
                        arena_release(&cupy->arena, block->size);
                        arena_forget(&cupy->arena, block);
                }
                node = set_at_least(&cupy->free, high, low + 1);
        }
}

static struct block *grow(struct cupy *cupy, uint32_t stream, uint64_t size)
{
        uint64_t address = arena_grow(&cupy->arena, size);
        struct block *block;

        if (!address) {
                release_whole(cupy);
                address = arena_grow(&cupy->arena, size);
        }
        if (!address)
                return NULL;
        block = arena_block(&cupy->arena, address, size);
        block->stream = stream;
        put(cupy, block);
        return block;
}

static uint64_t alloc(struct peer *peer, uint32_t stream, size_t size)
{
        struct cupy *cupy = (struct cupy *)peer;
        uint64_t rounded = peer_round(size, STEP);
        struct block *block;

        stream = peer_stream(stream);
        block = find(cupy, stream, rounded);
        if (!block)
                block = grow(cupy, stream, rounded);
        if (!block)
                return 0;
        take(cupy, block);
        if (block->size > rounded)
                put(cupy, arena_split(&cupy->arena, block, rounded));
        map_put(&cupy->live, block->address, block);
        return block->address;
}

static void release(struct peer *peer, uint64_t address, size_t size, uint32_t stream)
{
        struct cupy *cupy = (struct cupy *)peer;
        struct block *block = map_take(&cupy->live, address);

        (void)size;
        (void)stream;
        if (block->after && block->after->is_free) {
                take(cupy, block->after);
                arena_join(&cupy->arena, block);
        }
        if (block->before && block->before->is_free) {
                block = block->before;
                take(cupy, block);
                arena_join(&cupy->arena, block);
        }
        put(cupy, block);
}

const struct peer_ops peer_cupy = {
        .name = "CuPy-like",
        .make = make,
        .unmake = unmake,
        .alloc = alloc,
        .free = release,
};
