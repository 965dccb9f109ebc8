/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_ROUTE_THRIFT_H
#define SP_ROUTE_THRIFT_H

/*
 * Thrift -- the process holds more of a device than STREAMPOOL_SOFT_LIMIT
 *
 * Then a pool grows last: the model is told that there is nothing to be had,
 * and grants what it asks for once it has waited for what was freed and given
 * back what it had no use for. And what is idle goes back at the program's next
 * wait, or after some allocations, until the process is below again.
 */

#include <stdbool.h>
#include <streampool/model.h>

#include "track/context.h"

/** sp_thrift_refuses() - is this growth to come later, or not at all? */
bool sp_thrift_refuses(const struct sp_device *device, const struct spm_action *action);

/** sp_thrift_trim() - gives back what is idle and beyond. */
void sp_thrift_trim(void);

#endif
