/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work -- one stream has work (R1), or several have
 */

#include "bench.h"

#define LARGE (4 * MIB)

static void watch(void)
{
        bench_set_up();
        bench_watch();
}

TestSuite(work, .init = watch, .fini = bench_tear_down);
TestSuite(unwatched, .init = bench_set_up, .fini = bench_tear_down);

static bool is_crowded(void)
{
        return spm_context_is_crowded(bench.model, bench.context);
}

static void recount(void)
{
        struct spm_actions actions;

        cr_assert_eq(spm_context_recount(bench.model, bench.context, &actions), SPM_OK);
        bench_do(&actions, NULL);
}

/* A block that was freed while @stream alone had work, and served again. */
static uint64_t serve_early(spm_stream stream)
{
        uint64_t a = bench_alloc(bench.sync, 0, LARGE);

        bench_submit(stream);
        bench_free(a, 0);
        cr_expect_eq(bench_alloc(bench.sync, 0, LARGE), a);
        cr_expect_str_eq(bench.log, "");
        return a;
}

Test(work, a_context_without_work_has_nothing_pending)
{
        uint64_t a = bench_alloc(bench.sync, 0, LARGE);

        bench_free(a, 0);
        cr_expect_str_eq(bench.log, "");
        cr_expect_eq(bench_stats(bench.sync).pending_bytes, 0);
}

/* Its streams may wait for work elsewhere that is in its memory. */
Test(work, a_context_beside_others_is_never_without)
{
        struct spm_actions actions;
        uint64_t a = bench_alloc(bench.sync, 0, LARGE);

        cr_assert_eq(spm_context_share(bench.model, bench.context, &actions), SPM_OK);
        cr_expect_eq(actions.count, 0);
        bench_free(a, 0);
        cr_expect_eq(bench_stats(bench.sync).pending_bytes, LARGE);
}

Test(work, a_blocking_stream_with_work_is_behind_an_allocation_on_the_legacy_stream)
{
        uint64_t a = bench_alloc(bench.async, bench.legacy, LARGE);

        bench_submit(bench.s);
        bench_free(a, bench.legacy);
        cr_expect_eq(bench_alloc(bench.async, bench.legacy, LARGE), a);
        cr_expect_str_eq(bench.log, "", "no stream that blocks has work");
        bench_free(a, bench.legacy);
        bench_submit(bench.blocking);
        cr_expect_eq(bench_alloc(bench.async, bench.legacy, LARGE), a);
        cr_expect_str_eq(bench.log, "R", "H6");
}

/* It orders what is freed on the legacy stream later, although the driver has not seen it. */
Test(work, a_blocking_stream_with_work_is_behind_an_allocation_when_it_is_destroyed)
{
        spm_stream idle = bench_add_blocking();
        struct spm_actions actions;

        bench_submit(bench.blocking);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
        bench_submit(bench.blocking);
        bench_alloc(bench.async, bench.legacy, LARGE);
        bench.log[0] = '\0';
        cr_assert_eq(spm_stream_retire(bench.model, idle, &actions), SPM_OK);
        bench_do(&actions, NULL);
        cr_expect_str_eq(bench.log, "", "it has none");
        cr_assert_eq(spm_stream_retire(bench.model, bench.blocking, &actions), SPM_OK);
        bench_do(&actions, NULL);
        cr_expect_str_eq(bench.log, "R");
        cr_expect_eq(bench.stamped, bench.legacy);
}

Test(unwatched, what_is_not_announced_is_not_assumed)
{
        uint64_t a = bench_alloc(bench.sync, 0, LARGE);

        bench_free(a, 0);
        cr_expect_eq(bench_stats(bench.sync).pending_bytes, LARGE);
        bench_submit(bench.s);
        cr_expect_neq(bench_alloc(bench.sync, 0, LARGE), a);
}

