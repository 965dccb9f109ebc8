/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_ROUTE_PERFORM_H
#define SP_ROUTE_PERFORM_H

/*
 * Perform -- carry out what the model asks for, and report what came of it
 *
 * The model decides what and why; this module does it, on the calling thread
 * and with no lock held, because a driver call can block and can call us back.
 */

#include <stdbool.h>
#include <streampool/model.h>

#include "driver/driver.h"
#include "route/room.h"
#include "track/bracket.h"
#include "track/context.h"

/**
 * sp_perform() - all actions in order
 * @request: the request they belong to, for SPM_ACT_GROW; else NULL
 *
 * Return: false if a wait on the device, or the stamp it needs, was not to be had: what
 * spm_alloc() promised does not hold then.
 */
bool sp_perform_all(const struct spm_actions *actions, struct spm_request *request);
static inline bool sp_perform(const struct spm_actions *actions, struct spm_request *request)
{
        return !actions->count || sp_perform_all(actions, request);
}

/** sp_perform_step() - the same for a request of several steps, once it was judged what is to
 * become of its growth. */
bool sp_perform_step(const struct spm_actions *actions, struct spm_request *request,
                     struct sp_spares *spares, enum sp_verdict verdict);

/**
 * sp_wait_or_look() - a bounded wait for a stamp that a kernel of the program's may be in front of
 * @brief: for a moment only; that it was in vain says nothing to those who wait for longer
 *
 * If that was in vain not long ago it is only looked at, or a program whose memory is full would
 * wait anew for each stamp. Return: as sp_stamp_poll().
 */
CUresult sp_wait_or_look(struct sp_context *context, const struct sp_stamp *stamp, bool brief);

/**
 * sp_serve() - a block for the program, or nothing
 * @stream: 0 for a synchronous pool
 * @extra:  bytes behind it, of which the program knows nothing
 *
 * Return: false when the pool has none; the driver is to be asked instead.
 */
bool sp_serve(spm_pool pool, spm_stream stream, size_t size, size_t extra,
              struct spm_magazine *magazine, struct spm_allocation *block);

/**
 * sp_relieve() - a driver call failed for memory: give back what the pools hold idle (O2)
 *
 * Waits for freed blocks to become idle, for a bounded time and not while something captures.
 * Looks at the current context's device; without one, at every device.
 *
 * Return: true if something was given back, so that the call is worth another try.
 */
bool sp_relieve(void);

/** sp_settle() - everything freed in the context so far becomes ready, if it is done soon. Return:
 * is it? */
bool sp_settle(struct sp_context *context);

/** sp_relieve_device() - the same for one device; false for NULL. What @spared holds ready by then
 * stays (0: no pool is spared). */
bool sp_relieve_device(struct sp_device *device, spm_pool spared);
/** sp_relieve_host() - the same of page-locked memory, because the host is short of it. */
bool sp_relieve_host(void);

/* The result of @call, or of a second @call if memory was short and some could be found. */
#define SP_ASK(call)                                                                               \
        __extension__({                                                                            \
                CUresult asked = (call);                                                           \
                if (asked == CUDA_ERROR_OUT_OF_MEMORY && sp_relieve())                             \
                        asked = (call);                                                            \
                asked;                                                                             \
        })

/** sp_trim_device() - give back what the pools of @device hold ready, all but @spared (0: none is),
 * and what is kept of the program's own mappings; waits for nothing. */
size_t sp_trim_device(struct sp_device *device, spm_pool spared);

/** sp_trim_pool() - give back what is ready in @pool beyond @keep bytes; the bytes given back. */
size_t sp_trim_pool(spm_pool pool, size_t keep);

#endif
