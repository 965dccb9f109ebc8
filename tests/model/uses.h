/* SPDX-License-Identifier: Apache-2.0 */
#ifndef USES_H
#define USES_H

/*
 * Uses -- the bench (bench.h), with a pool that tracks uses
 */

#include "bench.h"

#define USES_STREAMS 40

struct uses {
        spm_pool pool;
        spm_stream more[USES_STREAMS]; /* these do not block, and have no work */
};

static struct uses uses;

static inline void uses_set_up(void)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .small_size = 512,
                .track_uses = true,
                .release_threshold = SIZE_MAX,
        };

        bench_set_up();
        uses.pool = bench_pool(config);
        for (int i = 0; i < USES_STREAMS; i++)
                cr_assert_eq(spm_stream_add(bench.model, bench.context, SPM_STREAM_NON_BLOCKING,
                                            &uses.more[i]),
                             SPM_OK);
}

static inline struct spm_block_id uses_alloc(spm_stream stream, size_t size)
{
        struct spm_allocation allocation;

        cr_assert_eq(bench_try(uses.pool, stream, size, true, &allocation), SPM_OK);
        return spm_block_id(&allocation);
}

/* All later work of @behind runs after all earlier work of @first. */
static inline void uses_order(spm_stream first, spm_stream behind)
{
        bench_wait(behind, bench_record(first));
}

/* How many waits the access needs; -1 if the question is refused. */
static inline int uses_waits(struct spm_block_id id, enum spm_use_access access, spm_stream stream)
{
        unsigned int count = 0;
        enum spm_status status = spm_use_waits(bench.model, id, access, stream, NULL, 0, &count);

        return status ? -1 : (int)count;
}

static inline int uses_count(struct spm_block_id id)
{
        unsigned int count = 0;

        return spm_use_count(bench.model, id, &count) ? -1 : (int)count;
}

/* A use with all its waits. */
static inline void uses_use(struct spm_block_id id, enum spm_use_access access, spm_stream stream)
{
        struct spm_use use;

        cr_assert_eq(spm_use_prepare(bench.model, id, access, stream, &use), SPM_OK);
        cr_assert_eq(spm_use_finish(bench.model, &use, true), SPM_OK);
}

static inline enum spm_life uses_life(struct spm_block_id id)
{
        enum spm_life life;

        cr_assert_eq(spm_life_of(bench.model, id, &life), SPM_OK);
        return life;
}

#endif
