/* SPDX-License-Identifier: Apache-2.0 */

/* Name -- what is a file called of which each process writes one? */

#include "base/name.h"

#include <criterion/criterion.h>

static const struct sp_name name = {.process = 42, .host = "here", .rank = "7"};

static const char *named(const char *pattern, char *bytes, size_t size)
{
        struct sp_text path;

        sp_text_init(&path, bytes, size);
        sp_name_add(&path, pattern, &name);
        return path.cut ? "cut" : bytes;
}

Test(name, says_who_writes)
{
        char bytes[64];

        cr_expect_str_eq(named("a.%p.%h.%r.json", bytes, sizeof(bytes)), "a.42.here.7.json");
        cr_expect_str_eq(named("%r%r", bytes, sizeof(bytes)), "77");
}

Test(name, keeps_what_is_no_pattern)
{
        char bytes[64];

        cr_expect_str_eq(named("%%p %x 100%", bytes, sizeof(bytes)), "%p %x 100%");
        cr_expect_str_eq(named("", bytes, sizeof(bytes)), "");
}

Test(name, that_is_too_long_is_cut)
{
        char bytes[8];

        cr_expect_str_eq(named("%h%h", bytes, sizeof(bytes)), "cut");
}
