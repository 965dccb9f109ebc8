/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Observe -- what the program orders, and what the host has seen
 */

#include "bench.h"

#include <string.h>

#include "state.h"
#include "subject.h"

TestSuite(observe, .init = bench_set_up, .fini = bench_tear_down);

static struct spm_scope on(spm_stream stream)
{
        return (struct spm_scope){SPM_SCOPE_STREAM, stream};
}

/* Is a block that was freed on s before @event reused by a query of the event? */
static bool is_done(uint64_t pending)
{
        return bench_stats(bench.async).pending_bytes < pending;
}

static uint64_t freed_on_s(void)
{
        bench_free(bench_alloc(bench.async, bench.s, 32 * MIB), bench.s);
        return bench_stats(bench.async).pending_bytes;
}

Test(observe, an_event_that_is_done_completes_what_was_before_it)
{
        uint64_t pending = freed_on_s();
        spm_event event = bench_record(bench.s);

        bench_sync(SPM_SCOPE_EVENT, event, SPM_SYNC_QUERY);
        cr_expect(is_done(pending));
}

Test(observe, an_event_that_was_never_recorded_says_nothing)
{
        uint64_t pending = freed_on_s();
        spm_event event;

        spm_event_add(bench.model, &event);
        bench_sync(SPM_SCOPE_EVENT, event, SPM_SYNC_WAIT);
        cr_expect_not(is_done(pending));
}

Test(observe, an_event_recorded_again_during_a_wait_says_nothing)
{
        uint64_t pending = freed_on_s();
        spm_event event = bench_record(bench.s);
        struct spm_scope scope = {SPM_SCOPE_EVENT, event};
        struct spm_ticket wait;
        struct spm_ticket record;
        struct spm_actions actions;

        spm_sync_begin(bench.model, scope, &wait);
        spm_record_begin(bench.model, event, on(bench.t), &record, &actions);
        spm_record_end(bench.model, &record, true);
        spm_sync_end(bench.model, &wait, SPM_SYNC_WAIT, true, &actions);
        cr_expect_not(is_done(pending), "H4");
}

Test(observe, a_wait_begun_during_a_record_says_nothing)
{
        uint64_t pending = freed_on_s();
        spm_event event = bench_record(bench.t);
        struct spm_scope scope = {SPM_SCOPE_EVENT, event};
        struct spm_ticket wait;
        struct spm_ticket record;
        struct spm_actions actions;

        spm_record_begin(bench.model, event, on(bench.s), &record, &actions);
        spm_sync_begin(bench.model, scope, &wait);
        spm_record_end(bench.model, &record, true);
        spm_sync_end(bench.model, &wait, SPM_SYNC_WAIT, true, &actions);
        cr_expect_not(is_done(pending), "the wait may have seen the record before");
}

Test(observe, two_records_at_once_leave_the_event_unknown)
{
        uint64_t pending = freed_on_s();
        spm_event event;
        struct spm_ticket first;
        struct spm_ticket second;
        struct spm_actions actions;

        spm_event_add(bench.model, &event);
        spm_record_begin(bench.model, event, on(bench.t), &first, &actions);
        spm_record_begin(bench.model, event, on(bench.s), &second, &actions);
        bench_do(&actions, NULL);
        spm_record_end(bench.model, &first, true);
        spm_record_end(bench.model, &second, true);
        bench_sync(SPM_SCOPE_EVENT, event, SPM_SYNC_WAIT);
        cr_expect_not(is_done(pending));
}

Test(observe, a_record_that_failed_leaves_the_event_unknown)
{
        uint64_t pending = freed_on_s();
        spm_event event;
        struct spm_ticket ticket;
        struct spm_actions actions;

        spm_event_add(bench.model, &event);
        spm_record_begin(bench.model, event, on(bench.s), &ticket, &actions);
        bench_do(&actions, NULL);
        spm_record_end(bench.model, &ticket, false);
        bench_sync(SPM_SCOPE_EVENT, event, SPM_SYNC_WAIT);
        cr_expect_not(is_done(pending));
}