Test(unwatched, work_from_before_the_watch_is_waited_for)
{
        struct spm_actions actions;
        uint64_t a = bench_alloc(bench.sync, 0, LARGE);

        cr_assert_eq(spm_context_watch(bench.model, bench.context, true, &actions), SPM_OK);
        bench_do(&actions, NULL);
        cr_expect_str_eq(bench.log, "GRP");
        bench_submit(bench.s);
        bench_free(a, 0);
        cr_expect_neq(bench_alloc(bench.sync, 0, LARGE), a);
        cr_expect(is_crowded());
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
        cr_expect_not(is_crowded());
}

Test(work, the_only_stream_with_work_has_a_block_again_at_once)
{
        uint64_t a = serve_early(bench.s);

        cr_expect(spm_is_ready(bench.model, a), "the program may use it anywhere");
        cr_expect(spm_is_ready_on(bench.model, a, bench.t, 0));
}

Test(work, so_has_the_legacy_stream_beside_one_that_blocks)
{
        uint64_t a = bench_alloc(bench.sync, 0, LARGE);

        bench_submit(bench.legacy);
        bench_submit(bench.blocking);
        bench_free(a, 0);
        cr_expect_eq(bench_alloc(bench.sync, 0, LARGE), a);
        bench_submit(bench.blocking);
        cr_expect_str_eq(bench.log, "R");
        cr_expect_eq(bench.stamped, bench.legacy);
        bench_submit(bench_add_blocking());
        cr_expect_str_eq(bench.log, "C");
}

Test(work, what_was_served_early_is_stamped_before_the_next_submission)
{
        serve_early(bench.s);
        bench_submit(bench.s);
        cr_expect_str_eq(bench.log, "R");
        cr_expect_eq(bench.stamped, bench.s);
        bench_submit(bench.s);
        cr_expect_str_eq(bench.log, "");
}

Test(work, a_second_stream_waits_for_the_stamp_and_for_nothing_later)
{
        spm_stamp stamp;

        serve_early(bench.s);
        bench_submit(bench.s);
        stamp = bench.stamp;
        bench_free(bench_alloc(bench.sync, 0, LARGE), 0);
        bench_submit(bench.s);
        bench_submit(bench.t);
        cr_expect_str_eq(bench.log, "C");
        cr_expect_neq(bench.stamp, stamp, "there is a later one, and it is not waited for");
        cr_expect(is_crowded());
}

Test(work, a_second_stream_after_nothing_was_served_early_waits_for_nothing)
{
        uint64_t a = bench_alloc(bench.sync, 0, LARGE);

        bench_submit(bench.s);
        bench_free(a, 0);
        bench_submit(bench.t);
        cr_expect_str_eq(bench.log, "");
        cr_expect_neq(bench_alloc(bench.sync, 0, LARGE), a, "several streams have work");
}

Test(work, a_little_memory_is_not_worth_a_stamp_and_waits)
{
        uint64_t a = bench_alloc(bench.sync, 0, 4096);

        bench_submit(bench.s);
        bench_free(a, 0);
        bench_submit(bench.s);
        cr_expect_str_eq(bench.log, "");
        cr_expect_neq(bench_alloc(bench.sync, 0, 4096), a);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
        cr_expect_eq(bench_alloc(bench.sync, 0, 4096), a);
}

Test(work, a_block_that_is_free_for_the_only_stream_is_free_for_no_other)
{
        uint64_t a = bench_alloc(bench.sync, 0, LARGE);

        bench_submit(bench.s);
        bench_free(a, 0);
        bench_submit(bench.s);
        cr_expect_str_eq(bench.log, "R");
        bench_submit(bench.t);
        cr_expect_neq(bench_alloc(bench.sync, 0, LARGE), a);
}

