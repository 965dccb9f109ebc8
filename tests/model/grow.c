/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grow -- where more memory goes, and how much of it
 *
 * Large blocks are in the upper half of a range. They are freed without a
 * stream, so that their memory is ready at once.
 */

#include "bench.h"
#include "range.h"

TestSuite(grow, .init = bench_set_up, .fini = bench_tear_down);

/* how much */

/* Of a large size, which can be had side by side: @before live, then so much more. */
static void climb_after(enum spm_growth growth, size_t before, size_t size)
{
        spm_pool pool;
        uint64_t at;
        unsigned int i;

        bench_tear_down();
        bench_set_up();
        pool = range_pool(growth);
        at = before ? bench_climb(pool, before) + before : LARGE;
        cr_assert_eq(reserved(pool), before);
        cr_assert_eq(bench_climb(pool, size), at);
        for (i = 0; i < bench.seen_count; i++) {
                cr_assert_eq(bench.seen[i].kind, SPM_ACT_GROW);
                cr_assert_eq(bench.seen[i].address, at, "side by side");
                cr_assert_eq(bench.seen[i].preferred, bench.seen[i].size);
                at += bench.seen[i].size;
        }
        cr_expect_geq(bench_seen(SPM_ACT_GROW), size);
}

static void expect_pieces(enum spm_growth growth, size_t before, size_t size, size_t piece)
{
        climb_after(growth, before, size);
        cr_expect_eq(bench.seen[0].size, piece, "%zu for %zu MiB after %zu",
                     bench.seen[0].size / MIB, size / MIB, before / MIB);
        cr_expect_lt(bench_seen(SPM_ACT_GROW), size + piece);
}

Test(grow, a_piece_is_a_thirty_second_of_the_pool)
{
        expect_pieces(SPM_GROWTH_BALANCED, 0, 3 * MIB, 2 * MIB);
        expect_pieces(SPM_GROWTH_BALANCED, 110 * MIB, 14 * MIB, 2 * MIB);
        expect_pieces(SPM_GROWTH_BALANCED, 116 * MIB, 14 * MIB, 4 * MIB);
        expect_pieces(SPM_GROWTH_BALANCED, 496 * MIB, 14 * MIB, 8 * MIB);
        expect_pieces(SPM_GROWTH_BALANCED, 504 * MIB, 14 * MIB, 16 * MIB);
        expect_pieces(SPM_GROWTH_BALANCED, 3 * GIB, 14 * MIB, 32 * MIB);
        expect_pieces(SPM_GROWTH_SPEED, 496 * MIB, 14 * MIB, 8 * MIB);
        expect_pieces(SPM_GROWTH_SPEED, 3 * GIB, 14 * MIB, 32 * MIB);
        expect_pieces(SPM_GROWTH_TIGHT, 0, 128 * MIB, 2 * MIB);
        expect_pieces(SPM_GROWTH_TIGHT, 3 * GIB, 14 * MIB, 2 * MIB);
}

/* Whatever the mode: what the block covers is not held in vain. */
Test(grow, what_a_large_block_covers_is_in_large_pieces)
{
        expect_pieces(SPM_GROWTH_BALANCED, 0, 16 * MIB, 16 * MIB);
        expect_pieces(SPM_GROWTH_BALANCED, 0, 100 * MIB, 32 * MIB);
        expect_pieces(SPM_GROWTH_BALANCED, 0, 254 * MIB, 32 * MIB);
        expect_pieces(SPM_GROWTH_BALANCED, 0, 256 * MIB, 128 * MIB);
        expect_pieces(SPM_GROWTH_SPEED, 0, 2 * GIB, 128 * MIB);
        expect_pieces(SPM_GROWTH_TIGHT, 0, 254 * MIB, 2 * MIB);
        expect_pieces(SPM_GROWTH_TIGHT, 0, 256 * MIB, 128 * MIB);
}

