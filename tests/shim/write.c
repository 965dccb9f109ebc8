/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Write -- whatever becomes of the words, nothing happens to the program
 *
 * Signals that are not taken away end the test, as they would end the program.
 */

#define _GNU_SOURCE

#include "base/write.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static char words[1 << 20];

static void open_pipe(int end[2], bool waits)
{
        cr_assert_eq(pipe2(end, waits ? 0 : O_NONBLOCK), 0);
}

static bool waits_for(int number)
{
        sigset_t waiting;

        sigpending(&waiting);
        return sigismember(&waiting, number);
}

Test(write, a_pipe_that_nobody_reads_is_an_error)
{
        int end[2];

        open_pipe(end, true);
        close(end[0]);
        errno = 77;
        for (int i = 0; i < 3; i++)
                cr_expect_eq(sp_write(end[1], "x", 1), -EPIPE);
        cr_expect_eq(errno, 77);
        cr_expect_not(waits_for(SIGPIPE));
}

Test(write, a_signal_of_the_program_is_still_there_afterwards)
{
        sigset_t blocked, now;
        int end[2];

        open_pipe(end, true);
        close(end[0]);
        sigemptyset(&blocked);
        sigaddset(&blocked, SIGPIPE);
        sigprocmask(SIG_BLOCK, &blocked, NULL);
        raise(SIGPIPE);
        cr_expect_eq(sp_write(end[1], "x", 1), -EPIPE);
        cr_expect(waits_for(SIGPIPE));
        sigprocmask(SIG_BLOCK, NULL, &now);
        cr_expect(sigismember(&now, SIGPIPE));
        cr_expect_not(sigismember(&now, SIGXFSZ));
}

Test(write, a_file_that_may_not_grow_is_an_error)
{
        struct rlimit limit = {.rlim_cur = 1000, .rlim_max = RLIM_INFINITY};
        char name[] = "/tmp/streampool-test-XXXXXX";
        int fd = mkstemp(name);

        cr_assert_geq(fd, 0);
        unlink(name);
        setrlimit(RLIMIT_FSIZE, &limit);
        cr_expect_eq(sp_write(fd, words, sizeof(words)), -EFBIG);
        cr_expect_not(waits_for(SIGXFSZ));
        close(fd);
}

static void *read_slowly(void *end)
{
        struct timespec nap = {.tv_nsec = 2000000};
        static char bytes[sizeof(words)];
        size_t got = 0;

        while (got < sizeof(words)) {
                ssize_t n = read(*(int *)end, bytes + got, 32 << 10);

                if (n > 0)
                        got += (size_t)n;
                nanosleep(&nap, NULL);
        }
        return memcmp(bytes, words, sizeof(words)) == 0 ? bytes : NULL;
}

Test(write, a_reader_that_is_slow_gets_all_of_it)
{
        pthread_t reader;
        void *same;
        int end[2];

        for (size_t i = 0; i < sizeof(words); i++)
                words[i] = (char)(i * 7 >> 3);
        open_pipe(end, false);
        pthread_create(&reader, NULL, read_slowly, &end[0]);
        cr_expect_eq(sp_write(end[1], words, sizeof(words)), 0);
        pthread_join(reader, &same);
        cr_expect_not_null(same);
}

Test(write, a_reader_that_does_not_read_is_given_up, .timeout = 20)
{
        int end[2];

        open_pipe(end, false);
        cr_expect_eq(sp_write(end[1], words, sizeof(words)), -EAGAIN);
}
