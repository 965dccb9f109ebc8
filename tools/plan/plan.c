/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plan -- the smallest memory that a recorded run can be served with, and the best layout
 *
 *   streampool-plan NAME LAG LIMIT [LAYOUT...] <TRACE
 *
 * What plan.py calls: it reads files of any kind, and shows what comes of it to people. NAME is
 * that of the file, for complaints; LAG is how many kernels a device is behind, 0 for an idle one
 * only; LIMIT is how many bytes there are, 0 for no matter how many. With LAYOUTs only those are
 * tried.
 *
 * Prints one JSON object. Exit status 0: planned, and verified by replay; 1: not, and the object
 * says what is; 2: bad input, told on stderr; 3: a search did not come to an end. Without an object
 * the host has no memory, which is told on stderr, too.
 */

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "measure.h"
#include "search.h"
#include "show.h"

enum { PLANNED, NOT_SERVED, BAD_INPUT, FAILED };

/* Of what the best heap needs: a layout that needs more is of no use. */
#define BEYOND 2

static bool read_number(const char *text, uint64_t *number)
{
        char *end;

        errno = 0;
        *number = strtoull(text, &end, 10);
        return *text >= '0' && *text <= '9' && !*end && !errno;
}

/* Return: how many; 0 if a layout is none, or there are too many. */
static unsigned int candidates_of(const struct trace *trace, char **texts, int count,
                                  struct candidate *candidates)
{
        int i;

        if (!count)
                return candidates_usual(trace, candidates);
        if (count > CANDIDATES_MOST) {
                fprintf(stderr, "more than %d layouts\n", CANDIDATES_MOST);
                return 0;
        }
        for (i = 0; i < count; i++)
                if (!candidate_of(texts[i], &candidates[i]))
                        return 0;
        return (unsigned int)count;
}

/* With exactly this it succeeds, and with one page less it does not. */
static struct verdict verify(const struct task *task, const struct row *row)
{
        struct trial with = search_try(task, &row->setting);
        struct trial less = search_try(task, &row->less);

        return (struct verdict){
                .is_verified = with.is_served && !less.is_served,
                .with = with,
                .less = less,
        };
}

/* The heap first: what needs many times as much takes long, and need not be known exactly. */
static bool search(const struct task *task, const struct candidate *candidates, unsigned int count,
                   struct row *rows)
{
        unsigned int heaps = 0;
        unsigned int best;
        uint64_t beyond;

        while (heaps < count && !candidates[heaps].setting.layout[0])
                heaps++;
        if (!search_rows(task, candidates, heaps, 0, rows))
                return false;
        best = search_best(task, rows, heaps);
        beyond = best < heaps ? BEYOND * row_bytes(&rows[best]) : 0;
        return search_rows(task, candidates + heaps, count - heaps, beyond, rows + heaps);
}

static int plan(const struct task *task, const struct candidate *candidates, unsigned int count)
{
        struct row *rows = search_new_rows(count);
        struct verdict verdict = {.is_verified = false};
        unsigned int best;

        if (!search(task, candidates, count, rows))
                return FAILED;
        best = search_best(task, rows, count);
        if (best < count)
                verdict = verify(task, &rows[best]);
        show(task, rows, count, best, &verdict);
        return verdict.is_verified ? PLANNED : NOT_SERVED;
}

/* A run of which nothing is served has no need of a plan. */
static bool has_blocks(const struct trace *trace, const char *name)
{
        if (!trace->blocks)
                fprintf(stderr, "%s: nothing was allocated\n", name);
        return trace->blocks != 0;
}

int main(int argc, char **argv)
{
        struct trace trace;
        struct task task = {.trace = &trace};
        struct candidate *candidates;
        unsigned int count;
        int status = BAD_INPUT;
        uint64_t lag;

        /* A model comes and goes with each of some hundred replays: its memory is to stay ours. */
        mallopt(M_TRIM_THRESHOLD, INT_MAX);
        if (argc < 4 || !read_number(argv[2], &lag) || !read_number(argv[3], &task.limit)) {
                fprintf(stderr, "usage: streampool-plan NAME LAG LIMIT [LAYOUT...] <TRACE\n");
                return BAD_INPUT;
        }
        task_lag(&task, lag);
        if (!trace_read(&trace, stdin, argv[1]))
                return BAD_INPUT;
        candidates = must_calloc(CANDIDATES_MOST, sizeof(*candidates));
        count = has_blocks(&trace, argv[1]) ? candidates_of(&trace, argv + 4, argc - 4, candidates)
                                            : 0;
        if (count)
                status = plan(&task, candidates, count);
        free(candidates);
        trace_fini(&trace);
        return status;
}
