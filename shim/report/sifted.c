/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sifted -- what does the report say of what it leaves out?
 *
 * How much it is and by how many rules, and which rules were of no use: a rule
 * that nobody needs any more would hide the next fault in its place. While the
 * books are kept by another thread it is not known which.
 */

#include "report/inner.h"
#include "report/words.h"

#define SHOWN 10 /* rules without use; the JSON form has all */

static size_t count_used(const struct sp_report *report)
{
        const struct sp_rules *rules = sp_suppress_rules();
        size_t used = 0;

        for (size_t i = 0; rules && i < rules->count; i++)
                used += report->sifted.is_used[i];
        return used;
}

/* The next rule without use, from @from on; the number of rules if there is none. */
static size_t next_unused(const struct sp_report *report, const struct sp_rules *rules, size_t from)
{
        if (report->busy)
                return rules->count;
        while (from < rules->count && report->sifted.is_used[from])
                from++;
        return from;
}

/* for people */

static const char *plural(uint64_t count)
{
        return count == 1 ? "" : "s";
}

static void add_holdings(struct sp_text *text, const struct sp_sifted *sifted)
{
        for (size_t i = 0; i < sifted->holdings; i++) {
                const struct sp_holding *holding = &sifted->holding[i];

                sp_text_add(text, "%s%s ",
                            i ? ", " : "\nHeld by libraries until the end: ", holding->library);
                sp_text_add_bytes(text, holding->bytes);
                sp_text_add(text, " in %llu", (unsigned long long)holding->count);
        }
        if (sifted->holdings)
                sp_text_add(text, "\n");
}

static void add_suppressed(struct sp_text *text, const struct sp_report *report)
{
        const struct sp_sifted *sifted = &report->sifted;
        size_t used = count_used(report);

        if (used == 0)
                return;
        sp_text_add(text, "\nSuppressed by %zu rule%s: ", used, plural(used));
        if (sifted->wrong_frees)
                sp_text_add(text, "%llu wrong free%s%s", (unsigned long long)sifted->wrong_frees,
                            plural(sifted->wrong_frees), sifted->leaks ? ", and " : "");
        if (sifted->leaks) {
                sp_text_add_bytes(text, sifted->bytes);
                sp_text_add(text, " in %llu allocation%s never freed",
                            (unsigned long long)sifted->leaks, plural(sifted->leaks));
        }
        sp_text_add(text, "\n");
}

static void add_unused(struct sp_text *text, const struct sp_report *report)
{
        const struct sp_rules *rules = sp_suppress_rules();
        size_t unused = 0;

        for (size_t i = 0; rules && (i = next_unused(report, rules, i)) < rules->count; i++) {
                if (unused == 0)
                        sp_text_add(text, "\nRules that nothing matched\n");
                if (unused++ < SHOWN)
                        sp_text_add(text, "  %s:%u: %s\n", rules->path, rules->rule[i].line,
                                    rules->rule[i].text);
        }
        if (unused > SHOWN)
                sp_text_add(text, "  and %zu more\n", unused - SHOWN);
}

/* Where others are listed, their head counts these. */
static void add_unlisted(struct sp_text *text, const struct sp_report *report)
{
        if (report->findings == 0 && report->totals.unlisted)
                sp_text_add(text,
                            "\nFreed wrongly where no rule can apply, as the list is full: %llu "
                            "time%s\n",
                            (unsigned long long)report->totals.unlisted,
                            plural(report->totals.unlisted));
}

void sp_sifted_text(struct sp_text *text, const struct sp_report *report)
{
        add_holdings(text, &report->sifted);
        add_suppressed(text, report);
        add_unlisted(text, report);
        add_unused(text, report);
}

/* for programs */

void sp_sifted_json(struct sp_text *text, const struct sp_report *report)
{
        const struct sp_sifted *sifted = &report->sifted;
        const struct sp_rules *rules = sp_suppress_rules();
        const char *separator = "";

        sp_text_add(text, "  \"library_leaks\": [");
        for (size_t i = 0; i < sifted->holdings; i++) {
                sp_text_add(text, "%s\n    {\"library\": ", i ? "," : "");
                sp_words_string(text, sifted->holding[i].library);
                sp_text_add(text, ", \"count\": %llu, \"bytes\": %llu}",
                            (unsigned long long)sifted->holding[i].count,
                            (unsigned long long)sifted->holding[i].bytes);
        }
        sp_text_add(text,
                    "],\n  \"suppressed\": {\"rules\": %zu, \"wrong_frees\": %llu, "
                    "\"leaks\": %llu, \"bytes\": %llu},\n  \"unused_rules\": [",
                    count_used(report), (unsigned long long)sifted->wrong_frees,
                    (unsigned long long)sifted->leaks, (unsigned long long)sifted->bytes);
        for (size_t i = 0; rules && (i = next_unused(report, rules, i)) < rules->count; i++) {
                sp_text_add(text, "%s\n    {\"path\": ", separator);
                sp_words_string(text, rules->path);
                sp_text_add(text, ", \"line\": %u, \"rule\": ", rules->rule[i].line);
                sp_words_string(text, rules->rule[i].text);
                sp_text_add(text, "}");
                separator = ",";
        }
        sp_text_add(text, "],\n");
}
