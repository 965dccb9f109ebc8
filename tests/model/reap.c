/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reap -- what was freed and is not complete, and how to wait for it
 */

#include "bench.h"
#include "uses.h"

#include <string.h>

TestSuite(reap, .init = uses_set_up, .fini = bench_tear_down);

/* A host that waits, but for one stream. */
static struct {
        spm_stream fails;
        bool fails_context;
        unsigned int calls;
        struct spm_scope last;
} host;

static bool wait_for(struct spm_scope what, void *user)
{
        cr_expect_eq(user, &host);
        host.calls++;
        host.last = what;
        if (what.kind == SPM_SCOPE_CONTEXT)
                return !host.fails_context;
        return what.id != host.fails;
}

static struct spm_reaped reap(spm_pool pool, enum spm_status expected)
{
        struct spm_reaped reaped;
        struct spm_actions actions;

        host.calls = 0;
        cr_expect_eq(spm_reap_pending(bench.model, pool, wait_for, &host, &reaped, &actions),
                     expected);
        bench_do(&actions, NULL);
        return reaped;
}

static struct spm_outstanding outstanding(spm_pool pool)
{
        struct spm_outstanding figures;

        cr_assert_eq(spm_outstanding(bench.model, pool, &figures), SPM_OK);
        return figures;
}

static void free_on(spm_stream stream, size_t size)
{
        bench_free(uses_alloc(stream, size).address, stream);
}

/* B16, B18, B20 */
Test(reap, a_free_moves_bytes_from_live_to_pending)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);
        struct spm_outstanding before = outstanding(uses.pool);
        struct spm_outstanding after;

        cr_expect_eq(before.live_bytes, MIB);
        cr_expect_eq(before.pending_bytes, 0);
        bench_free(a.address, bench.s);
        after = outstanding(uses.pool);
        cr_expect_eq(after.live_bytes, 0);
        cr_expect_eq(after.pending_bytes, MIB);
        cr_expect_eq(after.stream_bytes, MIB);
        cr_expect_eq(after.outstanding_bytes, before.outstanding_bytes);
}

/* B23, B24 */
Test(reap, only_what_was_waited_for_is_complete_and_the_rest_is_retried)
{
        struct spm_reaped reaped;

        free_on(uses.more[0], MIB);
        free_on(uses.more[1], 2 * MIB);
        free_on(uses.more[2], 4 * MIB);
        host.fails = uses.more[1];
        reaped = reap(uses.pool, SPM_E_DRIVER);
        cr_expect_eq(reaped.bytes, MIB);
        cr_expect_eq(reaped.waits, 1);
        cr_expect_eq(reaped.failed.kind, SPM_SCOPE_STREAM);
        cr_expect_eq(reaped.failed.id, uses.more[1]);
        cr_expect_eq(outstanding(uses.pool).pending_bytes, 6 * MIB);
        cr_expect_eq(outstanding(uses.pool).stream_bytes, 6 * MIB);

        host.fails = 0;
        reaped = reap(uses.pool, SPM_OK);
        cr_expect_eq(reaped.bytes, 6 * MIB);
        cr_expect_eq(reaped.failed.id, 0);
        cr_expect_eq(outstanding(uses.pool).pending_bytes, 0);
        cr_expect_eq(reap(uses.pool, SPM_OK).waits, 0, "there is nothing left to wait for");
        cr_expect_eq(host.calls, 0);
}

Test(reap, each_stream_is_waited_for_once)
{
        for (int i = 0; i < 10; i++)
                free_on(bench.s, MIB);
        cr_expect_eq(reap(0, SPM_OK).bytes, MIB, "each had the memory of the one before");
        cr_expect_eq(host.calls, 1);
}

static bool add_up(struct spm_scope where, uint64_t bytes, void *user)
{
        uint64_t *sums = user;

        sums[where.kind == SPM_SCOPE_CONTEXT] += bytes;
        return true;
}

