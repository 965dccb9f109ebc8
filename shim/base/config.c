/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Config -- what was asked for from outside?
 *
 * Each row of options.def becomes one setter, which hands the text to the
 * parser of its kind. Defaults go through the same parsers, so that the table
 * people read is the one that is in force.
 *
 * This is the only file that looks at the environment.
 */

#include "base/config.h"

#include <limits.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/log.h"

#define PREFIX          "STREAMPOOL_"
#define COMPLAINTS_MAX  4096
#define NAME_MAX_LENGTH 40 /* longer names are not compared */

extern char **environ;

struct sp_config sp_config_loaded;
static bool is_loaded;

/* rows */

#define SP_OPTION(kind, field, name, preset, values, help)                                         \
        static bool set_##field(struct sp_config *config, const char *text)                        \
        {                                                                                          \
                return SP_PARSE_##kind(text, values, &config->field);                              \
        }
#define SP_PARSE_FLAG   sp_parse_flag
#define SP_PARSE_SWITCH sp_parse_switch
#define SP_PARSE_COUNT  sp_parse_count
#define SP_PARSE_BYTES  sp_parse_bytes
#define SP_PARSE_AMOUNT sp_parse_amount
#define SP_PARSE_LIMITS sp_parse_limits
#define SP_PARSE_SET    sp_parse_set
#define SP_PARSE_FRAMES sp_parse_frames
#define SP_PARSE_TIME   sp_parse_time
#define SP_PARSE_WORD   sp_parse_word
/* An enum without negative members has the representation of unsigned int. */
#define SP_PARSE_CHOICE(text, values, field) sp_parse_choice(text, values, (unsigned int *)(field))
#include "base/options.def"
#undef SP_OPTION

static const struct sp_option options[] = {
#define SP_OPTION(kind, field, name, preset, values, help) {#name, preset, values, help},
#include "base/options.def"
#undef SP_OPTION
};

static bool (*const setters[])(struct sp_config *, const char *) = {
#define SP_OPTION(kind, field, name, preset, values, help) set_##field,
#include "base/options.def"
#undef SP_OPTION
};

#define OPTION_COUNT (sizeof(options) / sizeof(options[0]))

const struct sp_option *sp_config_options(size_t *count)
{
        *count = OPTION_COUNT;
        return options;
}

/* names */

static unsigned int least(unsigned int a, unsigned int b)
{
        return a < b ? a : b;
}

/* Edits that turn @a into @b: insert, delete, replace, swap neighbours. */
static unsigned int edit_distance(const char *a, const char *b)
{
        unsigned int row[3][NAME_MAX_LENGTH + 1];
        size_t width = strlen(b);

        for (size_t j = 0; j <= width; j++)
                row[0][j] = (unsigned int)j;
        for (size_t i = 1; i <= strlen(a); i++) {
                unsigned int *now = row[i % 3];
                const unsigned int *before = row[(i + 2) % 3];
                const unsigned int *twice = row[(i + 1) % 3];

                now[0] = (unsigned int)i;
                for (size_t j = 1; j <= width; j++) {
                        now[j] = least(least(now[j - 1], before[j]) + 1,
                                       before[j - 1] + (a[i - 1] != b[j - 1]));
                        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                                now[j] = least(now[j], twice[j - 2] + 1);
                }
        }
        return row[strlen(a) % 3][width];
}

const char *sp_config_nearest(const char *name)
{
        const char *nearest = NULL;
        unsigned int fewest = UINT_MAX;

        if (strlen(name) > NAME_MAX_LENGTH)
                return NULL;
        for (size_t i = 0; i < OPTION_COUNT; i++) {
                unsigned int edits = edit_distance(name, options[i].name);

                if (edits < fewest) {
                        fewest = edits;
                        nearest = options[i].name;
                }
        }
        /* More than half of the part behind the prefix: no resemblance. */
        if (!nearest || fewest * 2 > strlen(nearest) - strlen(PREFIX))
                return NULL;
        return nearest;
}

/* reading */

static void complain(void (*warn)(const char *), const char *format, ...)
        __attribute__((format(printf, 2, 3)));

static void complain(void (*warn)(const char *), const char *format, ...)
{
        char bytes[512];
        struct sp_text text;
        va_list list;

        sp_text_init(&text, bytes, sizeof(bytes));
        va_start(list, format);
        sp_text_add_list(&text, format, list);
        va_end(list);
        warn(bytes);
}

/* "NAME=value": the value if the name is @name, else NULL. */
static const char *value_of(const char *entry, const char *name)
{
        size_t length = strlen(name);

        if (strncmp(entry, name, length) != 0 || entry[length] != '=')
                return NULL;
        return entry + length + 1;
}

