/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_FAULT_H
#define SP_TRACK_FAULT_H

/*
 * Fault -- allocations that are made to fail, to see what the program makes of it
 *
 * The rules in force (fault_rule.h), and what they have done. A call is shown to
 * every rule, in order, and counted by each that matches it; the first one that
 * wants it to fail has its way. While calls come in the same order, the same ones
 * fail; threads that allocate at once have no order.
 *
 * No locks: any thread may ask at any time.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "track/fault_rule.h"

/* Written once, before the shim is on: count, rule. Atomic: the others. */
struct sp_faults {
        unsigned int count; /* of rules; 0: nothing is made to fail */
        struct sp_fault_rule rule[SP_FAULT_RULES];
        atomic_ullong matched[SP_FAULT_RULES], failed[SP_FAULT_RULES];
        atomic_ullong injected; /* by all of them */
};

/* Those of this process. */
extern struct sp_faults sp_faults;

/* One that was made to fail. */
struct sp_fault {
        int error;        /* CUresult: what the program is told */
        uint64_t number;  /* of all failures, from 1 */
        unsigned int by;  /* index of the rule */
        uint64_t ordinal; /* of the call, among those that the rule matched */
};

/**
 * sp_fault_start() - STREAMPOOL_FAULT, before the shim is on
 *
 * What is wrong in it is told, and then there is no rule at all. So are seeds that nobody chose.
 */
void sp_fault_start(const char *text);

/** sp_fault_asks_for_site() - does it matter where a call came from? */
bool sp_fault_asks_for_site(const struct sp_faults *faults);

/** sp_fault_strikes() - is this call to fail? It is counted; @fault is written if so. */
bool sp_fault_strikes(struct sp_faults *faults, const struct sp_fault_call *call,
                      struct sp_fault *fault);

#endif
