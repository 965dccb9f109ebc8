/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Direct -- pages of just the size, and a watermark
 */

#include "bench.h"
#include "shelves.h"

TestSuite(direct, .init = bench_set_up, .fini = bench_tear_down);

static unsigned int pages(spm_pool pool)
{
        return (unsigned int)shelves_stats(pool, 0).pages;
}

Test(direct, a_page_is_used_again_by_a_block_of_its_size)
{
        spm_pool pool = shelves_pool("direct");
        uint64_t at = bench_alloc(pool, bench.s, 1000);

        cr_expect_eq(shelves_stats(pool, 0).padding, 24);
        shelves_free(at);
        bench_alloc(pool, bench.s, 768);
        bench_alloc(pool, bench.s, 1025);
        cr_expect_eq(pages(pool), 3, "neither a smaller one nor a larger one");
        cr_expect_eq(bench_alloc(pool, bench.s, 1003), at, "the same in whole alignments");
        cr_expect_eq(pages(pool), 3);
        cr_expect_eq(shelves_stats(pool, 0).padding, 21 + 255);
        cr_expect_eq(bench_stats(pool).rounded_current, bench_stats(pool).reserved_current);
}

Test(direct, any_size_is_taken)
{
        spm_pool pool = shelves_pool("direct:reclaim=1K");
        uint64_t at = bench_alloc(pool, bench.s, (size_t)1 << 30);

        cr_expect_eq(bench_stats(pool).reserved_current, (size_t)1 << 30,
                     "a watermark is no budget");
        shelves_free(at);
}

/* Four free pages of 1, 2, 1 and 4 KiB, in the order of their indexes. */
static void fill(spm_pool pool)
{
        static const size_t sizes[] = {1, 2, 1, 4};
        uint64_t at[4];
        unsigned int i;

        for (i = 0; i < 4; i++)
                at[i] = bench_alloc(pool, bench.s, sizes[i] * KIB);
        for (i = 4; i--;)
                bench_free(at[i], bench.s);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
}

Test(direct, idle_pages_go_in_order_until_there_is_room)
{
        spm_pool pool = shelves_pool("direct:reclaim=8K");

        fill(pool);
        cr_expect_eq(bench_stats(pool).reserved_current, 8 * KIB);
        bench_alloc(pool, bench.s, 3 * KIB);
        cr_expect_eq(bench_stats(pool).reserved_current, 8 * KIB, "1 and 2 KiB went, and no more");
        cr_expect_eq(shelves_stats(pool, 0).pages_unmapped, 2);
        bench_alloc(pool, bench.s, KIB);
        cr_expect_eq(shelves_stats(pool, 0).pages_unmapped, 2,
                     "the other one of that size is there");
}

Test(direct, what_is_in_use_stays_and_what_is_needed_is_served)
{
        spm_pool pool = shelves_pool("direct:reclaim=4K");
        uint64_t held = bench_alloc(pool, bench.s, 3 * KIB);

        shelves_free(bench_alloc(pool, bench.s, KIB));
        bench_alloc(pool, bench.s, 8 * KIB);
        cr_expect_eq(bench_stats(pool).reserved_current, 11 * KIB);
        shelves_free(held);
}

Test(direct, what_is_pending_is_not_given_back)
{
        spm_pool pool = shelves_pool("direct:reclaim=4K");

        bench_free(bench_alloc(pool, bench.s, 4 * KIB), bench.s);
        bench_alloc(pool, bench.s, KIB);
        cr_expect_eq(pages(pool), 2);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
        bench_alloc(pool, bench.s, 2 * KIB);
        cr_expect_eq(pages(pool), 2);
}

Test(direct, without_a_watermark_pages_go_when_told)
{
        spm_pool pool = shelves_pool("direct");
        struct spm_actions actions;

        fill(pool);
        for (unsigned int i = 1; i < 100; i++) {
                shelves_free(bench_alloc(pool, bench.s, 5 * KIB));
                spm_tick(bench.model, (uint64_t)i << 40, &actions);
        }
        cr_expect_eq(pages(pool), 5);
        cr_expect_eq(shelves_trim(pool), 13 * KIB);
        cr_expect_eq(pages(pool), 0);
}

Test(direct, an_index_is_used_again)
{
        spm_pool pool = shelves_pool("direct:reclaim=8K");

        fill(pool);
        /* The pages of 1 and 2 KiB were the first two; the new one is first then, and goes first,
         * with the other one of 1 KiB after it. */
        shelves_free(bench_alloc(pool, bench.s, 3 * KIB));
        bench_alloc(pool, bench.s, 2 * KIB + 1);
        cr_expect_eq(shelves_stats(pool, 0).pages_unmapped, 3, "3 KiB are enough");
        cr_expect_eq(pages(pool), 3);
}

Test(direct, memory_for_it_is_asked_for_after_what_goes)
{
        spm_pool pool = shelves_pool_of(SPM_POOL_ASYNC, "direct:reclaim=4M");

        shelves_free(bench_alloc(pool, bench.s, 4 * MIB));
        bench_alloc(pool, bench.s, 2 * MIB);
        cr_expect_str_eq(bench.log, "XG");
        cr_expect_eq(bench_stats(pool).reserved_high, 4 * MIB);
        cr_expect_eq(bench.grown_at, (uint64_t)1 << 42, "in the gap that it has left");
}

Test(direct, when_memory_is_short_idle_pages_of_other_sizes_go)
{
        spm_pool pool = shelves_pool_of(SPM_POOL_ASYNC, "direct");
        struct spm_allocation block;

        shelves_free(bench_alloc(pool, bench.s, 4 * MIB));
        bench.thrifty = true;
        cr_expect_eq(bench_try(pool, bench.s, 2 * MIB, true, &block), SPM_OK);
        cr_expect_str_eq(bench.log, "GXG");
}

Test(direct, a_cap_of_the_pool_counts)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC, .provider = SPM_PROVIDER_MODEL, .max_size = 8 * MIB};
        struct spm_layout_error error;
        spm_pool pool = bench_pool(config);

        cr_assert_eq(shelves_install(pool, "direct", &error), SPM_OK);
        bench_alloc(pool, bench.s, 6 * MIB);
        cr_expect_eq(shelves_refused(pool, 4 * MIB), SPM_E_OUT_OF_MEMORY);
        bench_alloc(pool, bench.s, 2 * MIB);
}
