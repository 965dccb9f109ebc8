/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limbo -- freed, but work that may touch it can still be running
 */

#include "bench.h"

#include <string.h>

TestSuite(limbo, .init = bench_set_up, .fini = bench_tear_down);

static uint64_t pending_on(spm_stream stream)
{
        uint64_t bytes = 0;

        cr_assert_eq(spm_pending_on(bench.model, stream, &bytes), SPM_OK);
        return bytes;
}

Test(limbo, a_synchronous_block_waits_for_its_whole_context)
{
        uint64_t a = bench_alloc(bench.sync, 0, 32 * MIB);

        bench_free(a, 0);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
        bench_sync(SPM_SCOPE_STREAM, bench.legacy, SPM_SYNC_QUERY);
        cr_expect_eq(bench_stats(bench.sync).pending_bytes, 32 * MIB);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_QUERY);
        cr_expect_eq(bench_stats(bench.sync).ready_bytes, 32 * MIB);
}

Test(limbo, frees_made_during_a_synchronisation_are_not_covered)
{
        struct spm_scope scope = {SPM_SCOPE_CONTEXT, bench.context};
        uint64_t a = bench_alloc(bench.sync, 0, 1 * MIB);
        uint64_t b = bench_alloc(bench.sync, 0, 1 * MIB);
        struct spm_ticket ticket;
        struct spm_actions actions;

        bench_free(a, 0);
        spm_sync_begin(bench.model, scope, &ticket);
        bench_free(b, 0);
        spm_sync_end(bench.model, &ticket, SPM_SYNC_QUERY, true, &actions);
        cr_expect_eq(bench_stats(bench.sync).pending_bytes, 1 * MIB);
}

Test(limbo, a_batch_is_stamped_when_it_is_full)
{
        uint64_t at[128];
        int i;

        for (i = 0; i < 128; i++)
                at[i] = bench_alloc(bench.sync, 0, 512);
        for (i = 0; i < 127; i++) {
                bench_free(at[i], 0);
                cr_expect_str_eq(bench.log, "");
        }
        bench_free(at[127], 0);
        cr_expect_str_eq(bench.log, "R");
        cr_expect_eq(bench.stamped, 0, "one stamp for the whole context");
}

Test(limbo, a_batch_is_stamped_when_it_is_large)
{
        uint64_t a = bench_alloc(bench.sync, 0, 6 * MIB);
        uint64_t b = bench_alloc(bench.sync, 0, 6 * MIB);

        bench_free(a, 0);
        cr_expect_str_eq(bench.log, "");
        bench_free(b, 0);
        cr_expect_str_eq(bench.log, "R", "8 MiB are in any pool");
}

Test(limbo, of_a_larger_pool_more_is_a_batch)
{
        uint64_t a = bench_alloc(bench.sync, 0, 12 * MIB);
        uint64_t b = bench_alloc(bench.sync, 0, 12 * MIB);
        uint64_t c = bench_alloc(bench.sync, 0, 20 * MIB);
        uint64_t d = bench_alloc(bench.sync, 0, 20 * MIB);
        uint64_t rest = bench_alloc(bench.sync, 0, 192 * MIB);

        bench_free(a, 0);
        cr_expect_str_eq(bench.log, "");
        bench_free(b, 0);
        cr_expect_str_eq(bench.log, "R", "a sixteenth of what was in use");
        bench_alloc(bench.sync, 0, 1024 * MIB);
        bench_free(c, 0);
        cr_expect_str_eq(bench.log, "");
        bench_free(d, 0);
        cr_expect_str_eq(bench.log, "R", "but never more than batch_bytes");
        bench_free(rest, 0);
}

