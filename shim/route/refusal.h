/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_ROUTE_REFUSAL_H
#define SP_ROUTE_REFUSAL_H

/*
 * Refusal -- the program is told that there is no memory, and a person is told why
 *
 * In the calling thread, with no lock held, after the driver or the limit has
 * answered and before the program hears of it.
 */

#include "route/ask.h"

/** sp_refused() - counts it, and has it told if it is due (report/shortage.h). */
void sp_refused(const struct sp_ask *ask);

#endif
