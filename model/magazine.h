/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_MAGAZINE_H
#define SPM_MAGAZINE_H

/*
 * Magazine -- freed blocks of a stream that one thread has at hand
 *
 * What the public header says of magazines is kept by these means:
 *
 *   blocks    A held block is in the state HELD and in no other set. Freeing
 *             and allocating change its state, its owner's list and four
 *             figures, and look nothing up but the page of the address.
 *   order     A block comes in by being freed on the magazine's stream, with
 *             nothing to wait for but that stream, and goes out on the same
 *             stream: that is stream order, whatever else runs. As long as a
 *             stream has magazines, every look at its end also closes its last
 *             point (subject.c), so that what a magazine serves afterwards is
 *             behind what was looked at, without a count of its own.
 *             That of a synchronous pool serves what is complete (ripe.h).
 *   figures   Each magazine counts from zero since it was settled last; the
 *             pool's figures are the sum. A peak can only be passed where usage
 *             rises, so a magazine may rise above zero by what it was granted
 *             and no further; what the pool has granted stays below the mark.
 *             So marks are exact, and near a peak allocations take the lock.
 *   recall    Whoever needs the blocks raises a flag and then looks whether the
 *             owner is inside; the owner says that it is inside and then looks
 *             at the flag. One of them sees the other, by a barrier in between:
 *             the owner's own, or one that the recalling thread makes all
 *             threads pass (struct spm_config, fence). An owner that is inside
 *             leaves after a few instructions, and is waited for where its
 *             blocks are wanted; it does not get in again before the flag is
 *             down. tests/stress/handshake.c walks all orders of these steps.
 *   life      Two threads may free one block at once, one with the lock or none.
 *             The state of a block counts its lives, and a life is ended by a
 *             compare-and-swap: one of the two is too late, even if the block
 *             is served again meanwhile, and whatever else it has read of it.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <streampool/model.h>

#include "fit.h"
#include "slab.h"

#define SPM_MAGAZINE_SMALL   32 /* blocks of a class */
#define SPM_MAGAZINE_LARGE   8
#define SPM_MAGAZINE_WAITING 32

struct spm_magazine {
        /* Between the owner and whoever recalls. */
        _Atomic(uint32_t) inside;
        _Atomic(uint32_t) recalled;
        _Atomic(uint32_t) told; /* enum spm_work_free: of its context, as the owner is to know it */

        struct spm_model *model;
        bool is_fenced; /* who recalls makes the owner's thread pass a barrier */

        /* Of the owner while it is inside, else of whoever has recalled it. */
        bool dead; /* its stream or pool is gone, or it was retired */
        spm_stream stream_id;
        spm_stream line_id;              /* of its context */
        spm_stream legacy_id;            /* likewise, when the owner was last here with the lock */
        struct spm_stream_state *stream; /* of a synchronous pool: its context's line */
        bool is_sync;                    /* of such a pool (ripe.h) */
        struct spm_pool_state *pool;
        struct spm_area *areas[2];
        uint64_t generation; /* the next to give */
        uint64_t generation_end;
        int64_t used_granted; /* bytes and blocks that it may rise by */
        int64_t live_granted;
        uint32_t held; /* blocks, those that wait among them */
        uint32_t large_count;
        struct spm_block *large[SPM_MAGAZINE_LARGE];
        struct spm_block *small[SPM_CLASSES]; /* linked by newer */
        uint32_t small_count[SPM_CLASSES];
        uint32_t waiting_first;
        uint32_t waiting_count;
        struct spm_block *waiting[SPM_MAGAZINE_WAITING]; /* a ring, the oldest first (ripe.h) */

        /* Since it was settled; written by the owner, read by all. */
        _Atomic(int64_t) used;
        _Atomic(int64_t) rounded;
        _Atomic(int64_t) live;
        _Atomic(int64_t) made; /* bytes */
        _Atomic(uint64_t) allocs;
        _Atomic(uint64_t) hits;
        _Atomic(uint64_t) frees;

        struct spm_magazine *next; /* of the same pool */
};

/** spm_magazine_serve() - the owner is here with the lock, because it may not pass a mark by
 * itself: serve it from the magazine after all. Return: false if the magazine has nothing for it.
 */
bool spm_magazine_serve(struct spm_model *model, struct spm_magazine *magazine,
                        const struct spm_want *want, struct spm_allocation *allocation);

/** spm_magazine_visit() - the owner is here with the lock, and was served @want: settle, and fill
 * it with blocks of the same class. */
void spm_magazine_visit(struct spm_model *model, struct spm_magazine *magazine,
                        const struct spm_want *want);

/* Of magazine.c for refill.c: it is the owner who comes, or one whose flag is up and owner outside.
 */

/** spm_magazine_find() - where a block of so many bytes is, or NULL, after a look at what waits.
 * @size:  is rounded
 * @klass: of the size, or SPM_NO_CLASS */
struct spm_block **spm_magazine_find(struct spm_magazine *magazine, size_t *size,
                                     unsigned int *klass);

/** spm_magazine_take_out() - what was found is in no list any more; spm_magazine_give(): and has
 * the program for its owner; spm_magazine_put(): a HELD block comes into its list. */
struct spm_block *spm_magazine_take_out(struct spm_magazine *magazine, struct spm_block **held,
                                        unsigned int klass);
void spm_magazine_give(struct spm_magazine *magazine, struct spm_block *block, size_t size,
                       uint64_t user, struct spm_allocation *allocation);
void spm_magazine_put(struct spm_magazine *magazine, struct spm_block *block);

/** spm_magazine_is_plain() - does it wait for nothing but the magazine's stream, and what is
 * implied by that? */
bool spm_magazine_is_plain(const struct spm_magazine *magazine, const struct spm_block *block);

#endif
