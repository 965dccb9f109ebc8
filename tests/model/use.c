/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Use -- which streams work with a block, and what has to wait for them
 *
 * All invariants are checked after every step (bench.h).
 */

#include "bench.h"
#include "shelves.h"
#include "uses.h"

TestSuite(use, .init = uses_set_up, .fini = bench_tear_down);

/* lives */

Test(use, lives_end_one_way)
{
        static const char legal[4][5] = {
                /* to: live, retired, quarantined, freed */
                "0100",
                "0011",
                "0001",
                "0000",
        };

        for (unsigned int from = 0; from < 4; from++)
                for (unsigned int to = 0; to < 4; to++)
                        cr_expect_eq(spm_life_may_become(from, to), legal[from][to] == '1',
                                     "%s to %s", spm_life_name(from), spm_life_name(to));
        cr_expect_not(spm_life_may_become(SPM_LIFE_LIVE, 4));
        cr_expect_not(spm_life_may_become(4, SPM_LIFE_FREED));
        cr_expect_str_eq(spm_life_name(SPM_LIFE_QUARANTINED), "quarantined");
        cr_expect_str_eq(spm_life_name(4), "unknown life");
}

Test(use, an_allocation_is_live_then_retired_then_freed)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);

        cr_expect_eq(uses_life(a), SPM_LIFE_LIVE);
        bench_free(a.address, bench.s);
        cr_expect_eq(uses_life(a), SPM_LIFE_RETIRED);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        cr_expect_eq(uses_life(a), SPM_LIFE_FREED);
}

/* Where a block lies is the layout's, when it is free its uses'. */
Test(use, pages_of_a_layout_wait_for_uses_too)
{
        struct spm_layout_error error;
        struct spm_block_id a, b;

        cr_assert_eq(shelves_install(uses.pool, "direct", &error), SPM_OK);
        a = uses_alloc(bench.s, 2 * MIB);
        cr_expect_eq(spm_use_record(bench.model, a, SPM_USE_READ, bench.t), SPM_OK);
        bench_free(a.address, bench.s);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        cr_expect_eq(uses_life(a), SPM_LIFE_RETIRED, "t is not complete");
        b = uses_alloc(bench.s, 2 * MIB);
        cr_expect_neq(b.address, a.address);
        bench_sync(SPM_SCOPE_STREAM, bench.t, SPM_SYNC_WAIT);
        cr_expect_eq(uses_life(a), SPM_LIFE_FREED);
        bench_free(b.address, bench.s);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        cr_assert_eq(shelves_install(uses.pool, NULL, &error), SPM_OK);
        a = uses_alloc(bench.s, 2 * MIB);
        cr_expect_eq(uses_life(a), SPM_LIFE_LIVE, "as in the heap again");
        bench_free(a.address, bench.s);
        cr_expect_eq(uses_life(a), SPM_LIFE_RETIRED);
}

Test(use, what_is_kept_is_quarantined_once_it_is_complete)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .track_uses = true,
                .quarantine = 4 * MIB,
        };
        struct spm_block_id a;

        uses.pool = bench_pool(config);
        a = uses_alloc(bench.s, 2 * MIB);
        bench_free(a.address, bench.s);
        cr_expect_eq(uses_life(a), SPM_LIFE_RETIRED);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        cr_expect_eq(uses_life(a), SPM_LIFE_QUARANTINED);
        bench_free(uses_alloc(bench.s, 4 * MIB).address, bench.s);
        cr_expect_eq(uses_life(a), SPM_LIFE_FREED);
}

/* identity */

Test(use, an_identity_is_small_and_plain)
{
        cr_expect_leq(sizeof(struct spm_block_id), 32u, "B4");
}

/* B3, B13: nothing that names an older generation changes anything. */
Test(use, an_old_generation_is_a_use_after_free_whoever_has_the_memory)
{
        struct spm_block_id old = uses_alloc(bench.s, MIB);
        struct spm_block_id now;
        struct spm_actions actions;
        struct spm_stats before;
        struct spm_stats after;
        unsigned int count;
        struct spm_use use;

        bench_free(old.address, bench.s);
        cr_expect_eq(spm_use_record(bench.model, old, SPM_USE_READ, bench.t), SPM_E_USE_AFTER_FREE,
                     "nobody has it");
        now = uses_alloc(bench.s, MIB);
        cr_assert_eq(now.address, old.address);
        cr_assert_gt(now.generation, old.generation);
        before = bench_stats(uses.pool);
        cr_expect_eq(spm_use_record(bench.model, old, SPM_USE_WRITE, bench.t),
                     SPM_E_USE_AFTER_FREE);
        cr_expect_eq(spm_use_prepare(bench.model, old, SPM_USE_READ, bench.t, &use),
                     SPM_E_USE_AFTER_FREE);
        cr_expect_eq(spm_use_count(bench.model, old, &count), SPM_E_USE_AFTER_FREE);
        cr_expect_eq(spm_use_range(bench.model, old, old.address, 1), SPM_E_USE_AFTER_FREE);
        cr_expect_eq(spm_free(bench.model, old.address, old.generation, SPM_FREE_ASYNC, bench.t,
                              NULL, &actions),
                     SPM_E_STALE);
        after = bench_stats(uses.pool);
        cr_expect_arr_eq(&before, &after, sizeof(before));
        cr_expect_eq(uses_count(now), 1, "the new one is as it was");
        cr_expect_eq(uses_life(now), SPM_LIFE_LIVE);
        cr_expect_neq(uses_life(old), SPM_LIFE_LIVE);
}

