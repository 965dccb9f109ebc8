/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_STAMP_STAMP_H
#define SP_STAMP_STAMP_H

/*
 * Stamp -- how we learn that work is done without making anybody wait
 *
 * A stamp is one or more driver events. When all of them are done, everything
 * submitted before the stamp was recorded is done (F6). Two ways to record one:
 *
 *   on a stream    covers that stream.
 *   in a context   covers every stream of the context: its blocking and
 *                  non-blocking streams, the legacy stream, every thread's
 *                  per-thread stream and streams destroyed since (U1).
 *
 * A context stamp is one cuCtxRecordEvent where the driver has it (12.5 and
 * later); else an event on the legacy stream, which waits for every blocking
 * stream, and one on each non-blocking stream the caller names (option C of F6).
 *
 * Threads: a stamper is guarded by its own lock, never held in a driver call.
 * A stamp belongs to whoever recorded it. No function here may be called while
 * the context captures: the event would be captured, or the capture lost (C3).
 */

#include <stdbool.h>

#include "base/lock.h"
#include "driver/driver.h"

/* The events of one context. They die with it; sp_stamper_forget() says so. */
struct sp_stamper {
        CUcontext context;
        struct sp_lock lock;
        /* Guarded by: lock. Idle events, newest last. */
        CUevent *idle;
        unsigned int idle_count, idle_room;
};

struct sp_stamp {
        struct sp_stamper *stamper;
        CUevent event; /* the only one, as a rule */
        CUevent *more; /* option C: the non-blocking streams' events */
        unsigned int more_count;
};

void sp_stamper_init(struct sp_stamper *stamper, CUcontext context);

/* The context is gone, and its events with it: no driver call is made. */
void sp_stamper_forget(struct sp_stamper *stamper);

/**
 * sp_stamp_on_stream() - record on one stream
 * @stream: of the stamper's context, not capturing
 *
 * Return: CUDA_SUCCESS, or the driver's code; @stamp is written on success only.
 */
CUresult sp_stamp_on_stream(struct sp_stamper *stamper, CUstream stream, struct sp_stamp *stamp);

/**
 * sp_stamp_in_context() - record behind all work of the context
 * @others: its live non-blocking streams, used where the driver has no context event
 *
 * Return: as sp_stamp_on_stream().
 */
CUresult sp_stamp_in_context(struct sp_stamper *stamper, const CUstream *others, unsigned int count,
                             struct sp_stamp *stamp);

/* Is everything done? CUDA_SUCCESS, CUDA_ERROR_NOT_READY, or the driver's code. */
CUresult sp_stamp_poll(const struct sp_stamp *stamp);

/* Wait on the host; give up with NOT_READY after @patience_ms, or as much again, as naps take
 * longer than they should; 0: never. */
#define SP_STAMP_FOR_EVER    0
#define SP_STAMP_MOMENT_MS   50
#define SP_STAMP_PATIENCE_MS 1000
CUresult sp_stamp_wait(const struct sp_stamp *stamp, unsigned int patience_ms);

/* Make @stream wait for the stamp on the device. CUDA_ERROR_NOT_READY, and it does not wait, while
 * other threads launch graphs into it (graph_gate.h). */
CUresult sp_stamp_make_wait(const struct sp_stamp *stamp, CUstream stream);

/* The stamp is no longer needed; its events are recorded again some day. */
void sp_stamp_drop(struct sp_stamp *stamp);

#endif
