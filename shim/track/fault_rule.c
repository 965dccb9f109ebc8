/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fault rule -- which allocations are to fail, and how?
 *
 * One row a condition: its name, who reads its value, and what a person is told
 * who wrote something else. A text is read twice, first to see whether all of it
 * is right: half of what was asked for would be a test that seems to pass.
 *
 * Chance has no state. The number that decides on a call is mixed from the seed
 * and the call's own number (splitmix64), so it does not depend on which thread
 * made it, nor on what other rules did.
 */

#include "track/fault_rule.h"

#include <string.h>
#include <strings.h>

#include "base/parse.h"
#include "base/pattern.h"
#include "track/result.h"

#define RULE_END      ";"
#define CONDITION_END ","
#define COUNT_VALUES  "1-4294967295"
#define OUT_OF_MEMORY 2 /* of CUresult (cuda.h) */
#define DIGITS_MAX    18
#define WHY_MAX       360

/*
 * reading: values
 *
 * Each is written on success only, as the parsers of base/parse.h do. Whether two
 * of them go together is asked when all are there.
 */

static bool read_nth(const char *text, struct sp_fault_rule *rule)
{
        return sp_parse_count(text, COUNT_VALUES, &rule->nth);
}

static bool read_every(const char *text, struct sp_fault_rule *rule)
{
        return sp_parse_count(text, COUNT_VALUES, &rule->every);
}

static bool read_after(const char *text, struct sp_fault_rule *rule)
{
        return sp_parse_count(text, "0-4294967295", &rule->after);
}

static bool read_times(const char *text, struct sp_fault_rule *rule)
{
        return sp_parse_count(text, COUNT_VALUES, &rule->times);
}

static bool read_seed(const char *text, struct sp_fault_rule *rule)
{
        return sp_parse_count(text, "0-4294967295", &rule->seed);
}

/*
 * "1", "0.01" or ".01", by hand for the reason that base/parse.c gives. A share of
 * all numbers of 64 bits, so that what decides on a call is one comparison, and the
 * same on every machine; so many digits keep the product within 128 bits.
 */
static bool read_chance(const char *text, struct sp_fault_rule *rule)
{
        uint64_t numerator = 0, denominator = 1;
        const char *point = strchr(text, '.');
        unsigned int digits = 0;
        unsigned __int128 share;

        for (; *text; text++) {
                if (text == point)
                        continue;
                if (*text < '0' || *text > '9' || ++digits > DIGITS_MAX)
                        return false;
                numerator = numerator * 10 + (uint64_t)(*text - '0');
                if (point && text > point)
                        denominator *= 10;
        }
        if (numerator == 0 || numerator > denominator)
                return false;
        share = ((unsigned __int128)numerator << 64) / denominator;
        rule->chance = share > UINT64_MAX ? UINT64_MAX : (uint64_t)share;
        return true;
}

/* The part of a list up to one of @ends; false if it is longer than what a rule can be. */
static bool cut_off(const char **list, const char *ends, char part[SP_FAULT_WORDS])
{
        size_t length = strcspn(*list, ends);

        if (length >= SP_FAULT_WORDS)
                return false;
        memcpy(part, *list, length);
        part[length] = '\0';
        *list += length;
        return true;
}

static bool read_size(const char *text, struct sp_fault_rule *rule)
{
        return sp_parse_between(text, false, &rule->size);
}

/* By the names of the report, from which a person copies them. */
static bool read_kind(const char *text, struct sp_fault_rule *rule)
{
        unsigned int kinds = 0;
        char name[SP_FAULT_WORDS];

        for (;;) {
                unsigned int kind = 0;

                if (!cut_off(&text, "+", name))
                        return false;
                while (kind < SP_KIND_COUNT && strcasecmp(name, sp_kind_name(kind)) != 0)
                        kind++;
                if (kind == SP_KIND_COUNT)
                        return false;
                kinds |= 1U << kind;
                if (!*text)
                        break;
                text++;
        }
        rule->kinds = kinds;
        return true;
}

