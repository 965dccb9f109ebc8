/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Search -- how little memory a candidate can do with, and what that costs
 */

#define _GNU_SOURCE /* sched_getaffinity() */

#include "search.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* Less than what lives at once cannot do. What a run has reserved without a limit is enough, and so
 * is @enough, unless it is 0. */
static void find_limit(const struct task *task, uint64_t enough, struct row *row)
{
        struct trying trying = {.task = task, .setting = row->candidate->setting};
        uint64_t least = (task->trace->live_peak - 1) / GRAIN;
        uint64_t most = enough && enough < row->free.peak ? enough : row->free.peak;
        uint64_t grains = run_bisect(least, (most + GRAIN - 1) / GRAIN, 1, limit_will_do, &trying);

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

/* A layout can need many times what another does, and takes long to say so. */
static bool is_beyond(const struct task *task, struct row *row, uint64_t beyond)
{
        struct setting setting = row->candidate->setting;

        setting_limit(&setting, beyond);
        row->free = search_try(task, &setting);
        row->beyond = row->free.is_served ? 0 : beyond;
        return row->beyond != 0;
}

static void search_row(const struct task *task, uint64_t beyond, struct row *row)
{
        if (beyond && is_beyond(task, row, beyond))
                return;
        row->free = search_try(task, &row->candidate->setting);
        if (!row->free.is_served)
                return;
        if (row->candidate->page)
                find_cap(task, row);
        else
                find_limit(task, beyond, row);
        row->tight = search_try(task, &row->setting);
}

/* all of them, each in a process of its own */

struct row *search_new_rows(unsigned int count)
{
        void *rows = mmap(NULL, count * sizeof(struct row), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        if (rows != MAP_FAILED)
                return rows;
        perror("rows of a plan");
        exit(1);
}

static unsigned int cores(void)
{
        cpu_set_t set;

        return sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned int)CPU_COUNT(&set);
}

static bool wait_for_one(void)
{
        int status;

        return wait(&status) >= 0 && WIFEXITED(status) && !WEXITSTATUS(status);
}

/* Nobody waits for one whose parent has been ended. */
static void end_with(pid_t parent)
{
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
                _exit(1);
}

bool search_rows(const struct task *task, const struct candidate *candidates, unsigned int count,
                 uint64_t beyond, struct row *rows)
{
        unsigned int most = cores();
        pid_t parent = getpid();
        unsigned int running = 0;
        bool is_well = true;
        unsigned int i;

        for (i = 0; i < count; i++) {
                pid_t child;

                rows[i].candidate = &candidates[i];
                if (running == most) {
                        is_well &= wait_for_one();
                        running--;
                }
                /* Where there can be no process, it is done in this one. */
                child = fork();
                if (child > 0) {
                        running++;
                        continue;
                }
                if (!child)
                        end_with(parent);
                search_row(task, beyond, &rows[i]);
                if (!child)
                        _exit(0);
        }
        while (running--)
                is_well &= wait_for_one();
        return is_well;
}

/* the best of all */

uint64_t row_bytes(const struct row *row)
{
        return setting_options(&row->setting, 0).capacity;
}

static bool fits(const struct task *task, const struct row *row)
{
        return row->free.is_served && row->tight.is_served &&
               (!task->limit || row_bytes(row) <= task->limit);
}

/* What takes the host long; events and questions do not. */
static uint64_t host_cost(const struct row *row)
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
                if (fits(task, &rows[i]) && row_bytes(&rows[i]) < least)
                        least = row_bytes(&rows[i]);
        for (i = 0; i < count; i++) {
                if (!fits(task, &rows[i]) || row_bytes(&rows[i]) - least > slack)
                        continue;
                if (best == count || host_cost(&rows[i]) < host_cost(&rows[best]))
                        best = i;
        }
        return best;
}
