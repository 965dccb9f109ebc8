/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ladder -- from a request to a block, and what to try before giving up
 */

#include "bench.h"

#include <string.h>

TestSuite(ladder, .init = bench_set_up, .fini = bench_tear_down);

static enum spm_status try_alloc(spm_pool pool, spm_stream stream, size_t size, bool may_wait)
{
        struct spm_allocation allocation;

        return bench_try(pool, stream, size, may_wait, &allocation);
}

Test(ladder, a_small_pool_grows_by_little_and_a_large_one_by_more)
{
        bench_alloc(bench.async, bench.s, 512);
        cr_expect_eq(bench.preferred, 2 * MIB);
        bench_alloc(bench.async, bench.s, 3 * MIB);
        cr_expect_eq(bench.grown, 4 * MIB);
        cr_expect_eq(bench.preferred, 4 * MIB);
        bench_alloc(bench.async, bench.s, 500 * MIB + 1);
        cr_expect_eq(bench.grown, 502 * MIB);
        cr_expect_eq(bench.preferred, 502 * MIB);
        bench_alloc(bench.async, bench.s, 8 * MIB);
        cr_expect_eq(bench.grown, 8 * MIB);
        cr_expect_eq(bench.preferred, 16 * MIB, "a thirty-second of the pool");
}

Test(ladder, the_first_growth_is_as_large_as_the_pool_is_to_be)
{
        struct spm_pool_config config = {.kind = SPM_POOL_ASYNC, .initial_size = 9 * MIB};
        spm_pool pool = bench_pool(config);

        bench_alloc(pool, bench.s, 512);
        cr_expect_eq(bench.grown, 2 * MIB);
        cr_expect_eq(bench.preferred, 10 * MIB);
        bench_alloc(pool, bench.s, 10 * MIB);
        cr_expect_eq(bench.preferred, 10 * MIB, "and the next one as large as it must be");
}

Test(ladder, zero_and_overflow_are_invalid)
{
        uint64_t hash = spm_hash(bench.model);

        cr_expect_eq(try_alloc(bench.async, bench.s, 0, true), SPM_E_INVALID_VALUE, "A20");
        cr_expect_eq(try_alloc(bench.async, bench.s, SIZE_MAX - 10, true), SPM_E_INVALID_VALUE,
                     "A24");
        cr_expect_eq(try_alloc(99, bench.s, 1, true), SPM_E_UNKNOWN);
        cr_expect_eq(try_alloc(bench.async, 99, 1, true), SPM_E_UNKNOWN);
        cr_expect_eq(spm_hash(bench.model), hash);
}

Test(ladder, a_size_nobody_can_provide_is_out_of_memory)
{
        bench.no_memory = true;
        cr_expect_eq(try_alloc(bench.sync, 0, (size_t)1 << 50, true), SPM_E_OUT_OF_MEMORY);
        cr_expect_eq(try_alloc(bench.async, bench.s, SIZE_MAX / 512 * 512, true),
                     SPM_E_OUT_OF_MEMORY);
}

Test(ladder, a_synchronous_miss_stamps_and_asks_once)
{
        uint64_t a = bench_alloc(bench.sync, 0, 4 * MIB);

        bench_alloc(bench.sync, 0, 4 * MIB);
        bench_free(a, 0);
        bench_alloc(bench.sync, 0, 4 * MIB);
        cr_expect_str_eq(bench.log, "RPG");
        bench_alloc(bench.sync, 0, 4 * MIB);
        bench.device_done = true;
        cr_expect_eq(bench_alloc(bench.sync, 0, 4 * MIB), a);
        cr_expect_str_eq(bench.log, "PD", "the stamp is there already");
}

