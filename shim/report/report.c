/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Report -- what happened to the program's memory?
 *
 * First everything is copied, one lock after the other; then it is put into
 * words with no lock held; then the words are written, in one piece. Memory for
 * both comes straight from the kernel: at the end of a process its heap may be
 * locked by a thread that no longer runs.
 */

#define _GNU_SOURCE

#include "report/report.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"
#include "base/name.h"
#include "report/inner.h"
#include "track/submit.h"

#define WORDS_MAX (64 << 20)
#define REACH     32 /* places in a table that are tried */

/* On pages of its own: the stack of the thread that writes may be small. */
struct desk {
        struct sp_report report;
        char pattern[PATH_MAX], name[PATH_MAX]; /* of one report */
        char words[WORDS_MAX];
};

/* gathering */

static void gather_finding(const struct sp_finding *finding, void *user)
{
        struct sp_report *report = user;

        report->finding[report->findings++] = *finding;
}

static bool is_worse(const struct sp_finding *a, const struct sp_finding *b)
{
        return a->kind != b->kind ? a->kind < b->kind : a->times > b->times;
}

/* Both lists are sorted by insertion: qsort() takes its memory from the heap. */
static void sort_findings(struct sp_report *report)
{
        for (size_t i = 1; i < report->findings; i++) {
                struct sp_finding moved = report->finding[i];
                size_t at = i;

                for (; at && is_worse(&moved, &report->finding[at - 1]); at--)
                        report->finding[at] = report->finding[at - 1];
                report->finding[at] = moved;
        }
}

/*
 * Open addressing over report->leak, by place and kind, until the entries are
 * sorted. Call stacks can be more than there is room for: what finds none nearby is
 * added up behind the others, by kind and without a place.
 */
static struct sp_leak *leak_of(struct sp_report *report, const struct sp_ledger_entry *entry)
{
        uint64_t mixed = ((uintptr_t)entry->site + (uint64_t)entry->kind) * 0x9e3779b97f4a7c15;

        for (size_t i = 0; i < REACH; i++) {
                struct sp_leak *leak = &report->leak[((mixed >> 32) + i) % SP_REPORT_LEAKS];

                if (leak->count == 0 || (leak->kind == entry->kind && leak->site == entry->site))
                        return leak;
        }
        return &report->leak[SP_REPORT_LEAKS + (size_t)entry->kind];
}

static void gather_live(const struct sp_ledger_entry *entry, void *user)
{
        struct sp_report *report = user;
        struct sp_leak *leak = leak_of(report, entry);

        if (!sp_kind_leaks(entry->kind))
                return;
        report->leaked_count++;
        report->leaked_bytes += entry->bytes;
        if (leak->count == 0) {
                *leak = (struct sp_leak){.kind = entry->kind,
                                         .site = leak - report->leak < SP_REPORT_LEAKS ? entry->site
                                                                                       : NULL,
                                         .device = entry->device,
                                         .smallest = UINT64_MAX};
                report->leaks++;
        }
        if (leak->device != entry->device)
                leak->device = -1;
        leak->count++;
        leak->bytes += entry->bytes;
        if (leak->smallest > entry->bytes)
                leak->smallest = entry->bytes;
        if (leak->largest < entry->bytes)
                leak->largest = entry->bytes;
}

static bool is_larger(const struct sp_leak *a, const struct sp_leak *b)
{
        return a->bytes != b->bytes ? a->bytes > b->bytes : a->count > b->count;
}

/* Also closes the gaps that the hashing has left. */
static void sort_leaks(struct sp_report *report)
{
        size_t sorted = 0;

        for (size_t i = 0; i < SP_REPORT_LEAKS + SP_KIND_COUNT; i++) {
                struct sp_leak moved = report->leak[i];
                size_t at = sorted;

                if (moved.count == 0)
                        continue;
                for (; at && is_larger(&moved, &report->leak[at - 1]); at--)
                        report->leak[at] = report->leak[at - 1];
                report->leak[at] = moved;
                sorted++;
        }
}

static void gather_saving(struct sp_report *report)
{
        static const struct {
                enum sp_native alloc, free;
        } instead_of[SP_CLASS_COUNT] = {
                [SP_CLASS_SYNC] = {SP_NATIVE_ALLOC, SP_NATIVE_FREE},
                [SP_CLASS_ASYNC] = {SP_NATIVE_ALLOC_ASYNC, SP_NATIVE_FREE_ASYNC},
                [SP_CLASS_HOST] = {SP_NATIVE_ALLOC_HOST, SP_NATIVE_FREE_HOST},
        };
        struct sp_saving *saving = &report->saving;

        for (unsigned int i = 0; i < report->figures.pools; i++) {
                const struct sp_pool_figures *pool = &report->figures.pool[i];

                saving->times[instead_of[pool->class].alloc] += pool->allocs;
                saving->times[instead_of[pool->class].free] += pool->frees;
        }
        for (unsigned int i = 0; i < SP_NATIVE_COUNT; i++) {
                saving->cost_ns[i] = sp_native_cost((enum sp_native)i, &saving->samples[i]);
                saving->calls += saving->times[i];
                saving->ns += saving->times[i] * saving->cost_ns[i];
        }
        for (unsigned int i = 0; i < SP_COUNTER_COUNT; i++) {
                if (sp_counter_info[i].group == SP_GROUP_DRIVER)
                        saving->instead += report->counter[i];
        }
}

static void gather_books(struct sp_report *report)
{
        sp_ledger_find_lost();
        report->busy = !sp_ledger_totals(&report->totals) ||
                       !sp_ledger_each_finding(gather_finding, report) ||
                       !sp_ledger_each_live(gather_live, report);
        sort_findings(report);
        sort_leaks(report);
        sp_report_sift(report);
}

