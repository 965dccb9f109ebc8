/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_POOLS_H
#define SP_TRACK_POOLS_H

/*
 * Pools -- what a device and a context have of their own in the model
 *
 * Called while nobody else knows the record yet.
 */

#include <stdbool.h>

#include "track/context.h"

/** sp_pools_make_async() - the pool behind the device's default one; 0 where there cannot be one.
 */
void sp_pools_make_async(struct sp_device *device);

/** sp_pools_make_sync() - the pool behind cuMemAlloc. Return: false when the host has no memory. */
bool sp_pools_make_sync(struct sp_context *context);

#endif
