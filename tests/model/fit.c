/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fit -- which free block
 */

#include "bench.h"

#include <string.h>

TestSuite(fit, .init = bench_set_up, .fini = bench_tear_down);

Test(fit, the_smallest_hole_that_holds_it_is_taken)
{
        static const size_t sizes[] = {8192, 512, 2048, 512, 4096, 512};
        uint64_t at[6];
        int i;

        for (i = 0; i < 6; i++)
                at[i] = bench_alloc(bench.async, bench.s, sizes[i]);
        for (i = 0; i < 6; i += 2)
                bench_free(at[i], bench.s);
        cr_expect_eq(bench_alloc(bench.async, bench.s, 1500), at[2]);
        cr_expect_eq(bench_alloc(bench.async, bench.s, 4096), at[4]);
        cr_expect_eq(bench_alloc(bench.async, bench.s, 4096), at[0]);
}

Test(fit, of_equal_holes_the_lowest_is_taken)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 2048);
        uint64_t b;

        bench_alloc(bench.async, bench.s, 512);
        b = bench_alloc(bench.async, bench.s, 2048);
        bench_alloc(bench.async, bench.s, 512);
        bench_free(b, bench.s);
        bench_free(a, bench.s);
        cr_expect_eq(bench_alloc(bench.async, bench.s, 2048), a);
}

Test(fit, a_large_synchronous_block_is_aligned_and_the_gap_stays_useful)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_SYNC,
                .context = bench.context,
                .large_size = 2 * MIB,
                .large_align = 2 * MIB,
        };
        spm_pool pool = bench_pool(config);
        uint64_t small = bench_alloc(pool, 0, 512);
        uint64_t large;

        bench_alloc(pool, 0, 12 * MIB + 512);
        large = bench_alloc(pool, 0, 3 * MIB);
        cr_expect_eq(large % (2 * MIB), 0);
        cr_expect_eq(bench_alloc(pool, 0, 512), small + 512);
        cr_expect_eq(bench_alloc(pool, 0, 2 * MIB) % 512, 0);
}

static spm_pool aligned_pool(void)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_SYNC,
                .context = bench.context,
                .large_size = 2 * MIB,
                .large_align = 2 * MIB,
        };

        return bench_pool(config);
}

/* Ready blocks of 3 MiB that begin a MiB behind a multiple of two, two MiB in use, and the rest.
 * Return: where all begins. */
static uint64_t lay_out_crooked(spm_pool pool, size_t size, unsigned int count)
{
        uint64_t base = bench_give(pool, size);
        uint64_t at[32];
        unsigned int i;

        for (i = 0; i < count; i++) {
                cr_assert_eq(bench_alloc(pool, 0, MIB), base + i * 4 * MIB);
                at[2 * i] = bench_alloc(pool, 0, 2 * MIB);
                at[2 * i + 1] = bench_alloc(pool, 0, MIB);
        }
        cr_assert_eq(bench_alloc(pool, 0, 2 * MIB), base + count * 4 * MIB);
        for (i = 0; i < 2 * count; i++)
                bench_free(at[i], 0);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_QUERY);
        return base;
}

Test(fit, an_aligned_request_passes_over_what_only_looks_large_enough)
{
        spm_pool pool = aligned_pool();
        uint64_t base = lay_out_crooked(pool, 14 * MIB, 2);

        cr_expect_eq(bench_alloc(pool, 0, 3 * MIB), base + 10 * MIB);
        cr_expect_str_eq(bench.log, "");
}

Test(fit, an_aligned_request_does_not_look_at_all_that_look_large_enough)
{
        spm_pool pool = aligned_pool();
        uint64_t base = lay_out_crooked(pool, 66 * MIB, 12);

        cr_expect_eq(bench_alloc(pool, 0, 3 * MIB), base + 50 * MIB);
        cr_expect_eq(bench_alloc(pool, 0, 3 * MIB), base + 54 * MIB);
        cr_expect_str_eq(bench.log, "");
        cr_expect_eq(bench_alloc(pool, 0, 2 * MIB), base + MIB, "what needs no alignment has one");
}

