/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Move -- what makes way when a pool grows
 *
 * A pool that holds all it may gives back segments that nobody uses, so that
 * their memory can be had again where it is needed.
 */

#include <string.h>

#include "bench.h"
#include "range.h"

TestSuite(move, .init = bench_set_up, .fini = bench_tear_down);

/* 20 blocks of 32 MiB, and every second one freed: what is larger does not fit between them. */
static spm_pool riddle(enum spm_growth growth)
{
        spm_pool pool = range_pool(growth);
        uint64_t at[20];
        int i;

        for (i = 0; i < 20; i++)
                at[i] = bench_climb(pool, 32 * MIB);
        cr_assert_eq(reserved(pool), 640 * MIB);
        for (i = 0; i < 20; i += 2)
                bench_free(at[i], 0);
        return pool;
}

static void expect_bound(enum spm_growth growth, uint64_t most, unsigned int before_moves)
{
        spm_pool pool = riddle(growth);
        unsigned int i;

        for (i = 0; i < 6; i++) {
                cr_assert_neq(bench_climb(pool, 48 * MIB), 0);
                cr_expect_eq(bench_stats(pool).moves != 0, i >= before_moves, "block %u", i);
        }
        cr_expect_leq(bench_stats(pool).reserved_high, most);
        cr_expect_eq(bench_stats(pool).moves, bench_stats(pool).releases);
        cr_expect_gt(bench_stats(pool).reserved_high + 16 * MIB, most, "but all it may");
}

/* 640 MiB were in use; a piece is 16 MiB then. */
Test(move, a_balanced_pool_holds_a_sixty_fourth_and_a_piece_more_than_was_in_use)
{
        expect_bound(SPM_GROWTH_BALANCED, (640 + 10 + 16) * MIB, 0);
}

Test(move, a_fast_pool_holds_a_twelfth_and_32_mib_more_than_was_in_use)
{
        expect_bound(SPM_GROWTH_SPEED, (640 + 32) * MIB + 640 * MIB / 12, 1);
}

Test(move, a_tight_pool_holds_what_was_in_use)
{
        expect_bound(SPM_GROWTH_TIGHT, 640 * MIB, 0);
}

Test(move, idle_segments_move_before_memory_is_asked_for)
{
        spm_pool pool = riddle(SPM_GROWTH_TIGHT);
        unsigned int i;

        cr_assert_neq(bench_climb(pool, 48 * MIB), 0);
        cr_expect_eq(bench_seen(SPM_ACT_RELEASE), 48 * MIB);
        cr_expect_eq(bench_seen(SPM_ACT_GROW), 48 * MIB);
        for (i = 0; i < bench.seen_count; i++)
                cr_expect_eq(bench.seen[i].moves, bench.seen[i].kind == SPM_ACT_RELEASE);
        cr_expect_eq(bench_stats(pool).moves, 24);
        cr_expect_eq(bench_stats(pool).releases, 24);
        cr_expect_eq(reserved(pool), 640 * MIB);
}

/* Memory that the pool never had in use, and that has been idle for less time than the place. */
Test(move, nothing_of_the_place_makes_way)
{
        spm_pool pool = range_pool(SPM_GROWTH_TIGHT);
        struct row row = lay_out(pool, 8 * MIB, 12 * MIB);
        unsigned int i;

        bench_free(row.b, 0);
        trim(pool, 16 * MIB);
        bench_free(row.a, 0);
        bench_give(pool, 8 * MIB);
        cr_assert_eq(reserved(pool), 24 * MIB);
        cr_assert_eq(bench_stats(pool).ready_bytes, 20 * MIB);
        cr_expect_eq(bench_climb(pool, 12 * MIB), row.b);
        cr_expect_eq(bench_seen(SPM_ACT_GROW), 8 * MIB);
        cr_expect_eq(bench_seen(SPM_ACT_RELEASE), 8 * MIB);
        for (i = 0; i < bench.seen_count; i++)
                if (bench.seen[i].kind == SPM_ACT_RELEASE)
                        cr_expect(bench.seen[i].address + bench.seen[i].size <= row.b ||
                                  bench.seen[i].address >= row.b + 12 * MIB);
}

