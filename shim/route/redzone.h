/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_ROUTE_REDZONE_H
#define SP_ROUTE_REDZONE_H

/*
 * Redzone -- was anything written behind a block?
 *
 * What lies behind a block, of what was taken for it, is copied to the host when the
 * block is freed; a byte that is not SP_REDZONE any more is a finding of the ledger's,
 * which tells where the block came from and which free has seen it.
 *
 * cuMemFree has waited for the context, so it looks at once. cuMemFreeAsync waits for nothing:
 * the copy is work of its stream, and is looked at in later calls, or at the end of
 * the process, by then without the driver. Copies go to a few places for each context; while all
 * are taken, blocks are freed unseen. A place holds SP_REDZONE before the copy, so one that has
 * not come about accuses nobody.
 */

#include <stddef.h>
#include <streampool/model.h>

#include "driver/driver.h"
#include "route/route.h"
#include "track/ledger.h"

#define SP_REDZONE_MAX  ((size_t)1 << 20) /* of STREAMPOOL_REDZONE (options.def) */
#define SP_REDZONE_MORE 4096              /* of what rounding leaves, so much is looked at */

/* A block that is about to be freed, and by what. */
struct sp_redzone_look {
        struct sp_ledger_entry block;
        size_t size; /* of what lies behind it */
        const char *function;
        const void *site;
};

/** sp_redzone_size() - bytes behind @block that are filled and looked at; 0 without the option. */
size_t sp_redzone_size(const struct spm_allocation *block);

/** sp_redzone_prepare() - for @block, which is live; @function frees it. Return: false if it is
 * not any more. */
bool sp_redzone_prepare(const struct spm_allocation *block, const char *function,
                        struct sp_redzone_look *look);

/** sp_redzone_look_now() - waits for @own, on which nothing else is. */
CUresult sp_redzone_look_now(const struct sp_redzone_look *look, CUstream own);

/** sp_redzone_look_later() - in the order of @stream, which was entered and whose context is
 * current. */
void sp_redzone_look_later(const struct sp_redzone_look *look, struct sp_stream *stream);

/** sp_redzone_end() - the process ends: looks at what has come, and calls nobody. */
void sp_redzone_end(void);

#endif
