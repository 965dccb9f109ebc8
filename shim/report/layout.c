/* SPDX-License-Identifier: Apache-2.0 */

/* Layout -- what each pool of a layout's list held, and how often another one had to help */

#include "report/inner.h"
#include "report/words.h"

#define LABEL 28 /* columns */

static const char *const kinds[] = {
        [SPM_SHELF_SLICED] = "sliced",
        [SPM_SHELF_EXCLUSIVE] = "exclusive",
        [SPM_SHELF_DIRECT] = "direct",
        [SPM_SHELF_PERSISTENT] = "persistent",
};

static void add_size(struct sp_text *text, uint64_t bytes)
{
        char cell_bytes[16];
        struct sp_text cell;

        sp_text_init(&cell, cell_bytes, sizeof(cell_bytes));
        sp_text_add_bytes(&cell, bytes);
        sp_text_add(text, "%12s", cell_bytes);
}

/* What was asked for, of all that its pages hold: without a page there is none. */
static void add_efficiency(struct sp_text *text, const struct spm_shelf_stats *stats)
{
        if (stats->reserved)
                sp_text_add(text, "%10.1f %%",
                            100.0 * (double)stats->requested / (double)stats->reserved);
        else
                sp_text_add(text, "%12s", "n/a");
}

/* Which pool it is of, and which of its list. */
static void add_name(struct sp_text *text, const struct sp_report *report,
                     const struct sp_shelf_figures *shelf)
{
        const struct sp_pool_figures *pool = &report->figures.pool[shelf->pool];

        sp_text_add(text, "device %d, %s %u %s", pool->device,
                    pool->class == SP_CLASS_ASYNC ? "async" : "sync", shelf->index + 1,
                    kinds[shelf->stats.kind]);
}

static void add_shelf(struct sp_text *text, const struct sp_report *report,
                      const struct sp_shelf_figures *shelf)
{
        const struct spm_shelf_stats *stats = &shelf->stats;
        char label_bytes[LABEL + 1];
        struct sp_text label;

        sp_text_init(&label, label_bytes, sizeof(label_bytes));
        add_name(&label, report, shelf);
        sp_text_add(text, "  %-*s", LABEL - 2, label_bytes);
        add_size(text, stats->requested);
        add_size(text, stats->reserved);
        add_efficiency(text, stats);
        sp_text_add(text, "%12llu%12llu%12llu", (unsigned long long)stats->pages,
                    (unsigned long long)stats->pages_peak,
                    (unsigned long long)stats->pages_unmapped);
        add_size(text, stats->largest_alloc);
        sp_text_add(text, "\n");
}

/* One line, however often it happened (C38). */
static void add_spills(struct sp_text *text, const struct sp_report *report,
                       const struct sp_shelf_figures *shelf)
{
        if (!shelf->stats.spills)
                return;
        sp_text_add(text, "  ");
        add_name(text, report, shelf);
        sp_text_add(text, " was full %llu time%s, and the next ones served\n",
                    (unsigned long long)shelf->stats.spills, shelf->stats.spills == 1 ? "" : "s");
}

void sp_layout_text(struct sp_text *text, const struct sp_report *report)
{
        const struct sp_figures *figures = &report->figures;

        if (!figures->layout[0])
                return;
        sp_text_add(text, "\nLayout %s\n", figures->layout);
        if (figures->shelves)
                sp_text_add(text, "%-*s%12s%12s%12s%12s%12s%12s%12s\n", LABEL, "", "in use",
                            "reserved", "of it used", "pages", "at most", "given back", "largest");
        for (unsigned int i = 0; i < figures->shelves; i++)
                add_shelf(text, report, &figures->shelf[i]);
        for (unsigned int i = 0; i < figures->shelves; i++)
                add_spills(text, report, &figures->shelf[i]);
}

static void add_json(struct sp_text *text, const struct sp_shelf_figures *shelf)
{
        const struct spm_shelf_stats *stats = &shelf->stats;

        sp_text_add(text, "{\"index\": %u, \"kind\": \"%s\"", shelf->index, kinds[stats->kind]);
        sp_words_next(text, "live", stats->live_blocks);
        sp_words_next(text, "requested", stats->requested);
        sp_words_next(text, "padding", stats->padding);
        sp_words_next(text, "reserved", stats->reserved);
        sp_words_next(text, "page", stats->page);
        sp_words_next(text, "pages", stats->pages);
        sp_words_next(text, "pages_peak", stats->pages_peak);
        sp_words_next(text, "pages_unmapped", stats->pages_unmapped);
        sp_words_next(text, "largest_alloc", stats->largest_alloc);
        sp_words_next(text, "spills", stats->spills);
        if (stats->pages_most == UINT64_MAX)
                sp_text_add(text, ", \"pages_most\": null}");
        else
                sp_text_add(text, ", \"pages_most\": %llu}", (unsigned long long)stats->pages_most);
}

void sp_shelves_json(struct sp_text *text, const struct sp_figures *figures, unsigned int pool)
{
        const char *separator = "";

        sp_text_add(text, ", \"shelves\": [");
        for (unsigned int i = 0; i < figures->shelves; i++) {
                if (figures->shelf[i].pool != pool)
                        continue;
                sp_text_add(text, "%s\n      ", separator);
                add_json(text, &figures->shelf[i]);
                separator = ",";
        }
        sp_text_add(text, "]");
}
