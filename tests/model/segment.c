/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segment -- driver memory tiled by blocks
 */

#include "bench.h"

TestSuite(segment, .init = bench_set_up, .fini = bench_tear_down);

Test(segment, may_not_overlap_another)
{
        spm_segment segment;
        uint64_t base = (uint64_t)1 << 33;

        cr_assert_eq(spm_segment_add(bench.model, bench.async, base, 4 * MIB, NULL, &segment),
                     SPM_OK);
        cr_expect_eq(
                spm_segment_add(bench.model, bench.sync, base + 2 * MIB, 4 * MIB, NULL, &segment),
                SPM_E_INVALID_VALUE);
        cr_expect_eq(
                spm_segment_add(bench.model, bench.sync, base - 2 * MIB, 8 * MIB, NULL, &segment),
                SPM_E_INVALID_VALUE);
        cr_expect_eq(
                spm_segment_add(bench.model, bench.sync, base + 4 * MIB, 2 * MIB, NULL, &segment),
                SPM_OK);
}

Test(segment, must_be_made_of_grains)
{
        spm_segment segment = 77;
        uint64_t base = (uint64_t)1 << 33;

        cr_expect_eq(spm_segment_add(bench.model, bench.async, base + 512, 2 * MIB, NULL, &segment),
                     SPM_E_INVALID_VALUE);
        cr_expect_eq(spm_segment_add(bench.model, bench.async, base, 3 * MIB, NULL, &segment),
                     SPM_E_INVALID_VALUE);
        cr_expect_eq(spm_segment_add(bench.model, bench.async, 0, 2 * MIB, NULL, &segment),
                     SPM_E_INVALID_VALUE);
        cr_expect_eq(spm_segment_add(bench.model, bench.async, base, 0, NULL, &segment),
                     SPM_E_INVALID_VALUE);
        cr_expect_eq(spm_segment_add(bench.model, 99, base, 2 * MIB, NULL, &segment),
                     SPM_E_UNKNOWN);
        cr_expect_eq(segment, 77u);
}

Test(segment, small_blocks_split_and_join_again_when_nothing_else_fits)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 4096);
        uint64_t b = bench_alloc(bench.async, bench.s, 1000);

        cr_expect_eq(b, a + 4096);
        bench_free(a, bench.s);
        cr_expect_eq(bench_alloc(bench.async, bench.s, 1024), a);
        cr_expect_eq(bench_alloc(bench.async, bench.s, 3072), a + 1024);
        bench_free(a, bench.s);
        bench_free(a + 1024, bench.s);
        cr_expect_eq(bench_alloc(bench.async, bench.s, 4096), b + 1024, "there is more");
        bench_alloc(bench.async, bench.s, 2 * MIB - 9216);
        cr_expect_eq(bench_alloc(bench.async, bench.s, 4096), a);
        cr_expect_str_eq(bench.log, "");
}

Test(segment, any_number_of_small_blocks_join_when_nothing_else_fits)
{
        uint64_t base = bench_alloc(bench.async, bench.s, 512);
        unsigned int i;

        for (i = 1; i < 100; i++)
                cr_assert_eq(bench_alloc(bench.async, bench.s, 512), base + i * 512);
        bench_alloc(bench.async, bench.s, 2 * MIB - 51200);
        for (i = 0; i < 100; i++)
                bench_free(base + i * 37 % 100 * 512, bench.s);
        cr_expect_eq(bench_alloc(bench.async, bench.s, 51200), base);
        cr_expect_str_eq(bench.log, "");
}

Test(segment, large_blocks_join_at_once)
{
        uint64_t a = bench_give(bench.async, 16 * MIB);

        cr_assert_eq(bench_alloc(bench.async, bench.s, 2 * MIB), a);
        cr_assert_eq(bench_alloc(bench.async, bench.s, 2 * MIB), a + 2 * MIB);
        bench_alloc(bench.async, bench.s, 2 * MIB);
        bench_free(a, bench.s);
        bench_free(a + 2 * MIB, bench.s);
        cr_expect_eq(bench_alloc(bench.async, bench.s, 3 * MIB), a, "better than what is ready");
}

Test(segment, blocks_are_not_joined_across_a_border)
{
        struct spm_allocation allocation;
        spm_segment segment;
        uint64_t base = (uint64_t)1 << 33;

        spm_segment_add(bench.model, bench.async, base, 2 * MIB, NULL, &segment);
        spm_segment_add(bench.model, bench.async, base + 2 * MIB, 2 * MIB, NULL, &segment);
        cr_expect_eq(bench_stats(bench.async).largest_ready, 2 * MIB);
        bench.no_memory = true;
        cr_expect_eq(bench_try(bench.async, bench.s, 3 * MIB, false, &allocation),
                     SPM_E_OUT_OF_MEMORY);
}

Test(segment, ready_neighbours_of_different_streams_are_joined)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 4096);
        uint64_t b = bench_alloc(bench.async, bench.t, 4096);

        bench_free(a, bench.s);
        bench_free(b, bench.t);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_QUERY);
        cr_expect_eq(bench_stats(bench.async).ready_bytes, 2 * MIB);
        cr_expect_eq(bench_stats(bench.async).largest_ready, 2 * MIB);
}
