/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer rmm -- a list of free blocks for each stream, as in RMM's pool
 *
 * Published in stream_ordered_memory_resource.hpp, coalescing_free_list.hpp
 * and pool_memory_resource.hpp. Sizes are rounded to 256 bytes. A stream's
 * list is ordered by address; freeing joins neighbours, allocating takes the
 * smallest block that fits, and both walk the list. What the own list lacks is
 * sought in other streams' lists: the stream waits, and takes over the whole
 * list; then in all lists merged. Then the pool doubles. It never shrinks.
 *
 * Left out: its lock, and the event that it records at each free.
 */

#include <stdlib.h>

#include "arena.h"
#include "measure.h"

#define STEP 256

/* Blocks by .after; .before is not used. */
struct list {
        struct block *first;
};

struct rmm {
        struct arena arena;
        struct list *list; /* by stream */
        uint32_t lists;
};

static struct peer *make(const struct peer_options *options)
{
        struct rmm *rmm = must_calloc(1, sizeof(*rmm));

        arena_init(&rmm->arena, &peer_rmm, options);
        return &rmm->arena.peer;
}

static void unmake(struct peer *peer)
{
        struct rmm *rmm = (struct rmm *)peer;

        free(rmm->list);
        arena_fini(&rmm->arena);
        free(rmm);
}

static struct list *list_of(struct rmm *rmm, uint32_t stream)
{
        uint32_t count = peer_stream(stream) + 1;

        if (count > rmm->lists) {
                rmm->list = must_realloc(rmm->list, count * sizeof(*rmm->list));
                while (rmm->lists < count)
                        rmm->list[rmm->lists++] = (struct list){0};
        }
        return &rmm->list[count - 1];
}

static bool touch(const struct block *block, const struct block *next)
{
        return next && block->address + block->size == next->address;
}

static void insert(struct rmm *rmm, struct list *list, struct block *block)
{
        struct block *before = NULL;
        struct block *next = list->first;

        while (next && next->address < block->address) {
                before = next;
                next = next->after;
        }
        block->after = next;
        if (touch(block, next)) {
                block->size += next->size;
                block->after = next->after;
                arena_forget(&rmm->arena, next);
        }
        if (!before) {
                list->first = block;
        } else if (touch(before, block)) {
                before->size += block->size;
                before->after = block->after;
                arena_forget(&rmm->arena, block);
        } else {
                before->after = block;
        }
}

/* Takes the best fit out of the list; NULL if nothing fits. */
static struct block *take(struct list *list, uint64_t size)
{
        struct block **best = NULL;
        struct block **link;
        struct block *block;

        for (link = &list->first; *link; link = &(*link)->after)
                if ((*link)->size >= size && (!best || (*link)->size < (*best)->size))
                        best = link;
        if (!best)
                return NULL;
        block = *best;
        *best = block->after;
        return block;
}

static void merge(struct rmm *rmm, struct list *into, struct list *from)
{
        while (from->first) {
                struct block *block = from->first;

                from->first = block->after;
                insert(rmm, into, block);
        }
}

static struct block *take_elsewhere(struct rmm *rmm, struct list *own, uint64_t size, bool merged)
{
        uint32_t i;

        for (i = 0; i < rmm->lists; i++) {
                struct list *other = &rmm->list[i];
                struct block *block;

                if (other == own || !other->first)
                        continue;
                if (merged) {
                        merge(rmm, own, other);
                        block = take(own, size);
                } else {
                        block = take(other, size);
                        if (block)
                                merge(rmm, own, other);
                }
                if (block)
                        return block;
        }
        return NULL;
}

static struct block *grow(struct rmm *rmm, uint64_t size)
{
        uint64_t more = rmm->arena.peer.figures.reserved;
        uint64_t address;

        if (more < size)
                more = size;
        /* Half of what is left, if doubling is too much. */
        if (!arena_has(&rmm->arena, more))
                more = (rmm->arena.capacity - rmm->arena.peer.figures.reserved) / 2 / STEP * STEP;
        if (more < size)
                more = size;
        address = arena_grow(&rmm->arena, more);
        if (!address)
                return NULL;
        return arena_block(&rmm->arena, address, more);
}

static uint64_t alloc(struct peer *peer, uint32_t stream, size_t size)
{
        struct rmm *rmm = (struct rmm *)peer;
        uint64_t rounded = peer_round(size, STEP);
        struct list *own = list_of(rmm, stream);
        struct block *block = take(own, rounded);
        uint64_t address;

        if (!block)
                block = take_elsewhere(rmm, own, rounded, false);
        if (!block)
                block = take_elsewhere(rmm, own, rounded, true);
        if (!block)
                block = grow(rmm, rounded);
        if (!block)
                return 0;
        address = block->address;
        if (block->size > rounded) {
                block->address += rounded;
                block->size -= rounded;
                insert(rmm, own, block);
        } else {
                arena_forget(&rmm->arena, block);
        }
        return address;
}

static void release(struct peer *peer, uint64_t address, size_t size, uint32_t stream)
{
        struct rmm *rmm = (struct rmm *)peer;
        struct block *block = arena_block(&rmm->arena, address, peer_round(size, STEP));

        insert(rmm, list_of(rmm, stream), block);
}

const struct peer_ops peer_rmm = {
        .name = "RMM-like",
        .make = make,
        .unmake = unmake,
        .alloc = alloc,
        .free = release,
};
