/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launch -- all uses of one submission, checked together and recorded together (B34)
 */

#include "bench.h"
#include "uses.h"

static struct spm_launch *launch;
static const struct spm_use_wait *waits;
static unsigned int wait_count;

static void set_up(void)
{
        uses_set_up();
        cr_assert_eq(spm_launch_new(bench.model, bench.t, true, &launch), SPM_OK);
}

static void tear_down(void)
{
        spm_launch_free(launch);
        bench_tear_down();
}

TestSuite(launch, .init = set_up, .fini = tear_down);

static enum spm_status preflight(void)
{
        return spm_launch_preflight(launch, &waits, &wait_count);
}

static void add(struct spm_block_id id, enum spm_use_access access)
{
        cr_assert_eq(spm_launch_add(launch, id, access), SPM_OK);
}

static struct spm_block_id untracked(void)
{
        struct spm_allocation allocation;

        cr_assert_eq(bench_try(bench.async, bench.s, MIB, true, &allocation), SPM_OK);
        return spm_block_id(&allocation);
}

Test(launch, all_its_uses_are_recorded_when_it_was_submitted)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);
        struct spm_block_id b = uses_alloc(bench.s, MIB);

        add(a, SPM_USE_READ);
        add(b, SPM_USE_WRITE);
        cr_assert_eq(preflight(), SPM_OK);
        cr_expect_eq(uses_count(a), 1, "not yet");
        cr_expect_eq(wait_count, 1, "both were allocated on s");
        cr_expect_eq(waits[0].stream, bench.s);
        cr_assert_eq(spm_launch_commit(launch), SPM_OK);
        cr_expect_eq(uses_count(a), 2);
        cr_expect_eq(uses_count(b), 1);
        cr_expect_eq(uses_waits(a, SPM_USE_FREE, bench.s), 1);
        cr_expect_eq(uses_waits(b, SPM_USE_READ, bench.s), 1);
}

/* B6: the strongest access, and each block once. */
Test(launch, what_is_told_twice_is_used_once_with_both_accesses)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);

        cr_assert_eq(spm_use_record(bench.model, a, SPM_USE_READ, uses.more[0]), SPM_OK);
        add(a, SPM_USE_READ);
        add(a, SPM_USE_WRITE);
        add(a, SPM_USE_READ);
        cr_assert_eq(preflight(), SPM_OK);
        cr_expect_eq(wait_count, 2, "as a write: for the allocation and the read");
        cr_assert_eq(spm_launch_commit(launch), SPM_OK);
        cr_expect_eq(uses_count(a), 1);
}

Test(launch, of_a_stream_it_waits_for_the_last_point)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);
        struct spm_block_id b = uses_alloc(bench.s, MIB);
        struct spm_use_wait last;
        unsigned int count;

        add(b, SPM_USE_READ);
        add(a, SPM_USE_READ);
        cr_assert_eq(spm_use_waits(bench.model, b, SPM_USE_READ, bench.t, &last, 1, &count),
                     SPM_OK);
        cr_assert_eq(preflight(), SPM_OK);
        cr_expect_eq(wait_count, 1);
        cr_expect_eq(waits[0].position, last.position);
}

Test(launch, an_abandoned_one_has_used_nothing)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);

        add(a, SPM_USE_WRITE);
        cr_assert_eq(preflight(), SPM_OK);
        spm_launch_free(launch);
        launch = NULL;
        cr_expect_eq(uses_count(a), 1);
        cr_expect_eq(uses_waits(a, SPM_USE_FREE, bench.s), 0);
        cr_expect_eq(uses_waits(a, SPM_USE_READ, bench.t), 1);
}

Test(launch, its_steps_have_an_order)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);

        add(a, SPM_USE_READ);
        cr_expect_eq(spm_launch_commit(launch), SPM_E_MISUSE, "without a preflight");
        cr_assert_eq(preflight(), SPM_OK);
        cr_expect_eq(spm_launch_add(launch, a, SPM_USE_WRITE), SPM_E_MISUSE, "after it");
        cr_expect_eq(preflight(), SPM_E_MISUSE, "twice");
        cr_assert_eq(spm_launch_commit(launch), SPM_OK);
        cr_expect_eq(spm_launch_commit(launch), SPM_E_MISUSE, "twice");
        cr_expect_eq(uses_count(a), 2, "a read, not a write");
}

Test(launch, a_strict_one_is_refused_what_is_not_tracked)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);
        struct spm_block_id b = untracked();

        add(a, SPM_USE_WRITE);
        add(b, SPM_USE_READ);
        cr_expect_eq(preflight(), SPM_E_MISUSE);
        cr_expect_eq(spm_launch_commit(launch), SPM_E_MISUSE);
        cr_expect_eq(uses_count(a), 1);
}

