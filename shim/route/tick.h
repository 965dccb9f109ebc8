/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_ROUTE_TICK_H
#define SP_ROUTE_TICK_H

/*
 * Tick -- memory that was idle for long goes back to the driver
 *
 * The model reads no clock and we start no thread, so the program's own calls
 * bring the time: its waits and questions, one of every so many of its pooled
 * allocations, and those for which the pool had to do more than look. A
 * program that makes no call keeps its memory until it does.
 *
 * Most of these find that a tenth of STREAMPOOL_DECAY has not passed yet, which
 * costs a look at the clock. None looks while a capture is open.
 */

#include <stdint.h>

#define SP_TICK_CALLS 64 /* pooled allocations to a tick; a power of two */

void sp_tick(void);

#endif
