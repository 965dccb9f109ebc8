/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_RANGE_H
#define SP_TRACK_RANGE_H

/*
 * Range -- addresses that a pool has for itself
 *
 * A mapped pool has one reserved range from its beginning to its end. Its
 * segments come and go in there, so that neighbours join, and so that free
 * memory can be mapped where it is needed. Addresses cost nothing: the range is
 * several times the device's memory, in case that is free in small pieces.
 *
 * It is the driver's again when the pool is gone and the last segment is out of
 * it, whichever is later.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "driver/driver.h"

/* Written once before publication: base, size. */
struct sp_range {
        CUdeviceptr base; /* 0: the pool has none */
        size_t size;
        atomic_uint users; /* the pool, and each segment in it */
};

/** sp_range_reserve() - for a pool of a device with @memory bytes; there may be none to be had. */
void sp_range_reserve(struct sp_range *range, size_t memory);

/** sp_range_enter() - one more user. Return: false if the range is nobody's any more. */
bool sp_range_enter(struct sp_range *range);

/** sp_range_leave() - one user less: a segment, or the pool. Does nothing where there is no range.
 */
void sp_range_leave(struct sp_range *range);

/** sp_range_holds() - is the address one of a pool's, mapped or not? */
bool sp_range_holds(const struct sp_range *range, CUdeviceptr address);

#endif
