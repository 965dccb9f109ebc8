/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Control -- the functions of streampool.h that ask
 *
 * Exported; with those of route/control.c, which change what pools do, the only names besides the
 * driver's that are.
 */

#define STREAMPOOL_API __attribute__((visibility("default")))

#include <streampool/streampool.h>

#include <string.h>

#include "base/life.h"
#include "report/inner.h"
#include "report/report.h"

const char *streampool_version(void)
{
        return STREAMPOOL_VERSION;
}

static bool is_there_anything(void)
{
        return sp_life_has_begun() && !sp_life_is_child();
}

void streampool_write_report(void)
{
        if (is_there_anything())
                sp_report_write();
}

void streampool_reset_peaks(void)
{
        if (!is_there_anything())
                return;
        sp_ledger_reset_peaks();
        sp_route_reset_peaks();
}

static void add_pools(struct streampool_figures *all)
{
        struct sp_figures figures = {0};

        sp_route_figures(&figures);
        for (unsigned int i = 0; i < figures.pools; i++) {
                const struct sp_pool_figures *pool = &figures.pool[i];

                all->requested += pool->requested;
                all->requested_high += pool->requested_high;
                all->reserved += pool->reserved;
                all->reserved_high += pool->reserved_high;
                all->pending += pool->pending;
                all->ready += pool->ready;
                all->allocations += pool->allocs;
                all->reused += pool->hits;
        }
}

bool streampool_get_figures(struct streampool_figures *figures)
{
        struct streampool_figures all = {.size = figures->size};
        struct sp_ledger_totals totals;

        if (!is_there_anything() || !sp_ledger_totals(&totals))
                return false;
        for (unsigned int i = 0; i < SP_KIND_PINNED; i++)
                all.live_allocations += totals.kind[i].tally.count;
        for (unsigned int i = 0; i < SP_LEDGER_DEVICES; i++) {
                all.live += totals.device[i].bytes;
                all.live_high += totals.device[i].bytes_high;
        }
        for (unsigned int i = 0; i < SP_FINDING_COUNT; i++)
                all.findings += totals.findings[i];
        add_pools(&all);
        memcpy(figures, &all, figures->size < sizeof(all) ? figures->size : sizeof(all));
        return true;
}
