/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Text -- what is made for people to read
 */

#include "base/text.h"

#include <criterion/criterion.h>

Test(text, a_size_has_three_digits_and_a_unit)
{
        static const struct {
                unsigned long long bytes;
                const char *shown;
        } rows[] = {
                {0, "0 B"},
                {999, "999 B"},
                {1000, "0.98 KiB"},
                {1024, "1 KiB"},
                {1536, "1.50 KiB"},
                {34 << 20, "34 MiB"},
                {(1023ULL << 20) + 1, "1.00 GiB"},
                {123456789, "118 MiB"},
                {18446744073709551615ULL, "16 EiB"},
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                char bytes[32];
                struct sp_text text;

                sp_text_init(&text, bytes, sizeof(bytes));
                sp_text_add_bytes(&text, rows[i].bytes);
                cr_expect_str_eq(bytes, rows[i].shown);
        }
}

Test(text, that_does_not_fit_is_cut_and_says_so)
{
        char bytes[8];
        struct sp_text text;

        sp_text_init(&text, bytes, sizeof(bytes));
        sp_text_add(&text, "abc%s", "defg");
        cr_expect_not(text.cut);
        sp_text_add(&text, "h");
        cr_expect(text.cut);
        sp_text_pad(&text, 100);
        cr_expect_str_eq(bytes, "abcdefg");
        cr_expect_eq(text.length, 7);
}
