/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large -- segments that were obtained for a large block, after it was freed
 *
 * They stay for blocks that cover them. For anything less they are given back,
 * and what is needed is obtained in usual pieces.
 */

#include "bench.h"
#include "range.h"

#define PIECE (128 * MIB)
#define DECAY ((uint64_t)1000000)

static spm_pool pool;
static uint64_t at; /* of two such segments */

static spm_pool large_pool(struct spm_pool_config config)
{
        config.kind = SPM_POOL_ASYNC;
        config.range_base = BASE;
        config.range_size = RANGE;
        config.release_threshold = SIZE_MAX;
        config.decay = DECAY;
        return bench_pool(config);
}

static void set_up(void)
{
        bench_set_up();
        pool = large_pool((struct spm_pool_config){0});
        at = bench_climb(pool, 2 * PIECE);
        cr_assert_eq(bench.seen_count, 2u);
}

TestSuite(large, .init = set_up, .fini = bench_tear_down);

static void expect_kept(size_t size)
{
        cr_expect_eq(bench_climb(pool, size), at, "%zu MiB", size / MIB);
        cr_expect_eq(bench.seen_count, 0u, "%zu MiB", size / MIB);
        cr_expect_eq(reserved(pool), 2 * PIECE);
        bench_free(at, 0);
}

Test(large, serve_blocks_that_cover_seven_eighths)
{
        bench_free(at, 0);
        expect_kept(2 * PIECE);
        expect_kept(PIECE);
        expect_kept(PIECE / 8 * 7);
        expect_kept(PIECE + PIECE / 8 * 7);
}

Test(large, are_given_back_for_a_block_that_covers_less)
{
        bench_free(at, 0);
        cr_expect_eq(bench_climb(pool, PIECE + PIECE / 8 * 7 - 512), at);
        cr_expect_eq(bench_seen(SPM_ACT_RELEASE), PIECE, "the second one");
        cr_expect_eq(bench.seen[0].address, at + PIECE);
        cr_expect(!bench.seen[0].moves);
        cr_expect_eq(bench_seen(SPM_ACT_GROW), PIECE / 8 * 7);
        cr_expect_eq(bench.seen[1].size, 8 * MIB, "in usual pieces");
}

Test(large, are_given_back_one_after_the_other)
{
        bench_free(at, 0);
        cr_expect_eq(bench_climb(pool, 20 * MIB), at);
        cr_expect_eq(bench_seen(SPM_ACT_RELEASE), 2 * PIECE);
        cr_expect_eq(reserved(pool), 20 * MIB);
}

/* What there is to ask for comes in a list of its own. */
Test(large, are_given_back_before_anything_else_is_asked_for)
{
        size_t size = (size_t)SPM_ACTIONS_MAX * PIECE;
        uint64_t pending;

        bench_free(at, 0);
        at = bench_climb(pool, size);
        pending = bench_alloc(pool, bench.t, PIECE);
        bench_free(pending, bench.t);
        cr_assert_eq(bench_stats(pool).pending_bytes, PIECE);
        bench_free(at, 0);
        cr_expect_neq(bench_climb(pool, 20 * MIB), 0);
        cr_expect_eq(bench_seen(SPM_ACT_RELEASE), size);
}

Test(large, stay_where_a_part_is_in_use)
{
        uint64_t small;

        bench_free(at, 0);
        at = bench_climb(pool, PIECE / 8 * 7);
        small = bench_climb(pool, 10 * MIB);
        cr_expect_eq(small, at + PIECE / 8 * 7);
        bench_free(at, 0);
        cr_expect_eq(bench_climb(pool, 20 * MIB), at);
        cr_expect_eq(bench.seen_count, 0u);
        cr_expect_eq(reserved(pool), 2 * PIECE);
}

static void expect_usual_pieces(void)
{
        cr_assert_neq(bench_climb(pool, 4 * PIECE), 0);
        cr_expect_eq(bench.seen[bench.seen_count - 1].kind, SPM_ACT_GROW);
        cr_expect_lt(bench.seen[bench.seen_count - 1].size, PIECE);
}

Test(large, are_not_asked_for_again_until_the_decay_time_has_passed)
{
        struct spm_actions actions;

        bench_free(at, 0);
        bench_climb(pool, 20 * MIB);
        expect_usual_pieces();
        spm_tick(bench.model, 1, &actions);
        expect_usual_pieces();
        spm_tick(bench.model, 1 + DECAY, &actions);
        cr_assert_neq(bench_climb(pool, 4 * PIECE), 0);
        cr_expect_eq(bench.seen[0].size, PIECE);
}

/* It may not be given back, but tells as much of the program. */
Test(large, are_not_asked_for_again_where_one_is_cut_that_is_pending)
{
        bench_free(at, bench.s);
        cr_expect_eq(bench_climb(pool, 20 * MIB), at);
        cr_expect_eq(bench.seen_count, 0u);
        expect_usual_pieces();
}

Test(large, are_what_the_caller_says)
{
        spm_segment segment;

        bench_tear_down();
        bench_set_up();
        pool = large_pool((struct spm_pool_config){.segment_size = 4 * MIB});
        at = bench_climb(pool, 2 * PIECE);
        cr_expect_eq(bench.seen[0].size, 4 * MIB);
        cr_assert_eq(spm_segment_add(bench.model, pool, at + 4 * PIECE, PIECE, NULL, &segment),
                     SPM_OK);
        cr_expect_eq(bench_climb(pool, 20 * MIB), at + 4 * PIECE);
        cr_expect_eq(bench.seen_count, 0u);
}

/* Giving back waits for the device there (F10). */
Test(large, stay_where_giving_back_takes_a_barrier)
{
        bench_tear_down();
        bench_set_up();
        pool = large_pool((struct spm_pool_config){.release_needs_idle = true});
        at = bench_climb(pool, 2 * PIECE);
        bench_free(at, 0);
        cr_expect_eq(bench_climb(pool, 20 * MIB), at);
        cr_expect_eq(bench.seen_count, 0u);
}