Test(reap, what_is_pending_is_the_sum_over_streams)
{
        uint64_t sums[2] = {0};
        uint64_t on_stream;

        free_on(uses.more[0], MIB);
        free_on(uses.more[1], 2 * MIB);
        bench_free(bench_alloc(bench.sync, 0, MIB), 0);
        cr_assert_eq(spm_each_pending(bench.model, 0, add_up, sums), SPM_OK);
        cr_expect_eq(sums[0], 3 * MIB);
        cr_expect_eq(sums[1], MIB, "a synchronous free waits for its context");
        cr_expect_eq(outstanding(0).stream_bytes, 4 * MIB);
        cr_expect_eq(outstanding(0).pending_bytes, 4 * MIB);
        cr_assert_eq(spm_pending_on(bench.model, uses.more[1], &on_stream), SPM_OK);
        cr_expect_eq(on_stream, 2 * MIB);
}

Test(reap, a_use_elsewhere_is_waited_for_too)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);

        cr_assert_eq(spm_use_record(bench.model, a, SPM_USE_READ, bench.t), SPM_OK);
        bench_free(a.address, bench.s);
        host.fails = bench.t;
        cr_expect_eq(reap(uses.pool, SPM_E_DRIVER).bytes, 0);
        cr_expect_eq(outstanding(uses.pool).pending_bytes, MIB);
        host.fails = 0;
        cr_expect_eq(reap(uses.pool, SPM_OK).bytes, MIB);
        cr_expect_eq(uses_life(a), SPM_LIFE_FREED);
}

/* B26 */
Test(reap, for_a_stream_that_has_ended_its_context_is_waited_for)
{
        struct spm_actions actions;

        free_on(bench.t, MIB);
        bench.no_records = true;
        cr_assert_eq(spm_stream_retire(bench.model, bench.t, &actions), SPM_OK);
        bench_do(&actions, NULL);
        cr_expect_eq(outstanding(uses.pool).pending_bytes, MIB);
        host.fails_context = true;
        cr_expect_eq(reap(uses.pool, SPM_E_DRIVER).failed.kind, SPM_SCOPE_CONTEXT);
        cr_expect_eq(outstanding(uses.pool).pending_bytes, MIB);
        host.fails_context = false;
        cr_expect_eq(reap(uses.pool, SPM_OK).bytes, MIB);
}

Test(reap, a_stream_that_captures_is_left_alone)
{
        struct spm_actions actions;

        free_on(bench.t, MIB);
        cr_assert_eq(spm_capture_begin(bench.model, bench.t, &actions), SPM_OK);
        bench_do(&actions, NULL);
        cr_expect_eq(reap(uses.pool, SPM_OK).waits, 0);
        cr_assert_eq(spm_capture_end(bench.model, bench.t), SPM_OK);
        cr_expect_eq(reap(uses.pool, SPM_OK).bytes, MIB);
}

Test(reap, other_pools_are_not_waited_for)
{
        free_on(bench.s, MIB);
        bench_free(bench_alloc(bench.async, bench.t, MIB), bench.t);
        cr_expect_eq(reap(uses.pool, SPM_OK).bytes, MIB);
        cr_expect_eq(host.calls, 1);
        cr_expect_eq(outstanding(bench.async).pending_bytes, MIB);
        cr_expect_eq(reap(0, SPM_OK).bytes, MIB, "0 is all of them");
}

Test(reap, memory_above_the_threshold_goes_back)
{
        free_on(bench.s, 64 * MIB);
        cr_assert_eq(spm_pool_set_attribute(bench.model, uses.pool, SPM_ATTR_RELEASE_THRESHOLD, 0),
                     SPM_OK);
        reap(uses.pool, SPM_OK);
        cr_expect_eq(bench_stats(uses.pool).reserved_current, 0);
}

Test(reap, an_unknown_pool_is_named)
{
        struct spm_outstanding figures;
        struct spm_actions actions;
        struct spm_reaped reaped;

        cr_expect_eq(spm_outstanding(bench.model, 999, &figures), SPM_E_UNKNOWN);
        cr_expect_eq(spm_each_pending(bench.model, 999, add_up, NULL), SPM_E_UNKNOWN);
        cr_expect_eq(spm_reap_pending(bench.model, 999, wait_for, &host, &reaped, &actions),
                     SPM_E_UNKNOWN);
}
