/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Block -- allocations, frees and questions about them
 */

#include "bench.h"

TestSuite(block, .init = bench_set_up, .fini = bench_tear_down);

static enum spm_status free_it(uint64_t address, uint64_t generation)
{
        struct spm_actions actions;

        return spm_free(bench.model, address, generation, SPM_FREE_SYNC, 0, NULL, &actions);
}

Test(block, a_bad_free_changes_nothing_and_says_what_it_is)
{
        struct spm_allocation allocation;
        struct spm_actions actions;
        uint64_t freed = bench_alloc(bench.async, bench.s, 1000);
        uint64_t hash;

        bench_try(bench.async, bench.s, 2000, false, &allocation);
        bench_free(freed, bench.s);
        hash = spm_hash(bench.model);
        cr_expect_eq(free_it(freed, 0), SPM_E_DOUBLE_FREE, "A32");
        cr_expect_eq(free_it(0x1234, 0), SPM_E_FOREIGN, "A33");
        cr_expect_eq(free_it(allocation.address + 512, 0), SPM_E_INTERIOR);
        cr_expect_eq(free_it(allocation.address, allocation.generation + 1), SPM_E_STALE, "B3");
        cr_expect_eq(
                spm_free(bench.model, allocation.address, 0, SPM_FREE_ASYNC, 99, NULL, &actions),
                SPM_E_UNKNOWN);
        cr_expect_eq(spm_free(bench.model, allocation.address, 0,
                              (enum spm_free_kind)(SPM_FREE_ASYNC + 1), bench.s, NULL, &actions),
                     SPM_E_INVALID_VALUE);
        cr_expect_eq(actions.count, 0);
        cr_expect_eq(spm_hash(bench.model), hash);
        cr_expect_eq(bench_stats(bench.async).frees, 1);
}

Test(block, an_old_generation_is_stale_when_the_address_was_served_again)
{
        struct spm_allocation first;
        struct spm_allocation second;

        bench_try(bench.async, bench.s, 1000, false, &first);
        bench_free(first.address, bench.s);
        bench_try(bench.async, bench.s, 1000, false, &second);
        cr_assert_eq(first.address, second.address);
        cr_expect_neq(first.buffer_id, second.buffer_id, "Q5");
        cr_expect(second.reused);
        cr_expect_not(first.reused);
        cr_expect_eq(free_it(first.address, first.generation), SPM_E_STALE);
        cr_expect_eq(free_it(second.address, second.generation), SPM_OK);
}

Test(block, is_found_from_inside_with_all_that_is_known)
{
        struct spm_allocation allocation;
        uint64_t a = bench_alloc(bench.async, bench.s, 1000);

        cr_assert_eq(spm_set_user(bench.model, a, 77), SPM_OK);
        cr_assert_eq(spm_find(bench.model, a + 999, &allocation), SPM_OK);
        cr_expect_eq(allocation.address, a);
        cr_expect_eq(allocation.size, 1000, "Q1: as asked for");
        cr_expect_eq(allocation.reserved, 1024);
        cr_expect_eq(allocation.stream, bench.s);
        cr_expect_eq(allocation.pool, bench.async);
        cr_expect_eq(allocation.user, 77);
        cr_expect_eq(spm_find(bench.model, a + 1024, &allocation), SPM_E_DOUBLE_FREE);
        cr_expect_eq(spm_find(bench.model, 0x10, &allocation), SPM_E_FOREIGN);
        cr_expect_eq(spm_set_user(bench.model, 0x10, 1), SPM_E_FOREIGN);
        cr_expect_eq(spm_export(bench.model, 0x10), SPM_E_FOREIGN);
}

Test(block, is_ready_when_its_stream_has_passed_the_allocation)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 512);
        uint64_t b = bench_alloc(bench.sync, 0, 512);

        cr_expect_not(spm_is_ready(bench.model, a), "A14");
        cr_expect(spm_is_ready(bench.model, b), "F1");
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
        cr_expect(spm_is_ready(bench.model, a));
        cr_expect_not(spm_is_ready(bench.model, 0x10));
}

Test(block, has_as_much_behind_it_as_was_asked_for_and_says_nothing_of_it)
{
        struct spm_request request = {
                .pool = bench.async, .stream = bench.s, .size = 1000, .extra = 512};
        struct spm_allocation block;
        struct spm_actions actions;

        bench_give(bench.async, 64 * MIB);
        cr_assert_eq(spm_alloc(bench.model, &request, &block, &actions), SPM_OK);
        cr_expect_eq(block.size, 1000);
        cr_expect_geq(block.reserved, 1512);
        cr_expect_eq(bench_stats(bench.async).used_current, 1000);
        request = (struct spm_request){
                .pool = bench.async, .stream = bench.s, .size = SIZE_MAX - 4096, .extra = 8192};
        cr_expect_eq(spm_alloc(bench.model, &request, &block, &actions), SPM_E_INVALID_VALUE);
        request = (struct spm_request){
                .pool = bench.async, .stream = bench.s, .size = SIZE_MAX - 4096, .extra = 4096};
        cr_expect_eq(spm_alloc(bench.model, &request, &block, &actions), SPM_E_INVALID_VALUE);
}

