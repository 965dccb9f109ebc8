/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tick -- idle memory is given back as time passes
 */

#include "bench.h"

#define BASE  ((uint64_t)1 << 45)
#define GIB   ((size_t)1 << 30)
#define DECAY ((uint64_t)1000000)
#define START ((uint64_t)77000000) /* a clock may begin anywhere */

static spm_pool pool;
static uint64_t now;

static spm_pool new_pool(enum spm_growth growth, size_t threshold)
{
        static uint64_t base = BASE;
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .growth = growth,
                .range_base = base,
                .range_size = 64 * GIB,
                .segment_size = growth == SPM_GROWTH_TIGHT ? 2 * MIB : 32 * MIB, /* no larger */
                .release_threshold = threshold,
                .decay = DECAY,
        };

        base += 64 * GIB;
        return bench_pool(config);
}

static void set_up(void)
{
        bench_set_up();
        now = START;
        pool = new_pool(SPM_GROWTH_TIGHT, 0);
}

TestSuite(tick, .init = set_up, .fini = bench_tear_down);

static void tick(uint64_t passed)
{
        struct spm_actions actions;
        enum spm_status status;

        now += passed;
        bench.log[0] = '\0';
        do {
                status = spm_tick(bench.model, now, &actions);
                bench_do(&actions, NULL);
        } while (status == SPM_AGAIN);
        cr_assert_eq(status, SPM_OK);
}

static uint64_t reserved(void)
{
        return bench_stats(pool).reserved_current;
}

/* So much is ready, and its use has been forgotten: the present window and the one before have seen
 * nothing of it. */
static void have_idle(size_t bytes)
{
        struct spm_pool_config config;

        cr_assert_eq(spm_pool_get_config(bench.model, pool, &config), SPM_OK);
        spm_pool_set_attribute(bench.model, pool, SPM_ATTR_RELEASE_THRESHOLD, SIZE_MAX);
        bench_free(bench_alloc(pool, bench.s, bytes), 0);
        tick(1);
        tick(DECAY);
        tick(DECAY);
        cr_assert_eq(bench_stats(pool).ready_bytes, bytes);
        spm_pool_set_attribute(bench.model, pool, SPM_ATTR_RELEASE_THRESHOLD,
                               config.release_threshold);
}

Test(tick, what_was_in_use_a_while_ago_stays_for_a_decay_time_and_goes_soon_after)
{
        int i;

        tick(1);
        bench_free(bench_alloc(pool, bench.s, GIB), 0);
        for (i = 0; i < 10; i++) {
                tick(DECAY / 10);
                cr_expect_eq(reserved(), GIB, "%d tenths", i);
        }
        for (; i < 30; i++)
                tick(DECAY / 10);
        cr_expect_leq(reserved(), GIB / 50, "nearly all");
        for (; i < 40; i++)
                tick(DECAY / 10);
        cr_expect_eq(reserved(), 0);
}

Test(tick, what_exceeds_goes_in_proportion_to_the_time_that_has_passed)
{
        have_idle(GIB);
        tick(DECAY / 40);
        cr_expect_geq(reserved(), GIB - GIB / 10);
        cr_expect_leq(reserved(), GIB - GIB / 10 + 2 * MIB, "a tenth");
        tick(DECAY / 8);
        cr_expect_leq(reserved(), GIB / 2 - GIB / 20 + 2 * MIB, "half of the rest");
        cr_expect_geq(reserved(), GIB / 2 - GIB / 20);
        tick(DECAY / 4);
        cr_expect_eq(reserved(), 0, "all of it");
}

Test(tick, of_little_a_part_goes_in_a_call)
{
        have_idle(40 * MIB);
        tick(DECAY / 8);
        cr_expect_str_eq(bench.log, "XXXXXXXXXX");
        cr_expect_eq(reserved(), 20 * MIB);
}

Test(tick, what_the_growth_mode_allows_stays)
{
        uint64_t live;

        pool = new_pool(SPM_GROWTH_BALANCED, 0);
        live = bench_alloc(pool, bench.s, 640 * MIB);
        have_idle(GIB);
        tick(DECAY);
        cr_expect_geq(reserved(), (640 + 10 + 16) * MIB);
        cr_expect_lt(reserved(), (640 + 10 + 16 + 32) * MIB, "a segment more at most");
        bench_free(live, 0);
}

