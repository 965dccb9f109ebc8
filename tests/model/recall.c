/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recall -- magazines whose owner is inside when others want to look into them
 *
 * An owner that does not run is made by hand: it has said that it is inside.
 */

#include "recall.h"

#include "bench.h"
#include "magazine.h"
#include "pool.h"
#include "state.h"

#define BASE      ((uint64_t)1 << 45)
#define GIB       ((size_t)1 << 30)
#define MAGAZINES 500

static spm_pool pool;
static struct spm_magazine *magazine; /* of the pool and of s */
static uint64_t at;                   /* a block that was in it */

static void set_up(void)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC, .range_base = BASE, .range_size = 64 * GIB};

        bench_set_up();
        pool = bench_pool(config);
        cr_assert_eq(spm_magazine_new(bench.model, pool, bench.s, &magazine), SPM_OK);
        bench_alloc(pool, bench.s, KIB);
        at = bench_alloc(pool, bench.s, KIB);
        cr_assert(spm_magazine_free(magazine, at, 0, NULL));
        atomic_store(&magazine->inside, 1);
}

TestSuite(recall, .init = set_up, .fini = bench_tear_down);

static unsigned int pauses;

static void run_the_owner(void *unused)
{
        (void)unused;
        if (++pauses == 3)
                atomic_store(&magazine->inside, 0);
}

/* Of lower priority than this one, on the same processor. */
Test(recall, an_owner_that_does_not_run_is_let_run, .timeout = 10)
{
        struct spm_actions actions;

        bench.model->config.pause = run_the_owner;
        cr_assert_eq(spm_stream_retire(bench.model, bench.s, &actions), SPM_OK);
        bench_do(&actions, NULL);
        cr_expect_eq(pauses, 3);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_QUERY);
        cr_expect_eq(bench_stats(pool).pending_bytes, 0);
}

Test(recall, so_is_it_by_whoever_walks_all_blocks, .timeout = 10)
{
        bench.model->config.pause = run_the_owner;
        bench_check();
        cr_expect_eq(pauses, 3);
}

static bool count(const struct spm_allocation *allocation, void *user)
{
        unsigned int *seen = user;

        (void)allocation;
        ++*seen;
        return true;
}

/* In the handler of a signal that came while this thread was inside, the owner never leaves. The
 * bound is one for all magazines: for each of so many it would be longer than the test may take. */
Test(recall, a_report_does_not_wait_for_ever, .timeout = 5)
{
        struct spm_magazine *other;
        unsigned int i, seen = 0;

        for (i = 0; i < MAGAZINES; i++) {

                cr_assert_eq(spm_magazine_new(bench.model, pool, bench.t, &other), SPM_OK);
                atomic_store(&other->inside, 1);
        }
        spm_each_live(bench.model, pool, count, &seen);
        cr_expect_eq(seen, 1);
        for (other = spm_pool_find(bench.model, pool)->magazines; other; other = other->next) {
                cr_expect_not(atomic_load(&other->recalled), "the owner goes on as before");
                atomic_store(&other->inside, 0);
        }
        spm_settle(bench.model);
        cr_expect_eq(bench_stats(pool).live_blocks, 1);
}
