/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SHOW_H
#define SHOW_H

/*
 * Show -- a plan as JSON
 *
 *   run       what was recorded: "allocations", "refused" (by the driver, then), "streams" that
 *             were made, "calls" to a pool, "live_peak" and "largest" block in bytes
 *   devices   how many kernels each is behind, null for all of them
 *   rows      for each candidate "settings" (the environment), "served", "peak" without a limit,
 *             "cap": the smallest, in bytes, and its cost: "maps", "moves", "waits", "asked", and
 *             "ns_a_call" of the model; "free": "maps" and "waits" without a limit; or, if it
 *             cannot serve the run, "refused", and if that was tried with so many bytes only,
 *             because others need far less, "beyond"
 *   plan      which row is the plan; null for none
 *   verified  "is_verified"; "less": the settings with one page less, and what is "refused" there
 *
 * What is refused has "allocation", counted from 1, and "bytes".
 */

#include <stdbool.h>

#include "search.h"

struct verdict {
        bool is_verified;
        struct trial with;
        struct trial less;
};

/** show() - on stdout. @best is @count if there is no plan. */
void show(const struct task *task, const struct row *rows, unsigned int count, unsigned int best,
          const struct verdict *verdict);

#endif
