/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_ROUTE_ARGUMENTS_H
#define SP_ROUTE_ARGUMENTS_H

/*
 * Arguments -- is a kernel given the address of memory that was freed?
 *
 * STREAMPOOL_CHECK=arguments. Asked before the driver hears of the launch, with no
 * lock held; the launch itself is changed in nothing, whatever the answer. What
 * each launch has for arguments is in arguments.def.
 */

#include <stdbool.h>

#include "driver/driver.h"
#include "route/route.h"

/* Written once, before the shim is on. */
extern bool sp_arguments_are_looked_at;

/* Likewise: is a launch looked at at all, for its arguments or for the order of streams? */
extern bool sp_launches_are_looked_at;

/** sp_arguments_start() - at start, by what the option says and the driver can. */
void sp_arguments_start(void);

/** sp_argument_look() - at what a launch into @stream, which is explicit, is given in one of the
 * two ways; @called is the launch's name, a literal, and sp_caller where it was called. */
void sp_argument_look(const char *called, CUfunction function, CUstream stream, void **params,
                      void **extra) SP_COLD;

#endif
