/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layout walk -- random texts of layouts, made of words that layouts have
 *
 *   layout_walk [SEED [COUNT]]
 *   layout_walk -- TEXT...
 *
 * Most of them are wrong, and enough are right: both are counted. The fuzzer goes further, where
 * there is one (layout.c).
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout_text.h"

#define WORDS_MAX 24

static uint64_t state;

static unsigned int pick(unsigned int count)
{
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return (unsigned int)(state >> 32) % count;
}

static void add(char *text, const char *word)
{
        strcat(text, word);
}

static void add_size(char *text)
{
        static const char *const units[] = {"", "K", "M", "G", "T", "MiB", "B", "kB", "Q"};
        static const char *const numbers[] = {"0",
                                              "1",
                                              "2",
                                              "3",
                                              "7",
                                              "32",
                                              "511",
                                              "1024",
                                              "65536",
                                              "9000",
                                              "18446744073709551615"};

        add(text, numbers[pick(sizeof(numbers) / sizeof(numbers[0]))]);
        add(text, units[pick(sizeof(units) / sizeof(units[0]))]);
}

/* A list as it should be, most of the time. */
static void add_list(char *text)
{
        static const char *const fields[3][4] = {{"page", "slice", "cap", "page"},
                                                 {"max", "period", "max", "max"},
                                                 {"reclaim", "reclaim", "reclaim", "reclaim"}};
        static const char *const kinds[] = {"sliced", "exclusive", "direct"};
        unsigned int kind = pick(3);
        unsigned int count = pick(4);
        unsigned int i;

        add(text, kinds[kind]);
        for (i = 0; i < count; i++) {
                add(text, i ? "," : ":");
                add(text, fields[kind][i ? pick(4) : 0]);
                add(text, "=");
                add_size(text);
        }
        if (!pick(4))
                add(text, ",shrink");
}

static void add_anything(char *text)
{
        static const char *const words[] = {"persistent=", "size-match", "enforced",  "enabled",
                                            "disabled",    "subslices",  "exclusive", "sliced",
                                            ";",           ";",          ":",         ",",
                                            "=",           " ",          "shrink",    "\n",
                                            "direct",      "page",       "#",         "# a\n"};

        if (pick(4))
                add(text, words[pick(sizeof(words) / sizeof(words[0]))]);
        else
                add_size(text);
}

static void make(char *text)
{
        unsigned int count = pick(WORDS_MAX);

        text[0] = '\0';
        while (count--) {
                if (pick(3)) {
                        add_list(text);
                        add(text, pick(8) ? pick(4) ? ";" : "\n" : "");
                } else if (pick(2)) {
                        add(text, "persistent=size-match;");
                } else {
                        add_anything(text);
                }
        }
}

static int check(const char *text, unsigned long *right)
{
        int read;
        const char *wrong = layout_text_check(text, &read);

        *right += (unsigned long)read;
        if (wrong)
                printf("%s: %s\n", text, wrong);
        return wrong != NULL;
}

int main(int count, char **arguments)
{
        unsigned long texts = count > 2 ? strtoul(arguments[2], NULL, 0) : 20000;
        unsigned long right = 0;
        unsigned long i;
        int failed = 0;

        if (count > 1 && !strcmp(arguments[1], "--")) {
                for (i = 2; i < (unsigned long)count; i++)
                        failed |= check(arguments[i], &right);
                return failed;
        }
        state = (count > 1 ? strtoull(arguments[1], NULL, 0) : 1) * 0x9e3779b97f4a7c15u + 1;
        for (i = 0; i < texts && !failed; i++) {
                char text[WORDS_MAX * 200];

                make(text);
                failed = check(text, &right);
        }
        printf("%lu texts, %lu of them layouts\n", i, right);
        return failed || right < texts / 100;
}
