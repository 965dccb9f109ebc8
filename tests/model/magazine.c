/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Magazine -- freed blocks of a stream that one thread has at hand
 *
 * With one thread: what is served from a magazine and what is not, what is
 * counted, and how the blocks come back.
 */

#include "bench.h"

#define BASE ((uint64_t)1 << 45)
#define GIB  ((size_t)1 << 30)

static spm_pool pool;
static struct spm_magazine *magazine; /* of the pool and of s */

static struct spm_magazine *new_magazine(spm_pool of, spm_stream stream)
{
        struct spm_magazine *result;

        cr_assert_eq(spm_magazine_new(bench.model, of, stream, &result), SPM_OK);
        return result;
}

static void set_up(void)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC, .range_base = BASE, .range_size = 64 * GIB};

        bench_set_up();
        pool = bench_pool(config);
        magazine = new_magazine(pool, bench.s);
}

static void tear_down(void)
{
        if (magazine)
                spm_magazine_end(bench.model, magazine);
        bench_tear_down();
}

TestSuite(magazine, .init = set_up, .fini = tear_down);

/* With the lock. */
static struct spm_allocation alloc_locked(size_t size)
{
        return bench_alloc_filling(pool, bench.s, size, magazine);
}

/* Without it. Return: 0 if there is nothing. */
static uint64_t alloc_at_hand(size_t size)
{
        struct spm_allocation allocation;
        bool got = spm_magazine_alloc(magazine, size, 0, &allocation);

        bench_check();
        return got ? allocation.address : 0;
}

static bool free_at_hand(uint64_t address)
{
        bool done = spm_magazine_free(magazine, address, 0, NULL);

        bench_check();
        return done;
}

static enum spm_status free_locked(uint64_t address, uint64_t generation)
{
        struct spm_actions actions;

        return spm_free(bench.model, address, generation, SPM_FREE_ASYNC, bench.s, NULL, &actions);
}

static const size_t sizes[] = {1, 1000, 32 * KIB, 100 * KIB};

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

Test(magazine, what_was_freed_is_at_hand_at_once)
{
        unsigned int i;

        for (i = 0; i < SIZES; i++) {
                struct spm_allocation first = alloc_locked(sizes[i]);
                struct spm_allocation second;
                struct spm_allocation third;

                cr_assert(free_at_hand(first.address), "%zu bytes", sizes[i]);
                cr_assert(spm_magazine_alloc(magazine, sizes[i], 0, &second), "%zu bytes",
                          sizes[i]);
                bench_check();
                cr_expect_eq(second.address, first.address);
                cr_expect_eq(second.reserved, first.reserved);
                cr_expect_eq(second.size, sizes[i]);
                cr_expect_eq(second.stream, bench.s);
                cr_expect_eq(second.pool, pool);
                cr_expect_neq(second.generation, first.generation, "B3");
                cr_expect_neq(second.buffer_id, first.buffer_id, "Q5");
                cr_expect(second.reused);
                cr_assert(free_at_hand(second.address));
                cr_assert(spm_magazine_alloc(magazine, sizes[i], 0, &third), "%zu bytes", sizes[i]);
                cr_expect_neq(third.generation, second.generation, "B3");
        }
}

/* Whoever tells of the lives of a block goes by their numbers. */
Test(magazine, of_two_lives_the_later_one_has_the_larger_number)
{
        struct spm_allocation first = alloc_locked(1000), other = alloc_locked(100 * KIB), second;

        cr_assert(free_at_hand(other.address));
        cr_assert(spm_magazine_alloc(magazine, 100 * KIB, 0, &second));
        cr_expect_gt(second.generation, first.generation);
        cr_expect_gt(second.generation, other.generation);
}

Test(magazine, every_figure_is_exact_at_any_time)
{
        struct spm_allocation a = alloc_locked(1000);
        struct spm_stats stats;
        unsigned int i;

        for (i = 0; i < 10; i++) {
                cr_assert(free_at_hand(a.address));
                stats = bench_stats(pool);
                cr_expect_eq(stats.used_current, 0);
                cr_expect_eq(stats.live_blocks, 0);
                cr_expect_eq(stats.rounded_current, 0);
                cr_expect_geq(stats.pending_bytes, 1024);
                cr_expect_eq(stats.frees, i + 1);
                cr_assert_eq(alloc_at_hand(900), a.address);
                stats = bench_stats(pool);
                cr_expect_eq(stats.used_current, 900);
                cr_expect_eq(stats.live_blocks, 1);
                cr_expect_eq(stats.rounded_current, 1024);
                cr_expect_eq(stats.allocs, i + 2);
                cr_expect_eq(stats.hits, i + 1);
                cr_expect_eq(stats.used_high, 1000, "which was never passed");
                cr_expect_eq(stats.live_blocks_high, 1);
        }
        cr_assert_eq(spm_reset_peaks(bench.model, pool), SPM_OK);
        cr_expect_eq(bench_stats(pool).hits, 10, "settled, and the same");
        cr_expect_eq(bench_stats(pool).allocs, 11);
        cr_expect_eq(bench_stats(pool).frees, 10);
        cr_expect_eq(bench_stats(pool).reserved_current,
                     stats.rounded_current + stats.pending_bytes + stats.ready_bytes);
}

