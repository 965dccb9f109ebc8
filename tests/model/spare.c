/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spare -- what a stream has freed and may have again, when its pool would grow
 *
 * It grows beside that, so that little is missing. And a pool that would hold
 * more than it may waits for what was freed to the sole stream: it could not move.
 */

#include <string.h>

#include "bench.h"

#define RANGE ((uint64_t)1 << 45)
#define LARGE (40 * MIB)

static void watch(void)
{
        bench_set_up();
        bench_watch();
}

TestSuite(spare, .init = watch, .fini = bench_tear_down);

static spm_pool pool_with(enum spm_pool_kind kind, enum spm_growth growth, size_t pending_limit)
{
        struct spm_pool_config config = {
                .kind = kind,
                .context = kind == SPM_POOL_SYNC ? bench.context : 0,
                .range_base = RANGE,
                .range_size = (uint64_t)1 << 40,
                .growth = growth,
                .pending_limit = pending_limit,
                .release_threshold = SIZE_MAX,
        };

        return bench_pool(config);
}

static spm_pool pool_of(enum spm_pool_kind kind)
{
        return pool_with(kind, SPM_GROWTH_BALANCED, SIZE_MAX);
}

static void expect_no_wait(void)
{
        cr_expect(!strpbrk(bench.log, "bHhS"), "%s", bench.log);
}

/* Every second one of @count blocks is ready, but the one that is returned, which is live. */
static uint64_t riddle(spm_pool pool, size_t size, int count)
{
        uint64_t at[100];
        int i;

        for (i = 0; i < count; i++)
                at[i] = bench_alloc(pool, 0, size);
        bench_submit(bench.s);
        for (i = 0; i + 2 < count; i += 2)
                bench_free(at[i], 0);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
        bench_submit(bench.s);
        return at[i];
}

/* growing beside it */

Test(spare, a_synchronous_pool_grows_beside_what_was_freed)
{
        spm_pool pool = pool_of(SPM_POOL_SYNC);
        uint64_t freed;

        bench_alloc(pool, 0, LARGE);
        freed = bench_alloc(pool, 0, LARGE);
        bench_submit(bench.s);
        bench_free(freed, 0);
        bench_submit(bench.s);
        cr_assert_str_eq(bench.log, "R", "the device is behind");
        cr_expect_eq(bench_alloc(pool, 0, LARGE + 4 * MIB), freed);
        cr_expect_eq(bench_seen(SPM_ACT_GROW), 4 * MIB);
        expect_no_wait();
}

Test(spare, so_does_an_asynchronous_one_for_the_stream_that_freed)
{
        spm_pool pool = pool_of(SPM_POOL_ASYNC);
        uint64_t freed = bench_alloc(pool, bench.s, LARGE);

        bench_free(freed, bench.s);
        cr_expect_eq(bench_alloc(pool, bench.s, LARGE + 4 * MIB), freed);
        cr_expect_eq(bench_seen(SPM_ACT_GROW), 4 * MIB);
}

Test(spare, but_not_for_another_stream)
{
        spm_pool pool = pool_of(SPM_POOL_ASYNC);
        uint64_t freed = bench_alloc(pool, bench.s, LARGE);

        bench_free(freed, bench.s);
        cr_expect_neq(bench_alloc(pool, bench.t, LARGE + 4 * MIB), freed);
        cr_expect_eq(bench_seen(SPM_ACT_GROW), LARGE + 4 * MIB);
}

/* 20 MiB that are live, so that what is beside them stays apart, and @size more. */
static uint64_t behind_a_live_one(spm_pool pool, size_t size)
{
        bench_alloc(pool, bench.s, 20 * MIB);
        return bench_alloc(pool, bench.s, size);
}

/* Of what was freed the largest are looked at, and what is beside these holes is not among them. */
Test(spare, what_is_not_found_beside_it_is_had_elsewhere)
{
        spm_pool pool = pool_of(SPM_POOL_ASYNC);
        struct spm_actions actions;
        uint64_t before[4];
        uint64_t gone[4];
        uint64_t large[10];
        int i;

        for (i = 0; i < 4; i++) {
                before[i] = behind_a_live_one(pool, 20 * MIB);
                gone[i] = bench_alloc(pool, bench.s, 40 * MIB);
        }
        for (i = 0; i < 10; i++)
                large[i] = behind_a_live_one(pool, LARGE);
        behind_a_live_one(pool, 2 * MIB);
        for (i = 0; i < 4; i++)
                bench_free(gone[i], bench.s);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
        cr_assert_eq(spm_trim(bench.model, pool, 0, NULL, &actions), SPM_OK);
        for (i = 0; i < 4; i++)
                bench_free(before[i], bench.s);
        for (i = 0; i < 10; i++)
                bench_free(large[i], bench.s);

        bench_alloc(pool, bench.s, 58 * MIB);
        cr_expect_leq(bench_seen(SPM_ACT_GROW), (38 + 58) * MIB, "once beside it, and once not");
}

