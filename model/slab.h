/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_SLAB_H
#define SPM_SLAB_H

/*
 * Slab -- small blocks, side by side
 *
 * Blocks that are not larger than a page come from runs of equal slots: up to
 * 8 units one class a unit, then four classes a doubling, so that rounding
 * wastes at most a fifth, of blocks that are a thousandth of what a program
 * uses. A slot never splits or joins, and each has its state in its
 * record, so that a second free is seen at once.
 *
 * A run is a block of its heap in the state SLAB. It holds at least eight
 * slots and wastes at most a sixteenth at its end. It goes back to the heap
 * when its last slot is READY and its class has another slot at hand.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/model.h>

#include "area.h"

#define SPM_SLOT_UNITS 64 /* of the largest slot, at most */
#define SPM_CLASSES    20
#define SPM_NO_CLASS   0xff

struct spm_slab {
        struct spm_block *run;
        struct spm_slab *previous; /* with READY slots, of the class; the first is served from */
        struct spm_slab *next;     /* also in the list of spare ones */
        struct spm_block *ready;   /* READY slots, linked by right */
        uint64_t base;
        size_t slot_size;
        uint64_t inverse;   /* of the slot's size in units: an offset times it is an index */
        unsigned int shift; /* of a unit */
        uint32_t count;
        uint32_t ready_count;
        unsigned int klass;
        struct spm_block slots[];
};

/** spm_slab_class() - of @size, a multiple of the pool's alignment; SPM_NO_CLASS if too large.
 * @rounded: return argument, what a slot of the class holds */
unsigned int spm_slab_class(const struct spm_pool_state *pool, size_t size, size_t *rounded);

/** spm_slab_run_size() - bytes of a run of the class; it begins at a multiple of a page. */
size_t spm_slab_run_size(const struct spm_pool_state *pool, size_t slot_size);

/** spm_slab_new() - make slots of @run, which is LOOSE and complete. Return: false if there is no
 * memory; the run is LOOSE still. */
bool spm_slab_new(struct spm_model *model, struct spm_block *run, unsigned int klass,
                  size_t slot_size);

/** spm_slab_slot() - the slot that holds @address; NULL at the end of the run, or if it is to be
 * @exact and the slot does not begin there. */
static inline SPM_MAY_RACE struct spm_block *spm_slab_slot(struct spm_slab *slab, uint64_t address,
                                                           bool exact)
{
        uint64_t units = (address - slab->base) >> slab->shift;
        uint64_t index = units * slab->inverse >> 32;

        if (index >= slab->count)
                return NULL;
        if (exact && slab->slots[index].address != address)
                return NULL;
        return &slab->slots[index];
}

/** spm_slab_take() - a READY slot of the class becomes LOOSE; NULL if there is none. */
struct spm_block *spm_slab_take(struct spm_pool_state *pool, unsigned int klass);

/** spm_slab_put() - a LOOSE slot becomes READY. */
void spm_slab_put(struct spm_model *model, struct spm_block *slot);

/** spm_slab_shed() - runs of which all slots are READY go back to the heap. */
void spm_slab_shed(struct spm_model *model, struct spm_pool_state *pool);

/** spm_slab_forget() - the spare records, at the end of the model. */
void spm_slab_forget(struct spm_model *model);

#endif
