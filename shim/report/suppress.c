/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Suppress -- which findings does the user not want to hear of?
 *
 * How the file is read. Rules keep no copies: they point into its text, which
 * stays where it is for as long as the process.
 */

#define _GNU_SOURCE

#include "report/suppress.h"

#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include "base/config.h"
#include "base/file.h"
#include "base/log.h"

/* On pages of its own. */
struct desk {
        struct sp_rules rules;
        char text[SP_FILE_MAX + 1];
};

/* Written once, before findings are made. */
static const struct sp_rules *rules_in_force;

/* kinds of findings */

static const char *finding_name(unsigned int finding)
{
        return finding == SP_FINDING_LEAK ? "leak" : sp_finding_name((enum sp_finding_kind)finding);
}

/* The report's JSON writes double_free, people write double-free. */
static char dashed(char c)
{
        if (c == '_')
                c = '-';
        return c;
}

void sp_finding_word(struct sp_text *text, unsigned int finding)
{
        for (const char *name = finding_name(finding); *name; name++)
                sp_text_add(text, "%c", dashed(*name));
}

void sp_finding_words(struct sp_text *text, bool with_leak)
{
        for (unsigned int i = 0; i < SP_FINDING_COUNT; i++) {
                sp_finding_word(text, i);
                sp_text_add(text, "|");
        }
        sp_text_add(text, with_leak ? "leak|any" : "any");
}

static bool is_word(struct sp_span span, const char *word)
{
        if (span.length != strlen(word))
                return false;
        for (size_t i = 0; i < span.length; i++) {
                if (dashed(span.start[i]) != dashed(word[i]))
                        return false;
        }
        return true;
}

bool sp_findings_named(struct sp_span word, unsigned int *findings)
{
        if (is_word(word, "any")) {
                *findings = (2u << SP_FINDING_LEAK) - 1;
                return true;
        }
        for (unsigned int i = 0; i <= SP_FINDING_LEAK; i++) {
                if (is_word(word, finding_name(i))) {
                        *findings = 1u << i;
                        return true;
                }
        }
        return false;
}

/* lines */

struct reader {
        struct sp_rules *rules;
        void (*warn)(const char *message);
        unsigned int line;
        bool is_full; /* and it was said */
};

static void complain(const struct reader *reader, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

static void complain(const struct reader *reader, const char *format, ...)
{
        char bytes[SP_LOG_MAX];
        struct sp_text text;
        va_list list;

        sp_text_init(&text, bytes, sizeof(bytes));
        sp_text_add(&text, "%s:%u: ", reader->rules->path, reader->line);
        va_start(list, format);
        sp_text_add_list(&text, format, list);
        va_end(list);
        reader->warn(bytes);
}

/* What is not text would reach a terminal with the complaint or the report. */
static bool is_printable(const char *line, const char *end)
{
        for (; line < end; line++) {
                if (((unsigned char)*line < 0x20 && *line != '\t') || *line == 0x7f)
                        return false;
        }
        return true;
}

/* @end is overwritten: the report shows a rule as it stands there, without the newline. */
static void read_line(struct reader *reader, char *line, char *end)
{
        struct sp_rules *rules = reader->rules;
        struct sp_rule *rule = &rules->rule[rules->count];
        char bytes[SP_LOG_MAX];
        struct sp_text why;

        while (end > line && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
                end--;
        *end = '\0';
        while (*line == ' ' || *line == '\t')
                line++;
        if (line == end || *line == '#')
                return;
        if (!is_printable(line, end)) {
                complain(reader, "the line is no text");
        } else if (rules->count < SP_RULES_MAX) {
                sp_text_init(&why, bytes, sizeof(bytes));
                if (!sp_rule_read(line, rule, &why)) {
                        complain(reader, "%s", bytes);
                        return;
                }
                rule->line = reader->line;
                rules->count++;
        } else if (!reader->is_full) {
                complain(reader, "there are %d rules before; this and all that follow are left out",
                         SP_RULES_MAX);
                reader->is_full = true;
        }
}

void sp_rules_parse(struct sp_rules *rules, const char *path, char *text, size_t length,
                    void (*warn)(const char *message))
{
        struct reader reader = {.rules = rules, .warn = warn};
        char *end = text + length;

        rules->path = path;
        rules->count = 0;
        while (text < end) {
                char *newline = memchr(text, '\n', (size_t)(end - text));
                char *stop = newline ? newline : end;

                reader.line++;
                read_line(&reader, text, stop);
                text = stop + 1;
        }
}

/* the file */

static void warn_of_line(const char *message)
{
        sp_log(SP_LOG_WARNING, "%s; the line is left out", message);
}

void sp_suppress_start(void)
{
        const char *path = sp_config()->suppress;
        const char *why = "there is no memory for it";
        struct desk *desk;
        size_t length = 0;

        if (!path || !*path)
                return;
        desk = mmap(NULL, sizeof(*desk), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (desk != MAP_FAILED)
                why = sp_file_read(path, desk->text, &length);
        if (why) {
                sp_log(SP_LOG_ERROR, "STREAMPOOL_SUPPRESS=%s cannot be read: %s", path, why);
                if (desk != MAP_FAILED)
                        munmap(desk, sizeof(*desk));
                return;
        }
        sp_rules_parse(&desk->rules, path, desk->text, length, warn_of_line);
        rules_in_force = &desk->rules;
        sp_log(SP_LOG_INFO, "%zu suppressions of %s", desk->rules.count, path);
}

const struct sp_rules *sp_suppress_rules(void)
{
        return rules_in_force;
}