Test(limbo, a_stamp_that_could_not_be_recorded_stands_for_nothing)
{
        uint64_t a = bench_alloc(bench.sync, 0, 32 * MIB);
        struct spm_actions actions;

        bench.no_records = true;
        bench_free(a, 0);
        cr_expect_str_eq(bench.log, "R");
        cr_expect_eq(spm_stamp_done(bench.model, bench.stamp, &actions), SPM_E_UNKNOWN);
        cr_expect_eq(bench_stats(bench.sync).pending_bytes, 32 * MIB);
        bench.no_records = false;
        bench.device_done = true;
        cr_expect_eq(bench_alloc(bench.sync, 0, 32 * MIB), a, "unstamped again, so stamped anew");
        cr_expect_str_eq(bench.log, "RPD");
}

Test(limbo, an_asynchronous_free_of_a_synchronous_block_waits_for_its_stream)
{
        uint64_t a = bench_alloc(bench.sync, 0, 32 * MIB);

        bench_free(a, bench.s);
        cr_expect_eq(pending_on(bench.s), 32 * MIB);
        bench_sync(SPM_SCOPE_STREAM, bench.t, SPM_SYNC_QUERY);
        cr_expect_eq(pending_on(bench.s), 32 * MIB);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
        cr_expect_eq(bench_alloc(bench.sync, 0, 32 * MIB), a);
}

Test(limbo, a_free_on_another_stream_belongs_to_that_stream)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 32 * MIB);

        bench_wait(bench.t, bench_record(bench.s));
        bench_free(a, bench.t);
        cr_expect_eq(pending_on(bench.t), 32 * MIB);
        cr_expect_eq(bench_alloc(bench.async, bench.t, 32 * MIB), a);
        bench_free(a, bench.t);
        cr_expect_neq(bench_alloc(bench.async, bench.s, 32 * MIB), a);
}

Test(limbo, a_block_born_of_pending_memory_is_not_complete_when_the_host_frees_it)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 32 * MIB);

        bench_free(a, bench.s);
        cr_assert_eq(bench_alloc(bench.async, bench.s, 32 * MIB), a);
        bench_free(a, 0);
        cr_expect_eq(bench_stats(bench.async).pending_bytes, 32 * MIB, "A6");
        cr_expect_neq(bench_alloc(bench.async, bench.t, 32 * MIB), a);
        cr_expect_eq(bench_alloc(bench.async, bench.s, 32 * MIB), a, "its own stream may have it");
}

Test(limbo, a_block_born_of_complete_memory_is_ready_when_the_host_frees_it)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 32 * MIB);

        bench_free(a, 0);
        cr_expect_eq(bench_alloc(bench.async, bench.t, 32 * MIB), a, "A5");
        cr_expect_str_eq(bench.log, "");
}

Test(limbo, a_stream_that_does_not_run_after_the_birth_waits_for_it)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 32 * MIB);

        bench_free(a, bench.s);
        cr_assert_eq(bench_alloc(bench.async, bench.s, 32 * MIB), a);
        bench_free(a, bench.t);
        cr_expect_neq(bench_alloc(bench.async, bench.t, 32 * MIB), a);
        bench_wait(bench.t, bench_record(bench.s));
        cr_expect_eq(bench_alloc(bench.async, bench.t, 32 * MIB), a);
}

Test(limbo, a_donor_is_remembered_until_it_is_complete)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 32 * MIB);
        struct spm_request request = {.pool = bench.async, .stream = bench.t, .size = 32 * MIB};
        struct spm_scope scope = {SPM_SCOPE_STREAM, bench.t};
        struct spm_allocation allocation;
        struct spm_actions belt;
        struct spm_actions actions;
        struct spm_ticket ticket;

        bench_free(a, bench.s);
        bench_wait(bench.t, bench_record(bench.s));
        cr_assert_eq(spm_alloc(bench.model, &request, &allocation, &belt), SPM_OK);
        cr_assert_eq(allocation.address, a);
        /* Another thread looks at the stream before the belt is on. */
        spm_sync_begin(bench.model, scope, &ticket);
        spm_sync_end(bench.model, &ticket, SPM_SYNC_POLL, false, &actions);
        bench_do(&belt, NULL);
        bench_free(a, 0);
        cr_expect_gt(bench_stats(bench.async).pending_bytes, 0);
}

