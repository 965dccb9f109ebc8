/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_SEGMENT_H
#define SPM_SEGMENT_H

/*
 * Segment -- driver memory tiled by blocks
 *
 * Blocks lie side by side and fill their segment without gap or overlap (I1,
 * I3). They are split and joined here, never across the border of a segment.
 * Which sets a block belongs to is the business of its state:
 *
 *   LIVE     the program has it; in model->live, by address
 *   PENDING  in a lane (limbo.h), or a stray
 *   READY    in pool->ready, by size
 *   SEALED   freed and complete, but known outside; never served again (I10)
 *   LOOSE    between two states; in no set
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/model.h>

#include "order.h"
#include "table.h"
#include "tree.h"

/* A live block is born of a few points; a free adds its own, and perhaps the legacy stream's. */
#define SPM_BLOCK_BORN 6
#define SPM_BLOCK_DEPS (SPM_BLOCK_BORN + 2)

enum spm_block_state {
        SPM_BLOCK_LOOSE,
        SPM_BLOCK_LIVE,
        SPM_BLOCK_PENDING,
        SPM_BLOCK_READY,
        SPM_BLOCK_SEALED
};

struct spm_block {
        struct spm_node by_size;  /* READY: in its pool; PENDING and open: in its lane */
        struct spm_node by_order; /* LIVE: by address; PENDING: in its lane, by position */
        struct spm_segment_state *segment;
        struct spm_block *previous; /* in address order */
        struct spm_block *next;     /* likewise; in model->spare and model->strays: the next one */
        uint64_t address;
        size_t size;
        enum spm_block_state state;
        bool fresh; /* no part of it was ever served */

        /*
         * The points its memory waits for. Of a PENDING block: the first is that of its lane. Of
         * a LIVE block: its birth, which outlives a free that names no stream (A6); none if the
         * memory was complete when it was served.
         */
        unsigned int dep_count;
        struct spm_point deps[SPM_BLOCK_DEPS];

        /* PENDING */
        struct spm_lane *lane; /* NULL for a stray */
        bool open;             /* its lane's own stream may have it now */
        bool barred;           /* ... and never will (an undone allocation) */

        /* LIVE */
        bool hit;      /* served without growth */
        bool belted;   /* its second point is ordered by a wait submitted for it */
        bool exported; /* kept when it becomes PENDING */
        size_t requested;
        spm_stream stream;
        uint64_t position; /* of the allocation in its stream */
        uint64_t generation;
        uint64_t user;
};

struct spm_segment_state {
        struct spm_object object;
        struct spm_node by_base;
        struct spm_pool_state *pool;
        uint64_t base;
        size_t size;
        void *cookie;
        struct spm_block *first;
        size_t sealed; /* bytes */
        size_t busy;   /* LIVE and PENDING blocks; a segment without any can be given back */
        struct spm_segment_state *previous; /* in the list of the pool */
        struct spm_segment_state *next;
};

/**
 * spm_segment_new() - a segment that is one READY block
 *
 * Return: SPM_OK, SPM_E_INVALID_VALUE (overlap, or the end of the address space),
 * SPM_E_HOST_MEMORY.
 */
enum spm_status spm_segment_new(struct spm_model *model, struct spm_pool_state *pool, uint64_t base,
                                size_t size, void *cookie, struct spm_segment_state **segment);

/** spm_segment_free() - with all its blocks, which are in no state but READY, SEALED and LOOSE. */
void spm_segment_free(struct spm_model *model, struct spm_segment_state *segment);

/** spm_segment_at() - the segment that holds @address, or NULL. */
struct spm_segment_state *spm_segment_at(const struct spm_model *model, uint64_t address);

/* blocks */

/** spm_block_reserve() - have @count records at hand. Return: false if there is no memory. */
bool spm_block_reserve(struct spm_model *model, unsigned int count);

/**
 * spm_block_split() - cut a LOOSE block in two
 * @size: bytes that stay with @block; less than it has
 *
 * A record is at hand. Return: the rest, LOOSE, with the same dependencies.
 */
struct spm_block *spm_block_split(struct spm_model *model, struct spm_block *block, size_t size);

/** spm_block_absorb() - add the LOOSE neighbour @other to the LOOSE @block; its record is spared.
 * The dependencies of @block are left alone. */
void spm_block_absorb(struct spm_model *model, struct spm_block *block, struct spm_block *other);

/** spm_block_live_at() - the live block that holds @address, or NULL. */
struct spm_block *spm_block_live_at(const struct spm_model *model, uint64_t address);

/* A LOOSE block becomes LIVE, and back. */
void spm_block_enliven(struct spm_model *model, struct spm_block *block);
void spm_block_unliven(struct spm_model *model, struct spm_block *block);

/** spm_block_forget_spares() - for the end of the model. */
void spm_block_forget_spares(struct spm_model *model);

#endif
