/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slab -- small blocks, side by side
 */

#include "slab.h"

#include <assert.h>

#include "bits.h"
#include "host.h"
#include "pool.h"
#include "state.h"

#define LINEAR    8 /* classes of one unit each */
#define PER_TWICE 4 /* classes a doubling after that */
#define SLOTS_MIN 8
#define TAIL_MAX  16 /* the tail of a run is at most a sixteenth of it */

_Static_assert(SPM_SLOT_UNITS == LINEAR << 3 && SPM_CLASSES == LINEAR + 3 * PER_TWICE,
               "the classes are those up to the largest slot");

unsigned int spm_slab_class(const struct spm_pool_state *pool, size_t size, size_t *rounded)
{
        size_t units = size >> pool->unit_shift;
        unsigned int bits;

        if (size > pool->page || pool->page <= pool->config.align)
                return SPM_NO_CLASS;
        if (units <= LINEAR) {
                *rounded = size;
                return (unsigned int)units - 1;
        }
        bits = spm_highest_bit(units - 1);
        units = ((units - 1) >> (bits - 2)) + 1;
        *rounded = units << (bits - 2) << pool->unit_shift;
        return LINEAR + PER_TWICE * (bits - 3) + (unsigned int)units - PER_TWICE - 1;
}

size_t spm_slab_run_size(const struct spm_pool_state *pool, size_t slot_size)
{
        size_t run = 2 * pool->page;

        while (run / slot_size < SLOTS_MIN || run % slot_size > run / TAIL_MAX)
                run *= 2;
        return run;
}

/* lists of slabs with READY slots */

static void link_slab(struct spm_pool_state *pool, struct spm_slab *slab)
{
        struct spm_slab *first = pool->slabs[slab->klass];

        slab->previous = NULL;
        slab->next = first;
        if (first)
                first->previous = slab;
        pool->slabs[slab->klass] = slab;
}

static void unlink_slab(struct spm_pool_state *pool, struct spm_slab *slab)
{
        if (slab->previous)
                slab->previous->next = slab->next;
        else
                pool->slabs[slab->klass] = slab->next;
        if (slab->next)
                slab->next->previous = slab->previous;
}

/* life */

static struct spm_slab *take_record(struct spm_model *model, uint32_t count)
{
        struct spm_slab **at = &model->slabs;
        struct spm_slab *slab;

        while (*at && (*at)->count != count)
                at = &(*at)->next;
        slab = *at;
        if (slab)
                *at = slab->next;
        else
                slab = spm_host_new(model, sizeof(*slab) + count * sizeof(slab->slots[0]));
        return slab;
}

bool spm_slab_new(struct spm_model *model, struct spm_block *run, unsigned int klass,
                  size_t slot_size)
{
        uint32_t count = (uint32_t)(run->size / slot_size);
        struct spm_pool_state *pool = run->area->pool;
        struct spm_slab *slab = take_record(model, count);
        uint32_t i;

        if (!slab)
                return false;
        slab->run = run;
        slab->base = run->address;
        slab->slot_size = slot_size;
        slab->count = count;
        slab->shift = pool->unit_shift;
        /* Exact for fewer than 2^16 units. */
        slab->inverse = ((uint64_t)1 << 32) / (slot_size >> slab->shift) + 1;
        slab->klass = klass;
        slab->ready = NULL;
        slab->ready_count = count;
        for (i = count; i--;) {
                struct spm_block *slot = &slab->slots[i];

                spm_block_clear(slot);
                slot->address = slab->base + i * slot_size;
                slot->size = slot_size;
                slot->area = run->area;
                slot->klass = (uint8_t)klass;
                slot->is_slot = true;
                slot->fresh = run->fresh;
                slot->slab = slab;
                slot->right = slab->ready;
                spm_block_become(slot, SPM_BLOCK_READY);
                slab->ready = slot;
        }
        model->blocks += count;
        run->slab = slab;
        spm_block_become(run, SPM_BLOCK_SLAB);
        spm_area_note(run, true);
        pool->ready_bytes += run->size;
        link_slab(pool, slab);
        return true;
}

/* All its slots are READY. */
static void retire(struct spm_model *model, struct spm_slab *slab)
{
        struct spm_block *run = slab->run;
        struct spm_pool_state *pool = run->area->pool;
        bool fresh = true;
        uint32_t i;

        for (i = 0; i < slab->count; i++)
                fresh = fresh && slab->slots[i].fresh;
        unlink_slab(pool, slab);
        pool->ready_bytes -= run->size;
        model->blocks -= slab->count;
        spm_area_note(run, false);
        run->slab = NULL;
        run->fresh = fresh;
        spm_block_become(run, SPM_BLOCK_LOOSE);
        slab->next = model->slabs;
        model->slabs = slab;
        spm_pool_make_ready(model, run);
}

/* slots */

struct spm_block *spm_slab_take(struct spm_pool_state *pool, unsigned int klass)
{
        struct spm_slab *slab = pool->slabs[klass];
        struct spm_block *slot;

        if (!slab)
                return NULL;
        slot = slab->ready;
        slab->ready = slot->right;
        if (!--slab->ready_count)
                unlink_slab(pool, slab);
        pool->ready_bytes -= slot->size;
        spm_block_become(slot, SPM_BLOCK_LOOSE);
        return slot;
}

void spm_slab_put(struct spm_model *model, struct spm_block *slot)
{
        struct spm_slab *slab = slot->slab;
        struct spm_pool_state *pool = slot->area->pool;

        assert(spm_block_is(slot, SPM_BLOCK_LOOSE));
        slot->right = slab->ready;
        slab->ready = slot;
        pool->ready_bytes += slot->size;
        spm_block_become(slot, SPM_BLOCK_READY);
        if (!slab->ready_count++)
                link_slab(pool, slab);
        if (slab->ready_count == slab->count && (slab->previous || slab->next))
                retire(model, slab);
}

void spm_slab_shed(struct spm_model *model, struct spm_pool_state *pool)
{
        unsigned int klass;

        for (klass = 0; klass < SPM_CLASSES; klass++) {
                struct spm_slab *slab = pool->slabs[klass];

                while (slab) {
                        struct spm_slab *next = slab->next;

                        if (slab->ready_count == slab->count)
                                retire(model, slab);
                        slab = next;
                }
        }
}

void spm_slab_forget(struct spm_model *model)
{
        while (model->slabs) {
                struct spm_slab *slab = model->slabs;

                model->slabs = slab->next;
                spm_host_free(model, slab);
        }
}
