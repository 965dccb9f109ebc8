/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_RECORD_H
#define SPM_RECORD_H

/*
 * Record -- what is known of a block
 *
 * Blocks are split and joined here, never across the border of an area. Which
 * sets a block belongs to is the business of its state:
 *
 *   LIVE     the program has it; findable by address (spm_area_live_at())
 *   HELD     in a magazine: freed, and for its owner to take (magazine.h)
 *   KEPT     freed, and served to nobody for a while (quarantine.h)
 *   PENDING  in a lane (limbo.h), or a stray
 *   READY    in the bins of its heap, by size; a slot in its slab
 *   SEALED   freed and complete, but known outside; never served again (I10)
 *   HOLE     addresses without memory, in whole grains
 *   SLAB     a run of small blocks, its slots, which have records of their own
 *   LOOSE    between two states; in no set
 *
 * A record is two cache lines. It is never allocated in the middle of a
 * change: whoever may split first sees to it that spare records are at hand,
 * and joining returns them. So a free cannot fail. Memory of records is given
 * back only with the model: one may be looked at by a thread that is too late.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <streampool/model.h>

#include "order.h"

/* A live block is born of a few points; a free adds its own, and perhaps the legacy stream's. */
#define SPM_BLOCK_BORN 6
#define SPM_BLOCK_DEPS (SPM_BLOCK_BORN + 2)

/* For functions that read what another thread may be writing, and check what they have read. */
#define SPM_MAY_RACE __attribute__((no_sanitize("thread")))

/* Off the hot path, and out of its way. */
#define SPM_COLD  __attribute__((noinline, cold))
#define SPM_APART __attribute__((noinline))

enum spm_block_state {
        SPM_BLOCK_LOOSE,
        SPM_BLOCK_LIVE,
        SPM_BLOCK_HELD,
        SPM_BLOCK_PENDING,
        SPM_BLOCK_READY,
        SPM_BLOCK_SEALED,
        SPM_BLOCK_HOLE,
        SPM_BLOCK_SLAB,
        SPM_BLOCK_KEPT,
};

struct spm_area;
struct spm_lane;
struct spm_slab;
struct spm_segment_state;

/* The points of a block beyond the second. */
struct spm_extra {
        struct spm_extra *next; /* spare */
        struct spm_point points[SPM_BLOCK_DEPS - 2];
};

/* Of the state's word: the state, and above it a number that grows with every life. */
#define SPM_STATE_MASK 0xffu
#define SPM_LIFE       0x100u

struct spm_block {
        _Atomic(uint32_t) state; /* of enum spm_block_state, and of which life; always kept */
        uint8_t dep_count;
        uint8_t klass;        /* of a slot */
        bool is_slot : 1;     /* it belongs to a slab */
        bool fresh : 1;       /* no part of it was ever served */
        bool open : 1;        /* PENDING: its lane's own stream may have it now */
        bool barred : 1;      /* PENDING: ... and never will (README.md) */
        bool belted : 1;      /* LIVE: its second point is ordered by a wait submitted for it */
        bool exported : 1;    /* LIVE, and kept when it becomes PENDING */
        bool is_shore : 1;    /* READY: beside a hole */
        bool is_spanning : 1; /* READY: in the heap's list of what holds whole segments */

        uint64_t address;
        size_t size;
        struct spm_block *previous; /* in address order; not of slots */
        struct spm_block *next;     /* likewise; in model->spare: the next one */
        struct spm_area *area;

        /*
         * The points its memory waits for; more of them in extra. Of a PENDING block: the first is
         * that of its lane. Of a LIVE block: its birth, which outlives a free that names no stream
         * (A6); none if the memory was complete when it was served. The first of them is the point
         * of the allocation itself, and is there whatever dep_count says; 0 without a stream.
         */
        uint32_t streams[2];
        uint64_t positions[2];

        union {
                struct { /* READY, open PENDING, HOLE: links of its set */
                        struct spm_block *left;
                        struct spm_block *right;
                };
                struct { /* LIVE, HELD */
                        size_t requested;
                        uint64_t generation;
                };
        };
        union {
                struct spm_lane *lane; /* PENDING; NULL for a stray */
                uint64_t user;         /* LIVE */
        };
        struct spm_block
                *older; /* PENDING: in its lane; KEPT: in its pool; READY: of those that span */
        struct spm_block *newer;
        struct spm_extra *extra;
        struct spm_slab *slab; /* of a slot, and of a SLAB */
};

_Static_assert(sizeof(struct spm_block) == 128, "a record is two cache lines");

