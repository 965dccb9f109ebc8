/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quarantine -- freed, and served to nobody for a while
 *
 * All invariants are checked after every step (bench.h).
 */

#include "bench.h"

#include <string.h>

static spm_pool sync_pool, async_pool;

static void set_up(void)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .small_size = 4096,
                .release_threshold = SIZE_MAX,
                .quarantine = 4 * MIB,
        };

        bench_set_up();
        async_pool = bench_pool(config);
        config.kind = SPM_POOL_SYNC;
        config.context = bench.context;
        sync_pool = bench_pool(config);
}

TestSuite(quarantine, .init = set_up, .fini = bench_tear_down);

/* Everything that was submitted is complete, and the program knows it. */
static void wait_for_all(void)
{
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
}

/* So much goes through, block by block, whoever it is served to. */
static void free_others(spm_pool pool, spm_stream stream, unsigned int count, size_t size)
{
        uint64_t at[64];

        for (unsigned int i = 0; i < count; i++)
                at[i] = bench_alloc(pool, stream, size);
        for (unsigned int i = 0; i < count; i++)
                bench_free(at[i], stream);
        wait_for_all();
}

static bool is_served(spm_pool pool, spm_stream stream, uint64_t address, size_t size)
{
        uint64_t got = bench_alloc(pool, stream, size);

        bench_free(got, stream);
        return got == address;
}

static enum spm_status free_again(uint64_t address, spm_stream stream)
{
        struct spm_actions actions;

        return spm_free(bench.model, address, 0, stream ? SPM_FREE_ASYNC : SPM_FREE_SYNC, stream,
                        NULL, &actions);
}

Test(quarantine, what_was_freed_is_served_once_enough_was_freed_after_it)
{
        uint64_t a = bench_alloc(sync_pool, 0, MIB);

        bench_give(sync_pool, 64 * MIB);
        bench_free(a, 0);
        wait_for_all();
        free_others(sync_pool, 0, 3, MIB);
        cr_expect_not(is_served(sync_pool, 0, a, MIB),
                      "4 MiB are kept, and it is the first of them");
        wait_for_all();
        cr_expect(is_served(sync_pool, 0, a, MIB), "4 MiB were freed after it");
}

/* Is it among the next ones, of which a page has eight? */
static bool is_among_slots(uint64_t address)
{
        bool is_among = false;

        for (int i = 0; i < 8; i++)
                is_among = bench_alloc(async_pool, bench.s, 512) == address || is_among;
        return is_among;
}

Test(quarantine, a_slot_is_kept_like_any_block)
{
        uint64_t a = bench_alloc(async_pool, bench.s, 512);

        bench_give(async_pool, 64 * MIB);
        bench_free(a, bench.s);
        wait_for_all();
        cr_expect_not(is_among_slots(a));
        free_others(async_pool, bench.s, 4, MIB);
        cr_expect(is_among_slots(a));
}

Test(quarantine, a_second_free_is_one_of_nobody_elses_block)
{
        uint64_t a = bench_alloc(async_pool, bench.s, MIB);
        uint64_t b = bench_alloc(sync_pool, 0, MIB);

        bench_free(a, bench.s);
        bench_free(b, 0);
        wait_for_all();
        (void)bench_alloc(async_pool, bench.s, MIB);
        (void)bench_alloc(sync_pool, 0, MIB);
        cr_expect_eq(free_again(a, bench.s), SPM_E_DOUBLE_FREE);
        cr_expect_eq(free_again(b, 0), SPM_E_DOUBLE_FREE);
}

Test(quarantine, what_is_kept_is_pending_whatever_is_complete)
{
        bench_free(bench_alloc(sync_pool, 0, MIB), 0);
        wait_for_all();
        cr_expect_eq(bench_stats(sync_pool).pending_bytes, MIB);
        cr_expect_eq(bench_stats(sync_pool).used_current, 0);
        free_others(sync_pool, 0, 4, MIB);
        cr_expect_eq(bench_stats(sync_pool).pending_bytes, 4 * MIB, "and no more than that");
}

Test(quarantine, a_block_that_is_larger_is_not_kept_and_drives_all_others_out)
{
        uint64_t a = bench_alloc(sync_pool, 0, MIB);
        uint64_t large = bench_alloc(sync_pool, 0, 8 * MIB);

        bench_free(a, 0);
        bench_free(large, 0);
        wait_for_all();
        cr_expect_eq(bench_stats(sync_pool).pending_bytes, 0);
        cr_expect_eq(bench_alloc(sync_pool, 0, 8 * MIB), large);
}

Test(quarantine, an_exported_block_is_sealed_and_not_kept)
{
        uint64_t a = bench_alloc(sync_pool, 0, MIB);

        cr_assert_eq(spm_export(bench.model, a), SPM_OK);
        bench_free(a, 0);
        wait_for_all();
        cr_expect_eq(bench_stats(sync_pool).sealed_bytes, MIB);
}

