/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free used -- the end of a block that streams work with, and what they may touch of it
 *
 * All invariants are checked after every step (bench.h).
 */

#include "bench.h"
#include "uses.h"

#include <string.h>

TestSuite(free_used, .init = uses_set_up, .fini = bench_tear_down);

/* what is remembered */

Test(free_used, of_what_was_freed_long_ago_nothing_is_remembered)
{
        struct spm_block_id first = uses_alloc(bench.s, MIB);
        uint64_t before;

        bench_free(first.address, bench.s);
        for (int i = 0; i < 5000; i++)
                bench_free(uses_alloc(bench.s, MIB).address, bench.s);
        cr_expect_eq(uses_life(first), SPM_LIFE_FREED);
        before = bench_stats(uses.pool).host_bytes;
        for (int i = 0; i < 5000; i++)
                bench_free(uses_alloc(bench.s, MIB).address, bench.s);
        cr_expect_eq(bench_stats(uses.pool).host_bytes, before, "and no more than it was");
}

/* The record of its entry is forgotten by then. */
Test(free_used, an_old_generation_stays_one_when_it_is_forgotten)
{
        struct spm_block_id old = uses_alloc(bench.s, MIB);

        bench_free(old.address, bench.s);
        for (int i = 0; i < 5000; i++)
                bench_free(uses_alloc(bench.s, MIB).address, bench.s);
        cr_expect_eq(uses_alloc(bench.s, MIB).address, old.address);
        cr_expect_eq(spm_use_record(bench.model, old, SPM_USE_READ, bench.s), SPM_E_USE_AFTER_FREE);
}

/* frees */

/* B14: exactly the streams whose uses the freeing one has not seen. */
Test(free_used, a_free_waits_for_the_streams_it_has_not_seen)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);
        struct spm_use_wait waits[USES_STREAMS];
        unsigned int count;
        uint64_t seen = 0;

        for (int i = 0; i < 20; i++)
                cr_assert_eq(spm_use_record(bench.model, a, SPM_USE_READ, uses.more[i]), SPM_OK);
        for (int i = 0; i < 20; i += 2)
                uses_order(uses.more[i], bench.s);
        cr_assert_eq(
                spm_use_waits(bench.model, a, SPM_USE_FREE, bench.s, waits, USES_STREAMS, &count),
                SPM_OK);
        cr_expect_eq(count, 10);
        for (unsigned int w = 0; w < count; w++)
                for (int i = 0; i < 20; i++)
                        seen |= waits[w].stream == uses.more[i] ? (uint64_t)1 << i : 0;
        cr_expect_eq(seen, 0xaaaaa, "the odd ones: %lx", (unsigned long)seen);
}

/* B15 */
Test(free_used, a_free_whose_wait_fails_leaves_the_block_and_all_figures)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);
        struct spm_actions actions;
        struct spm_stats before;
        struct spm_stats after;
        struct spm_use use;
        uint64_t hash;

        cr_assert_eq(spm_use_record(bench.model, a, SPM_USE_READ, bench.t), SPM_OK);
        before = bench_stats(uses.pool);
        hash = spm_hash(bench.model);
        cr_assert_eq(spm_use_prepare(bench.model, a, SPM_USE_FREE, bench.s, &use), SPM_OK);
        cr_assert_eq(spm_use_free(bench.model, &use, false, NULL, &actions), SPM_OK);
        after = bench_stats(uses.pool);
        cr_expect_arr_eq(&before, &after, sizeof(before));
        cr_expect_eq(spm_hash(bench.model), hash);
        cr_expect_eq(uses_life(a), SPM_LIFE_LIVE);
        cr_expect_eq(uses_waits(a, SPM_USE_FREE, bench.s), 1);

        cr_assert_eq(spm_use_prepare(bench.model, a, SPM_USE_FREE, bench.s, &use), SPM_OK);
        cr_assert_eq(spm_use_free(bench.model, &use, true, NULL, &actions), SPM_OK, "retried");
        cr_expect_eq(uses_life(a), SPM_LIFE_RETIRED);
        cr_expect_eq(uses_alloc(bench.s, MIB).address, a.address, "the stream has waited for t");
}