Test(magazine, no_peak_is_passed_without_the_lock)
{
        uint64_t high;
        unsigned int i;

        alloc_locked(1000);
        cr_expect_eq(alloc_at_hand(1000), 0, "two at once have not been seen");
        for (i = 2; i < 40; i++) {
                alloc_locked(1000);
                high = bench_stats(pool).used_high;
                cr_expect_eq(high, bench_stats(pool).used_current);
                cr_expect_eq(high, i * 1000);
                cr_expect_eq(bench_stats(pool).live_blocks_high, i);
        }
}

/* Many small blocks were in use at once, and never two large ones. */
Test(magazine, no_peak_of_bytes_is_passed_where_there_were_blocks_enough)
{
        uint64_t at[16];
        uint64_t large;
        unsigned int i;

        for (i = 0; i < 16; i++)
                at[i] = alloc_locked(512).address;
        for (i = 0; i < 16; i++)
                cr_assert_eq(free_locked(at[i], 0), SPM_OK);
        large = alloc_locked(32 * KIB).address;
        cr_assert(free_at_hand(large));
        alloc_locked(1000);
        cr_assert_lt(bench_stats(pool).used_high, 33 * KIB);
        cr_expect_eq(alloc_at_hand(32 * KIB), 0);
        alloc_locked(32 * KIB);
        cr_expect_eq(bench_stats(pool).used_high, 32 * KIB + 1000);
}

/* Two large blocks were in use at once, and never more than two. */
Test(magazine, no_peak_of_blocks_is_passed_where_there_were_bytes_enough)
{
        uint64_t a = alloc_locked(100 * KIB).address;
        uint64_t b = alloc_locked(100 * KIB).address;

        cr_assert(free_at_hand(a));
        cr_assert(free_at_hand(b));
        alloc_locked(100);
        alloc_at_hand(100);
        cr_expect_eq(alloc_at_hand(100), 0);
        cr_expect_leq(bench_stats(pool).live_blocks, 2);
        cr_expect_eq(bench_stats(pool).live_blocks_high, 2);
}

Test(magazine, what_it_was_filled_with_is_fresh)
{
        struct spm_allocation first = alloc_locked(1000);
        struct spm_allocation second = alloc_locked(1000);

        cr_expect_not(first.reused);
        cr_expect_not(second.reused);
        cr_expect_eq(bench_stats(pool).hits, 0, "nothing was freed before");
}

Test(magazine, a_bad_free_is_left_to_those_who_can_name_it)
{
        struct spm_allocation a = alloc_locked(1000);
        struct spm_allocation old = a;

        cr_expect_not(free_at_hand(a.address + 512));
        cr_expect_not(free_at_hand(0x1234));
        cr_expect_not(free_at_hand(a.address + 64 * GIB));
        cr_expect_not(spm_magazine_free(magazine, a.address, a.generation + 1, NULL));
        cr_assert(spm_magazine_free(magazine, a.address, a.generation, &a));
        cr_expect_eq(a.size, 1000);
        cr_expect_not(free_at_hand(a.address));
        cr_expect_eq(free_locked(a.address, 0), SPM_E_DOUBLE_FREE);
        cr_expect_eq(spm_find(bench.model, a.address, &a), SPM_E_DOUBLE_FREE);
        cr_assert_eq(alloc_at_hand(1000), a.address);
        cr_expect_not(spm_magazine_free(magazine, old.address, old.generation, NULL));
        cr_expect_eq(free_locked(old.address, old.generation), SPM_E_STALE);
        cr_expect_eq(spm_find(bench.model, a.address + 999, &a), SPM_OK);
        cr_expect_eq(free_locked(a.address, a.generation), SPM_OK);
        cr_expect_not(free_at_hand(a.address));
}

