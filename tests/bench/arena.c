/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arena -- memory that is only counted: segments, and the blocks that tile them
 */

#include "arena.h"

#include <stdlib.h>

#include "measure.h"

#define SLAB 256
#define GAP  (4 * MIB)

void arena_init(struct arena *arena, const struct peer_ops *ops, const struct peer_options *options)
{
        arena->peer.ops = ops;
        arena->capacity = options->capacity ? options->capacity : UINT64_MAX;
        arena->next_address = GIB;
}

void arena_fini(struct arena *arena)
{
        while (arena->slab) {
                struct block *slab = arena->slab;

                arena->slab = slab->after;
                free(slab);
        }
}

bool arena_has(const struct arena *arena, uint64_t size)
{
        return size <= arena->capacity - arena->peer.figures.reserved;
}

uint64_t arena_grow(struct arena *arena, uint64_t size)
{
        struct peer_figures *figures = &arena->peer.figures;
        uint64_t address = arena->next_address;

        if (!arena_has(arena, size))
                return 0;
        figures->reserved += size;
        if (figures->reserved > figures->reserved_high)
                figures->reserved_high = figures->reserved;
        figures->grows++;
        arena->next_address += peer_round(size, 2 * MIB) + GAP;
        return address;
}

void arena_release(struct arena *arena, uint64_t size)
{
        arena->peer.figures.reserved -= size;
        arena->peer.figures.releases++;
}

static struct block *take_spare(struct arena *arena)
{
        struct block *block;
        unsigned int i;

        if (!arena->spare) {
                struct block *slab = must_calloc(SLAB, sizeof(*slab));

                slab->after = arena->slab;
                arena->slab = slab;
                for (i = 1; i < SLAB; i++)
                        arena_forget(arena, &slab[i]);
        }
        block = arena->spare;
        arena->spare = block->after;
        return block;
}

struct block *arena_block(struct arena *arena, uint64_t address, uint64_t size)
{
        struct block *block = arena->is_plain ? must_malloc(sizeof(*block)) : take_spare(arena);

        *block = (struct block){.address = address, .size = size};
        return block;
}

void arena_forget(struct arena *arena, struct block *block)
{
        if (arena->is_plain) {
                free(block);
                return;
        }
        block->after = arena->spare;
        arena->spare = block;
}

struct block *arena_split(struct arena *arena, struct block *block, uint64_t size)
{
        struct block *rest = arena_block(arena, block->address + size, block->size - size);

        rest->stream = block->stream;
        rest->is_large = block->is_large;
        rest->is_free = true;
        rest->before = block;
        rest->after = block->after;
        if (rest->after)
                rest->after->before = rest;
        block->after = rest;
        block->size = size;
        return rest;
}

void arena_join(struct arena *arena, struct block *block)
{
        struct block *next = block->after;

        block->size += next->size;
        block->after = next->after;
        if (block->after)
                block->after->before = block;
        arena_forget(arena, next);
}
