/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer expand -- PyTorch's caching allocator with expandable segments
 *
 * Published in c10/cuda/CUDACachingAllocator.cpp. Two kinds of blocks, streams
 * apart and best fit as in peer_torch.c, but each stream and kind has one long
 * range of addresses. Memory is mapped into it in granules of 2 MiB, or 20 MiB
 * for large blocks: where a free block, if any, and the unmapped addresses after
 * it can hold what is needed, from the lowest address on. When there is no
 * memory left, granules that are wholly free are unmapped. All remainders of 512
 * bytes or more are split off.
 *
 * Left out is what peer_torch.c leaves out, its statistics, and that a range is
 * as large as the device's memory and an eighth; here it is without end.
 */

#include <stdlib.h>

#include "arena.h"
#include "map.h"
#include "measure.h"

#define STEP      512
#define SMALL_MAX MIB
#define RANGE     ((uint64_t)1 << 42)

/* The addresses of one stream and kind. Its blocks are live, free or, neither of both, unmapped;
 * no two neighbours are both free or both unmapped. Unmapped ones begin and end with a granule. */
struct range {
        struct set free;     /* by size, address */
        struct set unmapped; /* by address */
        uint64_t granule;
};

struct expand {
        struct arena arena;
        struct map live;
        struct range *range; /* two a stream: small, large */
        uint32_t ranges;
};

static struct peer *make(const struct peer_options *options)
{
        struct expand *expand = must_calloc(1, sizeof(*expand));

        arena_init(&expand->arena, &peer_expand, options);
        return &expand->arena.peer;
}

static void unmake(struct peer *peer)
{
        struct expand *expand = (struct expand *)peer;

        map_fini(&expand->live);
        free(expand->range);
        arena_fini(&expand->arena);
        free(expand);
}

/* sets: a block's stream is the index of its range */

static void put(struct expand *expand, struct block *block, bool is_mapped)
{
        struct range *range = &expand->range[block->stream];

        block->is_free = is_mapped;
        block->node.high = is_mapped ? block->size : block->address;
        block->node.low = block->address;
        set_insert(is_mapped ? &range->free : &range->unmapped, &block->node);
}

static void take(struct expand *expand, struct block *block)
{
        struct range *range = &expand->range[block->stream];

        set_remove(block->is_free ? &range->free : &range->unmapped, &block->node);
        block->is_free = false;
}

static bool is_free(const struct block *block)
{
        return block && block->is_free;
}

static bool is_unmapped(const struct expand *expand, const struct block *block)
{
        return block && !block->is_free && !map_get(&expand->live, block->address);
}

/* @block, in no set, becomes free, or unmapped, and one with neighbours that are. */
static void settle(struct expand *expand, struct block *block, bool is_mapped)
{
        struct block *before = block->before;
        struct block *after = block->after;

        if (is_mapped ? is_free(after) : is_unmapped(expand, after)) {
                take(expand, after);
                arena_join(&expand->arena, block);
        }
        if (is_mapped ? is_free(before) : is_unmapped(expand, before)) {
                take(expand, before);
                arena_join(&expand->arena, before);
                block = before;
        }
        put(expand, block, is_mapped);
}

/* ranges */

static uint64_t base_of(uint32_t index)
{
        return (index + 1) * RANGE;
}

static struct range *range_of(struct expand *expand, uint32_t index)
{
        while (expand->ranges <= index) {
                uint32_t i = expand->ranges++;
                struct block *all = arena_block(&expand->arena, base_of(i), RANGE);

                expand->range =
                        must_realloc(expand->range, expand->ranges * sizeof(*expand->range));
                expand->range[i] = (struct range){.granule = i % 2 ? 20 * MIB : 2 * MIB};
                all->stream = i;
                put(expand, all, false);
        }
        return &expand->range[index];
}

/* The first block, free or unmapped, from which on there are @size addresses; not that all of them
 * are mapped, or a free block would have been found. */
