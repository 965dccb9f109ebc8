/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Account -- a pool under a budget
 *
 * The pool has all the memory that it wants; only the budget refuses.
 */

#include "bench.h"
#include "uses.h"

#include <string.h>

static struct spm_budget budget;
static struct spm_account account;
static struct spm_shortage shortage;
static unsigned int waits;
static bool wait_fails;

static bool wait_for(struct spm_scope what, void *user)
{
        (void)what;
        (void)user;
        waits++;
        return !wait_fails;
}

static void open_account(uint64_t limit)
{
        spm_budget_init(&budget, limit, NULL);
        account = (struct spm_account){.wait = wait_for};
        cr_assert_eq(spm_account_open(bench.model, &account, uses.pool, &budget), SPM_OK);
}

static void tear_down(void)
{
        bench_tear_down();
}

TestSuite(account, .init = uses_set_up, .fini = tear_down);

static uint64_t reserved(void)
{
        struct spm_budget_figures figures;

        spm_budget_look(&budget, &figures);
        cr_assert_leq(figures.reserved, figures.limit);
        cr_assert_eq(figures.remaining, figures.limit - figures.reserved);
        return figures.reserved;
}

static enum spm_status try_from(struct spm_reservation *reservation, spm_stream stream, size_t size,
                                struct spm_allocation *allocation)
{
        struct spm_account_request request = {
                .request = {.stream = stream, .size = size, .may_wait = true},
                .reservation = reservation,
        };
        struct spm_actions actions;
        enum spm_status status;
        unsigned int steps = 0;

        do {
                cr_assert_lt(steps++, 300u);
                status = spm_account_alloc(bench.model, &account, &request, allocation, &shortage,
                                           &actions);
                bench_do(&actions, &request.request);
        } while (status == SPM_AGAIN);
        cr_expect_eq(request.held, 0, "nothing is held by a request that has ended");
        return status;
}

static enum spm_status try_alloc(spm_stream stream, size_t size, struct spm_allocation *allocation)
{
        return try_from(NULL, stream, size, allocation);
}

static uint64_t alloc(spm_stream stream, size_t size)
{
        struct spm_allocation allocation;

        cr_assert_eq(try_alloc(stream, size, &allocation), SPM_OK);
        return allocation.address;
}

static enum spm_status refused(spm_stream stream, size_t size)
{
        struct spm_allocation allocation = {.address = 77};
        enum spm_status status = try_alloc(stream, size, &allocation);

        cr_expect_eq(allocation.address, 77, "nothing is written");
        return status;
}

static enum spm_status try_free(uint64_t address, spm_stream stream)
{
        struct spm_actions actions;
        enum spm_status status = spm_account_free(bench.model, &account, address, 0, SPM_FREE_ASYNC,
                                                  stream, NULL, &actions);

        bench_do(&actions, NULL);
        return status;
}

/* accounts */

Test(account, a_pool_may_have_exactly_the_limit)
{
        open_account(4 * MIB);
        (void)alloc(bench.s, 3 * MIB);
        cr_expect_eq(refused(bench.s, MIB + 1), SPM_E_OUT_OF_BUDGET);
        (void)alloc(bench.s, MIB);
        cr_expect_eq(reserved(), 4 * MIB);
        cr_expect_eq(refused(bench.s, 1), SPM_E_OUT_OF_BUDGET);
        cr_expect_eq(shortage.requested, 512);
        cr_expect_eq(shortage.current, 4 * MIB);
        cr_expect_eq(shortage.remaining, 0);
        cr_expect_eq(shortage.limit, 4 * MIB);
}

/* B36 */
Test(account, what_is_above_the_limit_is_refused_without_a_reap)
{
        open_account(MIB);
        cr_assert_eq(try_free(alloc(bench.s, MIB), bench.s), SPM_OK);
        cr_expect_eq(refused(bench.t, MIB + 1), SPM_E_OUT_OF_BUDGET);
        cr_expect_eq(account.reaps, 0);
        cr_expect_eq(waits, 0u);
        cr_expect_eq(shortage.requested, MIB + 512);
}

/* B37, B39 */
Test(account, freed_memory_is_charged_until_a_reap_which_is_made_once)
{
        open_account(MIB);
        cr_assert_eq(try_free(alloc(bench.s, MIB), bench.s), SPM_OK);
        cr_expect_eq(reserved(), MIB, "it is pending");
        (void)alloc(bench.t, MIB);
        cr_expect_eq(account.reaps, 1);
        cr_expect_eq(waits, 1u);
        cr_expect_eq(refused(bench.t, MIB), SPM_E_OUT_OF_BUDGET);
        cr_expect_eq(account.reaps, 2, "one for each request that is refused");
        cr_expect_eq(shortage.requested, MIB);
        cr_expect_eq(shortage.current, MIB);
}

