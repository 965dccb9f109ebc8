/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Report as text -- for a person who has just run a program
 *
 * What is wrong comes first, worst first, and is told with the places to look
 * at. Then come the figures, as tables. Lines that would say "nothing" are left
 * out, so that the report of a correct program fits on one screen.
 */

#include <streampool/streampool.h>

#include "report/inner.h"

/* Columns. */
#define LABEL 28 /* columns */

static void add_size(struct sp_text *text, uint64_t bytes, int width)
{
        char cell_bytes[16];
        struct sp_text cell;

        sp_text_init(&cell, cell_bytes, sizeof(cell_bytes));
        sp_text_add_bytes(&cell, bytes);
        sp_text_add(text, "%*s", width, cell_bytes);
}

static const char *plural(uint64_t count)
{
        return count == 1 ? "" : "s";
}

/* head */

static void add_head(struct sp_text *text, const struct sp_report *report)
{
        const struct sp_figures *figures = &report->figures;

        sp_text_add(text, "\nstreampool %s: %s, process %ld on %s", STREAMPOOL_VERSION,
                    report->program, report->process, report->host);
        if (report->rank[0] != '0' || report->rank[1])
                sp_text_add(text, ", rank %s", report->rank);
        sp_text_add(text, "\n%s",
                    figures->observing ? "observed: the driver served every call" : "pooled");
        if (figures->backing)
                sp_text_add(text, ", on %s", figures->backing);
        if (figures->driver_version)
                sp_text_add(text, "; driver for CUDA %d.%d", figures->driver_version / 1000,
                            figures->driver_version % 1000 / 10);
        if (figures->driver_path && *figures->driver_path)
                sp_text_add(text, ", %s", figures->driver_path);
        sp_text_add(text, "\n");
        if (figures->off)
                sp_text_add(text, "The pool was given up on the way; the log says why.\n");
        if (report->busy)
                sp_text_add(text, "Another thread kept the books: what is below is not all.\n");
}

/* figures */

static const char *const kind_labels[SP_KIND_COUNT] = {
        [SP_KIND_DEVICE] = "device (cuMemAlloc)",
        [SP_KIND_ASYNC] = "async (cuMemAllocAsync)",
        [SP_KIND_PITCH] = "pitch (cuMemAllocPitch)",
        [SP_KIND_MANAGED] = "managed",
        [SP_KIND_ARRAY] = "array",
        [SP_KIND_MIPMAP] = "mipmapped array",
        [SP_KIND_VMM] = "vmm (cuMemCreate)",
        [SP_KIND_PINNED] = "pinned",
        [SP_KIND_REGISTERED] = "registered",
        [SP_KIND_IMPORTED] = "imported",
        [SP_KIND_SHARED] = "imported (handle)",
        [SP_KIND_MAPPED] = "mapped",
};

static void add_kind(struct sp_text *text, const char *label, const struct sp_kind_totals *kind)
{
        sp_text_add(text, "  %-*s", LABEL - 2, label);
        add_size(text, kind->tally.bytes, 12);
        add_size(text, kind->tally.bytes_high, 12);
        sp_text_add(text, "%12llu%12llu%12llu\n", (unsigned long long)kind->tally.made,
                    (unsigned long long)kind->tally.freed, (unsigned long long)kind->pooled);
        if (kind->released)
                sp_text_add(text, "    %llu ended with their context\n",
                            (unsigned long long)kind->released);
        if (kind->lost)
                sp_text_add(text, "    %llu freed in a way that was not seen\n",
                            (unsigned long long)kind->lost);
}

