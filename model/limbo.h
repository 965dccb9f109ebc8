/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_LIMBO_H
#define SPM_LIMBO_H

/*
 * Limbo -- freed, but work that may touch it can still be running
 *
 * A pending block waits for a few points. It lies in the lane of its
 * pool and of the stream of the first point, ordered by position; when that
 * point is complete it moves to the lane of the next, and when none is left
 * it is READY.
 *
 * A pending block is open if the stream of its lane may have it at once, in
 * stream order: the stream's later work runs after everything the block waits
 * for. Blocks of synchronous pools are never open (F1, I8).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/model.h>

#include "order.h"
#include "segment.h"
#include "subject.h"
#include "table.h"
#include "tree.h"

struct spm_lane {
        struct spm_object object; /* by its stream's handle in its pool */
        struct spm_pool_state *pool;
        struct spm_stream_state *stream;
        struct spm_lane *next; /* of the same stream, in another pool */
        struct spm_tree open;  /* by size, then address */
        struct spm_tree order; /* all its blocks by position, then address */
        uint64_t bytes;
        size_t shut;       /* blocks that are not open, though they may become so */
        uint64_t unsynced; /* first point freed at that the program has not waited for; 0: none */
        uint64_t last;     /* last point freed at */
};

/** spm_limbo_lane() - find or make. Return: NULL if there is no memory. */
struct spm_lane *spm_limbo_lane(struct spm_model *model, struct spm_pool_state *pool,
                                struct spm_stream_state *stream);

/** spm_limbo_find() - NULL if there is none. */
struct spm_lane *spm_limbo_find(const struct spm_pool_state *pool, spm_stream stream);

/** spm_limbo_covers() - does what is submitted next to @stream run after dependency @i? */
bool spm_limbo_covers(const struct spm_model *model, const struct spm_stream_state *stream,
                      const struct spm_block *block, unsigned int i);

/** spm_limbo_put() - a LOOSE block whose dependencies are set becomes PENDING, or READY if all of
 * them are complete. Adjacent blocks of the same lane are joined, and their dependencies (I5). */
void spm_limbo_put(struct spm_model *model, struct spm_block *block);

/** spm_limbo_take() - PENDING to LOOSE; dependencies are kept. */
void spm_limbo_take(struct spm_model *model, struct spm_block *block);

/**
 * spm_limbo_complete() - the host has seen all points of @clock complete
 * @sync: the program itself waited
 *
 * Blocks that wait for nothing any more become READY, stamps that say nothing new are dropped, and
 * retired streams without remains are forgotten: look streams up again. With @sync, pools whose
 * frees were completed are marked.
 */
void spm_limbo_complete(struct spm_model *model, const struct spm_clock *clock, bool sync);

/** spm_limbo_collect_stream() - act on its present state; if it is retired, it may be gone then. */
void spm_limbo_collect_stream(struct spm_model *model, struct spm_stream_state *stream);

/** spm_limbo_collect_strays() - the same for the blocks that have no lane. */
void spm_limbo_collect_strays(struct spm_model *model);

/** spm_limbo_collect_pool() - look again, by the pool's present standard of completeness. */
void spm_limbo_collect_pool(struct spm_model *model, struct spm_pool_state *pool);

/** spm_limbo_reopen() - its stream may have learnt something: look at a few shut blocks again. */
void spm_limbo_reopen(struct spm_model *model, struct spm_lane *lane);

/** spm_limbo_forget_stream() - drop its lanes, which are empty. */
void spm_limbo_forget_stream(struct spm_model *model, struct spm_stream_state *stream);

/** spm_limbo_forget_pool() - drop its lanes, which are empty. */
void spm_limbo_forget_pool(struct spm_model *model, struct spm_pool_state *pool);

#endif
