/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Observer -- one record of every action, the refused ones too
 */

#include "bench.h"
#include "uses.h"

#include <string.h>

#define ROWS 64

static struct spm_ring ring;
static struct spm_ring_row rows[ROWS];
static struct spm_observer observer;
static struct spm_budget budget;
static struct spm_account account;
static struct spm_resource resource;
static const struct spm_moment moment = {.thread = 5, .wall_ns = 123456789};

static bool wait_for(struct spm_scope what, void *user)
{
        (void)what;
        return !user || !*(const bool *)user;
}

static void set_up(void)
{
        uses_set_up();
        observer = spm_ring_observer(&ring, rows, ROWS);
        spm_budget_init(&budget, 4 * MIB, NULL);
        account = (struct spm_account){.wait = wait_for};
        cr_assert_eq(spm_account_open(bench.model, &account, uses.pool, &budget), SPM_OK);
        resource = (struct spm_resource){
                .model = bench.model,
                .pool = uses.pool,
                .account = &account,
                .observer = &observer,
        };
}

TestSuite(observer, .init = set_up, .fini = bench_tear_down);

/* What is in the ring. */
struct seen {
        unsigned int count;
        uint64_t first;
        struct spm_observation last;
};

static bool see(const struct spm_observation *row, void *user)
{
        struct seen *seen = user;

        cr_expect_gt(row->order, seen->last.order, "orders grow");
        if (!seen->count++)
                seen->first = row->order;
        seen->last = *row;
        return true;
}

static struct seen look(void)
{
        struct seen seen = {0};

        spm_ring_each(&ring, see, &seen);
        return seen;
}

static enum spm_status alloc(size_t size, uint32_t tag, struct spm_allocation *allocation)
{
        struct spm_account_request request = {
                .request = {.stream = bench.s, .size = size, .tag = tag},
        };
        struct spm_actions actions;
        enum spm_status status;

        do {
                status = spm_resource_alloc(&resource, moment, &request, allocation, &actions);
                bench_do(&actions, &request.request);
        } while (status == SPM_AGAIN);
        return status;
}

static enum spm_status free_at(uint64_t address, spm_stream stream)
{
        struct spm_actions actions;
        enum spm_status status =
                spm_resource_free(&resource, moment, address, 0, SPM_FREE_ASYNC, stream, &actions);

        bench_do(&actions, NULL);
        return status;
}

/* B44 */
Test(observer, an_action_is_one_record_with_all_that_is_known)
{
        struct spm_allocation a;
        struct spm_observation row;
        uint32_t tag;

        cr_assert_eq(spm_tag_add(bench.model, "loader", &tag), SPM_OK);
        cr_assert_eq(alloc(1000, tag, &a), SPM_OK);
        cr_assert_eq(look().count, 1, "however many steps it took");
        row = look().last;
        cr_expect_eq(row.order, 1);
        cr_expect_eq(row.wall_ns, 123456789);
        cr_expect_eq(row.thread, 5);
        cr_expect_eq(row.action, SPM_OBSERVED_ALLOC);
        cr_expect_eq(row.result, SPM_OK);
        cr_expect_eq(row.device, 0);
        cr_expect_eq(row.stream, bench.s);
        cr_expect_eq(row.address, a.address);
        cr_expect_eq(row.bytes, 1000);
        cr_expect_eq(row.generation, a.generation);
        cr_expect_eq(row.tag, tag);
        cr_expect_str_empty(row.message);

        cr_assert_eq(free_at(a.address, bench.t), SPM_OK);
        row = look().last;
        cr_expect_eq(row.order, 2);
        cr_expect_eq(row.action, SPM_OBSERVED_FREE);
        cr_expect_eq(row.stream, bench.t);
        cr_expect_eq(row.bytes, 1000);
        cr_expect_eq(row.generation, a.generation);
        cr_expect_eq(row.tag, tag);
}

Test(observer, what_is_refused_is_recorded_with_the_reason)
{
        struct spm_allocation a;
        struct spm_block_id id;

        cr_assert_eq(alloc(MIB, 0, &a), SPM_OK);
        id = spm_block_id(&a);
        cr_expect_eq(free_at(a.address + 512, bench.s), SPM_E_INTERIOR);
        cr_expect_eq(look().last.action, SPM_OBSERVED_FREE);
        cr_expect_eq(look().last.result, SPM_E_INTERIOR);
        cr_expect_neq(strstr(look().last.message, "SPM_E_INTERIOR at 0x"), NULL, "%s",
                      look().last.message);
        cr_expect_eq(spm_resource_use(&resource, moment, id, SPM_USE_READ, bench.t), SPM_OK);
        cr_expect_eq(look().last.action, SPM_OBSERVED_USE);
        cr_assert_eq(free_at(a.address, bench.s), SPM_OK);
        cr_expect_eq(spm_resource_use(&resource, moment, id, SPM_USE_READ, bench.t),
                     SPM_E_USE_AFTER_FREE);
        cr_expect_neq(strstr(look().last.message, "generation"), NULL, "B7");
        cr_expect_eq(look().count, 5);
        cr_expect_eq(look().last.order, 5);
}

/* B49 */
Test(observer, what_the_budget_refuses_is_not_recorded_as_an_allocation)
{
        struct spm_allocation a;
        struct spm_stats before = bench_stats(uses.pool);
        struct spm_stats after;

        cr_expect_eq(alloc(5 * MIB, 0, &a), SPM_E_OUT_OF_BUDGET);
        after = bench_stats(uses.pool);
        cr_expect_arr_eq(&before, &after, sizeof(before));
        cr_expect_eq(look().last.action, SPM_OBSERVED_BUDGET);
        cr_expect_str_eq(look().last.message,
                         "out of budget: requested 5242880 bytes, reserved 0 of 4194304 bytes, "
                         "remaining 4194304");
        bench.no_memory = true;
        cr_expect_eq(alloc(MIB, 0, &a), SPM_E_OUT_OF_MEMORY);
        cr_expect_eq(look().last.action, SPM_OBSERVED_ALLOC);
}

