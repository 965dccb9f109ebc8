/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Magazine of a synchronous pool -- what it serves may be used anywhere, so it is complete (ripe.h)
 */

#include "bench.h"

#define BASE  ((uint64_t)1 << 45)
#define GIB   ((size_t)1 << 30)
#define SIZE  4096
#define LARGE (100 * KIB)

static spm_pool pool;
static struct spm_magazine *magazine;
static struct spm_magazine *of_another; /* thread */

static void set_up(void)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_SYNC, .range_base = BASE, .range_size = 64 * GIB};

        bench_set_up();
        bench_watch();
        config.context = bench.context;
        pool = bench_pool(config);
        cr_assert_eq(spm_magazine_new(bench.model, pool, 0, &magazine), SPM_OK);
        cr_assert_eq(spm_magazine_new(bench.model, pool, 0, &of_another), SPM_OK);
}

static void tear_down(void)
{
        if (magazine)
                spm_magazine_end(bench.model, magazine);
        spm_magazine_end(bench.model, of_another);
        bench_tear_down();
}

TestSuite(magazine_sync, .init = set_up, .fini = tear_down);

/* With the lock. */
static uint64_t alloc_locked(void)
{
        return bench_alloc_filling(pool, 0, SIZE, magazine).address;
}

/* Without it. Return: 0 if there is nothing. */
static uint64_t alloc_at_hand(void)
{
        struct spm_allocation block;
        bool got = spm_magazine_alloc(magazine, SIZE, 0, &block);

        bench_check();
        if (!got)
                return 0;
        cr_expect_eq(block.pool, pool);
        cr_expect_eq(block.kind, SPM_POOL_SYNC);
        cr_expect_eq(block.size, SIZE);
        cr_expect_eq(block.stream, 0, "it is for no stream");
        cr_expect_not(block.unseen, "nor in anybody's order");
        return block.address;
}

static bool free_at_hand(uint64_t address)
{
        bool done = spm_magazine_free(magazine, address, 0, NULL);

        bench_check();
        return done;
}

/* Several streams have work (R2), and threads wait for one another. */
static void make_busy(void)
{
        spm_magazine_crowd(bench.model, magazine);
        bench_submit(bench.s);
        bench_submit(bench.t);
}

static void complete_all(void)
{
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
}

Test(magazine_sync, what_was_freed_is_at_hand_at_once_where_nothing_has_work)
{
        uint64_t a = alloc_locked();

        cr_assert(free_at_hand(a));
        cr_expect_eq(bench_stats(pool).used_current, 0);
        cr_expect_eq(alloc_at_hand(), a);
        cr_expect_eq(bench_stats(pool).used_current, SIZE);
        cr_expect_eq(bench_stats(pool).allocs, 2);
        cr_expect_eq(bench_stats(pool).frees, 1);
        cr_assert(free_at_hand(a));
        cr_expect_not(free_at_hand(a), "twice");
}

/* The report tells by that which life of an address was the last. */
Test(magazine_sync, what_is_served_at_an_address_later_has_a_greater_generation)
{
        struct spm_allocation first = bench_alloc_filling(pool, 0, SIZE, magazine), later;
        struct spm_allocation locked = bench_alloc_filling(pool, 0, SIZE, NULL);
        struct spm_magazine *other;

        cr_assert_eq(spm_magazine_new(bench.model, pool, 0, &other), SPM_OK);
        cr_assert(free_at_hand(locked.address));
        cr_expect_eq(alloc_at_hand(), 0, "those it could give are older");
        later = bench_alloc_filling(pool, 0, SIZE, magazine);
        cr_expect_eq(later.address, locked.address);
        cr_expect_gt(later.generation, locked.generation);
        cr_assert(spm_magazine_free(other, later.address, 0, NULL));
        locked = bench_alloc_filling(pool, 0, SIZE, other);
        cr_expect_eq(locked.address, later.address);
        cr_expect_gt(locked.generation, later.generation);
        cr_assert(free_at_hand(locked.address));
        later = bench_alloc_filling(pool, 0, SIZE, magazine);
        cr_expect_eq(later.address, locked.address);
        cr_expect_gt(later.generation, locked.generation);
        cr_assert(free_at_hand(first.address));
        spm_magazine_end(bench.model, other);
}

Test(magazine_sync, what_is_freed_beside_work_waits_for_it)
{
        uint64_t a = alloc_locked();

        make_busy();
        cr_assert(free_at_hand(a));
        cr_expect_eq(bench_stats(pool).pending_bytes, SIZE);
        cr_expect_eq(alloc_at_hand(), 0);
        complete_all();
        cr_expect_eq(alloc_at_hand(), a);
}

