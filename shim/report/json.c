/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Report as JSON -- for programs
 *
 * Field names are fixed: one may be added, and `version` grows when one goes or
 * changes its meaning. Every field is always there, so a reader need not ask.
 * Sizes are bytes, addresses are hexadecimal strings, because a reader's
 * numbers may not hold 64 bits.
 */

#include <streampool/streampool.h>

#include "report/inner.h"
#include "report/words.h"

static void add_process(struct sp_text *text, const struct sp_report *report)
{
        const struct sp_figures *figures = &report->figures;

        sp_text_add(text, "  \"process\": {");
        sp_words_text(text, "program", report->program);
        sp_text_add(text, ", \"id\": %ld, ", report->process);
        sp_words_text(text, "host", report->host);
        sp_text_add(text, ", ");
        sp_words_text(text, "rank", report->rank);
        sp_text_add(text, "},\n  \"driver\": {\"version\": %d, ", figures->driver_version);
        sp_words_text(text, "path", figures->driver_path);
        sp_text_add(text, "},\n  ");
        sp_words_text(text, "mode", figures->observing ? "observe" : "pool");
        sp_text_add(text, ",\n  ");
        sp_words_text(text, "backing", figures->backing);
        sp_text_add(text, ",\n  ");
        sp_layout_json(text, figures);
        sp_text_add(text, ",\n  ");
        sp_words_text(text, "unseen", report->unseen);
        sp_text_add(text, ",\n  \"gave_up\": %s,\n  \"complete\": %s,\n",
                    figures->off ? "true" : "false", report->busy ? "false" : "true");
}

void sp_allocation_json(struct sp_text *text, enum sp_kind kind, uint64_t address, size_t bytes,
                        const void *site)
{
        sp_words_text(text, "kind", sp_kind_name(kind));
        sp_text_add(text, ", \"address\": \"0x%llx\", ", (unsigned long long)address);
        sp_words_number(text, "bytes", bytes);
        sp_text_add(text, ", ");
        sp_words_site(text, "site", site);
}

static void add_finding(struct sp_text *text, const struct sp_finding *finding)
{
        const struct sp_ledger_entry *block = &finding->block;

        sp_text_add(text, "    {");
        sp_words_text(text, "kind", sp_finding_name(finding->kind));
        sp_text_add(text, ", ");
        sp_words_text(text, "function", finding->function);
        if (sp_finding_is_use(finding) || sp_finding_is_argument(finding) ||
            sp_finding_is_order(finding))
                sp_text_add(text, ", \"result\": null, ");
        else
                sp_text_add(text, ", \"result\": %d, ", finding->result);
        sp_words_number(text, "times", finding->times);
        sp_text_add(text, ", \"address\": \"0x%llx\", ", (unsigned long long)finding->address);
        sp_words_site(text, "site", finding->site);
        sp_text_add(text, ", \"allocation\": ");
        if (finding->has_block) {
                sp_text_add(text, "{");
                sp_allocation_json(text, block->kind, block->address, block->bytes, block->site);
                sp_text_add(text, "}");
        } else {
                sp_text_add(text, "null");
        }
        sp_text_add(text, ", ");
        sp_words_text(text, "freed_by", finding->freed_by);
        sp_text_add(text, ", ");
        sp_words_site(text, "freed_at", finding->freed_at);
        sp_reuse_json(text, finding);
        sp_use_json(text, finding);
        sp_overrun_json(text, finding);
        sp_overlap_json(text, finding);
        sp_argument_json(text, finding);
        sp_order_json(text, finding);
        sp_text_add(text, "}");
}

static void add_findings(struct sp_text *text, const struct sp_report *report)
{
        sp_text_add(text, "  \"finding_counts\": {");
        for (unsigned int i = 0; i < SP_FINDING_COUNT; i++) {
                sp_text_add(text, "%s", i ? ", " : "");
                sp_words_number(text, sp_finding_name((enum sp_finding_kind)i),
                                report->totals.findings[i]);
        }
        sp_text_add(text, "},\n  \"findings\": [");
        for (size_t i = 0; i < report->findings; i++) {
                sp_text_add(text, "%s\n", i ? "," : "");
                add_finding(text, &report->finding[i]);
        }
        sp_text_add(text, "],\n  ");
        sp_words_number(text, "findings_unlisted", report->totals.unlisted);
        sp_text_add(text, ",\n");
}

