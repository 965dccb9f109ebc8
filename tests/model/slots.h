/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SLOTS_H
#define SLOTS_H

/*
 * Slots -- what slab.c and run.c ask about small blocks
 */

#include "bench.h"
#include "pool.h"
#include "state.h"

#define PAGE (32 * KIB)
#define BASE ((uint64_t)1 << 45)

static spm_pool pool;

static inline void slots_set_up(void)
{
        struct spm_pool_config config = {.kind = SPM_POOL_ASYNC, .release_threshold = SIZE_MAX};

        bench_set_up();
        pool = bench_pool(config);
}

/* Runs of slots in all of the pool. */
static inline unsigned int runs(void)
{
        const struct spm_area *area = spm_pool_find(bench.model, pool)->areas;
        unsigned int count = 0;

        for (; area; area = area->next) {
                const struct spm_block *tile = area->first;

                for (; tile; tile = tile->next)
                        count += spm_block_is(tile, SPM_BLOCK_SLAB);
        }
        return count;
}

static inline enum spm_status free_at(uint64_t address, uint64_t generation)
{
        struct spm_actions actions;

        return spm_free(bench.model, address, generation, SPM_FREE_SYNC, 0, NULL, &actions);
}

#endif