Test(tick, what_is_in_use_or_pending_stays)
{
        uint64_t pending = bench_alloc(pool, bench.s, 32 * MIB);
        uint64_t live = bench_alloc(pool, bench.s, 64 * MIB);
        struct spm_allocation allocation;

        bench_free(pending, bench.s);
        have_idle(GIB);
        tick(DECAY);
        cr_expect_eq(reserved(), 96 * MIB);
        cr_expect_eq(spm_find(bench.model, live, &allocation), SPM_OK);
        cr_expect_eq(bench_stats(pool).pending_bytes, 32 * MIB);
}

Test(tick, the_threshold_stays)
{
        pool = new_pool(SPM_GROWTH_TIGHT, 100 * MIB);
        have_idle(GIB);
        tick(DECAY);
        cr_expect_eq(reserved(), 100 * MIB);
}

Test(tick, a_time_that_does_not_grow_changes_nothing)
{
        struct spm_actions actions;
        uint64_t hash;

        have_idle(GIB);
        hash = spm_hash(bench.model);
        cr_expect_eq(spm_tick(bench.model, now, &actions), SPM_OK);
        cr_expect_eq(actions.count, 0u);
        cr_expect_eq(spm_tick(bench.model, now - DECAY, &actions), SPM_OK);
        cr_expect_eq(actions.count, 0u);
        cr_expect_eq(spm_hash(bench.model), hash);
}

Test(tick, the_first_tick_only_tells_the_time)
{
        spm_pool_set_attribute(bench.model, pool, SPM_ATTR_RELEASE_THRESHOLD, SIZE_MAX);
        bench_free(bench_alloc(pool, bench.s, GIB), 0);
        spm_pool_set_attribute(bench.model, pool, SPM_ATTR_RELEASE_THRESHOLD, 0);
        tick(DECAY * 1000);
        cr_expect_eq(reserved(), GIB);
}

Test(tick, pools_without_a_decay_and_those_that_need_a_barrier_are_left_alone)
{
        struct spm_pool_config config = {.kind = SPM_POOL_ASYNC, .growth = SPM_GROWTH_TIGHT};
        spm_pool other = bench_pool(config);
        spm_pool barrier;

        config = (struct spm_pool_config){
                .kind = SPM_POOL_SYNC,
                .context = bench.context,
                .growth = SPM_GROWTH_TIGHT,
                .release_needs_idle = true,
                .decay = DECAY,
        };
        barrier = bench_pool(config);
        bench_free(bench_alloc(other, bench.s, 64 * MIB), 0);
        bench_free(bench_alloc(barrier, 0, 64 * MIB), 0);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_QUERY);
        have_idle(64 * MIB);
        tick(DECAY);
        cr_expect_eq(reserved(), 0);
        cr_expect_eq(bench_stats(other).reserved_current, 64 * MIB);
        cr_expect_eq(bench_stats(barrier).reserved_current, 64 * MIB);
}

/* A pool that has forgotten its peak moves what it has, rather than grow up to it again: what
 * was freed goes where it is needed, and what is not needed goes. */
Test(tick, growth_is_measured_by_what_was_in_use_lately)
{
        uint64_t at[8];
        int i;

        spm_pool_set_attribute(bench.model, pool, SPM_ATTR_RELEASE_THRESHOLD, SIZE_MAX);
        for (i = 0; i < 8; i++)
                at[i] = bench_alloc(pool, bench.s, 32 * MIB);
        for (i = 0; i < 8; i += 2)
                bench_free(at[i], 0);
        tick(1);
        tick(DECAY);
        tick(DECAY);
        tick(DECAY);
        bench_alloc(pool, bench.s, 48 * MIB);
        cr_expect_eq(bench_stats(pool).moves, 128 / 2);
        cr_expect_eq(reserved(), 128 * MIB + 48 * MIB);
}

/* More than the growth mode allows to stay, and more than that at once. */
Test(tick, a_large_segment_goes_when_all_that_exceeds_is_due)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .range_base = BASE / 2,
                .range_size = 64 * GIB,
                .release_threshold = SIZE_MAX,
                .decay = DECAY,
        };

        pool = bench_pool(config);
        bench_alloc(pool, bench.s, 20 * MIB);
        have_idle(256 * MIB);
        spm_pool_set_attribute(bench.model, pool, SPM_ATTR_RELEASE_THRESHOLD, 0);
        tick(DECAY / 5);
        cr_expect_eq(reserved(), (20 + 128) * MIB, "four fifths were due");
        tick(DECAY / 5);
        cr_expect_eq(reserved(), (20 + 128) * MIB, "not all of what is left is due");
        tick(DECAY / 5);
        cr_expect_eq(reserved(), 20 * MIB);
}