/* Two threads: the first one has been told what to do, and has not done it yet. */
Test(work, nobody_relies_on_a_wait_that_another_thread_is_yet_to_submit)
{
        struct spm_actions first, second;

        serve_early(bench.s);
        bench.log[0] = '\0';
        cr_assert_eq(spm_submit(bench.model, bench.t, &first), SPM_OK);
        cr_expect_eq(first.count, 2);
        cr_assert_eq(spm_submit(bench.model, bench.blocking, &second), SPM_OK);
        bench_do(&second, NULL);
        cr_expect_str_eq(bench.log, "RC");
        bench.log[0] = '\0';
        bench_do(&first, NULL);
        bench.log[0] = '\0';
        bench_submit(bench.t);
        cr_expect_str_eq(bench.log, "C");
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        bench.log[0] = '\0';
        bench_submit(bench.t);
        cr_expect_str_eq(bench.log, "", "it is of no use any more");
}

/* Each is larger than what was freed before, so that nothing fits; the device does nothing. */
Test(work, what_the_only_stream_may_have_early_is_waited_for_before_growing)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_SYNC, .context = bench.context, .pending_limit = 40 * MIB};
        spm_pool pool = bench_pool(config);
        size_t i;

        for (i = 0; i < 20; i++) {
                uint64_t a = bench_alloc(pool, 0, (16 + 2 * i) * MIB);

                bench_submit(bench.s);
                bench_free(a, 0);
                bench_submit(bench.s);
        }
        cr_expect_leq(bench_stats(pool).reserved_high, 256 * MIB, "O3");
}

/* It is as good as what is ready, as long as it is no more than the program had in use. */
Test(work, what_the_only_stream_may_have_early_is_not_waited_for)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_SYNC, .context = bench.context, .pending_limit = LARGE};
        spm_pool pool = bench_pool(config);
        uint64_t a = bench_alloc(pool, 0, 4 * LARGE);

        bench_submit(bench.s);
        bench_free(a, 0);
        bench_submit(bench.s);
        bench_alloc(pool, 0, 5 * LARGE);
        cr_expect(!strchr(bench.log, 'H'), "%s", bench.log);
}

/* A synchronous copy goes ahead of what the device was told to wait for. */
Test(work, on_the_legacy_stream_the_host_waits)
{
        serve_early(bench.s);
        bench_submit(bench.legacy);
        cr_expect_str_eq(bench.log, "RHD");
}

Test(work, another_threads_own_stream_ends_it)
{
        spm_stream own;

        cr_assert_eq(spm_stream_add(bench.model, bench.context, SPM_STREAM_PER_THREAD, &own),
                     SPM_OK);
        serve_early(bench.s);
        bench_submit(own);
        cr_expect_str_eq(bench.log, "RHD");
}

Test(work, another_threads_own_stream_does_not_rely_on_the_legacy_stream)
{
        uint64_t a = bench_alloc(bench.async, bench.legacy, LARGE);
        spm_stream own;

        cr_assert_eq(spm_stream_add(bench.model, bench.context, SPM_STREAM_PER_THREAD, &own),
                     SPM_OK);
        bench_submit(own);
        bench_free(a, bench.legacy);
        cr_expect_eq(bench_alloc(bench.async, bench.legacy, LARGE), a);
        cr_expect_str_eq(bench.log, "R", "H6");
}

Test(work, another_threads_own_stream_is_never_the_only_one)
{
        uint64_t a = bench_alloc(bench.sync, 0, LARGE);
        spm_stream own;

        cr_assert_eq(spm_stream_add(bench.model, bench.context, SPM_STREAM_PER_THREAD, &own),
                     SPM_OK);
        bench_submit(own);
        bench_free(a, 0);
        cr_expect_neq(bench_alloc(bench.sync, 0, LARGE), a, "nobody else can stamp it");
}

Test(work, the_end_of_the_only_stream_ends_it)
{
        struct spm_actions actions;

        serve_early(bench.s);
        bench.log[0] = '\0';
        cr_assert_eq(spm_stream_retire(bench.model, bench.s, &actions), SPM_OK);
        bench_do(&actions, NULL);
        cr_expect_str_eq(bench.log, "RHD");
}

