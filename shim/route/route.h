/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_ROUTE_ROUTE_H
#define SP_ROUTE_ROUTE_H

/*
 * Route -- does this call belong to the pool, to the mirror, or to the driver?
 *
 *   pool     memory comes from the pool, the ledger writes it down
 *   mirror   STREAMPOOL_MODE=observe: the driver serves, and the model is told
 *            what it would have served, so that the report can say what the
 *            pool would have saved
 *   driver   everything else, and everything while a capture is open: what is
 *            legal then is the driver's to say (C7)
 */

#include <stdbool.h>
#include <streampool/model.h>

#include "base/config.h"
#include "base/life.h"
#include "driver/driver.h"
#include "track/context.h"
#include "track/ledger.h"
#include "track/state.h"
#include "track/stream.h"

/* Off the hot path, and out of its way. */
#define SP_COLD __attribute__((noinline, cold))

/** sp_route_start() - the model and the figures; false when the host has no memory for them. */
bool sp_route_start(void);

/** sp_order_thread_ends() - retires the per-thread streams of the calling thread. */
void sp_order_thread_ends(void);

/** sp_route_pooling_context() - the current context if a synchronous block may be served in it now.
 */
struct sp_context *sp_route_pooling_context(void);

/** sp_route_pooling_stream() - the stream of this call if an asynchronous block may be served on
 * it. */
struct sp_stream *sp_route_pooling_stream(CUstream handle);

/** sp_route_current_pool() - what cuMemAllocAsync is served from on @device; 0: by the driver. */
static inline spm_pool sp_route_current_pool(const struct sp_device *device)
{
        return atomic_load_explicit(&device->current_pool, memory_order_relaxed);
}

/**
 * sp_route_pool_behind() - what an allocation from a pool of the program's is served from
 * @stream: return argument, the stream of this call
 *
 * Return: 0 if the driver has to serve. Memory of another device than the stream's is its own.
 */
spm_pool sp_route_pool_behind(CUmemoryPool pool, CUstream handle, struct sp_stream **stream);

/** sp_route_pools() - is this the mode in which addresses of ours exist? */
static inline bool sp_route_pools(void)
{
        return sp_config()->mode == SP_MODE_POOL;
}

/** sp_route_owns() - is @address inside memory of ours? Also of freed blocks. */
bool sp_route_owns(CUdeviceptr address);

/**
 * sp_route_ask_driver() - what would the driver say to a cuMemFree here and now?
 *
 * Asked only where the answer can differ from "yes": while a capture is open (the driver refuses,
 * and invalidates the capture: M22), after a sticky error or a reset, and when the process ends.
 * cuMemFree(0) is judged by the same rules and does nothing else; it does not wait (measured).
 */
CUresult sp_route_ask_driver(void);

/** sp_route_may_act() - on, and no capture open: we may serve, record and ask. */
static inline bool sp_route_may_act(void)
{
        return sp_life_is_on() && !sp_is_capturing();
}

/** sp_route_is_quiet() - no capture, no reset context, no end in sight: no need to ask the driver.
 */
static inline bool sp_route_is_quiet(void)
{
        return sp_route_may_act() &&
               !atomic_load_explicit(&sp_primaries_down, memory_order_relaxed);
}

/** sp_route_entry() - of the current context; what is not said is not known. */
struct sp_ledger_entry sp_route_entry(enum sp_kind kind, uint64_t address, size_t bytes);

/** sp_route_write_down() - the driver has served; 0 is no address. */
void sp_route_write_down(enum sp_kind kind, uint64_t address, size_t bytes);

/** sp_capture_forget() - a capture on @handle, which nobody knew when it began, has ended, or the
 * stream is about to be destroyed; of others nothing is done. */
void sp_capture_forget(CUstream handle);

/**
 * sp_route_barrier() - the end of a free that the driver was not told of
 * @context: the owner of the block; may be NULL
 * @waits:   until the context is idle, as the driver's own free does
 *
 * Return: CUDA_SUCCESS, or what the driver would have said: the sticky error of a context.
 */
CUresult sp_route_barrier(struct sp_context *context, bool waits);

/** sp_route_wait() - until a context is idle. Return: false if it could not be waited; else @result
 * is what the driver said. */
bool sp_route_wait(struct sp_context *context, CUresult *result) SP_COLD;

/* Mirror: @shadow is what the model gave instead of the driver's address, 0 for "not mirrored". */
uint64_t sp_mirror_alloc(spm_pool pool, spm_stream stream, size_t size);
void sp_mirror_free(uint64_t shadow, enum spm_free_kind kind, spm_stream stream);

/*
 * A wait or a question of the program's, seen before and after; not followed if @scope names
 * nothing. A sticky error is noted against @context, which may be NULL.
 */
struct sp_sync {
        struct sp_context *context;
        struct spm_ticket ticket;
        bool open;
        struct spm_scope scope;
        uint64_t version; /* for sp_order_saw() */
};
void sp_sync_start(struct sp_sync *sync, struct sp_context *context, struct spm_scope scope);
void sp_sync_finish(struct sp_sync *sync, enum spm_sync how, CUresult result);

#endif