Test(ladder, another_streams_block_is_asked_about_before_growing)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 32 * MIB);

        bench_free(a, bench.s);
        cr_expect_neq(bench_alloc(bench.async, bench.t, 32 * MIB), a);
        cr_expect_str_eq(bench.log, "ppG", "for the block that fits, and then for all");
        bench.device_done = true;
        cr_expect_eq(bench_alloc(bench.async, bench.t, 32 * MIB), a);
        cr_expect_str_eq(bench.log, "p");
}

Test(ladder, all_that_is_pending_is_asked_about_before_growing)
{
        uint64_t base = bench_give(bench.async, 2 * MIB);
        uint64_t a = bench_alloc(bench.async, bench.s, MIB);
        uint64_t b = bench_alloc(bench.async, bench.t, MIB);

        cr_assert_eq(a, base);
        bench_free(a, bench.s);
        bench_free(b, bench.t);
        bench.device_done = true;
        cr_expect_eq(bench_alloc(bench.async, bench.blocking, 2 * MIB), base,
                     "neither block fits, both together do");
        cr_expect_str_eq(bench.log, "pp");
}

/* Before a large block is cut: what is freed may be complete, and fit better. */
Test(ladder, a_large_synchronous_request_asks_before_it_cuts_something_larger)
{
        uint64_t a = bench_alloc(bench.sync, 0, 4 * MIB);
        uint64_t base = bench_give(bench.sync, 64 * MIB);

        bench_free(a, 0);
        cr_expect_eq(bench_alloc(bench.sync, 0, 4 * MIB), base);
        cr_expect_str_eq(bench.log, "RP");
        bench.device_done = true;
        cr_expect_eq(bench_alloc(bench.sync, 0, 4 * MIB), base + 4 * MIB);
        cr_expect_str_eq(bench.log, "", "the last question was in vain");
        cr_expect_eq(bench_alloc(bench.sync, 0, 4 * MIB), a);
        cr_expect_str_eq(bench.log, "PD");
}

/* How many large requests in a row, of which none asks? */
static int silent_requests(uint64_t *at)
{
        int silent = -1;

        do {
                *at = bench_alloc(bench.sync, 0, 4 * MIB);
                silent++;
        } while (!bench.log[0]);
        return silent;
}

Test(ladder, a_large_request_asks_less_often_where_questions_are_in_vain)
{
        uint64_t a = bench_alloc(bench.sync, 0, 4 * MIB);
        uint64_t at;

        bench_give(bench.sync, 256 * MIB);
        bench_free(a, 0);
        cr_expect_eq(silent_requests(&at), 0);
        cr_expect_eq(silent_requests(&at), 1);
        cr_expect_eq(silent_requests(&at), 3);
        cr_expect_eq(silent_requests(&at), 7);
        cr_expect_eq(silent_requests(&at), 7);
        bench.device_done = true;
        cr_expect_eq(silent_requests(&at), 7);
        cr_expect_eq(at, a);
        bench.device_done = false;
        bench_free(a, 0);
        cr_expect_eq(silent_requests(&at), 0, "the last one was not");
}

Test(ladder, a_synchronous_request_asks_nothing_where_it_fits_exactly_or_is_small)
{
        uint64_t a = bench_alloc(bench.sync, 0, 4 * MIB);
        uint64_t base = bench_give(bench.sync, 4 * MIB);

        bench_free(a, 0);
        cr_expect_eq(bench_alloc(bench.sync, 0, 4 * MIB), base);
        cr_expect_str_eq(bench.log, "");
        base = bench_give(bench.sync, 64 * MIB);
        cr_expect_eq(bench_alloc(bench.sync, 0, MIB), base);
        cr_expect_str_eq(bench.log, "");
}

Test(ladder, without_opportunism_nothing_is_asked)
{
        spm_pool_set_attribute(bench.model, bench.async, SPM_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 0);
        bench_free(bench_alloc(bench.async, bench.s, 32 * MIB), bench.s);
        bench_alloc(bench.async, bench.t, 32 * MIB);
        cr_expect_str_eq(bench.log, "G");
}