/* records */

/** spm_block_reserve() - have @count records at hand, and a few extras. Return: false if there is
 * no memory. */
bool spm_block_reserve(struct spm_model *model, unsigned int count);

/* A zeroed record with no memory yet, which is at hand; and back. */
struct spm_block *spm_block_take(struct spm_model *model);
void spm_block_give(struct spm_model *model, struct spm_block *block);

/** spm_block_forget_spares() - for the end of the model. */
void spm_block_forget_spares(struct spm_model *model);

/** spm_block_insert() - a copy of the record, LOOSE and without points, right before @block in the
 * order of addresses, or right behind it. A record is at hand. */
struct spm_block *spm_block_insert(struct spm_model *model, struct spm_block *block, bool before);

/** spm_block_remove() - and the opposite: its bytes are a neighbour's now. */
void spm_block_remove(struct spm_model *model, struct spm_block *block);

/**
 * spm_block_split() - cut a block in two
 * @size: bytes that stay with @block; less than it has
 *
 * A record is at hand. Return: the rest, LOOSE, with the same points and flags.
 */
struct spm_block *spm_block_split(struct spm_model *model, struct spm_block *block, size_t size);

/** spm_block_absorb() - add the LOOSE neighbour @other to @block; its record is spared. The
 * points of @block are left alone. */
void spm_block_absorb(struct spm_model *model, struct spm_block *block, struct spm_block *other);

/* points */

static inline struct spm_point spm_block_dep(const struct spm_block *block, unsigned int i)
{
        if (i < 2)
                return (struct spm_point){block->streams[i], block->positions[i]};
        return block->extra->points[i - 2];
}

/** spm_block_set_deps() - Return: false if they are too many, or there is no memory for the third:
 * nothing has changed. */
bool spm_block_set_many(struct spm_model *model, struct spm_block *block,
                        const struct spm_point *deps, unsigned int count);
static inline bool spm_block_set_deps(struct spm_model *model, struct spm_block *block,
                                      const struct spm_point *deps, unsigned int count)
{
        if (count > 1 || block->extra)
                return spm_block_set_many(model, block, deps, count);
        if (count) {
                block->streams[0] = deps->stream;
                block->positions[0] = deps->position;
        }
        block->dep_count = (uint8_t)count;
        return true;
}

/** spm_block_drop_deps() - it waits for nothing. */
void spm_block_drop_extra(struct spm_model *model, struct spm_block *block);
static inline void spm_block_drop_deps(struct spm_model *model, struct spm_block *block)
{
        if (block->extra)
                spm_block_drop_extra(model, block);
        block->dep_count = 0;
}

static inline enum spm_block_state spm_block_state(const struct spm_block *block)
{
        return (enum spm_block_state)(atomic_load_explicit(&block->state, memory_order_relaxed) &
                                      SPM_STATE_MASK);
}

/** spm_block_is() - is there a block, and is it @state? */
static inline bool spm_block_is(const struct spm_block *block, enum spm_block_state state)
{
        return block && spm_block_state(block) == state;
}

/* Only of a block that is not LIVE, or by whoever is the only one who may end its life. */
static inline void spm_block_become(struct spm_block *block, enum spm_block_state state)
{
        uint32_t word = atomic_load_explicit(&block->state, memory_order_relaxed);

        if (state == SPM_BLOCK_LIVE)
                word += SPM_LIFE;
        atomic_store_explicit(&block->state, (word & ~SPM_STATE_MASK) | (uint32_t)state,
                              memory_order_release);
}

/** spm_block_life() - the life that it has now, or 0 if it is not LIVE. */
static inline uint32_t spm_block_life(const struct spm_block *block)
{
        uint32_t word = atomic_load_explicit(&block->state, memory_order_acquire);

        return (word & SPM_STATE_MASK) == SPM_BLOCK_LIVE ? word : 0;
}

/** spm_block_end_life() - LIVE to @state. Return: false if @life has ended already, as of two
 * threads that free a block one finds: what was read since spm_block_life() is void. */
static inline bool spm_block_end_life(struct spm_block *block, uint32_t life,
                                      enum spm_block_state state)
{
        return atomic_compare_exchange_strong(&block->state, &life,
                                              (life & ~SPM_STATE_MASK) | (uint32_t)state);
}

/* All zero, but for the state: whoever looks at the record too late is to see that. */
static inline void spm_block_clear(struct spm_block *block)
{
        memset(&block->state + 1, 0, sizeof(*block) - sizeof(block->state));
}

#endif
