/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sliced -- pages of one size that are cut into slices
 */

#include "bench.h"
#include "shelves.h"

TestSuite(sliced, .init = bench_set_up, .fini = bench_tear_down);

Test(sliced, a_cap_is_so_many_whole_pages_as_fit)
{
        spm_pool pool = shelves_pool("sliced:page=32M,cap=100M");
        unsigned int i;

        for (i = 0; i < 3; i++)
                bench_alloc(pool, bench.s, 32 * MIB);
        cr_expect_eq(shelves_stats(pool, 0).pages, 3);
        cr_expect_eq(shelves_refused(pool, 1), SPM_E_OUT_OF_MEMORY);
        cr_expect_eq(bench_stats(pool).reserved_current, 96 * MIB);
}

Test(sliced, a_cap_below_a_page_makes_the_page_smaller)
{
        spm_pool pool = shelves_pool("sliced:page=32M,cap=10485773,shrink");

        cr_expect_eq(shelves_stats(pool, 0).page, 10 * MIB, "10 MiB and 13, rounded down");
        cr_expect_eq(shelves_stats(pool, 0).pages_most, 1);
        bench_alloc(pool, bench.s, 10 * MIB);
        cr_expect_eq(shelves_refused(pool, 1), SPM_E_OUT_OF_MEMORY);
        cr_expect_eq(shelves_refused(pool, 10 * MIB + 1), SPM_E_TOO_BIG, "slices shrink, too");
        cr_expect_eq(shelves_stats(pool, 0).reserved, 10 * MIB);
}

Test(sliced, a_cap_between_grains_makes_the_page_smaller_by_itself)
{
        spm_pool pool = shelves_pool("sliced:page=1000,cap=1001");

        cr_expect_eq(shelves_stats(pool, 0).page, 768);
        cr_expect_eq(shelves_stats(pool, 0).pages_most, 1);
}

Test(sliced, a_cap_below_a_grain_leaves_no_page)
{
        spm_pool pool = shelves_pool("sliced:page=1K,cap=255,shrink");

        cr_expect_eq(shelves_refused(pool, 1), SPM_E_OUT_OF_MEMORY);
        cr_expect_eq(shelves_refusal(pool).limit, 0);
        cr_expect_eq(shelves_stats(pool, 0).pages_most, 0);
        cr_expect_eq(bench_stats(pool).reserved_high, 0);
}

Test(sliced, what_is_larger_than_a_slice_is_not_taken)
{
        spm_pool pool = shelves_pool("sliced:page=1M,slice=64K,cap=4M;sliced:page=1M,slice=32K");

        bench_alloc(pool, bench.s, 64 * KIB);
        cr_expect_eq(shelves_stats(pool, 0).live_blocks, 1);
        cr_expect_eq(shelves_refused(pool, 64 * KIB + 1), SPM_E_TOO_BIG);
        cr_expect_eq(shelves_refusal(pool).fault, SPM_LAYOUT_TOO_BIG);
        cr_expect_eq(shelves_refusal(pool).value, 64 * KIB + 1);
        cr_expect_eq(shelves_refusal(pool).limit, MIB, "without a cap a page is the largest");
}

Test(sliced, without_a_cap_it_takes_what_leaves_less_than_a_fifth_of_a_page)
{
        spm_pool open = shelves_pool("sliced:page=25600,slice=256");
        spm_pool capped = shelves_pool("sliced:page=25600,slice=256,cap=1M");

        cr_expect_eq(shelves_refused(open, 80 * 256), SPM_E_TOO_BIG, "it would leave a fifth");
        bench_alloc(open, bench.s, 80 * 256 + 1);
        bench_alloc(open, bench.s, 100 * 256);
        cr_expect_eq(shelves_refused(capped, 81 * 256), SPM_E_TOO_BIG);
        cr_expect_eq(shelves_refusal(capped).limit, 256);
}

Test(sliced, the_first_hole_of_the_first_page_is_taken)
{
        spm_pool pool = shelves_pool("sliced:page=1K");
        uint64_t at[8];
        unsigned int i;

        for (i = 0; i < 8; i++)
                at[i] = bench_alloc(pool, bench.s, 256);
        cr_expect_eq(shelves_stats(pool, 0).pages, 2);
        shelves_free(at[6]);
        shelves_free(at[1]);
        shelves_free(at[2]);
        cr_expect_eq(bench_alloc(pool, bench.s, 256), at[1], "the remainder stays free");
        cr_expect_eq(bench_alloc(pool, bench.s, 256), at[2]);
        cr_expect_eq(bench_alloc(pool, bench.s, 1), at[6]);
}

