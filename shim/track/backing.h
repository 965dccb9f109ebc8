/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_BACKING_H
#define SP_TRACK_BACKING_H

/*
 * Backing -- where the pool's memory comes from
 *
 * Three providers behind one interface:
 *
 *   mapped   physical memory of its own (cuMemCreate), mapped where the model
 *            says in the pool's range, or else at addresses of its own. Giving it
 *            back waits for nobody, so it is given back only when no work can
 *            touch it any more (P57).
 *   native   one cuMemAlloc. Giving it back is a cuMemFree, which waits for the
 *            whole context (F10); it dies with the context.
 *   pinned   one cuMemHostAlloc, and the same of cuMemFreeHost (U29)
 *
 * A segment that was obtained is one struct sp_segment, and that is the cookie
 * the model hands back. Threads: every function may be called from any thread;
 * no lock is held in a driver call.
 */

#include <stdbool.h>
#include <stddef.h>
#include <streampool/model.h>

#include "driver/driver.h"
#include "track/chunk.h"
#include "track/context.h"
#include "track/range.h"

struct sp_segment {
        CUdeviceptr base;
        size_t size;
        spm_pool pool;
        struct sp_device *device;
        struct sp_context *context; /* owner of native and pinned memory; NULL for mapped memory */
        bool is_pinned;
        struct sp_chunk chunk;  /* behind mapped memory */
        struct sp_range *range; /* in which it is mapped; NULL: its addresses are its own */
        struct sp_segment *next, *previous; /* guarded by the list's lock */
};

struct sp_backing_wish {
        spm_pool pool;
        struct sp_device *device;
        struct sp_context *context; /* owner of the pool; NULL for an asynchronous one */
        bool is_pinned;             /* a pool of page-locked memory */
        unsigned int host_flags;    /* of that memory */
        struct sp_range *range;     /* of the pool; NULL for pinned memory */
        CUdeviceptr address;        /* in it; 0: anywhere */
        size_t size;                /* a multiple of 2 MiB; of pinned memory, of a page */
        struct sp_spares *spares;   /* to be used first; may be NULL */
};

/**
 * sp_backing_obtain() - all of it, or nothing
 * @segment: return argument
 *
 * Return: CUDA_SUCCESS, CUDA_ERROR_ALREADY_MAPPED if another segment is there or has not left yet,
 * CUDA_ERROR_MAP_FAILED if one is there that the driver would not unmap, or the driver's code, as a
 * rule CUDA_ERROR_OUT_OF_MEMORY.
 */
CUresult sp_backing_obtain(const struct sp_backing_wish *wish, struct sp_segment **segment);

/** sp_backing_give_back() - the segment is nobody's any more; frees the record.
 * @spares: receives the physical memory; NULL: it is the driver's again */
void sp_backing_give_back(struct sp_segment *segment, struct sp_spares *spares);

/** sp_backing_grant() - @peer may now use, or no longer use, every segment of @pool. Return: the
 * first code that is not CUDA_SUCCESS. Native memory follows cuCtxEnablePeerAccess by itself. */
CUresult sp_backing_grant(spm_pool pool, int peer, CUmemAccess_flags flags);

struct sp_backing_part {
        CUdeviceptr base;
        size_t size;
        int descriptor; /* of the physical memory, until the segment is given back */
};

/**
 * sp_backing_export() - what lies behind a live block of mapped memory, by address
 * @parts: return argument, to be freed by the caller
 */
CUresult sp_backing_export(CUdeviceptr address, size_t size, struct sp_backing_part **parts,
                           size_t *count);

/** sp_backing_reserves() - does a pool have this address for itself, mapped or not? */
bool sp_backing_reserves(CUdeviceptr address);

/** sp_backing_is_native() - is a block here plain cuMemAlloc memory? */
static inline bool sp_backing_is_native(const struct sp_segment *segment)
{
        return segment->context != NULL && !segment->is_pinned;
}

/** sp_backing_is_pinned() - is it page-locked host memory? */
static inline bool sp_backing_is_pinned(const struct sp_segment *segment)
{
        return segment->is_pinned;
}

#endif
