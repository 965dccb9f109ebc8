/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_MEMPOOL_SET_H
#define SP_TRACK_MEMPOOL_SET_H

/*
 * What is set on a memory pool -- by the options, and by the program
 *
 * The driver's pool remembers it, and answers the program's questions; the
 * model's pool is given what the driver's has, whenever that may be new. So of
 * two threads that set something, both pools believe the same one.
 */

#include <stdbool.h>
#include <streampool/model.h>

#include "driver/driver.h"

/* Of an attribute. */
union sp_mempool_value {
        int policy;
        cuuint64_t bytes;
};

/** sp_mempool_is_forced() - does an option say what @attribute is, for good? Then @value is that.
 */
bool sp_mempool_is_forced(int ordinal, CUmemPool_attribute attribute,
                          union sp_mempool_value *value);

/** sp_mempool_start() - a pool is new to us: what the options say is set on it. */
void sp_mempool_start(CUmemoryPool handle, int ordinal);

/** sp_mempool_was_set() - the driver's pool may have a new value of @attribute. */
void sp_mempool_was_set(CUmemoryPool handle, CUmemPool_attribute attribute);

/** sp_mempool_was_shared() - the driver's pool may have other rights for @peer, a device. */
void sp_mempool_was_shared(CUmemoryPool handle, int peer);

/** sp_mempool_take_over() - @model has just been put behind the driver's pool. */
void sp_mempool_take_over(CUmemoryPool handle, spm_pool model);

#endif
