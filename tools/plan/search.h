/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEARCH_H
#define SEARCH_H

/*
 * Search -- how little memory a candidate can do with, and what that costs
 *
 * Several devices serve the run: one that is idle, so that what was freed is free at once; one that
 * is some kernels behind the program; and one that has done nothing before the program waits for
 * it. A recording does not say where between them the program ran, so what is planned has to do on
 * all of them; costs are the largest ones.
 */

#include <stdbool.h>
#include <stdint.h>

#include "candidate.h"
#include "run.h"

#define DEVICES   3
#define LAG_NEVER ((uint64_t)1 << 62) /* kernels behind: more than there are */

struct task {
        const struct trace *trace;
        uint64_t lag[DEVICES]; /* kernels that each device is behind */
        unsigned int devices;
        uint64_t limit; /* bytes that there are; 0: no matter */
};

/** task_lag() - an idle device, and unless @lag is 0 one that is behind by so many kernels, and one
 * that is behind by all. */
void task_lag(struct task *task, uint64_t lag);

/* A dry run on all devices. */
struct trial {
        bool is_served;
        uint32_t refused; /* if not: which block, on the first device that refused one */
        uint64_t peak;    /* reserved */
        uint64_t maps;    /* segments obtained, and given back */
        uint64_t moves;   /* of them */
        uint64_t waits;   /* of the host for the device */
        uint64_t asked;   /* other calls of the driver: events, questions */
        uint64_t ns;      /* all of the model's answers */
};

struct row {
        const struct candidate *candidate;
        uint64_t beyond;   /* not 0: more than this would be needed, and how much was not looked */
        struct trial free; /* without a limit, or with that of @beyond */
        struct setting setting; /* the smallest that serves the run, if @free did */
        struct setting less;    /* one grain, or one page, less */
        struct trial tight;     /* with @setting */
};

/** search_try() - @setting, on all devices. */
struct trial search_try(const struct task *task, const struct setting *setting);

/** search_rows() - the smallest limit, or cap of its pool, of each candidate; as many at a time as
 * the machine has cores.
 * @rows:   zeroes in memory of search_new_rows()
 * @beyond: bytes; who needs more is not looked at any further. 0: no matter
 *
 * Return: false if a search did not come to an end.
 */
bool search_rows(const struct task *task, const struct candidate *candidates, unsigned int count,
                 uint64_t beyond, struct row *rows);

struct row *search_new_rows(unsigned int count);

/** row_bytes() - the smallest limit of a row that was served. */
uint64_t row_bytes(const struct row *row);

/** search_best() - of those that are about as small as the smallest, and within the limit, the one
 * that keeps the host the least. Return: its index; @count if there is none. */
unsigned int search_best(const struct task *task, const struct row *rows, unsigned int count);

#endif
