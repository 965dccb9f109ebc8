/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exclusive -- a block has a page to itself, and idle pages go after so many allocations
 */

#include "bench.h"
#include "shelves.h"

TestSuite(exclusive, .init = bench_set_up, .fini = bench_tear_down);

/* Allocations that count, and touch no exclusive page, are of a sliced shelf beside it. */
#define BESIDE "sliced:page=1M,slice=256,cap=1M;"

static void pass_by(spm_pool pool, unsigned int count)
{
        while (count--)
                shelves_free(bench_alloc(pool, bench.s, 1));
}

static unsigned int pages(spm_pool pool)
{
        return (unsigned int)shelves_stats(pool, 1).pages;
}

Test(exclusive, a_page_is_the_average_or_the_block)
{
        spm_pool pool = shelves_pool("exclusive:max=2048000");
        double average = 1024000;
        static const size_t sizes[] = {1000, 2000000, 500, 1500000, 100, 100, 2048000, 77777};
        unsigned int i;

        for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                struct spm_allocation block;
                double page;

                cr_assert_eq(bench_try(pool, bench.s, sizes[i], true, &block), SPM_OK);
                average = average * 0.99 + (double)sizes[i] * 0.01;
                page = average > (double)sizes[i] ? average : (double)sizes[i];
                cr_expect(page - 8 <= (double)block.reserved &&
                                  (double)block.reserved < page + GRAIN,
                          "block %u: a page of %zu, not %f", i, block.reserved, page);
                cr_expect_eq(block.reserved % GRAIN, 0);
                cr_expect_eq(block.size, sizes[i]);
        }
}

Test(exclusive, the_largest_is_taken_and_no_more)
{
        spm_pool pool = shelves_pool("exclusive:max=1000");

        bench_alloc(pool, bench.s, 1024);
        cr_expect_eq(shelves_refused(pool, 1025), SPM_E_TOO_BIG);
        cr_expect_eq(shelves_refusal(pool).limit, 1024, "max, in whole alignments");
}

Test(exclusive, a_page_holds_one_block)
{
        spm_pool pool = shelves_pool("exclusive:max=64K");
        uint64_t at = bench_alloc(pool, bench.s, 256);

        bench_alloc(pool, bench.s, 256);
        cr_expect_eq(shelves_stats(pool, 0).pages, 2);
        shelves_free(at);
        cr_expect_eq(bench_alloc(pool, bench.s, 16 * KIB), at, "also if it is much larger");
        cr_expect_eq(shelves_stats(pool, 0).pages, 2);
}

Test(exclusive, the_smallest_that_fits_is_taken)
{
        spm_pool pool = shelves_pool("exclusive:max=64K");
        uint64_t large = bench_alloc(pool, bench.s, 60 * KIB);
        uint64_t middle = bench_alloc(pool, bench.s, 50 * KIB);
        uint64_t small = bench_alloc(pool, bench.s, 40 * KIB);

        shelves_free(large);
        shelves_free(middle);
        shelves_free(small);
        cr_expect_eq(bench_alloc(pool, bench.s, 45 * KIB), middle);
        cr_expect_eq(bench_alloc(pool, bench.s, 1), small);
        cr_expect_eq(bench_alloc(pool, bench.s, 1), large);
}

Test(exclusive, of_two_that_fit_the_one_that_was_used_more_is_taken)
{
        spm_pool pool = shelves_pool("exclusive:max=2K");
        uint64_t first = bench_alloc(pool, bench.s, 2 * KIB);
        uint64_t second = bench_alloc(pool, bench.s, 2 * KIB);

        shelves_free(second);
        cr_expect_eq(bench_alloc(pool, bench.s, 2 * KIB), second);
        shelves_free(second);
        shelves_free(first);
        cr_expect_eq(bench_alloc(pool, bench.s, 2 * KIB), second);
}

Test(exclusive, of_two_that_were_used_as_often_the_first_is_taken)
{
        spm_pool pool = shelves_pool("exclusive:max=2K");
        uint64_t first = bench_alloc(pool, bench.s, 2 * KIB);
        uint64_t second = bench_alloc(pool, bench.s, 2 * KIB);

        shelves_free(first);
        shelves_free(second);
        cr_expect_eq(bench_alloc(pool, bench.s, 2 * KIB), first);
        bench_free(first, bench.s);
        cr_expect_eq(bench_alloc(pool, bench.s, 2 * KIB), first, "pending, and its own");
}

/* Each look is a twentieth allocation of the pool. */

Test(exclusive, a_page_that_was_never_used_again_goes_at_the_first_look)
{
        spm_pool pool = shelves_pool(BESIDE "exclusive:max=1M,period=100");

        shelves_free(bench_alloc(pool, bench.s, MIB));
        pass_by(pool, 18);
        cr_expect_eq(pages(pool), 1, "19 allocations were made");
        pass_by(pool, 1);
        cr_expect_eq(pages(pool), 0);
        cr_expect_eq(shelves_stats(pool, 1).pages_unmapped, 1);
}