/* What the host waited for had begun before. */
Test(magazine_sync, what_is_freed_while_the_host_waits_waits_on)
{
        struct spm_scope scope = {SPM_SCOPE_CONTEXT, bench.context};
        uint64_t a = alloc_locked();
        struct spm_ticket ticket;
        struct spm_actions actions;

        make_busy();
        cr_assert_eq(spm_sync_begin(bench.model, scope, &ticket), SPM_OK);
        cr_assert(free_at_hand(a));
        spm_sync_end(bench.model, &ticket, SPM_SYNC_WAIT, true, &actions);
        cr_expect_eq(alloc_at_hand(), 0);
        complete_all();
        cr_expect_eq(alloc_at_hand(), a);
}

/* With the lock; no slot of a slab, so that nothing is ready but what was freed. */
static uint64_t alloc_large(void)
{
        return bench_alloc_filling(pool, 0, LARGE, magazine).address;
}

/* R1: what is freed is served early, and who is told of that needs the lock. */
Test(magazine_sync, it_is_passed_over_while_one_stream_has_work)
{
        uint64_t a = alloc_large(), b = alloc_large(), first;
        struct spm_allocation block;

        spm_magazine_crowd(bench.model, magazine);
        cr_assert(free_at_hand(a));
        bench_submit(bench.s);
        cr_expect_not(free_at_hand(b));
        cr_expect_not(spm_magazine_alloc(magazine, LARGE, 0, &block));
        bench_free(b, 0);
        first = alloc_large();
        cr_expect(first == a || first == b, "what it had is the pool's");
        cr_expect_eq(alloc_large(), first == a ? b : a, "and the other is served early");
}

/* It waits for more than its magazine knows. */
Test(magazine_sync, what_was_served_early_is_freed_with_the_lock)
{
        struct spm_actions actions;
        uint64_t a = alloc_large();

        bench_submit(bench.s);
        bench_free(a, 0);
        cr_assert_eq(alloc_large(), a);
        bench_submit(bench.t);
        complete_all();
        cr_assert_eq(spm_context_recount(bench.model, bench.context, &actions), SPM_OK);
        bench.device_done = true;
        bench_do(&actions, NULL);
        complete_all();
        cr_assert(free_at_hand(alloc_large()), "nothing has work any more");
        cr_expect_not(free_at_hand(a));
}

/* It would make no thread faster, and take memory. */
Test(magazine_sync, nothing_waits_in_it_where_no_thread_waits_for_others)
{
        uint64_t a = alloc_locked(), b = alloc_locked();

        bench_submit(bench.s);
        bench_submit(bench.t);
        cr_expect_not(free_at_hand(a));
        spm_magazine_crowd(bench.model, magazine);
        cr_expect(free_at_hand(a));
        spm_magazine_end(bench.model, of_another);
        cr_expect_not(free_at_hand(b), "it is alone");
        cr_assert_eq(spm_magazine_new(bench.model, pool, 0, &of_another), SPM_OK);
        cr_expect(free_at_hand(b));
}

Test(magazine_sync, large_blocks_do_not_wait_in_it)
{
        uint64_t a = alloc_large();

        make_busy();
        cr_expect_not(free_at_hand(a));
}

Test(magazine_sync, small_blocks_are_laid_up_only_beside_work)
{
        uint64_t blocks[64];
        unsigned int i;

        for (i = 0; i < 64; i++)
                blocks[i] = alloc_locked();
        for (i = 0; i < 64; i++) /* far below the marks, so that it may rise */
                bench_free(blocks[i], 0);
        alloc_locked();
        cr_expect_eq(alloc_at_hand(), 0);
        make_busy();
        alloc_locked();
        cr_expect_neq(alloc_at_hand(), 0);
}

Test(magazine_sync, a_request_that_it_has_nothing_for_gives_the_pool_what_waits)
{
        uint64_t a = alloc_locked(), b;

        make_busy();
        cr_assert(free_at_hand(a));
        b = alloc_large();
        cr_expect_neq(b, a, "it is not complete");
        complete_all();
        cr_expect_eq(bench_stats(pool).pending_bytes, 0, "it is the pool's, and ready");
}

Test(magazine_sync, it_is_full_of_what_waits_until_that_is_flushed)
{
        uint64_t blocks[64];
        unsigned int i;

        for (i = 0; i < 64; i++)
                blocks[i] = alloc_locked();
        make_busy();
        for (i = 0; i < 64 && free_at_hand(blocks[i]); i++)
                ;
        cr_expect(i >= 8 && i < 64, "%u are taken", i);
        spm_magazine_flush(bench.model, magazine);
        bench_check();
        cr_expect_eq(bench_stats(pool).pending_bytes, i * SIZE, "no figure has changed");
        cr_expect(free_at_hand(blocks[i]));
        /* They are stamped like any others. */
        bench_free(blocks[i + 1], 0);
        complete_all();
        cr_expect_eq(bench_stats(pool).pending_bytes, SIZE, "what is at hand");
}

