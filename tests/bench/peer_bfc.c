/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer bfc -- best fit with coalescing, as in TensorFlow and XLA
 *
 * Published in tsl/framework/bfc_allocator.cc. Sizes are rounded to 256 bytes;
 * 21 bins hold free chunks from 256 bytes on, each twice as large as the one
 * before and ordered by size and address. A chunk is split if it is twice as
 * large as needed, or if 128 MiB would be wasted. Regions start with 2 MiB and
 * double; near the end they are nine tenths as large until one fits.
 *
 * It serves one stream, so it does not look at streams at all. Left out: its
 * lock, and looking a chunk up by region and offset, for which a map stands.
 */

#include <stdlib.h>

#include "arena.h"
#include "map.h"
#include "measure.h"

#define STEP      256
#define BINS      21
#define WASTE_MAX (128 * MIB)

struct bfc {
        struct arena arena;
        struct set bin[BINS];
        struct map live;
        uint64_t region; /* bytes of the next one */
};

static struct peer *make(const struct peer_options *options)
{
        struct bfc *bfc = must_calloc(1, sizeof(*bfc));

        arena_init(&bfc->arena, &peer_bfc, options);
        bfc->region = 2 * MIB;
        return &bfc->arena.peer;
}

static void unmake(struct peer *peer)
{
        struct bfc *bfc = (struct bfc *)peer;

        map_fini(&bfc->live);
        arena_fini(&bfc->arena);
        free(bfc);
}

static unsigned int bin_of(uint64_t size)
{
        unsigned int log = 63 - (unsigned int)__builtin_clzll(size / STEP);

        return log < BINS ? log : BINS - 1;
}

static void put(struct bfc *bfc, struct block *block)
{
        block->is_free = true;
        block->node.high = block->size;
        block->node.low = block->address;
        set_insert(&bfc->bin[bin_of(block->size)], &block->node);
}

static void take(struct bfc *bfc, struct block *block)
{
        set_remove(&bfc->bin[bin_of(block->node.high)], &block->node);
        block->is_free = false;
}

static struct block *find(struct bfc *bfc, uint64_t size)
{
        unsigned int bin;

        for (bin = bin_of(size); bin < BINS; bin++) {
                struct set_node *node = set_at_least(&bfc->bin[bin], size, 0);

                if (node)
                        return (struct block *)node;
        }
        return NULL;
}

static struct block *grow(struct bfc *bfc, uint64_t size)
{
        bool doubled = false;
        struct block *block;
        uint64_t region;

        if (!arena_has(&bfc->arena, size))
                return NULL;
        while (size > bfc->region) {
                bfc->region *= 2;
                doubled = true;
        }
        region = bfc->region;
        while (!arena_has(&bfc->arena, region)) {
                region = region / 10 * 9 / STEP * STEP;
                if (region < size)
                        region = size;
        }
        if (!doubled)
                bfc->region *= 2;
        block = arena_block(&bfc->arena, arena_grow(&bfc->arena, region), region);
        put(bfc, block);
        return block;
}

static uint64_t alloc(struct peer *peer, uint32_t stream, size_t size)
{
        struct bfc *bfc = (struct bfc *)peer;
        uint64_t rounded = peer_round(size, STEP);
        struct block *block = find(bfc, rounded);

        (void)stream;
        if (!block)
                block = grow(bfc, rounded);
        if (!block)
                return 0;
        take(bfc, block);
        if (block->size >= 2 * rounded || block->size - rounded >= WASTE_MAX)
                put(bfc, arena_split(&bfc->arena, block, rounded));
        map_put(&bfc->live, block->address, block);
        return block->address;
}

static void release(struct peer *peer, uint64_t address, size_t size, uint32_t stream)
{
        struct bfc *bfc = (struct bfc *)peer;
        struct block *block = map_take(&bfc->live, address);

        (void)size;
        (void)stream;
        if (block->after && block->after->is_free) {
                take(bfc, block->after);
                arena_join(&bfc->arena, block);
        }
        if (block->before && block->before->is_free) {
                block = block->before;
                take(bfc, block);
                arena_join(&bfc->arena, block);
        }
        put(bfc, block);
}

const struct peer_ops peer_bfc = {
        .name = "BFC",
        .make = make,
        .unmake = unmake,
        .alloc = alloc,
        .free = release,
};
