/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_HELD_H
#define SP_TRACK_HELD_H

/*
 * Held -- what the program holds of the pools' memory, and gave back of it last
 *
 * The model has a record of every live block, and keeps with it where the
 * program asked for it. So nothing more is written down while a block is served
 * or freed, but for the last blocks that were freed: if one is freed again, they
 * say where it was freed before. Of an older one the model still knows that its
 * memory is free.
 *
 * What the driver serves is in the ledger, which tells of both (ledger.h).
 *
 * All functions are called with the model's lock held.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <streampool/model.h>

#include "base/life.h"
#include "track/ledger.h"

/* kept with a block (spm_set_user): the place in the program, and flags above it */

#define SP_HELD_SYNC_MEMOPS ((uint64_t)1 << 63) /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS was set */

#define SP_HELD_REDZONE     ((uint64_t)1 << 62) /* what lies behind it was filled (route/guard.c) */
#define SP_HELD_FLAGS       (SP_HELD_SYNC_MEMOPS | SP_HELD_REDZONE)

/** sp_held_user() - for an allocation that sp_caller asked for. */
static inline uint64_t sp_held_user(void)
{
        return (uint64_t)(uintptr_t)sp_caller & ~SP_HELD_FLAGS;
}

/** sp_held_site() - the place in the program. */
static inline const void *sp_held_site(uint64_t user)
{
        return (const void *)(uintptr_t)(user & ~SP_HELD_FLAGS); // NOLINT
}

/* live blocks */

/** sp_held_at() - the live block that holds @address. @entry: its stream is the model's number.
 * Return: false if there is none. */
bool sp_held_at(const struct spm_model *model, uint64_t address, struct sp_ledger_entry *entry);

/** sp_held_each() - every live block. */
void sp_held_each(const struct spm_model *model,
                  void (*visit)(const struct sp_ledger_entry *entry, void *user), void *user);

/** sp_held_tally() - the sums that a pool of this kind on @device belongs to, as in its
 * configuration. */
void sp_held_tally(struct spm_pool_config *wish);

/* blocks that were freed */

struct sp_past {
        _Atomic(uint64_t) address; /* 0 while the rest is written */
        uint64_t generation;
        size_t bytes;
        const void *site;     /* of the allocation */
        const void *freed_at; /* of the free */
        const char *freed_by;
        enum sp_kind kind;
        bool context_ended; /* not freed: its context was destroyed */
};

/* The last ones, of one writer. */
struct sp_past_ring {
        struct sp_past *past;
        unsigned int room; /* a power of two */
        uint64_t written;
        struct sp_past_ring *next;
};

/** sp_past_join() - an empty ring, for as long as the process; takes no lock, and needs none. */
void sp_past_join(struct sp_past_ring *ring, struct sp_past *past, unsigned int room);

/** sp_past_add() - @block is freed; whose ring it is says it, with or without the lock. */
void sp_past_add(struct sp_past_ring *ring, const struct spm_allocation *block,
                 const char *function, bool context_ended);

/** sp_held_freed() - the program has freed @block by @function, a literal. */
void sp_held_freed(const struct spm_allocation *block, const char *function);

/** sp_held_past() - the last life of a block that began at @address and was freed. Return: false if
 * that is not remembered. */
bool sp_held_past(uint64_t address, struct sp_past *past);

/** sp_held_past_before() - the last life but for those of @generation and later. */
bool sp_held_past_before(uint64_t address, uint64_t generation, struct sp_past *past);

/** sp_held_past_around() - the same of a block that held @address. */
bool sp_held_past_around(uint64_t address, struct sp_past *past);

/** sp_held_is_free() - is @address in memory of the pools, and in no live block? */
bool sp_held_is_free(const struct spm_model *model, uint64_t address);

/** sp_held_context_gone() - all blocks of @pool die with their context. */
void sp_held_context_gone(const struct spm_model *model, spm_pool pool);

#endif
