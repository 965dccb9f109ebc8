/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_POOLS_H
#define SP_TRACK_POOLS_H

/*
 * Pools -- what a device and a context have of their own in the model
 *
 * In two steps, while nobody else knows the record yet: what takes driver calls,
 * and then, once it is certain that the record will be known, what the model has
 * to know. So the model never has to forget what nobody has used.
 */

#include <stdbool.h>

#include "track/context.h"

/** sp_pools_prepare_async() - for the pool behind the device's default one. */
void sp_pools_prepare_async(struct sp_device *device);

/** sp_pools_make_async() - that pool; 0 where there cannot be one. No driver calls. */
void sp_pools_make_async(struct sp_device *device);

/** sp_pools_make_plain() - a pool behind one of the program's, of which there may be many: its
 * range is half as large. Return: false where there cannot be one. */
bool sp_pools_make_plain(const struct sp_device *device, struct sp_range *range, spm_pool *pool);

/** sp_pools_prepare_sync() - for the pool behind cuMemAlloc. */
void sp_pools_prepare_sync(struct sp_context *context);

/** sp_pools_make_sync() - that pool. No driver calls. Return: false when the host has no memory. */
bool sp_pools_make_sync(struct sp_context *context);

#endif
