/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life -- when may the shim act, and when are its handlers asked?
 */

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/life.h"
#include "base/lock.h"

static void go_on(void)
{
        cr_assert(sp_life_begin());
        sp_life_settle(true);
}

Test(life, begins_once)
{
        cr_expect(sp_life_begin());
        cr_expect_not(sp_life_begin(), "somebody starts already");
        cr_expect_not(sp_life_has_begun(), "starting is not begun");
        sp_life_settle(true);
        cr_expect(sp_life_is_on());
        cr_expect_not(sp_life_begin(), "it is on already");
}

Test(life, switched_off_by_the_environment_never_asks_a_handler)
{
        cr_assert(sp_life_begin());
        sp_life_settle(false);
        cr_expect_not(sp_life_is_on());
        cr_expect_not(sp_life_has_begun());
        cr_expect_not(sp_life_begin());
        sp_life_leaving();
        cr_expect_not(sp_life_has_begun(), "leaving does not begin anything");
}

Test(life, that_failed_open_still_takes_back_what_it_gave)
{
        go_on();
        sp_life_off("a test says so");
        cr_expect_not(sp_life_is_on());
        cr_expect(sp_life_has_begun());
        sp_life_leaving();
        cr_expect_eq(sp_life_state(), SP_LIFE_LEAVING);
        cr_expect(sp_life_has_begun());
}

Test(life, that_leaves_gives_out_nothing)
{
        go_on();
        sp_life_leaving();
        cr_expect_not(sp_life_is_on());
        cr_expect(sp_life_has_begun());
        sp_life_off("too late");
        cr_expect_eq(sp_life_state(), SP_LIFE_LEAVING);
}

static void *race(void *won)
{
        if (sp_life_begin())
                atomic_fetch_add((atomic_int *)won, 1);
        return NULL;
}

Test(life, is_started_by_one_of_many_threads)
{
        pthread_t threads[8];
        atomic_int won = 0;

        for (int i = 0; i < 8; i++)
                pthread_create(&threads[i], NULL, race, &won);
        for (int i = 0; i < 8; i++)
                pthread_join(threads[i], NULL);
        cr_expect_eq(won, 1);
}

/* 0 if the child is detached: no handler is asked, and it knows why. */
static int look_from_child(void)
{
        if (sp_life_is_on() || sp_life_has_begun())
                return 1;
        if (!sp_life_is_child())
                return 2;
        if (sp_life_begin() || sp_life_has_begun())
                return 3;
        return 0;
}

static int exit_status(pid_t child)
{
        int status = -1;

        waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Test(life, ends_in_a_forked_child)
{
        pid_t child;

        go_on();
        pthread_atfork(NULL, NULL, sp_life_child);
        child = fork();
        if (child == 0)
                _exit(look_from_child());
        cr_expect_eq(exit_status(child), 0);
        cr_expect(sp_life_is_on(), "and goes on in the parent");
        cr_expect_not(sp_life_is_child());
}

/* As fork(), behind the back of the C library: no handler runs. */
Test(life, ends_in_a_raw_clone)
{
        pid_t child;

        go_on();
        child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (child == 0)
                _exit(look_from_child());
        cr_expect_eq(exit_status(child), 0);
        cr_expect(sp_life_is_on());
}

Test(life, of_a_child_forked_before_the_start_is_its_own)
{
        pid_t child = fork();

        if (child == 0)
                _exit(sp_life_begin() && !sp_life_is_child() ? 0 : 1);
        cr_expect_eq(exit_status(child), 0);
}

Test(life, in_a_child_frees_the_locks_of_the_parent)
{
        struct sp_lock lock = SP_LOCK_INIT(SP_RANK_MODEL);
        pid_t child;

        go_on();
        pthread_atfork(NULL, NULL, sp_life_child);
        sp_lock_take(&lock);
        child = fork();
        if (child == 0)
                _exit(sp_lock_take_bounded(&lock, 0) ? 0 : 1);
        cr_expect_eq(exit_status(child), 0);
        sp_lock_drop(&lock);
}
