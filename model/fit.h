/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_FIT_H
#define SPM_FIT_H

/*
 * Fit -- which free block
 *
 * Best fit: of the blocks that a request may have, the smallest that holds
 * it; of several of that size what the set gives first (bins.h). What it may
 * have:
 *
 *   ready     complete; anyone
 *   own       freed in order of the very stream that asks (A1)
 *   bare      the better of these two: nobody has to wait for it
 *   followed  freed on another stream, and the program has ordered the asking
 *             stream behind that: with a belt (G3)
 *   internal  likewise, but the order is ours: only when memory is short (A10)
 *
 * A belt is a wait of the asking stream for a recorded stamp. It never makes
 * a stream wait for more than the program did, except for internal.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/model.h>

#include "limbo.h"
#include "pool.h"
#include "stamp.h"

struct spm_want {
        struct spm_pool_state *pool;
        struct spm_stream_state *stream; /* of a SYNC pool the sole one, or NULL */
        struct spm_heap *heap;
        size_t requested;
        uint64_t user;
        size_t size;
        size_t align;
        unsigned int klass; /* of a slot, or SPM_NO_CLASS */
};

struct spm_fit {
        struct spm_block *block;
        uint64_t start;               /* of the memory to serve */
        struct spm_stamp_state *belt; /* to wait for, or NULL */
        struct spm_lane *donor;       /* of an internal fit that needs a stamp first, or NULL */
};

/** spm_fit_enough() - bytes that hold a block of @size wherever they begin. */
static inline size_t spm_fit_enough(const struct spm_bins *bins, size_t size, size_t align)
{
        return size + align - ((size_t)1 << bins->shift);
}

/** spm_fit_heap() - the smallest READY block with room for @size bytes at a multiple of @align, or
 * NULL; beside a hole only where nothing else fits. @start: return argument, where */
struct spm_block *spm_fit_heap(const struct spm_heap *heap, size_t size, size_t align,
                               uint64_t *start);

/** spm_fit_open() - the lane's open blocks of the heap that is asked. */
const struct spm_bins *spm_fit_open(const struct spm_lane *lane, const struct spm_want *want);

/* Each returns false if there is none. */
bool spm_fit_ready_block(const struct spm_want *want, struct spm_fit *fit);
static inline bool spm_fit_ready(const struct spm_want *want, struct spm_fit *fit)
{
        const struct spm_slab *slab;

        if (want->klass == SPM_NO_CLASS)
                return spm_fit_ready_block(want, fit);
        *fit = (struct spm_fit){0};
        slab = want->pool->slabs[want->klass];
        if (!slab)
                return false;
        fit->block = slab->ready;
        fit->start = slab->ready->address;
        return true;
}

bool spm_fit_ready_or_own(struct spm_model *model, const struct spm_want *want,
                          struct spm_fit *fit);
static inline bool spm_fit_bare(struct spm_model *model, const struct spm_want *want,
                                struct spm_fit *fit)
{
        return want->stream ? spm_fit_ready_or_own(model, want, fit) : spm_fit_ready(want, fit);
}

bool spm_fit_followed(const struct spm_model *model, const struct spm_want *want,
                      struct spm_fit *fit);

/** spm_fit_internal() - @fit has a belt, or a donor that a stamp should be asked for. */
bool spm_fit_internal(const struct spm_model *model, const struct spm_want *want,
                      struct spm_fit *fit);

/** spm_fit_own_lane() - of what the stream that asks has freed, or NULL. */
struct spm_lane *spm_fit_own_lane(const struct spm_want *want);

/** spm_fit_may_stitch() - can the stream of @lane have @block as a part of something larger? */
static inline bool spm_fit_may_stitch(const struct spm_block *block, const struct spm_lane *lane)
{
        return spm_block_is(block, SPM_BLOCK_READY) ||
               (spm_block_is(block, SPM_BLOCK_PENDING) && block->lane == lane && block->open &&
                block->dep_count == 1);
}

/** spm_fit_stitched() - a block of the stream's own together with free neighbours, joined on the
 * way; a few of the largest are tried. */
bool spm_fit_stitched(struct spm_model *model, const struct spm_want *want, struct spm_fit *fit);

/** spm_fit_stitch_at() - likewise, of the open PENDING @block and what is beside it. Return: false
 * if that is too little; true and no block if it was joined in vain. */
bool spm_fit_stitch_at(struct spm_model *model, const struct spm_want *want,
                       struct spm_block *block, struct spm_fit *fit);

/* one block of a layout's page */

/** spm_fit_here() - is it READY, or open in the lane @own, and does it hold what is wanted? */
bool spm_fit_here(const struct spm_want *want, const struct spm_lane *own, struct spm_block *block,
                  struct spm_fit *fit);

/** spm_fit_by_wait() - can another stream's block be had, as followed; or if @internal, as that? */
bool spm_fit_by_wait(const struct spm_model *model, const struct spm_want *want,
                     struct spm_block *block, bool internal, struct spm_fit *fit);

#endif
