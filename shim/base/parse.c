/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Parse -- what does the text of an option say?
 *
 * Numbers are read by hand: strtod() and its like take the decimal point of the
 * program's locale, and none of them says that a number was too large in a way
 * that leaves errno alone.
 */

#include "base/parse.h"

#include <string.h>
#include <strings.h>

bool sp_parse_flag(const char *text, const char *values, bool *flag)
{
        static const char *const words[] = {"0", "1", "no", "yes", "off", "on", "false", "true"};

        (void)values;
        for (unsigned int i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
                if (strcasecmp(text, words[i]) == 0) {
                        *flag = i % 2;
                        return true;
                }
        }
        return false;
}

bool sp_parse_switch(const char *text, const char *values, enum sp_switch *position)
{
        bool on = false;

        if (*text && !sp_parse_flag(text, values, &on))
                return false;
        *position = !*text ? SP_SWITCH_UNSET : on ? SP_SWITCH_ON : SP_SWITCH_OFF;
        return true;
}

/* Digits up to the first other character; @rest points there. */
static bool read_number(const char *text, const char **rest, uint64_t *number)
{
        uint64_t sum = 0;

        if (*text < '0' || *text > '9')
                return false;
        for (; *text >= '0' && *text <= '9'; text++) {
                if (__builtin_mul_overflow(sum, 10, &sum) ||
                    __builtin_add_overflow(sum, (uint64_t)(*text - '0'), &sum))
                        return false;
        }
        *rest = text;
        *number = sum;
        return true;
}

bool sp_parse_count(const char *text, const char *values, unsigned int *count)
{
        uint64_t low;
        uint64_t high;
        uint64_t number;

        if (!read_number(values, &values, &low) || *values++ != '-' ||
            !read_number(values, &values, &high))
                return false;
        if (!read_number(text, &text, &number) || *text || number < low || number > high)
                return false;
        *count = (unsigned int)number;
        return true;
}

/* A number in thousandths: "12", "1.5", "0.125". */
static bool read_thousandths(const char *text, const char **rest, uint64_t *thousandths)
{
        uint64_t number;
        unsigned int weight = 1000;

        if (!read_number(text, &text, &number) || __builtin_mul_overflow(number, 1000, &number))
                return false;
        if (*text == '.') {
                if (text[1] < '0' || text[1] > '9')
                        return false;
                for (text++; *text >= '0' && *text <= '9'; text++) {
                        weight /= 10;
                        if (weight == 0)
                                return false;
                        if (__builtin_add_overflow(number, (uint64_t)(*text - '0') * weight,
                                                   &number))
                                return false;
                }
        }
        *rest = text;
        *thousandths = number;
        return true;
}

/* The factor of "", "K", "KB", "KiB" and so on; 0 if it is no unit. */
static uint64_t unit_factor(const char *unit)
{
        static const char letters[] = "KMGT";
        const char *letter;

        if (!*unit || strcasecmp(unit, "B") == 0)
                return 1;
        letter = strchr(letters, *unit & ~0x20);
        /* What a space becomes is found too, at the end. */
        if (!letter || !*letter)
                return 0;
        unit++;
        if (*unit && strcasecmp(unit, "B") != 0 && strcasecmp(unit, "iB") != 0)
                return 0;
        return 1ULL << (10 * (letter - letters + 1));
}

/* A number with a unit, of which the number without one is so many. */
static bool read_quantity(const char *text, uint64_t (*factor_of)(const char *unit),
                          uint64_t *quantity)
{
        unsigned __int128 product;
        uint64_t thousandths;
        uint64_t factor;

        if (!read_thousandths(text, &text, &thousandths))
                return false;
        factor = factor_of(text);
        product = (unsigned __int128)thousandths * factor / 1000;
        if (factor == 0 || product > UINT64_MAX)
                return false;
        *quantity = (uint64_t)product;
        return true;
}

bool sp_parse_bytes(const char *text, const char *values, uint64_t *bytes)
{
        (void)values;
        return read_quantity(text, unit_factor, bytes);
}

/* In nanoseconds; 0 if it is no unit. */
static uint64_t time_factor(const char *unit)
{
        static const struct {
                const char *unit;
                uint64_t factor;
        } rows[] = {
                {"", 1000000},        {"ms", 1000000},      {"s", 1000000000},
                {"min", 60000000000}, {"h", 3600000000000},
        };

        for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                if (strcasecmp(unit, rows[i].unit) == 0)
                        return rows[i].factor;
        return 0;
}

bool sp_parse_time(const char *text, const char *values, uint64_t *time)
{
        (void)values;
        return read_quantity(text, time_factor, time);
}

