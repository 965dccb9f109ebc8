/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_ROUTE_ROOM_H
#define SP_ROUTE_ROOM_H

/*
 * Room -- could the device hold it at all?
 *
 * A pool finds out that a device is full by filling it, which takes seconds for a
 * large one. So before it grows for a large request, what is free is looked at.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/model.h>

#include "track/context.h"

/** sp_room_idle() - what is held of @device and nobody uses: of the pools, freed memory included,
 * and what the program had mapped itself. */
uint64_t sp_room_idle(const struct sp_device *device);

/** sp_room_for() - false if @size bytes are more than is free on the current context's device and
 * idle in the pools there, for a pool of that device; true where that is not known. */
bool sp_room_for(spm_pool pool, size_t size);

#endif