static void add_leaks(struct sp_text *text, const struct sp_report *report)
{
        sp_text_add(text, "  \"leaks\": {");
        sp_words_number(text, "count", report->leaked_count);
        sp_text_add(text, ", ");
        sp_words_number(text, "bytes", report->leaked_bytes);
        sp_text_add(text, ", \"places\": [");
        for (size_t i = 0; i < report->leaks; i++) {
                const struct sp_leak *leak = &report->leak[i];

                sp_text_add(text, "%s\n    {", i ? "," : "");
                sp_words_text(text, "kind", sp_kind_name(leak->kind));
                sp_text_add(text, ", ");
                sp_words_number(text, "count", leak->count);
                sp_text_add(text, ", ");
                sp_words_number(text, "bytes", leak->bytes);
                sp_text_add(text, ", ");
                sp_words_number(text, "smallest", leak->smallest);
                sp_text_add(text, ", ");
                sp_words_number(text, "largest", leak->largest);
                sp_text_add(text, ", ");
                sp_words_site(text, "site", leak->site);
                sp_text_add(text, "}");
        }
        sp_text_add(text, "]},\n");
}

/* A row of numbers, all named after their fields. */
#define NUMBER(row, field)                                                                         \
        do {                                                                                       \
                sp_text_add(text, ", ");                                                           \
                sp_words_number(text, #field, (row)->field);                                       \
        } while (0)

static void add_memory(struct sp_text *text, const struct sp_report *report)
{
        sp_text_add(text, "  \"memory\": [");
        for (unsigned int i = 0; i < SP_KIND_COUNT; i++) {
                const struct sp_kind_totals *kind = &report->totals.kind[i];

                sp_text_add(text, "%s\n    {", i ? "," : "");
                sp_words_text(text, "kind", sp_kind_name((enum sp_kind)i));
                NUMBER(&kind->tally, count);
                NUMBER(&kind->tally, count_high);
                NUMBER(&kind->tally, bytes);
                NUMBER(&kind->tally, bytes_high);
                NUMBER(&kind->tally, made);
                NUMBER(&kind->tally, made_bytes);
                NUMBER(&kind->tally, freed);
                NUMBER(kind, released);
                NUMBER(kind, lost);
                NUMBER(kind, pooled);
                sp_text_add(text, "}");
        }
        sp_text_add(text, "],\n  ");
        sp_words_number(text, "unwritten", report->totals.unwritten);
        sp_text_add(text, ",\n");
}

static void add_devices(struct sp_text *text, const struct sp_report *report)
{
        const char *separator = "";

        sp_text_add(text, "  \"devices\": [");
        for (unsigned int i = 0; i < SP_LEDGER_DEVICES; i++) {
                if (report->totals.device[i].bytes_high == 0)
                        continue;
                sp_text_add(text, "%s\n    {\"device\": %u", separator, i);
                NUMBER(&report->totals.device[i], bytes);
                NUMBER(&report->totals.device[i], bytes_high);
                sp_text_add(text, "}");
                separator = ",";
        }
        sp_text_add(text, "],\n");
}

static void add_pools(struct sp_text *text, const struct sp_report *report)
{
        static const char *const classes[SP_CLASS_COUNT] = {
                [SP_CLASS_SYNC] = "sync",
                [SP_CLASS_ASYNC] = "async",
                [SP_CLASS_HOST] = "host",
        };

        sp_text_add(text, "  \"pools\": [");
        for (unsigned int i = 0; i < report->figures.pools; i++) {
                const struct sp_pool_figures *pool = &report->figures.pool[i];

                sp_text_add(text, "%s\n    {\"device\": %d, \"class\": \"%s\"", i ? "," : "",
                            pool->device, classes[pool->class]);
                NUMBER(pool, requested);
                NUMBER(pool, requested_high);
                NUMBER(pool, rounded);
                NUMBER(pool, reserved);
                NUMBER(pool, reserved_high);
                NUMBER(pool, pending);
                NUMBER(pool, ready);
                NUMBER(pool, largest_ready);
                sp_survey_json(text, pool);
                NUMBER(pool, live);
                NUMBER(pool, allocs);
                NUMBER(pool, frees);
                NUMBER(pool, hits);
                NUMBER(pool, grows);
                NUMBER(pool, releases);
                NUMBER(pool, moves);
                sp_shelves_json(text, &report->figures, i);
                sp_text_add(text, "}");
        }
        sp_text_add(text, "],\n  ");
        sp_words_number(text, "pools_left_out", report->figures.pools_left_out);
        sp_text_add(text, ",\n  ");
        sp_words_number(text, "shelves_left_out", report->figures.shelves_left_out);
        sp_text_add(text, ",\n");
}

static void add_saving(struct sp_text *text, const struct sp_report *report)
{
        static const char *const names[SP_NATIVE_COUNT] = {
                [SP_NATIVE_ALLOC] = "cuMemAlloc",
                [SP_NATIVE_FREE] = "cuMemFree",
                [SP_NATIVE_ALLOC_ASYNC] = "cuMemAllocAsync",
                [SP_NATIVE_FREE_ASYNC] = "cuMemFreeAsync",
                [SP_NATIVE_ALLOC_HOST] = "cuMemHostAlloc",
                [SP_NATIVE_FREE_HOST] = "cuMemFreeHost",
        };
        const struct sp_saving *saving = &report->saving;

        sp_text_add(text, "  \"saved\": {");
        sp_words_number(text, "calls", saving->calls);
        sp_text_add(text, ", ");
        sp_words_number(text, "calls_instead", saving->instead);
        sp_text_add(text, ", ");
        sp_words_number(text, "ns", saving->ns);
        sp_text_add(text, ", \"costs\": [");
        for (unsigned int i = 0; i < SP_NATIVE_COUNT; i++) {
                sp_text_add(text, "%s\n    {", i ? "," : "");
                sp_words_text(text, "function", names[i]);
                sp_text_add(text, ", ");
                sp_words_number(text, "calls", saving->times[i]);
                sp_text_add(text, ", ");
                sp_words_number(text, "ns", saving->cost_ns[i]);
                sp_text_add(text, ", ");
                sp_words_number(text, "samples", saving->samples[i]);
                sp_text_add(text, "}");
        }
        sp_text_add(text, "]},\n");
}

static void add_holder(struct sp_text *text, const struct sp_holder *holder)
{
        sp_words_number(text, "count", holder->count);
        sp_text_add(text, ", ");
        sp_words_number(text, "bytes", holder->bytes);
        sp_text_add(text, "}");
}

static void add_holders(struct sp_text *text, const struct sp_shortage *shortage)
{
        const char *separator = "";

        sp_text_add(text, "\n    \"kinds\": [");
        for (unsigned int i = 0; i < SP_KIND_COUNT; i++) {
                if (shortage->kinds[i].count == 0)
                        continue;
                sp_text_add(text, "%s{", separator);
                sp_words_text(text, "kind", sp_kind_name((enum sp_kind)i));
                sp_text_add(text, ", ");
                add_holder(text, &shortage->kinds[i]);
                separator = ", ";
        }
        sp_text_add(text, "],\n    \"places\": [");
        for (unsigned int i = 0; i < SP_SHORTAGE_ROWS && shortage->sites[i].count; i++) {
                sp_text_add(text, "%s\n      {", i ? "," : "");
                sp_words_text(text, "kind", sp_kind_name(shortage->sites[i].kind));
                sp_text_add(text, ", ");
                sp_words_site(text, "site", shortage->sites[i].site);
                sp_text_add(text, ", ");
                add_holder(text, &shortage->sites[i]);
        }
        sp_text_add(text, "],\n    \"streams\": [");
        for (unsigned int i = 0; i < SP_SHORTAGE_ROWS && shortage->streams[i].count; i++) {
                sp_text_add(text, "%s{\"stream\": \"0x%llx\", ", i ? ", " : "",
                            (unsigned long long)shortage->streams[i].stream);
                add_holder(text, &shortage->streams[i]);
        }
        sp_text_add(text, "]");
}

static void add_short_pool(struct sp_text *text, const char *class,
                           const struct sp_shortage_pool *pool)
{
        sp_text_add(text, "{\"class\": \"%s\"", class);
        NUMBER(pool, used);
        NUMBER(pool, reserved);
        NUMBER(pool, pending);
        NUMBER(pool, ready);
        NUMBER(pool, largest_ready);
        sp_text_add(text, "}");
}

static void add_shortage(struct sp_text *text, const struct sp_report *report)
{
        const struct sp_shortage *shortage = &report->shortage;

        sp_text_add(text, "  \"shortage\": ");
        if (!report->was_short) {
                sp_text_add(text, "null,\n");
                return;
        }
        sp_text_add(text, "{");
        sp_words_text(text, "kind", sp_kind_name(shortage->kind));
        NUMBER(shortage, bytes);
        sp_text_add(text, ", \"device\": %d, \"by_limit\": %s, \"complete\": %s, ",
                    shortage->device, shortage->by_limit ? "true" : "false",
                    shortage->complete ? "true" : "false");
        sp_words_site(text, "site", shortage->site);
        sp_text_add(text, ",\n    \"limit\": ");
        if (shortage->limit == UINT64_MAX)
                sp_text_add(text, "null");
        else
                sp_text_add(text, "%llu", (unsigned long long)shortage->limit);
        NUMBER(shortage, counted);
        NUMBER(shortage, free_bytes);
        NUMBER(shortage, total_bytes);
        NUMBER(shortage, held_count);
        NUMBER(shortage, held_bytes);
        sp_text_add(text, ",");
        add_holders(text, shortage);
        sp_text_add(text, ",\n    \"pools\": [");
        add_short_pool(text, "sync", &shortage->sync);
        sp_text_add(text, ", ");
        add_short_pool(text, "async", &shortage->async);
        sp_text_add(text, "]},\n");
}

static void add_faults(struct sp_text *text, const struct sp_report *report)
{
        sp_text_add(text, "  \"faults\": [");
        for (unsigned int i = 0; i < report->faults; i++) {
                const struct sp_fault_tally *tally = &report->fault[i];

                sp_text_add(text, "%s\n    {", i ? "," : "");
                sp_words_text(text, "rule", tally->rule->words);
                sp_text_add(text, ", \"error\": %d, \"seed\": ", tally->rule->error);
                if (sp_fault_says(tally->rule, SP_FAULT_P))
                        sp_text_add(text, "%u", tally->rule->seed);
                else
                        sp_text_add(text, "null");
                NUMBER(tally, matched);
                NUMBER(tally, failed);
                sp_text_add(text, "}");
        }
        sp_text_add(text, "],\n");
}

static void add_counters(struct sp_text *text, const struct sp_report *report)
{
        sp_text_add(text, "  \"counters\": {");
        for (unsigned int i = 0; i < SP_COUNTER_COUNT; i++) {
                sp_text_add(text, "%s\n    ", i ? "," : "");
                sp_words_number(text, sp_counter_info[i].name, report->counter[i]);
        }
        sp_text_add(text, "}\n");
}

void sp_report_json(const struct sp_report *report, struct sp_text *text)
{
        sp_text_add(text, "{\n  \"version\": %d,\n  ", SP_REPORT_VERSION);
        sp_words_text(text, "streampool", STREAMPOOL_VERSION);
        sp_text_add(text, ",\n");
        add_process(text, report);
        add_findings(text, report);
        add_leaks(text, report);
        sp_sifted_json(text, report);
        add_memory(text, report);
        add_devices(text, report);
        add_pools(text, report);
        add_shortage(text, report);
        add_faults(text, report);
        add_saving(text, report);
        add_counters(text, report);
        sp_text_add(text, "}\n");
}
