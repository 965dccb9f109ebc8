/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLIENT_PLAN_H
#define CLIENT_PLAN_H

/*
 * Client plan -- which block each launch of a recorded program touches (client.c)
 *
 * A recording does not say, so it is made up: anything that a correct program with
 * the same calls could have done. Between the block's allocation, its other visits
 * and its free there is an order that the program itself has made.
 */

#include <stdbool.h>
#include <stdint.h>

#include "trace.h"

#define PLAN_NOTHING UINT32_MAX

struct plan {
        uint32_t *visit; /* by launch: a block, those of page-locked memory after the others */
        uint32_t launches;
};

/**
 * plan_make() - for a whole trace
 * @is_wrong: blocks are visited in no order, as in a program that forgot its events
 */
void plan_make(struct plan *plan, const struct trace *trace, bool is_wrong);
void plan_fini(struct plan *plan);

#endif