Test(use, what_was_never_allocated_is_told_apart)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);
        struct spm_block_id other = a;

        other.generation += 1000;
        cr_expect_eq(spm_use_record(bench.model, other, SPM_USE_READ, bench.s),
                     SPM_E_INVALID_VALUE);
        other.generation = 0;
        cr_expect_eq(spm_use_record(bench.model, other, SPM_USE_READ, bench.s),
                     SPM_E_INVALID_VALUE);
        other = a;
        other.address += 512;
        cr_expect_eq(spm_use_record(bench.model, other, SPM_USE_READ, bench.s),
                     SPM_E_INVALID_VALUE);
        other = a;
        other.address = 512;
        other.generation += 1000;
        cr_expect_eq(spm_use_record(bench.model, other, SPM_USE_READ, bench.s), SPM_E_FOREIGN);
        other = a;
        other.device = 1;
        cr_expect_eq(spm_use_record(bench.model, other, SPM_USE_READ, bench.s),
                     SPM_E_INVALID_DEVICE, "B11");
        cr_expect_eq(spm_use_record(bench.model, a, SPM_USE_READ, 999), SPM_E_UNKNOWN, "B1");
        cr_expect_eq(spm_use_record(bench.model, a, 0, bench.s), SPM_E_INVALID_VALUE);
        cr_expect_eq(spm_use_record(bench.model, a, SPM_USE_FREE, bench.s), SPM_E_INVALID_VALUE);
        cr_expect_eq(uses_count(a), 1);
}

/* B28, B29 */
Test(use, a_pool_that_does_not_track_says_so)
{
        struct spm_allocation allocation;
        struct spm_block_id id;
        unsigned int count;
        enum spm_life life;
        struct spm_use use;

        cr_expect(spm_pool_tracks_uses(bench.model, uses.pool));
        cr_expect_not(spm_pool_tracks_uses(bench.model, bench.async));
        cr_expect_not(spm_pool_tracks_uses(bench.model, 999));
        cr_assert_eq(bench_try(bench.async, bench.s, MIB, true, &allocation), SPM_OK);
        id = spm_block_id(&allocation);
        cr_expect_eq(spm_use_record(bench.model, id, SPM_USE_READ, bench.s), SPM_E_MISUSE);
        cr_expect_eq(spm_use_prepare(bench.model, id, SPM_USE_READ, bench.s, &use), SPM_E_MISUSE);
        cr_expect_eq(spm_use_waits(bench.model, id, SPM_USE_READ, bench.t, NULL, 0, &count),
                     SPM_E_MISUSE);
        cr_expect_eq(spm_use_count(bench.model, id, &count), SPM_E_MISUSE);
        cr_expect_eq(spm_life_of(bench.model, id, &life), SPM_E_MISUSE);
        bench_free(id.address, bench.s);
        cr_expect_eq(spm_use_record(bench.model, id, SPM_USE_READ, bench.s), SPM_E_MISUSE,
                     "nor is it known when it was freed");
}

Test(use, only_asynchronous_pools_track_and_these_have_no_magazines)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_SYNC,
                .context = bench.context,
                .track_uses = true,
        };
        struct spm_magazine *magazine;
        spm_pool pool;

        cr_expect_eq(spm_pool_create(bench.model, &config, &pool), SPM_E_INVALID_VALUE);
        config.kind = SPM_POOL_ASYNC;
        config.range_base = (uint64_t)1 << 44;
        config.range_size = (uint64_t)1 << 30;
        cr_expect_eq(spm_magazine_new(bench.model, bench_pool(config), bench.s, &magazine),
                     SPM_E_INVALID_VALUE);
}

/* waits */

