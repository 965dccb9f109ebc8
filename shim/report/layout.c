/* SPDX-License-Identifier: Apache-2.0 */

/* Layout -- which layout is in force, and who said so; what each pool of its list held, and how
 * often another one had to help */

#include "report/inner.h"
#include "report/words.h"

#define LABEL 32 /* columns */

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

/* who said so */

static void add_source(struct sp_text *text, enum sp_layout_source source)
{
        switch (source) {
        case SP_LAYOUT_OF_NOBODY:
                break;
        case SP_LAYOUT_OF_ENVIRONMENT:
                sp_text_add(text, ", by STREAMPOOL_LAYOUT");
                break;
        case SP_LAYOUT_OF_FILE:
                sp_text_add(text, ", by STREAMPOOL_LAYOUT, file %s", sp_layout_path());
                break;
        case SP_LAYOUT_OF_PROGRAM:
                sp_text_add(text, ", by streampool_set_layout()");
                break;
        }
}

static void add_layout(struct sp_text *text, const struct sp_layout_figures *layout)
{
        if (layout->device != SP_LAYOUT_ALL)
                sp_text_add(text, "Layout of device %d: ", layout->device);
        else
                sp_text_add(text, "\nLayout ");
        sp_text_add(text, "%s", layout->text[0] ? layout->text : "pool, the default heap");
        add_source(text, layout->source);
        sp_text_add(text, "\n");
}

void sp_layout_text(struct sp_text *text, const struct sp_report *report)
{
        const struct sp_figures *figures = &report->figures;

        for (unsigned int i = 0; i < figures->layouts; i++)
                add_layout(text, &figures->layout[i]);
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

static void add_said(struct sp_text *text, const struct sp_layout_figures *layout)
{
        static const char *const words[] = {
                [SP_LAYOUT_OF_NOBODY] = NULL,
                [SP_LAYOUT_OF_ENVIRONMENT] = "environment",
                [SP_LAYOUT_OF_FILE] = "file",
                [SP_LAYOUT_OF_PROGRAM] = "program",
        };

        sp_words_text(text, "layout", layout->text[0] ? layout->text : NULL);
        sp_text_add(text, ", ");
        sp_words_text(text, "layout_set_by", words[layout->source]);
}

void sp_layout_json(struct sp_text *text, const struct sp_figures *figures)
{
        static const struct sp_layout_figures none;
        const struct sp_layout_figures *all = figures->layouts ? &figures->layout[0] : &none;

        add_said(text, all);
        sp_text_add(text, ",\n  ");
        sp_words_text(text, "layout_file",
                      all->source == SP_LAYOUT_OF_FILE ? sp_layout_path() : NULL);
        sp_text_add(text, ",\n  \"device_layouts\": [");
        for (unsigned int i = 1; i < figures->layouts; i++) {
                sp_text_add(text, "%s{\"device\": %d, ", i > 1 ? ", " : "",
                            figures->layout[i].device);
                add_said(text, &figures->layout[i]);
                sp_text_add(text, "}");
        }
        sp_text_add(text, "]");
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
