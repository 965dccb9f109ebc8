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

#include <stdbool.h>

#define SP_TICK_CALLS 64 /* pooled allocations to a tick; a power of two */

/* Per thread, because counting together would cost more than the tick. */
extern __thread unsigned int sp_tick_calls __attribute__((tls_model("initial-exec")));

/** sp_tick_is_due() - true for one of every so many calls of a thread. */
static inline bool sp_tick_is_due(void)
{
        return ++sp_tick_calls % SP_TICK_CALLS == 0;
}

void sp_tick(void);

#endif
