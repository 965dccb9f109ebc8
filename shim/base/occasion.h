/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_OCCASION_H
#define SP_OCCASION_H

/*
 * Occasion -- has somebody asked for a report?
 *
 * A signal may come, and a context may fail, where no report can be written: in a
 * handler, or with a lock held. So it is asked for here, and written where one of
 * the program's calls comes by and holds nothing (report/occasion.h).
 */

#include <stdatomic.h>
#include <stdbool.h>

enum sp_occasion {
        SP_OCCASION_NONE,
        SP_OCCASION_ERROR,  /* a context has failed */
        SP_OCCASION_SIGNAL, /* a signal that STREAMPOOL_REPORT_ON names */
};

/* Atomic. */
extern atomic_uint sp_occasion_asked;

/** sp_occasion_ask() - from anywhere, a handler of a signal included. */
static inline void sp_occasion_ask(enum sp_occasion occasion)
{
        atomic_store(&sp_occasion_asked, occasion);
}

static inline bool sp_occasion_is_there(void)
{
        return atomic_load_explicit(&sp_occasion_asked, memory_order_relaxed);
}

#endif
