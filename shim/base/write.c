/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Write -- how do words get out without anything happening to the program?
 *
 * The signals that a write can cause are sent to the thread that writes. So they are
 * blocked meanwhile, and what came of it is taken away before they are let in again,
 * unless one had been waiting before: that one is the program's.
 */

#include "base/write.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

/* For one piece; signals may cut a wait short. */
#define WAITS   100
#define WAIT_MS 10

/* Return: how much of it, or -errno. */
static ssize_t write_some(int fd, const char *bytes, size_t length)
{
        struct pollfd room = {.fd = fd, .events = POLLOUT};
        unsigned int waits = 0;
        ssize_t n;

        while ((n = write(fd, bytes, length)) < 0) {
                if (errno != EINTR && (errno != EAGAIN || waits++ == WAITS))
                        return -errno;
                if (errno == EAGAIN)
                        (void)poll(&room, 1, WAIT_MS);
        }
        return n ? n : -EIO;
}

static int write_all(int fd, const char *bytes, size_t length)
{
        while (length > 0) {
                ssize_t n = write_some(fd, bytes, length);

                if (n < 0)
                        return (int)n;
                bytes += n;
                length -= (size_t)n;
        }
        return 0;
}

static void take_away(int number)
{
        const struct timespec at_once = {0};
        sigset_t one;

        sigemptyset(&one);
        sigaddset(&one, number);
        while (sigtimedwait(&one, NULL, &at_once) < 0 && errno == EINTR)
                ;
}

int sp_write(int fd, const char *bytes, size_t length)
{
        sigset_t caused, before, waiting;
        int saved = errno;
        int result;

        sigemptyset(&caused);
        sigaddset(&caused, SIGPIPE);
        sigaddset(&caused, SIGXFSZ);
        sigpending(&waiting);
        sigprocmask(SIG_BLOCK, &caused, &before);
        result = write_all(fd, bytes, length);
        if (result == -EPIPE && !sigismember(&waiting, SIGPIPE))
                take_away(SIGPIPE);
        if (result == -EFBIG && !sigismember(&waiting, SIGXFSZ))
                take_away(SIGXFSZ);
        sigprocmask(SIG_SETMASK, &before, NULL);
        errno = saved;
        return result;
}