Test(work, a_capture_ends_it_until_all_is_counted_anew)
{
        struct spm_actions actions;

        serve_early(bench.s);
        bench.log[0] = '\0';
        cr_assert_eq(spm_capture_begin(bench.model, bench.t, &actions), SPM_OK);
        bench_do(&actions, NULL);
        cr_expect_str_eq(bench.log, "RHDR", "the last moment for a stamp of what is pending");
        cr_assert_eq(spm_capture_end(bench.model, bench.t), SPM_OK);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
        cr_expect(is_crowded(), "what was submitted meanwhile was not announced");
        recount();
        bench_submit(bench.s);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
        serve_early(bench.s);
}

Test(work, whoever_is_outside_is_waited_for_on_the_host)
{
        struct spm_actions actions;
        uint64_t a;

        serve_early(bench.s);
        bench.log[0] = '\0';
        cr_assert_eq(spm_context_share(bench.model, bench.context, &actions), SPM_OK);
        bench_do(&actions, NULL);
        cr_expect_str_eq(bench.log, "RHD");
        bench_free(bench_alloc(bench.sync, 0, LARGE), 0);
        recount();
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
        bench_submit(bench.s);
        a = bench_alloc(bench.sync, 0, LARGE);
        bench_free(a, 0);
        cr_expect_neq(bench_alloc(bench.sync, 0, LARGE), a, "not alone, for ever");
}

Test(work, streams_that_have_been_silent_since_a_stamp_have_no_work)
{
        bench_submit(bench.s);
        bench_submit(bench.t);
        cr_expect(is_crowded());
        recount();
        bench_submit(bench.t);
        cr_expect(is_crowded(), "what the other one had may go on");
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_QUERY);
        cr_expect_not(is_crowded());
        serve_early(bench.t);
}

/* The two are in order with one another, but each allocation between them costs an event. */
Test(work, a_stream_that_blocks_is_one_too_many_where_the_legacy_stream_is_allocated_on)
{
        bench_submit(bench.legacy);
        bench_submit(bench.blocking);
        cr_expect_not(is_crowded());
        bench_alloc(bench.async, bench.legacy, LARGE);
        cr_expect(is_crowded());
        recount();
        bench_submit(bench.legacy);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
        cr_expect_not(is_crowded());
        bench.log[0] = '\0';
        bench_alloc(bench.async, bench.legacy, LARGE);
        cr_expect_str_eq(bench.log, "G", "memory, and no event");
}

Test(work, a_synchronisation_that_began_before_the_count_proves_nothing)
{
        struct spm_scope scope = {SPM_SCOPE_CONTEXT, bench.context};
        struct spm_actions actions;
        struct spm_ticket ticket;

        bench_submit(bench.s);
        bench_submit(bench.t);
        cr_assert_eq(spm_sync_begin(bench.model, scope, &ticket), SPM_OK);
        recount();
        spm_sync_end(bench.model, &ticket, SPM_SYNC_WAIT, true, &actions);
        bench_do(&actions, NULL);
        cr_expect(is_crowded());
}

Test(work, a_pair_on_the_legacy_stream_is_free_where_no_stream_that_blocks_has_work)
{
        uint64_t a = bench_alloc(bench.async, bench.legacy, LARGE);

        bench_submit(bench.legacy);
        bench_submit(bench.s);
        bench_free(a, bench.legacy);
        cr_expect_eq(bench_alloc(bench.async, bench.legacy, LARGE), a);
        cr_expect_str_eq(bench.log, "");
        bench_submit(bench.blocking);
        bench_free(a, bench.legacy);
        cr_expect_eq(bench_alloc(bench.async, bench.legacy, LARGE), a);
        cr_expect_str_eq(bench.log, "R");
}

Test(work, a_block_of_the_hosts_memory_is_never_served_early)
{
        struct spm_pool_config config = {.kind = SPM_POOL_HOST, .context = bench.context};
        spm_pool pool = bench_pool(config);
        uint64_t a = bench_alloc(pool, 0, LARGE);

        bench_submit(bench.s);
        bench_free(a, 0);
        cr_expect_neq(bench_alloc(pool, 0, LARGE), a);
}

