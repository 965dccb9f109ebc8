/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Print tables -- the three lists as Markdown, for README.md and shim/driver/README.md
 *
 *   sp_tables options|entry_points|counters
 *
 * A program of its own, built from the lists alone.
 */

#include <stdio.h>
#include <string.h>

/* Markdown takes | for the end of a cell. */
static void print_cell(const char *text)
{
        for (; *text; text++) {
                if (*text == '|')
                        putchar('\\');
                putchar(*text);
        }
}

static void print_options(void)
{
        printf("| variable | values | default | |\n|---|---|---|---|\n");
#define SP_OPTION(kind, field, name, preset, values, help)                                         \
        printf("| `" #name "` | ");                                                                \
        print_cell(values);                                                                        \
        printf(" | %s | ", preset);                                                                \
        print_cell(help);                                                                          \
        printf(" |\n");
#include "base/options.def"
#undef SP_OPTION
}

static void print_counters(void)
{
        printf("| counter | unit | |\n|---|---|---|\n");
#define SP_COUNTER(name, group, unit, sentence)                                                    \
        printf("| `" #name "` | " unit " | %s |\n", sentence);
#include "report/counters.def"
#undef SP_COUNTER
}

struct row {
        const char *api;
        const char *symbol;
        const char *how;
        int since;
};

/* Every row, also those that the headers at hand are too old for. */
static const struct row rows[] = {
#define SP_HOOK(api, symbol, since, suffix, params, raw_args, args)                                \
        {#api, #symbol #suffix, "handled", since},
#define SP_RETRY(api, symbol, since, suffix, params, raw_args)                                     \
        {#api, #symbol #suffix, "forwarded; once more if memory was short", since},
#define SP_SUBMIT(api, symbol, since, suffix, kind, params, raw_args, stream)                      \
        {#api, #symbol #suffix, "notes that its stream has work; once more if memory was short",   \
         since},
#define SP_CALL(api, symbol, since, suffix)
#include "driver/entry_points.def"
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* One line a function: all exports of one name stand together in the list. A version is written
 * as NVIDIA does, 11020 is 11.2. */
static void print_entry_points(void)
{
        printf("| function | exports, and the CUDA version they appeared in | |\n|---|---|---|\n");
        for (size_t i = 0; i < ROWS;) {
                const struct row *first = &rows[i];

                printf("| `%s` | ", first->api);
                for (; i < ROWS && strcmp(rows[i].api, first->api) == 0; i++)
                        printf("%s`%s` %d.%d", &rows[i] == first ? "" : ", ", rows[i].symbol,
                               rows[i].since / 1000, rows[i].since % 1000 / 10);
                printf(" | %s |\n", first->how);
        }
}

int main(int count, char **arguments)
{
        const char *table = count == 2 ? arguments[1] : "";

        if (strcmp(table, "options") == 0)
                print_options();
        else if (strcmp(table, "entry_points") == 0)
                print_entry_points();
        else if (strcmp(table, "counters") == 0)
                print_counters();
        else
                return 2;
        return ferror(stdout) || fflush(stdout) != 0;
}
