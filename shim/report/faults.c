/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Faults -- what was made to fail, and how to see the same again
 *
 * A rule that matched nothing is named, too: it is a test that tests nothing.
 */

#include "report/inner.h"

void sp_faults_gather(struct sp_report *report)
{
        report->faults = sp_faults.count;
        for (unsigned int i = 0; i < report->faults; i++)
                report->fault[i] = (struct sp_fault_tally){
                        .rule = &sp_faults.rule[i],
                        .matched = atomic_load(&sp_faults.matched[i]),
                        .failed = atomic_load(&sp_faults.failed[i]),
                };
}

static void add_rule(struct sp_text *text, const struct sp_fault_tally *tally)
{
        const struct sp_fault_rule *rule = tally->rule;

        sp_text_add(text, "  %s", rule->words);
        if (sp_fault_says(rule, SP_FAULT_P) && !sp_fault_says(rule, SP_FAULT_SEED))
                sp_text_add(text, ",seed=%u", rule->seed);
        sp_text_add(text, ": %llu of %llu call%s\n", (unsigned long long)tally->failed,
                    (unsigned long long)tally->matched, tally->matched == 1 ? "" : "s");
}

void sp_faults_text(struct sp_text *text, const struct sp_report *report)
{
        if (report->faults == 0)
                return;
        sp_text_add(text, "\nMade to fail by STREAMPOOL_FAULT\n");
        for (unsigned int i = 0; i < report->faults; i++)
                add_rule(text, &report->fault[i]);
}