/* The driver's own free waits for nothing (A5), and the program knows nothing of that work. */
Test(block, waits_for_what_the_caller_submits_on_its_stream_however_it_is_freed)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 4096);
        uint64_t b;

        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        cr_assert_eq(spm_touch(bench.model, a), SPM_OK);
        cr_expect_not(spm_is_ready(bench.model, a));
        bench_free(a, 0);
        b = bench_alloc(bench.async, bench.t, 4096);
        cr_expect_neq(a, b);
        cr_expect_eq(bench_alloc(bench.async, bench.s, 4096), a, "in order with that work");
        cr_expect_eq(spm_touch(bench.model, b + 512), SPM_E_FOREIGN);
        cr_expect_eq(spm_touch(bench.model, bench_alloc(bench.sync, 0, 512)), SPM_E_FOREIGN);
}

Test(block, that_was_touched_is_not_anothers_by_a_free_on_another_stream)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 4096);

        cr_assert_eq(spm_touch(bench.model, a), SPM_OK);
        bench_free(a, bench.t);
        cr_expect_neq(bench_alloc(bench.async, bench.t, 4096), a);
}

Test(block, is_ready_on_a_stream_by_an_event_of_its_owner)
{
        spm_event before = bench_record(bench.s);
        uint64_t a = bench_alloc(bench.async, bench.s, 512);
        spm_event after = bench_record(bench.s);
        spm_event foreign = bench_record(bench.t);

        cr_expect(spm_is_ready_on(bench.model, a, bench.s, 0), "A16: its own stream");
        cr_expect_not(spm_is_ready_on(bench.model, a, bench.t, 0));
        cr_expect_not(spm_is_ready_on(bench.model, a, bench.t, before));
        cr_expect(spm_is_ready_on(bench.model, a, bench.t, after));
        cr_expect_not(spm_is_ready_on(bench.model, a, bench.t, foreign), "A17");
        bench_wait(bench.t, after);
        foreign = bench_record(bench.t);
        cr_expect(spm_is_ready_on(bench.model, a, bench.blocking, foreign), "transitively");
}

Test(block, an_undone_allocation_is_not_counted_and_waits)
{
        struct spm_request request = {.pool = bench.async, .stream = bench.t, .size = 32 * MIB};
        uint64_t a = bench_alloc(bench.async, bench.s, 32 * MIB);
        struct spm_allocation allocation;
        struct spm_actions actions;

        bench_free(a, bench.s);
        bench_wait(bench.t, bench_record(bench.s));
        cr_assert_eq(spm_reset_peaks(bench.model, bench.async), SPM_OK);
        cr_assert_eq(spm_alloc(bench.model, &request, &allocation, &actions), SPM_OK);
        cr_assert_eq(allocation.address, a);
        cr_assert_eq(spm_alloc_undo(bench.model, a, &actions), SPM_OK);
        cr_expect_eq(bench_stats(bench.async).used_high, 32 * MIB, "a mark stays raised");
        cr_expect_eq(bench_stats(bench.async).live_blocks_high, 1);
        cr_expect_eq(bench_stats(bench.async).allocs, 1);
        cr_expect_eq(bench_stats(bench.async).hits, 0);
        cr_expect_eq(bench_stats(bench.async).undone, 1);
        cr_expect_eq(bench_stats(bench.async).used_current, 0);
        cr_expect_neq(bench_alloc(bench.async, bench.t, 32 * MIB), a, "the belt may be missing");
        cr_expect_eq(spm_alloc_undo(bench.model, a, &actions), SPM_E_DOUBLE_FREE);
}

Test(block, a_hit_comes_from_memory_that_was_freed_before)
{
        uint64_t a = bench_alloc(bench.async, bench.s, MIB);

        bench_alloc(bench.async, bench.s, MIB);
        cr_expect_eq(bench_stats(bench.async).hits, 0, "the rest of a segment is fresh");
        bench_free(a, bench.s);
        cr_expect_eq(bench_alloc(bench.async, bench.s, MIB), a);
        cr_expect_eq(bench_stats(bench.async).hits, 1);
}

static bool count(const struct spm_allocation *allocation, void *user)
{
        uint64_t *last = user;

        cr_expect_gt(allocation->address, *last, "in address order");
        *last = allocation->address;
        return true;
}

static bool only_one(const struct spm_allocation *allocation, void *user)
{
        (void)allocation;
        ++*(int *)user;
        return false;
}

Test(block, live_blocks_are_visited_in_order_until_told_to_stop)
{
        uint64_t last = 0;
        int seen = 0;

        bench_alloc(bench.async, bench.s, 512);
        bench_alloc(bench.sync, 0, 512);
        bench_alloc(bench.async, bench.s, 512);
        spm_each_live(bench.model, 0, count, &last);
        cr_expect_neq(last, 0);
        spm_each_live(bench.model, bench.sync, only_one, &seen);
        cr_expect_eq(seen, 1);
}

Test(block, pending_bytes_are_the_sum_over_streams)
{
        uint64_t s;
        uint64_t t;

        bench_free(bench_alloc(bench.async, bench.s, 1000), bench.s);
        bench_free(bench_alloc(bench.async, bench.t, 3000), bench.t);
        spm_pending_on(bench.model, bench.s, &s);
        spm_pending_on(bench.model, bench.t, &t);
        cr_expect_eq(s, 1024);
        cr_expect_eq(bench_stats(bench.async).pending_bytes, s + t);
        cr_expect_eq(spm_pending_on(bench.model, 99, &s), SPM_E_UNKNOWN);
}
