/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heap -- small and large blocks apart, and what is beside a hole used last
 */

#include "bench.h"

#define BASE  ((uint64_t)1 << 45)
#define GIB   ((size_t)1 << 30)
#define RANGE (64 * GIB)
#define LARGE (BASE + RANGE / 2)

static spm_pool pool;

static void set_up(void)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .range_base = BASE,
                .range_size = RANGE,
                .release_threshold = SIZE_MAX,
        };

        bench_set_up();
        pool = bench_pool(config);
}

TestSuite(heap, .init = set_up, .fini = bench_tear_down);

/* The halves of a pool that is small help each other: it has had so much in use that it is not. */
static void outgrow(void)
{
        struct spm_actions actions;

        bench_free(bench_alloc(pool, bench.s, 300 * MIB), bench.s);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        cr_assert_eq(spm_trim(bench.model, pool, 0, NULL, &actions), SPM_OK);
        bench_do(&actions, NULL);
        cr_assert_eq(bench_stats(pool).reserved_current, 0);
}

static void trim(size_t keep)
{
        struct spm_actions actions;

        cr_assert_eq(spm_trim(bench.model, pool, keep, NULL, &actions), SPM_OK);
}

Test(heap, blocks_of_up_to_a_mib_are_in_one_half_and_larger_ones_in_the_other)
{
        static const size_t sizes[] = {1,   1000,    32 * KIB,    32 * KIB + 1,
                                       MIB, MIB + 1, 2 * MIB + 1, 100 * MIB};
        unsigned int i;

        for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                uint64_t a = bench_alloc(pool, bench.s, sizes[i]);

                cr_expect_eq(a >= LARGE, sizes[i] > MIB, "%zu bytes", sizes[i]);
                cr_expect(a >= BASE && a < BASE + RANGE);
        }
}

Test(heap, what_one_half_has_the_other_uses_only_where_memory_is_short)
{
        uint64_t large;
        uint64_t small;

        outgrow();
        large = bench_alloc(pool, bench.s, 14 * MIB);
        /* The pool may hold as much again, so that nothing has to make way. */
        bench_free(large, 0);
        trim(4 * MIB);
        small = bench_alloc(pool, bench.s, MIB);
        cr_expect_eq(small, BASE);
        cr_expect_str_eq(bench.log, "G");
        bench_alloc(pool, bench.s, MIB);
        bench.no_memory = true;
        small = bench_alloc(pool, bench.s, MIB);
        cr_expect_eq(small, large);
        bench_free(small, bench.s);
        cr_expect_eq(bench_alloc(pool, bench.s, 4 * MIB), large, "and it comes back whole");
}

Test(heap, a_pool_that_is_small_does_not_grow_for_what_the_other_half_has)
{
        uint64_t large = bench_alloc(pool, bench.s, 14 * MIB);

        bench_free(large, 0);
        cr_expect_eq(bench_alloc(pool, bench.s, MIB), large);
        cr_expect_str_eq(bench.log, "");
        cr_expect_eq(bench_stats(pool).reserved_current, 14 * MIB);
        cr_expect_lt(bench_alloc(pool, bench.s, 300 * KIB), LARGE, "it would take a MiB there");
}

Test(heap, a_pool_that_was_promised_an_amount_is_not_parted)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .range_base = BASE + RANGE,
                .range_size = RANGE,
                .max_size = 4 * MIB,
        };
        spm_pool capped = bench_pool(config);
        uint64_t small = bench_alloc(capped, bench.s, MIB);

        cr_expect_eq(bench_alloc(capped, bench.s, 3 * MIB), small + MIB);
        cr_expect_eq(bench_stats(capped).reserved_current, 4 * MIB);
}

/* The record of either may be the one that remains; what is free is one block, in order. */
Test(heap, what_is_freed_beside_free_memory_is_one_block_with_it)
{
        uint64_t at[5];
        uint64_t all;
        unsigned int i;

        bench_free(bench_alloc(pool, bench.s, 64 * MIB), 0);
        all = bench_stats(pool).largest_ready;
        for (i = 0; i < 5; i++)
                at[i] = bench_alloc(pool, bench.s, 5 * MIB);
        cr_expect_eq(bench_stats(pool).largest_ready, all - 25 * MIB);
        bench_free(at[4], 0);
        cr_expect_eq(bench_stats(pool).largest_ready, all - 20 * MIB, "what is behind it is free");
        bench_free(at[1], 0);
        cr_expect_eq(bench_stats(pool).largest_ready, all - 20 * MIB, "nothing beside it is");
        bench_free(at[2], 0);
        cr_expect_eq(bench_stats(pool).ready_bytes, all - 10 * MIB, "what is before it is");
        cr_expect_eq(bench_alloc(pool, bench.s, 10 * MIB), at[1], "and fits");
        bench_free(at[1], 0);
        bench_free(at[3], 0);
        cr_expect_eq(bench_stats(pool).largest_ready, all - 5 * MIB, "on both sides");
        bench_free(at[0], 0);
        cr_expect_eq(bench_stats(pool).largest_ready, all);
}