Test(sliced, pages_are_not_joined)
{
        spm_pool pool = shelves_pool("sliced:page=1K,cap=2K");
        uint64_t first = bench_alloc(pool, bench.s, 1024);
        uint64_t second = bench_alloc(pool, bench.s, 1024);

        cr_assert_eq(second, first + 1024, "they lie side by side");
        shelves_free(first);
        shelves_free(second);
        bench_alloc(pool, bench.s, 512);
        bench_alloc(pool, bench.s, 512);
        bench_alloc(pool, bench.s, 512);
        cr_expect_eq(shelves_refused(pool, 1024), SPM_E_OUT_OF_MEMORY,
                     "512 bytes of one are no page");
}

Test(sliced, slices_are_joined_before_it_fails)
{
        spm_pool pool = shelves_pool("sliced:page=1K,cap=1K");
        uint64_t at[4];
        unsigned int i;

        for (i = 0; i < 4; i++)
                at[i] = bench_alloc(pool, bench.s, 256);
        for (i = 0; i < 3; i++)
                bench_free(at[i], bench.s);
        /* Nothing was observed: the stream has all of it in order. */
        cr_expect_eq(bench_alloc(pool, bench.s, 768), at[0]);
        cr_expect_eq(bench_stats(pool).reserved_current, 1024);
}

Test(sliced, what_is_ready_is_joined_with_what_the_stream_has_freed)
{
        spm_pool pool = shelves_pool("sliced:page=1K,cap=1K");
        uint64_t first = bench_alloc(pool, bench.s, 256);
        uint64_t second = bench_alloc(pool, bench.s, 256);
        struct spm_allocation both;

        bench_alloc(pool, bench.t, 512);
        shelves_free(first);
        bench_free(second, bench.s);
        cr_expect_eq(bench_try(pool, bench.t, 512, false, &both), SPM_E_OUT_OF_MEMORY);
        cr_expect_eq(bench_try(pool, bench.s, 512, false, &both), SPM_OK);
        cr_expect_eq(both.address, first);
}

Test(sliced, a_full_shelf_is_full_for_a_moment)
{
        spm_pool pool = shelves_pool("sliced:page=1K,cap=2K");
        uint64_t last;
        unsigned int i;

        for (i = 0; i < 8; i++)
                last = bench_alloc(pool, bench.s, 200);
        cr_expect_eq(shelves_refused(pool, 200), SPM_E_OUT_OF_MEMORY);
        cr_expect_eq(shelves_refusal(pool).fault, SPM_LAYOUT_CAPACITY_EXCEEDED);
        cr_expect(spm_layout_is_transient(shelves_refusal(pool).fault));
        cr_expect_eq(shelves_refusal(pool).value, 200);
        cr_expect_eq(shelves_refusal(pool).limit, 2048);
        cr_expect_eq(shelves_refusal(pool).in_use, 1600);
        shelves_free(last);
        cr_expect_eq(bench_alloc(pool, bench.s, 200), last);
}

Test(sliced, only_whole_pages_go_and_only_when_told)
{
        spm_pool pool = shelves_pool("sliced:page=1K");
        struct spm_actions actions;
        uint64_t at[40];
        unsigned int i;

        for (i = 0; i < 40; i++)
                at[i] = bench_alloc(pool, bench.s, 256);
        for (i = 0; i < 35; i++)
                shelves_free(at[i]);
        for (i = 0; i < 100; i++)
                spm_tick(bench.model, (uint64_t)i << 40, &actions);
        cr_expect_eq(shelves_stats(pool, 0).pages, 10, "time passes");
        cr_expect_eq(shelves_trim(pool), 8 * 1024);
        cr_expect_eq(shelves_stats(pool, 0).pages, 2);
        cr_expect_eq(shelves_stats(pool, 0).pages_unmapped, 8);
        cr_expect_eq(shelves_stats(pool, 0).pages_peak, 10);
        for (i = 35; i < 40; i++)
                shelves_free(at[i]);
}

Test(sliced, a_page_that_went_is_known_no_more)
{
        spm_pool pool = shelves_pool("sliced:page=1K");
        uint64_t at = bench_alloc(pool, bench.s, 256);
        struct spm_allocation found;
        struct spm_actions actions;
        uint64_t old;

        cr_assert_eq(spm_find(bench.model, at, &found), SPM_OK);
        old = found.generation;
        shelves_free(at);
        cr_expect_eq(spm_find(bench.model, at, &found), SPM_E_DOUBLE_FREE);
        shelves_trim(pool);
        cr_expect_eq(spm_find(bench.model, at, &found), SPM_E_FOREIGN);
        cr_expect_eq(bench_alloc(pool, bench.s, 256), at, "the address is used again");
        cr_expect_eq(spm_free(bench.model, at, old, SPM_FREE_ASYNC, bench.s, NULL, &actions),
                     SPM_E_STALE);
}