void sp_report_gather(struct sp_report *report)
{
        if (gethostname(report->host, sizeof(report->host) - 1) < 0)
                strcpy(report->host, "unknown");
        report->program = program_invocation_short_name;
        report->rank = sp_config()->rank ? sp_config()->rank : "0";
        report->process = (long)getpid();

        gather_books(report);

        sp_route_figures(&report->figures);
        for (unsigned int i = 0; i < SP_COUNTER_COUNT; i++)
                report->counter[i] = sp_counter_sum((enum sp_counter)i);
        report->unseen = sp_submit_first_unknown();
        report->was_short = sp_shortage_last(&report->shortage);
        sp_faults_gather(report);
        gather_saving(report);
}

bool sp_report_is_silent(const struct sp_report *report)
{
        if (report->busy || report->figures.pools || report->faults)
                return false;
        for (unsigned int i = 0; i < SP_KIND_COUNT; i++) {
                if (report->totals.kind[i].tally.made)
                        return false;
        }
        return report->findings == 0 && report->totals.unwritten == 0 &&
               !sp_report_is_sifted(report);
}

static bool has_wrong_frees(const struct sp_ledger_totals *totals)
{
        for (unsigned int i = 0; i < SP_FINDING_COUNT; i++) {
                if (totals->findings[i])
                        return true;
        }
        return false;
}

static bool has_leaks(const struct sp_ledger_totals *totals)
{
        for (unsigned int i = 0; i < SP_KIND_COUNT; i++) {
                if (sp_kind_leaks((enum sp_kind)i) && totals->kind[i].tally.count)
                        return true;
        }
        return false;
}

/* Is nothing left of what the totals count? Without memory to find out, something is. */
static bool is_all_sifted(void)
{
        struct sp_report *report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        bool is_clean;

        if (report == MAP_FAILED)
                return false;
        sp_places_open();
        gather_books(report);
        sp_places_close();
        is_clean = !report->busy && !has_wrong_frees(&report->totals) && report->leaked_count == 0;
        munmap(report, sizeof(*report));
        return is_clean;
}

/* Mostly a copy of the totals says it. Places are looked up only where that can change the answer:
 * wrong frees count unless there are rules, leaks unless there are rules or libraries. */
bool sp_report_has_findings(void)
{
        struct sp_ledger_totals totals;

        if (!sp_ledger_totals(&totals))
                return false;
        if (!has_wrong_frees(&totals) && !has_leaks(&totals))
                return false;
        if (!sp_suppress_rules() && (sp_config()->library_leaks || has_wrong_frees(&totals)))
                return true;
        return !is_all_sifted();
}

/* writing */

static bool ends_in(const char *text, const char *end)
{
        size_t length = strlen(text);

        return length >= strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

static enum sp_format form_of(const char *name)
{
        enum sp_format format = sp_config()->format;

        if (format != SP_FORMAT_AUTO)
                return format;
        if (ends_in(name, ".json"))
                return SP_FORMAT_JSON;
        return ends_in(name, ".sarif") ? SP_FORMAT_SARIF : SP_FORMAT_TEXT;
}

static void write_one(struct desk *desk)
{
        const struct sp_name name = {
                .process = desk->report.process,
                .host = desk->report.host,
                .rank = desk->report.rank,
        };
        struct sp_text words, path;

        sp_text_init(&path, desk->name, sizeof(desk->name));
        sp_name_add(&path, desk->pattern, &name);
        desk->report.is_coloured =
                strcmp(desk->name, "-") == 0 && !sp_config()->is_plain && isatty(STDERR_FILENO);
        sp_text_init(&words, desk->words, sizeof(desk->words));
        switch (form_of(desk->name)) {
        case SP_FORMAT_JSON:
                sp_report_json(&desk->report, &words);
                break;
        case SP_FORMAT_SARIF:
                sp_report_sarif(&desk->report, &words);
                break;
        case SP_FORMAT_AUTO:
        case SP_FORMAT_TEXT:
                sp_report_text(&desk->report, sp_config()->diag, &words);
        }
        sp_report_put(desk->name, &words);
}

static bool is_written(const char *name, bool files_only)
{
        return strcmp(name, "none") != 0 && !(files_only && strcmp(name, "-") == 0);
}

static void write_all(struct desk *desk, const char *names, bool files_only)
{
        while (*names) {
                int length = (int)strcspn(names, ",");

                if ((size_t)length >= sizeof(desk->pattern)) {
                        sp_log(SP_LOG_ERROR, "no file can have the name of a report %.*s...", 64,
                               names);
                } else if (length) {
                        memcpy(desk->pattern, names, (size_t)length);
                        desk->pattern[length] = '\0';
                        if (is_written(desk->pattern, files_only))
                                write_one(desk);
                }
                names += length + (names[length] == ',');
        }
}

static void write_report(bool files_only, bool with_lines)
{
        const struct sp_config *config = sp_config();
        struct desk *desk;

        if (!config->report || !is_written(config->report, files_only))
                return;
        desk = mmap(NULL, sizeof(*desk), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (desk == MAP_FAILED) {
                sp_log(SP_LOG_ERROR, "no memory for the report: %m");
                return;
        }
        if (with_lines)
                sp_places_open();
        sp_report_gather(&desk->report);
        if (!sp_report_is_silent(&desk->report) || config->diag)
                write_all(desk, config->report, files_only);
        if (with_lines)
                sp_places_close();
        munmap(desk, sizeof(*desk));
}

void sp_report_write(void)
{
        write_report(false, true);
}

void sp_report_write_files(void)
{
        write_report(true, true);
}

void sp_report_write_dying(void)
{
        write_report(false, false);
}