/* B39 */
Test(account, a_stream_may_have_what_it_freed_without_one)
{
        open_account(MIB);
        for (int i = 0; i < 100; i++)
                cr_assert_eq(try_free(alloc(bench.s, MIB), bench.s), SPM_OK);
        cr_expect_eq(account.reaps, 0);
        cr_expect_eq(reserved(), MIB);
}

Test(account, a_reap_that_fails_refuses_and_the_next_one_may_not)
{
        open_account(MIB);
        cr_assert_eq(try_free(alloc(bench.s, MIB), bench.s), SPM_OK);
        wait_fails = true;
        cr_expect_eq(refused(bench.t, MIB), SPM_E_OUT_OF_BUDGET);
        cr_expect_eq(reserved(), MIB);
        wait_fails = false;
        (void)alloc(bench.t, MIB);
}

Test(account, nobody_waits_where_nobody_may)
{
        open_account(MIB);
        account.wait = NULL;
        cr_assert_eq(try_free(alloc(bench.s, MIB), bench.s), SPM_OK);
        cr_expect_eq(refused(bench.t, MIB), SPM_E_OUT_OF_BUDGET);
        cr_expect_eq(account.reaps, 0);
}

Test(account, what_the_program_has_waited_for_is_charged_no_more)
{
        open_account(MIB);
        cr_assert_eq(try_free(alloc(bench.s, MIB), bench.s), SPM_OK);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        spm_account_settle(bench.model, &account);
        cr_expect_eq(reserved(), 0);
        (void)alloc(bench.t, MIB);
        cr_expect_eq(account.reaps, 0);
}

/* B38 */
Test(account, an_allocation_that_fails_is_rolled_back)
{
        open_account(64 * MIB);
        (void)alloc(bench.s, MIB);
        bench.no_memory = true;
        cr_expect_eq(refused(bench.s, 48 * MIB), SPM_E_OUT_OF_MEMORY);
        cr_expect_eq(reserved(), MIB);
        cr_expect_eq(refused(999, MIB), SPM_E_UNKNOWN);
        cr_expect_eq(refused(bench.s, 0), SPM_E_INVALID_VALUE);
        cr_expect_eq(refused(bench.s, SIZE_MAX), SPM_E_INVALID_VALUE);
        cr_expect_eq(reserved(), MIB);
}

/* B49 */
Test(account, what_the_budget_refuses_is_not_asked_of_the_pool)
{
        struct spm_stats before;
        struct spm_stats after;

        open_account(MIB);
        before = bench_stats(uses.pool);
        bench.log[0] = '\0';
        cr_expect_eq(refused(bench.s, 2 * MIB), SPM_E_OUT_OF_BUDGET);
        after = bench_stats(uses.pool);
        cr_expect_arr_eq(&before, &after, sizeof(before));
        cr_expect_str_empty(bench.log);
}

/* B40 */
Test(account, a_free_that_is_refused_releases_nothing)
{
        uint64_t a;

        open_account(4 * MIB);
        a = alloc(bench.s, MIB);
        cr_expect_eq(try_free(512, bench.s), SPM_E_FOREIGN);
        cr_expect_eq(try_free(a + 512, bench.s), SPM_E_INTERIOR);
        cr_expect_eq(try_free(a, 999), SPM_E_UNKNOWN);
        cr_expect_eq(reserved(), MIB);
        cr_assert_eq(try_free(a, bench.s), SPM_OK);
        cr_expect_eq(try_free(a, bench.s), SPM_E_DOUBLE_FREE);
        cr_expect_eq(reserved(), MIB);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        spm_account_settle(bench.model, &account);
        cr_expect_eq(reserved(), 0);
}

Test(account, a_request_that_is_given_up_holds_nothing)
{
        struct spm_account_request request = {.request = {.stream = bench.s, .size = MIB}};
        struct spm_allocation allocation;
        struct spm_actions actions;

        open_account(4 * MIB);
        cr_assert_eq(
                spm_account_alloc(bench.model, &account, &request, &allocation, NULL, &actions),
                SPM_AGAIN, "there is no segment");
        cr_expect_eq(reserved(), MIB, "nobody can be faster");
        spm_account_give_up(&account, &request);
        cr_expect_eq(reserved(), 0);
}

Test(account, an_allocation_may_be_paid_in_advance)
{
        struct spm_allocation allocation;
        struct spm_reservation reservation;

        open_account(4 * MIB);
        cr_assert_eq(spm_reservation_begin(&budget, 3 * MIB, &reservation, NULL), SPM_OK);
        cr_expect_eq(refused(bench.s, 2 * MIB), SPM_E_OUT_OF_BUDGET);
        cr_expect_eq(try_from(&reservation, bench.s, 2 * MIB, &allocation), SPM_OK);
        cr_expect_eq(reservation.bytes, MIB);
        cr_expect_eq(try_from(&reservation, bench.s, 2 * MIB, &allocation), SPM_E_OUT_OF_BUDGET);
        cr_expect_eq(reservation.bytes, MIB);
        spm_reservation_end(&reservation);
        cr_expect_eq(reserved(), 2 * MIB);
}