static struct block *find_place(const struct expand *expand, const struct range *range,
                                uint64_t size)
{
        struct set_node *node = set_at_least(&range->unmapped, 0, 0);

        while (node) {
                struct block *first = (struct block *)node;
                const struct block *next;
                uint64_t found = 0;

                node = set_at_least(&range->unmapped, node->high + 1, 0);
                if (is_free(first->before))
                        first = first->before;
                for (next = first; found < size; next = next->after) {
                        if (!is_free(next) && !is_unmapped(expand, next))
                                break;
                        found += next->size;
                }
                if (found >= size)
                        return first;
        }
        return NULL;
}

static bool map_granules(struct expand *expand, struct block *block, uint64_t size)
{
        struct peer_figures *figures = &expand->arena.peer.figures;
        struct block *rest;

        size = peer_round(size, expand->range[block->stream].granule);
        if (size > block->size)
                size = block->size;
        if (!arena_has(&expand->arena, size))
                return false;
        take(expand, block);
        if (block->size > size) {
                rest = arena_split(&expand->arena, block, size);
                put(expand, rest, false);
        }
        figures->grows++;
        figures->reserved += size;
        if (figures->reserved > figures->reserved_high)
                figures->reserved_high = figures->reserved;
        settle(expand, block, true);
        return true;
}

/* A free block of @size at least; NULL if there is no memory. */
static struct block *grow(struct expand *expand, struct range *range, uint64_t size)
{
        struct block *place = find_place(expand, range, size);

        if (!is_free(place) && !map_granules(expand, place, size))
                return NULL;
        /* What is mapped behind a free block becomes a part of it. */
        while (place->size < size)
                if (!map_granules(expand, place->after, size - place->size))
                        return NULL;
        return place;
}

/* What is wholly free of @block is unmapped. */
static void unmap_granules(struct expand *expand, struct block *block)
{
        uint64_t granule = expand->range[block->stream].granule;
        uint64_t into = (block->address - base_of(block->stream)) % granule;
        uint64_t head = into ? granule - into : 0;
        uint64_t size;

        if (block->size < head + granule)
                return;
        size = (block->size - head) / granule * granule;
        take(expand, block);
        if (block->size > head + size)
                put(expand, arena_split(&expand->arena, block, head + size), true);
        if (head) {
                struct block *middle = arena_split(&expand->arena, block, head);

                put(expand, block, true);
                block = middle;
                block->is_free = false;
        }
        arena_release(&expand->arena, size);
        settle(expand, block, false);
}

static void unmap_all(struct expand *expand)
{
        uint32_t i;

        for (i = 0; i < expand->ranges; i++) {
                struct set *set = &expand->range[i].free;
                struct set_node *node = set_at_least(set, 0, 0);

                while (node) {
                        uint64_t high = node->high;
                        uint64_t low = node->low;

                        unmap_granules(expand, (struct block *)node);
                        node = set_at_least(set, high, low + 1);
                }
        }
}

/* calls */

static uint64_t alloc(struct peer *peer, uint32_t stream, size_t size)
{
        struct expand *expand = (struct expand *)peer;
        uint64_t rounded = peer_round(size, STEP);
        uint32_t index = 2 * peer_stream(stream) + (rounded > SMALL_MAX);
        struct range *range = range_of(expand, index);
        struct block *block = (struct block *)set_at_least(&range->free, rounded, 0);

        if (!block)
                block = grow(expand, range, rounded);
        if (!block) {
                unmap_all(expand);
                block = grow(expand, range, rounded);
        }
        if (!block)
                return 0;
        take(expand, block);
        if (block->size > rounded)
                put(expand, arena_split(&expand->arena, block, rounded), true);
        map_put(&expand->live, block->address, block);
        return block->address;
}

static void release(struct peer *peer, uint64_t address, size_t size, uint32_t stream)
{
        struct expand *expand = (struct expand *)peer;

        (void)size;
        (void)stream;
        settle(expand, map_take(&expand->live, address), true);
}

const struct peer_ops peer_expand = {
        .name = "PyTorch, expandable",
        .make = make,
        .unmake = unmake,
        .alloc = alloc,
        .free = release,
};