static bool read_site(const char *text, struct sp_fault_rule *rule)
{
        return *text && cut_off(&text, "", rule->site);
}

/* A driver may be newer than our names: any number will do, but that of success, which is none. */
static bool read_error(const char *text, struct sp_fault_rule *rule)
{
        unsigned int number;

        if (sp_result_named(text, &rule->error))
                return true;
        if (!sp_parse_count(text, "1-999999", &number))
                return false;
        rule->error = (int)number;
        return true;
}

/* reading: conditions */

static const struct condition {
        const char *name;
        bool (*read)(const char *text, struct sp_fault_rule *rule);
        const char *wanted;
} conditions[SP_FAULT_WORD_COUNT] = {
        [SP_FAULT_NTH] = {"nth", read_nth, "a whole number from 1"},
        [SP_FAULT_EVERY] = {"every", read_every, "a whole number from 1"},
        [SP_FAULT_P] = {"p", read_chance, "a share above 0 and up to 1, as 0.01"},
        [SP_FAULT_SEED] = {"seed", read_seed, "a whole number up to 4294967295"},
        [SP_FAULT_AFTER] = {"after", read_after, "a whole number"},
        [SP_FAULT_TIMES] = {"times", read_times, "a whole number from 1"},
        [SP_FAULT_SIZE] = {"size", read_size, "a size or a range, as 8, 4K-1M, 1M- or -2M"},
        [SP_FAULT_KIND] = {"kind", read_kind,
                           "device, async, pitch, managed, array, mipmap, vmm, pinned, registered, "
                           "imported, shared or mapped, or several of them with +"},
        [SP_FAULT_SITE] = {"site", read_site, "a part of a file's or function's name"},
        [SP_FAULT_ERROR] = {"error", read_error,
                            "a number from 1 or a name of cuda.h, as 2, out_of_memory or "
                            "CUDA_ERROR_UNKNOWN"},
};

static void complain_of_name(const char *name, struct sp_text *complaint)
{
        sp_text_add(complaint, "%s is none of", name);
        for (unsigned int i = 0; i < SP_FAULT_WORD_COUNT; i++)
                sp_text_add(complaint, "%s %s=", i ? "," : "", conditions[i].name);
}

/* "kind=async". A name that is longer than a rule can be stays empty here, and is none of ours. */
static bool read_condition(const char *text, struct sp_fault_rule *rule, struct sp_text *complaint)
{
        char name[SP_FAULT_WORDS] = "";
        const char *value = text;
        unsigned int word = 0;

        (void)cut_off(&value, "=", name);
        while (word < SP_FAULT_WORD_COUNT && strcmp(name, conditions[word].name) != 0)
                word++;
        if (word == SP_FAULT_WORD_COUNT) {
                complain_of_name(*text ? text : "nothing", complaint);
                return false;
        }
        if (rule->said >> word & 1) {
                sp_text_add(complaint, "%s is there twice; once would do", name);
                return false;
        }
        if (!*value || !conditions[word].read(value + 1, rule)) {
                sp_text_add(complaint, "%s will not do: %s= takes %s", text, name,
                            conditions[word].wanted);
                return false;
        }
        rule->said |= 1U << word;
        return true;
}

/* What each condition cannot know of the others; NULL if they agree. */
static const char *contradiction(const struct sp_fault_rule *rule)
{
        if (sp_fault_says(rule, SP_FAULT_SEED) && !sp_fault_says(rule, SP_FAULT_P))
                return "seed is of no use without p";
        if (sp_fault_says(rule, SP_FAULT_NTH) && sp_fault_says(rule, SP_FAULT_EVERY))
                return "nth and every exclude each other; one rule for each would do";
        if (sp_fault_says(rule, SP_FAULT_NTH) && rule->nth <= rule->after)
                return "nth has to be above after";
        return NULL;
}