Test(magazine_sync, a_capture_takes_all_out_and_stamps_it)
{
        uint64_t a = alloc_locked();
        struct spm_actions actions;

        make_busy();
        cr_assert(free_at_hand(a));
        cr_assert_eq(spm_capture_begin(bench.model, bench.s, &actions), SPM_OK);
        cr_expect_geq(actions.count, 1, "C5");
        bench_do(&actions, NULL);
        cr_expect_not(free_at_hand(alloc_locked()));
        cr_assert_eq(spm_capture_end(bench.model, bench.s), SPM_OK);
        cr_expect(free_at_hand(alloc_locked()));
}

Test(magazine_sync, memory_that_is_short_takes_all_out)
{
        uint64_t a = alloc_locked();

        while (bench_stats(pool).ready_bytes >= SIZE)
                alloc_locked();
        make_busy();
        cr_assert(free_at_hand(a));
        bench.no_memory = true;
        bench.device_done = true;
        cr_expect_eq(bench_alloc(pool, 0, SIZE), a);
}

Test(magazine_sync, of_its_own_kind_of_pool_and_for_no_stream)
{
        struct spm_magazine *other;

        cr_expect_eq(spm_magazine_new(bench.model, pool, bench.s, &other), SPM_E_INVALID_VALUE);
        cr_expect_eq(spm_magazine_new(bench.model, bench.async, 0, &other), SPM_E_UNKNOWN);
        cr_expect_eq(spm_magazine_new(bench.model, bench.sync, 0, &other), SPM_E_INVALID_VALUE,
                     "no range");
}

Test(magazine_sync, a_context_that_ends_takes_it_along)
{
        uint64_t a = alloc_locked();
        struct spm_allocation block;
        struct spm_actions actions;

        make_busy();
        cr_assert(free_at_hand(a));
        while (spm_context_remove(bench.model, bench.context, &actions) == SPM_AGAIN)
                ;
        cr_expect_not(spm_magazine_free(magazine, a, 0, NULL));
        cr_expect_not(spm_magazine_alloc(magazine, SIZE, 0, &block));
        spm_magazine_end(bench.model, magazine);
        magazine = NULL;
}

/* Until its stamp is recorded, what was announced before still counts: somebody may be about to
 * submit who relies on that. Another wait does not prove that he is not. */
Test(magazine_sync, a_count_whose_stamp_is_not_recorded_yet_proves_nothing)
{
        uint64_t a = alloc_locked();
        struct spm_actions recount;

        make_busy();
        cr_assert_eq(spm_context_recount(bench.model, bench.context, &recount), SPM_OK);
        complete_all();
        /* Now a thread submits that has announced it before the count began. */
        cr_assert(free_at_hand(a));
        cr_expect_eq(alloc_at_hand(), 0);
        bench_do(&recount, NULL);
        cr_expect_eq(alloc_at_hand(), 0);
        complete_all();
        cr_expect_eq(alloc_at_hand(), a);
}

/* Likewise a wait that began before, and ends later. */
Test(magazine_sync, nor_does_a_wait_that_began_before_it_was)
{
        struct spm_scope scope = {SPM_SCOPE_CONTEXT, bench.context};
        uint64_t a = alloc_locked();
        struct spm_actions recount, actions;
        struct spm_ticket ticket;

        make_busy();
        cr_assert_eq(spm_context_recount(bench.model, bench.context, &recount), SPM_OK);
        cr_assert_eq(spm_sync_begin(bench.model, scope, &ticket), SPM_OK);
        bench_do(&recount, NULL);
        spm_sync_end(bench.model, &ticket, SPM_SYNC_WAIT, true, &actions);
        cr_assert(free_at_hand(a));
        cr_expect_eq(alloc_at_hand(), 0);
        complete_all();
        cr_expect_eq(alloc_at_hand(), a);
}

/* Its own stamp does, and so does a wait that begins later. */
Test(magazine_sync, after_a_count_that_is_proved_what_is_freed_is_complete)
{
        uint64_t a = alloc_locked();
        struct spm_actions recount;

        make_busy();
        cr_assert_eq(spm_context_recount(bench.model, bench.context, &recount), SPM_OK);
        bench_do(&recount, NULL);
        complete_all();
        cr_assert(free_at_hand(a));
        cr_expect_eq(alloc_at_hand(), a);
}

/* Somebody was about to submit, and the caller has noticed. */
Test(magazine_sync, nor_does_the_stamp_of_a_count_that_was_given_up)
{
        uint64_t a = alloc_locked();
        struct spm_actions recount, actions;

        make_busy();
        cr_assert_eq(spm_context_recount(bench.model, bench.context, &recount), SPM_OK);
        cr_assert_eq(spm_context_blur(bench.model, bench.context, &actions), SPM_OK);
        bench_do(&recount, NULL);
        cr_assert_eq(spm_stamp_done(bench.model, bench.stamp, &actions), SPM_OK);
        cr_assert(free_at_hand(a));
        cr_expect_eq(alloc_at_hand(), 0);
        complete_all();
        cr_expect_eq(alloc_at_hand(), a);
        cr_assert(free_at_hand(a));
        cr_expect_eq(alloc_at_hand(), 0, "until it is counted anew");
}