Test(move, what_is_given_back_only_after_a_barrier_does_not_move)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_SYNC,
                .context = bench.context,
                .growth = SPM_GROWTH_TIGHT,
                .range_base = BASE,
                .range_size = RANGE,
                .release_needs_idle = true,
        };
        spm_pool pool = bench_pool(config);
        uint64_t a;

        a = bench_alloc(pool, 0, 32 * MIB);
        bench_alloc(pool, 0, 2 * MIB);
        bench_free(a, 0);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_QUERY);
        bench_alloc(pool, 0, 64 * MIB);
        cr_expect_null(strchr(bench.log, 'M'));
        cr_expect_eq(bench_stats(pool).moves, 0);
}

Test(move, a_made_up_pool_grows_and_moves_without_actions)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .provider = SPM_PROVIDER_MODEL,
                .growth = SPM_GROWTH_TIGHT,
                .range_base = BASE,
                .range_size = RANGE,
        };
        spm_pool pool = bench_pool(config);
        uint64_t at[20];
        int i;

        for (i = 0; i < 20; i++)
                at[i] = bench_climb(pool, 32 * MIB);
        for (i = 0; i < 20; i += 2)
                bench_free(at[i], 0);
        cr_expect_eq(bench_climb(pool, 48 * MIB), at[19] + 32 * MIB);
        cr_expect_eq(bench.seen_count, 0u);
        cr_expect_eq(bench_stats(pool).grows, 320 + 24);
        cr_expect_eq(bench_stats(pool).moves, 24);
        cr_expect_eq(reserved(pool), 640 * MIB);
}

/* 640 MiB in blocks of 32, after @little MiB that are in grains and idle now. */
static spm_pool with_little(unsigned int little, uint64_t large[20])
{
        spm_pool pool = range_pool(SPM_GROWTH_BALANCED);
        uint64_t at[64];
        unsigned int i;

        for (i = 0; i < little; i++)
                at[i] = bench_climb(pool, MIB);
        for (i = 0; i < 20; i++)
                large[i] = bench_climb(pool, 32 * MIB);
        for (i = 0; i < little; i++)
                bench_free(at[i], 0);
        cr_assert_eq(reserved(pool), (640 + little) * MIB);
        return pool;
}

static uint64_t grains_moved(void)
{
        uint64_t bytes = 0;
        unsigned int i;

        for (i = 0; i < bench.seen_count; i++)
                if (bench.seen[i].kind == SPM_ACT_RELEASE && bench.seen[i].size == 2 * MIB)
                        bytes += bench.seen[i].size;
        return bytes;
}

Test(move, what_is_little_moves_last)
{
        uint64_t large[20];
        spm_pool pool = with_little(8, large);
        int i;

        for (i = 0; i < 20; i += 2)
                bench_free(large[i], 0);
        for (i = 0; i < 3; i++)
                cr_assert_neq(bench_climb(pool, 48 * MIB), 0);
        cr_expect_gt(bench_stats(pool).moves, 0);
        cr_expect_eq(grains_moved(), 0, "though it is idle for longest");
}

/* 688 MiB will be in use, and 10.75 and 16 more may be held: here that is passed by 5.25. */
Test(move, what_is_little_stays_where_it_is_not_much)
{
        uint64_t large[20];
        spm_pool pool = with_little(32, large);

        cr_assert_neq(bench_climb(pool, 48 * MIB), 0);
        cr_expect_eq(grains_moved(), 0);
        cr_expect_eq(reserved(pool), 720 * MIB);
}

/* Here by 13.25, of which 8 are no matter. */
Test(move, what_is_little_and_much_moves_until_it_is_not)
{
        uint64_t large[20];
        spm_pool pool = with_little(40, large);

        cr_assert_neq(bench_climb(pool, 48 * MIB), 0);
        cr_expect_eq(grains_moved(), 6 * MIB);
}

/* The cap is what counts then: 6 MiB of 1024 are little and idle, and 16 are wanted. */
Test(move, what_is_little_moves_where_there_is_a_cap)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .range_base = BASE,
                .range_size = RANGE,
                .max_size = 1024 * MIB,
                .release_threshold = 1024 * MIB,
        };
        spm_pool pool = bench_pool(config);
        uint64_t little[3];
        int i;

        for (i = 0; i < 3; i++) {
                little[i] = bench_climb(pool, 2 * MIB);
                bench_climb(pool, 2 * MIB);
        }
        bench_climb(pool, 1000 * MIB);
        for (i = 0; i < 3; i++)
                bench_free(little[i], bench.s);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
        cr_assert_neq(bench_climb(pool, 16 * MIB), 0);
        cr_expect_eq(grains_moved(), 4 * MIB);
        cr_expect_leq(reserved(pool), 1024 * MIB);
}