Test(ladder, another_threads_stream_is_never_asked)
{
        spm_stream own;

        spm_stream_add(bench.model, bench.context, SPM_STREAM_PER_THREAD, &own);
        bench_free(bench_alloc(bench.async, own, 4 * MIB), own);
        cr_expect_str_eq(bench.log, "");
        bench_alloc(bench.async, bench.t, 4 * MIB);
        bench_alloc(bench.async, bench.t, 4 * MIB);
        cr_expect_null(strchr(bench.log, 'p'), "F5");
        bench_free(bench_alloc(bench.async, own, 32 * MIB), own);
        cr_expect_str_eq(bench.log, "R", "its own free stamps it, nobody else can");
}

Test(ladder, a_threads_stream_is_not_asked_about_the_birth_of_a_block_either)
{
        uint64_t a = bench_alloc(bench.async, bench.t, 32 * MIB);
        spm_stream own;

        spm_stream_add(bench.model, bench.context, SPM_STREAM_PER_THREAD, &own);
        bench_free(a, bench.t);
        bench_wait(own, bench_record(bench.t));
        cr_assert_eq(bench_alloc(bench.async, own, 32 * MIB), a);
        bench_sync(SPM_SCOPE_STREAM, bench.t, SPM_SYNC_QUERY);
        /* A free that names no stream: what is left to wait for is the allocation on own. */
        bench_free(a, 0);
        bench_alloc(bench.async, bench.t, 32 * MIB);
        cr_expect_null(strchr(bench.log, 'p'), "F5: %s", bench.log);
        cr_expect_eq(bench_stats(bench.async).pending_bytes, 32 * MIB);
}

Test(ladder, an_internal_dependency_comes_only_after_growth_has_failed)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 32 * MIB);

        bench_free(a, bench.s);
        cr_expect_neq(bench_alloc(bench.async, bench.t, 32 * MIB), a);
        bench.no_memory = true;
        cr_expect_eq(bench_alloc(bench.async, bench.t, 32 * MIB), a, "A10");
        cr_expect_str_eq(bench.log, "ppGRW");
}

Test(ladder, without_internal_dependencies_the_host_waits)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 32 * MIB);

        spm_pool_set_attribute(bench.model, bench.async, 3, 0);
        bench_free(a, bench.s);
        bench.no_memory = true;
        cr_expect_eq(try_alloc(bench.async, bench.t, 32 * MIB, false), SPM_E_OUT_OF_MEMORY);
        cr_expect_null(strpbrk(bench.log, "WHhS"), "I6: no wait without leave");
        cr_expect_eq(bench_alloc(bench.async, bench.t, 32 * MIB), a, "O1");
        cr_expect_str_eq(bench.log, "ppGRhD", "bounded: it may cover a later kernel");
}

Test(ladder, a_shortage_waits_for_batches_the_oldest_first)
{
        uint64_t a = bench_alloc(bench.sync, 0, 32 * MIB);

        bench_free(a, 0);
        bench.no_memory = true;
        cr_expect_eq(try_alloc(bench.sync, 0, 32 * MIB, false), SPM_E_OUT_OF_MEMORY);
        cr_expect_eq(bench_alloc(bench.sync, 0, 32 * MIB), a);
        cr_expect_not_null(strchr(bench.log, 'H'), "stamped by a free: without bound");
}

Test(ladder, where_no_stamp_is_to_be_had_the_context_is_waited_for)
{
        uint64_t a = bench_alloc(bench.sync, 0, 4 * MIB);

        bench_alloc(bench.sync, 0, 4 * MIB);
        bench_free(a, 0);
        bench.no_records = true;
        bench.no_memory = true;
        cr_expect_eq(bench_alloc(bench.sync, 0, 4 * MIB), a);
        cr_expect_not_null(strchr(bench.log, 'S'));
}