bool sp_parse_amount(const char *text, const char *values, struct sp_amount *amount)
{
        const char *rest;
        uint64_t thousandths;
        uint64_t bytes;

        if (read_thousandths(text, &rest, &thousandths) && strcmp(rest, "%") == 0) {
                if (thousandths > 100000)
                        return false;
                *amount = (struct sp_amount){.share = (unsigned int)thousandths, .is_given = true};
                return true;
        }
        if (!sp_parse_bytes(text, values, &bytes))
                return false;
        *amount = (struct sp_amount){.bytes = bytes, .is_given = true};
        return true;
}

/* "3:16G" or "16G". */
static bool parse_one_of(const char *text, const char *values, struct sp_limits *limits,
                         bool *has_others)
{
        const char *rest;
        uint64_t device;

        if (!read_number(text, &rest, &device) || *rest != ':') {
                bool first = !*has_others;

                *has_others = true;
                return first && sp_parse_amount(text, values, &limits->others);
        }
        if (device >= SP_LIMITS || limits->named >> device & 1)
                return false;
        limits->named |= 1ULL << device;
        return sp_parse_amount(rest + 1, values, &limits->device[device]);
}

bool sp_parse_limits(const char *text, const char *values, struct sp_limits *limits)
{
        struct sp_limits read = {0};
        bool has_others = false;

        for (;;) {
                size_t length = strcspn(text, ",");
                char one[64];

                if (length >= sizeof(one))
                        return false;
                memcpy(one, text, length);
                one[length] = '\0';
                if (!parse_one_of(one, values, &read, &has_others))
                        return false;
                if (!text[length])
                        break;
                text += length + 1;
        }
        *limits = read;
        return true;
}

bool sp_parse_between(const char *text, bool is_lone_at_most, struct sp_between *between)
{
        struct sp_between read = {.low = 0, .high = UINT64_MAX};
        size_t length = strcspn(text, "-");
        const char *high = text[length] ? text + length + 1 : text;
        char low[64];

        if (length >= sizeof(low))
                return false;
        memcpy(low, text, length);
        low[length] = '\0';
        if (!text[length] && is_lone_at_most)
                low[0] = '\0';
        if (!low[0] && !*high)
                return false;
        if ((low[0] && !sp_parse_bytes(low, "", &read.low)) ||
            (*high && !sp_parse_bytes(high, "", &read.high)) || read.low > read.high)
                return false;
        *between = read;
        return true;
}

static bool parse_frames_word(const char *word, struct sp_frames *frames)
{
        static const char *const sorts[] = {"off", "python", "native", "both"};

        for (unsigned int i = 0; i < 4; i++)
                if (strcasecmp(word, sorts[i]) == 0) {
                        frames->python = i & 1;
                        frames->native = i & 2;
                        return true;
                }
        return false;
}

bool sp_parse_frames(const char *text, const char *values, struct sp_frames *frames)
{
        struct sp_frames read = {.python = true, .native = true, .count = SP_FRAMES_USUAL};
        size_t length = strcspn(text, ",");
        const char *number = text;
        const char *rest;
        uint64_t count;
        char word[8];

        (void)values;
        if (length < sizeof(word)) {
                memcpy(word, text, length);
                word[length] = '\0';
                if (parse_frames_word(word, &read))
                        number = text[length] ? text + length + 1 : NULL;
        }
        if (number) {
                if (!read_number(number, &rest, &count) || *rest || !count || count > SP_FRAMES_MAX)
                        return false;
                read.count = (unsigned int)count;
        }
        *frames = read;
        return true;
}

bool sp_parse_choice(const char *text, const char *values, unsigned int *choice)
{
        size_t length = strlen(text);

        for (unsigned int index = 0;; index++) {
                /* A list may have more of them behind a comma. */
                size_t word = strcspn(values, "|,");

                if (word == length && strncasecmp(text, values, word) == 0) {
                        *choice = index;
                        return true;
                }
                if (values[word] != '|')
                        return false;
                values += word + 1;
        }
}

bool sp_parse_set(const char *text, const char *values, unsigned int *set)
{
        unsigned int read = 0;

        while (*text) {
                size_t length = strcspn(text, ",");
                unsigned int choice;
                char word[32];

                if (length >= sizeof(word))
                        return false;
                memcpy(word, text, length);
                word[length] = '\0';
                if (!sp_parse_choice(word, values, &choice))
                        return false;
                read |= 1u << choice;
                text += length + (text[length] == ',');
        }
        *set = read;
        return true;
}

bool sp_parse_word(const char *text, const char *values, const char **word)
{
        char *copy = strdup(text);

        (void)values;
        if (!copy)
                return false;
        *word = copy;
        return true;
}

uint64_t sp_amount_bytes(struct sp_amount amount, uint64_t total)
{
        if (amount.share == 0)
                return amount.bytes;
        return (uint64_t)((unsigned __int128)total * amount.share / 100000);
}

struct sp_amount sp_limits_of(const struct sp_limits *limits, unsigned int device)
{
        if (device < SP_LIMITS && limits->named >> device & 1)
                return limits->device[device];
        return limits->others;
}