Test(limbo, a_stream_may_be_forgotten_before_its_frees)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 32 * MIB);
        struct spm_actions actions;

        bench_free(a, bench.s);
        bench.log[0] = 0;
        cr_assert_eq(spm_stream_retire(bench.model, bench.s, &actions), SPM_OK);
        bench_do(&actions, NULL);
        cr_expect_str_eq(bench.log, "R", "L1: stamped for the last time");
        cr_expect_eq(spm_stream_retire(bench.model, bench.s, &actions), SPM_E_UNKNOWN);
        cr_expect_neq(bench_alloc(bench.async, bench.t, 32 * MIB), a);
        bench.device_done = true;
        cr_expect_eq(bench_alloc(bench.async, bench.t, 32 * MIB), a);
        cr_expect_str_eq(bench.log, "PD", "by the stamp, never by the stream");
}

static void retire(spm_stream stream)
{
        struct spm_actions actions;

        bench.log[0] = 0;
        cr_assert_eq(spm_stream_retire(bench.model, stream, &actions), SPM_OK);
        bench_do(&actions, NULL);
}

/* Nothing says that the legacy stream waits for what is left of it. */
Test(limbo, the_legacy_stream_says_nothing_of_a_destroyed_one)
{
        uint64_t a = bench_alloc(bench.async, bench.blocking, 32 * MIB);

        bench_free(a, bench.blocking);
        retire(bench.blocking);
        cr_expect_str_eq(bench.log, "R");
        bench_sync(SPM_SCOPE_STREAM, bench.legacy, SPM_SYNC_QUERY);
        cr_expect_eq(bench_stats(bench.async).pending_bytes, 32 * MIB);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_QUERY);
        cr_expect_eq(bench_stats(bench.async).pending_bytes, 0);
}

/* What was freed on it is behind the stream's work, and later nobody could tell. */
Test(limbo, the_legacy_stream_is_stamped_before_a_blocking_one_is_destroyed)
{
        bench_free(bench_alloc(bench.async, bench.legacy, 32 * MIB), bench.legacy);
        retire(bench.s);
        cr_expect_str_eq(bench.log, "", "it is none of those");
        retire(bench.blocking);
        cr_expect_str_eq(bench.log, "R");
        cr_expect_eq(bench.stamped, bench.legacy);
}

Test(limbo, a_free_on_a_blocking_stream_waits_for_the_legacy_stream_too)
{
        uint64_t a = bench_alloc(bench.async, bench.blocking, 32 * MIB);

        bench_free(a, bench.blocking);
        bench_sync(SPM_SCOPE_STREAM, bench.blocking, SPM_SYNC_QUERY);
        cr_expect_eq(bench_stats(bench.async).pending_bytes, 32 * MIB);
        bench_sync(SPM_SCOPE_STREAM, bench.legacy, SPM_SYNC_QUERY);
        cr_expect_eq(bench_stats(bench.async).pending_bytes, 0);
}

static struct spm_ticket start_to_ask(spm_stream stream)
{
        struct spm_scope scope = {SPM_SCOPE_STREAM, stream};
        struct spm_ticket ticket;

        cr_assert_eq(spm_sync_begin(bench.model, scope, &ticket), SPM_OK);
        return ticket;
}

static void hear_yes(struct spm_ticket ticket)
{
        struct spm_actions actions;

        spm_sync_end(bench.model, &ticket, SPM_SYNC_QUERY, true, &actions);
        bench_do(&actions, NULL);
}

/* What t has freed can be joined once t is behind s, of which those who ask t now hear nothing. */
static void join_on_t(void)
{
        struct spm_ticket asked = start_to_ask(bench.t);

        bench_wait(bench.t, bench_record(bench.s));
        bench_alloc(bench.async, bench.t, 16 * MIB);
        hear_yes(asked);
}