/* I2: without the wait its own stream may not have it either. */
Test(free_used, memory_that_was_freed_waits_for_every_use)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);

        bench_give(uses.pool, 64 * MIB);
        cr_assert_eq(spm_use_record(bench.model, a, SPM_USE_READ, bench.t), SPM_OK);
        bench_free(a.address, bench.s);
        cr_expect_neq(uses_alloc(bench.s, MIB).address, a.address);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        cr_expect_eq(uses_life(a), SPM_LIFE_RETIRED, "t may still be reading");
        cr_expect_neq(uses_alloc(bench.s, MIB).address, a.address);
        bench_sync(SPM_SCOPE_STREAM, bench.t, SPM_SYNC_WAIT);
        cr_expect_eq(uses_life(a), SPM_LIFE_FREED);
        cr_expect_eq(uses_alloc(bench.s, MIB).address, a.address);
}

Test(free_used, a_free_that_names_no_stream_waits_for_every_use)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);

        bench_give(uses.pool, 64 * MIB);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        cr_assert_eq(spm_use_record(bench.model, a, SPM_USE_READ, bench.t), SPM_OK);
        bench_free(a.address, 0);
        cr_expect_neq(uses_alloc(bench.s, MIB).address, a.address);
        bench_sync(SPM_SCOPE_STREAM, bench.t, SPM_SYNC_WAIT);
        cr_expect_eq(uses_alloc(bench.s, MIB).address, a.address);
}

/* A block can wait for eight points, and is used by forty streams. */
Test(free_used, memory_that_very_many_streams_used_waits_for_all_of_them)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);

        bench_give(uses.pool, 64 * MIB);
        for (int i = 0; i < USES_STREAMS; i++)
                cr_assert_eq(spm_use_record(bench.model, a, SPM_USE_READ, uses.more[i]), SPM_OK);
        bench_free(a.address, bench.s);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        for (int i = 0; i < USES_STREAMS - 1; i++)
                bench_sync(SPM_SCOPE_STREAM, uses.more[i], SPM_SYNC_WAIT);
        cr_expect_eq(uses_life(a), SPM_LIFE_RETIRED);
        cr_expect_neq(uses_alloc(bench.s, MIB).address, a.address);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
        cr_expect_eq(uses_life(a), SPM_LIFE_FREED);
        cr_expect_eq(uses_alloc(bench.s, MIB).address, a.address);
        cr_expect_eq(bench_stats(uses.pool).sealed_bytes, 0);
}

Test(free_used, an_allocation_that_is_undone_was_never_used)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);
        struct spm_actions actions;

        cr_assert_eq(spm_alloc_undo(bench.model, a.address, &actions), SPM_OK);
        bench_do(&actions, NULL);
        cr_expect_eq(uses_count(a), -1);
}

Test(free_used, what_is_live_ends_with_its_context)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .track_uses = true,
                .context = bench.context,
        };
        struct spm_actions actions;
        struct spm_block_id a;

        uses.pool = bench_pool(config);
        a = uses_alloc(bench.s, MIB);
        while (spm_context_remove(bench.model, bench.context, &actions) == SPM_AGAIN)
                ;
        cr_expect_eq(uses_count(a), -1);
        cr_expect(spm_check(bench.model, NULL, 0));
}

Test(free_used, a_pool_that_was_destroyed_tracks_what_is_live)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);
        struct spm_actions actions;

        cr_assert_eq(spm_pool_destroy(bench.model, uses.pool, &actions), SPM_OK);
        cr_expect_eq(spm_use_record(bench.model, a, SPM_USE_READ, bench.t), SPM_OK);
        cr_expect_eq(uses_count(a), 2);
        bench_free(a.address, bench.s);
        cr_expect_eq(uses_life(a), SPM_LIFE_RETIRED);
}

