/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Suppress -- what a file of rules says, and to which findings it applies
 *
 * Links the report with base/. That the report heeds the rules is shown by
 * tests/e2e/suppressions.py.
 */

#include "report/suppress.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/spot.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static char heard[4096];

static void hear(const char *message)
{
        size_t length = strlen(heard);

        snprintf(heard + length, sizeof(heard) - length, "%s\n", message);
}

/* Neither reading nor asking may need the heap: the report is written when it may be locked. */
static unsigned int allocations;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
        allocations++;
        return __real_malloc(size);
}

static struct sp_rules rules;
static char text[1 << 16];

static size_t parse(const char *file, size_t length)
{
        memcpy(text, file, length);
        text[length] = '\0';
        heard[0] = '\0';
        sp_rules_parse(&rules, "my.rules", text, length, hear);
        return rules.count;
}

static size_t parse_text(const char *file)
{
        return parse(file, strlen(file));
}

/* patterns */

Test(pattern, is_a_part_of_a_name_with_stars_and_ends)
{
        static const struct {
                const char *pattern, *name;
                bool matches;
        } rows[] = {
                {"foo", "foo", true},
                {"foo", "a_foo_b", true},
                {"foo", "fo", false},
                {"foo", "FOO", false},
                {"^foo", "foo_b", true},
                {"^foo", "a_foo", false},
                {"foo$", "a_foo", true},
                {"foo$", "foo_b", false},
                {"foo$", "foo_foo", true},
                {"^foo$", "foo", true},
                {"^foo$", "foofoo", false},
                {"f*o", "a_fxxo_b", true},
                {"f*o", "of", false},
                {"^lib*.so$", "libfoo.so", true},
                {"^lib*.so$", "libfoo.so.1", false},
                {"^lib*.so$", "lib.so", true},
                {"^lib*.so$", "li.so", false},
                {"^ab*ba$", "aba", false},
                {"^ab*ba$", "abba", true},
                {"a*b*c", "xaxbxcx", true},
                {"a*b*c", "xaxcxbx", false},
                {"a*bc$", "abcabc", true},
                {"a*bc$", "abcab", false},
                {"*", "anything", true},
                {"**", "anything", true},
                {"*foo", "a_foo_b", true},
                {"^*foo$", "a_foo", true},
                {"^", "anything", true},
                {"$", "anything", true},
                {"^$", "anything", false},
                {"a^b", "a^b", true},
                {"a$b", "a$b", true},
                {"*a*a*a*a*a*a*a*a*a*a*b$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
                {"foo", NULL, false},
                {"*", NULL, false},
        };

        for (size_t i = 0; i < COUNT(rows); i++) {
                struct sp_span pattern = {rows[i].pattern, strlen(rows[i].pattern)};

                cr_expect_eq(sp_pattern_matches(pattern, rows[i].name), rows[i].matches,
                             "%s and %s", rows[i].pattern, rows[i].name);
        }
}

/* The whole of @name, trying everything. */
static bool covers(const char *pattern, size_t length, const char *name)
{
        if (length == 0)
                return *name == '\0';
        if (*pattern == '*')
                return covers(pattern + 1, length - 1, name) ||
                       (*name && covers(pattern, length, name + 1));
        return *name && *name == *pattern && covers(pattern + 1, length - 1, name + 1);
}

static bool is_in(const char *pattern, const char *name)
{
        bool at_start = *pattern == '^';
        size_t length = strlen(pattern += at_start);
        bool at_end = length && pattern[length - 1] == '$';
        char whole[16];

        snprintf(whole, sizeof(whole), "%s%.*s%s", at_start ? "" : "*", (int)(length - at_end),
                 pattern, at_end ? "" : "*");
        return covers(whole, strlen(whole), name);
}

/* The @n-th text of these letters; false if it is longer than @most. */
static bool spell(unsigned int n, const char *letters, size_t most, char *spelt)
{
        size_t length = 0;

        for (; n; n = (n - 1) / (unsigned int)strlen(letters)) {
                if (length == most)
                        return false;
                spelt[length++] = letters[(n - 1) % strlen(letters)];
        }
        spelt[length] = '\0';
        return true;
}

Test(pattern, agrees_with_trying_everything)
{
        char pattern[8], name[8];
        unsigned int matched = 0;

        for (unsigned int i = 0; spell(i, "ab*^$", 5, pattern); i++) {
                for (unsigned int j = 0; spell(j, "ab", 4, name); j++) {
                        struct sp_span span = {pattern, strlen(pattern)};
                        bool wanted = is_in(pattern, name);

                        cr_assert_eq(sp_pattern_matches(span, name), wanted, "%s and %s", pattern,
                                     name);
                        matched += wanted;
                }
        }
        cr_expect_gt(matched, 5000);
}

/* rules */

static const struct sp_frame leaf = {.function = "make_table",
                                     .library = "/opt/vendor/libvendor.so.2",
                                     .source = "/src/lib/a.c"};
static const struct sp_frame two[] = {
        {.function = "cudaMalloc", .library = "/usr/lib/libcudart.so.13"},
        {.function = "operator==", .library = "./app", .source = "/src/app/main.cc"},
};

/* Five blocks of 100 to 2000 bytes of pinned memory. */
static struct sp_case leak(void)
{
        return (struct sp_case){
                .finding = SP_FINDING_LEAK,
                .has_block = true,
                .kind = SP_KIND_PINNED,
                .device = 1,
                .size = {100, 2000},
                .count = 5,
                .frames = &leaf,
                .frame_count = 1,
        };
}

static struct sp_case double_free(void)
{
        struct sp_case seen = leak();

        seen.finding = SP_FINDING_DOUBLE_FREE;
        return seen;
}

struct row {
        const char *rule;
        bool applies;
};

static void expect(const struct row *rows, size_t count, const struct sp_case *seen)
{
        for (size_t i = 0; i < count; i++) {
                cr_expect_eq(parse_text(rows[i].rule), 1, "%s: %s", rows[i].rule, heard);
                cr_expect_str_empty(heard);
                cr_expect_eq(sp_rules_find(&rules, seen) == 0, rows[i].applies, "%s", rows[i].rule);
        }
}

Test(rule, names_a_kind_of_finding)
{
        static const struct row rows[] = {
                {"leak:*", true},           {"any:*", true},           {"double-free:*", false},
                {"wrong-kind:*", false},    {"interior:*", false},     {"after-context:*", false},
                {"foreign:*", false},       {"  leak : * \t\r", true}, {"leak:   *", true},
                {"after_context:*", false},
        };
        static const struct row of_double_free[] = {
                {"leak:*", false},       {"any:*", true},       {"double-free:*", true},
                {"double_free:*", true}, {"interior:*", false},
        };
        struct sp_case seen = leak();

        expect(rows, COUNT(rows), &seen);
        seen = double_free();
        expect(of_double_free, COUNT(of_double_free), &seen);
}

Test(rule, finds_a_place_by_function_library_or_source)
{
        static const struct row rows[] = {
                {"leak:make_table", true},
                {"leak:^make_table$", true},
                {"leak:^libvendor.so*", true},
                {"leak:^a.c$", true},
                {"leak:^/src/lib/", true},
                {"leak:/opt/*/libvendor", true},
                {"leak:opt", false},
                {"leak:^src", false},
                {"leak:free_table", false},
                {"leak: function=^make_", true},
                {"leak: function=libvendor", false},
                {"leak: library=libvendor", true},
                {"leak: library=make_table", false},
                {"leak: source=/lib/a.c$", true},
                {"leak: source=libvendor", false},
                {"leak: library=libvendor function=make_", true},
                {"leak: library=libvendor function=free_", false},
                {"leak:library=libvendor", true},
        };
        struct sp_case seen = leak();

        expect(rows, COUNT(rows), &seen);
}

Test(rule, looks_at_every_frame_but_at_one_at_a_time)
{
        static const struct row rows[] = {
                {"leak:cudaMalloc", true},
                {"leak:main.cc", true},
                {"leak:operator==", true},
                {"leak: function=operator== library=app", true},
                {"leak: function=cudaMalloc library=app", false},
                {"leak: function=cudaMalloc source=main.cc", false},
        };
        static const struct row nowhere[] = {
                {"leak:*", false}, {"leak: function=*", false}, {"leak: kind=pinned", true}};
        struct sp_case seen = leak();

        seen.frames = two;
        seen.frame_count = COUNT(two);
        expect(rows, COUNT(rows), &seen);
        seen.frame_count = 0;
        expect(nowhere, COUNT(nowhere), &seen);
}

Test(rule, asks_for_kind_size_count_and_device)
{
        static const struct row rows[] = {
                {"leak: kind=pinned", true},
                {"leak: kind=device", false},
                {"leak: size=100-2000", true},
                {"leak: size=101-", false},
                {"leak: size=-1999", false},
                {"leak: size=-2K", true},
                {"leak: size=100-", true},
                {"leak: size=100", false},
                {"leak: count=5", true},
                {"leak: count=4", false},
                {"leak: count=9", true},
                {"leak: count=-5", true},
                {"leak: count=-4", false},
                {"leak: count=6-", false},
                {"leak: count=5-5", true},
                {"leak: device=1", true},
                {"leak: device=0", false},
                {"leak: count=5 device=1 kind=pinned size=1-1M", true},
                {"leak: kind=pinned device=2", false},
        };
        static const struct row of_many[] = {{"leak: device=1", false}, {"leak: device=0", false}};
        static const struct row of_none[] = {
                {"any: kind=pinned", false}, {"any: size=-1G", false}, {"any: device=1", false},
                {"any: count=5", true},      {"any:make_table", true},
        };
        struct sp_case seen = leak();

        expect(rows, COUNT(rows), &seen);
        seen.device = -1;
        expect(of_many, COUNT(of_many), &seen);
        seen = double_free();
        seen.has_block = false;
        expect(of_none, COUNT(of_none), &seen);
}

Test(rule, is_a_pattern_if_it_begins_with_an_operator)
{
        struct sp_frame frame = {.function = "operator=(Table const&)"};
        struct sp_case seen = leak();

        seen.frames = &frame;
        cr_assert_eq(parse_text("leak:operator=(Table const&)"), 1, "%s", heard);
        cr_expect_eq(sp_rules_find(&rules, &seen), 0);
}

Test(rule, the_first_that_applies_is_found)
{
        struct sp_case seen = leak();
        unsigned int before = allocations;

        cr_assert_eq(parse_text("foreign:*\n\n# leak:*\nleak:no\nleak:make\nany:*\n"), 4);
        cr_expect_eq(sp_rules_find(&rules, &seen), 2);
        cr_expect_eq(rules.rule[2].line, 5);
        cr_expect_str_eq(rules.rule[2].text, "leak:make");
        seen.finding = SP_FINDING_INTERIOR;
        cr_expect_eq(sp_rules_find(&rules, &seen), 3);
        cr_expect_eq(allocations, before);
        cr_expect_eq(sp_rules_find(NULL, &seen), -1);
        cr_assert_eq(parse_text(""), 0);
        cr_expect_eq(sp_rules_find(&rules, &seen), -1);
}

/* bad lines */

Test(line, that_is_no_rule_is_named_with_what_would_do)
{
        static const struct {
                const char *line;
                const char *what; /* is wrong */
                const char *would_do;
        } rows[] = {
                {"doble-free:x", "doble-free is not one of", "double-free|wrong-kind|interior|"},
                {"doble-free:x", "doble-free", "foreign|argument-after-free|leak|any"},
                {":x", " is not one of", "leak|any"},
                {"leak", "no colon after leak", ""},
                {"leak x", "no colon after leak", ""},
                {"leak:", "nothing after leak:", "pattern"},
                {"leak:  ", "nothing after leak:", "key=value"},
                {"leak: libary=x", "libary=x does not begin", "function=|library=|source=|kind="},
                {"leak: kind=pinned x", "x does not begin", "size=|count=|device="},
                {"leak: kind=devise", "kind=devise is not one of", "kind=device|async|pitch|"},
                {"leak: kind=", "kind= is not one of", "managed"},
                {"leak: function=", "function= is not", "pattern"},
                {"leak: size=8-x", "size=8-x is not like", "8-4096"},
                {"leak: size=-", "size=- is not like", "1K-"},
                {"leak: size=", "size= is not like", "-2M"},
                {"leak: size=9-8", "size=9-8 is not like", ""},
                {"leak: size=1-2-3", "size=1-2-3 is not like", ""},
                {"leak: size=99999999999999999999", "size=9", ""},
                {"leak: count=many", "count=many is not like", "count=3, -3"},
                {"leak: device=x", "device=x is not like", "0-9999"},
                {"leak: device=10000", "device=10000 is not like", "0-9999"},
                {"leak: size=8 size=9", "size= is there twice", ""},
                {"leak:a\001b", "no text", ""},
        };

        for (size_t i = 0; i < COUNT(rows); i++) {
                char file[256];

                snprintf(file, sizeof(file), "# one\nleak:good\n%s\nany:good", rows[i].line);
                cr_expect_eq(parse_text(file), 2, "%s is a rule", rows[i].line);
                cr_expect_eq(strncmp(heard, "my.rules:3: ", 12), 0, "%s", heard);
                cr_expect(strchr(heard, '\n') && !strchr(heard, '\n')[1], "more than one: %s",
                          heard);
                cr_expect(strstr(heard, rows[i].what) && strstr(heard, rows[i].would_do), "%s: %s",
                          rows[i].line, heard);
        }
}

Test(line, with_a_zero_byte_is_no_rule)
{
        static const char file[] = "leak:a\0b\nleak:c";

        cr_expect_eq(parse(file, sizeof(file) - 1), 1);
        cr_expect(strstr(heard, "my.rules:1: the line is no text"), "%s", heard);
        cr_expect_str_eq(rules.rule[0].text, "leak:c");
}

Test(line, beyond_the_last_rule_is_named_once)
{
        static char file[(SP_RULES_MAX + 3) * 8];

        for (unsigned int i = 0; i < SP_RULES_MAX + 3; i++)
                strcat(file, i == 9 ? "nonsens\n" : "leak:x\n");
        cr_expect_eq(parse_text(file), SP_RULES_MAX);
        cr_expect(strstr(heard, "my.rules:10: "), "%s", heard);
        cr_expect(strstr(heard, "my.rules:1026: there are 1024 rules before"), "%s", heard);
        cr_expect_not(strstr(heard, "my.rules:1027"), "%s", heard);
}

Test(line, that_is_long_leaves_room_for_what_is_wrong)
{
        static char file[5000];

        memset(file, 'x', sizeof(file) - 1);
        cr_expect_eq(parse_text(file), 0);
        cr_expect(strstr(heard,
                         "xxx is not one of "
                         "use-after-free|out-of-bounds|use-before-alloc|race|overlap|overrun|"),
                  "%s", heard);
}

/* libraries */

Test(holder, is_who_made_the_call_but_not_the_runtime)
{
        static const struct {
                const char *paths[3];
                const char *holder;
        } rows[] = {
                {{"/usr/lib/libcublasLt.so.13"}, "libcublasLt.so.13"},
                {{"libnccl.so.2"}, "libnccl.so.2"},
                {{"/x/libcudart.so.13"}, NULL},
                {{"/x/libcudart.so.13", "/x/libcudnn.so.9", "/x/app"}, "libcudnn.so.9"},
                {{"/x/libcudart.so.13", "/x/app", "/x/libcudnn.so.9"}, NULL},
                {{"/x/app", "/x/libcublas.so.13"}, NULL},
                {{"/libcublas.so/app"}, NULL},
                {{"/x/mylibcublas.so"}, NULL},
                {{NULL, "libcublas.so"}, NULL},
                {{"libcudart.so.13", "libc10_cuda.so", "libtorch_cuda.so"}, "libtorch_cuda.so"},
                {{"libcudart.so.13", "libc10_cuda.so", "libtorch_cpu.so"}, NULL},
                {{"libcudart.so.13", "libc10_cuda.so"}, "libc10_cuda.so"},
        };

        for (size_t i = 0; i < COUNT(rows); i++) {
                struct sp_frame frames[3];
                const char *holder;

                for (size_t j = 0; j < 3; j++)
                        frames[j] = (struct sp_frame){.library = rows[i].paths[j]};
                holder = sp_holder_of(frames, 3);
                cr_expect_eq(!holder, !rows[i].holder, "row %zu", i);
                if (holder && rows[i].holder)
                        cr_expect_str_eq(holder, rows[i].holder);
        }
        cr_expect_null(sp_holder_of(NULL, 0));
}

/* where to stop */

Test(spot, is_a_list_of_kinds_of_wrong_frees)
{
        const unsigned int all = (1u << SP_FINDING_COUNT) - 1;
        const struct {
                const char *list;
                unsigned int kinds;
                const char *wrong;
        } rows[] = {
                {"double-free", 1u << SP_FINDING_DOUBLE_FREE, NULL},
                {"wrong_kind,foreign", 1u << SP_FINDING_WRONG_KIND | 1u << SP_FINDING_FOREIGN,
                 NULL},
                {"any", all, NULL},
                {",interior,,after-context,",
                 1u << SP_FINDING_INTERIOR | 1u << SP_FINDING_AFTER_CONTEXT, NULL},
                {"doble-free,interior", 1u << SP_FINDING_INTERIOR, "doble-free is not one of "},
                {"leak", 0,
                 "leak is not one of "
                 "use-after-free|out-of-bounds|use-before-alloc|race|overlap|overrun|"},
                {"foreign ", 0, "foreign  is not one of "},
                {"", 0, NULL},
        };

        for (size_t i = 0; i < COUNT(rows); i++) {
                heard[0] = '\0';
                cr_expect_eq(sp_spot_parse(rows[i].list, hear), rows[i].kinds, "%s", rows[i].list);
                if (rows[i].wrong)
                        cr_expect(strstr(heard, rows[i].wrong) &&
                                          strstr(heard, "|argument-after-free|any"),
                                  "%s: %s", rows[i].list, heard);
                else
                        cr_expect_str_empty(heard);
        }
}
