/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LEDGER_ACTS_H
#define TESTS_LEDGER_ACTS_H

/*
 * Ledger acts -- what a program does, in short words, and what the ledger says then
 */

#include "track/ledger.h"

#include <criterion/criterion.h>

#include "base/life.h"
#include "track/ledger_inner.h"

enum { OK = 0, INVALID_VALUE = 1, DEINITIALIZED = 4, ILLEGAL_ADDRESS = 700, NOT_SUPPORTED = 801 };

static char place[16]; /* its addresses are places in the program */

static inline void add(enum sp_kind kind, uint64_t address, size_t bytes)
{
        struct sp_ledger_entry entry = {
                .address = address,
                .bytes = bytes,
                .kind = kind,
                .device = 0,
                .context = 7,
                .site = &place[0],
        };

        sp_ledger_add(&entry);
}

/* A free that ends with @result, called from @site. */
static inline bool free_it(enum sp_space space, uint64_t address, const char *function, int result,
                           const void *site)
{
        struct sp_ledger_entry entry;
        bool taken;

        sp_caller = site;
        taken = sp_ledger_take(space, address, &entry);
        sp_ledger_free_ended(taken ? &entry : NULL, space, address, function, result);
        return taken;
}

static inline struct sp_ledger_totals totals(void)
{
        struct sp_ledger_totals now;

        cr_assert(sp_ledger_totals(&now));
        return now;
}

static struct sp_finding found[SP_LEDGER_FINDINGS];
static size_t found_count;

static inline void keep_finding(const struct sp_finding *finding, void *user)
{
        (void)user;
        found[found_count++] = *finding;
}

static inline size_t findings(void)
{
        found_count = 0;
        cr_assert(sp_ledger_each_finding(keep_finding, NULL));
        return found_count;
}

static size_t live_count;
static uint64_t live_bytes;

static inline void count_live(const struct sp_ledger_entry *entry, void *user)
{
        (void)user;
        live_count += sp_kind_leaks(entry->kind);
        live_bytes += sp_kind_leaks(entry->kind) ? entry->bytes : 0;
}

static inline size_t leaks(void)
{
        live_count = 0;
        live_bytes = 0;
        cr_assert(sp_ledger_each_live(count_live, NULL));
        return live_count;
}

#endif