Test(exclusive, a_page_that_is_in_use_stays)
{
        spm_pool pool = shelves_pool(BESIDE "exclusive:max=1M,period=100");
        uint64_t at = bench_alloc(pool, bench.s, MIB);

        pass_by(pool, 500);
        cr_expect_eq(pages(pool), 1);
        shelves_free(at);
        pass_by(pool, 19);
        cr_expect_eq(pages(pool), 0, "it was suspected all the time");
}

Test(exclusive, a_page_that_is_used_again_and_again_goes_after_a_period)
{
        unsigned int shift;

        for (shift = 0; shift < 20; shift++) {
                spm_pool pool = shelves_pool(BESIDE "exclusive:max=1M,period=100");
                unsigned int more = 0;

                for (unsigned int i = 0; i < 6; i++)
                        shelves_free(bench_alloc(pool, bench.s, MIB));
                pass_by(pool, shift);
                shelves_free(bench_alloc(pool, bench.s, MIB));
                for (; pages(pool) && more < 200; more++)
                        pass_by(pool, 1);
                cr_expect(more >= 80 && more <= 100, "%u allocations after its last use", more);
        }
}

Test(exclusive, each_use_takes_one_look_back)
{
        spm_pool pool = shelves_pool(BESIDE "exclusive:max=1M,period=100");

        shelves_free(bench_alloc(pool, bench.s, MIB));
        shelves_free(bench_alloc(pool, bench.s, MIB));
        shelves_free(bench_alloc(pool, bench.s, MIB));
        pass_by(pool, 17 + 20);
        cr_expect_eq(pages(pool), 1, "two uses, and one look is left");
        pass_by(pool, 20);
        cr_expect_eq(pages(pool), 0);
}

Test(exclusive, without_a_period_pages_go_when_told)
{
        spm_pool pool = shelves_pool(BESIDE "exclusive:max=1M");
        uint64_t at = bench_alloc(pool, bench.s, MIB);

        shelves_free(bench_alloc(pool, bench.s, MIB));
        pass_by(pool, 300);
        cr_expect_eq(pages(pool), 2);
        cr_expect_eq(shelves_trim(pool), 2 * MIB, "and the sliced one");
        cr_expect_eq(pages(pool), 1);
        shelves_free(at);
}

Test(exclusive, what_is_pending_goes_at_the_first_look_after_that)
{
        spm_pool pool = shelves_pool(BESIDE "exclusive:max=1M,period=10");

        bench_free(bench_alloc(pool, bench.s, MIB), bench.s);
        for (unsigned int i = 0; i < 20; i++)
                bench_alloc(pool, bench.t, 1);
        cr_expect_eq(pages(pool), 1);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
        bench_alloc(pool, bench.t, 1);
        bench_alloc(pool, bench.t, 1);
        cr_expect_eq(pages(pool), 0);
}

Test(exclusive, pages_that_go_are_given_back_by_actions)
{
        spm_pool pool = shelves_pool_of(SPM_POOL_ASYNC, "exclusive:max=2M,period=5;"
                                                        "exclusive:max=4M,period=5");

        shelves_free(bench_alloc(pool, bench.s, 4 * MIB));
        bench_alloc(pool, bench.s, 2 * MIB);
        cr_expect_str_eq(bench.log, "GX");
        cr_expect_eq(bench_seen(SPM_ACT_RELEASE), 4 * MIB);
        cr_expect_eq(bench_stats(pool).reserved_current, 2 * MIB);
}

Test(exclusive, a_pool_that_gives_back_when_idle_does_so_then)
{
        struct spm_pool_config config = {.kind = SPM_POOL_SYNC,
                                         .context = bench.context,
                                         .release_needs_idle = true,
                                         .release_threshold = SIZE_MAX};
        struct spm_layout_error error;
        spm_pool pool = bench_pool(config);
        struct spm_actions actions;
        struct spm_ticket ticket;
        struct spm_scope scope = {SPM_SCOPE_CONTEXT, bench.context};

        cr_assert_eq(shelves_install(pool, "exclusive:max=2M,period=5;exclusive:max=4M,period=5",
                                     &error),
                     SPM_OK);
        bench_free(bench_alloc(pool, 0, 4 * MIB), 0);
        bench_alloc(pool, 0, 2 * MIB);
        cr_expect_eq(bench_seen(SPM_ACT_RELEASE), 0);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
        cr_expect_eq(bench_seen(SPM_ACT_RELEASE), 4 * MIB);
        cr_assert_eq(spm_sync_begin(bench.model, scope, &ticket), SPM_OK);
        spm_sync_end(bench.model, &ticket, SPM_SYNC_WAIT, true, &actions);
        cr_expect_eq(actions.count, 0, "nothing was allocated since");
}
