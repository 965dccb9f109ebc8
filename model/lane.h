/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_LANE_H
#define SPM_LANE_H

/*
 * Lane -- the pending blocks of a pool that wait for one stream
 *
 * A lane is a queue by position, and two sets of what its own stream may have
 * at once: blocks by size, slots by class.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/model.h>

#include "area.h"
#include "bins.h"
#include "order.h"
#include "pool.h"
#include "slab.h"
#include "subject.h"
#include "table.h"

struct spm_lane {
        struct spm_object object; /* by its stream's handle in its pool */
        struct spm_pool_state *pool;
        struct spm_stream_state *stream;
        struct spm_lane *next;                /* of the same stream, in another pool */
        struct spm_bins open[2];              /* its open blocks, by their heap */
        struct spm_block *slots[SPM_CLASSES]; /* its open slots, the newest first */
        struct spm_block *oldest;             /* all its blocks by position */
        struct spm_block *newest;
        struct spm_block *joined; /* the newest that was looked at by spm_limbo_join() */
        uint64_t bytes;
        size_t shut; /* blocks that are not open, though they may become so */
        uint64_t shut_bytes;
        uint64_t unsynced; /* first point freed at that the program has not waited for; 0: none */
        uint64_t last;     /* last point freed at */
};

/** spm_lane_find() - NULL if there is none. */
static inline struct spm_lane *spm_lane_find(const struct spm_pool_state *pool, spm_stream stream)
{
        return (struct spm_lane *)spm_table_find(&pool->lanes, stream);
}

/** spm_lane_make() - find or make. Return: NULL if there is no memory. */
struct spm_lane *spm_lane_new(struct spm_model *model, struct spm_pool_state *pool,
                              struct spm_stream_state *stream);
static inline struct spm_lane *spm_lane_make(struct spm_model *model, struct spm_pool_state *pool,
                                             struct spm_stream_state *stream)
{
        struct spm_lane *lane = spm_lane_find(pool, stream->object.id);

        return lane ? lane : spm_lane_new(model, pool, stream);
}

/** spm_lane_forget_stream() - drop its lanes, which are empty. */
void spm_lane_forget_stream(struct spm_model *model, struct spm_stream_state *stream);

/** spm_lane_forget_pool() - drop its lanes, which are empty. */
void spm_lane_forget_pool(struct spm_model *model, struct spm_pool_state *pool);

/** spm_lane_add_open() - Return: false if its set cannot grow. */
bool spm_lane_add_open(struct spm_model *model, struct spm_lane *lane, struct spm_block *block);
void spm_lane_take_open(struct spm_lane *lane, struct spm_block *block);

/** spm_lane_link() - behind @older in the queue; NULL for the front. */
void spm_lane_link(struct spm_lane *lane, struct spm_block *older, struct spm_block *block);
void spm_lane_unlink(struct spm_lane *lane, struct spm_block *block);

#endif