/* @text: of one rule, and not longer than one can be */
static bool read_conditions(const char *text, struct sp_fault_rule *rule, struct sp_text *complaint)
{
        char condition[SP_FAULT_WORDS] = "";
        const char *wrong;

        *rule = (struct sp_fault_rule){.error = OUT_OF_MEMORY};
        memcpy(rule->words, text, strlen(text) + 1);
        for (;;) {
                text += strspn(text, " ");
                (void)cut_off(&text, CONDITION_END, condition);
                if (!read_condition(condition, rule, complaint))
                        return false;
                if (!*text)
                        break;
                text++;
        }
        wrong = contradiction(rule);
        if (wrong)
                sp_text_add(complaint, "%s", wrong);
        return !wrong;
}

/* reading: rules */

/* The next rule of a text, which is its @number-th; @text is left at its end. */
static bool read_rule(const char **text, unsigned int number, struct sp_fault_rule *rule,
                      struct sp_text *complaint)
{
        char words[SP_FAULT_WORDS], why_bytes[WHY_MAX];
        struct sp_text why;

        *text += strspn(*text, " ");
        if (!cut_off(text, RULE_END, words)) {
                sp_text_add(complaint, "rule %u is longer than %d letters", number,
                            SP_FAULT_WORDS - 1);
                return false;
        }
        sp_text_init(&why, why_bytes, sizeof(why_bytes));
        if (read_conditions(words, rule, &why))
                return true;
        sp_text_add(complaint, "rule %u (%s): %s", number, words, why_bytes);
        return false;
}

/* Return: how many rules there are; 0 if something is wrong with one. */
static unsigned int look_through(const char *text, struct sp_text *complaint)
{
        struct sp_fault_rule rule;

        for (unsigned int number = 1; number <= SP_FAULT_RULES; number++) {
                if (!read_rule(&text, number, &rule, complaint))
                        return 0;
                if (!*text)
                        return number;
                text++;
        }
        sp_text_add(complaint, "there are more than %d rules", SP_FAULT_RULES);
        return 0;
}

/* The second time nothing can be wrong any more. */
bool sp_fault_read(const char *text, struct sp_fault_rule *rules, unsigned int *count,
                   struct sp_text *complaint)
{
        unsigned int found = *text ? look_through(text, complaint) : 0;

        if (*text && !found)
                return false;
        for (unsigned int i = 0; i < found; i++) {
                (void)read_rule(&text, i + 1, &rules[i], complaint);
                text += *text != '\0';
        }
        *count = found;
        return true;
}

/* deciding */

/* The place comes last: it is by far the longest to look at. */
bool sp_fault_matches(const struct sp_fault_rule *rule, const struct sp_fault_call *call)
{
        if (sp_fault_says(rule, SP_FAULT_KIND) && !(rule->kinds >> call->kind & 1))
                return false;
        if (sp_fault_says(rule, SP_FAULT_SIZE) &&
            (call->bytes == SP_FAULT_UNSIZED || call->bytes < rule->size.low ||
             call->bytes > rule->size.high))
                return false;
        return !sp_fault_says(rule, SP_FAULT_SITE) ||
               (call->site &&
                sp_pattern_is_in(call->site, rule->site, strlen(rule->site), false, false));
}

static uint64_t mixed(uint64_t number)
{
        number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
        number = (number ^ number >> 27) * 0x94d049bb133111eb;
        return number ^ number >> 31;
}

/* Neighbouring seeds and numbers have nothing to do with each other. */
static uint64_t draw(unsigned int seed, uint64_t ordinal)
{
        const uint64_t step = 0x9e3779b97f4a7c15;

        return mixed(mixed(seed + step) + ordinal * step);
}

/* Numbers are those of the matched calls, also for every=: what after= leaves out is counted. */
bool sp_fault_wants(const struct sp_fault_rule *rule, uint64_t ordinal)
{
        if (ordinal <= rule->after)
                return false;
        if (sp_fault_says(rule, SP_FAULT_NTH) && ordinal != rule->nth)
                return false;
        if (sp_fault_says(rule, SP_FAULT_EVERY) && ordinal % rule->every != 0)
                return false;
        return !sp_fault_says(rule, SP_FAULT_P) || draw(rule->seed, ordinal) <= rule->chance;
}