/* waiting for it */

/* Two blocks of LARGE, of which the first one is freed after @rounds launches that have a stamp
 * each. */
static spm_pool freed_after(unsigned int rounds)
{
        spm_pool pool = pool_of(SPM_POOL_SYNC);
        uint64_t large = bench_alloc(pool, 0, LARGE);
        uint64_t block;
        unsigned int i;

        bench_alloc(pool, 0, LARGE);
        bench_submit(bench.s);
        for (i = 0; i < rounds; i++) {
                block = bench_alloc(pool, 0, 2 * MIB);
                bench_submit(bench.s);
                bench_free(block, 0);
                bench_submit(bench.s);
                cr_assert_str_eq(bench.log, "R");
        }
        bench_free(large, 0);
        bench_submit(bench.s);
        return pool;
}

/* 80 MiB were in use, and 100 will be: 1.6 and 16 more may be held, and 60 are missing behind 80.
 */
Test(spare, before_a_pool_passes_what_it_may_hold_it_waits)
{
        spm_pool pool = freed_after(0);

        bench_alloc(pool, 0, 60 * MIB);
        cr_expect_not_null(strstr(bench.log, "Pb"), "%s", bench.log);
        cr_expect_leq(bench_stats(pool).reserved_high, 118 * MIB);
        cr_expect_gt(bench_stats(pool).moves, 0, "what has become ready");
}

/* While the device keeps up nothing is freed to one stream, and a batch has one stamp. Then it does
 * not any more; @live is in use, and @size was freed. */
static spm_pool pool_keeping_up(size_t size, size_t live)
{
        spm_pool pool = pool_of(SPM_POOL_SYNC);
        uint64_t a = bench_alloc(pool, 0, size);
        int i;

        bench_alloc(pool, 0, live);
        bench_submit(bench.s);
        bench.device_done = true;
        for (i = 0; i < 100; i++) {
                bench_free(a, 0);
                bench_submit(bench.s);
                a = bench_alloc(pool, 0, size);
        }
        bench.device_done = false;
        bench_free(a, 0);
        bench_submit(bench.s);
        cr_assert_str_eq(bench.log, "", "R2");
        return pool;
}

Test(spare, it_waits_for_what_waits_for_the_whole_context_as_well)
{
        spm_pool pool = pool_keeping_up(20 * MIB, LARGE);

        bench_alloc(pool, 0, LARGE);
        cr_expect_not_null(strstr(bench.log, "Pb"), "%s", bench.log);
        cr_expect_leq(bench_stats(pool).reserved_high, (80 + 1 + 16) * MIB);
}

/* What waits for all was freed first, then what is the stream's own. */
Test(spare, it_waits_for_the_oldest_first)
{
        spm_pool pool = pool_keeping_up(12 * MIB, LARGE);
        uint64_t b = bench_alloc(pool, 0, 16 * MIB);

        bench_alloc(pool, 0, 2 * MIB);
        bench_free(b, 0);
        bench_submit(bench.s);
        cr_assert_str_eq(bench.log, "R");
        bench_alloc(pool, 0, 100 * MIB);
        cr_assert_eq(bench.waited_count, 2, "%s", bench.log);
        cr_expect_lt(bench.waited[0], bench.waited[1]);
}

/* A batch that was not full has its stamp from a question, which is behind what came after the
 * frees.
 */
Test(spare, it_does_not_wait_for_a_kernel_that_came_after_the_free)
{
        spm_pool pool = pool_keeping_up(31 * MIB, 640 * MIB);

        bench_alloc(pool, 0, 60 * MIB);
        cr_expect_not_null(strchr(bench.log, 'P'), "%s", bench.log);
        expect_no_wait();
}

Test(spare, within_what_it_may_hold_it_does_not)
{
        spm_pool pool = pool_of(SPM_POOL_SYNC);
        uint64_t a = bench_alloc(pool, 0, 4 * MIB);

        bench_alloc(pool, 0, LARGE);
        bench_submit(bench.s);
        bench_free(a, 0);
        bench_submit(bench.s);
        bench_alloc(pool, 0, 12 * MIB);
        expect_no_wait();
        cr_expect_eq(bench_seen(SPM_ACT_GROW), 12 * MIB);
}