Test(observe, a_tainted_event_says_nothing_until_its_next_record)
{
        uint64_t pending = freed_on_s();
        spm_event event = bench_record(bench.s);
        struct spm_ticket ticket;
        struct spm_actions actions;

        spm_event_taint(bench.model, event, false);
        bench_sync(SPM_SCOPE_EVENT, event, SPM_SYNC_WAIT);
        cr_expect_not(is_done(pending), "H12");
        spm_record_begin(bench.model, event, on(bench.s), &ticket, &actions);
        spm_record_end(bench.model, &ticket, true);
        bench_sync(SPM_SCOPE_EVENT, event, SPM_SYNC_WAIT);
        cr_expect(is_done(pending));
}

Test(observe, an_event_tainted_for_ever_says_nothing_ever)
{
        uint64_t pending = freed_on_s();
        spm_event event = bench_record(bench.s);
        struct spm_ticket ticket;
        struct spm_actions actions;

        spm_event_taint(bench.model, event, true);
        spm_record_begin(bench.model, event, on(bench.s), &ticket, &actions);
        spm_record_end(bench.model, &ticket, true);
        bench_sync(SPM_SCOPE_EVENT, event, SPM_SYNC_WAIT);
        cr_expect_not(is_done(pending));
}

Test(observe, what_is_recorded_in_a_capture_is_no_event)
{
        uint64_t pending = freed_on_s();
        struct spm_actions actions;
        spm_event event;

        spm_capture_begin(bench.model, bench.s, &actions);
        bench_do(&actions, NULL);
        event = bench_record(bench.s);
        spm_capture_end(bench.model, bench.s);
        bench_sync(SPM_SCOPE_EVENT, event, SPM_SYNC_WAIT);
        cr_expect_not(is_done(pending), "H18");
}

Test(observe, an_error_completes_nothing)
{
        uint64_t pending = freed_on_s();
        struct spm_ticket ticket;
        struct spm_actions actions;

        spm_sync_begin(bench.model, on(bench.s), &ticket);
        spm_sync_end(bench.model, &ticket, SPM_SYNC_WAIT, false, &actions);
        cr_expect_not(is_done(pending));
}

Test(observe, waiting_for_a_stream_covers_what_it_waited_for)
{
        uint64_t pending = freed_on_s();

        bench_wait(bench.t, bench_record(bench.s));
        bench_sync(SPM_SCOPE_STREAM, bench.t, SPM_SYNC_QUERY);
        cr_expect(is_done(pending), "H5");
}

Test(observe, the_legacy_stream_answers_for_blocking_streams_only)
{
        uint64_t pending = freed_on_s();

        bench_free(bench_alloc(bench.async, bench.blocking, 32 * MIB), bench.blocking);
        bench_sync(SPM_SCOPE_STREAM, bench.legacy, SPM_SYNC_QUERY);
        cr_expect_eq(bench_stats(bench.async).pending_bytes, pending);
}

Test(observe, an_event_of_a_whole_context_covers_synchronous_frees)
{
        struct spm_scope whole = {SPM_SCOPE_CONTEXT, bench.context};
        struct spm_ticket ticket;
        struct spm_actions actions;
        spm_event event;

        bench_free(bench_alloc(bench.sync, 0, 1 * MIB), 0);
        spm_event_add(bench.model, &event);
        spm_record_begin(bench.model, event, whole, &ticket, &actions);
        spm_record_end(bench.model, &ticket, true);
        bench_sync(SPM_SCOPE_EVENT, event, SPM_SYNC_QUERY);
        cr_expect_eq(bench_stats(bench.sync).pending_bytes, 0, "H8");
}

Test(observe, a_stream_created_after_a_wait_of_its_context_follows_it)
{
        struct spm_scope whole = {SPM_SCOPE_CONTEXT, bench.context};
        uint64_t a = bench_alloc(bench.async, bench.s, 32 * MIB);
        struct spm_ticket ticket;
        spm_event event;
        spm_stream late;

        bench_free(a, bench.s);
        event = bench_record(bench.s);
        spm_wait_begin(bench.model, whole, event, &ticket);
        spm_wait_end(bench.model, &ticket, true);
        spm_stream_add(bench.model, bench.context, SPM_STREAM_NON_BLOCKING, &late);
        cr_expect_eq(bench_alloc(bench.async, late, 32 * MIB), a, "H9");
        cr_expect_str_eq(bench.log, "W");
}

