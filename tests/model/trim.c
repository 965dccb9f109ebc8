/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trim -- what may be given back
 */

#include "bench.h"

TestSuite(trim, .init = bench_set_up, .fini = bench_tear_down);

/* Two segments of 64 MiB, free on s, not complete. */
static void free_two(spm_pool pool, spm_stream stream)
{
        uint64_t a = bench_alloc(pool, bench.s, 64 * MIB);
        uint64_t b = bench_alloc(pool, bench.s, 64 * MIB);

        bench_free(a, stream);
        bench_free(b, stream);
}

Test(trim, live_and_pending_memory_stays)
{
        struct spm_actions actions;
        size_t released = 99;

        free_two(bench.async, bench.s);
        cr_assert_eq(spm_trim(bench.model, bench.async, 0, &released, &actions), SPM_OK);
        cr_expect_eq(released, 0, "M33");
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
        bench_alloc(bench.async, bench.t, 512);
        cr_assert_eq(spm_trim(bench.model, bench.async, 0, &released, &actions), SPM_OK);
        cr_expect_eq(released, 64 * MIB, "A37");
        cr_expect_eq(actions.count, 1);
        cr_expect_eq(actions.item[0].kind, SPM_ACT_RELEASE);
        cr_expect_eq(actions.item[0].size, 64 * MIB);
        cr_expect_eq(bench_stats(bench.async).reserved_current, 64 * MIB);
}

Test(trim, keeps_at_least_what_it_is_told)
{
        struct spm_actions actions;
        size_t released;

        free_two(bench.async, 0);
        spm_trim(bench.model, bench.async, 65 * MIB, &released, &actions);
        cr_expect_eq(released, 0);
        spm_trim(bench.model, bench.async, 64 * MIB, &released, &actions);
        cr_expect_eq(released, 64 * MIB);
        spm_trim(bench.model, bench.async, SIZE_MAX, &released, &actions);
        cr_expect_eq(released, 0, "a no-op");
}

Test(trim, says_when_there_is_more_than_room_for_actions)
{
        struct spm_actions actions;
        spm_segment segment;
        size_t released;
        uint64_t i;

        for (i = 1; i <= 30; i++)
                spm_segment_add(bench.model, bench.async, i << 32, 2 * MIB, NULL, &segment);
        cr_expect_eq(spm_trim(bench.model, bench.async, 0, &released, &actions), SPM_AGAIN);
        cr_expect_eq(released, SPM_ACTIONS_MAX * 2 * MIB);
        cr_expect_eq(spm_trim(bench.model, bench.async, 0, &released, &actions), SPM_OK);
        cr_expect_eq(released, (30 - SPM_ACTIONS_MAX) * 2 * MIB);
}

Test(trim, a_synchronisation_of_the_stream_gives_back_what_it_completed)
{
        free_two(bench.async, bench.s);
        bench_sync(SPM_SCOPE_STREAM, bench.t, SPM_SYNC_WAIT);
        cr_expect_eq(bench_stats(bench.async).reserved_current, 128 * MIB, "U5: another stream");
        bench_sync(SPM_SCOPE_STREAM, bench.legacy, SPM_SYNC_WAIT);
        cr_expect_eq(bench_stats(bench.async).reserved_current, 128 * MIB, "U5: the legacy stream");
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
        cr_expect_eq(bench_stats(bench.async).reserved_current, 128 * MIB, "U5: a query");
        bench_sync(SPM_SCOPE_STREAM, bench.t, SPM_SYNC_WAIT);
        cr_expect_eq(bench_stats(bench.async).reserved_current, 128 * MIB, "U5: another stream");
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        cr_expect_eq(bench_stats(bench.async).reserved_current, 0, "U5: its own");
        cr_expect_str_eq(bench.log, "XX");
}

Test(trim, a_synchronisation_of_an_event_or_a_context_does_too)
{
        spm_event event;

        free_two(bench.async, bench.s);
        event = bench_record(bench.s);
        bench_sync(SPM_SCOPE_EVENT, event, SPM_SYNC_WAIT);
        cr_expect_eq(bench_stats(bench.async).reserved_current, 0, "U5");
        free_two(bench.async, bench.s);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
        cr_expect_eq(bench_stats(bench.async).reserved_current, 0, "U5");
}

Test(trim, the_threshold_is_what_stays_reserved)
{
        spm_pool_set_attribute(bench.model, bench.async, SPM_ATTR_RELEASE_THRESHOLD, 64 * MIB);
        free_two(bench.async, bench.s);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        cr_expect_eq(bench_stats(bench.async).reserved_current, 64 * MIB, "A39");
}

Test(trim, some_free_memory_may_be_kept_whatever_the_threshold_says)
{
        struct spm_pool_config config = {.kind = SPM_POOL_ASYNC, .keep = 64 * MIB};
        spm_pool pool = bench_pool(config);

        free_two(pool, bench.s);
        bench_alloc(pool, bench.s, 64 * MIB);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        cr_expect_eq(bench_stats(pool).ready_bytes, 64 * MIB);
}

Test(trim, nothing_is_kept_beyond_a_threshold_that_was_set)
{
        struct spm_pool_config config = {.kind = SPM_POOL_ASYNC, .keep = 256 * MIB};
        spm_pool pool = bench_pool(config);

        free_two(pool, bench.s);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        cr_expect_eq(bench_stats(pool).ready_bytes, 128 * MIB);
        spm_pool_set_attribute(bench.model, pool, SPM_ATTR_RELEASE_THRESHOLD, 0);
        spm_pool_get_config(bench.model, pool, &config);
        cr_expect_eq(config.keep, 0);
        free_two(pool, bench.s);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        cr_expect_eq(bench_stats(pool).reserved_current, 0);
}

Test(trim, memory_that_is_given_back_by_a_barrier_waits_for_one)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_SYNC,
                .context = bench.context,
                .release_needs_idle = true,
        };
        spm_pool pool = bench_pool(config);

        bench_free(bench_alloc(pool, 0, 64 * MIB), bench.s);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        cr_expect_eq(bench_stats(pool).ready_bytes, 64 * MIB, "F10");
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
        cr_expect_eq(bench_stats(pool).reserved_current, 0);
}

Test(trim, an_exported_block_is_never_served_but_can_be_given_back)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 32 * MIB);

        cr_assert_eq(spm_export(bench.model, a), SPM_OK);
        bench_free(a, bench.s);
        cr_expect_neq(bench_alloc(bench.async, bench.s, 32 * MIB), a, "I10");
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        cr_expect_eq(bench_stats(bench.async).sealed_bytes, 0);
        cr_expect_eq(bench_stats(bench.async).reserved_current, 32 * MIB);
}
