/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run -- slabs come and go, and what is done without them
 */

#include <stdlib.h>

#include "bench.h"
#include "slots.h"

TestSuite(run, .init = slots_set_up, .fini = bench_tear_down);

#define MANY 400 /* slots of 1000 bytes: several runs */

static void fill(uint64_t at[MANY])
{
        int i;

        for (i = 0; i < MANY; i++)
                at[i] = bench_alloc(pool, bench.s, 1000);
}

Test(run, runs_that_are_not_used_go_back_but_for_one)
{
        struct spm_actions actions;
        uint64_t at[MANY];
        int i;

        fill(at);
        cr_expect_eq(runs(), 7u, "of 64 slots each");
        for (i = 0; i < MANY; i++)
                bench_free(at[i * 33 % MANY], 0);
        cr_expect_eq(runs(), 1u, "so that the next block does not make another");
        cr_assert_eq(spm_trim(bench.model, pool, 0, NULL, &actions), SPM_OK);
        cr_expect_eq(runs(), 0u);
        cr_expect_eq(bench_stats(pool).reserved_current, 0);
}

Test(run, a_run_with_one_live_slot_stays)
{
        struct spm_actions actions;
        uint64_t at[MANY];
        int i;

        fill(at);
        for (i = 0; i < MANY; i++)
                if (i != 100)
                        bench_free(at[i], 0);
        cr_assert_eq(spm_trim(bench.model, pool, 0, NULL, &actions), SPM_OK);
        cr_expect_eq(runs(), 1u);
        cr_expect_eq(bench_stats(pool).reserved_current, 2 * MIB);
        cr_expect_eq(free_at(at[100] + 512, 0), SPM_E_INTERIOR);
        cr_expect_eq(free_at(at[100], 0), SPM_OK);
}

Test(run, the_memory_of_a_run_serves_any_size_afterwards)
{
        struct spm_pool_config config = {.kind = SPM_POOL_ASYNC, .max_size = 2 * MIB};
        uint64_t at[MANY];
        int i;

        pool = bench_pool(config);
        fill(at);
        for (i = 0; i < MANY; i++)
                bench_free(at[i], 0);
        bench_alloc(pool, bench.s, MIB);
        bench_alloc(pool, bench.s, 512 * KIB);
        bench_alloc(pool, bench.s, 12 * KIB);
        cr_expect_eq(bench_stats(pool).reserved_current, 2 * MIB);
}

Test(run, records_of_runs_are_used_again)
{
        uint64_t before = 0;
        int round;
        int i;

        for (round = 0; round < 20; round++) {
                uint64_t at[MANY];

                fill(at);
                for (i = 0; i < MANY; i++)
                        bench_free(at[i], 0);
                if (round == 10)
                        before = bench.model->host_bytes;
        }
        cr_expect_eq(bench.model->host_bytes, before);
}

Test(run, what_was_never_served_is_fresh_and_a_hit_is_not)
{
        struct spm_allocation allocation;
        uint64_t at[MANY];
        int i;

        fill(at);
        cr_expect_eq(bench_stats(pool).hits, 0);
        for (i = 0; i < MANY; i++)
                bench_free(at[i], 0);
        bench_try(pool, bench.s, 1000, false, &allocation);
        cr_expect(allocation.reused);
        cr_expect_eq(bench_stats(pool).hits, 1);
        bench_try(pool, bench.s, 384 * KIB, false, &allocation);
        cr_expect(allocation.reused, "of what were runs");
}

Test(run, an_exported_slot_is_served_to_nobody_and_keeps_its_run)
{
        uint64_t at[MANY];
        int i;

        fill(at);
        cr_assert_eq(spm_export(bench.model, at[7]), SPM_OK);
        for (i = 0; i < MANY; i++)
                bench_free(at[i], 0);
        cr_expect_eq(bench_stats(pool).sealed_bytes, 1024);
        for (i = 0; i < 2 * MANY; i++)
                cr_expect_neq(bench_alloc(pool, bench.s, 1000), at[7], "I10");
        cr_expect_eq(free_at(at[7], 0), SPM_E_DOUBLE_FREE);
}

/* where there is no room */

static size_t most;

static void *ask(size_t count, size_t size, void *user)
{
        (void)user;
        return size > most ? NULL : calloc(count, size);
}

static void give(void *memory, void *user)
{
        (void)user;
        free(memory);
}

/* The record of a run is larger than most, so it may be the only one that is refused, for ever. */
Test(run, without_a_record_for_a_run_a_pool_does_not_grow)
{
        struct spm_config config = {.alloc = ask, .free = give};
        struct spm_pool_config made_up = {.kind = SPM_POOL_ASYNC, .provider = SPM_PROVIDER_MODEL};
        struct spm_request request = {.size = 1000};
        struct spm_allocation allocation;
        struct spm_actions actions;
        struct spm_model *model;
        struct spm_stats stats;
        spm_context context;
        enum spm_status status;

        most = SIZE_MAX;
        cr_assert_eq(spm_model_new(&config, &model), SPM_OK);
        cr_assert_eq(spm_context_add(model, 0, &context), SPM_OK);
        cr_assert_eq(spm_stream_add(model, context, SPM_STREAM_NON_BLOCKING, &request.stream),
                     SPM_OK);
        cr_assert_eq(spm_pool_create(model, &made_up, &request.pool), SPM_OK);
        request.size = MIB;
        cr_assert_eq(spm_alloc(model, &request, &allocation, &actions), SPM_OK);
        most = 6 * KIB;
        request =
                (struct spm_request){.pool = request.pool, .stream = request.stream, .size = 1000};
        status = spm_alloc(model, &request, &allocation, &actions);
        cr_expect_eq(status, SPM_OK, "%s", spm_status_name(status));
        cr_expect_eq(allocation.reserved, PAGE, "a page of its own");
        cr_assert_eq(spm_stats(model, request.pool, &stats), SPM_OK);
        cr_expect_eq(stats.reserved_current, 2 * MIB);
        spm_model_free(model);
}

Test(run, a_small_block_has_a_page_of_its_own_where_no_run_fits)
{
        struct spm_pool_config config = {.kind = SPM_POOL_ASYNC, .max_size = 2 * MIB};
        struct spm_allocation allocation;
        uint64_t a;

        pool = bench_pool(config);
        a = bench_alloc(pool, bench.s, 2 * MIB - PAGE);
        cr_assert_eq(bench_try(pool, bench.s, 1000, true, &allocation), SPM_OK);
        cr_expect_eq(allocation.address, a + 2 * MIB - PAGE);
        cr_expect_eq(allocation.reserved, PAGE);
        cr_expect_eq(runs(), 0u);
        cr_expect_eq(bench_try(pool, bench.s, 1000, true, &allocation), SPM_E_OUT_OF_MEMORY);
        bench_free(a + 2 * MIB - PAGE, bench.s);
        cr_expect_eq(bench_try(pool, bench.s, 2000, true, &allocation), SPM_OK);
}
