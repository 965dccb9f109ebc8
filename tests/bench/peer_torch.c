/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer torch -- two sets, best fit, as in PyTorch's caching allocator
 *
 * Published in c10/cuda/CUDACachingAllocator.cpp. Sizes are rounded to 512
 * bytes. Requests of at most 1 MiB come from segments of 2 MiB, others from
 * segments of 20 MiB, or of their own size in steps of 2 MiB from 10 MiB on;
 * the two kinds never mix. A set is ordered by stream, size and address, and
 * a block serves only the stream that it was first allocated on. Segments go
 * back when there is no memory left, if they are whole.
 *
 * Left out: its lock, its statistics, and the events of record_stream().
 */

#include <stdlib.h>

#include "arena.h"
#include "map.h"
#include "measure.h"

#define STEP          512
#define SMALL_MAX     MIB
#define SMALL_SEGMENT (2 * MIB)
#define LARGE_SEGMENT (20 * MIB)
#define LARGE_MIN     (10 * MIB)

struct torch {
        struct arena arena;
        struct set free[2]; /* small, large */
        struct map live;
};

static struct peer *make(const struct peer_options *options)
{
        struct torch *torch = must_calloc(1, sizeof(*torch));

        arena_init(&torch->arena, &peer_torch, options);
        return &torch->arena.peer;
}

static void unmake(struct peer *peer)
{
        struct torch *torch = (struct torch *)peer;

        map_fini(&torch->live);
        arena_fini(&torch->arena);
        free(torch);
}

/* The kind of a block is told by its segment's size; it is kept in the key's lowest bit, which
 * sizes in steps of 512 do not use. */
static void put(struct torch *torch, struct block *block, bool is_large)
{
        block->is_free = true;
        block->node.high = (uint64_t)block->stream << STREAM_SHIFT | block->size | is_large;
        block->node.low = block->address;
        set_insert(&torch->free[is_large], &block->node);
}

static bool is_large(const struct block *block)
{
        return block->node.high & 1;
}

static void take(struct torch *torch, struct block *block)
{
        set_remove(&torch->free[is_large(block)], &block->node);
        block->is_free = false;
}

static struct block *find(struct torch *torch, uint32_t stream, uint64_t size, bool large)
{
        struct set_node *node =
                set_at_least(&torch->free[large], (uint64_t)stream << STREAM_SHIFT | size, 0);

        if (!node || node->high >> STREAM_SHIFT != stream)
                return NULL;
        return (struct block *)node;
}

static void release_whole(struct torch *torch, struct set *set)
{
        struct set_node *node = set_at_least(set, 0, 0);

        while (node) {
                struct block *block = (struct block *)node;
                uint64_t high = node->high;
                uint64_t low = node->low;

                if (!block->before && !block->after) {
                        take(torch, block);
                        arena_release(&torch->arena, block->size);
                        arena_forget(&torch->arena, block);
                }
                node = set_at_least(set, high, low + 1);
        }
}

static struct block *grow(struct torch *torch, uint32_t stream, uint64_t size, bool large)
{
        uint64_t segment = size < LARGE_MIN ? LARGE_SEGMENT : peer_round(size, SMALL_SEGMENT);
        struct block *block;
        uint64_t address;

        if (!large)
                segment = SMALL_SEGMENT;
        address = arena_grow(&torch->arena, segment);
        if (!address) {
                release_whole(torch, &torch->free[0]);
                release_whole(torch, &torch->free[1]);
                address = arena_grow(&torch->arena, segment);
        }
        if (!address)
                return NULL;
        block = arena_block(&torch->arena, address, segment);
        block->stream = stream;
        put(torch, block, large);
        return block;
}

static uint64_t alloc(struct peer *peer, uint32_t stream, size_t size)
{
        struct torch *torch = (struct torch *)peer;
        uint64_t rounded = peer_round(size, STEP);
        bool large = rounded > SMALL_MAX;
        struct block *block;
        uint64_t rest;

        stream = peer_stream(stream);
        block = find(torch, stream, rounded, large);
        if (!block)
                block = grow(torch, stream, rounded, large);
        if (!block)
                return 0;
        take(torch, block);
        rest = block->size - rounded;
        if (large ? rest > SMALL_MAX : rest >= STEP)
                put(torch, arena_split(&torch->arena, block, rounded), large);
        map_put(&torch->live, block->address, block);
        return block->address;
}

static void release(struct peer *peer, uint64_t address, size_t size, uint32_t stream)
{
        struct torch *torch = (struct torch *)peer;
        struct block *block = map_take(&torch->live, address);
        bool large = is_large(block);

        (void)size;
        (void)stream;
        if (block->after && block->after->is_free) {
                take(torch, block->after);
                arena_join(&torch->arena, block);
        }
        if (block->before && block->before->is_free) {
                block = block->before;
                take(torch, block);
                arena_join(&torch->arena, block);
        }
        put(torch, block, large);
}

const struct peer_ops peer_torch = {
        .name = "PyTorch-like",
        .is_yardstick = true,
        .make = make,
        .unmake = unmake,
        .alloc = alloc,
        .free = release,
};
