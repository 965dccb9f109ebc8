/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sift -- what of the findings is the user not to hear of?
 *
 * Works on the copy that a report is made of, where places may be looked up,
 * and takes out what a rule applies to. The user's rules come first: what they
 * were written for is not "held by a library", and they are not unused.
 */

#include "report/inner.h"

#include <string.h>

#include "base/config.h"

#define FRAMES_MAX 40 /* of a place */

/* The frames of a place, innermost first, and the names that they refer to. */
struct frames {
        size_t count, lines;
        struct sp_frame frame[FRAMES_MAX];
        struct sp_line
                *line; /* SP_SIFT_LINES of them, or NULL: there are no names but exported ones */
};

static void add_frame(struct frames *frames, const char *function, const char *library,
                      const char *source)
{
        if (frames->count < FRAMES_MAX)
                frames->frame[frames->count++] = (struct sp_frame){function, library, source};
}

/* One frame for each function that was inlined into the next, and one for the exported function,
 * whose name may be another, and is all that there is without symbols. */
static void add_native(struct frames *frames, const void *address)
{
        struct sp_place place = sp_place_of(address);
        struct sp_line *line = frames->line + frames->lines;
        unsigned int count = 0;

        /* The library alone needs no look at its tables. */
        if (frames->line && sp_suppress_rules())
                count = sp_place_lines(address, line,
                                       (unsigned int)(SP_SIFT_LINES - frames->lines));

        if (!place.path)
                return;
        frames->lines += count;
        for (unsigned int i = 0; i < count; i++)
                add_frame(frames, line[i].function[0] ? line[i].function : place.symbol, place.path,
                          line[i].line ? line[i].file : NULL);
        if (!count || place.symbol)
                add_frame(frames, place.symbol, place.path, NULL);
}

static void find_frames(struct frames *frames, const void *site)
{
        const struct sp_stack *stack = sp_stack_of(site);

        frames->count = frames->lines = 0;
        add_native(frames, site);
        for (unsigned int i = 0; stack && i < stack->natives; i++)
                add_native(frames, stack->native[i]);
        for (unsigned int i = 0; stack && i < stack->pythons; i++)
                add_frame(frames, stack->line[i]->function, NULL, stack->line[i]->file);
}

int sp_finding_rule(const struct sp_finding *finding, struct sp_line *line)
{
        struct frames frames = {.line = line};
        struct sp_case seen = {
                .finding = finding->kind,
                .has_block = finding->has_block,
                .kind = finding->block.kind,
                .device = finding->block.device,
                .size = {finding->block.bytes, finding->block.bytes},
                .count = finding->times,
                .frames = frames.frame,
        };

        if (!sp_suppress_rules())
                return -1;
        find_frames(&frames, finding->site);
        seen.frame_count = frames.count;
        return sp_rules_find(sp_suppress_rules(), &seen);
}

/* What did not fit the list of the ledger has no place any more, so no rule: it stays counted. */
static void sift_findings(struct sp_report *report)
{
        size_t kept = 0;

        for (size_t i = 0; i < report->findings; i++) {
                const struct sp_finding *finding = &report->finding[i];
                int rule = sp_finding_rule(finding, report->sifted.line);

                if (rule < 0) {
                        report->finding[kept++] = *finding;
                        continue;
                }
                report->sifted.is_used[rule] = true;
                report->sifted.wrong_frees += finding->times;
                report->totals.findings[finding->kind] -= finding->times;
        }
        report->findings = kept;
}

/* False if there are more libraries than rows. */
static bool add_holding(struct sp_sifted *sifted, const char *library, const struct sp_leak *leak)
{
        for (size_t i = 0; i < SP_REPORT_HOLDERS; i++) {
                struct sp_holding *holding = &sifted->holding[i];

                if (i == sifted->holdings) {
                        strncpy(holding->library, library, sizeof(holding->library) - 1);
                        sifted->holdings++;
                } else if (strncmp(holding->library, library, sizeof(holding->library) - 1) != 0) {
                        continue;
                }
                holding->count += leak->count;
                holding->bytes += leak->bytes;
                return true;
        }
        return false;
}

static bool is_sifted_out(struct sp_sifted *sifted, const struct sp_leak *leak)
{
        struct frames frames = {.line = sifted->line};
        struct sp_case seen = {
                .finding = SP_FINDING_LEAK,
                .has_block = true,
                .kind = leak->kind,
                .device = leak->device,
                .size = {leak->smallest, leak->largest},
                .count = leak->count,
                .frames = frames.frame,
        };
        const char *library = NULL;
        int rule;

        find_frames(&frames, leak->site);
        seen.frame_count = frames.count;
        rule = sp_rules_find(sp_suppress_rules(), &seen);
        if (rule >= 0) {
                sifted->is_used[rule] = true;
                sifted->leaks += leak->count;
                sifted->bytes += leak->bytes;
                return true;
        }
        if (!sp_config()->library_leaks)
                library = sp_holder_of(frames.frame, frames.count);
        return library && add_holding(sifted, library, leak);
}

/* Keeps the order, which is that of size; so libraries come in this order, too. */
static void sift_leaks(struct sp_report *report)
{
        size_t kept = 0;

        for (size_t i = 0; i < report->leaks; i++) {
                const struct sp_leak *leak = &report->leak[i];

                if (is_sifted_out(&report->sifted, leak)) {
                        report->leaked_count -= leak->count;
                        report->leaked_bytes -= leak->bytes;
                } else {
                        report->leak[kept++] = *leak;
                }
        }
        report->leaks = kept;
}

void sp_report_sift(struct sp_report *report)
{
        /* Looking up a place takes longer than all else here. */
        if (!sp_suppress_rules() && sp_config()->library_leaks)
                return;
        sift_findings(report);
        sift_leaks(report);
}

bool sp_report_is_sifted(const struct sp_report *report)
{
        const struct sp_sifted *sifted = &report->sifted;

        return sifted->wrong_frees || sifted->leaks || sifted->holdings;
}
