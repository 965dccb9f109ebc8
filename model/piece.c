/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Piece -- how much a pool may hold, and in pieces of what size it grows
 */

#include "piece.h"

#include "bits.h"

#define SHARE 32 /* of the pool, a piece */

/* In grains, that is, as a rule in 2 MiB. */
#define SLACK_LEAST  8 /* what a pool may hold idle */
#define MIDDLE_BLOCK 8
#define LARGE_BLOCK  128
#define LARGE_PIECE  64 /* the least under a large block, the most under others */
#define FILL_LEAST   32 /* of a piece that is larger for what was filled */

#define FILL_COVER   16 /* of what was filled, or of the block, a piece under a large block */
#define FILL_PIECE   64 /* of what was filled, any other */
#define BLOCK_LEAST  64 /* of the block, any piece that it covers */

/* A share of @of bytes, rounded down to a power of two; grains in a pool that is short. */
static uint64_t piece_of(const struct spm_pool_state *pool, uint64_t of)
{
        uint64_t grain = pool->config.grain;
        uint64_t piece =
                pool->is_short ? grain : (uint64_t)1 << spm_highest_bit(of / SHARE | grain);

        if (piece > pool->config.segment_size)
                piece = pool->config.segment_size;
        return (piece + grain - 1) & ~(grain - 1);
}

/* Idle for good measure. In a small pool more than a piece: what moves there costs more than it
 * saves. */
static uint64_t slack(const struct spm_pool_state *pool, uint64_t high)
{
        uint64_t piece = piece_of(pool, high);

        return pool->is_short ? piece : spm_most(piece, SLACK_LEAST * pool->config.grain);
}

uint64_t spm_piece_allowed(const struct spm_pool_state *pool, uint64_t high)
{
        switch (pool->config.growth) {
        case SPM_GROWTH_TIGHT:
                return high;
        case SPM_GROWTH_SPEED:
                return high + high / 12 + pool->config.segment_size;
        case SPM_GROWTH_BALANCED:
                break;
        }
        return high + high / 64 + slack(pool, high);
}

/* A share of @of bytes, a power of two as well. */
static uint64_t share_of(uint64_t of, unsigned int share)
{
        return (uint64_t)1 << spm_highest_bit(of / share | 1);
}

/* What a program takes that frees nothing will stay where it is. 0 if it has not done so for long.
 */
static uint64_t filled_piece(const struct spm_pool_state *pool)
{
        uint64_t piece = share_of(pool->filled, FILL_PIECE);

        if (piece < FILL_LEAST * pool->config.grain)
                return 0;
        return spm_least(spm_least(piece, LARGE_PIECE * pool->config.grain), pool->segment_most);
}

static uint64_t usual_piece(const struct spm_pool_state *pool, uint64_t size, uint64_t allowed)
{
        uint64_t piece = piece_of(pool, pool->reserved_bytes + size);
        uint64_t larger = filled_piece(pool);

        if (pool->is_short || pool->is_varied || pool->reserved_bytes + size + larger > allowed)
                return piece;
        return spm_most(piece, larger);
}

static uint64_t least_piece(const struct spm_pool_state *pool, uint64_t size, uint64_t piece)
{
        return spm_most(piece, spm_least(share_of(size, BLOCK_LEAST), pool->segment_most));
}

static uint64_t cover_piece(const struct spm_pool_state *pool, uint64_t size, uint64_t least)
{
        uint64_t grain = pool->config.grain;
        uint64_t cover = least;

        if (pool->is_short || pool->is_varied)
                return least;
        if (size >= LARGE_BLOCK * grain)
                cover = spm_most(share_of(spm_most(pool->filled, size), FILL_COVER),
                                 LARGE_PIECE * grain);
        else if (size >= MIDDLE_BLOCK * grain)
                cover = spm_most(filled_piece(pool), pool->config.segment_size & ~(grain - 1));
        return spm_most(least, spm_least(cover, pool->segment_most));
}

struct spm_measure spm_piece_measure(const struct spm_pool_state *pool, uint64_t size, bool exact)
{
        uint64_t busy = spm_piece_busy(pool) + size;
        uint64_t allowed = spm_piece_allowed(pool, spm_most(busy, pool->busy_high));
        uint64_t piece;
        uint64_t least;

        if (pool->config.max_size && allowed > pool->config.max_size)
                allowed = pool->config.max_size;
        piece = usual_piece(pool, size, allowed);
        least = least_piece(pool, size, piece);
        return (struct spm_measure){
                .piece = piece,
                .cover = cover_piece(pool, size, least),
                .least = least,
                .allowed = allowed,
                .exact = exact,
        };
}
