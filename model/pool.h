/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_POOL_H
#define SPM_POOL_H

/*
 * Pool -- whose memory it is, its attributes and its figures
 *
 * A pool owns areas, the set of its READY blocks, and a lane for each stream
 * that its blocks were allocated or freed on. Every byte of a segment is
 * counted once: as rounded (live), pending, ready or sealed.
 *
 * READY blocks and holes are kept in heaps. A pool with a range has two, each
 * with one half of it: small blocks and large ones do not mix, so that a small
 * one does not pin what could be moved. Otherwise there is one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/model.h>

#include "area.h"
#include "bins.h"
#include "slab.h"
#include "state.h"
#include "subject.h"
#include "table.h"

/* The largest block of the heap for small ones. */
#define SPM_HEAP_SMALL ((size_t)1 << 20)

struct spm_peer_access {
        int peer;
        enum spm_access access;
};

struct spm_heap {
        size_t page;             /* no live block of it is smaller, slots aside (area.h) */
        struct spm_bins shore;   /* READY blocks beside a hole, which are used last */
        struct spm_bins ready;   /* READY blocks */
        struct spm_block *holes; /* of its range, the newest first */
        struct spm_block *wild;  /* the hole at the range's end, or NULL */
};

struct spm_layout_state;
struct spm_magazine;

struct spm_pool_state {
        struct spm_object object;
        struct spm_pool_config config;     /* release_threshold, keep as now in force */
        struct spm_context_state *context; /* its owner, which it does not outlive, or NULL */
        struct spm_work *work;             /* of that, if the pool is synchronous; else NULL */
        bool closed;                       /* destroyed; stays until its last segment is gone */
        bool is_apart;   /* closed, tracks uses, or has a layout: requests go another way than usual
                          */
        bool detour;     /* a quarantine, uses or a layout: so do frees */
        bool is_tracked; /* an allocation gets an entry in the ledger */
        bool ended;      /* its memory is being given back, whatever it was */
        bool is_short;   /* it was refused memory not long ago (piece.h) */
        bool is_varied;  /* a large segment was in the way not long ago (piece.h) */
        bool unfinished; /* there was no room for all that a synchronisation releases */
        bool synced;     /* a synchronisation has just completed blocks of it (A13) */
        bool follow;
        bool opportunistic;
        bool internal;
        unsigned int rash_gap; /* large requests that do not ask before they cut (ladder.c) */
        unsigned int rash_skip;

        unsigned int unit_shift; /* of the alignment, which all sizes are multiples of */
        size_t page;             /* small_size, or the alignment if there are no slabs */
        unsigned int heap_count;
        struct spm_heap heaps[2];
        struct spm_slab *slabs[SPM_CLASSES]; /* with READY slots */
        struct spm_area *areas;
        struct spm_block *spanning; /* READY blocks that hold whole segments, oldest first */
        struct spm_block *last_spanning;
        struct spm_block *sealed;      /* linked by newer */
        struct spm_block *kept_oldest; /* quarantine.c: linked both ways */
        struct spm_block *kept_newest;
        struct spm_table lanes; /* by stream */
        struct spm_magazine *magazines;
        struct spm_layout_state *layout; /* layout.h: instead of the heaps; or NULL */

        uint64_t used_bytes; /* as asked for */
        uint64_t rounded_bytes;
        uint64_t pending_bytes; /* with those that are kept */
        uint64_t kept_bytes;
        uint64_t ready_bytes;
        uint64_t sealed_bytes;
        uint64_t reserved_bytes;
        uint64_t live_blocks;
        uint64_t used_granted; /* what its magazines may rise by */
        uint64_t live_granted;
        uint64_t segment_count;
        uint64_t segment_most; /* the most bytes of one that a block covers (piece.h) */
        uint64_t large_segments;
        uint64_t filled; /* bytes of the blocks allocated since one was freed */
        uint64_t used_high;
        uint64_t busy_high; /* of rounded and pending bytes together */
        uint64_t reserved_high;
        uint64_t window_high; /* of rounded bytes, in the present window (tick.c) */
        uint64_t window_before;
        uint64_t window_start;
        uint64_t ticked;
        uint64_t tick_target; /* of the tick that is going on */
        uint64_t tick_large;  /* ... where a large segment goes */
        bool is_ticking;
        uint64_t live_blocks_high;
        uint64_t allocs;
        uint64_t frees;
        uint64_t hits;
        uint64_t grows;
        uint64_t releases;
        uint64_t moves;
        uint64_t undone;

        struct spm_peer_access *access; /* peers whose access was ever set */
        unsigned int access_count;
};

/** spm_pool_new() - as spm_pool_create(), without the initial segment. */
enum spm_status spm_pool_new(struct spm_model *model, const struct spm_pool_config *config,
                             struct spm_pool_state **pool);

/** spm_pool_leave_heap() - a pool without segments has one set of free blocks, no areas and no
 * slabs, as pools with a layout have. */
void spm_pool_leave_heap(struct spm_model *model, struct spm_pool_state *pool);

/** spm_pool_make_heap() - and the opposite: as it was made. Return: SPM_OK, SPM_E_HOST_MEMORY; then
 * leave it again. */
enum spm_status spm_pool_make_heap(struct spm_model *model, struct spm_pool_state *pool);

/** spm_pool_free() - it has no segments any more. */
void spm_pool_free(struct spm_model *model, struct spm_pool_state *pool);

