/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Search -- how little memory a candidate can do with, and what that costs
 */

#include "search.h"

/* Two that differ by less are the same: a 64th is what the heap allows itself (pool.h). */
#define SLACK_SHARE 64

/* trials */

static uint64_t larger(uint64_t a, uint64_t b)
{
        return a > b ? a : b;
}

static uint64_t waits_of(const struct peer_figures *figures)
{
        return figures->action[SPM_ACT_WAIT_HOST] + figures->action[SPM_ACT_SYNC_CONTEXT];
}

static uint64_t asked_of(const struct peer_figures *figures)
{
        return figures->action[SPM_ACT_RECORD] + figures->action[SPM_ACT_POLL] +
               figures->action[SPM_ACT_POLL_STREAM] + figures->action[SPM_ACT_WAIT_STREAM] +
               figures->action[SPM_ACT_WAIT_FENCE];
}

static void add_device(struct trial *trial, const struct outcome *outcome)
{
        const struct peer_figures *figures = &outcome->figures;

        trial->is_served = outcome->is_complete;
        trial->refused = outcome->refused;
        trial->peak = larger(trial->peak, figures->reserved_high);
        trial->maps = larger(trial->maps, figures->grows + figures->releases);
        trial->moves = larger(trial->moves, figures->moves);
        trial->waits = larger(trial->waits, waits_of(figures));
        trial->asked = larger(trial->asked, asked_of(figures));
        trial->ns = larger(trial->ns, outcome->ns);
}

void task_lag(struct task *task, uint64_t lag)
{
        task->lag[0] = 0;
        task->lag[1] = lag;
        task->lag[2] = LAG_NEVER;
        task->devices = lag ? DEVICES : 1;
}

struct trial search_try(const struct task *task, const struct setting *setting)
{
        struct trial trial = {.is_served = true};
        unsigned int i;

        for (i = 0; i < task->devices && trial.is_served; i++) {
                struct peer_options options = setting_options(setting, task->lag[i]);
                struct outcome outcome = trace_replay(task->trace, &peer_model, &options, NULL);

                add_device(&trial, &outcome);
        }
        return trial;
}

/* the smallest of a candidate */

struct trying {
        const struct task *task;
        struct setting setting;
        uint64_t page;
};

static bool limit_will_do(uint64_t grains, void *user)
{
        struct trying *trying = user;

        setting_limit(&trying->setting, grains * GRAIN);
        return search_try(trying->task, &trying->setting).is_served;
}

static bool cap_will_do(uint64_t pages, void *user)
{
        struct trying *trying = user;

        setting_cap(&trying->setting, trying->page, pages);
        return search_try(trying->task, &trying->setting).is_served;
}

/* Less than what lives at once cannot do, and what a run has reserved without a limit is enough. */
static void find_limit(const struct task *task, struct row *row)
{
        struct trying trying = {.task = task, .setting = row->candidate->setting};
        uint64_t least = (task->trace->live_peak - 1) / GRAIN;
        uint64_t grains =
                run_bisect(least, (row->free.peak + GRAIN - 1) / GRAIN, 1, limit_will_do, &trying);

        row->setting = row->less = row->candidate->setting;
        setting_limit(&row->setting, grains * GRAIN);
        setting_limit(&row->less, (grains - 1) * GRAIN);
}

/* The cap is of each pool, those of cuMemAlloc() and of cuMemAllocAsync(); the limit of both. A cap
 * of no page is none, so one page less than one is said by the limit. */
static void find_cap(const struct task *task, struct row *row)
{
        uint64_t page = row->candidate->page;
        struct trying trying = {task, row->candidate->setting, page};
        uint64_t pages = run_bisect(0, (row->free.peak + page - 1) / page, 1, cap_will_do, &trying);
        uint64_t peak;

        row->setting = row->less = row->candidate->setting;
        setting_cap(&row->setting, page, pages);
        peak = search_try(task, &row->setting).peak;
        setting_limit(&row->setting, peak);
        setting_cap(&row->less, page, pages > 1 ? pages - 1 : pages);
        setting_limit(&row->less, pages > 1 ? peak : peak - page);
}

void search_row(const struct task *task, const struct candidate *candidate, struct row *row)
{
        row->candidate = candidate;
        row->free = search_try(task, &candidate->setting);
        if (!row->free.is_served)
                return;
        if (candidate->page)
                find_cap(task, row);
        else
                find_limit(task, row);
        row->tight = search_try(task, &row->setting);
}

/* the best of all */

static uint64_t bytes_of(const struct row *row)
{
        return setting_options(&row->setting, 0).capacity;
}

static bool fits(const struct task *task, const struct row *row)
{
        return row->free.is_served && row->tight.is_served &&
               (!task->limit || bytes_of(row) <= task->limit);
}

/* What takes the host long; events and questions do not. */
static uint64_t toil_of(const struct row *row)
{
        return row->tight.maps + row->tight.waits;
}

unsigned int search_best(const struct task *task, const struct row *rows, unsigned int count)
{
        uint64_t slack = task->trace->live_peak / SLACK_SHARE;
        uint64_t least = UINT64_MAX;
        unsigned int best = count;
        unsigned int i;

        for (i = 0; i < count; i++)
                if (fits(task, &rows[i]) && bytes_of(&rows[i]) < least)
                        least = bytes_of(&rows[i]);
        for (i = 0; i < count; i++) {
                if (!fits(task, &rows[i]) || bytes_of(&rows[i]) - least > slack)
                        continue;
                if (best == count || toil_of(&rows[i]) < toil_of(&rows[best]))
                        best = i;
        }
        return best;
}
