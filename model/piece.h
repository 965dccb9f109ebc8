/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_PIECE_H
#define SPM_PIECE_H

/*
 * Piece -- how much a pool may hold, and in pieces of what size it grows
 *
 *   piece   1/32 of the pool, a power of two, at most segment_size. Larger
 *           ones would be faster to get, since a driver maps 32 MiB in the time
 *           of 2 MiB; but what cannot be moved as a whole stays, and a program
 *           whose blocks vary in size then holds far more than it uses
 *   cover   where the block that is asked for covers it: segment_size under
 *           16 MiB or more; under 256 MiB or more a sixteenth of the block or of
 *           what was filled (below), at least 128 MiB and at most 2 GiB. So a large
 *           block is copied as fast as if it were in one piece
 *   least   a 64th of the block, where that is more than a piece: whatever comes
 *           below, no block is made of very many
 *   filled  bytes allocated since the last free. A program that only fills
 *           memory is not one whose blocks vary: from 4 GiB on its pieces are a
 *           64th of that, 64 or 128 MiB, where the block covers them or the pool
 *           may hold as much
 *
 * Before a block is served a part of a large segment that nobody uses, that is
 * given back (spm_trim_break()), and the place is backed in pieces; large ones
 * are not asked for again until the decay time has passed. A caller that sets
 * segment_size gets nothing larger, and a pool of made-up memory has none.
 *
 * Once the caller has refused memory, all pieces are single grains for a while
 * (until the decay time has passed, or for good without one), or the least: what
 * is built up again under shortage can be moved, so that requests are served which
 * a bare driver would serve.
 */

#include <stdbool.h>
#include <stdint.h>

#include "pool.h"
#include "work.h"

struct spm_measure {
        uint64_t piece;
        uint64_t cover;   /* a piece, where the block covers it */
        uint64_t least;   /* likewise, the smallest that a large block may be cut into */
        uint64_t allowed; /* bytes that the pool may hold then */
        bool exact;       /* nothing beyond what is needed, and whatever is allowed */
        bool whole; /* nothing beyond, and in one piece, whatever its size (spm_grow_whole()) */
};

/** spm_piece_measure() - for a block of @size. */
struct spm_measure spm_piece_measure(const struct spm_pool_state *pool, uint64_t size, bool exact);

/** spm_piece_busy() - bytes that nobody else could have: in use, or pending. What is pending while
 * one stream has all work is that one's to have again, and is waited for before the pool grows. */
static inline uint64_t spm_piece_busy(const struct spm_pool_state *pool)
{
        return pool->rounded_bytes +
               (spm_work_sole(pool->work) ? pool->kept_bytes : pool->pending_bytes);
}

/** spm_piece_allowed() - bytes that a pool may hold which had @high in use. */
uint64_t spm_piece_allowed(const struct spm_pool_state *pool, uint64_t high);

static inline uint64_t spm_least(uint64_t one, uint64_t other)
{
        return one < other ? one : other;
}

static inline uint64_t spm_most(uint64_t one, uint64_t other)
{
        return one > other ? one : other;
}

#endif
