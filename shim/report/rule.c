/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Rule -- what does one line of a file of suppressions say?
 *
 * Which words it may have. Whoever writes one wrongly is told which would do.
 */

#include "report/suppress.h"

#include <string.h>

#include "base/parse.h"

#define BLANKS     " \t"
#define LENGTH_MAX 60 /* of a word that is repeated in a complaint */

enum key { FUNCTION, LIBRARY, SOURCE, KIND, SIZE, COUNT, DEVICE, KEYS };

static const struct {
        const char *name;
        const char *values;
} keys[KEYS] = {
        [FUNCTION] = {"function", "a pattern"},
        [LIBRARY] = {"library", "a pattern"},
        [SOURCE] = {"source", "a pattern"},
        [KIND] = {"kind", NULL}, /* sp_kind_name() has them */
        [SIZE] = {"size", "8, 8-4096, 1K-, -2M"},
        [COUNT] = {"count", "3, -3, 2-5, 10-"},
        [DEVICE] = {"device", "0-9999"},
};

static int shown(struct sp_span word)
{
        return word.length < LENGTH_MAX ? (int)word.length : LENGTH_MAX;
}

/* For the parsers of base/, which end at a NUL. */
static bool copy_word(struct sp_span word, char *copy, size_t size)
{
        if (word.length == 0 || word.length >= size)
                return false;
        memcpy(copy, word.start, word.length);
        copy[word.length] = '\0';
        return true;
}

static bool read_range(struct sp_span value, bool is_lone_at_most, struct sp_between *range)
{
        char copy[64];

        return copy_word(value, copy, sizeof(copy)) &&
               sp_parse_between(copy, is_lone_at_most, range);
}

static bool read_kind(struct sp_span value, int *kind)
{
        for (int i = 0; i < SP_KIND_COUNT; i++) {
                const char *name = sp_kind_name((enum sp_kind)i);

                if (strlen(name) == value.length && memcmp(name, value.start, value.length) == 0) {
                        *kind = i;
                        return true;
                }
        }
        return false;
}

static bool read_device(struct sp_span value, int *device)
{
        char copy[8];
        unsigned int number;

        if (!copy_word(value, copy, sizeof(copy)) ||
            !sp_parse_count(copy, keys[DEVICE].values, &number))
                return false;
        *device = (int)number;
        return true;
}

static bool read_pattern(struct sp_span value, struct sp_span *pattern)
{
        *pattern = value;
        return value.length > 0;
}

/* What is wrong with a value need not be said: the caller shows what the key takes. */
static bool read_value(enum key key, struct sp_span value, struct sp_rule *rule)
{
        switch (key) {
        case FUNCTION:
                return read_pattern(value, &rule->function);
        case LIBRARY:
                return read_pattern(value, &rule->library);
        case SOURCE:
                return read_pattern(value, &rule->source);
        case KIND:
                return read_kind(value, &rule->kind);
        case SIZE:
                rule->has_size = true;
                return read_range(value, false, &rule->size);
        case COUNT:
                /* Fewer will do as well. */
                return read_range(value, true, &rule->count);
        case DEVICE:
                return read_device(value, &rule->device);
        case KEYS:
                break;
        }
        return false;
}

/* Complaints name the word and those that would do, as those of config.c. */
static void complain_of_key(struct sp_span word, struct sp_text *why)
{
        sp_text_add(why, "%.*s does not begin with one of ", shown(word), word.start);
        for (unsigned int i = 0; i < KEYS; i++)
                sp_text_add(why, "%s%s=", i ? "|" : "", keys[i].name);
}

static void complain_of_value(enum key key, struct sp_span word, struct sp_text *why)
{
        sp_text_add(why, "%.*s is not ", shown(word), word.start);
        if (keys[key].values)
                sp_text_add(why, "like %s=%s", keys[key].name, keys[key].values);
        else
                sp_text_add(why, "one of %s=", keys[key].name);
        for (unsigned int i = 0; !keys[key].values && i < SP_KIND_COUNT; i++)
                sp_text_add(why, "%s%s", i ? "|" : "", sp_kind_name((enum sp_kind)i));
}

/* One word, key=value. @given: bit n if key n was there before. */
static bool read_word(struct sp_span word, unsigned int *given, struct sp_rule *rule,
                      struct sp_text *why)
{
        for (enum key key = 0; key < KEYS; key++) {
                size_t length = strlen(keys[key].name);
                struct sp_span value;

                if (word.length <= length || word.start[length] != '=' ||
                    strncmp(word.start, keys[key].name, length) != 0)
                        continue;
                value = (struct sp_span){word.start + length + 1, word.length - length - 1};
                if (*given >> key & 1) {
                        sp_text_add(why, "%s= is there twice", keys[key].name);
                        return false;
                }
                *given |= 1u << key;
                if (read_value(key, value, rule))
                        return true;
                complain_of_value(key, word, why);
                return false;
        }
        complain_of_key(word, why);
        return false;
}

/* Is it key=value, or a pattern? In C++ there are functions called operator= and operator==. */
static bool is_keyed(const char *rest)
{
        size_t length = strspn(rest, "abcdefghijklmnopqrstuvwxyz_");

        return length && rest[length] == '=' && strncmp(rest, "operator", length) != 0;
}

/* A pattern goes to the end of the line: names of C++ functions have blanks. In key=value a blank
 * ends the value, where a star can stand for it. */
static bool read_rest(const char *rest, struct sp_rule *rule, struct sp_text *why)
{
        unsigned int given = 0;

        if (!is_keyed(rest)) {
                rule->anywhere = (struct sp_span){rest, strlen(rest)};
                return true;
        }
        while (*rest) {
                struct sp_span word = {rest, strcspn(rest, BLANKS)};

                if (!read_word(word, &given, rule, why))
                        return false;
                rest += word.length;
                rest += strspn(rest, BLANKS);
        }
        return true;
}

bool sp_rule_read(const char *line, struct sp_rule *rule, struct sp_text *why)
{
        struct sp_rule read = {
                .text = line, .kind = -1, .device = -1, .count = {.high = UINT64_MAX}};
        struct sp_span word = {line, strcspn(line, ":" BLANKS)};
        const char *rest = line + word.length;

        if (!sp_findings_named(word, &read.findings)) {
                sp_text_add(why, "%.*s is not one of ", shown(word), line);
                sp_finding_words(why, true);
                return false;
        }
        rest += strspn(rest, BLANKS);
        if (*rest != ':') {
                sp_text_add(why, "there is no colon after %.*s", shown(word), line);
                return false;
        }
        rest += 1 + strspn(rest + 1, BLANKS);
        if (!*rest) {
                sp_text_add(why, "there is nothing after %.*s:, neither a pattern nor key=value",
                            shown(word), line);
                return false;
        }
        if (!read_rest(rest, &read, why))
                return false;
        *rule = read;
        return true;
}
