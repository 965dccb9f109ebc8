/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Magazine of a legacy stream -- as any other, but only where nobody waits for that stream (H6)
 *
 * In a context of its own, which has a legacy stream and one that does not block.
 */

#include "bench.h"

#define BASE ((uint64_t)1 << 45)
#define GIB  ((size_t)1 << 30)
#define SIZE (100 * KIB) /* no slot of a slab: nothing is at hand but what was freed */

static spm_context context;
static spm_stream legacy;
static spm_pool pool;
static struct spm_magazine *magazine;

static spm_stream add(enum spm_stream_kind kind)
{
        spm_stream stream;

        cr_assert_eq(spm_stream_add(bench.model, context, kind, &stream), SPM_OK);
        return stream;
}

static void set_up(void)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC, .range_base = BASE, .range_size = 64 * GIB};

        bench_set_up();
        cr_assert_eq(spm_context_add(bench.model, 0, &context), SPM_OK);
        legacy = add(SPM_STREAM_LEGACY);
        add(SPM_STREAM_NON_BLOCKING);
        pool = bench_pool(config);
        cr_assert_eq(spm_magazine_new(bench.model, pool, legacy, &magazine), SPM_OK);
}

static void tear_down(void)
{
        spm_magazine_end(bench.model, magazine);
        bench_tear_down();
}

TestSuite(magazine_legacy, .init = set_up, .fini = tear_down);

/* With the lock. */
static uint64_t alloc_locked(void)
{
        return bench_alloc_filling(pool, legacy, SIZE, magazine).address;
}

static bool has_at_hand(void)
{
        struct spm_allocation allocation;

        return spm_magazine_alloc(magazine, SIZE, 0, &allocation);
}

static bool free_at_hand(uint64_t address)
{
        return spm_magazine_free(magazine, address, 0, NULL);
}

static void watch(bool done)
{
        struct spm_actions actions;

        bench.device_done = done;
        cr_assert_eq(spm_context_watch(bench.model, context, true, &actions), SPM_OK);
        bench_do(&actions, NULL);
        bench.device_done = false;
}

/* Return: the block that is at hand; an earlier one is live, so that no peak is in the way. */
static uint64_t put_at_hand(void)
{
        uint64_t a = alloc_locked(), b = alloc_locked();

        cr_assert(free_at_hand(a));
        cr_assert(free_at_hand(b));
        cr_assert(has_at_hand());
        return a;
}

/* It is the pool's again, and nothing that comes later is at hand. */
static void expect_recalled(uint64_t block)
{
        cr_expect_not(has_at_hand());
        bench_check();
        cr_expect_eq(alloc_locked(), block);
        cr_expect_not(free_at_hand(block));
        cr_expect_not(has_at_hand());
}

Test(magazine_legacy, it_serves_beside_streams_that_do_not_block)
{
        uint64_t a = alloc_locked();
        struct spm_allocation again;

        cr_assert(free_at_hand(a));
        cr_assert(spm_magazine_alloc(magazine, SIZE, 0, &again));
        cr_expect_eq(again.address, a);
        cr_expect_not(again.unseen);
}

Test(magazine_legacy, it_serves_nothing_beside_a_blocking_stream)
{
        uint64_t block = put_at_hand();

        add(SPM_STREAM_BLOCKING);
        expect_recalled(block);
}

Test(magazine_legacy, nor_beside_a_stream_of_a_thread)
{
        uint64_t block = put_at_hand();

        add(SPM_STREAM_PER_THREAD);
        expect_recalled(block);
}

Test(magazine_legacy, it_serves_again_when_the_blocking_stream_is_gone)
{
        spm_stream blocking = add(SPM_STREAM_BLOCKING);
        struct spm_scope all = {SPM_SCOPE_CONTEXT, context};
        struct spm_actions actions;
        struct spm_ticket ticket;

        cr_assert_not(free_at_hand(alloc_locked()));
        cr_assert_eq(spm_stream_retire(bench.model, blocking, &actions), SPM_OK);
        bench_do(&actions, NULL);
        cr_assert_eq(spm_sync_begin(bench.model, all, &ticket), SPM_OK);
        spm_sync_end(bench.model, &ticket, SPM_SYNC_WAIT, true, &actions);
        bench_do(&actions, NULL);
        cr_expect(free_at_hand(alloc_locked()));
}

/* Nothing shows when the work of a stream that was destroyed is done but a new count. */
Test(magazine_legacy, it_serves_nothing_while_a_stream_that_is_gone_may_have_work)
{
        struct spm_actions actions;
        spm_stream blocking;

        watch(true);
        cr_assert(free_at_hand(alloc_locked()));
        blocking = add(SPM_STREAM_BLOCKING);
        bench_submit(blocking);
        cr_assert_eq(spm_stream_retire(bench.model, blocking, &actions), SPM_OK);
        bench_do(&actions, NULL);
        cr_expect_not(free_at_hand(alloc_locked()));
        bench.device_done = true;
        cr_assert_eq(spm_context_recount(bench.model, context, &actions), SPM_OK);
        bench_do(&actions, NULL);
        bench_sync(SPM_SCOPE_CONTEXT, context, SPM_SYNC_WAIT);
        cr_expect(free_at_hand(alloc_locked()));
}

Test(magazine_legacy, it_serves_nothing_where_streams_may_be_hidden)
{
        uint64_t block = put_at_hand();

        cr_assert_eq(spm_context_hide(bench.model, context), SPM_OK);
        expect_recalled(block);
}

Test(magazine_legacy, it_serves_nothing_until_a_count_of_streams_is_relied_on)
{
        uint64_t block = put_at_hand();

        watch(false);
        expect_recalled(block);
        watch(true);
        cr_expect(free_at_hand(alloc_locked()));
}

Test(magazine_legacy, it_serves_nothing_when_submissions_are_not_announced_any_more)
{
        struct spm_actions actions;
        uint64_t block;

        watch(true);
        block = put_at_hand();
        cr_assert_eq(spm_context_blur(bench.model, context, &actions), SPM_OK);
        bench_do(&actions, NULL);
        expect_recalled(block);
}
