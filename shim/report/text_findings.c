/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Report as text, findings -- what is wrong, where, and what is to be done
 *
 * A paragraph for each kind, worst first, with the places that it is about.
 */

#include "report/advice.h"
#include "report/inner.h"

#define SHOWN 5  /* of each kind; the other forms have all */
#define PLACE 58 /* column */
#define FRAME "            "

static const char *plural(uint64_t count)
{
        return count == 1 ? "" : "s";
}

static const char *result_words(int result)
{
        switch (result) {
        case 1:
                return "invalid value";
        case 400:
                return "invalid handle";
        case 713:
                return "not registered";
        case 801:
                return "not supported";
        default:
                return "error";
        }
}

/* In red or yellow, and bold, on a terminal. */
static void add_title(struct sp_text *text, const struct sp_report *report, unsigned int kind)
{
        const struct sp_advice *advice = sp_advice(kind);
        const char *paint = advice->is_error ? "\033[1;31m" : "\033[1;33m";

        sp_text_add(text, "\n%s%s%s", report->is_coloured ? paint : "", advice->title,
                    report->is_coloured ? "\033[0m" : "");
}

static void add_cure(struct sp_text *text, unsigned int kind)
{
        sp_text_add(text, "  %s\n", sp_advice(kind)->cure);
}

static void add_place(struct sp_text *text, const void *site)
{
        sp_text_pad(text, PLACE);
        sp_place_text(text, site);
        sp_text_add(text, "\n");
        sp_place_frames(text, site, FRAME);
}

static void add_reuse(struct sp_text *text, const struct sp_finding *finding)
{
        sp_reuse_text(text, finding);
        add_place(text, finding->reuse.site);
        if (!finding->reuse.freed_by)
                return;
        sp_reuse_text_end(text, finding);
        add_place(text, finding->reuse.freed_at);
}

static void add_finding(struct sp_text *text, const struct sp_finding *finding)
{
        const struct sp_ledger_entry *block = &finding->block;

        sp_text_add(text, "  %s(0x%llx): ", finding->function,
                    (unsigned long long)finding->address);
        if (sp_finding_is_use(finding))
                sp_use_text(text, finding);
        else if (finding->kind == SP_FINDING_OVERRUN)
                sp_text_add(text, "seen here");
        else if (sp_finding_is_argument(finding))
                sp_argument_text(text, finding);
        else if (!sp_finding_is_order(finding))
                sp_text_add(text, "%s (%d)", result_words(finding->result), finding->result);
        if (sp_finding_is_order(finding))
                sp_order_text(text, finding);
        if (finding->times > 1)
                sp_text_add(text, ", %llu times", (unsigned long long)finding->times);
        add_place(text, finding->site);
        if (sp_finding_is_use(finding) || finding->kind == SP_FINDING_OVERRUN)
                sp_use_text_more(text, finding);
        if (!finding->has_block)
                return;
        if (sp_finding_is_order(finding)) {
                sp_order_text_earlier(text, finding);
                add_place(text, finding->earlier_at);
        }
        if (finding->freed_by) {
                sp_text_add(text, "    freed before by %s", finding->freed_by);
                add_place(text, finding->freed_at);
        }
        sp_text_add(text, "    ");
        if (finding->kind == SP_FINDING_INTERIOR)
                sp_text_add(text, "%llu bytes into ",
                            (unsigned long long)(finding->address - block->address));
        sp_text_add_bytes(text, block->bytes);
        sp_text_add(text, " of %s memory, allocated", sp_kind_name(block->kind));
        add_place(text, block->site);
        if (finding->has_reuse)
                add_reuse(text, finding);
}

void sp_findings_text(struct sp_text *text, const struct sp_report *report)
{
        size_t i = 0;

        while (i < report->findings) {
                enum sp_finding_kind kind = report->finding[i].kind;
                uint64_t times = report->totals.findings[kind];
                size_t first = i;

                add_title(text, report, kind);
                sp_text_add(text, ": %llu time%s\n", (unsigned long long)times, plural(times));
                add_cure(text, kind);
                for (; i < report->findings && report->finding[i].kind == kind; i++) {
                        if (i - first < SHOWN)
                                add_finding(text, &report->finding[i]);
                }
                if (i - first > SHOWN)
                        sp_text_add(text, "  and from %zu more place%s\n", i - first - SHOWN,
                                    plural(i - first - SHOWN));
                if (kind == SP_FINDING_DOUBLE_FREE)
                        sp_text_add(text,
                                    "  (a second free of an address that was given out again in "
                                    "between cannot be told from a right one)\n");
        }
}

void sp_leaks_text(struct sp_text *text, const struct sp_report *report)
{
        if (report->leaked_count == 0)
                return;
        add_title(text, report, SP_FINDING_COUNT);
        sp_text_add(text, ": ");
        sp_text_add_bytes(text, report->leaked_bytes);
        sp_text_add(text, " in %llu allocation%s\n", (unsigned long long)report->leaked_count,
                    plural(report->leaked_count));
        add_cure(text, SP_FINDING_COUNT);
        for (size_t i = 0; i < report->leaks && i < 2 * SHOWN; i++) {
                const struct sp_leak *leak = &report->leak[i];

                sp_text_add(text, "  %5llu x ", (unsigned long long)leak->count);
                sp_text_add_bytes(text, leak->smallest);
                if (leak->smallest != leak->largest) {
                        sp_text_add(text, " to ");
                        sp_text_add_bytes(text, leak->largest);
                }
                sp_text_add(text, " of %s memory", sp_kind_name(leak->kind));
                if (leak->count > 1) {
                        sp_text_add(text, ", ");
                        sp_text_add_bytes(text, leak->bytes);
                }
                add_place(text, leak->site);
        }
        if (report->leaks > 2 * SHOWN)
                sp_text_add(text, "  and from %zu more places\n", report->leaks - 2 * SHOWN);
}
