/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ARENA_H
#define ARENA_H

/*
 * Arena -- memory that is only counted: segments, and the blocks that tile them
 *
 * What the rebuilt allocators have in common. A segment has an address that no
 * other has, apart from its neighbours, so blocks of two segments never join.
 */

#include <stdbool.h>

#include "peer.h"
#include "set.h"

struct block {
        struct set_node node; /* while free; for the owner's sets */
        uint64_t address;
        uint64_t size;
        struct block *before; /* neighbours in the segment */
        struct block *after;
        uint32_t stream;
        bool is_free;
        bool is_large; /* for an owner that has two kinds */
};

/* Embedded in every rebuilt allocator, as its first member. */
struct arena {
        struct peer peer;
        uint64_t capacity;
        uint64_t next_address;
        struct block *spare; /* records to use again, by .after */
        struct block *slab;  /* all records, in slabs; the first of each leads to the next */
        bool is_plain;       /* no slabs: the C library has each record, and the owner frees it */
};

/** arena_init() - @ops of the allocator that embeds it. */
void arena_init(struct arena *arena, const struct peer_ops *ops,
                const struct peer_options *options);
void arena_fini(struct arena *arena);

/** arena_has() - would @size more bytes fit the capacity? */
bool arena_has(const struct arena *arena, uint64_t size);

/** arena_grow() - address of a new segment, 0 if it does not fit. */
uint64_t arena_grow(struct arena *arena, uint64_t size);
void arena_release(struct arena *arena, uint64_t size);

struct block *arena_block(struct arena *arena, uint64_t address, uint64_t size);
void arena_forget(struct arena *arena, struct block *block);

/** arena_split() - cut @block to @size. Return: the rest, free, in no set. */
struct block *arena_split(struct arena *arena, struct block *block, uint64_t size);

/** arena_join() - @block takes in its successor, whose record is forgotten. */
void arena_join(struct arena *arena, struct block *block);

/** peer_round() - up to a multiple of @step, at least one. */
static inline uint64_t peer_round(uint64_t size, uint64_t step)
{
        return size ? (size + step - 1) / step * step : step;
}

/** peer_stream() - as a number that keys can hold. */
static inline uint32_t peer_stream(uint32_t stream)
{
        return stream == PEER_ANYWHERE ? 0 : stream;
}

/* Sizes are below 2^44, so a stream fits above one in a key. */
#define STREAM_SHIFT 44

#endif