/** spm_pool_find() - NULL for an unknown handle; also pools that are closed. */
static inline struct spm_pool_state *spm_pool_find(const struct spm_model *model, spm_pool id)
{
        return (struct spm_pool_state *)spm_table_find(&model->pools, id);
}

/** spm_pool_first(), spm_pool_next() - all pools in the order of their creation. */
struct spm_pool_state *spm_pool_first(const struct spm_model *model);
struct spm_pool_state *spm_pool_next(const struct spm_pool_state *pool);

/** spm_pool_reserve_size() - bytes to reserve for a block of @size; 0 if they cannot be counted.
 * @align: return argument, what the block's address must be a multiple of */
static inline size_t spm_pool_reserve_size(const struct spm_pool_state *pool, size_t size,
                                           size_t *align)
{
        const struct spm_pool_config *config = &pool->config;
        size_t rounded = (size + config->align - 1) & ~(config->align - 1);

        if (rounded < size)
                return 0;
        *align = config->align;
        if (config->large_size && size > config->large_size && config->large_align > config->align)
                *align = config->large_align;
        return rounded;
}

/** spm_pool_is_done() - is the point complete by the standard of this pool? Without opportunistic
 * reuse only what the program waited for counts (A10). */
static inline bool spm_pool_is_done(const struct spm_model *model,
                                    const struct spm_pool_state *pool, struct spm_point point)
{
        bool sync = pool->config.kind == SPM_POOL_ASYNC && !pool->opportunistic;

        return spm_point_is_done(model, point, sync);
}

/* attributes: the functions of the public header */

enum spm_status spm_pool_set(struct spm_model *model, struct spm_pool_state *pool,
                             enum spm_pool_attribute attribute, uint64_t value);
enum spm_status spm_pool_get(const struct spm_pool_state *pool, enum spm_pool_attribute attribute,
                             uint64_t *value);
enum spm_status spm_pool_allow(struct spm_model *model, struct spm_pool_state *pool, int peer,
                               enum spm_access access);
enum spm_access spm_pool_allowed(const struct spm_pool_state *pool, int peer);
void spm_pool_reset_peaks(struct spm_pool_state *pool);
void spm_pool_figures(const struct spm_pool_state *pool, struct spm_stats *stats);

/* segments and blocks */

/** spm_pool_heap() - the one that blocks of @size belong to. */
static inline struct spm_heap *spm_pool_heap(struct spm_pool_state *pool, size_t size)
{
        return &pool->heaps[size > SPM_HEAP_SMALL && pool->heap_count > 1];
}

/** spm_pool_is_large() - is a segment of @size larger than a piece is as a rule (piece.h)? */
static inline bool spm_pool_is_large(const struct spm_pool_state *pool, uint64_t size)
{
        return pool->segment_most > pool->config.segment_size &&
               size - pool->config.grain >= pool->config.segment_size;
}

/** spm_pool_count_segment() - the pool has a segment more, or less. */
void spm_pool_count_segment(struct spm_pool_state *pool, size_t size, bool more);

/** spm_pool_end() - nothing of it is LIVE or PENDING: from now on only its segments count. */
void spm_pool_end(struct spm_pool_state *pool);

/** spm_pool_make_ready() - a LOOSE block that waits for nothing becomes READY, together with its
 * READY neighbours; or SEALED, if it was exported. */
void spm_pool_make_ready(struct spm_model *model, struct spm_block *block);

/** spm_pool_put_ready() - likewise, but the neighbour may be the one that remains. */
void spm_pool_put_beside(struct spm_model *model, struct spm_block *block);
static inline void spm_pool_put_ready(struct spm_model *model, struct spm_block *block)
{
        if (block->is_slot)
                spm_pool_make_ready(model, block);
        else
                spm_pool_put_beside(model, block);
}

/** spm_pool_take_ready() - READY to LOOSE; not of slots. */
void spm_pool_take_ready(struct spm_block *block);

/** spm_pool_cut_ready() - @size bytes at @start, taken out of a READY block that is not a slot;
 * what is left of it stays READY. Two records are at hand. Return: a LOOSE block. */
struct spm_block *spm_pool_cut_ready(struct spm_model *model, struct spm_block *block,
                                     uint64_t start, size_t size);

/** spm_pool_unseal() - SEALED to LOOSE, and no longer exported: it is about to be given back. */
void spm_pool_unseal(struct spm_block *block);

/** spm_pool_make_hole() - a LOOSE block without memory becomes a HOLE, together with its neighbours
 * that are. */
void spm_pool_make_hole(struct spm_model *model, struct spm_block *block);

/* A block becomes a HOLE, or LOOSE again. */
void spm_pool_add_hole(struct spm_block *block);
void spm_pool_take_hole(struct spm_block *block);

/** spm_pool_raise_marks() - usage has risen, perhaps above what it ever was. */
void spm_pool_raise_marks(struct spm_pool_state *pool);

/** spm_tally_raise() - it has grown, perhaps above what it ever was. */
void spm_tally_raise(struct spm_tally *tally);

/** spm_pool_count_alloc() - the figures of an allocation, which has been answered. */
void spm_pool_count_alloc(const struct spm_block *block);

/** spm_pool_count_end() - the figures of its end. @freed: by the program */
void spm_pool_count_end(const struct spm_block *block, bool freed);

/** spm_pool_count_undone() - it ends, and was not answered after all. */
void spm_pool_count_undone(const struct spm_block *block);

#endif