Test(magazine, blocks_of_others_are_not_taken)
{
        uint64_t exported = alloc_locked(1000).address;
        uint64_t other = bench_alloc(pool, bench.t, 1000);
        uint64_t lone = bench_alloc(bench.async, bench.s, 1000);
        uint64_t large = alloc_locked(64 * MIB).address;

        cr_assert_eq(spm_export(bench.model, exported), SPM_OK);
        cr_expect_not(free_at_hand(exported), "I10");
        cr_expect_not(free_at_hand(other), "of another stream");
        cr_expect_not(free_at_hand(lone), "of another pool");
        cr_expect_not(free_at_hand(large), "too large to be kept from the others");
        cr_expect_eq(free_locked(exported, 0), SPM_OK);
        cr_expect_eq(free_locked(other, 0), SPM_OK);
        cr_expect_eq(free_locked(lone, 0), SPM_OK);
        cr_expect_eq(free_locked(large, 0), SPM_OK);
}

Test(magazine, what_it_serves_is_not_complete_by_a_look_before)
{
        uint64_t a = alloc_locked(1000).address;

        cr_assert(free_at_hand(a));
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
        cr_assert_eq(alloc_locked(1000).address, a);
        cr_expect_not(spm_is_ready(bench.model, a), "A14");
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
        cr_expect(spm_is_ready(bench.model, a));
        cr_assert(free_at_hand(a));
        cr_assert_eq(alloc_at_hand(1000), a);
        cr_expect_not(spm_is_ready(bench.model, a));
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
        cr_expect(spm_is_ready(bench.model, a));
}

Test(magazine, its_memory_comes_back_when_another_stream_needs_it)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .range_base = BASE + 64 * GIB,
                .range_size = GIB,
                .max_size = 2 * MIB,
        };
        struct spm_magazine *small;
        struct spm_request request = {.stream = bench.s, .size = 100 * KIB};
        struct spm_allocation allocation;
        struct spm_actions actions;

        request.pool = bench_pool(config);
        small = new_magazine(request.pool, bench.s);
        request.magazine = small;
        while (spm_alloc(bench.model, &request, &allocation, &actions) == SPM_AGAIN)
                bench_do(&actions, &request);
        cr_assert(spm_magazine_free(small, allocation.address, 0, NULL));
        bench.device_done = true;
        cr_expect_eq(bench_alloc(request.pool, bench.t, 2 * MIB), allocation.address);
        bench_check();
        cr_expect_not(spm_magazine_alloc(small, 100 * KIB, 0, &allocation));
        spm_magazine_end(bench.model, small);
}

/* It lies where it fits best; what is kept back there would cut its heap up. */
Test(magazine, a_large_block_is_not_kept)
{
        cr_expect(free_at_hand(alloc_locked(MIB).address));
        cr_expect_not(free_at_hand(alloc_locked(MIB + 512).address));
}

Test(magazine, its_blocks_go_back_when_it_ends)
{
        uint64_t a = alloc_locked(1000).address;

        cr_assert(free_at_hand(a));
        spm_magazine_end(bench.model, magazine);
        magazine = NULL;
        bench_check();
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
        cr_expect_eq(bench_stats(pool).pending_bytes, 0);
        cr_expect_eq(bench_stats(pool).ready_bytes, bench_stats(pool).reserved_current);
}

Test(magazine, it_serves_nothing_while_its_stream_is_captured)
{
        uint64_t a = alloc_locked(1000).address;
        struct spm_actions actions;

        cr_assert(free_at_hand(a));
        cr_assert_eq(spm_capture_begin(bench.model, bench.s, &actions), SPM_OK);
        bench_do(&actions, NULL);
        cr_expect_eq(alloc_at_hand(1000), 0);
        a = alloc_locked(1000).address;
        cr_assert_eq(spm_reset_peaks(bench.model, pool), SPM_OK);
        cr_expect_not(free_at_hand(a), "whoever has looked at it");
        cr_assert_eq(spm_capture_end(bench.model, bench.s), SPM_OK);
        cr_expect_eq(free_locked(a, 0), SPM_OK);
        a = alloc_locked(1000).address;
        cr_expect(free_at_hand(a), "again");
}

Test(magazine, it_serves_nothing_when_its_stream_is_gone)
{
        uint64_t a = alloc_locked(1000).address;
        uint64_t b = alloc_locked(1000).address;
        struct spm_actions actions;

        cr_assert(free_at_hand(a));
        cr_assert_eq(spm_stream_retire(bench.model, bench.s, &actions), SPM_OK);
        bench_do(&actions, NULL);
        cr_expect_eq(alloc_at_hand(1000), 0);
        cr_expect_not(free_at_hand(b));
        bench_free(b, bench.t);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_QUERY);
        cr_expect_eq(bench_stats(pool).pending_bytes, 0);
}

