/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_LIMIT_H
#define SP_TRACK_LIMIT_H

/*
 * Limit -- how much of a device the process holds, and how much it may hold
 *
 * One figure a device, and one rule: it is raised before the driver is asked, and
 * lowered after the driver has refused, or taken the memory back. So whatever
 * threads do at once, what they hold and what they are asking for stays within
 * STREAMPOOL_LIMIT. No lock is involved.
 *
 * What counts:
 *
 *   the pool       what it has obtained, idle or not: chunks and native segments
 *   cuMemAlloc     of the driver, and cuMemAllocPitch, cuMemAllocManaged, arrays: rounded as
 *                  the driver was measured to round (M17, M18), to 512 bytes up to 1 MiB and
 *                  to 2 MiB beyond. Managed memory may lie on the host; it can move at any time.
 *   asynchronous   of the driver: as asked for, in steps of 512 bytes, from the call that
 *                  allocates to the call that frees
 *   cuMemCreate    on a device: from its creation until it has no handle and no mapping
 *
 * Memory of the host counts against no device. What of it is page-locked, allocated or registered,
 * in pages, counts by itself, against STREAMPOOL_PINNED_LIMIT (SP_LIMIT_HOST).
 *
 * What does not count: memory of somebody else (imported), and what no call asks for by its size:
 * contexts, modules, graphs, local memory of kernels, and what the driver's pools and pages of
 * small allocations hold besides (P56).
 *
 * All functions but the first may be called from any thread, with any lock held. Nothing here
 * calls the driver.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "track/ledger.h"

#define SP_LIMIT_NONE UINT64_MAX
#define SP_LIMIT_HOST (-2) /* in place of a device: page-locked memory */

/** sp_limit_set() - what a device may be used for, before the shim is on; 0 for no limit. */
void sp_limit_set(int device, uint64_t cap, uint64_t soft);

/** sp_limit_is_set() - is there a limit, on any device? */
bool sp_limit_is_set(void);

/** sp_limit_cap() - what the process may hold of a device; SP_LIMIT_NONE if there is no limit. */
uint64_t sp_limit_cap(int device);

/** sp_limit_counted() - what it holds, as far as it counts. */
uint64_t sp_limit_counted(int device);

/** sp_limit_excess() - what @more bytes would be beyond the soft limit; 0 if they are within. */
uint64_t sp_limit_excess(int device, size_t more);

/** sp_limit_rounded() - what an allocation of @bytes counts for. */
size_t sp_limit_rounded(enum sp_kind kind, size_t bytes);

/** sp_limit_is_exact() - is that what the driver takes? It packs small allocations into pages, and
 * stream-ordered ones into pools. */
bool sp_limit_is_exact(enum sp_kind kind, size_t bytes);

/** sp_limit_take() - @bytes more; false, and nothing has changed, if that is past the limit. No
 * @device (-1) has no limit. */
bool sp_limit_take(int device, size_t bytes);

/** sp_limit_add() - the same for memory that is there already. */
void sp_limit_add(int device, size_t bytes);
void sp_limit_give(int device, size_t bytes);

#endif
