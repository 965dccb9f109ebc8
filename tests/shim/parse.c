/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Parse -- values as people write them; written on success only
 */

#include "base/parse.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

Test(parse, flag)
{
        bool flag = true;

        cr_expect(sp_parse_flag("off", "", &flag) && !flag);
        cr_expect(sp_parse_flag("TRUE", "", &flag) && flag);
        cr_expect(sp_parse_flag("0", "", &flag) && !flag);
        cr_expect_not(sp_parse_flag("2", "", &flag));
        cr_expect_not(sp_parse_flag("", "", &flag));
        cr_expect_not(flag, "written by a parser that failed");
}

Test(parse, count_within_its_range)
{
        unsigned int count = 77;

        cr_expect_not(sp_parse_count("256", "0-255", &count));
        cr_expect_not(sp_parse_count("0", "1-255", &count));
        cr_expect_not(sp_parse_count("-1", "0-255", &count));
        cr_expect_not(sp_parse_count("3x", "0-255", &count));
        cr_expect_not(sp_parse_count("", "0-255", &count));
        cr_expect_not(sp_parse_count("18446744073709551617", "0-255", &count));
        cr_expect_eq(count, 77, "written by a parser that failed");
        cr_expect(sp_parse_count("255", "0-255", &count));
        cr_expect_eq(count, 255);
}

Test(parse, set_of_words)
{
        static const char values[] = "exit|error|usr2,...";
        unsigned int set = 77;

        cr_expect_not(sp_parse_set("exit,other", values, &set));
        cr_expect_not(sp_parse_set("...", values, &set));
        cr_expect_not(sp_parse_set("exit|error", values, &set));
        cr_expect_not(sp_parse_set("usr2,...", values, &set));
        cr_expect_eq(set, 77, "written by a parser that failed");
        cr_expect(sp_parse_set("usr2", values, &set) && set == 4);
        cr_expect(sp_parse_set("error,EXIT", values, &set) && set == 3);
        cr_expect(sp_parse_set("exit,usr2,exit,", values, &set) && set == 5);
        cr_expect(sp_parse_set("", values, &set) && set == 0);
}

Test(parse, frames_of_a_stack)
{
        static const struct {
                const char *text;
                bool python, native;
                unsigned int count;
        } rows[] = {
                {"off", false, false, 16},      {"python", true, false, 16},
                {"Native", false, true, 16},    {"both", true, true, 16},
                {"native,8", false, true, 8},   {"32", true, true, 32},
                {"python,64", true, false, 64},
        };
        static const char *const bad[] = {"",         "0",  "65",        "native,",
                                          "native,0", "on", "native,8,", "8,native",
                                          "native 8", "-1", "pythonx",   "native,x"};
        struct sp_frames frames = {.count = 77};

        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                cr_expect_not(sp_parse_frames(bad[i], "", &frames), "%s", bad[i]);
        cr_expect_eq(frames.count, 77, "written by a parser that failed");
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                cr_expect(sp_parse_frames(rows[i].text, "", &frames), "%s", rows[i].text);
                cr_expect_eq(frames.python, rows[i].python, "%s", rows[i].text);
                cr_expect_eq(frames.native, rows[i].native, "%s", rows[i].text);
                cr_expect_eq(frames.count, rows[i].count, "%s", rows[i].text);
        }
}

Test(parse, bytes_with_units)
{
        static const struct {
                const char *text;
                uint64_t bytes;
        } rows[] = {
                {"0", 0},           {"4096", 4096},       {"64K", 65536},
                {"64k", 65536},     {"2M", 2 << 20},      {"2MB", 2 << 20},
                {"2MiB", 2 << 20},  {"1.5G", 3ULL << 29}, {"0.125K", 128},
                {"3T", 3ULL << 40}, {"12B", 12},          {"17179869183G", 0xffffffffc0000000ULL},
        };
        static const char *const bad[] = {
                "",      "K",       "1KK", "1.",           ".5G",
                "-1",    "1.0001K", "0x1", "1 K",          "1Ki",
                "1GiBs", "5%",      "1e3", "17179869184G", "99999999999999999999",
                "5 ",    "5 B"};
        uint64_t bytes = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                cr_expect(sp_parse_bytes(rows[i].text, "", &bytes), "%s", rows[i].text);
                cr_expect_eq(bytes, rows[i].bytes, "%s is not %llu", rows[i].text,
                             (unsigned long long)bytes);
        }
        bytes = 77;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                cr_expect_not(sp_parse_bytes(bad[i], "", &bytes), "%s", bad[i]);
                cr_expect_eq(bytes, 77, "%s: written by a parser that failed", bad[i]);
        }
}

