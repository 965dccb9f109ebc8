/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_ROUTE_FAULT_H
#define SP_ROUTE_FAULT_H

/*
 * Fault -- is this call made to fail?
 *
 * The first question of every handler that gives out memory: a call that is to
 * fail is answered before anything else is looked at, so it has no effect, and
 * neither the driver nor the model hears of it. It is answered the same whatever
 * captures, and in every mode but STREAMPOOL_MODE=off. Nothing is remembered of
 * it: an error after which a driver would answer nothing else is the answer of
 * this one call.
 *
 * Calls that ask for no memory, with a size of 0 or nowhere to put the answer, are
 * the driver's to judge, and not counted. Frees never fail.
 *
 * Without a rule this is one look at a word that never changes.
 */

#include "driver/driver.h"
#include "route/route.h"
#include "track/fault.h"
#include "track/ledger.h"

/** sp_fault_judge() - the same where there are rules; what fails is told. */
CUresult sp_fault_judge(enum sp_kind kind, const char *function, size_t bytes) SP_COLD;

/**
 * sp_fault() - what the program is told instead of being served; CUDA_SUCCESS: it is to be served
 * @function: as cuda.h names it
 * @bytes:    asked for; SP_FAULT_UNSIZED if that cannot be known
 */
static inline CUresult sp_fault(enum sp_kind kind, const char *function, size_t bytes)
{
        return sp_faults.count ? sp_fault_judge(kind, function, bytes) : CUDA_SUCCESS;
}

#endif
