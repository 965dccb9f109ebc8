/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer exact -- a bin for each stream and size, nothing split and nothing joined
 *
 * The simplest cache there is: sizes are rounded to 512 bytes, a freed block
 * serves the same size on the same stream again, and everything free goes back
 * when there is no memory left.
 */

#include <stdlib.h>

#include "arena.h"
#include "map.h"
#include "measure.h"

#define STEP 512

/* One a stream and size, for good. Free blocks are a stack by .after. */
struct bin {
        struct block *top;
        struct bin *next;
};

struct exact {
        struct arena arena;
        struct map bins;
        struct bin *first;
};

static struct peer *make(const struct peer_options *options)
{
        struct exact *exact = must_calloc(1, sizeof(*exact));

        arena_init(&exact->arena, &peer_exact, options);
        return &exact->arena.peer;
}

static void unmake(struct peer *peer)
{
        struct exact *exact = (struct exact *)peer;

        while (exact->first) {
                struct bin *bin = exact->first;

                exact->first = bin->next;
                free(bin);
        }
        map_fini(&exact->bins);
        arena_fini(&exact->arena);
        free(exact);
}

static struct bin *bin_of(struct exact *exact, uint32_t stream, uint64_t size)
{
        uint64_t key = (uint64_t)peer_stream(stream) << STREAM_SHIFT | size;
        struct bin *bin = map_get(&exact->bins, key);

        if (bin)
                return bin;
        bin = must_calloc(1, sizeof(*bin));
        bin->next = exact->first;
        exact->first = bin;
        map_put(&exact->bins, key, bin);
        return bin;
}

static struct block *pop(struct bin *bin)
{
        struct block *block = bin->top;

        if (block)
                bin->top = block->after;
        return block;
}

static uint64_t grow(struct exact *exact, uint64_t size)
{
        uint64_t address = arena_grow(&exact->arena, size);
        struct block *block;
        struct bin *bin;

        if (address)
                return address;
        for (bin = exact->first; bin; bin = bin->next)
                while ((block = pop(bin))) {
                        arena_release(&exact->arena, block->size);
                        arena_forget(&exact->arena, block);
                }
        return arena_grow(&exact->arena, size);
}

static uint64_t alloc(struct peer *peer, uint32_t stream, size_t size)
{
        struct exact *exact = (struct exact *)peer;
        uint64_t rounded = peer_round(size, STEP);
        struct block *block = pop(bin_of(exact, stream, rounded));
        uint64_t address;

        if (!block)
                return grow(exact, rounded);
        address = block->address;
        arena_forget(&exact->arena, block);
        return address;
}

static void release(struct peer *peer, uint64_t address, size_t size, uint32_t stream)
{
        struct exact *exact = (struct exact *)peer;
        uint64_t rounded = peer_round(size, STEP);
        struct bin *bin = bin_of(exact, stream, rounded);
        struct block *block = arena_block(&exact->arena, address, rounded);

        block->after = bin->top;
        bin->top = block;
}

const struct peer_ops peer_exact = {
        .name = "exact bins",
        .make = make,
        .unmake = unmake,
        .alloc = alloc,
        .free = release,
};