static void read_entry(struct sp_config *config, const char *entry, void (*warn)(const char *))
{
        char name[NAME_MAX_LENGTH + 2];
        size_t length = strcspn(entry, "=");
        const char *nearest;

        for (size_t i = 0; i < OPTION_COUNT; i++) {
                const char *value = value_of(entry, options[i].name);

                if (!value)
                        continue;
                if (*value && !setters[i](config, value))
                        complain(warn, "%s=%s is not one of %s; using %s", options[i].name, value,
                                 options[i].values,
                                 *options[i].preset ? options[i].preset : "none");
                return;
        }

        if (length >= sizeof(name))
                length = sizeof(name) - 1;
        memcpy(name, entry, length);
        name[length] = '\0';
        nearest = sp_config_nearest(name);
        if (nearest)
                complain(warn, "%s is not an option; did you mean %s?", name, nearest);
        else
                complain(warn, "%s is not an option; STREAMPOOL_HELP=1 lists them", name);
}

/* The rank becomes part of a path, so it is digits only. */
static const char *read_rank(char *const *environment)
{
        static const char *const names[] = {
                "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                "MV2_COMM_WORLD_RANK",  "RANK",      "SLURM_PROCID",
        };

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                for (char *const *entry = environment; *entry; entry++) {
                        const char *value = value_of(*entry, names[i]);
                        const char *rank;

                        if (!value || !*value || value[strspn(value, "0123456789")])
                                continue;
                        if (strlen(value) < 12 && sp_parse_word(value, "", &rank))
                                return rank;
                }
        }
        return "0";
}

/* NO_COLOR is what programs have agreed on (no-color.org). */
static bool read_plain(char *const *environment)
{
        for (char *const *entry = environment; *entry; entry++) {
                const char *no_color = value_of(*entry, "NO_COLOR");
                const char *terminal = value_of(*entry, "TERM");

                if ((no_color && *no_color) || (terminal && strcmp(terminal, "dumb") == 0))
                        return true;
        }
        return false;
}

void sp_config_read(struct sp_config *config, char *const *environment,
                    void (*warn)(const char *message))
{
        *config = (struct sp_config){.rank = "0"};
#define SP_PRESET_FLAG(field, preset) (void)set_##field(config, preset);
#define SP_PRESET_SWITCH              SP_PRESET_FLAG
#define SP_PRESET_COUNT               SP_PRESET_FLAG
#define SP_PRESET_BYTES               SP_PRESET_FLAG
#define SP_PRESET_AMOUNT              SP_PRESET_FLAG
#define SP_PRESET_LIMITS              SP_PRESET_FLAG
#define SP_PRESET_SET                 SP_PRESET_FLAG
#define SP_PRESET_FRAMES              SP_PRESET_FLAG
#define SP_PRESET_TIME                SP_PRESET_FLAG
#define SP_PRESET_CHOICE              SP_PRESET_FLAG
/* Needs no copy, so that a word is never NULL. */
#define SP_PRESET_WORD(field, preset)                      config->field = preset;
#define SP_OPTION(kind, field, name, preset, values, help) SP_PRESET_##kind(field, preset)
#include "base/options.def"
#undef SP_OPTION

        for (char *const *entry = environment; *entry; entry++) {
                if (strncmp(*entry, PREFIX, strlen(PREFIX)) == 0)
                        read_entry(config, *entry, warn);
        }
        config->rank = read_rank(environment);
        config->is_plain = read_plain(environment);
}

/* Complaints wait here until the configuration, which says what is logged, is in force. */
static char complaint_bytes[COMPLAINTS_MAX];
static struct sp_text complaints;

static void keep_complaint(const char *message)
{
        sp_text_add(&complaints, "%s\n", message);
}

void sp_config_load(void)
{
        static char *const nothing[] = {NULL};
        char *line = complaint_bytes;

        if (is_loaded)
                return;
        is_loaded = true;
        sp_text_init(&complaints, complaint_bytes, sizeof(complaint_bytes));
        sp_config_read(&sp_config_loaded, getauxval(AT_SECURE) || !environ ? nothing : environ,
                       keep_complaint);
        while (*line) {
                int length = (int)strcspn(line, "\n");

                sp_log(SP_LOG_WARNING, "%.*s", length, line);
                line += length + (line[length] == '\n');
        }
}

bool sp_config_selects(const struct sp_config *config, const char *executable)
{
        const char *slash = strrchr(executable, '/');
        const char *base = slash ? slash + 1 : executable;
        const char *list = config->only;

        if (!list || !*list)
                return true;
        while (*list) {
                size_t length = strcspn(list, ",");

                if (length && length == strlen(base) && strncmp(base, list, length) == 0)
                        return true;
                list += length + (list[length] == ',');
        }
        return false;
}

/* help */

void sp_config_table(struct sp_text *text)
{
        sp_text_add(text, "streampool options (environment variables)\n");
        for (size_t i = 0; i < OPTION_COUNT; i++) {
                const struct sp_option *option = &options[i];

                sp_text_add(text, "  %s", option->name);
                sp_text_pad(text, 27);
                sp_text_add(text, "%s", option->values);
                if (*option->preset)
                        sp_text_add(text, "  (default %s)", option->preset);
                sp_text_add(text, "\n      %s\n", option->help);
        }
}

void sp_config_help(void)
{
        char bytes[SP_CONFIG_TABLE_MAX];
        struct sp_text text;

        sp_text_init(&text, bytes, sizeof(bytes));
        sp_config_table(&text);
        (void)sp_text_write(&text, STDERR_FILENO);
}
