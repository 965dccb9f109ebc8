/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_CONTEXT_H
#define SIM_CONTEXT_H

/*
 * Context -- what the files about contexts share
 */

#include "memory.h"

#pragma GCC visibility push(hidden)

/* A live context with a new id; not opened and not current. */
struct sim_context *sim_context_new(struct sim_device *device, unsigned int flags);
/* Waits for its work, then ends everything that lives in it. */
void sim_context_clear(struct sim_context *context);
/* False: the calling thread's stack is full. */
bool sim_context_push(struct sim_context *context);
/* Off the top of the calling thread's stack, if it is there. */
void sim_context_drop(const struct sim_context *context);
/* As sim_current(), for calls that a sticky error does not stop. */
CUresult sim_context_current(struct sim_context **context);
/* And for those that a reset does not stop either. */
CUresult sim_context_named(struct sim_context **context);

#pragma GCC visibility pop

#endif
