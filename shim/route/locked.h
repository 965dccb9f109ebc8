/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_ROUTE_LOCKED_H
#define SP_ROUTE_LOCKED_H

/*
 * Locked -- the driver is to lock pages of the host's memory: may it?
 *
 *   size_t counted;
 *   CUresult result = sp_locked_take(size, &counted);
 *
 *   if (result == CUDA_SUCCESS)
 *           result = ...the driver...
 *   sp_locked_ended(SP_KIND_PINNED, address, size, counted, result);
 *
 * STREAMPOOL_PINNED_LIMIT is asked before the driver, and once more after the pools have given back
 * what they hold idle. Who is refused is told what the driver tells when there are no more pages;
 * what it would say to anybody just now, because of a capture or a sticky error, comes first.
 */

#include <stddef.h>
#include <stdint.h>

#include "driver/driver.h"
#include "track/ledger.h"

/** sp_locked_take() - CUDA_SUCCESS if the driver is to be asked, or what the program is told.
 * @counted: return argument, always written: what was taken from the limit */
CUresult sp_locked_take(size_t size, size_t *counted);

/** sp_locked_ended() - @result is what the program is told; success is written down. */
void sp_locked_ended(enum sp_kind kind, uint64_t address, size_t size, size_t counted,
                     CUresult result);

#endif