Test(sliced, what_is_asked_for_and_what_is_lost_is_told_apart)
{
        spm_pool pool = shelves_pool("sliced:page=1K");
        uint64_t at = bench_alloc(pool, bench.s, 100);
        struct spm_shelf_stats stats = shelves_stats(pool, 0);

        cr_expect_eq(stats.requested, 100);
        cr_expect_eq(stats.padding, 156);
        cr_expect_eq(stats.reserved, 1024);
        cr_expect_eq(stats.largest_alloc, 100);
        shelves_free(at);
        stats = shelves_stats(pool, 0);
        cr_expect_eq(stats.requested + stats.padding + stats.live_blocks, 0);
        cr_expect_eq(stats.largest_alloc, 100);
}

/* Stream order, and memory of the caller's. */

Test(sliced, another_stream_waits_for_what_it_follows_and_has_nothing_else)
{
        spm_pool pool = shelves_pool_of(SPM_POOL_ASYNC, "sliced:page=2M,cap=2M");
        uint64_t at = bench_alloc(pool, bench.s, 2 * MIB);
        struct spm_allocation other;
        spm_event event;

        bench_free(at, bench.s);
        cr_expect_eq(bench_try(pool, bench.t, 2 * MIB, false, &other), SPM_OK,
                     "by a wait of ours, as memory is short");
        cr_expect_str_eq(bench.log + strlen(bench.log) - 1, "W", "%s", bench.log);
        bench_free(at, bench.t);
        event = bench_record(bench.t);
        bench_wait(bench.s, event);
        cr_expect_eq(bench_alloc(pool, bench.s, 2 * MIB), at, "the program has ordered it");
}

Test(sliced, a_synchronous_block_is_served_when_it_is_complete)
{
        spm_pool pool = shelves_pool_of(SPM_POOL_SYNC, "sliced:page=4M,cap=4M");
        struct spm_allocation other;
        uint64_t at = bench_alloc(pool, 0, 4 * MIB);

        bench_free(at, 0);
        cr_expect_eq(bench_try(pool, 0, MIB, false, &other), SPM_E_OUT_OF_MEMORY);
        cr_expect_eq(bench_try(pool, 0, MIB, true, &other), SPM_OK, "%s", bench.log);
        cr_expect_eq(other.address, at);
}

Test(sliced, a_page_is_one_segment_in_the_range)
{
        spm_pool pool = shelves_pool_of(SPM_POOL_ASYNC, "sliced:page=6M,slice=1M");
        uint64_t at = bench_alloc(pool, bench.s, MIB);

        cr_expect_str_eq(bench.log, "G");
        cr_expect_eq(bench.grown_at, (uint64_t)1 << 42);
        cr_expect_eq(bench.grown, 6 * MIB);
        shelves_free(at);
        cr_expect_eq(bench_stats(pool).segments, 1);
        cr_expect_eq(shelves_trim(pool), 6 * MIB);
        bench.no_memory = true;
        cr_expect_eq(shelves_refused(pool, MIB), SPM_E_OUT_OF_MEMORY);
        bench.no_memory = false;
        bench_alloc(pool, bench.s, MIB);
}

Test(sliced, memory_that_no_shelf_wants_goes_at_a_synchronisation)
{
        spm_pool pool = shelves_pool_of(SPM_POOL_ASYNC, "sliced:page=4M");

        bench_give(pool, 2 * MIB);
        bench_free(bench_alloc(pool, bench.s, MIB), bench.s);
        cr_expect_eq(bench_stats(pool).reserved_current, 6 * MIB);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
        cr_expect_eq(bench_seen(SPM_ACT_RELEASE), 2 * MIB);
        cr_expect_eq(shelves_stats(pool, 0).pages, 1);
}

Test(sliced, memory_that_is_given_is_used_if_it_is_a_page)
{
        spm_pool pool = shelves_pool_of(SPM_POOL_ASYNC, "sliced:page=4M,cap=4M");

        bench_give(pool, 2 * MIB);
        bench_give(pool, 4 * MIB);
        bench_give(pool, 4 * MIB);
        bench_alloc(pool, bench.s, MIB);
        cr_expect_str_eq(bench.log, "");
        cr_expect_eq(shelves_stats(pool, 0).pages, 1);
        cr_expect_eq(bench_stats(pool).reserved_current, 10 * MIB);
        bench_alloc(pool, bench.s, 3 * MIB);
        cr_expect_eq(shelves_refused(pool, 1), SPM_E_OUT_OF_MEMORY, "a cap is a cap");
        cr_expect_eq(shelves_trim(pool), 0, "what no shelf takes went when memory was short");
        cr_expect_eq(bench_stats(pool).reserved_current, 4 * MIB);
}
