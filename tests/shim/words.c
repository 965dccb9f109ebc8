/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Words -- values of JSON are readable, and JSON whatever they are made of
 */

#include "report/words.h"

#include <criterion/criterion.h>
#include <string.h>

static const char *written(const char *string)
{
        static char bytes[4096];
        struct sp_text text;

        sp_text_init(&text, bytes, sizeof(bytes));
        sp_words_string(&text, string);
        return bytes;
}

Test(words, letters_stay_and_bytes_that_are_none_are_numbers)
{
        static const struct {
                const char *string;
                const char *json;
        } rows[] = {
                {"plain", "\"plain\""},
                {"a\"b\\c\n", "\"a\\\"b\\\\c\\u000a\""},
                {"j\xc3\xbcrgen", "\"j\xc3\xbcrgen\""},
                {"\xe2\x82\xac", "\"\xe2\x82\xac\""},
                {"\xf0\x9f\x90\x8d", "\"\xf0\x9f\x90\x8d\""},
                {"\xff\xc3", "\"\\u00ff\\u00c3\""},                       /* cut off */
                {"\xc0\xaf", "\"\\u00c0\\u00af\""},                       /* longer than need be */
                {"\xe0\x80\xaf", "\"\\u00e0\\u0080\\u00af\""},            /* the same */
                {"\xed\xa0\x80", "\"\\u00ed\\u00a0\\u0080\""},            /* half a pair */
                {"\xf4\x90\x80\x80", "\"\\u00f4\\u0090\\u0080\\u0080\""}, /* too large */
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                cr_expect_str_eq(written(rows[i].string), rows[i].json);
        cr_expect_str_eq(written(NULL), "null");
}

/* Its end is no half of a letter. */
Test(words, a_long_string_ends_between_letters)
{
        char string[3001];
        const char *json;

        for (size_t i = 0; i + 3 < sizeof(string); i += 3)
                memcpy(string + i, "\xe2\x82\xac", 4);
        json = written(string);
        cr_expect_lt(strlen(json), 1100);
        cr_expect_eq((strlen(json) - 2) % 3, 0);
}