Test(fit, the_own_stream_has_an_aligned_block_from_the_middle_of_what_it_freed)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .large_size = MIB,
                .large_align = 2 * MIB,
                .small_size = 512,
        };
        spm_pool pool = bench_pool(config);
        uint64_t base = bench_give(pool, 8 * MIB);
        int i;

        bench_alloc(pool, bench.s, 512 * KIB);
        for (i = 0; i < 7; i++)
                cr_assert_eq(bench_alloc(pool, bench.s, MIB), base + 512 * KIB + (size_t)i * MIB);
        bench_alloc(pool, bench.s, 512 * KIB);
        for (i = 0; i < 7; i++)
                bench_free(base + 512 * KIB + (size_t)i * MIB, bench.s);
        cr_expect_eq(bench_alloc(pool, bench.s, 3 * MIB), base + 2 * MIB);
        cr_expect_eq(bench_alloc(pool, bench.s, MIB), base + 512 * KIB, "what is before it");
        cr_expect_eq(bench_alloc(pool, bench.s, 2 * MIB - 512 * KIB), base + 6 * MIB, "behind it");
        cr_expect_str_eq(bench.log, "");
}

Test(fit, the_own_stream_has_its_block_back_at_once)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 32 * MIB);

        bench_free(a, bench.s);
        cr_expect_eq(bench_alloc(bench.async, bench.s, 32 * MIB), a);
        cr_expect_str_eq(bench.log, "");
        bench_free(a, bench.s);
        cr_expect_neq(bench_alloc(bench.async, bench.t, 32 * MIB), a);
}

Test(fit, a_stream_that_follows_an_event_waits_for_the_stamp_before_it)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 32 * MIB);
        spm_event event;

        bench_free(a, bench.s);
        event = bench_record(bench.s);
        cr_expect_str_eq(bench.log, "R", "H3: a stamp before the program's record");
        cr_expect_eq(bench.stamped, bench.s);
        bench_wait(bench.t, event);
        cr_expect_eq(bench_alloc(bench.async, bench.t, 32 * MIB), a);
        cr_expect_str_eq(bench.log, "W", "G3: a belt");
}

Test(fit, an_event_recorded_before_the_free_does_not_help)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 32 * MIB);
        spm_event event = bench_record(bench.s);

        bench_free(a, bench.s);
        bench_record(bench.s);
        bench_wait(bench.t, event);
        cr_expect_neq(bench_alloc(bench.async, bench.t, 32 * MIB), a);
}

Test(fit, an_order_that_was_never_stamped_is_not_followed)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 32 * MIB);
        spm_event event;

        bench_free(a, bench.s);
        bench.no_records = true;
        event = bench_record(bench.s);
        bench_wait(bench.t, event);
        cr_expect_neq(bench_alloc(bench.async, bench.t, 32 * MIB), a);
        cr_expect_null(strchr(bench.log, 'W'));
}

Test(fit, order_is_transitive_through_a_third_stream)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 32 * MIB);

        bench_free(a, bench.s);
        bench_wait(bench.blocking, bench_record(bench.s));
        bench_wait(bench.t, bench_record(bench.blocking));
        cr_expect_eq(bench_alloc(bench.async, bench.t, 32 * MIB), a);
}

Test(fit, the_legacy_stream_submits_something_for_a_pending_block)
{
        uint64_t a = bench_alloc(bench.async, bench.blocking, 32 * MIB);

        bench_add_blocking();
        bench_free(a, bench.legacy);
        cr_expect_eq(bench_alloc(bench.async, bench.legacy, 32 * MIB), a);
        cr_expect_str_eq(bench.log, "R", "H6");
        cr_expect_eq(bench.stamped, bench.legacy);
}

/* The program may put its own work in order by it, or memory that others free. */
Test(fit, the_legacy_stream_submits_something_for_a_complete_block)
{
        uint64_t a = bench_alloc(bench.async, bench.blocking, 32 * MIB);

        bench_add_blocking();
        bench_free(a, bench.legacy);
        bench_sync(SPM_SCOPE_STREAM, bench.legacy, SPM_SYNC_QUERY);
        cr_expect_eq(bench_alloc(bench.async, bench.legacy, 32 * MIB), a);
        cr_expect_str_eq(bench.log, "R", "H6");
}

Test(fit, a_free_on_the_legacy_stream_submits_something)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 32 * MIB);
        uint64_t b = bench_alloc(bench.sync, 0, 32 * MIB);

        bench_add_blocking();
        bench_free(a, bench.legacy);
        cr_expect_str_eq(bench.log, "R", "H6");
        cr_expect_eq(bench.stamped, bench.legacy);
        bench_free(b, bench.legacy);
        cr_expect_str_eq(bench.log, "R", "also of synchronous memory");
}

Test(fit, the_host_waits_where_a_free_on_the_legacy_stream_can_submit_nothing)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 32 * MIB);

        bench_add_blocking();
        bench.no_records = true;
        bench_free(a, bench.legacy);
        cr_expect_str_eq(bench.log, "RS");
}