Test(magazine, it_serves_nothing_when_its_pool_is_gone)
{
        uint64_t a = alloc_locked(1000).address;
        struct spm_actions actions;

        cr_assert(free_at_hand(a));
        cr_assert_eq(spm_pool_destroy(bench.model, pool, &actions), SPM_OK);
        bench_do(&actions, NULL);
        cr_expect_eq(alloc_at_hand(1000), 0);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
        cr_expect_eq(alloc_at_hand(1000), 0);
        cr_expect_not(free_at_hand(a));
}

/* A stream that follows an event from after the free has what lies in the magazine before more
 * memory is asked for; one from before the free does not order it. */
Test(magazine, a_stream_that_follows_an_event_after_the_free_has_the_block)
{
        uint64_t a = alloc_locked(MIB).address;
        spm_event early = bench_record(bench.s);

        alloc_locked(MIB); /* nothing is left of what the pool has grown by */
        cr_assert(free_at_hand(a));
        bench_wait(bench.t, early);
        cr_expect_neq(bench_alloc(pool, bench.t, MIB), a);
        cr_expect_neq(bench_alloc(pool, bench.t, MIB), a);
        bench_wait(bench.t, bench_record(bench.s));
        cr_expect_eq(bench_alloc(pool, bench.t, MIB), a);
}

/* An idle stream has seen nothing of what its context waits for, and a host that waits for the
 * stream would not wait for that. */
Test(magazine, what_is_behind_a_wait_of_the_context_is_unseen)
{
        struct spm_scope whole = {SPM_SCOPE_CONTEXT, bench.context};
        uint64_t a = alloc_locked(1000).address;
        struct spm_allocation again;
        struct spm_ticket ticket;

        cr_assert(free_at_hand(a));
        cr_assert(spm_magazine_alloc(magazine, 1000, 0, &again));
        cr_expect_not(again.unseen);
        spm_wait_begin(bench.model, whole, bench_record(bench.t), &ticket);
        spm_wait_end(bench.model, &ticket, true);
        cr_assert(free_at_hand(again.address));
        cr_assert(spm_magazine_alloc(magazine, 1000, 0, &again));
        cr_expect(again.unseen, "without the lock");
        cr_assert(free_at_hand(again.address));
        cr_expect(alloc_locked(1000).unseen, "with it");
}

Test(magazine, the_callers_word_is_kept_with_each_block)
{
        struct spm_allocation allocation;
        uint64_t a = alloc_locked(1000).address;

        cr_assert(free_at_hand(a));
        cr_assert(spm_magazine_alloc(magazine, 1000, 77, &allocation));
        cr_expect_eq(allocation.user, 77);
        cr_assert_eq(spm_find(bench.model, a, &allocation), SPM_OK);
        cr_expect_eq(allocation.user, 77);
        cr_assert(spm_magazine_free(magazine, a, 0, &allocation));
        cr_expect_eq(allocation.user, 77, "of the life that has ended");
        cr_expect_eq(alloc_locked(1000).user, 0);
}

Test(magazine, it_is_of_an_asynchronous_pool_and_of_a_stream)
{
        struct spm_magazine *none = NULL;

        cr_expect_eq(spm_magazine_new(bench.model, bench.sync, bench.s, &none),
                     SPM_E_INVALID_VALUE);
        cr_expect_eq(spm_magazine_new(bench.model, 99, bench.s, &none), SPM_E_UNKNOWN);
        cr_expect_eq(spm_magazine_new(bench.model, pool, 99, &none), SPM_E_UNKNOWN);
        cr_expect_null(none);
}

Test(magazine, on_a_blocking_stream_the_legacy_stream_is_waited_for_all_the_same)
{
        struct spm_magazine *blocking = new_magazine(pool, bench.blocking);
        uint64_t a = bench_alloc(pool, bench.blocking, 1000);

        cr_assert(spm_magazine_free(blocking, a, 0, NULL));
        spm_magazine_end(bench.model, blocking);
        bench_sync(SPM_SCOPE_STREAM, bench.blocking, SPM_SYNC_QUERY);
        cr_expect_eq(bench_stats(pool).pending_bytes, 1024);
        bench_sync(SPM_SCOPE_STREAM, bench.legacy, SPM_SYNC_QUERY);
        cr_expect_eq(bench_stats(pool).pending_bytes, 0);
}