Test(limbo, what_is_joined_waits_for_all_that_its_parts_waited_for)
{
        uint64_t base = bench_give(bench.async, 8 * MIB);

        cr_assert_eq(bench_alloc(bench.async, bench.s, 4 * MIB), base);
        cr_assert_eq(bench_alloc(bench.async, bench.t, 4 * MIB), base + 4 * MIB);
        bench_free(base, bench.s);
        cr_assert_eq(bench_alloc(bench.async, bench.s, 4 * MIB), base, "born of pending memory");
        bench_free(base, bench.t);
        bench_free(base + 4 * MIB, bench.t);
        join_on_t();
        cr_expect_eq(bench_stats(bench.async).pending_bytes, 8 * MIB);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
        cr_expect_eq(bench_stats(bench.async).pending_bytes, 0);
}

Test(limbo, what_is_joined_waits_for_the_later_of_two_births)
{
        uint64_t base = bench_give(bench.async, 8 * MIB);
        struct spm_ticket between;

        cr_assert_eq(bench_alloc(bench.async, bench.s, 8 * MIB), base);
        bench_free(base, bench.s);
        cr_assert_eq(bench_alloc(bench.async, bench.s, 4 * MIB), base);
        between = start_to_ask(bench.s);
        cr_assert_eq(bench_alloc(bench.async, bench.s, 4 * MIB), base + 4 * MIB);
        bench_free(base + 4 * MIB, bench.t);
        bench_free(base, bench.t);
        join_on_t();
        hear_yes(between);
        cr_expect_eq(bench_stats(bench.async).pending_bytes, 8 * MIB);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
        cr_expect_eq(bench_stats(bench.async).pending_bytes, 0);
}

static void wait_in_context(spm_event event)
{
        struct spm_scope whole = {SPM_SCOPE_CONTEXT, bench.context};
        struct spm_ticket ticket;

        spm_wait_begin(bench.model, whole, event, &ticket);
        spm_wait_end(bench.model, &ticket, true);
}

Test(limbo, waiting_for_an_idle_stream_does_not_complete_what_its_context_waits_for)
{
        bench_free(bench_alloc(bench.async, bench.t, 32 * MIB), bench.t);
        wait_in_context(bench_record(bench.t));
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
        cr_expect_eq(bench_stats(bench.async).pending_bytes, 32 * MIB);
}

Test(limbo, a_birth_ordered_by_a_wait_of_the_context_is_remembered)
{
        uint64_t a = bench_alloc(bench.async, bench.t, 32 * MIB);

        bench_free(a, bench.t);
        cr_assert_eq(bench_alloc(bench.async, bench.t, 32 * MIB), a);
        bench_free(a, bench.s);
        wait_in_context(bench_record(bench.t));
        cr_assert_eq(bench_alloc(bench.async, bench.s, 32 * MIB), a, "s runs after the birth now");
        bench_free(a, 0);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
        cr_expect_eq(bench_stats(bench.async).pending_bytes, 32 * MIB, "but is idle, and t is not");
}

Test(limbo, stamps_of_a_stream_that_nobody_observes_are_thinned_out)
{
        long records = 0;
        long drops = 0;
        int i;

        for (i = 0; i < 500; i++) {
                const char *letter;

                bench_free(bench_alloc(bench.async, bench.s, 512), bench.s);
                bench_record(bench.s);
                for (letter = bench.log; *letter; letter++) {
                        records += *letter == 'R';
                        drops += *letter == 'D';
                }
        }
        cr_expect_eq(records, 500);
        cr_expect_leq(records - drops, 65, "L9");
        cr_expect_geq(records - drops, 64);
}

Test(limbo, what_a_context_waits_for_is_not_observed_through_an_idle_stream)
{
        struct spm_scope whole = {SPM_SCOPE_CONTEXT, bench.context};
        uint64_t a = bench_alloc(bench.async, bench.s, 32 * MIB);
        spm_event event = bench_record(bench.t);
        struct spm_ticket ticket;

        spm_wait_begin(bench.model, whole, event, &ticket);
        spm_wait_end(bench.model, &ticket, true);
        bench_free(a, bench.s);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
        cr_expect_eq(bench_stats(bench.async).pending_bytes, 32 * MIB);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_QUERY);
        cr_expect_eq(bench_stats(bench.async).pending_bytes, 0);
}
