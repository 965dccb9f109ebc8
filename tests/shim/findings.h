/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FINDINGS_H
#define TESTS_FINDINGS_H

/*
 * Findings -- the first of those that the ledger has, for a test to look at
 */

#include <criterion/criterion.h>

#include "track/ledger.h"

static struct sp_finding found[4];
static size_t found_count;

static inline void keep(const struct sp_finding *finding, void *user)
{
        (void)user;
        if (found_count < 4)
                found[found_count] = *finding;
        found_count++;
}

static inline size_t findings(void)
{
        found_count = 0;
        cr_assert(sp_ledger_each_finding(keep, NULL));
        return found_count;
}

#endif