/* B9 */
Test(use, a_consumer_waits_for_the_allocation_and_its_stream_does_not)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);
        struct spm_use_wait wait;
        unsigned int count;

        cr_expect_eq(uses_waits(a, SPM_USE_READ, bench.s), 0);
        cr_assert_eq(spm_use_waits(bench.model, a, SPM_USE_READ, bench.t, &wait, 1, &count),
                     SPM_OK);
        cr_expect_eq(count, 1);
        cr_expect_eq(wait.stream, bench.s);
        cr_expect_gt(wait.position, 0);
        uses_order(bench.s, bench.t);
        cr_expect_eq(uses_waits(a, SPM_USE_READ, bench.t), 0, "it has waited");
}

/* B30: 3 accesses x {same, other stream} x {0, 1, n reads}; the allocation is a write. */
Test(use, reads_wait_for_writes_and_writes_for_all)
{
        static const struct {
                enum spm_use_access access;
                bool same;
                int reads;
                int waits;
        } rows[] = {
                {SPM_USE_READ, true, 0, 0},        {SPM_USE_READ, true, 1, 0},
                {SPM_USE_READ, true, 9, 0},        {SPM_USE_READ, false, 0, 1},
                {SPM_USE_READ, false, 1, 1},       {SPM_USE_READ, false, 9, 1},
                {SPM_USE_WRITE, true, 0, 0},       {SPM_USE_WRITE, true, 1, 1},
                {SPM_USE_WRITE, true, 9, 9},       {SPM_USE_WRITE, false, 0, 1},
                {SPM_USE_WRITE, false, 1, 2},      {SPM_USE_WRITE, false, 9, 10},
                {SPM_USE_READ_WRITE, true, 0, 0},  {SPM_USE_READ_WRITE, true, 1, 1},
                {SPM_USE_READ_WRITE, true, 9, 9},  {SPM_USE_READ_WRITE, false, 0, 1},
                {SPM_USE_READ_WRITE, false, 1, 2}, {SPM_USE_READ_WRITE, false, 9, 10},
                {SPM_USE_FREE, true, 9, 9},        {SPM_USE_FREE, false, 9, 10},
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct spm_block_id a = uses_alloc(bench.s, 4 * KIB);

                for (int read = 0; read < rows[i].reads; read++)
                        cr_assert_eq(spm_use_record(bench.model, a, SPM_USE_READ, uses.more[read]),
                                     SPM_OK);
                cr_expect_eq(uses_waits(a, rows[i].access, rows[i].same ? bench.s : bench.t),
                             rows[i].waits, "row %zu", i);
        }
}

Test(use, too_little_room_is_told_by_the_count)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);
        struct spm_use_wait waits[3] = {{0}};
        unsigned int count;

        for (int i = 0; i < 5; i++)
                cr_assert_eq(spm_use_record(bench.model, a, SPM_USE_READ, uses.more[i]), SPM_OK);
        cr_assert_eq(spm_use_waits(bench.model, a, SPM_USE_WRITE, bench.s, waits, 2, &count),
                     SPM_OK);
        cr_expect_eq(count, 5);
        cr_expect_neq(waits[0].stream, waits[1].stream);
        cr_expect_eq(waits[2].stream, 0, "no more was written");
}

Test(use, what_the_host_has_seen_needs_no_wait)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);

        cr_assert_eq(spm_use_record(bench.model, a, SPM_USE_READ, bench.t), SPM_OK);
        bench_sync(SPM_SCOPE_STREAM, bench.t, SPM_SYNC_QUERY);
        cr_expect_eq(uses_waits(a, SPM_USE_FREE, bench.s), 0);
        cr_expect_eq(uses_count(a), 2, "though it is remembered");
}

/* B31: after a write by t, a free waits for t alone. */
Test(use, a_write_stands_for_what_its_stream_is_behind)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);
        struct spm_use_wait wait;
        unsigned int count;

        for (int i = 0; i < 9; i++)
                uses_use(a, SPM_USE_READ, uses.more[i]);
        cr_expect_eq(uses_count(a), 10, "B21");
        uses_use(a, SPM_USE_WRITE, bench.t);
        cr_expect_eq(uses_count(a), 1, "B21");
        cr_assert_eq(spm_use_waits(bench.model, a, SPM_USE_FREE, bench.s, &wait, 1, &count),
                     SPM_OK);
        cr_expect_eq(count, 1);
        cr_expect_eq(wait.stream, bench.t);
}