static void add_memory(struct sp_text *text, const struct sp_report *report)
{
        bool has_head = false;

        for (unsigned int i = 0; i < SP_KIND_COUNT; i++) {
                const struct sp_kind_totals *kind = &report->totals.kind[i];

                if (kind->tally.made == 0)
                        continue;
                if (!has_head)
                        sp_text_add(text, "\n%-*s%12s%12s%12s%12s%12s\n", LABEL,
                                    "What the program held", "at exit", "at most", "allocated",
                                    "freed", "from pool");
                has_head = true;
                add_kind(text, kind_labels[i], kind);
        }
        if (report->totals.unwritten)
                sp_text_add(text, "  %llu not written down: the host had no memory for it\n",
                            (unsigned long long)report->totals.unwritten);
}

/* Pools of one device and class, several contexts, as one; the sum of peaks is an upper bound. */
static struct sp_pool_figures sum_pools(const struct sp_figures *figures, unsigned int from)
{
        struct sp_pool_figures sum = figures->pool[from];

        for (unsigned int i = from + 1; i < figures->pools; i++) {
                const struct sp_pool_figures *pool = &figures->pool[i];

                if (pool->device != sum.device || pool->class != sum.class)
                        continue;
                sum.requested += pool->requested;
                sum.requested_high += pool->requested_high;
                sum.reserved += pool->reserved;
                sum.reserved_high += pool->reserved_high;
                sum.allocs += pool->allocs;
                sum.hits += pool->hits;
        }
        return sum;
}

static bool is_first_of_its_sort(const struct sp_figures *figures, unsigned int index)
{
        for (unsigned int i = 0; i < index; i++) {
                if (figures->pool[i].device == figures->pool[index].device &&
                    figures->pool[i].class == figures->pool[index].class)
                        return false;
        }
        return true;
}

static void add_pools(struct sp_text *text, const struct sp_report *report)
{
        static const char *const classes[SP_CLASS_COUNT] = {
                [SP_CLASS_SYNC] = "cuMemAlloc",
                [SP_CLASS_ASYNC] = "cuMemAllocAsync",
                [SP_CLASS_HOST] = "pinned",
        };
        const struct sp_figures *figures = &report->figures;

        if (figures->pools == 0)
                return;
        sp_text_add(text, "\n%-*s%12s%12s%12s%12s%12s\n", LABEL,
                    figures->observing ? "What a pool would have held" : "What the pool held",
                    "in use", "at most", "reserved", "at most", "reused");
        for (unsigned int i = 0; i < figures->pools; i++) {
                struct sp_pool_figures pool;

                if (!is_first_of_its_sort(figures, i))
                        continue;
                pool = sum_pools(figures, i);
                sp_text_add(text, "  device %d, %-*s", pool.device, LABEL - 12 + (pool.device < 10),
                            classes[pool.class]);
                add_size(text, pool.requested, 12);
                add_size(text, pool.requested_high, 12);
                add_size(text, pool.reserved, 12);
                add_size(text, pool.reserved_high, 12);
                sp_text_add(text, "%10.1f %%\n",
                            pool.allocs ? 100.0 * (double)pool.hits / (double)pool.allocs : 0.0);
        }
}

static void add_time(struct sp_text *text, uint64_t ns)
{
        if (ns < 1000000)
                sp_text_add(text, "%.0f us", (double)ns / 1e3);
        else if (ns < 1000000000)
                sp_text_add(text, "%.1f ms", (double)ns / 1e6);
        else
                sp_text_add(text, "%.1f s", (double)ns / 1e9);
}

