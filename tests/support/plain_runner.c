/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Plain runner -- Criterion's tests without Criterion's processes
 *
 * Criterion starts each test in a process that shares an arena with the first
 * one, at an address that ThreadSanitizer does not leave free. In builds with
 * that sanitizer this file is linked into each test program. Its main() and its
 * assertion functions then come before those of the Criterion library; tests,
 * suites and messages are still found and made by Criterion's headers.
 *
 * Each test runs in a child made by fork(). Its end is the result, compared with
 * what the test says it expects; a race that the sanitizer has seen is an exit
 * status of its own, so it fails the test. Time limits are left to Meson.
 */

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The linker's names for the sections that Test() and TestSuite() fill. */
extern struct criterion_test *__start_cr_tst[], *__stop_cr_tst[];
extern struct criterion_suite *__start_cr_sts[] __attribute__((weak));
extern struct criterion_suite *__stop_cr_sts[] __attribute__((weak));

/* How a child ends: neither is what the sanitizer or a test would choose. */
#define ASSERTION_FAILED 98
#define TEST_SKIPPED     97

static bool has_failed;

/* instead of Criterion's functions of these names */

void criterion_send_assert(struct criterion_assert_stats *stats)
{
        if (stats->passed)
                return;
        has_failed = true;
        fprintf(stderr, "[----] %s:%u: %s\n", stats->file, stats->line,
                stats->message ? stats->message : "assertion failed");
}

void criterion_abort_test(void)
{
        _exit(ASSERTION_FAILED);
}

void criterion_continue_test(void)
{
}

void criterion_skip_test(const char *format, ...)
{
        (void)format;
        _exit(TEST_SKIPPED);
}

/* one test: Test() makes a function of these three steps */

static const struct criterion_test *current;
static void *parameter;

static const struct criterion_test_extra_data *suite_of(const struct criterion_test *test)
{
        static const struct criterion_test_extra_data none;

        for (struct criterion_suite **suite = __start_cr_sts; suite < __stop_cr_sts; suite++) {
                if (*suite && !strcmp((*suite)->name, test->category) && (*suite)->data)
                        return (*suite)->data;
        }
        return &none;
}

void criterion_internal_test_setup(void)
{
        if (suite_of(current)->init)
                suite_of(current)->init();
        if (current->data->init)
                current->data->init();
}

void criterion_internal_test_main(void (*body)(void))
{
        if (parameter)
                ((void (*)(void *))(void *)body)(parameter);
        else
                body();
}

void criterion_internal_test_teardown(void)
{
        if (current->data->fini)
                current->data->fini();
        if (suite_of(current)->fini)
                suite_of(current)->fini();
}

static bool is_expected(const struct criterion_test_extra_data *data, int status)
{
        if (data->signal)
                return WIFSIGNALED(status) && WTERMSIG(status) == data->signal;
        if (WIFEXITED(status) && WEXITSTATUS(status) == TEST_SKIPPED)
                return true;
        return WIFEXITED(status) && WEXITSTATUS(status) == data->exit_code;
}

static bool run(const struct criterion_test *test, void *row)
{
        int status = 0;
        pid_t child;

        fflush(NULL);
        child = fork();
        if (child == 0) {
                current = test;
                parameter = row;
                test->test();
                exit(has_failed ? ASSERTION_FAILED : 0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child)
                return false;
        if (is_expected(test->data, status))
                return true;
        fprintf(stderr, "[FAIL] %s::%s: ended with wait status %#x\n", test->category, test->name,
                (unsigned)status);
        return false;
}

/* all tests */

int main(void)
{
        unsigned passed = 0;
        unsigned tested = 0;

        for (struct criterion_test **test = __start_cr_tst; test < __stop_cr_tst; test++) {
                struct criterion_test_params rows = {0};

                if (!*test || (*test)->data->disabled || suite_of(*test)->disabled)
                        continue;
                if ((*test)->data->kind_ == CR_TEST_PARAMETERIZED)
                        rows = (*test)->data->param_();
                else
                        rows.length = 1;
                for (size_t i = 0; i < rows.length; i++) {
                        tested++;
                        passed += run(*test,
                                      rows.params ? (char *)rows.params + i * rows.size : NULL);
                }
                if (rows.cleanup)
                        rows.cleanup(&rows);
        }
        printf("[====] Synthesis: Tested: %u | Passing: %u | Failing: %u | Crashing: 0 \n", tested,
               passed, tested - passed);
        return passed == tested ? 0 : 1;
}
