/* SPDX-License-Identifier: Apache-2.0 */

/* Site -- a place in the program's code, in words */

#define _GNU_SOURCE

#include <criterion/criterion.h>
#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "report/inner.h"

void a_function_of_the_program(void);

void a_function_of_the_program(void)
{
        __asm__ volatile("" ::: "memory");
}

static void local(void)
{
        __asm__ volatile("nop" ::: "memory");
}

Test(place, is_a_file_and_an_offset_in_it)
{
        struct sp_place place = sp_place_of((const char *)&insque + 1);
        char bytes[256];
        struct sp_text text;

        cr_assert(place.path);
        cr_expect_eq(strncmp(place.file, "libc", 4), 0, "%s", place.file);
        cr_expect_str_eq(place.symbol, "insque");
        cr_expect_gt(place.offset, 0);
        cr_expect_lt(place.offset, 1 << 26, "an address, not an offset");
        place = sp_place_of((const char *)&insque);
        cr_expect(!place.symbol || strcmp(place.symbol, "insque") != 0,
                  "the call that returns here ends before it");

        sp_text_init(&text, bytes, sizeof(bytes));
        sp_place_text(&text, &local);
        cr_expect_eq(strncmp(bytes, program_invocation_short_name, 8), 0, "%s", bytes);
}

Test(place, of_the_program_is_what_addr2line_takes)
{
        struct sp_place place = sp_place_of((const char *)&a_function_of_the_program + 1);
        char command[512], seen[512];
        FILE *pipe_end;

        snprintf(command, sizeof(command), "addr2line -fe /proc/%d/exe 0x%llx", (int)getpid(),
                 (unsigned long long)place.offset);
        pipe_end = popen(command, "r");
        cr_assert(pipe_end && fgets(seen, sizeof(seen), pipe_end));
        pclose(pipe_end);
        cr_expect_eq(strncmp(seen, "a_function_of_the_program", 25), 0, "%s", seen);
}

Test(place, that_is_not_known_is_said_to_be)
{
        char bytes[256];
        struct sp_text text;

        sp_text_init(&text, bytes, sizeof(bytes));
        sp_place_text(&text, NULL);
        sp_text_add(&text, "; ");
        sp_place_text(&text, (const void *)0x10);
        cr_expect_str_eq(bytes, "unknown; 0x10, in no library now");
}