/* A stream that s waits for. */
static spm_stream new_donor(void)
{
        spm_stream stream;

        cr_assert_eq(spm_stream_add(bench.model, bench.context, SPM_STREAM_NON_BLOCKING, &stream),
                     SPM_OK);
        bench_wait(bench.s, bench_record(stream));
        return stream;
}

static uint32_t known_to_s(void)
{
        return spm_subject_stream(bench.model, bench.s)->clock.count;
}

Test(observe, what_the_program_has_waited_for_is_not_carried_along)
{
        int i;

        for (i = 0; i < 20; i++)
                new_donor();
        cr_expect_eq(known_to_s(), 20);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
        new_donor();
        cr_expect_eq(known_to_s(), 1);
}

Test(observe, what_the_program_has_waited_for_is_not_recorded)
{
        const struct spm_event_state *event;
        int i;

        for (i = 0; i < 20; i++)
                new_donor();
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
        event = spm_subject_event(bench.model, bench_record(bench.s));
        cr_expect_eq(event->clock.count, 1);
}

Test(observe, streams_that_are_gone_are_not_carried_along)
{
        struct spm_actions actions;
        int i;

        for (i = 0; i < 100; i++) {
                spm_stream donor = new_donor();

                bench_sync(SPM_SCOPE_STREAM, donor, SPM_SYNC_POLL);
                spm_stream_retire(bench.model, donor, &actions);
                cr_assert_lt(known_to_s(), 12u);
        }
}

Test(observe, a_context_passes_over_streams_that_have_told_all)
{
        const struct spm_stream_state *s = spm_subject_stream(bench.model, bench.s);
        const struct spm_stream_state *legacy = spm_subject_stream(bench.model, bench.legacy);

        new_donor();
        bench_record(bench.legacy);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
        cr_expect(s->awake && legacy->awake, "this told of them");
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_QUERY);
        cr_expect(!s->awake && !legacy->awake);
        bench_record(bench.legacy);
        cr_expect(legacy->awake);
        new_donor();
        cr_expect(s->awake, "it waits for something");
}

Test(observe, a_stamp_that_was_waited_for_is_a_proof)
{
        uint64_t proofs = bench.model->proofs;

        bench_free(bench_alloc(bench.sync, 0, 32 * MIB), 0);
        bench.no_memory = true;
        bench_alloc(bench.sync, 0, 32 * MIB);
        cr_expect_not_null(strchr(bench.log, 'H'), "%s", bench.log);
        cr_expect_gt(bench.model->proofs, proofs);
}

Test(observe, handles_that_nobody_gave_are_unknown)
{
        struct spm_scope nothing = {SPM_SCOPE_STREAM, 999};
        struct spm_ticket ticket;
        struct spm_actions actions;
        spm_event event;

        spm_event_add(bench.model, &event);
        cr_expect_eq(spm_record_begin(bench.model, 999, on(bench.s), &ticket, &actions),
                     SPM_E_UNKNOWN);
        cr_expect_eq(spm_record_begin(bench.model, event, nothing, &ticket, &actions),
                     SPM_E_UNKNOWN);
        cr_expect_eq(spm_wait_begin(bench.model, nothing, event, &ticket), SPM_E_UNKNOWN);
        cr_expect_eq(spm_sync_begin(bench.model, nothing, &ticket), SPM_E_UNKNOWN);
        cr_expect_eq(spm_event_remove(bench.model, 999), SPM_E_UNKNOWN);
        cr_expect_eq(spm_event_taint(bench.model, 999, true), SPM_E_UNKNOWN);
        cr_expect_eq(spm_stamp_done(bench.model, 999, &actions), SPM_E_UNKNOWN);
        cr_expect_eq(spm_stamp_recorded(bench.model, 999, true, &actions), SPM_E_UNKNOWN);
        cr_expect_eq(spm_capture_begin(bench.model, 999, &actions), SPM_E_UNKNOWN);
        cr_expect_eq(spm_capture_end(bench.model, 999), SPM_E_UNKNOWN);
}