/* holes */

Test(heap, what_is_beside_a_hole_is_used_last)
{
        uint64_t inner = bench_alloc(pool, bench.s, 8 * MIB);
        uint64_t outer;

        bench_alloc(pool, bench.s, 2 * MIB);
        outer = bench_alloc(pool, bench.s, 4 * MIB);
        bench_free(inner, 0);
        bench_free(outer, 0);
        cr_expect_eq(bench_alloc(pool, bench.s, 4 * MIB), inner, "though the other fits exactly");
        cr_expect_eq(bench_alloc(pool, bench.s, 4 * MIB), inner + 4 * MIB);
        cr_expect_eq(bench_alloc(pool, bench.s, 4 * MIB), outer);
        cr_expect_str_eq(bench.log, "");
}

/* A hole, a ready block, a live one: what is left stays with the hole. */
Test(heap, beside_a_hole_the_far_end_is_served)
{
        uint64_t hole = bench_alloc(pool, bench.s, 4 * MIB);
        uint64_t ready = bench_alloc(pool, bench.s, 4 * MIB);

        bench_alloc(pool, bench.s, 2 * MIB);
        bench_free(hole, 0);
        trim(0);
        cr_assert_eq(bench_stats(pool).reserved_current, 6 * MIB);
        bench_free(ready, 0);
        cr_expect_eq(bench_alloc(pool, bench.s, 3 * MIB - 512), ready + MIB + 512);
        cr_expect_str_eq(bench.log, "");
}

Test(heap, between_two_holes_and_before_one_the_near_end_is_served)
{
        uint64_t hole = bench_alloc(pool, bench.s, 4 * MIB);
        uint64_t ready = bench_alloc(pool, bench.s, 4 * MIB);

        bench_free(hole, 0);
        trim(0);
        bench_free(ready, 0);
        cr_expect_eq(bench_alloc(pool, bench.s, 2 * MIB), ready);
        cr_expect_eq(bench_alloc(pool, bench.s, 2 * MIB), ready + 2 * MIB);
}

/* When a hole is filled, what was beside it is not any more. */
Test(heap, a_hole_that_is_filled_is_no_longer_avoided)
{
        uint64_t a = bench_alloc(pool, bench.s, 4 * MIB);
        uint64_t b = bench_alloc(pool, bench.s, 6 * MIB);
        uint64_t c;

        bench_alloc(pool, bench.s, 2 * MIB);
        c = bench_alloc(pool, bench.s, 8 * MIB);
        bench_alloc(pool, bench.s, 2 * MIB);
        bench_free(a, 0);
        trim(0);
        bench_free(b, 0);
        bench_free(c, 0);
        cr_expect_eq(bench_alloc(pool, bench.s, 5 * MIB), c, "b is beside a hole");
        bench_free(c, 0);
        cr_assert_eq(bench_alloc(pool, bench.s, 10 * MIB), a, "the hole, and b");
        cr_expect_str_eq(bench.log, "GG");
        bench_free(a, 0);
        cr_expect_eq(bench_alloc(pool, bench.s, 5 * MIB), c, "the smaller one");
        cr_expect_eq(bench_alloc(pool, bench.s, 9 * MIB), a);
}

Test(heap, the_largest_ready_block_may_be_beside_a_hole)
{
        bench_free(bench_alloc(pool, bench.s, 4 * MIB), 0);
        cr_expect_eq(bench_stats(pool).ready_bytes, 4 * MIB);
        cr_expect_eq(bench_stats(pool).largest_ready, 4 * MIB);
        bench_alloc(pool, bench.s, 1000);
        cr_expect_eq(bench_stats(pool).largest_ready, 4 * MIB);
}

/* segments of a range */

