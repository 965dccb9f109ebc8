/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_MEMPOOL_PLACE_H
#define SP_TRACK_MEMPOOL_PLACE_H

/*
 * Memory pool, place -- on which device is the memory of a pool of the driver's, if on any?
 *
 * A pool that the program makes can be of the host's memory, or of another device
 * than the stream's (E13): what the driver serves from it counts there, or nowhere.
 * Of a pool that the program did not make, because the driver has it for the host or
 * another process made it, the place is not known, and taken to be the stream's device.
 */

#include "driver/driver.h"

#define SP_PLACE_HOST    (-1) /* on none */
#define SP_PLACE_UNKNOWN (-2)

/** sp_mempool_place_of() - a device, or SP_PLACE_HOST, as @props say. */
int sp_mempool_place_of(const CUmemPoolProps *props);

/** sp_mempool_place_set() - the memory of @handle is there; nothing if that is SP_PLACE_UNKNOWN. */
void sp_mempool_place_set(CUmemoryPool handle, int place);

/** sp_mempool_place() - where it is. */
int sp_mempool_place(CUmemoryPool handle);

/** sp_mempool_place_take() - likewise, and it is no longer known: the driver is about to be told to
 * destroy the pool, and gives its handle out again. If it refuses, the place is set once more. */
int sp_mempool_place_take(CUmemoryPool handle);

#endif