/* ranges */

/* B7: by what was asked for, not by what was rounded to. */
Test(free_used, a_range_lies_within_what_was_asked_for)
{
        struct spm_block_id a = uses_alloc(bench.s, 1000);

        cr_expect_eq(spm_use_range(bench.model, a, a.address, 1000), SPM_OK);
        cr_expect_eq(spm_use_range(bench.model, a, a.address + 999, 1), SPM_OK);
        cr_expect_eq(spm_use_range(bench.model, a, a.address + 1000, 0), SPM_OK);
        cr_expect_eq(spm_use_range(bench.model, a, a.address + 999, 2), SPM_E_OUT_OF_BOUNDS);
        cr_expect_eq(spm_use_range(bench.model, a, a.address - 1, 1), SPM_E_OUT_OF_BOUNDS);
        cr_expect_eq(spm_use_range(bench.model, a, a.address + 1, SIZE_MAX), SPM_E_OUT_OF_BOUNDS);
        cr_expect_eq(spm_use_range(bench.model, a, UINT64_MAX, 1), SPM_E_OUT_OF_BOUNDS);
}

/* streams that wait for each other */

/* H6: the device makes the legacy stream and the blocking ones wait for each other. */
Test(free_used, the_legacy_stream_is_behind_blocking_streams_and_they_behind_it)
{
        spm_stream other = bench_add_blocking();
        struct spm_block_id a = uses_alloc(bench.blocking, MIB);

        cr_assert_eq(spm_use_record(bench.model, a, SPM_USE_READ, bench.blocking), SPM_OK);
        cr_expect_eq(uses_waits(a, SPM_USE_READ, other), 1, "two of them are in no order");
        cr_expect_eq(uses_waits(a, SPM_USE_WRITE, bench.legacy), 0);
        cr_assert_eq(spm_use_record(bench.model, a, SPM_USE_WRITE, bench.legacy), SPM_OK);
        cr_expect_eq(uses_count(a), 1, "it stands for the others");
        cr_expect_eq(uses_waits(a, SPM_USE_READ, other), 0);
        cr_expect_eq(uses_waits(a, SPM_USE_READ, bench.blocking), 0);
        cr_expect_eq(uses_waits(a, SPM_USE_READ, bench.t), 1, "this one does not block");
        cr_assert_eq(spm_use_record(bench.model, a, SPM_USE_READ, bench.t), SPM_OK);
        cr_expect_eq(uses_waits(a, SPM_USE_WRITE, bench.legacy), 1);
}

/* Another context has a legacy stream of its own. */
Test(free_used, the_legacy_stream_of_another_context_is_behind_nothing)
{
        struct spm_block_id a = uses_alloc(bench.blocking, MIB);
        spm_context context;
        spm_stream legacy;

        cr_assert_eq(spm_context_add(bench.model, 0, &context), SPM_OK);
        cr_assert_eq(spm_stream_add(bench.model, context, SPM_STREAM_LEGACY, &legacy), SPM_OK);
        cr_expect_eq(uses_waits(a, SPM_USE_READ, legacy), 1);
}

/* A free that the device does not see orders nothing, so its memory waits for what the host sees.
 */
Test(free_used, memory_freed_on_the_legacy_stream_waits_for_uses_on_blocking_ones)
{
        struct spm_block_id a = uses_alloc(bench.legacy, MIB);

        bench_give(uses.pool, 64 * MIB);
        cr_assert_eq(spm_use_record(bench.model, a, SPM_USE_READ, bench.blocking), SPM_OK);
        bench_free(a.address, bench.legacy);
        cr_expect_neq(uses_alloc(bench.t, MIB).address, a.address);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
        cr_expect_eq(uses_alloc(bench.t, MIB).address, a.address);
}
