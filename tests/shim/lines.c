/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Test of lines -- names, and what a session does besides finding them
 *
 * That the right function, file and line are found is tests/e2e/lines.
 */

#define _GNU_SOURCE

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "report/lines.h"

static unsigned int seconds_each_look;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
        static time_t more;
        int result = __real_clock_gettime(clock, now);

        more += seconds_each_look;
        now->tv_sec += more;
        return result;
}

static bool is_short;

void *__real_mmap64(void *at, size_t size, int access, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t size, int access, int flags, int fd, off_t offset);

/* No page is to be had, of whatever size. */
void *__wrap_mmap64(void *at, size_t size, int access, int flags, int fd, off_t offset)
{
        return is_short ? MAP_FAILED : __real_mmap64(at, size, access, flags, fd, offset);
}

static const char *demangled(const char *symbol, size_t size)
{
        static char text[256];

        memset(text, 'x', sizeof(text));
        sp_demangle(symbol, text, size);
        return text;
}

static bool has_cpp(void)
{
        return dlopen("libstdc++.so.6", RTLD_LAZY);
}

Test(demangle, leaves_every_name_that_is_not_of_cpp)
{
        static const char *const names[] = {
                "",
                "main",
                "_Z",
                "_Znonsense",
                "_RNvCs1234_7mycrate3foo",
                "_ZN4core3ptr13drop_in_place17h0123456789abcdefE",
        };

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                cr_expect_str_eq(demangled(names[i], 256), names[i]);
}

Test(demangle, writes_cpp_as_it_was_written)
{
        if (!has_cpp())
                cr_skip_test("libstdc++.so.6 cannot be loaded");
        cr_expect_str_eq(demangled("_ZN4tank4holdIiEEvm", 256),
                         "void tank::hold<int>(unsigned long)");
        cr_expect_str_eq(demangled("_ZN4tank4h17hE", 256), "tank::h17h");
}

Test(demangle, marks_what_does_not_fit)
{
        static const struct {
                size_t size;
                const char *text;
        } cases[] = {
                {10, "functions"}, {9, "funct..."}, {5, "f..."}, {4, "..."}, {3, "fu"}, {1, ""},
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
                cr_expect_str_eq(demangled("functions", cases[i].size), cases[i].text, "%zu",
                                 cases[i].size);
        cr_expect_eq(demangled("functions", 0)[0], 'x', "written where there is no room");
}

/* sessions */

static struct sp_lines *session;
static struct sp_line line[4];

static void open_session(void)
{
        session = sp_lines_open();
        if (!session)
                cr_skip_test("libdw.so.1 (Debian: libdw1) cannot be loaded");
        memset(line, 'x', sizeof(line));
}

static __attribute__((noinline)) const void *here(void)
{
        return (const char *)__builtin_return_address(0) - 1;
}

Test(lines, know_this_test, .init = open_session)
{
        const void *place = here(); /* of a call, in this line */

        cr_assert_eq(sp_lines_at(session, place, line, 4), 1);
        cr_expect_eq(line[0].line, __LINE__ - 3);
        cr_expect(strstr(line[0].file, "/tests/shim/lines.c"), "%s", line[0].file);
        cr_expect(strstr(line[0].function, "know_this_test"), "%s", line[0].function);
        sp_lines_close(session);
}

Test(lines, write_no_more_than_there_is_room_for, .init = open_session)
{
        cr_expect_eq(sp_lines_at(session, here(), line, 0), 0);
        cr_expect_eq(line[0].function[0], 'x');
        cr_expect_eq(sp_lines_at(session, here(), line, 1), 1);
        cr_expect_neq(line[0].function[0], 'x');
        cr_expect_eq(line[1].function[0], 'x');
}

Test(lines, know_nothing_of_what_is_no_code_of_a_file, .init = open_session)
{
        void *page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        sp_lines_close(session);
        session = sp_lines_open();
        cr_expect_eq(sp_lines_at(session, page, line, 4), 0);
        cr_expect_eq(sp_lines_at(session, NULL, line, 4), 0);
        cr_expect_eq(sp_lines_at(session, (void *)UINTPTR_MAX, line, 4), 0);
        cr_expect_eq(sp_lines_at(session, &page, line, 4), 0);
}

Test(lines, end_after_some_seconds, .init = open_session)
{
        const void *place = here();

        cr_assert_eq(sp_lines_at(session, place, line, 4), 1);
        seconds_each_look = 60;
        cr_assert_eq(sp_lines_at(session, place, line, 4), 1);
        cr_expect_eq(sp_lines_at(session, place, line, 4), 0);
        seconds_each_look = 0;
        cr_expect_eq(sp_lines_at(session, place, line, 4), 0);
        sp_lines_close(session);
        session = sp_lines_open();
        cr_expect_eq(sp_lines_at(session, place, line, 4), 1, "a new session begins anew");
}

Test(lines, are_not_looked_up_when_memory_is_short, .init = open_session)
{
        const void *place = here();

        is_short = true;
        cr_expect_eq(sp_lines_at(session, place, line, 4), 0);
        cr_expect_null(sp_lines_open());
        is_short = false;
        cr_expect_eq(sp_lines_at(session, place, line, 4), 1);
}

Test(lines, can_be_opened_as_often_as_one_likes)
{
        for (unsigned int i = 0; i < 3; i++)
                sp_lines_close(sp_lines_open());
        sp_lines_close(NULL);
}
