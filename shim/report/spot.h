/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_SPOT_H
#define SP_SPOT_H

/*
 * Spot -- where exactly does the program free wrongly?
 *
 * At a finding of a kind that STREAMPOOL_ABORT_ON names, what was found is logged
 * and abort() is called in the thread that made the call, before it returns: a
 * core, or a debugger, shows the spot. What a rule of suppress.h applies to is
 * passed over. There is no report then, since memory is still in use.
 */

#include <stdbool.h>

/** sp_spot_start() - heed the option; once, after the rules were read. */
void sp_spot_start(void);

/**
 * sp_spot_parse() - bit n for each kind n of the list @text, "double-free,foreign"
 * @warn: called for each word that is none; the others count
 */
unsigned int sp_spot_parse(const char *text, void (*warn)(const char *message));

#endif
