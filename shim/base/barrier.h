/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_BARRIER_H
#define SP_BARRIER_H

/*
 * Barrier -- one thread pays for a fence in all others
 *
 * Where one side of a handshake runs all the time and the other hardly ever, the
 * first stores and loads without a fence, and the second makes every thread of
 * the process pass one (membarrier, Linux 4.14).
 */

#include <stdbool.h>

/** sp_barrier_start() - Return: true if sp_barrier() can be had in this process, from now on. */
bool sp_barrier_start(void);

/** sp_barrier() - every thread passes a full fence between the call and its return. Return: false
 * if that could not be had. */
bool sp_barrier(void);

#endif
