/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_GROW_H
#define SPM_GROW_H

/*
 * Grow -- where more memory goes, how much of it, and what makes way
 *
 * In a range, a request that no free block holds goes where the least is
 * missing: into a hole and the free blocks beside it. Holes that were used
 * last are looked at first, and a fixed number of them, and always the end of
 * the range. Each hole on the way is backed in pieces:
 *
 *   piece   1/32 of the pool, a power of two, at most segment_size. Larger
 *           ones would be faster to get, since a driver maps 32 MiB in the time
 *           of 2 MiB; but what cannot be moved as a whole stays, and a program
 *           whose blocks vary in size then holds far more than it uses
 *   cover   where the block that is asked for covers it: segment_size under
 *           16 MiB or more; under 256 MiB or more a sixteenth of what was filled
 *           (below), at least 128 MiB and at most 2 GiB. So a large block is
 *           copied as fast as if it were in one piece
 *   filled  bytes allocated since the last free. A program that only fills
 *           memory is not one whose blocks vary: from 4 GiB on its pieces are a
 *           64th of that, 64 or 128 MiB, where the block covers them or the pool
 *           may hold as much
 *
 * Where idle memory makes way, or will, there are pieces only. Before a block is
 * served a part of a large segment that nobody uses, that is given back
 * (spm_trim_break()), and the place is backed in pieces; large ones are not
 * asked for again until the decay time has passed. A caller that sets
 * segment_size gets nothing larger, and a pool of made-up memory has none.
 *
 * Once the caller has refused memory, all pieces are single grains for a while
 * (until the decay time has passed, or for good without one): what is built up
 * again under shortage can be moved, so that requests are served which a bare
 * driver would serve.
 *
 * A pool may hold what was in use at its peak, plus a slack and one piece (enum
 * spm_growth). Before it passes that, segments that nobody uses are released,
 * those idle for longest first: they move. So memory follows the program
 * around in its range, and a program whose blocks vary in size does not
 * collect free pieces of every size.
 *
 * Without a range a segment is as large as the request, at least as large as a
 * piece, and released when it is idle as a whole.
 */

#include <stdbool.h>
#include <streampool/model.h>

#include "fit.h"

/**
 * spm_grow_ask() - ask for memory that the request fits in
 * @again: not for the first time for this request: it was not found where it should fit
 * @exact: for nothing beyond it, and whatever the pool may hold
 *
 * Return: SPM_OK if there is more already, SPM_AGAIN if it was asked for, SPM_E_OUT_OF_MEMORY,
 * SPM_E_HOST_MEMORY.
 */
enum spm_status spm_grow_ask(struct spm_model *model, const struct spm_want *want, bool again,
                             bool exact, struct spm_actions *actions);

/** spm_grow_allowed() - bytes that a pool may hold which had @high in use. */
uint64_t spm_grow_allowed(const struct spm_pool_state *pool, uint64_t high);

/** spm_grow_initial() - back the first @size bytes of a MODEL provider's pool. */
enum spm_status spm_grow_initial(struct spm_model *model, struct spm_pool_state *pool, size_t size);

#endif
