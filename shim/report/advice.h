/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_REPORT_ADVICE_H
#define SP_REPORT_ADVICE_H

/*
 * Advice -- what is a kind of finding called, and what is to be done about it?
 *
 * One table for the forms of the report that say it in words.
 */

#include "track/ledger.h"

struct sp_advice {
        const char *id;    /* of the rule, for tools */
        const char *title; /* what happened */
        const char *cure;  /* a sentence */
        bool is_error;     /* else a warning */
};

/** sp_advice() - @kind of enum sp_finding_kind, or SP_FINDING_COUNT for what was never freed. */
const struct sp_advice *sp_advice(unsigned int kind);

#endif
