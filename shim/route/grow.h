/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_ROUTE_GROW_H
#define SP_ROUTE_GROW_H

/*
 * Grow -- segments of the pools come and go
 *
 * What the two of sp_perform()'s actions do that are about memory itself. A
 * segment that moves is released and obtained in one list; its physical memory
 * is among the spares in between.
 */

#include <streampool/model.h>

#include "driver/driver.h"
#include "track/chunk.h"

/**
 * sp_grow() - obtains memory, and tells the model that it came, or that it did not
 *
 * Two requests that grow one pool at once can be sent to the same place. The one that comes second
 * tells the model nothing, so that its next step finds what the first one brought.
 *
 * Return: CUDA_SUCCESS; CUDA_ERROR_ALREADY_MAPPED if another request was faster; or why nothing was
 * to be had.
 */
CUresult sp_grow(const struct spm_action *action, struct spm_request *request,
                 struct sp_spares *spares);

/** sp_grow_wait() - lets the others get on who were faster. */
void sp_grow_wait(void);

/** sp_grow_refuse() - tells the model that there is nothing to be had. */
void sp_grow_refuse(struct spm_request *request);

/** sp_shrink() - gives the memory of a segment back. */
void sp_shrink(const struct spm_action *action, struct sp_spares *spares);

#endif
