/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_FAULT_H
#define SIM_FAULT_H

/*
 * Fault -- what was called, and what is made to fail
 *
 * Every exported function passes through sim_admit() before it takes the lock.
 * No CUDA types here: lookup.c does without cuda.h.
 */

#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* Counts and logs one call; the symbol's row in sim_exports, for sim_fault_due(). */
int sim_fault_count(const char *symbol);

/* The code that this call must answer; 0: none. */
int sim_fault_due(int row);

/*
 * Counts the call. The CUresult it must answer because of the state of the
 * process, or because it was made to fail; 0: go on. (init.c)
 */
int sim_admit(const char *symbol, bool needs_init);

/* Codes after which a context answers nothing else, such as an illegal access. */
bool sim_is_sticky(int code);

#pragma GCC visibility pop

#endif
