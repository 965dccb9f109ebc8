/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Look-up -- cuGetProcAddress as the driver answers it
 *
 * Undecorated name, version and flags select a row of exports.tsv: the newest
 * one that the asked version has, per-thread if asked for and if there is one.
 * Both versions fail differently, and cuda.h is silent on half of it:
 *
 *                              _v2                      v1
 *   found                      0, status 0, pfn set     0, pfn set
 *   unknown or decorated name  0, status 1, pfn NULL    500, pfn untouched
 *   known, version too old     0, status 2, pfn NULL    500, pfn untouched
 *   newer than the driver      1, nothing written       1, nothing written
 *
 * cuda.h is not included: it declares only one of the two, under a macro.
 */

#include "exports.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "fault.h"

#define INVALID_VALUE   1
#define NOT_FOUND       500

#define FLAG_PER_THREAD 2

enum {
        STATUS_FOUND,
        STATUS_UNKNOWN,
        STATUS_TOO_OLD,
};

int cuGetProcAddress(const char *symbol, void **pfn, int version, uint64_t flags);
int cuGetProcAddress_v2(const char *symbol, void **pfn, int version, uint64_t flags, int *status);

int sim_age(void)
{
        const char *text = getenv("SIM_AGE");
        int age = text ? atoi(text) : sim_age_built;

        return age < sim_age_built ? age : sim_age_built;
}

/* Newest row of @base that @version has; NULL and STATUS_TOO_OLD if all are newer. */
static const struct sim_export *find(const char *base, int version, bool per_thread, int *status)
{
        const struct sim_export *best = NULL;
        int age = sim_age();

        *status = STATUS_UNKNOWN;
        for (int i = 0; i < sim_export_count; i++) {
                const struct sim_export *row = &sim_exports[i];

                if (!row->base || strcmp(row->base, base) || row->introduced > age)
                        continue;
                if (*status == STATUS_UNKNOWN)
                        *status = STATUS_TOO_OLD;
                if (row->introduced > version || (row->per_thread && !per_thread))
                        continue;
                if (best && best->per_thread > row->per_thread)
                        continue;
                if (!best || row->per_thread > best->per_thread ||
                    row->introduced > best->introduced)
                        best = row;
        }
        if (best)
                *status = STATUS_FOUND;
        return best;
}

static void *address(const struct sim_export *row)
{
        const char *different = getenv("SIM_GPA_DIFFERENT");

        if (!row)
                return NULL;
        return (void *)(different && *different == '1' ? row->twin : row->address);
}

int cuGetProcAddress(const char *symbol, void **pfn, int version, uint64_t flags)
{
        const struct sim_export *row;
        int status;
        int refused = sim_admit(__func__, false);

        if (refused)
                return refused;
        if (!symbol || !pfn || version > sim_age())
                return INVALID_VALUE;
        row = find(symbol, version, flags & FLAG_PER_THREAD, &status);
        if (!row)
                return NOT_FOUND;
        *pfn = address(row);
        return 0;
}

int cuGetProcAddress_v2(const char *symbol, void **pfn, int version, uint64_t flags, int *status)
{
        int refused = sim_admit(__func__, false);
        int found;

        if (refused)
                return refused;
        if (!symbol || !pfn || version > sim_age())
                return INVALID_VALUE;
        *pfn = address(find(symbol, version, flags & FLAG_PER_THREAD, &found));
        if (status)
                *status = found;
        return 0;
}
