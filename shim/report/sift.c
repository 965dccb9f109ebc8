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

#define FRAMES_MAX 1 /* of a place: only the call itself is known */

/* The innermost first. Whoever knows more frames, or source files, adds them here. */
static size_t frames_of(const void *site, struct sp_frame frames[FRAMES_MAX])
{
        struct sp_place place = sp_place_of(site);

        frames[0] = (struct sp_frame){.function = place.symbol, .library = place.path};
        return place.path ? 1 : 0;
}

int sp_finding_rule(const struct sp_finding *finding)
{
        struct sp_frame frames[FRAMES_MAX];
        struct sp_case seen = {
                .finding = finding->kind,
                .has_block = finding->has_block,
                .kind = finding->block.kind,
                .device = finding->block.device,
                .size = {finding->block.bytes, finding->block.bytes},
                .count = finding->times,
                .frames = frames,
        };

        if (!sp_suppress_rules())
                return -1;
        seen.frame_count = frames_of(finding->site, frames);
        return sp_rules_find(sp_suppress_rules(), &seen);
}

/* What did not fit the list of the ledger has no place any more, so no rule: it stays counted. */
static void sift_findings(struct sp_report *report)
{
        size_t kept = 0;

        for (size_t i = 0; i < report->findings; i++) {
                const struct sp_finding *finding = &report->finding[i];
                int rule = sp_finding_rule(finding);

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
        struct sp_frame frames[FRAMES_MAX];
        struct sp_case seen = {
                .finding = SP_FINDING_LEAK,
                .has_block = true,
                .kind = leak->kind,
                .device = leak->device,
                .size = {leak->smallest, leak->largest},
                .count = leak->count,
                .frames = frames,
                .frame_count = frames_of(leak->site, frames),
        };
        int rule = sp_rules_find(sp_suppress_rules(), &seen);
        const char *library = NULL;

        if (rule >= 0) {
                sifted->is_used[rule] = true;
                sifted->leaks += leak->count;
                sifted->bytes += leak->bytes;
                return true;
        }
        if (!sp_config()->library_leaks)
                library = sp_holder_of(frames, seen.frame_count);
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
