/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_ROUTE_GUARD_H
#define SP_ROUTE_GUARD_H

/*
 * Guard -- what device memory of the pool holds before and after the program has it
 *
 * STREAMPOOL_POISON fills a block with SP_POISON_SERVED when it is served, so that memory
 * that is read before it is written says so, and with SP_POISON_FREED when it is
 * freed, so that memory that is used afterwards does. Each fill is ordered as the
 * program's own first or last use of the block would be:
 *
 *   cuMemAllocAsync   on its stream
 *   cuMemAlloc        any stream and the host may use it at once: filled when the call returns
 *   cuMemFreeAsync    on its stream, before the free
 *   cuMemFree         when the context is idle, for which the driver's own waits as well (M1);
 *                     of an asynchronous block on the stream it was allocated on, because
 *                     that free waits for nothing (A5)
 *
 * STREAMPOOL_REDZONE takes so many bytes more for each block, fills what lies behind it
 * likewise when it is served (SP_REDZONE), and looks there when it is freed (redzone.h).
 *
 * There is no fill while anything captures, for memory that the driver serves, or where a
 * driver call fails: what is asked for is answered as without the option. Two frees of one
 * block at the same moment both fill it, and by the time of the second it may be another's. A
 * kernel that leaves no room on the device, and ends only when the program goes on, lets cuMemAlloc
 * wait for ever.
 *
 * Without the option each of these places is one look at a word that never changes.
 */

#include <stdbool.h>
#include <streampool/model.h>

#include "base/config.h"
#include "driver/driver.h"
#include "route/route.h"
#include "track/fault.h"

#define SP_POISON_SERVED 0xcb
#define SP_POISON_FREED  0xdf
#define SP_REDZONE       0xbd

/** sp_guards() - is there anything to do around allocations and frees? */
static inline bool sp_guards(void)
{
        return (sp_config()->poison | sp_config()->redzone) != 0;
}

/** sp_attends() - is there more to a call than to serve it: may it be made to fail, or is it
 * guarded?
 */
static inline bool sp_attends(void)
{
        return (sp_faults.count | sp_config()->poison | sp_config()->redzone) != 0;
}

/** sp_guard_extra() - bytes that are taken behind a block of device memory. */
static inline size_t sp_guard_extra(void)
{
        return sp_config()->redzone;
}

/** sp_guard_served() - the pool of a context serves @block, and nobody has it yet. */
void sp_guard_served(struct sp_context *context, const struct spm_allocation *block) SP_COLD;

/** sp_guard_served_on() - likewise, in the order of @stream. */
void sp_guard_served_on(struct sp_stream *stream, const struct spm_allocation *block) SP_COLD;

/** sp_guard_free() - cuMemFree of @address, which may be no block, is about to be carried out. */
void sp_guard_free(CUdeviceptr address) SP_COLD;

/** sp_guard_free_on() - likewise cuMemFreeAsync on @stream. */
void sp_guard_free_on(struct sp_stream *stream, CUdeviceptr address) SP_COLD;

#endif
