/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layout text -- layouts from text
 *
 * The grammar is that of spm_layout_parse(). A reader goes over the text once, and stops at the
 * first mistake, which remembers its place. What is wrong with a shelf as a whole is found at the
 * end, so the reader remembers where each began.
 */

#include <string.h>
#include <streampool/model.h>

#include "layout.h"
#include "layout_words.h"

struct reader {
        const char *text;
        const char *at;
        struct spm_layout *layout;
        struct spm_layout_error *why;
        const char *starts[SPM_SHELVES_MAX];
};

/* words */

struct word {
        const char *start;
        size_t length;
};

static bool is_blank(char c)
{
        return c == ' ' || c == '\t' || c == '\r';
}

static bool ends_word(char c)
{
        return !c || c == ';' || c == ':' || c == ',' || c == '=' || c == '#' || c == '\n' ||
               is_blank(c);
}

/* Up to the end of the line, a comment included. */
static void skip_blanks(struct reader *reader)
{
        while (is_blank(*reader->at))
                reader->at++;
        if (*reader->at == '#')
                while (*reader->at && *reader->at != '\n')
                        reader->at++;
}

static void skip_lines(struct reader *reader)
{
        skip_blanks(reader);
        while (*reader->at == '\n') {
                reader->at++;
                skip_blanks(reader);
        }
}

/* Where a word has to come, it may come on a later line. Blanks behind it are passed over, too, but
 * not the end of the line, which ends a part of the list. */
static struct word next_word(struct reader *reader)
{
        struct word word;

        skip_lines(reader);
        word.start = reader->at;
        while (!ends_word(*reader->at))
                reader->at++;
        word.length = (size_t)(reader->at - word.start);
        skip_blanks(reader);
        return word;
}

static bool is(struct word word, const char *text)
{
        return strlen(text) == word.length && memcmp(word.start, text, word.length) == 0;
}

/* Return: the index, or @count. */
static unsigned int find(struct word word, const char *const *names, unsigned int count)
{
        unsigned int i = 0;

        while (i < count && !is(word, names[i]))
                i++;
        return i;
}

static bool take(struct reader *reader, char c)
{
        if (*reader->at != c)
                return false;
        reader->at++;
        return true;
}

/* A word that should name a field names none. */
static bool is_value(enum spm_layout_fault fault)
{
        return fault != SPM_LAYOUT_UNKNOWN_FIELD && fault != SPM_LAYOUT_MIXED;
}

/* A text of one line has no numbers of lines. */
static void set_line(const struct reader *reader, const char *at)
{
        const char *line = reader->text;
        const char *rest = at;
        unsigned int number = 1;
        const char *c;

        for (c = line; c < at; c++)
                if (*c == '\n') {
                        number++;
                        line = c + 1;
                }
        while (*rest && *rest != '\n')
                rest++;
        reader->why->line = number > 1 || *rest ? number : 0;
        reader->why->column = (size_t)(at - line) + 1;
}

static bool stop(const struct reader *reader, enum spm_layout_fault fault, struct word word)
{
        struct spm_layout_error *why = reader->why;
        size_t length = word.length ? word.length : *word.start != '\0';

        if (length >= sizeof(why->word))
                length = sizeof(why->word) - 1;
        why->fault = fault;
        why->field = is_value(fault) ? why->field : NULL;
        why->index = reader->layout->count;
        why->at = (size_t)(word.start - reader->text);
        set_line(reader, word.start);
        memcpy(why->word, word.start, length);
        why->word[length] = '\0';
        return false;
}

/* sizes */

static unsigned int shift_of(char unit)
{
        switch (unit) {
        case 'K':
        case 'k':
                return 10;
        case 'M':
        case 'm':
                return 20;
        case 'G':
        case 'g':
                return 30;
        case 'T':
        case 't':
                return 40;
        default:
                return 0;
        }
}

/* A whole number, and a unit that may be written 32M, 32MB or 32MiB. */
static bool read_size(const struct reader *reader, struct word word, uint64_t *size)
{
        size_t i = 0;
        uint64_t number = 0;
        unsigned int shift = 0;
        struct word rest;

        for (; i < word.length && word.start[i] >= '0' && word.start[i] <= '9'; i++) {
                unsigned int digit = (unsigned int)(word.start[i] - '0');

                if (number > (UINT64_MAX - digit) / 10)
                        return stop(reader, SPM_LAYOUT_BAD_SIZE, word);
                number = number * 10 + digit;
        }
        if (!i)
                return stop(reader, SPM_LAYOUT_BAD_SIZE, word);
        if (i < word.length)
                shift = shift_of(word.start[i]);
        i += shift != 0;
        rest = (struct word){word.start + i, word.length - i};
        if ((rest.length && !is(rest, "B") && !(shift && is(rest, "iB"))) ||
            number > UINT64_MAX >> shift)
                return stop(reader, SPM_LAYOUT_BAD_SIZE, word);
        *size = number << shift;
        return true;
}

/* fields */