/* The driver's own free would not have waited for a kernel that a second stream may have to end. */
Test(work, what_is_freed_in_the_order_of_the_only_stream_is_waited_for)
{
        uint64_t a = bench_alloc(bench.sync, 0, LARGE);

        bench_submit(bench.s);
        bench_free(a, bench.s);
        cr_expect_neq(bench_alloc(bench.sync, 0, LARGE), a);
}

/* To the only stream they are one piece, and a better fit than what is ready. */
Test(work, what_was_freed_between_stamps_is_joined_before_something_larger_is_cut)
{
        uint64_t large = bench_alloc(bench.sync, 0, 8 * LARGE);
        uint64_t whole = bench_alloc(bench.sync, 0, 2 * LARGE);
        uint64_t a;
        uint64_t b;

        bench_free(large, 0);
        bench_free(whole, 0);
        a = bench_alloc(bench.sync, 0, LARGE);
        b = bench_alloc(bench.sync, 0, LARGE);
        cr_assert_eq(a, whole);
        cr_assert_eq(b, whole + LARGE);
        bench_submit(bench.s);
        bench_free(a, 0);
        bench_submit(bench.s);
        cr_expect_str_eq(bench.log, "R");
        bench_free(b, 0);
        bench_submit(bench.s);
        cr_expect_str_eq(bench.log, "R");
        cr_expect_eq(bench_alloc(bench.sync, 0, 2 * LARGE), a);
}

/* A device that keeps up is not asked for a stamp at each launch. */
Test(work, after_some_stamps_in_a_row_memory_is_waited_for_until_it_is_missed)
{
        uint64_t a = bench_alloc(bench.sync, 0, LARGE);
        int stamps = 0;
        int i;

        bench.device_done = true;
        for (i = 0; i < 200; i++) {
                bench_submit(bench.s);
                stamps += bench.log[0] == 'R';
                bench_free(a, 0);
                a = bench_alloc(bench.sync, 0, LARGE);
        }
        bench.device_done = false;
        cr_expect(stamps > 10 && stamps < 100, "%d", stamps);
        bench_submit(bench.s);
        bench_free(a, 0);
        cr_expect_neq(bench_alloc(bench.sync, 0, LARGE), a, "missed");
        serve_early(bench.s);
}

/* What it would free as under R2 would be out of reach for as long as it is behind. */
Test(work, a_device_that_is_asked_and_still_behind_goes_on_being_stamped)
{
        uint64_t a = bench_alloc(bench.sync, 0, LARGE);
        int i;

        for (i = 0; i < 200; i++) {
                bench_submit(bench.s);
                cr_expect(!i || bench.log[0] == 'R', "%d: %s", i, bench.log);
                bench_free(a, 0);
                cr_expect_eq(bench_alloc(bench.sync, 0, LARGE), a, "%d", i);
        }
}

/* After @pairs on a device that keeps up, what was freed in the midst of them is asked for; for
 * some number of them the eager stamps have just run out, and it falls behind. */
static void miss_after(int pairs)
{
        uint64_t block[4], a = bench_alloc(bench.sync, 0, LARGE);
        int i;

        for (i = 0; i < 4; i++)
                block[i] = bench_alloc(bench.sync, 0, LARGE);
        bench.device_done = true;
        for (i = 0; i < pairs; i++) {
                bench_submit(bench.s);
                bench_free(a, 0);
                if (i >= 56 && i < 60)
                        bench_free(block[i - 56], 0);
                a = bench_alloc(bench.sync, 0, LARGE);
        }
        bench_submit(bench.s);
        bench.device_done = false;
        bench_alloc(bench.sync, 0, LARGE);
        cr_expect(!strchr(bench.log, 'G'), "after %d: %s", pairs, bench.log);
}

Test(work, what_was_missed_is_served_early_to_the_very_request)
{
        int pairs;

        for (pairs = 60; pairs < 70; pairs++) {
                miss_after(pairs);
                bench_tear_down();
                watch();
        }
}
