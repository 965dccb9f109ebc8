/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Persistent -- memory that is to stay, beside the list
 */

#include "bench.h"
#include "shelves.h"

TestSuite(persistent, .init = bench_set_up, .fini = bench_tear_down);

/* The persistent shelf comes after the only other one. */
static bool goes_there(spm_pool pool, size_t size)
{
        uint64_t before = shelves_stats(pool, 1).live_blocks;

        bench_alloc(pool, bench.s, size);
        return shelves_stats(pool, 1).live_blocks > before;
}

static void enter(spm_pool pool)
{
        cr_assert_eq(spm_persistent_enter(bench.model, pool), SPM_OK);
}

static void leave(spm_pool pool)
{
        cr_assert_eq(spm_persistent_leave(bench.model, pool), SPM_OK);
}

Test(persistent, windows_nest)
{
        spm_pool pool = shelves_pool("sliced:page=1M");

        cr_expect_not(goes_there(pool, 512));
        enter(pool);
        enter(pool);
        cr_expect(goes_there(pool, 512));
        leave(pool);
        cr_expect(goes_there(pool, 512), "one is open still");
        leave(pool);
        cr_expect_not(goes_there(pool, 512));
}

Test(persistent, to_leave_none_does_nothing)
{
        spm_pool pool = shelves_pool("sliced:page=1M");

        leave(pool);
        leave(pool);
        enter(pool);
        cr_expect(goes_there(pool, 512), "the depth was 0, and not less");
        leave(pool);
        cr_expect_not(goes_there(pool, 512));
}

static void begin_capture(void)
{
        struct spm_actions actions;

        cr_assert_eq(spm_capture_begin(bench.model, bench.t, &actions), SPM_OK);
        bench_do(&actions, NULL);
}

static void end_capture(void)
{
        cr_assert_eq(spm_capture_end(bench.model, bench.t), SPM_OK);
}

Test(persistent, what_is_entered_during_a_capture_counts_after_it)
{
        spm_pool pool = shelves_pool("sliced:page=1M");

        begin_capture();
        enter(pool);
        cr_expect_not(goes_there(pool, 512));
        end_capture();
        cr_expect(goes_there(pool, 512));
        begin_capture();
        leave(pool);
        cr_expect(goes_there(pool, 512));
        end_capture();
        cr_expect_not(goes_there(pool, 512));
}

Test(persistent, a_window_that_was_opened_before_a_capture_stays_open_in_it)
{
        spm_pool pool = shelves_pool("sliced:page=1M");

        enter(pool);
        begin_capture();
        cr_expect(goes_there(pool, 512));
        leave(pool);
        enter(pool);
        end_capture();
        cr_expect(goes_there(pool, 512));
}

Test(persistent, what_was_entered_in_one_capture_counts_in_the_next)
{
        spm_pool pool = shelves_pool("sliced:page=1M");

        begin_capture();
        enter(pool);
        end_capture();
        begin_capture();
        cr_expect(goes_there(pool, 512));
        end_capture();
}

Test(persistent, a_size_that_it_knows_may_match)
{
        spm_pool pool = shelves_pool("sliced:page=1M;persistent=size-match");
        uint64_t weights;

        cr_expect_not(goes_there(pool, 1000));
        enter(pool);
        weights = bench_alloc(pool, bench.s, 1000);
        leave(pool);
        cr_expect(goes_there(pool, 1001), "the same in whole grains, though the page is taken");
        cr_expect_not(goes_there(pool, 1025));
        cr_expect_not(goes_there(pool, 768));
        shelves_free(weights);
        cr_expect_eq(bench_alloc(pool, bench.s, 900), weights);
}

Test(persistent, it_may_be_disabled)
{
        spm_pool pool = shelves_pool("sliced:page=1M;persistent=disabled");

        enter(pool);
        cr_expect_not(goes_there(pool, 512));
}

Test(persistent, it_may_be_enforced)
{
        spm_pool pool = shelves_pool("sliced:page=1M;persistent=enforced");

        cr_expect(goes_there(pool, 512));
        cr_expect(goes_there(pool, 64 * MIB), "also what no shelf would take");
}

Test(persistent, pages_are_of_just_the_size_and_stay_until_told)
{
        spm_pool pool = shelves_pool("exclusive:max=4K,period=5;persistent=enabled");
        uint64_t held;
        uint64_t idle;
        unsigned int i;

        enter(pool);
        held = bench_alloc(pool, bench.s, 3000);
        idle = bench_alloc(pool, bench.s, 1);
        leave(pool);
        shelves_free(idle);
        for (i = 0; i < 100; i++)
                shelves_free(bench_alloc(pool, bench.s, 4096));
        cr_expect_eq(shelves_stats(pool, 1).pages, 2);
        cr_expect_eq(shelves_stats(pool, 1).reserved, 3072 + 256);
        shelves_trim(pool);
        cr_expect_eq(shelves_stats(pool, 1).pages, 1, "only what is idle goes");
        shelves_free(held);
}

Test(persistent, pools_without_a_layout_have_no_windows)
{
        cr_expect_eq(spm_persistent_enter(bench.model, bench.async), SPM_E_UNKNOWN);
        cr_expect_eq(spm_persistent_leave(bench.model, 99), SPM_E_UNKNOWN);
}