/* The pool may hold 34 MiB more than the block, but only what lies under it is in a large piece. */
Test(grow, what_a_large_block_does_not_cover_is_in_usual_pieces)
{
        climb_after(SPM_GROWTH_SPEED, 0, 270 * MIB);
        cr_assert_eq(bench.seen_count, 4u);
        cr_expect_eq(bench.seen[1].size, 128 * MIB);
        cr_expect_eq(bench.seen[2].size, 14 * MIB);
        cr_expect_eq(bench.seen[3].size, 2 * MIB);
}

/* Nothing was freed, so that nothing tells of blocks that vary. */
Test(grow, who_only_fills_gets_larger_and_larger_pieces)
{
        expect_pieces(SPM_GROWTH_BALANCED, 4 * GIB - 128 * MIB, 14 * MIB, 32 * MIB);
        expect_pieces(SPM_GROWTH_BALANCED, 4 * GIB, 14 * MIB, 64 * MIB);
        expect_pieces(SPM_GROWTH_BALANCED, 8 * GIB, 14 * MIB, 128 * MIB);
        expect_pieces(SPM_GROWTH_BALANCED, 24 * GIB, 14 * MIB, 128 * MIB);
        expect_pieces(SPM_GROWTH_BALANCED, 4 * GIB - 128 * MIB, GIB, 128 * MIB);
        expect_pieces(SPM_GROWTH_BALANCED, 4 * GIB, GIB, 256 * MIB);
        expect_pieces(SPM_GROWTH_TIGHT, 4 * GIB - 128 * MIB, 64 * MIB, 2 * MIB);
        expect_pieces(SPM_GROWTH_TIGHT, 4 * GIB, 64 * MIB, 64 * MIB);
        expect_pieces(SPM_GROWTH_TIGHT, 8 * GIB, GIB, 512 * MIB);
        expect_pieces(SPM_GROWTH_BALANCED, 16 * GIB, 3 * GIB, GIB);
}

Test(grow, a_free_ends_the_filling)
{
        spm_pool pool = range_pool(SPM_GROWTH_BALANCED);
        uint64_t small = bench_alloc(pool, bench.s, 512);

        bench_climb(pool, 8 * GIB);
        bench_free(small, 0);
        bench_climb(pool, GIB);
        cr_expect_eq(bench.seen[0].size, 128 * MIB);
        bench_climb(pool, 14 * MIB);
        cr_expect_eq(bench.seen[0].size, 32 * MIB);
}

Test(grow, a_made_up_pool_has_no_large_pieces)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .provider = SPM_PROVIDER_MODEL,
                .range_base = BASE,
                .range_size = RANGE,
        };
        spm_pool pool = bench_pool(config);

        cr_assert_neq(bench_climb(pool, 2 * GIB), 0);
        cr_expect_eq(bench_stats(pool).grows, 64);
}

Test(grow, a_piece_is_at_most_what_the_caller_says)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .range_base = BASE,
                .range_size = RANGE,
                .segment_size = 8 * MIB,
        };
        spm_pool pool = bench_pool(config);
        unsigned int i;

        cr_assert_neq(bench_climb(pool, GIB), 0);
        cr_expect_eq(bench.seen_count, GIB / (8 * MIB));
        for (i = 0; i < bench.seen_count; i++)
                cr_expect_eq(bench.seen[i].size, 8 * MIB);
}

Test(grow, without_a_range_a_segment_is_as_large_as_the_request_or_a_piece)
{
        cr_assert_neq(bench_climb(bench.async, 3 * MIB), 0);
        cr_expect_eq(bench.seen[0].address, 0, "anywhere");
        cr_expect_eq(bench.seen[0].size, 4 * MIB);
        cr_expect_eq(bench.seen[0].preferred, 4 * MIB);
        cr_assert_neq(bench_climb(bench.async, 2 * GIB), 0);
        cr_expect_eq(bench.seen[0].preferred, 2 * GIB);
        cr_assert_neq(bench_climb(bench.async, 5 * MIB), 0);
        cr_expect_eq(bench.seen[0].size, 6 * MIB);
        cr_expect_eq(bench.seen[0].preferred, 32 * MIB);
        cr_expect_eq(bench.seen_count, 1u);
}

