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
 * What it does besides is here too, since its users pay for it: records and the
 * nodes of the sets come from the C library, one by one; active blocks are in a
 * set of their own; each call counts for all memory and for its kind.
 *
 * Left out: its locks, traces, and the events of record_stream().
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

enum figure {
        ALLOCATIONS,
        ALLOCATED_BYTES,
        ACTIVE,
        ACTIVE_BYTES,
        REQUESTED_BYTES,
        SPLITS, /* free blocks that are a part of their segment */
        SPLIT_BYTES,
        FIGURES,
};

struct count {
        int64_t current;
        int64_t peak;
        int64_t added;
        int64_t removed;
};

/* A node of a set. */
struct entry {
        struct set_node node;
        struct block *block;
};

struct torch {
        struct arena arena;
        struct set free[2]; /* small, large */
        struct map live;    /* by address */
        struct map active;  /* by record */
        struct count of_all[FIGURES];
        struct count of_kind[2][FIGURES];
};

static struct peer *make(const struct peer_options *options)
{
        struct torch *torch = must_calloc(1, sizeof(*torch));

        arena_init(&torch->arena, &peer_torch, options);
        torch->arena.is_plain = true;
        return &torch->arena.peer;
}

static void unmake(struct peer *peer)
{
        struct torch *torch = (struct torch *)peer;
        unsigned int large;
        size_t i;

        for (large = 0; large < 2; large++) {
                struct set_node *node;

                while ((node = set_at_least(&torch->free[large], 0, 0))) {
                        set_remove(&torch->free[large], node);
                        free(((struct entry *)node)->block);
                        free(node);
                }
        }
        for (i = 0; i < torch->live.room; i++)
                free(torch->live.entry[i].value);
        map_fini(&torch->active);
        map_fini(&torch->live);
        arena_fini(&torch->arena);
        free(torch);
}

/* figures */

static void add(struct count *count, int64_t amount)
{
        count->current += amount;
        if (count->current > count->peak)
                count->peak = count->current;
        if (amount > 0)
                count->added += amount;
        else
                count->removed -= amount;
}

static void count(struct torch *torch, bool large, enum figure figure, int64_t amount)
{
        add(&torch->of_all[figure], amount);
        add(&torch->of_kind[large][figure], amount);
}

static void count_call(struct torch *torch, bool large, int64_t sign, uint64_t size,
                       uint64_t requested)
{
        count(torch, large, ALLOCATIONS, sign);
        count(torch, large, ALLOCATED_BYTES, sign * (int64_t)size);
        count(torch, large, ACTIVE, sign);
        count(torch, large, ACTIVE_BYTES, sign * (int64_t)size);
        count(torch, large, REQUESTED_BYTES, sign * (int64_t)requested);
}

static void count_split(struct torch *torch, const struct block *block, bool large, int64_t sign)
{
        if (!block->before && !block->after)
                return;
        count(torch, large, SPLITS, sign);
        count(torch, large, SPLIT_BYTES, sign * (int64_t)block->size);
}

/* sets */

static void key_of(const struct block *block, struct set_node *node)
{
        node->high = (uint64_t)block->stream << STREAM_SHIFT | block->size;
        node->low = block->address;
}

static void put(struct torch *torch, struct block *block, bool large)
{
        struct entry *entry = must_malloc(sizeof(*entry));

        block->is_free = true;
        block->is_large = large;
        key_of(block, &entry->node);
        entry->block = block;
        set_insert(&torch->free[large], &entry->node);
}

static void take(struct torch *torch, struct block *block)
{
        struct set *set = &torch->free[block->is_large];
        struct set_node key;
        struct set_node *node;

        key_of(block, &key);
        node = set_at_least(set, key.high, key.low);
        set_remove(set, node);
        free(node);
        block->is_free = false;
}

static struct block *find(struct torch *torch, uint32_t stream, uint64_t size, bool large)
{
        struct set_node *node =
                set_at_least(&torch->free[large], (uint64_t)stream << STREAM_SHIFT | size, 0);

        if (!node || node->high >> STREAM_SHIFT != stream)
                return NULL;
        return ((struct entry *)node)->block;
}

/* segments */

static void release_whole(struct torch *torch, struct set *set)
{
        struct set_node *node = set_at_least(set, 0, 0);

        while (node) {
                struct block *block = ((struct entry *)node)->block;
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

/* calls */

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
        count_split(torch, block, large, -1);
        rest = block->size - rounded;
        if (large ? rest > SMALL_MAX : rest >= STEP) {
                struct block *remainder = arena_split(&torch->arena, block, rounded);

                put(torch, remainder, large);
                count_split(torch, remainder, large, 1);
        }
        map_put(&torch->active, (uintptr_t)block, block);
        count_call(torch, large, 1, block->size, size);
        map_put(&torch->live, block->address, block);
        return block->address;
}

/* @block takes in its free successor. */
static void join(struct torch *torch, struct block *block)
{
        count_split(torch, block->after, block->is_large, -1);
        take(torch, block->after);
        arena_join(&torch->arena, block);
}

static void release(struct peer *peer, uint64_t address, size_t size, uint32_t stream)
{
        struct torch *torch = (struct torch *)peer;
        struct block *block = map_take(&torch->live, address);
        bool large = block->is_large;

        (void)stream;
        map_take(&torch->active, (uintptr_t)block);
        count_call(torch, large, -1, block->size, size);
        if (block->after && block->after->is_free)
                join(torch, block);
        if (block->before && block->before->is_free) {
                block = block->before;
                count_split(torch, block, large, -1);
                take(torch, block);
                arena_join(&torch->arena, block);
        }
        put(torch, block, large);
        count_split(torch, block, large, 1);
}

const struct peer_ops peer_torch = {
        .name = "PyTorch-like",
        .is_yardstick = true,
        .make = make,
        .unmake = unmake,
        .alloc = alloc,
        .free = release,
};