Test(ladder, nothing_is_stamped_polled_or_waited_for_while_a_capture_is_open)
{
        struct spm_actions actions;

        bench_free(bench_alloc(bench.sync, 0, 32 * MIB), 0);
        bench_free(bench_alloc(bench.async, bench.s, 32 * MIB), bench.s);
        bench.log[0] = 0;
        spm_capture_begin(bench.model, bench.t, &actions);
        bench_do(&actions, NULL);
        bench.no_memory = true;
        cr_expect_eq(try_alloc(bench.sync, 0, 32 * MIB, true), SPM_E_OUT_OF_MEMORY, "C10");
        cr_expect_null(strpbrk(bench.log, "RPpWHhS"), "C6: %s", bench.log);
        cr_expect_eq(try_alloc(bench.async, bench.blocking, 32 * MIB, true), SPM_E_OUT_OF_MEMORY);
        cr_expect_null(strpbrk(bench.log, "RPpWHhS"), "C6: %s", bench.log);
        spm_capture_end(bench.model, bench.t);
        cr_expect_eq(try_alloc(bench.sync, 0, 32 * MIB, true), SPM_OK);
}

Test(ladder, segments_that_do_not_fit_make_way_for_one_that_does)
{
        bench_free(bench_alloc(bench.async, bench.s, 32 * MIB), 0);
        bench.no_memory = true;
        cr_expect_eq(try_alloc(bench.async, bench.s, 64 * MIB, true), SPM_E_OUT_OF_MEMORY);
        cr_expect_str_eq(bench.log, "MGG");
        cr_expect_eq(bench_stats(bench.async).reserved_current, 0);
}

Test(ladder, segments_that_do_not_fit_are_given_back_before_the_last_try)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 64 * MIB);
        uint64_t b = bench_alloc(bench.async, bench.s, 32 * MIB);
        struct spm_actions actions;

        /* Both were in use at once, so the pool may hold as much again. */
        bench_free(a, 0);
        bench_free(b, 0);
        cr_assert_eq(spm_trim(bench.model, bench.async, 32 * MIB, NULL, &actions), SPM_OK);
        cr_assert_eq(bench_stats(bench.async).reserved_current, 32 * MIB);
        bench.no_memory = true;
        cr_expect_eq(try_alloc(bench.async, bench.s, 64 * MIB, true), SPM_E_OUT_OF_MEMORY);
        cr_expect_str_eq(bench.log, "GXG");
        cr_expect_eq(bench_stats(bench.async).reserved_current, 0);
}

Test(ladder, segments_that_cost_a_barrier_are_given_back_only_in_need)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_SYNC,
                .context = bench.context,
                .release_needs_idle = true,
        };
        spm_pool pool = bench_pool(config);

        bench_free(bench_alloc(pool, 0, 32 * MIB), 0);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_QUERY);
        bench.no_memory = true;
        cr_expect_eq(try_alloc(pool, 0, 64 * MIB, true), SPM_E_OUT_OF_MEMORY);
        cr_expect_str_eq(bench.log, "GXG");
}

Test(ladder, the_cap_is_exact_and_free_memory_is_joined_and_given_back_first)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .provider = SPM_PROVIDER_MODEL,
                .grain = 1024,
                .segment_size = 1024,
                .max_size = 4096,
        };
        spm_pool pool = bench_pool(config);
        uint64_t a = bench_alloc(pool, bench.s, 2048);
        uint64_t b = bench_alloc(pool, bench.s, 2048);

        cr_expect_eq(try_alloc(pool, bench.s, 1, true), SPM_E_OUT_OF_MEMORY, "A21");
        cr_expect_eq(bench_stats(pool).used_current, 4096);
        bench_free(a, bench.s);
        bench_free(b, bench.s);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
        cr_expect_eq(try_alloc(pool, bench.s, 4096, false), SPM_OK, "A22");
        cr_expect_eq(bench_stats(pool).reserved_current, 4096);
        cr_expect_eq(try_alloc(pool, bench.s, 4097, true), SPM_E_OUT_OF_MEMORY);
}

