/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layout text -- layouts from text and to text
 *
 * The grammar is that of spm_layout_parse(). A reader goes over the text once, and stops at the
 * first mistake, which remembers its place.
 */

#include <string.h>
#include <streampool/model.h>

#include "layout.h"
#include "text.h"

struct reader {
        const char *text;
        const char *at;
        struct spm_layout *layout;
        struct spm_layout_error *why;
};

static const char *const persistents[] = {"enabled", "size-match", "disabled", "enforced"};
static const char *const kinds[] = {"sliced", "exclusive", "direct"};

/* words */

struct word {
        const char *start;
        size_t length;
};

static bool is_blank(char c)
{
        return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool ends_word(char c)
{
        return !c || c == ';' || c == ':' || c == ',' || c == '=' || is_blank(c);
}

static void skip_blanks(struct reader *reader)
{
        while (is_blank(*reader->at))
                reader->at++;
}

/* Blanks behind it are passed over, too. */
static struct word next_word(struct reader *reader)
{
        struct word word;

        skip_blanks(reader);
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

struct field {
        const char *name;
        enum spm_shelf_kind kind;
        size_t offset; /* in struct spm_shelf_config */
        bool may_be_zero;
};

static const struct field fields[] = {
        {"page", SPM_SHELF_SLICED, offsetof(struct spm_shelf_config, page), false},
        {"slice", SPM_SHELF_SLICED, offsetof(struct spm_shelf_config, slice), false},
        {"cap", SPM_SHELF_SLICED, offsetof(struct spm_shelf_config, cap), false},
        {"max", SPM_SHELF_EXCLUSIVE, offsetof(struct spm_shelf_config, max), false},
        {"period", SPM_SHELF_EXCLUSIVE, offsetof(struct spm_shelf_config, period), true},
        {"reclaim", SPM_SHELF_DIRECT, offsetof(struct spm_shelf_config, reclaim), false},
};

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static uint64_t *field_of(struct spm_shelf_config *shelf, const struct field *field)
{
        return (uint64_t *)(void *)((char *)shelf + field->offset);
}

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
        while (i < FIELDS && (fields[i].kind != shelf->kind || !is(name, fields[i].name)))
                i++;
        if (i == FIELDS)
                return stop(reader, SPM_LAYOUT_UNKNOWN_FIELD, name);
        reader->why->field = fields[i].name;
        if (*said & 1u << i)
                return stop(reader, SPM_LAYOUT_TWICE, name);
        *said |= 1u << i;
        if (!take(reader, '='))
                return stop(reader, SPM_LAYOUT_BAD_SIZE, name);
        name = next_word(reader);
        if (!read_size(reader, name, &size))
                return false;
        if (!size && !fields[i].may_be_zero)
                return stop(reader, SPM_LAYOUT_ZERO_SIZE, name);
        *field_of(shelf, &fields[i]) = size;
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
        if (spm_layout_preset(preset, max, reader->layout, reader->why))
                return false;
        reader->layout->persistent = persistent;
        return true;
}

static bool read_persistent(struct reader *reader, bool *said)
{
        struct word word = next_word(reader);
        unsigned int which = find(word, persistents, SPM_PERSISTENT_ENFORCED + 1);

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
        unsigned int kind = find(word, kinds, SPM_SHELF_DIRECT + 1);

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

/* A semicolon may end the text. */
static bool read_all(struct reader *reader)
{
        bool said = false;

        do {
                skip_blanks(reader);
                reader->why->field = NULL;
                if (!*reader->at)
                        return true;
                if (!read_part(reader, &said))
                        return false;
        } while (take(reader, ';'));
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
        if (spm_layout_check(&read, &why))
                return spm_layout_refuse(error, &why);
        memcpy(layout, &read, sizeof(*layout));
        return SPM_OK;
}

/* printing */

static void add_size(struct spm_text *text, uint64_t size)
{
        static const char *const units[] = {"", "K", "M", "G", "T"};
        unsigned int unit = 0;

        while (size && size % 1024 == 0 && unit < 4) {
                size /= 1024;
                unit++;
        }
        spm_text_number(text, size);
        spm_text_add(text, units[unit]);
}

static void add_shelf(struct spm_text *text, struct spm_shelf_config shelf)
{
        const char *before = ":";
        unsigned int i;

        spm_text_add(text, kinds[shelf.kind]);
        for (i = 0; i < FIELDS; i++) {
                uint64_t value = *field_of(&shelf, &fields[i]);

                if (fields[i].kind != shelf.kind || !value)
                        continue;
                spm_text_add(text, before);
                spm_text_add(text, fields[i].name);
                spm_text_add(text, "=");
                if (fields[i].may_be_zero)
                        spm_text_number(text, value);
                else
                        add_size(text, value);
                before = ",";
        }
        if (shelf.kind == SPM_SHELF_SLICED && shelf.shrink)
                spm_text_add(text, ",shrink");
}

static const char *preset_of(const struct spm_layout *layout)
{
        switch (layout->preset) {
        case SPM_PRESET_SUBSLICES:
                return "subslices=";
        case SPM_PRESET_EXCLUSIVE:
                return "exclusive=";
        case SPM_PRESET_NONE:
                break;
        }
        return NULL;
}

bool spm_layout_print(const struct spm_layout *layout, char *buffer, size_t size)
{
        const char *preset = preset_of(layout);
        struct spm_text text;
        unsigned int i;

        spm_text_start(&text, buffer, size);
        if (preset) {
                spm_text_add(&text, preset);
                add_size(&text, layout->preset_max);
        }
        for (i = 0; i < layout->count && !preset; i++) {
                if (i)
                        spm_text_add(&text, ";");
                add_shelf(&text, layout->shelves[i]);
        }
        if (layout->persistent) {
                spm_text_add(&text, ";persistent=");
                spm_text_add(&text, persistents[layout->persistent]);
        }
        return text.used + 1 < size;
}