Test(heap, each_segment_of_a_range_is_given_back_by_itself)
{
        uint64_t a = bench_alloc(pool, bench.s, 4 * MIB);
        uint64_t b = bench_alloc(pool, bench.s, 3 * MIB);
        struct spm_allocation allocation;

        bench_free(a, 0);
        trim(0);
        cr_expect_eq(bench_stats(pool).reserved_current, 4 * MIB, "two segments of four");
        cr_expect_eq(spm_find(bench.model, a, &allocation), SPM_E_FOREIGN);
        cr_expect_eq(spm_find(bench.model, b, &allocation), SPM_OK);
        bench_free(b, 0);
        trim(2 * MIB);
        cr_expect_eq(bench_stats(pool).reserved_current, 2 * MIB);
        cr_expect_eq(bench_stats(pool).segments, 1);
        trim(0);
        cr_expect_eq(bench_stats(pool).segments, 0);
}

Test(heap, a_block_may_lie_in_several_segments_and_pins_them_all)
{
        uint64_t a = bench_alloc(pool, bench.s, 5 * MIB);
        struct spm_allocation allocation;
        spm_segment segment;

        trim(0);
        cr_expect_eq(bench_stats(pool).segments, 3);
        cr_assert_eq(spm_find(bench.model, a + 5 * MIB - 1, &allocation), SPM_OK);
        cr_expect_eq(allocation.segment_base, a, "the one it begins in");
        cr_expect_eq(allocation.segment_size, 2 * MIB);
        cr_expect_eq(spm_segment_add(bench.model, pool, a + 4 * MIB, 2 * MIB, NULL, &segment),
                     SPM_E_INVALID_VALUE, "there is one");
        cr_expect_eq(spm_segment_add(bench.model, pool, a + 4 * MIB, 4 * MIB, NULL, &segment),
                     SPM_E_INVALID_VALUE, "partly");
        cr_expect_eq(spm_segment_add(bench.model, pool, a + 8 * MIB, 4 * MIB, NULL, &segment),
                     SPM_OK, "behind a hole");
}

Test(heap, exported_memory_of_a_range_is_given_back_in_whole_segments)
{
        uint64_t a = bench_alloc(pool, bench.s, 5 * MIB);
        uint64_t b = bench_alloc(pool, bench.s, 2 * MIB);
        uint64_t c = bench_alloc(pool, bench.s, 2 * MIB);

        cr_assert_eq(spm_export(bench.model, a), SPM_OK);
        bench_free(a, 0);
        trim(0);
        cr_expect_eq(bench_stats(pool).sealed_bytes, MIB, "b is in its last segment");
        cr_expect_eq(bench_stats(pool).reserved_current, 6 * MIB);
        bench_free(b, 0);
        trim(0);
        cr_expect_eq(bench_stats(pool).sealed_bytes, 0);
        cr_expect_eq(bench_stats(pool).reserved_current, 4 * MIB, "and so is c in that of b");
        bench_free(c, 0);
        trim(0);
        cr_expect_eq(bench_stats(pool).reserved_current, 0);
}

Test(heap, exported_memory_of_many_segments_is_given_back_in_steps)
{
        uint64_t a = bench_alloc(pool, bench.s, 7 * GIB);
        struct spm_actions actions;
        unsigned int steps = 0;
        size_t sum = 0;
        size_t released;
        enum spm_status status;

        cr_assert_eq(spm_export(bench.model, a), SPM_OK);
        bench_free(a, 0);
        do {
                cr_assert_lt(steps++, 100u);
                status = spm_trim(bench.model, pool, 0, &released, &actions);
                cr_expect_gt(actions.count, 0u);
                cr_expect_eq(bench_stats(pool).ready_bytes, 0, "I10");
                sum += released;
                bench_do(&actions, NULL);
        } while (status == SPM_AGAIN);
        cr_expect_eq(sum, 7 * GIB);
        cr_expect_gt(steps, 1u);
        cr_expect_eq(bench_stats(pool).reserved_current, 0);
}

Test(heap, a_small_block_is_not_cut_out_of_a_large_one_that_its_stream_has_freed)
{
        uint64_t a;
        uint64_t b;

        outgrow();
        a = bench_alloc(pool, bench.s, 3 * MIB);
        bench_free(a, bench.s);
        b = bench_alloc(pool, bench.s, 600 << 10);
        cr_expect(b < a || b >= a + 3 * MIB);
        cr_expect_eq(bench_alloc(pool, bench.s, 3 * MIB), a);
}