/* @said: a bit a field, so that one that is said twice is noticed, whatever its value. */
static bool read_field(struct reader *reader, struct spm_shelf_config *shelf, unsigned int *said)
{
        struct word name = next_word(reader);
        unsigned int i = 0;
        uint64_t size;

        if (shelf->kind == SPM_SHELF_SLICED && is(name, "shrink")) {
                shelf->shrink = true;
                return true;
        }
        while (i < SPM_LAYOUT_FIELDS &&
               (spm_layout_fields[i].kind != shelf->kind || !is(name, spm_layout_fields[i].name)))
                i++;
        if (i == SPM_LAYOUT_FIELDS)
                return stop(reader, SPM_LAYOUT_UNKNOWN_FIELD, name);
        reader->why->field = spm_layout_fields[i].name;
        if (*said & 1u << i)
                return stop(reader, SPM_LAYOUT_TWICE, name);
        *said |= 1u << i;
        if (!take(reader, '='))
                return stop(reader, SPM_LAYOUT_BAD_SIZE, name);
        name = next_word(reader);
        if (!read_size(reader, name, &size))
                return false;
        if (!size && !spm_layout_fields[i].may_be_zero)
                return stop(reader, SPM_LAYOUT_ZERO_SIZE, name);
        *spm_layout_field_of(shelf, &spm_layout_fields[i]) = size;
        return true;
}

static bool read_shelf(struct reader *reader, enum spm_shelf_kind kind, struct word word)
{
        struct spm_shelf_config shelf = {.kind = kind};
        unsigned int said = 0;

        if (reader->layout->preset)
                return stop(reader, SPM_LAYOUT_MIXED, word);
        if (reader->layout->count == SPM_SHELVES_MAX) {
                reader->why->value = SPM_SHELVES_MAX + 1;
                reader->why->limit = SPM_SHELVES_MAX;
                return stop(reader, SPM_LAYOUT_TOO_MANY_POOLS, word);
        }
        if (take(reader, ':'))
                do {
                        if (!read_field(reader, &shelf, &said))
                                return false;
                } while (take(reader, ','));
        reader->starts[reader->layout->count] = word.start;
        reader->layout->shelves[reader->layout->count++] = shelf;
        return true;
}

static bool read_preset(struct reader *reader, enum spm_preset preset, struct word word)
{
        enum spm_persistent persistent = reader->layout->persistent;
        uint64_t max = SPM_PRESET_MAX;

        if (reader->layout->count)
                return stop(reader, SPM_LAYOUT_MIXED, word);
        if (take(reader, '=') && !read_size(reader, next_word(reader), &max))
                return false;
        if (spm_layout_preset(preset, max, reader->layout, reader->why)) {
                set_line(reader, word.start);
                return false;
        }
        reader->layout->persistent = persistent;
        return true;
}

static bool read_persistent(struct reader *reader, bool *said)
{
        struct word word = next_word(reader);
        unsigned int which = find(word, spm_layout_persistents, SPM_PERSISTENT_ENFORCED + 1);

        reader->why->field = "persistent";
        if (*said)
                return stop(reader, SPM_LAYOUT_TWICE, word);
        if (which > SPM_PERSISTENT_ENFORCED)
                return stop(reader, SPM_LAYOUT_UNKNOWN_WORD, word);
        reader->layout->persistent = (enum spm_persistent)which;
        *said = true;
        return true;
}

static bool read_part(struct reader *reader, bool *said)
{
        struct word word = next_word(reader);
        unsigned int kind = find(word, spm_layout_kinds, SPM_SHELF_DIRECT + 1);

        if (is(word, "persistent") && take(reader, '='))
                return read_persistent(reader, said);
        if (is(word, "subslices"))
                return read_preset(reader, SPM_PRESET_SUBSLICES, word);
        if (kind == SPM_SHELF_EXCLUSIVE && *reader->at != ':')
                return read_preset(reader, SPM_PRESET_EXCLUSIVE, word);
        if (kind <= SPM_SHELF_DIRECT)
                return read_shelf(reader, (enum spm_shelf_kind)kind, word);
        return stop(reader, SPM_LAYOUT_UNKNOWN_WORD, word);
}

/* A semicolon may end the text, and the end of a line is as good as one. */
static bool read_all(struct reader *reader)
{
        bool said = false;

        do {
                skip_lines(reader);
                reader->why->field = NULL;
                if (!*reader->at)
                        return true;
                if (!read_part(reader, &said))
                        return false;
        } while (take(reader, ';') || take(reader, '\n'));
        if (*reader->at)
                return stop(reader, SPM_LAYOUT_UNKNOWN_WORD, (struct word){reader->at, 0});
        return true;
}

enum spm_status spm_layout_parse(const char *text, struct spm_layout *layout,
                                 struct spm_layout_error *error)
{
        struct spm_layout read = {0};
        struct spm_layout_error why = {0};
        struct reader reader = {.text = text, .at = text, .layout = &read, .why = &why};

        if (!read_all(&reader))
                return spm_layout_refuse(error, &why);
        if (spm_layout_check(&read, &why)) {
                if (why.fault != SPM_LAYOUT_EMPTY_POOL_LIST && !read.preset)
                        set_line(&reader, reader.starts[why.index]);
                return spm_layout_refuse(error, &why);
        }
        memcpy(layout, &read, sizeof(*layout));
        return SPM_OK;
}
