/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Occasion -- when is a report written, besides at the end?
 *
 * The handler of SIGUSR1 and SIGUSR2 only asks. That of SIGABRT writes by itself:
 * nothing comes after it. It takes no heap, so that abort() may come from the
 * heap's own checks, and locks of ours only for a bounded time; what it does need is
 * the loader's list of libraries.
 */

#define _GNU_SOURCE

#include "report/occasion.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/config.h"
#include "base/life.h"
#include "base/log.h"
#include "report/report.h"
#include "track/record.h"

#define PATIENCE_S 10

static void ask(int number)
{
        (void)number;
        sp_occasion_ask(SP_OCCASION_SIGNAL);
}

/* The process ends in the same way if there is no report by then: the loader's lock may be held by
 * a thread that waits for this one. By syscall(), as the C library has this in a library of its
 * own. */
static void end_in_any_case(int number)
{
        const struct itimerspec patience = {.it_value.tv_sec = PATIENCE_S};
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = number};
        int timer;

        if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer) == 0)
                syscall(SYS_timer_settime, timer, 0, &patience, NULL);
}

/* SA_RESETHAND: raised again, it ends the process as if nobody had looked. */
static void die(int number)
{
        int saved = errno;

        end_in_any_case(number);
        if (!sp_life_is_child()) {
                sp_record_flush();
                sp_report_write_dying();
        }
        errno = saved;
        raise(number);
}

static void take(int number, const char *name, void (*handler)(int), int flags)
{
        struct sigaction action = {.sa_handler = handler, .sa_flags = flags | SA_ONSTACK};
        struct sigaction before;

        sigemptyset(&action.sa_mask);
        if (sigaction(number, NULL, &before))
                return;
        if ((before.sa_flags & SA_SIGINFO) || before.sa_handler != SIG_DFL) {
                sp_log(SP_LOG_WARNING,
                       "STREAMPOOL_REPORT_ON: the program has a use for %s, which "
                       "stays the program's",
                       name);
                return;
        }
        sigaction(number, &action, NULL);
}

void sp_report_occasions_start(void)
{
        unsigned int on = sp_config()->report_on;

        if (on & SP_ON_ABORT)
                take(SIGABRT, "SIGABRT", die, SA_RESETHAND | SA_NODEFER);
        if (on & SP_ON_USR1)
                take(SIGUSR1, "SIGUSR1", ask, SA_RESTART);
        if (on & SP_ON_USR2)
                take(SIGUSR2, "SIGUSR2", ask, SA_RESTART);
}

void sp_report_asked(void)
{
        unsigned int asked = atomic_exchange(&sp_occasion_asked, SP_OCCASION_NONE);

        if (sp_life_is_child())
                return;
        sp_record_flush();
        if (asked == SP_OCCASION_SIGNAL)
                sp_report_write();
        else if (asked == SP_OCCASION_ERROR && sp_config()->report_on & SP_ON_ERROR)
                sp_report_write_files();
}
