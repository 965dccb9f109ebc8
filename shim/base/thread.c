/* SPDX-License-Identifier: Apache-2.0 */

/* Thread -- what is kept for each thread of the program, and what is done when one ends */

#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

bool sp_thread_at_end(void (*end)(void *argument), void *argument)
{
        /* Of the C library since 2.18, which has no header for it. */
        extern int __cxa_thread_atexit_impl(void (*function)(void *), void *given, void *library);
        extern void *__dso_handle __attribute__((visibility("hidden")));

        return __cxa_thread_atexit_impl(end, argument, &__dso_handle) == 0;
}

/* By syscall(): a library's nanosleep() could end a thread that was cancelled, lock and all. */
void sp_thread_nap(void)
{
        struct timespec nap = {.tv_nsec = 20 * 1000};
        int saved = errno;

        syscall(SYS_nanosleep, &nap, NULL);
        errno = saved;
}

static bool has_handler(int number)
{
        struct sigaction action;

        if (sigaction(number, NULL, &action))
                return false;
        return action.sa_flags & SA_SIGINFO ||
               (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

bool sp_thread_is_in_handler(void)
{
        sigset_t blocked;

        if (sigprocmask(SIG_BLOCK, NULL, &blocked))
                return false;
        for (int number = 1; number < NSIG; number++) {
                if (sigismember(&blocked, number) == 1 && has_handler(number))
                        return true;
        }
        return false;
}

static struct sp_seat *take_left(struct sp_seat *left)
{
        bool expected = false;

        for (; left; left = left->next, expected = false)
                if (atomic_compare_exchange_strong(&left->is_taken, &expected, true))
                        return left;
        return NULL;
}

struct sp_seat *sp_seat_take(_Atomic(struct sp_seat *) *seats, size_t align, size_t size,
                             bool *made)
{
        struct sp_seat *seat = take_left(atomic_load(seats));

        *made = !seat;
        if (seat)
                return seat;
        seat = aligned_alloc(align, size);
        if (!seat)
                return NULL;
        memset(seat, 0, size);
        atomic_init(&seat->is_taken, true);
        seat->next = atomic_load(seats);
        while (!atomic_compare_exchange_weak(seats, &seat->next, seat))
                ;
        return seat;
}

void sp_seat_leave(struct sp_seat *seat)
{
        atomic_store(&seat->is_taken, false);
}