/* Better than a rule that clears: nobody has ordered these. */
Test(use, a_write_does_not_hide_uses_that_its_stream_is_not_behind)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);
        struct spm_use use;

        cr_assert_eq(spm_use_record(bench.model, a, SPM_USE_READ, uses.more[0]), SPM_OK);
        cr_assert_eq(spm_use_record(bench.model, a, SPM_USE_WRITE, bench.t), SPM_OK);
        cr_expect_eq(uses_waits(a, SPM_USE_FREE, bench.s), 2);

        cr_assert_eq(spm_use_prepare(bench.model, a, SPM_USE_WRITE, uses.more[2], &use), SPM_OK);
        cr_assert_eq(spm_use_record(bench.model, a, SPM_USE_READ, uses.more[1]), SPM_OK,
                     "it comes between prepare and finish, so nobody has waited for it");
        cr_assert_eq(spm_use_finish(bench.model, &use, true), SPM_OK);
        cr_expect_eq(uses_waits(a, SPM_USE_FREE, bench.s), 2, "that, and the write");
}

/* B22 */
Test(use, a_million_reads_of_one_stream_are_one)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);
        uint64_t bytes;

        cr_assert_eq(spm_use_record(bench.model, a, SPM_USE_READ, bench.t), SPM_OK);
        bytes = bench_stats(uses.pool).host_bytes;
        for (int i = 0; i < 1000000; i++)
                spm_use_record(bench.model, a, SPM_USE_READ, bench.t);
        cr_expect_eq(uses_count(a), 2);
        cr_expect_eq(bench_stats(uses.pool).host_bytes, bytes);
}

Test(use, streams_that_come_and_go_leave_nothing_behind)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);
        struct spm_actions actions;
        uint64_t bytes = 0;

        for (int i = 0; i < 200; i++) {
                spm_stream stream;

                cr_assert_eq(spm_stream_add(bench.model, bench.context, SPM_STREAM_NON_BLOCKING,
                                            &stream),
                             SPM_OK);
                uses_use(a, SPM_USE_READ, stream);
                bench_sync(SPM_SCOPE_STREAM, stream, SPM_SYNC_WAIT);
                cr_assert_eq(spm_stream_retire(bench.model, stream, &actions), SPM_OK);
                bench_do(&actions, NULL);
                if (i == 100)
                        bytes = bench_stats(uses.pool).host_bytes;
        }
        cr_expect_eq(bench_stats(uses.pool).host_bytes, bytes);
}

/* prepare and finish */

Test(use, a_use_that_was_not_submitted_has_not_been)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);
        struct spm_use use;

        cr_assert_eq(spm_use_prepare(bench.model, a, SPM_USE_WRITE, bench.t, &use), SPM_OK);
        cr_expect_eq(uses_count(a), 1, "not yet");
        cr_assert_eq(spm_use_finish(bench.model, &use, false), SPM_OK);
        cr_expect_eq(uses_count(a), 1);
        cr_expect_eq(uses_waits(a, SPM_USE_FREE, bench.s), 0);
        cr_expect_eq(uses_waits(a, SPM_USE_READ, bench.t), 1, "nor has it waited");
}

/* B32 */
Test(use, a_block_that_is_freed_before_the_use_is_finished_was_used_after_free)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);
        struct spm_block_id b;
        struct spm_use use;

        cr_assert_eq(spm_use_prepare(bench.model, a, SPM_USE_READ, bench.t, &use), SPM_OK);
        bench_free(a.address, bench.s);
        b = uses_alloc(bench.s, MIB);
        cr_assert_eq(b.address, a.address);
        cr_expect_eq(spm_use_finish(bench.model, &use, true), SPM_E_USE_AFTER_FREE);
        cr_expect_eq(uses_count(b), 1, "the next owner's are its own");
}

Test(use, a_use_has_waited_for_what_it_was_told_to)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);

        uses_use(a, SPM_USE_READ, bench.t);
        cr_expect_eq(uses_waits(a, SPM_USE_READ, bench.t), 0);
        cr_expect_eq(uses_waits(a, SPM_USE_WRITE, bench.s), 1);
}

/* B12 */
Test(use, a_stream_that_has_ended_uses_nothing)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);
        struct spm_actions actions;
        struct spm_stats before;
        struct spm_stats after;
        struct spm_use use;

        cr_assert_eq(spm_use_prepare(bench.model, a, SPM_USE_FREE, bench.t, &use), SPM_OK);
        cr_assert_eq(spm_stream_retire(bench.model, bench.t, &actions), SPM_OK);
        bench_do(&actions, NULL);
        before = bench_stats(uses.pool);
        cr_expect_eq(spm_use_record(bench.model, a, SPM_USE_READ, bench.t), SPM_E_UNKNOWN);
        cr_expect_eq(spm_use_free(bench.model, &use, true, NULL, &actions), SPM_E_UNKNOWN);
        after = bench_stats(uses.pool);
        cr_expect_arr_eq(&before, &after, sizeof(before));
        cr_expect_eq(uses_life(a), SPM_LIFE_LIVE);
}