Test(launch, one_that_is_refused_leaves_nothing_behind)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);
        struct spm_block_id b = untracked();
        uint64_t bytes = bench_stats(uses.pool).host_bytes;

        spm_launch_free(launch);
        launch = NULL;
        for (int i = 0; i < USES_STREAMS; i++) {
                struct spm_launch *other;

                cr_assert_eq(spm_launch_new(bench.model, uses.more[i], true, &other), SPM_OK);
                cr_assert_eq(spm_launch_add(other, a, SPM_USE_READ), SPM_OK);
                cr_assert_eq(spm_launch_add(other, b, SPM_USE_READ), SPM_OK);
                cr_assert_eq(spm_launch_preflight(other, &waits, &wait_count), SPM_E_MISUSE);
                spm_launch_free(other);
        }
        cr_expect_lt(bench_stats(uses.pool).host_bytes, bytes, "the one of the fixture is gone");
}

Test(launch, a_permissive_one_leaves_that_out_and_counts_it)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);
        struct spm_block_id b = untracked();
        struct spm_block_id nowhere = {.address = 512};

        spm_launch_free(launch);
        cr_assert_eq(spm_launch_new(bench.model, bench.t, false, &launch), SPM_OK);
        add(b, SPM_USE_READ);
        add(nowhere, SPM_USE_READ);
        add(a, SPM_USE_READ);
        cr_assert_eq(preflight(), SPM_OK);
        cr_expect_eq(spm_launch_untracked(launch), 2);
        cr_assert_eq(spm_launch_commit(launch), SPM_OK);
        cr_expect_eq(uses_count(a), 2);
}

Test(launch, none_may_use_what_was_freed)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);
        struct spm_block_id b = uses_alloc(bench.s, MIB);

        bench_free(b.address, bench.s);
        spm_launch_free(launch);
        cr_assert_eq(spm_launch_new(bench.model, bench.t, false, &launch), SPM_OK);
        add(a, SPM_USE_READ);
        add(b, SPM_USE_READ);
        cr_expect_eq(preflight(), SPM_E_USE_AFTER_FREE, "permissive or not");
        cr_expect_eq(uses_count(a), 1);
}

/* The work is in the queue, and what it uses has to be known. */
Test(launch, what_is_freed_since_the_preflight_is_told_and_the_rest_recorded)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);
        struct spm_block_id b = uses_alloc(bench.s, MIB);

        add(b, SPM_USE_READ);
        add(a, SPM_USE_READ);
        cr_assert_eq(preflight(), SPM_OK);
        bench_free(b.address, bench.s);
        cr_expect_eq(spm_launch_commit(launch), SPM_E_USE_AFTER_FREE);
        cr_expect_eq(uses_count(a), 2);
}

Test(launch, many_blocks_are_one_operation)
{
        struct spm_block_id ids[50];
        struct spm_use_wait first;
        struct spm_use_wait other;
        unsigned int count;

        for (int i = 0; i < 50; i++) {
                ids[i] = uses_alloc(uses.more[i % USES_STREAMS], 4 * KIB);
                add(ids[i], SPM_USE_READ_WRITE);
        }
        cr_assert_eq(preflight(), SPM_OK);
        cr_expect_eq(wait_count, USES_STREAMS);
        cr_assert_eq(spm_launch_commit(launch), SPM_OK);
        cr_assert_eq(spm_use_waits(bench.model, ids[0], SPM_USE_READ, bench.s, &first, 1, &count),
                     SPM_OK);
        cr_assert_eq(spm_use_waits(bench.model, ids[49], SPM_USE_READ, bench.s, &other, 1, &count),
                     SPM_OK);
        cr_expect_eq(first.stream, bench.t);
        cr_expect_eq(first.position, other.position);
}

Test(launch, bad_arguments_are_named)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);
        struct spm_launch *other;

        cr_expect_eq(spm_launch_new(bench.model, 999, true, &other), SPM_E_UNKNOWN);
        cr_expect_eq(spm_launch_add(launch, a, SPM_USE_FREE), SPM_E_INVALID_VALUE);
        cr_expect_eq(spm_launch_add(launch, a, 0), SPM_E_INVALID_VALUE);
        spm_launch_free(NULL);
}

Test(launch, a_stream_that_has_ended_launches_nothing)
{
        struct spm_block_id a = uses_alloc(bench.s, MIB);
        struct spm_actions actions;

        add(a, SPM_USE_READ);
        cr_assert_eq(preflight(), SPM_OK);
        cr_assert_eq(spm_stream_retire(bench.model, bench.t, &actions), SPM_OK);
        bench_do(&actions, NULL);
        cr_expect_eq(spm_launch_commit(launch), SPM_E_UNKNOWN);
        cr_expect_eq(uses_count(a), 1);
}