Test(ladder, too_much_in_limbo_is_waited_for_before_growing)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_SYNC, .context = bench.context, .pending_limit = 40 * MIB};
        spm_pool pool = bench_pool(config);
        int i;

        for (i = 0; i < 100; i++)
                bench_free(bench_alloc(pool, 0, 16 * MIB), 0);
        cr_expect_leq(bench_stats(pool).reserved_high, 128 * MIB,
                      "O3: an endless loop stays within bounds");
}

/* Does a growth wait when so much is pending in the synchronous pool, in blocks of 16 MiB? */
static bool waits_with(unsigned int pending)
{
        uint64_t at[16];
        unsigned int i;

        for (i = 0; i < pending; i++)
                at[i] = bench_alloc(bench.sync, 0, 16 * MIB);
        for (i = 0; i < pending; i++)
                bench_free(at[i], 0);
        cr_assert_eq(bench_stats(bench.sync).pending_bytes, pending * 16 * MIB);
        bench_alloc(bench.sync, 0, 512 * MIB);
        return strchr(bench.log, 'H') != NULL;
}

static void start_over(void)
{
        bench_tear_down();
        bench_set_up();
}

Test(ladder, the_usual_limit_is_64_mib_or_an_eighth_of_what_was_in_use)
{
        cr_expect_not(waits_with(4), "O3");
        start_over();
        cr_expect(waits_with(5));
        start_over();
        bench_alloc(bench.sync, 0, 1024 * MIB - 8 * 16 * MIB);
        cr_expect_not(waits_with(8));
        start_over();
        bench_alloc(bench.sync, 0, 1024 * MIB - 9 * 16 * MIB);
        cr_expect(waits_with(9));
}

Test(ladder, a_stamp_of_the_context_completes_asynchronous_frees_as_well)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 32 * MIB);

        bench_free(a, bench.s);
        bench_free(bench_alloc(bench.sync, 0, 64 * MIB), 0);
        bench.device_done = true;
        cr_expect_eq(bench_alloc(bench.async, bench.t, 32 * MIB), a);
        cr_expect_eq(bench.log[0], 'P', "by the stamp rather than the stream");
}

/* a caller who would rather not give more yet */

Test(ladder, a_growth_that_comes_first_is_not_the_last_resort_and_the_one_after_all_else_is)
{
        bench.thrifty = true;
        bench_alloc(bench.sync, 0, 16 * MIB);
        cr_expect_str_eq(bench.log, "GG");
        cr_expect_not(bench.seen[0].last);
        cr_expect(bench.seen[1].last);
        cr_expect_eq(bench.preferred, 16 * MIB, "and it asks for no more than it needs");
}

Test(ladder, refused_the_first_growth_a_request_waits_for_what_was_freed)
{
        uint64_t a = bench_alloc(bench.sync, 0, 4 * MIB);

        bench_free(a, 0);
        bench.thrifty = true;
        cr_expect_eq(bench_alloc(bench.sync, 0, 4 * MIB), a);
        cr_expect_str_eq(bench.log, "RPGhD");
}

Test(ladder, refused_the_first_growth_a_stream_waits_for_what_another_freed)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 32 * MIB);

        bench_free(a, bench.s);
        bench.thrifty = true;
        cr_expect_eq(bench_alloc(bench.async, bench.t, 32 * MIB), a);
        cr_expect_str_eq(bench.log, "ppGRW");
}

Test(ladder, refused_the_first_growth_a_request_gives_back_what_does_not_fit)
{
        uint64_t a = bench_alloc(bench.sync, 0, 4 * MIB);

        bench_free(a, 0);
        bench.thrifty = true;
        bench_alloc(bench.sync, 0, 8 * MIB);
        cr_expect_str_eq(bench.log, "RPGhDXG");
}
