/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNNER_H
#define RUNNER_H

/*
 * Runner -- the processes that run the cases, several at once
 */

#include "conformance.h"

/**
 * runner_run() - run @count @cases in at most @jobs processes at once
 *
 * Prints one line for each case, in the order given, as soon as it and all before
 * it are done. Returns the status to end with: 77 without a driver, 1 if a process
 * died, 0 otherwise.
 */
int runner_run(const struct conf_case *const *cases, int count, int jobs);

/** runner_jobs() - as many as this process has processors, and no more than 8. */
int runner_jobs(void);

#endif