/* What the calls of one sort cost: those that were timed in this process, or the others. */
static void add_costs(struct sp_text *text, const struct sp_saving *saving, bool timed)
{
        static const char *const names[SP_NATIVE_COUNT] = {
                [SP_NATIVE_ALLOC] = "cuMemAlloc",
                [SP_NATIVE_FREE] = "cuMemFree",
                [SP_NATIVE_ALLOC_ASYNC] = "cuMemAllocAsync",
                [SP_NATIVE_FREE_ASYNC] = "cuMemFreeAsync",
                [SP_NATIVE_ALLOC_HOST] = "cuMemHostAlloc",
                [SP_NATIVE_FREE_HOST] = "cuMemFreeHost",
        };
        const char *separator = timed ? "  medians of this run: " : "  medians of an idle H200: ";

        for (unsigned int i = 0; i < SP_NATIVE_COUNT; i++) {
                if (saving->times[i] == 0 || (saving->samples[i] > 0) != timed)
                        continue;
                sp_text_add(text, "%s%s %.2f us", separator, names[i],
                            (double)saving->cost_ns[i] / 1e3);
                if (timed)
                        sp_text_add(text, " (of %u)", saving->samples[i]);
                separator = ", ";
        }
        if (*separator == ',')
                sp_text_add(text, "\n");
}

static void add_saving(struct sp_text *text, const struct sp_report *report)
{
        const struct sp_saving *saving = &report->saving;
        bool observing = report->figures.observing;

        if (saving->calls == 0)
                return;
        sp_text_add(text, "\nDriver calls %s: %llu", observing ? "a pool would save" : "saved",
                    (unsigned long long)saving->calls);
        if (!observing)
                sp_text_add(text, ", and %llu made for that", (unsigned long long)saving->instead);
        sp_text_add(text, "\nTime %s: at most ", observing ? "it would save" : "saved");
        add_time(text, saving->ns);
        sp_text_add(text, ", which the calls saved would have taken, at\n");
        add_costs(text, saving, true);
        add_costs(text, saving, false);
}

static void add_refusals(struct sp_text *text, const struct sp_report *report)
{
        uint64_t refused = report->counter[SP_COUNTER_allocs_refused];

        if (refused)
                sp_text_add(text, "\nRefused for lack of device memory: %llu allocation%s\n",
                            (unsigned long long)refused, plural(refused));
        if (report->was_short) {
                sp_text_add(text, "One of them: ");
                sp_shortage_text(text, &report->shortage);
        }
}

static void add_unseen(struct sp_text *text, const struct sp_report *report)
{
        if (report->unseen)
                sp_text_add(
                        text,
                        "\nThe program can give a stream work unseen, by %s: what is freed waits "
                        "for the device.\n",
                        report->unseen);
}

static void add_lookups(struct sp_text *text, const struct sp_report *report)
{
        sp_text_add(text, "\nLook-ups\n");
        for (unsigned int i = 0; i < SP_COUNTER_COUNT; i++) {
                if (sp_counter_info[i].group == SP_GROUP_LOOKUP)
                        sp_text_add(text, "%10llu  %s\n", (unsigned long long)report->counter[i],
                                    sp_counter_info[i].sentence);
        }
}

/* What is left to say when the findings were told. */
static void add_verdict(struct sp_text *text, const struct sp_report *report)
{
        bool is_clean = !report->findings && !report->leaked_count;

        if (!is_clean && !sp_places_are_known())
                sp_text_add(text, "\naddr2line -Cife FILE OFFSET names the line of FILE+OFFSET.\n");
        else if (is_clean && sp_report_is_silent(report))
                sp_text_add(text, "No memory was allocated or freed.\n");
        else if (is_clean && !report->busy && !report->totals.unwritten && !report->totals.unlisted)
                sp_text_add(text, "Everything%s was freed, and freed once.\n",
                            sp_report_is_sifted(report) ? " else" : "");
}

void sp_report_text(const struct sp_report *report, bool with_lookups, struct sp_text *text)
{
        add_head(text, report);
        sp_findings_text(text, report);
        sp_leaks_text(text, report);
        sp_sifted_text(text, report);
        add_verdict(text, report);
        add_memory(text, report);
        add_pools(text, report);
        sp_layout_text(text, report);
        add_refusals(text, report);
        sp_faults_text(text, report);
        add_saving(text, report);
        add_unseen(text, report);
        if (with_lookups)
                add_lookups(text, report);
        if (text->cut)
                sp_text_add(text, "\n(cut)\n");
}