Test(observer, a_reap_is_recorded_with_what_it_gave)
{
        struct spm_allocation a;
        struct spm_reaped reaped;
        struct spm_actions actions;
        bool fails = true;

        cr_assert_eq(alloc(MIB, 0, &a), SPM_OK);
        cr_assert_eq(free_at(a.address, bench.s), SPM_OK);
        cr_expect_eq(spm_resource_reap(&resource, moment, wait_for, &fails, &reaped, &actions),
                     SPM_E_DRIVER);
        bench_do(&actions, NULL);
        cr_expect_eq(look().last.action, SPM_OBSERVED_REAP);
        cr_expect_eq(look().last.result, SPM_E_DRIVER);
        cr_expect_eq(look().last.stream, bench.s);
        cr_expect_eq(spm_resource_reap(&resource, moment, wait_for, NULL, &reaped, &actions),
                     SPM_OK);
        bench_do(&actions, NULL);
        cr_expect_eq(look().last.bytes, MIB);
}

/* B46 */
static bool fail_to_write(const struct spm_observation *row, void *user)
{
        (void)row;
        (void)user;
        return false;
}

static bool fail_to_flush(void *user)
{
        (void)user;
        return false;
}

Test(observer, one_that_fails_changes_no_answer_and_is_counted)
{
        struct spm_allocation a;

        observer = (struct spm_observer){.write = fail_to_write, .flush = fail_to_flush};
        cr_assert_eq(alloc(MIB, 0, &a), SPM_OK);
        cr_expect_eq(free_at(a.address, bench.s), SPM_OK);
        cr_expect_eq(free_at(a.address, bench.s), SPM_E_DOUBLE_FREE);
        cr_expect_eq(spm_observer_dropped(&observer), 3);
        spm_observer_flush(&observer);
        cr_expect_eq(spm_observer_dropped(&observer), 4);
}

/* B47 */
Test(observer, none_at_all_is_one_too)
{
        struct spm_allocation a;
        struct spm_observation row = {0};

        resource.observer = NULL;
        cr_expect_eq(alloc(MIB, 0, &a), SPM_OK);
        observer = (struct spm_observer){0};
        resource.observer = &observer;
        cr_expect_eq(free_at(a.address, bench.s), SPM_OK);
        cr_expect_eq(spm_observer_dropped(&observer), 0);
        spm_observer_flush(&observer);
        spm_observer_flush(NULL);
        spm_observe(NULL, &row);
        cr_expect_eq(row.order, 0);
}

/* B45 */
Test(observer, several_can_share_their_orders)
{
        struct spm_observation row = {0};
        struct spm_observer one = {0};
        struct spm_observer two = {0};
        uint64_t counter = 0;

        one.counter = &counter;
        two.counter = &counter;
        spm_observe(&one, &row);
        spm_observe(&two, &row);
        cr_expect_eq(row.order, 2);
        spm_observe(&one, &row);
        cr_expect_eq(row.order, 3);
}

Test(observer, the_ring_keeps_the_latest)
{
        struct spm_observation row = {0};

        for (int i = 0; i < 3 * ROWS + 10; i++)
                spm_observe(&observer, &row);
        cr_expect_eq(look().count, ROWS);
        cr_expect_eq(look().first, 2 * ROWS + 11);
        cr_expect_eq(look().last.order, 3 * ROWS + 10);
}

static bool stop_at_third(const struct spm_observation *row, void *user)
{
        *(uint64_t *)user = row->order;
        return row->order < 3;
}

Test(observer, a_walk_over_the_ring_can_be_ended)
{
        struct spm_observation row = {0};
        uint64_t last = 0;

        for (int i = 0; i < 9; i++)
                spm_observe(&observer, &row);
        spm_ring_each(&ring, stop_at_third, &last);
        cr_expect_eq(last, 3);
}

Test(observer, a_message_is_cut_off_to_fit)
{
        struct spm_observation row = {0};

        memset(row.message, 'x', sizeof(row.message));
        spm_observe(&observer, &row);
        cr_expect_eq(strlen(look().last.message), SPM_OBSERVATION_MESSAGE - 1);
}

Test(observer, a_record_is_a_line_of_fixed_columns)
{
        struct spm_observation row = {
                .order = 7,
                .wall_ns = 99,
                .thread = 3,
                .action = SPM_OBSERVED_FREE,
                .result = SPM_E_FOREIGN,
                .device = -1,
                .stream = 2,
                .address = 4096,
                .bytes = 12,
                .generation = 5,
                .tag = 1,
                .message = "say \"no\",\ntwice",
        };
        char text[400];
        char little[8];

        cr_expect_str_eq(SPM_OBSERVATION_COLUMNS,
                         "order,wall_ns,thread,action,result,device,stream,address,bytes,"
                         "generation,tag,message");
        cr_expect_str_eq(spm_observation_text(&row, text, sizeof(text)),
                         "7,99,3,free,SPM_E_FOREIGN,-1,2,4096,12,5,1,\"say \"\"no\"\", twice\"");
        cr_expect_str_eq(spm_observation_text(&row, little, sizeof(little)), "7,99,3,");
        cr_expect_str_eq(spm_observed_name(99), "unknown action");
}

/* B28 */
Test(observer, a_resource_tracks_what_its_pool_does)
{
        cr_expect(spm_resource_tracks_uses(&resource));
        resource.pool = bench.async;
        cr_expect_not(spm_resource_tracks_uses(&resource));
}
