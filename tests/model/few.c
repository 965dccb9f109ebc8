/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Few -- a large block is made of few pieces, and of one where the caller says so
 */

#include "bench.h"
#include "range.h"

static spm_pool pool;

static void set_up(void)
{
        bench_set_up();
        pool = range_pool(SPM_GROWTH_BALANCED);
}

TestSuite(few, .init = set_up, .fini = bench_tear_down);

/* The first list of growths, and the one after it was put off. */
static struct spm_actions ask_whole(struct spm_request *request, struct spm_actions *first)
{
        struct spm_allocation allocation;
        struct spm_actions actions;
        unsigned int i;

        cr_assert_eq(spm_alloc(bench.model, request, &allocation, first), SPM_AGAIN);
        for (i = 0; i < first->count; i++)
                spm_grow_whole(request);
        cr_assert_eq(spm_alloc(bench.model, request, &allocation, &actions), SPM_AGAIN);
        return actions;
}

static void expect_one(const struct spm_actions *actions, size_t size, bool last)
{
        cr_assert_eq(actions->count, 1u);
        cr_expect_eq(actions->item[0].kind, SPM_ACT_GROW);
        cr_expect_eq(actions->item[0].size, size);
        cr_expect_eq(actions->item[0].preferred, size);
        cr_expect_eq(actions->item[0].missing, size);
        cr_expect_eq(actions->item[0].last, last);
}

Test(few, and_one_where_the_caller_says_so)
{
        struct spm_request request = {.pool = pool, .stream = bench.s, .size = 3 * GIB - MIB};
        struct spm_allocation allocation;
        struct spm_actions actions;

        actions = ask_whole(&request, &(struct spm_actions){0});
        expect_one(&actions, 3 * GIB, false);
        bench_do(&actions, &request);
        cr_expect_eq(spm_alloc(bench.model, &request, &allocation, &actions), SPM_OK);
        cr_expect_eq(reserved(pool), 3 * GIB);
}

Test(few, and_one_for_the_last_resort_as_well)
{
        struct spm_request request = {.pool = pool, .stream = bench.s, .size = 3 * GIB};
        struct spm_allocation allocation;
        struct spm_actions actions = ask_whole(&request, &(struct spm_actions){0});

        spm_grow_failed(bench.model, &request);
        cr_assert_eq(spm_alloc(bench.model, &request, &allocation, &actions), SPM_AGAIN);
        expect_one(&actions, 3 * GIB, true);
        spm_grow_failed(bench.model, &request);
        cr_expect_eq(spm_alloc(bench.model, &request, &allocation, &actions), SPM_E_OUT_OF_MEMORY);
}

Test(few, and_one_without_a_range_and_no_more_than_is_needed)
{
        struct spm_request request = {.pool = bench.async, .stream = bench.s, .size = 6 * MIB};
        struct spm_actions actions, first;

        bench_climb(bench.async, GIB);
        actions = ask_whole(&request, &first);
        cr_expect_eq(first.item[0].preferred, 32 * MIB);
        expect_one(&actions, 6 * MIB, false);
}

/* What is there already is not missing; what is asked for later is. */
Test(few, are_told_how_much_is_missing_in_all)
{
        struct spm_request request = {.pool = pool, .stream = bench.s, .size = 254 * MIB};
        struct spm_allocation allocation;
        struct spm_actions actions;

        bench_free(bench_climb(pool, 4 * MIB), 0);
        bench.no_memory = true;
        cr_assert_eq(bench_climb(pool, 30 * MIB), 0);
        bench.no_memory = false;
        cr_assert_eq(spm_alloc(bench.model, &request, &allocation, &actions), SPM_AGAIN);
        cr_assert_eq(actions.count, (unsigned int)SPM_ACTIONS_MAX);
        cr_expect_eq(actions.item[0].size, 2 * MIB);
        cr_expect_eq(actions.item[0].missing, 254 * MIB - reserved(pool));
        cr_expect_eq(actions.item[SPM_ACTIONS_MAX - 1].missing, 254 * MIB - reserved(pool));
}

static void expect_pieces_of(size_t size, size_t piece)
{
        cr_assert_neq(bench_climb(pool, size), 0);
        cr_expect_eq(bench.seen[0].kind, SPM_ACT_GROW);
        cr_expect_eq(bench.seen[0].size, piece, "%zu", bench.seen[0].size / MIB);
}

Test(few, after_a_refusal)
{
        bench.no_memory = true;
        cr_assert_eq(bench_climb(pool, GIB), 0);
        bench.no_memory = false;
        expect_pieces_of(254 * MIB, 2 * MIB);
        expect_pieces_of(256 * MIB, 4 * MIB);
        expect_pieces_of(4 * GIB, 64 * MIB);
        expect_pieces_of(16 * GIB, 256 * MIB);
}

Test(few, where_blocks_vary)
{
        bench_free(bench_climb(pool, 2 * GIB), 0);
        bench_climb(pool, 40 * MIB);
        cr_assert_eq(bench_seen(SPM_ACT_RELEASE), 2 * GIB);
        expect_pieces_of(8 * GIB, 128 * MIB);
}

/* In pieces that could move there as they are, unless they would be very many. */
Test(few, where_idle_memory_makes_way)
{
        uint64_t at[640];
        unsigned int i;

        for (i = 0; i < 640; i++)
                at[i] = bench_climb(pool, 32 * MIB);
        for (i = 0; i < 640; i++)
                if (i % 8)
                        bench_free(at[i], 0);
        cr_assert_neq(bench_climb(pool, 8 * GIB), 0);
        for (i = 0; bench.seen[i].kind != SPM_ACT_GROW; i++)
                cr_assert_eq(bench.seen[i].kind, SPM_ACT_RELEASE);
        cr_expect_eq(bench.seen[i].size, 128 * MIB, "%zu", bench.seen[i].size / MIB);
}

Test(few, of_its_own_sixteenths)
{
        expect_pieces_of(2 * GIB, 128 * MIB);
        expect_pieces_of(8 * GIB, 512 * MIB);
        expect_pieces_of(GIB, 512 * MIB);
}
