/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_LIMBO_H
#define SPM_LIMBO_H

/*
 * Limbo -- freed, but work that may touch it can still be running
 *
 * A pending block waits for a few points. It lies in the lane of its
 * pool and of the stream of the first point, ordered by position; when that
 * point is complete it moves to the lane of the next, and when none is left
 * it is READY. A lane is a queue: what would have to be put between two others
 * is put last, and waits for the last one's point instead of its own.
 *
 * A pending block is open if the stream of its lane may have it at once, in
 * stream order: the stream's later work runs after everything the block waits
 * for. Blocks of synchronous pools are open to the sole stream only (F1, I8, work.h).
 *
 * Open blocks are not joined when they are freed, so that the next allocation
 * of the same size finds its block as it was; only when nothing fits
 * (spm_limbo_join()).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/model.h>

#include "lane.h"
#include "record.h"
#include "subject.h"

/** spm_limbo_covers() - does what is submitted next to @stream run after dependency @i? */
bool spm_limbo_covers(const struct spm_model *model, const struct spm_stream_state *stream,
                      const struct spm_block *block, unsigned int i);

/** spm_limbo_put() - a LOOSE block whose dependencies are set becomes PENDING, or READY if all of
 * them are complete. */
void spm_limbo_put_waiting(struct spm_model *model, struct spm_block *block);
static inline void spm_limbo_put(struct spm_model *model, struct spm_block *block)
{
        if (block->dep_count)
                spm_limbo_put_waiting(model, block);
        else
                spm_pool_put_ready(model, block);
}

/** spm_limbo_take() - PENDING to LOOSE; dependencies are kept. */
void spm_limbo_take(struct spm_model *model, struct spm_block *block);

/**
 * spm_limbo_cut() - take the middle out of an open block
 * @front: bytes before it, may be 0
 * @size:  bytes of the middle
 *
 * What is before and behind stays in the lane, where the block was. Two records are at hand.
 * Return: the middle, LOOSE.
 */
struct spm_block *spm_limbo_cut(struct spm_model *model, struct spm_block *block, size_t front,
                                size_t size);

/** spm_limbo_join() - join adjacent open blocks of the lane, and their dependencies (I5); a few
 * that were not looked at before. Each block is looked at once. Return: false if none are left. */
bool spm_limbo_join(struct spm_model *model, struct spm_lane *lane);

/** spm_limbo_absorb() - the open @block also gets its neighbour @other, READY or open in the same
 * lane, and waits for what either waited for. */
void spm_limbo_absorb(struct spm_model *model, struct spm_block *block, struct spm_block *other);

/** spm_limbo_bar() - an open block of the lane is served when it is complete, and not before. */
void spm_limbo_bar(struct spm_lane *lane, struct spm_block *block);

/** spm_limbo_reopen() - its stream may have learnt something: look at a few shut blocks again. */
void spm_limbo_reopen(struct spm_model *model, struct spm_lane *lane);

#endif