Test(fit, an_allocation_on_the_legacy_stream_that_can_submit_nothing_is_undone)
{
        uint64_t a = bench_alloc(bench.async, bench.legacy, 32 * MIB);

        bench_free(a, bench.legacy);
        bench_add_blocking();
        bench.no_records = true;
        cr_expect_eq(bench_alloc(bench.async, bench.legacy, 32 * MIB), a);
        cr_expect_str_eq(bench.log, "R", "and nobody waits");
}

Test(fit, the_legacy_stream_and_one_blocking_stream_have_no_order_to_lose)
{
        uint64_t a = bench_alloc(bench.async, bench.blocking, 32 * MIB);

        bench_free(a, bench.legacy);
        cr_expect_eq(bench_alloc(bench.async, bench.legacy, 32 * MIB), a);
        cr_expect_str_eq(bench.log, "");
}

Test(fit, the_legacy_stream_submits_something_where_streams_may_be_hidden)
{
        uint64_t a = bench_alloc(bench.async, bench.blocking, 32 * MIB);

        cr_assert_eq(spm_context_hide(bench.model, bench.context), SPM_OK);
        bench_free(a, bench.legacy);
        cr_expect_eq(bench_alloc(bench.async, bench.legacy, 32 * MIB), a);
        cr_expect_str_eq(bench.log, "R", "H6");
}

Test(fit, the_legacy_stream_is_alone_again_when_a_blocking_stream_is_gone)
{
        uint64_t a = bench_alloc(bench.async, bench.blocking, 32 * MIB);
        spm_stream other = bench_add_blocking();
        struct spm_actions actions;

        cr_assert_eq(spm_stream_retire(bench.model, other, &actions), SPM_OK);
        bench_do(&actions, NULL);
        bench_free(a, bench.legacy);
        cr_expect_eq(bench_alloc(bench.async, bench.legacy, 32 * MIB), a);
        cr_expect_str_eq(bench.log, "");
}

Test(fit, the_legacy_stream_has_a_complete_block_in_silence)
{
        uint64_t a = bench_alloc(bench.async, bench.legacy, 32 * MIB);

        bench_free(a, bench.legacy);
        bench_sync(SPM_SCOPE_STREAM, bench.legacy, SPM_SYNC_QUERY);
        cr_expect_eq(bench_alloc(bench.async, bench.legacy, 32 * MIB), a);
        cr_expect_str_eq(bench.log, "");
}

/* A stream that does not wait for it may capture meanwhile. */
Test(fit, a_capture_elsewhere_is_nothing_to_the_legacy_stream)
{
        uint64_t a = bench_alloc(bench.async, bench.legacy, 32 * MIB);
        struct spm_actions actions;

        bench_add_blocking();
        bench_free(a, bench.legacy);
        spm_capture_begin(bench.model, bench.s, &actions);
        bench_do(&actions, NULL);
        cr_expect_eq(bench_alloc(bench.async, bench.legacy, 32 * MIB), a);
        cr_expect_str_eq(bench.log, "R");
}

Test(fit, the_legacy_stream_has_no_pending_block_while_a_stream_that_waits_for_it_captures)
{
        uint64_t a = bench_alloc(bench.async, bench.legacy, 32 * MIB);
        struct spm_actions actions;

        bench_add_blocking();
        bench_free(a, bench.legacy);
        spm_capture_begin(bench.model, bench.blocking, &actions);
        bench_do(&actions, NULL);
        cr_expect_neq(bench_alloc(bench.async, bench.legacy, 32 * MIB), a);
        cr_expect_str_eq(bench.log, "G");
}

Test(fit, a_blocking_stream_follows_what_the_legacy_stream_recorded)
{
        uint64_t a = bench_alloc(bench.async, bench.legacy, 32 * MIB);

        bench_free(a, bench.legacy);
        bench_record(bench.legacy);
        cr_expect_neq(bench_alloc(bench.async, bench.s, 32 * MIB), a);
        cr_expect_eq(bench_alloc(bench.async, bench.blocking, 32 * MIB), a, "H6");
        cr_expect_str_eq(bench.log, "W");
}

Test(fit, a_wait_that_failed_orders_nothing)
{
        struct spm_scope waiter = {SPM_SCOPE_STREAM, bench.t};
        uint64_t a = bench_alloc(bench.async, bench.s, 32 * MIB);
        struct spm_ticket ticket;
        spm_event event;

        bench_free(a, bench.s);
        event = bench_record(bench.s);
        spm_wait_begin(bench.model, waiter, event, &ticket);
        spm_wait_end(bench.model, &ticket, false);
        cr_expect_neq(bench_alloc(bench.async, bench.t, 32 * MIB), a);
}

