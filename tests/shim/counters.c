/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Counters -- sums over threads, and medians of what the driver's calls take
 *
 * Links report/counters.c alone. clock_gettime() is a function of this file.
 */

#include "report/counters.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

static _Atomic uint64_t clock_ns;

int clock_gettime(clockid_t clock, struct timespec *now)
{
        (void)clock;
        now->tv_sec = (time_t)(clock_ns / 1000000000);
        now->tv_nsec = (long)(clock_ns % 1000000000);
        return 0;
}

Test(counters, start_at_nothing_and_add_up)
{
        cr_expect_eq(sp_counter_sum(SP_COUNTER_reliefs), 0);
        sp_count(reliefs);
        sp_count_add(reliefs, 41);
        cr_expect_eq(sp_counter_sum(SP_COUNTER_reliefs), 42);
        cr_expect_eq(sp_counter_sum(SP_COUNTER_host_waits), 0, "a neighbour");
}

#define THREADS (2 * SP_COUNTER_SHARDS)
#define ROUNDS  1000000

static void *count_once(void *unused)
{
        (void)unused;
        sp_count(streams_marked);
        return NULL;
}

Test(counters, are_spread_over_the_threads)
{
        pthread_t threads[THREADS];

        for (unsigned int i = 0; i < THREADS; i++)
                cr_assert_eq(pthread_create(&threads[i], NULL, count_once, NULL), 0);
        for (unsigned int i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
        for (unsigned int i = 0; i < SP_COUNTER_SHARDS; i++)
                cr_expect_eq(sp_counter_shards[i].value[SP_COUNTER_streams_marked], 2, "shard %u",
                             i);
}

static pthread_barrier_t start;

static void *count_in_one_shard(void *unused)
{
        (void)unused;
        sp_counter_place = 1;
        pthread_barrier_wait(&start);
        for (unsigned int i = 0; i < ROUNDS; i++)
                sp_count(streams_marked);
        return NULL;
}

Test(counters, lose_nothing_when_threads_share_a_shard)
{
        pthread_t threads[2];

        pthread_barrier_init(&start, NULL, 2);
        for (unsigned int i = 0; i < 2; i++)
                cr_assert_eq(pthread_create(&threads[i], NULL, count_in_one_shard, NULL), 0);
        for (unsigned int i = 0; i < 2; i++)
                pthread_join(threads[i], NULL);
        cr_expect_eq(sp_counter_sum(SP_COUNTER_streams_marked), 2 * ROUNDS);
}

Test(counters, have_a_name_and_a_sentence)
{
        for (unsigned int i = 0; i < SP_COUNTER_COUNT; i++) {
                cr_expect_gt(strlen(sp_counter_info[i].sentence), 5, "%u", i);
                for (unsigned int j = 0; j < i; j++)
                        cr_expect_str_neq(sp_counter_info[i].name, sp_counter_info[j].name);
        }
}

static void take(enum sp_native call, uint64_t ns)
{
        uint64_t began = sp_native_begin();

        clock_ns += ns;
        sp_native_end(call, began);
}

Test(native, cost_is_the_usual_one_until_something_was_measured)
{
        unsigned int samples = 7;

        for (unsigned int i = 0; i < SP_NATIVE_COUNT; i++) {
                cr_expect_gt(sp_native_cost((enum sp_native)i, &samples), 100);
                cr_expect_eq(samples, 0);
        }
        take(SP_NATIVE_FREE, 5);
        cr_expect_eq(sp_native_cost(SP_NATIVE_FREE, &samples), 5);
        cr_expect_eq(samples, 1);
        cr_expect_eq(sp_native_cost(SP_NATIVE_FREE, NULL), 5);
}

Test(native, cost_is_the_median_so_a_slow_first_call_does_not_count)
{
        unsigned int samples;

        take(SP_NATIVE_ALLOC, 10000000000);
        take(SP_NATIVE_ALLOC, 32);
        take(SP_NATIVE_ALLOC, 30);
        take(SP_NATIVE_ALLOC, 31);
        take(SP_NATIVE_ALLOC, 90);
        cr_expect_eq(sp_native_cost(SP_NATIVE_ALLOC, &samples), 32);
        cr_expect_eq(samples, 5);
}

Test(native, cost_follows_the_last_calls)
{
        unsigned int samples;

        for (unsigned int i = 0; i < 1000; i++)
                take(SP_NATIVE_ALLOC, i < 900 ? 1000 : 10);
        cr_expect_eq(sp_native_cost(SP_NATIVE_ALLOC, &samples), 10);
        cr_expect_eq(samples, 1000);
}
