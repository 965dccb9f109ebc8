/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks -- one holder, one order, and none left over in a forked child
 */

#include <assert.h>
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/lock.h"

#define THREADS 4
#define ROUNDS  20000

static struct sp_lock outer = SP_LOCK_INIT(SP_RANK_CONTEXT);
static struct sp_lock inner = SP_LOCK_INIT(SP_RANK_MODEL);

static uint64_t milliseconds(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Guarded by: outer. Plain on purpose, so that a second holder loses an addition. */
static volatile unsigned int counter;
static volatile unsigned int inside;
static volatile unsigned int crowds;

static void *hammer(void *unused)
{
        for (int i = 0; i < ROUNDS; i++) {
                sp_lock_take(&outer);
                inside = inside + 1;
                if (inside != 1)
                        crowds = crowds + 1;
                counter = counter + 1;
                inside = inside - 1;
                sp_lock_drop(&outer);
        }
        return unused;
}

Test(lock, has_one_holder_at_a_time)
{
        pthread_t threads[THREADS];

        for (int i = 0; i < THREADS; i++)
                pthread_create(&threads[i], NULL, hammer, NULL);
        for (int i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
        cr_expect_eq(counter, THREADS * ROUNDS, "lost %u additions",
                     THREADS * ROUNDS - (unsigned)counter);
        cr_expect_eq(crowds, 0u);
}

Test(lock, knows_the_highest_rank_of_the_thread)
{
        cr_expect_eq(sp_lock_held(), SP_RANK_NONE);
        sp_lock_take(&outer);
        cr_expect_eq(sp_lock_held(), SP_RANK_CONTEXT);
        sp_lock_take(&inner);
        cr_expect_eq(sp_lock_held(), SP_RANK_MODEL);
        sp_lock_drop(&inner);
        cr_expect_eq(sp_lock_held(), SP_RANK_CONTEXT);
        sp_lock_drop(&outer);
        cr_expect_eq(sp_lock_held(), SP_RANK_NONE);
}

static atomic_bool is_held;
static atomic_bool may_end;

static void *keep(void *unused)
{
        sp_lock_take(&outer);
        atomic_store(&is_held, true);
        while (!atomic_load(&may_end))
                usleep(1000);
        sp_lock_drop(&outer);
        return unused;
}

static pthread_t start_keeper(void)
{
        pthread_t thread;

        pthread_create(&thread, NULL, keep, NULL);
        while (!atomic_load(&is_held))
                usleep(1000);
        return thread;
}

Test(lock, gives_up_after_the_time_that_was_said_and_not_before)
{
        pthread_t keeper = start_keeper();
        uint64_t start = milliseconds();

        cr_expect_not(sp_lock_take_bounded(&outer, 0));
        cr_expect_not(sp_lock_take_bounded(&outer, 50));
        cr_expect_geq(milliseconds() - start, 50u);
        cr_expect_eq(sp_lock_held(), SP_RANK_NONE, "a lock that was not had is not held");

        atomic_store(&may_end, true);
        pthread_join(keeper, NULL);
        cr_expect(sp_lock_take_bounded(&outer, 0));
        sp_lock_drop(&outer);
}

Test(lock, that_is_dropped_in_time_is_taken_by_a_bounded_waiter, .timeout = 20)
{
        pthread_t keeper = start_keeper();

        atomic_store(&may_end, true);
        cr_expect(sp_lock_take_bounded(&outer, 15000));
        sp_lock_drop(&outer);
        pthread_join(keeper, NULL);
}

/* The child has no keeper, but a lock that it holds. */
Test(lock, is_free_in_a_forked_child_after_the_reset, .timeout = 20)
{
        pthread_t keeper = start_keeper();
        pid_t child = fork();
        int status = -1;

        if (child == 0) {
                bool was_held = !sp_lock_take_bounded(&outer, 0);

                sp_lock_all_reset();
                if (!was_held || !sp_lock_take_bounded(&outer, 0))
                        _exit(1);
                if (sp_lock_take_bounded(&inner, 0))
                        sp_lock_drop(&inner);
                sp_lock_drop(&outer);
                _exit(sp_lock_take_bounded(&outer, 0) ? 0 : 2);
        }
        waitpid(child, &status, 0);
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", status);
        atomic_store(&may_end, true);
        pthread_join(keeper, NULL);
}

#ifndef NDEBUG
Test(lock, of_lower_rank_aborts, .signal = SIGABRT)
{
        sp_lock_take(&inner);
        sp_lock_take(&outer);
}

Test(lock, taken_twice_by_a_thread_aborts, .signal = SIGABRT)
{
        sp_lock_take(&inner);
        sp_lock_take(&inner);
}

Test(lock, dropped_out_of_order_aborts, .signal = SIGABRT)
{
        sp_lock_take(&outer);
        sp_lock_take(&inner);
        sp_lock_drop(&outer);
}
#endif