Test(quarantine, memory_that_is_short_is_served_before_anybody_is_refused)
{
        uint64_t a = bench_alloc(sync_pool, 0, 2 * MIB);
        uint64_t b = bench_alloc(async_pool, bench.s, 2 * MIB);
        struct spm_allocation allocation;

        bench_free(a, 0);
        bench_free(b, bench.s);
        wait_for_all();
        bench.no_memory = true;
        while (bench_try(sync_pool, 0, 2 * MIB, true, &allocation) == SPM_OK && a)
                a = allocation.address == a ? 0 : a;
        cr_expect_eq(a, 0);
        while (bench_try(async_pool, bench.t, 2 * MIB, true, &allocation) == SPM_OK && b)
                b = allocation.address == b ? 0 : b;
        cr_expect_eq(b, 0);
}

Test(quarantine, what_it_keeps_is_waited_for_by_nobody_while_there_is_other_memory)
{
        bench_free(bench_alloc(sync_pool, 0, 4 * MIB), 0);
        (void)bench_alloc(sync_pool, 0, 4 * MIB);
        cr_expect(!strpbrk(bench.log, "HhbS"), "%s", bench.log);
}

Test(quarantine, a_trim_gives_back_what_is_kept)
{
        struct spm_actions actions;
        size_t released = 0;

        bench_free(bench_alloc(sync_pool, 0, 4 * MIB), 0);
        wait_for_all();
        cr_assert_eq(spm_trim(bench.model, sync_pool, 0, &released, &actions), SPM_OK);
        bench_do(&actions, NULL);
        cr_expect_geq(released, 4 * MIB);
        cr_expect_eq(bench_stats(sync_pool).reserved_current, 0);
}

Test(quarantine, it_ends_with_its_pool_and_with_its_context)
{
        struct spm_actions actions;
        struct spm_stats stats;

        bench_free(bench_alloc(async_pool, bench.s, MIB), bench.s);
        wait_for_all();
        cr_assert_eq(spm_pool_destroy(bench.model, async_pool, &actions), SPM_OK);
        bench_do(&actions, NULL);
        cr_expect_eq(spm_stats(bench.model, async_pool, &stats), SPM_E_UNKNOWN, "memory is left");

        for (int i = 0; i < 2 * SPM_ACTIONS_MAX; i++)
                bench_give(sync_pool, 2 * MIB);
        bench_free(bench_alloc(sync_pool, 0, MIB), 0);
        cr_assert_eq(spm_context_remove(bench.model, bench.context, &actions), SPM_AGAIN);
        cr_assert_eq(spm_stats(bench.model, sync_pool, &stats), SPM_OK, "no segment is left");
        cr_expect_eq(stats.pending_bytes, 0);
        while (spm_context_remove(bench.model, bench.context, &actions) == SPM_AGAIN)
                ;
        cr_expect_eq(spm_stats(bench.model, sync_pool, &stats), SPM_E_UNKNOWN, "memory is left");
}

/* Having been kept for long is no reason to be complete. */
Test(quarantine, what_leaves_waits_for_what_it_waited_for)
{
        uint64_t a = bench_alloc(async_pool, bench.s, 4 * MIB);
        uint64_t b = bench_alloc(async_pool, bench.t, 4 * MIB);

        bench_free(a, bench.s);
        bench_free(b, bench.t);
        cr_expect_neq(bench_alloc(async_pool, bench.t, 4 * MIB), a, "its stream may be using it");
        cr_expect_eq(bench_alloc(async_pool, bench.s, 4 * MIB), a, "it is that stream's");
}

/* Nobody can ask for one afterwards. */
Test(quarantine, a_stream_that_ends_is_stamped_for_what_is_kept)
{
        uint64_t a = bench_alloc(async_pool, bench.s, 4 * MIB);
        struct spm_actions actions;

        bench_free(a, bench.s);
        cr_assert_eq(spm_stream_retire(bench.model, bench.s, &actions), SPM_OK);
        bench_do(&actions, NULL);
        cr_expect(strchr(bench.log, 'R'), "%s", bench.log);
        bench.device_done = true;
        bench_free(bench_alloc(async_pool, bench.t, 4 * MIB), bench.t);
        cr_expect_eq(bench_alloc(async_pool, bench.t, 4 * MIB), a);
}

Test(quarantine, a_pool_that_has_one_has_no_magazines)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .range_base = (uint64_t)1 << 44,
                .range_size = (size_t)1 << 30,
        };
        struct spm_magazine *magazine;

        cr_expect_eq(spm_magazine_new(bench.model, bench_pool(config), bench.s, &magazine), SPM_OK);
        config.range_base *= 2;
        config.quarantine = 1;
        cr_expect_eq(spm_magazine_new(bench.model, bench_pool(config), bench.s, &magazine),
                     SPM_E_INVALID_VALUE);
}

/* The sole stream's own order: work of others is not behind it any more. */
Test(quarantine, synchronous_memory_that_was_freed_early_is_served_when_it_is_complete)
{
        uint64_t a;

        bench_watch();
        bench_submit(bench.s);
        a = bench_alloc(sync_pool, 0, 4 * MIB);
        bench_free(a, 0);
        bench_free(bench_alloc(sync_pool, 0, 4 * MIB), 0);
        cr_expect_neq(bench_alloc(sync_pool, 0, 4 * MIB), a);
        wait_for_all();
        cr_expect_eq(bench_alloc(sync_pool, 0, 4 * MIB), a);
}
