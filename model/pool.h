/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_POOL_H
#define SPM_POOL_H

/*
 * Pool -- whose memory it is, its attributes and its figures
 *
 * A pool owns segments, the set of its READY blocks, and a lane for each
 * stream that its blocks were allocated or freed on. Every byte of a segment
 * is counted once: as rounded (live), pending, ready or sealed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/model.h>

#include "segment.h"
#include "table.h"
#include "tree.h"

struct spm_peer_access {
        int peer;
        enum spm_access access;
};

struct spm_pool_state {
        struct spm_object object;
        struct spm_pool_config config; /* release_threshold as now in force */
        bool closed;                   /* destroyed; stays until its last segment is gone */
        bool synced;                   /* a synchronisation has just completed blocks of it (A13) */
        bool follow;
        bool opportunistic;
        bool internal;

        struct spm_tree ready;          /* READY blocks by size, then address */
        struct spm_table lanes;         /* by stream */
        struct spm_segment_state *busy; /* segments, newest first */
        struct spm_segment_state *idle; /* segments without LIVE or PENDING blocks, oldest first */
        struct spm_segment_state *last_idle;

        uint64_t used_bytes; /* as asked for */
        uint64_t rounded_bytes;
        uint64_t pending_bytes;
        uint64_t ready_bytes;
        uint64_t sealed_bytes;
        uint64_t reserved_bytes;
        uint64_t live_blocks;
        uint64_t segment_count;
        uint64_t used_high;
        uint64_t reserved_high;
        uint64_t live_blocks_high;
        uint64_t allocs;
        uint64_t frees;
        uint64_t hits;
        uint64_t grows;
        uint64_t releases;
        uint64_t undone;

        struct spm_peer_access *access; /* peers whose access was ever set */
        unsigned int access_count;
};

/** spm_pool_new() - as spm_pool_create(), without the initial segment. */
enum spm_status spm_pool_new(struct spm_model *model, const struct spm_pool_config *config,
                             struct spm_pool_state **pool);

/** spm_pool_free() - it has no segments any more. */
void spm_pool_free(struct spm_model *model, struct spm_pool_state *pool);

/** spm_pool_find() - NULL for an unknown handle; also pools that are closed. */
struct spm_pool_state *spm_pool_find(const struct spm_model *model, spm_pool id);

/** spm_pool_first(), spm_pool_next() - all pools in the order of their creation. */
struct spm_pool_state *spm_pool_first(const struct spm_model *model);
struct spm_pool_state *spm_pool_next(const struct spm_pool_state *pool);

/** spm_pool_reserve_size() - bytes to reserve for a block of @size; 0 if they cannot be counted.
 * @align: return argument, what the block's address must be a multiple of */
size_t spm_pool_reserve_size(const struct spm_pool_state *pool, size_t size, size_t *align);

/** spm_pool_is_done() - is the point complete by the standard of this pool? Without opportunistic
 * reuse only what the program waited for counts (A10). */
bool spm_pool_is_done(const struct spm_model *model, const struct spm_pool_state *pool,
                      struct spm_point point);

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

void spm_pool_attach_segment(struct spm_pool_state *pool, struct spm_segment_state *segment);
void spm_pool_detach_segment(struct spm_segment_state *segment);

/** spm_pool_count_busy() - @block is LIVE or PENDING now, or no longer. */
void spm_pool_count_busy(struct spm_block *block, bool busy);

/** spm_pool_make_ready() - a LOOSE block that waits for nothing becomes READY, together with its
 * READY neighbours; or SEALED, if it was exported. */
void spm_pool_make_ready(struct spm_model *model, struct spm_block *block);

/** spm_pool_take_ready() - READY to LOOSE. */
void spm_pool_take_ready(struct spm_block *block);

/** spm_pool_count_live() - the figures of an allocation, or of its end. */
void spm_pool_count_live(const struct spm_block *block, bool live);

#endif