/* What its own stream has pending is charged already, and the advance is not needed. */
Test(account, an_advance_that_was_not_needed_stays_one)
{
        struct spm_allocation allocation;
        struct spm_reservation reservation;

        open_account(4 * MIB);
        cr_assert_eq(try_free(alloc(bench.s, MIB), bench.s), SPM_OK);
        cr_assert_eq(spm_reservation_begin(&budget, MIB, &reservation, NULL), SPM_OK);
        cr_expect_eq(try_from(&reservation, bench.s, MIB, &allocation), SPM_OK);
        cr_expect_eq(reservation.bytes, MIB);
        spm_reservation_end(&reservation);
        cr_expect_eq(reserved(), MIB);
}

Test(account, two_accounts_share_a_budget)
{
        struct spm_account other = {.wait = wait_for};

        open_account(4 * MIB);
        (void)bench_alloc(bench.async, bench.s, MIB);
        cr_assert_eq(spm_account_open(bench.model, &other, bench.async, &budget), SPM_OK);
        cr_expect_eq(reserved(), MIB, "what it has already");
        cr_expect_eq(refused(bench.s, 4 * MIB), SPM_E_OUT_OF_BUDGET);
        (void)alloc(bench.s, 3 * MIB);
        spm_account_close(&other);
        cr_expect_eq(reserved(), 3 * MIB);
        spm_account_close(&account);
        cr_expect_eq(reserved(), 0);
        cr_expect_eq(spm_account_open(bench.model, &other, 999, &budget), SPM_E_UNKNOWN);
}

Test(account, a_pool_that_has_more_than_that_is_not_taken_in)
{
        struct spm_account other = {0};

        (void)bench_alloc(bench.async, bench.s, MIB);
        spm_budget_init(&budget, MIB - 1, NULL);
        cr_expect_eq(spm_account_open(bench.model, &other, bench.async, &budget),
                     SPM_E_OUT_OF_BUDGET);
        cr_expect_eq(reserved(), 0);
}

/* Ready memory joins what a stream has freed, and was not charged for that. */
Test(account, memory_that_joined_what_was_freed_is_charged_when_it_is_served)
{
        bench_give(uses.pool, 32 * MIB);
        open_account(4 * MIB);
        cr_assert_eq(try_free(alloc(bench.s, 2 * MIB), bench.s), SPM_OK);
        cr_expect_eq(reserved(), 2 * MIB);
        (void)alloc(bench.s, 3 * MIB);
        cr_expect_eq(account.live, 3 * MIB);
        cr_expect_eq(refused(bench.s, 3 * MIB), SPM_E_OUT_OF_BUDGET);
        cr_expect_leq(reserved(), 4 * MIB);
}

/* B41, whatever happens in between. */
Test(account, at_rest_what_is_reserved_is_what_is_outstanding)
{
        struct spm_outstanding figures;
        struct spm_allocation allocation;
        uint64_t live[24] = {0};
        uint32_t dice = 7;

        open_account(12 * MIB);
        for (int i = 0; i < 6000; i++) {
                spm_stream stream;
                uint64_t *at;

                dice = dice * 1664525u + 1013904223u;
                stream = dice & 256 ? bench.s : bench.t;
                at = &live[(dice >> 9) % 24];
                if (*at) {
                        cr_assert_eq(try_free(*at, stream), SPM_OK);
                        *at = 0;
                } else if (try_alloc(stream, 1 + (dice >> 8) % (2 * MIB), &allocation) == SPM_OK) {
                        *at = allocation.address;
                }
                if (dice >> 28 == 3)
                        bench_sync(SPM_SCOPE_STREAM, stream, SPM_SYNC_WAIT);
                spm_account_settle(bench.model, &account);
                cr_assert_eq(spm_outstanding(bench.model, uses.pool, &figures), SPM_OK);
                cr_assert_eq(account.live, figures.live_bytes, "step %d", i);
                cr_assert_leq(account.pending, figures.pending_bytes, "step %d", i);
                cr_assert_eq(reserved(), account.live + account.pending, "step %d", i);
        }
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
        spm_account_settle(bench.model, &account);
        cr_assert_eq(spm_outstanding(bench.model, uses.pool, &figures), SPM_OK);
        cr_expect_eq(reserved(), figures.outstanding_bytes);
        cr_expect_gt(account.reaps, 0);
}
