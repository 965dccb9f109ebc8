/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RANGE_H
#define RANGE_H

/*
 * Range -- a pool with a range of its own, as grow.c and move.c want it
 *
 * Nothing is given back unasked. Small blocks are in the lower half.
 */

#include "bench.h"

#define BASE  ((uint64_t)1 << 45)
#define GIB   ((size_t)1 << 30)
#define RANGE (64 * GIB)
#define LARGE (BASE + RANGE / 2)

static inline spm_pool range_pool(enum spm_growth growth)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .growth = growth,
                .range_base = BASE,
                .range_size = RANGE,
                .release_threshold = SIZE_MAX,
        };

        return bench_pool(config);
}

static inline void trim(spm_pool pool, size_t keep)
{
        struct spm_actions actions;

        while (spm_trim(bench.model, pool, keep, NULL, &actions) == SPM_AGAIN)
                ;
}

static inline uint64_t reserved(spm_pool pool)
{
        return bench_stats(pool).reserved_current;
}

/* What there is in the large half: a, a live block, b, another live block, and the rest. */
struct row {
        uint64_t a;
        uint64_t b;
};

static inline struct row lay_out(spm_pool pool, size_t a, size_t b)
{
        struct row row;

        row.a = bench_climb(pool, a);
        bench_climb(pool, 2 * MIB);
        row.b = bench_climb(pool, b);
        bench_climb(pool, 2 * MIB);
        cr_assert_eq(row.a, LARGE);
        cr_assert_eq(row.b, LARGE + a + 2 * MIB);
        cr_assert_eq(reserved(pool), a + b + 4 * MIB);
        return row;
}

#endif
