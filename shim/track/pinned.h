/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_PINNED_H
#define SP_TRACK_PINNED_H

/*
 * Pinned -- which pool serves a block of page-locked host memory?
 *
 * Two pools of the model for every context and set of flags (P60), made when
 * they are first asked for: small blocks share chunks, a large one has a chunk
 * to itself. Chunks are cuMemHostAlloc's with the same flags, see track/backing.h.
 */

#include <stdbool.h>
#include <stddef.h>
#include <streampool/model.h>

#include "track/context.h"

#define SP_HOST_SMALL ((size_t)1 << 20) /* larger blocks do not share */
#define SP_HOST_CHUNK ((size_t)2 << 20) /* what small ones share */

/**
 * sp_pinned_pool() - the pool for such a block
 *
 * Return: 0 if it is the driver's to serve: too large, flags that we do not know, not wanted, or a
 * device that is not the context's own could be using a freed block.
 */
spm_pool sp_pinned_pool(struct sp_context *context, size_t size, unsigned int flags);

/** sp_pinned_owner() - the context of a pool made here, NULL for any other pool. @flags: return
 * argument, may be NULL */
struct sp_context *sp_pinned_owner(spm_pool pool, unsigned int *flags);

/** sp_pinned_each() - the first pool of @context at or after *@index, which becomes the next one;
 * 0 after the last. Start with 0. */
spm_pool sp_pinned_each(const struct sp_context *context, unsigned int *index);

/** sp_pinned_is_heavy() - does the pool lie idle on more than the host should be asked to lock? */
bool sp_pinned_is_heavy(spm_pool pool);

/* A context that cuCtxCreate made came, or is gone. */
void sp_pinned_context_made(void);
void sp_pinned_context_gone(void);

#endif