/* 40 MiB are ready in two pieces, and 20 are freed: it passes what it may hold, and moves what is
 * ready. */
Test(spare, while_several_streams_have_work_it_does_not)
{
        spm_pool pool = pool_of(SPM_POOL_SYNC);
        uint64_t last = riddle(pool, 20 * MIB, 6);

        bench_submit(bench.t);
        bench_free(last, 0);
        cr_assert_str_eq(bench.log, "R", "a batch");
        bench_alloc(pool, 0, 60 * MIB);
        cr_expect_gt(bench_stats(pool).moves, 0);
        expect_no_wait();
}

Test(spare, who_may_not_wait_does_not)
{
        struct spm_allocation allocation;
        spm_pool pool = freed_after(0);

        cr_expect_eq(bench_try(pool, 0, 60 * MIB, false, &allocation), SPM_OK);
        expect_no_wait();
}

/* The driver would not have waited for that. */
Test(spare, it_does_not_wait_for_what_was_freed_in_the_order_of_a_stream)
{
        spm_pool pool = pool_of(SPM_POOL_SYNC);
        uint64_t a = bench_alloc(pool, 0, LARGE);

        bench_alloc(pool, 0, LARGE);
        bench_submit(bench.s);
        bench_free(a, bench.s);
        bench_submit(bench.s);
        bench_alloc(pool, 0, 60 * MIB);
        expect_no_wait();
}

Test(spare, a_device_that_is_a_little_behind_is_waited_for)
{
        spm_pool pool = freed_after(20);

        bench_alloc(pool, 0, 60 * MIB);
        cr_expect_not_null(strchr(bench.log, 'b'), "%s", bench.log);
}

Test(spare, a_device_that_is_far_behind_is_not)
{
        spm_pool pool = freed_after(40);

        bench_alloc(pool, 0, 60 * MIB);
        expect_no_wait();
}

/* Nobody has asked about them for long. */
Test(spare, whether_it_is_far_behind_is_asked)
{
        spm_pool pool = freed_after(40);

        bench.done_below = bench.stamp - 10;
        bench_alloc(pool, 0, 60 * MIB);
        cr_expect_not_null(strchr(bench.log, 'b'), "%s", bench.log);
}

/* while others go on */

/* Another thread: takes another block, gives the one it had back, and launches on both. */
static void go_on(spm_pool pool, uint64_t *at, spm_stream second)
{
        struct spm_allocation next;

        cr_assert_eq(bench_try(pool, 0, 8 * MIB, false, &next), SPM_OK);
        bench_submit(bench.s);
        bench_submit(second);
        bench_free(*at, 0);
        bench_submit(bench.s);
        *at = next.address;
}

/* Of 216 MiB that are backed 98 are ready, in pieces of 2, and 8 pending. */
static void expect_few_steps(spm_pool pool, spm_stream second)
{
        struct spm_request request = {.pool = pool, .size = 32 * MIB, .may_wait = true};
        struct spm_allocation allocation;
        struct spm_actions actions;
        enum spm_status status;
        unsigned int steps = 0;
        unsigned int waits = 0;
        uint64_t other;

        riddle(pool, 2 * MIB, 100);
        other = bench_alloc(pool, 0, 8 * MIB);
        go_on(pool, &other, second);
        do {
                bench.log[0] = '\0';
                status = spm_alloc(bench.model, &request, &allocation, &actions);
                bench_do(&actions, &request);
                waits += strpbrk(bench.log, "bHh") != NULL;
                if (status == SPM_AGAIN)
                        go_on(pool, &other, second);
        } while (status == SPM_AGAIN && ++steps < 100);
        cr_expect_eq(status, SPM_OK);
        cr_expect_lt(steps, 100u);
        cr_expect(waits, "it waits for what was there");
}

Test(spare, it_does_not_wait_for_what_others_free_meanwhile)
{
        expect_few_steps(pool_of(SPM_POOL_SYNC), bench.s);
}

Test(spare, nor_does_a_pool_of_which_too_much_is_pending)
{
        expect_few_steps(pool_with(SPM_POOL_SYNC, SPM_GROWTH_SPEED, MIB), bench.t);
}

/* 4 MiB are pending, and 47 too many would be held. */
Test(spare, it_does_not_wait_for_what_is_far_too_little)
{
        spm_pool pool = pool_of(SPM_POOL_SYNC);

        bench_free(riddle(pool, 4 * MIB, 42), 0);
        bench_submit(bench.s);
        bench_alloc(pool, 0, 66 * MIB);
        expect_no_wait();
        cr_expect_gt(bench_stats(pool).moves, 0);
}