/* where */

Test(grow, memory_goes_where_the_least_is_missing)
{
        spm_pool pool = range_pool(SPM_GROWTH_BALANCED);
        struct row row = lay_out(pool, 8 * MIB, 6 * MIB);

        bench_free(row.a, 0);
        bench_free(row.b, 0);
        trim(pool, 6 * MIB);
        cr_assert_eq(bench_stats(pool).ready_bytes, 2 * MIB, "the first third of b");
        cr_expect_eq(bench_climb(pool, 6 * MIB), row.b, "all of a is missing");
        cr_expect_eq(bench_seen(SPM_ACT_GROW), 4 * MIB);
        cr_expect_eq(bench.seen[0].address, row.b + 2 * MIB);
        cr_expect_eq(bench_climb(pool, 8 * MIB), row.a);
        cr_expect_eq(bench_seen(SPM_ACT_GROW), 8 * MIB);
        cr_expect_eq(bench_climb(pool, 8 * MIB), row.b + 8 * MIB, "the end of the range");
}

Test(grow, where_as_much_is_missing_memory_goes_to_the_lowest_address)
{
        spm_pool pool = range_pool(SPM_GROWTH_BALANCED);
        struct row row = lay_out(pool, 8 * MIB, 4 * MIB);

        bench_free(row.b, 0);
        bench_free(row.a, 0);
        trim(pool, 0);
        cr_expect_eq(bench_climb(pool, 4 * MIB), row.a);
}

Test(grow, only_what_is_missing_is_asked_for)
{
        spm_pool pool = range_pool(SPM_GROWTH_TIGHT);
        uint64_t a = bench_climb(pool, 5 * MIB);

        cr_assert_eq(bench_seen(SPM_ACT_GROW), 6 * MIB);
        cr_expect_eq(bench_climb(pool, 2 * MIB), a + 5 * MIB);
        cr_expect_eq(bench_seen(SPM_ACT_GROW), 2 * MIB, "a MiB is there");
}

Test(grow, a_small_half_and_a_large_half_grow_by_themselves)
{
        spm_pool pool = range_pool(SPM_GROWTH_BALANCED);

        cr_expect_eq(bench_climb(pool, 1000), BASE);
        cr_expect_eq(bench.seen[0].address, BASE);
        cr_expect_eq(bench_climb(pool, MIB + 512), LARGE);
        cr_expect_eq(bench.seen[0].address, LARGE);
}

/* It is found where it fits, though it could be elsewhere if others were in the way. */
Test(grow, an_alignment_is_not_asked_for_twice)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .range_base = BASE,
                .range_size = RANGE,
                .large_size = MIB,
                .large_align = 64 * KIB,
        };
        spm_pool pool = bench_pool(config);

        cr_assert_eq(bench_climb(pool, 14 * MIB), LARGE);
        cr_expect_eq(reserved(pool), 14 * MIB);
        cr_expect_eq(bench_climb(pool, 5 * MIB + 512), LARGE + 14 * MIB);
        cr_expect_eq(bench_climb(pool, 10 * MIB), LARGE + 19 * MIB + 64 * KIB);
        cr_expect_eq(reserved(pool), 30 * MIB);
}

/* what is refused */

