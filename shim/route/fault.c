/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fault -- is this call made to fail?
 *
 * Where a call came from is looked up only where a rule asks, or a person is to
 * be told: it costs far more than all the rest.
 */

#include "route/fault.h"

#include "base/log.h"
#include "base/text.h"
#include "report/inner.h"
#include "track/result.h"

#define FRAMES_MAX 4096
#define SITE_MAX   256

static void add_result(struct sp_text *text, int result)
{
        const char *name = sp_result_name(result);

        if (name)
                sp_text_add(text, "%s", name);
        else
                sp_text_add(text, "error %d", result);
}

/* Which call it was, in words that lead back to it. */
static void add_draw(struct sp_text *text, const struct sp_fault *fault)
{
        const struct sp_fault_rule *rule = &sp_faults.rule[fault->by];

        sp_text_add(text, "call %llu of ", (unsigned long long)fault->ordinal);
        if (sp_faults.count > 1)
                sp_text_add(text, "rule %u", fault->by + 1);
        else
                sp_text_add(text, "the rule");
        if (sp_fault_says(rule, SP_FAULT_P))
                sp_text_add(text, ", seed %u", rule->seed);
}

static void tell(const struct sp_fault *fault, const char *function, size_t bytes, const char *site)
{
        char line_bytes[SP_LOG_MAX];
        struct sp_text line;

        sp_text_init(&line, line_bytes, sizeof(line_bytes));
        sp_text_add(&line, "fault %llu: %s of ", (unsigned long long)fault->number, function);
        if (bytes == SP_FAULT_UNSIZED)
                sp_text_add(&line, "an unknown size");
        else
                sp_text_add(&line, "%zu bytes", bytes);
        sp_text_add(&line, " by %s failed with ", site);
        add_result(&line, fault->error);
        sp_text_add(&line, " (");
        add_draw(&line, fault);
        sp_text_add(&line, ")");
        sp_log(SP_LOG_WARNING, "%s", line_bytes);
}

/* With the frames above it, where stacks are kept: a rule may name any of them. */
static void add_frames(struct sp_text *site)
{
        sp_place_text(site, sp_caller);
        sp_text_add(site, "\n");
        sp_place_frames(site, sp_caller, "");
}

CUresult sp_fault_judge(enum sp_kind kind, const char *function, size_t bytes)
{
        char frames_bytes[FRAMES_MAX], site_bytes[SITE_MAX];
        struct sp_fault_call call = {kind, bytes, frames_bytes};
        struct sp_text frames, site;
        struct sp_fault fault;

        if (!bytes)
                return CUDA_SUCCESS;
        sp_text_init(&frames, frames_bytes, sizeof(frames_bytes));
        if (sp_fault_asks_for_site(&sp_faults))
                add_frames(&frames);
        if (!sp_fault_strikes(&sp_faults, &call, &fault))
                return CUDA_SUCCESS;
        sp_text_init(&site, site_bytes, sizeof(site_bytes));
        if (sp_config()->log >= SP_LOG_WARNING)
                sp_place_text(&site, sp_caller);
        tell(&fault, function, bytes, site_bytes);
        return (CUresult)fault.error;
}
