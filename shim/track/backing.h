/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_BACKING_H
#define SP_TRACK_BACKING_H

/*
 * Backing -- where the pool's memory comes from
 *
 * Two providers behind one interface:
 *
 *   mapped   physical memory of its own mapped at an address range of its own
 *            (cuMemCreate, cuMemMap). Giving it back waits for nobody, so it is
 *            given back only when no work can touch it any more (P57).
 *   native   one cuMemAlloc. Giving it back is a cuMemFree, which waits for the
 *            whole context (F10); it dies with the context.
 *
 * A segment that was obtained is one struct sp_segment, and that is the cookie
 * the model hands back. Threads: every function may be called from any thread;
 * no lock is held in a driver call.
 */

#include <stdbool.h>
#include <stddef.h>
#include <streampool/model.h>

#include "driver/driver.h"
#include "track/context.h"

struct sp_segment {
        CUdeviceptr base;
        size_t size;
        spm_pool pool;
        struct sp_device *device;
        struct sp_context *context;          /* owner of native memory; NULL for mapped memory */
        CUmemGenericAllocationHandle handle; /* of mapped memory */
        struct sp_segment *next, *previous;  /* guarded by the list's lock */
};

/**
 * sp_backing_obtain()
 * @pool:    whose it will be
 * @context: owner, for a synchronous pool; NULL for an asynchronous one
 * @size:    a multiple of 2 MiB
 * @segment: return argument
 *
 * Return: CUDA_SUCCESS or the driver's code, as a rule CUDA_ERROR_OUT_OF_MEMORY.
 */
CUresult sp_backing_obtain(spm_pool pool, struct sp_device *device, struct sp_context *context,
                           size_t size, struct sp_segment **segment);

/** sp_backing_give_back() - the segment is nobody's any more; frees the record. */
void sp_backing_give_back(struct sp_segment *segment);

/** sp_backing_grant() - @peer may now use, or no longer use, every segment of @pool. Return: the
 * first code that is not CUDA_SUCCESS. Native memory follows cuCtxEnablePeerAccess by itself. */
CUresult sp_backing_grant(spm_pool pool, int peer, CUmemAccess_flags flags);

/** sp_backing_is_native() - is a block here plain cuMemAlloc memory? */
static inline bool sp_backing_is_native(const struct sp_segment *segment)
{
        return segment->context != NULL;
}

#endif