Test(grow, a_growth_that_is_refused_in_the_middle_leaves_a_pool_that_can_be_used)
{
        spm_pool pool = range_pool(SPM_GROWTH_BALANCED);
        uint64_t live = bench_climb(pool, 3 * MIB);
        int granted;

        /* 8 pieces of 128 MiB, then grains. */
        for (granted = 0; granted < 8; granted++) {
                bench.grants = granted + 1;
                bench.no_memory = false;
                cr_expect_eq(bench_climb(pool, GIB), 0, "%d granted", granted);
                cr_expect_eq(bench_stats(pool).live_blocks, 1);
                cr_expect_eq(reserved(pool), 4 * MIB, "what came is given back: %d", granted);
                bench.no_memory = true;
                bench.grants = 0;
                cr_expect_eq(bench_climb(pool, MIB + 512), 0);
        }
        bench.no_memory = false;
        cr_expect_neq(bench_climb(pool, GIB), 0);
        bench_free(live, bench.s);
}

/* So that a device that is almost full is used to its end. */
Test(grow, a_piece_that_is_refused_is_followed_by_what_is_needed)
{
        spm_pool pool = range_pool(SPM_GROWTH_BALANCED);

        bench_climb(pool, 512 * MIB);
        bench.grants = 1;
        cr_expect_eq(bench_climb(pool, 2 * MIB), 0);
        cr_expect_str_eq(bench.log, "GG");
        cr_expect_eq(bench.seen[0].size, 16 * MIB);
        cr_expect_eq(bench.seen[1].size, 2 * MIB);
}

Test(grow, the_cap_is_not_passed_by_a_piece_and_not_by_a_request)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .range_base = BASE,
                .range_size = RANGE,
                .max_size = 130 * MIB,
                .small_size = 512,
        };
        spm_pool pool = bench_pool(config);

        cr_assert_eq(bench_climb(pool, 128 * MIB - 512), BASE, "a pool with a cap is not parted");
        cr_expect_eq(reserved(pool), 128 * MIB);
        cr_expect_eq(bench_climb(pool, 3 * MIB), 0);
        cr_expect_neq(bench_climb(pool, 2 * MIB), 0);
        cr_expect_eq(reserved(pool), 130 * MIB, "not the 4 MiB of a piece");
        cr_expect_eq(bench_climb(pool, MIB), 0);
        cr_expect_neq(bench_climb(pool, 512), 0);
}

Test(grow, a_range_that_is_full_is_no_end)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .range_base = BASE,
                .range_size = 16 * MIB,
        };
        spm_pool pool = bench_pool(config);
        uint64_t a;

        cr_assert_eq(bench_climb(pool, 8 * MIB), BASE + 8 * MIB, "the large half");
        a = bench_climb(pool, 12 * MIB);
        cr_expect_eq(bench.seen[0].address, 0, "anywhere");
        cr_expect_eq(bench.seen[0].size, 12 * MIB);
        cr_expect(a && (a < BASE || a >= BASE + 16 * MIB));
        bench_free(a, 0);
        trim(pool, 0);
        cr_expect_eq(reserved(pool), 8 * MIB);
}

/* a provider that makes it up */

Test(grow, a_made_up_range_that_is_full_is_the_end)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .provider = SPM_PROVIDER_MODEL,
                .range_base = BASE,
                .range_size = 16 * MIB,
        };
        spm_pool pool = bench_pool(config);

        cr_expect_neq(bench_climb(pool, 8 * MIB), 0);
        cr_expect_eq(bench_climb(pool, 10 * MIB), 0);
        cr_expect_eq(bench_climb(pool, 1000), BASE, "the other half");
}

/* what is refused */

Test(grow, a_request_that_nobody_can_serve_leaves_no_mark)
{
        spm_pool pool = range_pool(SPM_GROWTH_TIGHT);
        uint64_t at[8];
        int i;

        for (i = 0; i < 8; i++)
                at[i] = bench_climb(pool, 32 * MIB);
        bench.no_memory = true;
        cr_expect_eq(bench_climb(pool, (size_t)1 << 36), 0);
        bench.no_memory = false;
        for (i = 0; i < 8; i += 2)
                bench_free(at[i], 0);
        cr_assert_neq(bench_climb(pool, 48 * MIB), 0);
        cr_expect_leq(reserved(pool), 256 * MIB, "what is idle makes way as before");
}