Test(fit, a_belt_that_does_not_reach_all_the_block_waits_for_is_refused)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 32 * MIB);
        spm_stream third;
        spm_event event;

        spm_stream_add(bench.model, bench.context, SPM_STREAM_NON_BLOCKING, &third);
        bench_free(a, bench.s);
        cr_assert_eq(bench_alloc(bench.async, bench.s, 32 * MIB), a);
        /* Born on s, freed on t; t learns of s only after what the third stream follows. */
        bench_free(a, bench.t);
        event = bench_record(bench.t);
        bench_wait(bench.t, bench_record(bench.s));
        bench_wait(third, event);
        cr_expect_neq(bench_alloc(bench.async, third, 32 * MIB), a);
        cr_expect_eq(bench_alloc(bench.async, bench.t, 32 * MIB), a);
}

Test(fit, pending_memory_and_ready_memory_beside_it_serve_together)
{
        uint64_t base = bench_give(bench.async, 32 * MIB);
        uint64_t a = bench_alloc(bench.async, bench.s, 20 * MIB);

        cr_assert_eq(a, base);
        bench_free(a, bench.s);
        cr_expect_eq(bench_alloc(bench.async, bench.s, 30 * MIB), a);
        cr_expect_str_eq(bench.log, "");
}

Test(fit, what_another_stream_could_have_is_joined_to_pending_memory_only_when_it_is_needed)
{
        uint64_t base;
        uint64_t a;

        /* With a lane of its own, t may want the ready memory. */
        bench_alloc(bench.async, bench.t, 2 * MIB);
        base = bench_give(bench.async, 32 * MIB);
        a = bench_alloc(bench.async, bench.s, 20 * MIB);
        cr_assert_eq(a, base);
        bench_free(a, bench.s);
        cr_expect_eq(bench_stats(bench.async).ready_bytes, 12 * MIB);
        cr_expect_eq(bench_alloc(bench.async, bench.s, 30 * MIB), a);
        cr_expect_str_eq(bench.log, "");
}

/* A stamp between two frees keeps them apart, for those who follow only the first. */
Test(fit, what_was_freed_before_and_after_a_stamp_serves_together_when_it_is_needed)
{
        uint64_t base = bench_give(bench.async, 12 * MIB);
        spm_event event;
        int i;

        for (i = 0; i < 3; i++)
                cr_assert_eq(bench_alloc(bench.async, bench.s, 4 * MIB),
                             base + (size_t)i * 4 * MIB);
        bench_free(base, bench.s);
        event = bench_record(bench.s);
        bench_free(base + 4 * MIB, bench.s);
        bench_record(bench.s);
        bench_free(base + 8 * MIB, bench.s);
        cr_expect_eq(bench_alloc(bench.async, bench.s, 10 * MIB), base);
        cr_expect_str_eq(bench.log, "");
        bench_wait(bench.t, event);
        cr_expect_neq(bench_alloc(bench.async, bench.t, 2 * MIB), base + 10 * MIB,
                      "the latest free stands for all");
}

Test(fit, the_first_of_two_frees_can_be_followed_without_the_second)
{
        uint64_t base = bench_give(bench.async, 8 * MIB);
        spm_event event;

        cr_assert_eq(bench_alloc(bench.async, bench.s, 4 * MIB), base);
        cr_assert_eq(bench_alloc(bench.async, bench.s, 4 * MIB), base + 4 * MIB);
        bench_free(base, bench.s);
        event = bench_record(bench.s);
        bench_free(base + 4 * MIB, bench.s);
        bench_wait(bench.t, event);
        cr_expect_eq(bench_alloc(bench.async, bench.t, 4 * MIB), base);
        cr_expect_str_eq(bench.log, "W");
}

Test(fit, ready_memory_before_pending_memory_serves_with_it)
{
        uint64_t base;

        bench_alloc(bench.async, bench.t, 2 * MIB);
        base = bench_give(bench.async, 32 * MIB);
        cr_assert_eq(bench_alloc(bench.async, bench.s, 12 * MIB), base);
        cr_assert_eq(bench_alloc(bench.async, bench.s, 20 * MIB), base + 12 * MIB);
        bench_free(base, 0);
        bench_free(base + 12 * MIB, bench.s);
        cr_expect_eq(bench_stats(bench.async).ready_bytes, 12 * MIB);
        cr_expect_eq(bench_alloc(bench.async, bench.s, 30 * MIB), base);
        cr_expect_str_eq(bench.log, "");
}

Test(fit, a_capturing_stream_has_only_what_is_ready)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 32 * MIB);
        struct spm_actions actions;

        bench_free(a, bench.s);
        spm_capture_begin(bench.model, bench.s, &actions);
        bench_do(&actions, NULL);
        cr_expect_neq(bench_alloc(bench.async, bench.s, 32 * MIB), a);
}