Test(parse, time_with_units)
{
        static const struct {
                const char *text;
                uint64_t ns;
        } rows[] = {
                {"0", 0},
                {"250", 250000000},
                {"250ms", 250000000},
                {"0.5ms", 500000},
                {"10s", 10000000000},
                {"10S", 10000000000},
                {"2min", 120000000000},
                {"1.5h", 5400000000000},
        };
        static const char *const bad[] = {"",   "s",   "-1", "10 s",    "5m",
                                          "1d", "10%", "1K", "6000000h"};
        uint64_t ns = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                cr_expect(sp_parse_time(rows[i].text, "", &ns), "%s", rows[i].text);
                cr_expect_eq(ns, rows[i].ns, "%s is not %llu", rows[i].text,
                             (unsigned long long)ns);
        }
        ns = 77;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                cr_expect_not(sp_parse_time(bad[i], "", &ns), "%s", bad[i]);
                cr_expect_eq(ns, 77, "%s: written by a parser that failed", bad[i]);
        }
}

Test(parse, amount_is_a_size_or_a_share)
{
        struct sp_amount amount = {.bytes = 77};

        cr_expect_not(sp_parse_amount("100.1%", "", &amount));
        cr_expect_not(sp_parse_amount("%", "", &amount));
        cr_expect_not(sp_parse_amount("5%%", "", &amount));
        cr_expect_not(sp_parse_amount("much", "", &amount));
        cr_expect(amount.bytes == 77 && amount.share == 0, "written by a parser that failed");
        cr_expect(sp_parse_amount("100%", "", &amount));
        cr_expect_eq(sp_amount_bytes(amount, UINT64_MAX), UINT64_MAX);
        cr_expect(sp_parse_amount("1G", "", &amount));
        cr_expect_eq(sp_amount_bytes(amount, 5), 1ULL << 30);
}

Test(parse, a_switch_is_a_flag_or_nothing)
{
        enum sp_switch position = SP_SWITCH_ON;

        cr_expect_not(sp_parse_switch("2", "", &position));
        cr_expect_not(sp_parse_switch("unset", "", &position));
        cr_expect_eq(position, SP_SWITCH_ON, "written by a parser that failed");
        cr_expect(sp_parse_switch("no", "", &position));
        cr_expect_eq(position, SP_SWITCH_OFF);
        cr_expect(sp_parse_switch("1", "", &position));
        cr_expect_eq(position, SP_SWITCH_ON);
        cr_expect(sp_parse_switch("", "", &position));
        cr_expect_eq(position, SP_SWITCH_UNSET);
}

Test(parse, choice_is_one_whole_word)
{
        unsigned int choice = 77;

        cr_expect_not(sp_parse_choice("vm", "auto|vmm|native", &choice));
        cr_expect_not(sp_parse_choice("auto|vmm", "auto|vmm|native", &choice));
        cr_expect_not(sp_parse_choice("", "auto|vmm|native", &choice));
        cr_expect_eq(choice, 77, "written by a parser that failed");
        cr_expect(sp_parse_choice("Native", "auto|vmm|native", &choice));
        cr_expect_eq(choice, 2);
}

Test(parse, word_is_a_copy)
{
        char text[] = "path";
        const char *word = NULL;

        cr_expect(sp_parse_word(text, "", &word));
        text[0] = 'X';
        cr_expect_str_eq(word, "path");
        free((void *)word);
}
