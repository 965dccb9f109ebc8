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
 *
 * Two threads can be sent to the same place, and one can be sent where the other
 * is about to leave. So a place is taken before anything is mapped there, and
 * given back after it was unmapped: the second one finds it taken, and has not
 * asked the driver for anything.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "driver/driver.h"

/* What the driver maps memory by: segments are multiples of it. */
#define SP_GRAIN ((size_t)2 << 20)

/* Written once before publication: base, size. Guarded by the lock in range.c: taken. */
struct sp_range {
        CUdeviceptr base; /* 0: the pool has none */
        size_t size;
        atomic_uint users;    /* the pool, and each segment in it */
        unsigned char *taken; /* for each grain, whether a segment is there */
};

/** sp_range_reserve() - for a pool of a device with @memory bytes; there may be none to be had. */
void sp_range_reserve(struct sp_range *range, size_t memory);

/**
 * sp_range_take() - one more segment
 * @address, @size: multiples of 2 MiB inside the range
 *
 * Return: CUDA_SUCCESS; CUDA_ERROR_ALREADY_MAPPED if another segment is there;
 * CUDA_ERROR_INVALID_CONTEXT if the range is nobody's any more.
 */
CUresult sp_range_take(struct sp_range *range, CUdeviceptr address, size_t size);

/** sp_range_give() - one segment less. */
void sp_range_give(struct sp_range *range, CUdeviceptr address, size_t size);

/** sp_range_leave() - the pool is gone. Does nothing where there is no range. */
void sp_range_leave(struct sp_range *range);

/** sp_range_holds() - is the address one of a pool's, mapped or not? */
bool sp_range_holds(const struct sp_range *range, CUdeviceptr address);

#endif
