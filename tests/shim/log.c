/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log -- one line, one write, nothing disturbed
 */

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"

static int reading_end;

/* stderr is a pipe in each test. */
static void redirect(void)
{
        int ends[2];

        cr_assert_eq(pipe(ends), 0);
        dup2(ends[1], STDERR_FILENO);
        close(ends[1]);
        reading_end = ends[0];
        fcntl(reading_end, F_SETFL, O_NONBLOCK);
}

/* What came out in one write; "" if nothing did. */
static const char *output(void)
{
        static char text[2 * SP_LOG_MAX];
        ssize_t got = read(reading_end, text, sizeof(text) - 1);

        text[got > 0 ? got : 0] = '\0';
        return text;
}

TestSuite(log, .init = redirect);

Test(log, names_the_sender_and_ends_the_line)
{
        sp_log(SP_LOG_ERROR, "%d of %s", 3, "four");
        cr_expect_str_eq(output(), "streampool: 3 of four\n");
}

Test(log, passes_only_errors_before_the_environment_is_read)
{
        sp_log(SP_LOG_WARNING, "too early");
        cr_expect_str_eq(output(), "");
}

Test(log, passes_what_the_level_asks_for)
{
        setenv("STREAMPOOL_LOG", "2", 1);
        sp_config_load();
        sp_log(SP_LOG_INFO, "in");
        cr_expect_str_eq(output(), "streampool: in\n");
        sp_log(SP_LOG_DEBUG, "out");
        cr_expect_str_eq(output(), "");
}

Test(log, cuts_what_is_too_long_but_ends_the_line)
{
        char text[3 * SP_LOG_MAX];
        const char *line;

        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        sp_log(SP_LOG_ERROR, "%s", text);
        line = output();
        cr_expect_eq(strlen(line), (size_t)SP_LOG_MAX);
        cr_expect_eq(line[SP_LOG_MAX - 1], '\n');
        cr_expect_eq(line[SP_LOG_MAX - 2], 'x');
}

Test(log, keeps_errno_also_when_stderr_is_closed)
{
        errno = ENODEV;
        sp_log(SP_LOG_ERROR, "open");
        cr_expect_eq(errno, ENODEV);
        close(STDERR_FILENO);
        sp_log(SP_LOG_ERROR, "closed");
        cr_expect_eq(errno, ENODEV);
}
