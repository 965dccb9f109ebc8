/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_TRIM_H
#define SPM_TRIM_H

/*
 * Trim -- what may be given back
 *
 * Only segments that no live or pending block lies in (I9), those first that
 * have been idle for longest, and of one free block from its end. A segment of
 * a pool that releases by a barrier (F10) is given back only where a barrier is
 * no news, and never while a capture is open in its context (C10).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/model.h>

#include "pool.h"
#include "subject.h"

/**
 * spm_trim_pool()
 * @reserved: keep at least so many reserved bytes
 * @ready:    keep at least so many ready bytes
 * @released: bytes given back are added to it
 *
 * Return: false if there was more to give back than room for actions.
 */
bool spm_trim_pool(struct spm_model *model, struct spm_pool_state *pool, uint64_t reserved,
                   uint64_t ready, uint64_t *released, struct spm_actions *actions);

/**
 * spm_trim_decay() - what has been idle for too long; as spm_trim_pool()
 * @large: where a large segment goes, at least so much stays reserved rather than @reserved
 */
bool spm_trim_decay(struct spm_model *model, struct spm_pool_state *pool, uint64_t reserved,
                    uint64_t large, uint64_t *released, struct spm_actions *actions);

/**
 * spm_trim_away() - make way for a growth elsewhere in the pool
 * @enough: until the pool reserves no more than so many bytes, if that is to be had
 * @least:  what is smaller stays
 * @from:   nothing of [@from, @to), where the growth will be
 *
 * Leaves room for one action at least.
 */
void spm_trim_away(struct spm_model *model, struct spm_pool_state *pool, uint64_t enough,
                   uint64_t least, uint64_t from, uint64_t to, struct spm_actions *actions);

/**
 * spm_trim_break() - a block of @size bytes is to be at @start in @block, which is free
 *
 * A large segment of which it covers less than seven eighths would have to stay for its sake, and
 * could not move. One that nobody uses is given back instead, so that the place is backed in
 * usual pieces; and there are no more large ones for a while, also if it is still pending.
 *
 * Return: true if one was given back: @block is another then.
 */
bool spm_trim_break(struct spm_model *model, struct spm_block *block, uint64_t start, size_t size,
                    struct spm_actions *actions);

/** spm_trim_page() - a page of a layout, if @block is all of it, and READY. Leaves room for one
 * action. Return: false if it stays. */
bool spm_trim_page(struct spm_model *model, struct spm_block *block, struct spm_actions *actions);

/** spm_trim_ended() - all memory of a pool that has ended (spm_pool_end()). Return: false if there
 * is more. */
bool spm_trim_ended(struct spm_model *model, struct spm_pool_state *pool,
                    struct spm_actions *actions);

/**
 * spm_trim_synced() - after a synchronisation of the program's (A13, U5)
 * @context: that it waited for as a whole, or NULL
 *
 * Looks at the pools whose frees it completed; after a whole context at all pools of its device.
 */
void spm_trim_synced(struct spm_model *model, const struct spm_context_state *context,
                     struct spm_actions *actions);

/** spm_trim_rest() - go on with what there was no room for after a synchronisation: it said what
 * may be given back, and what is ready still is more than that. */
void spm_trim_rest(struct spm_model *model, struct spm_actions *actions);

/** spm_trim_closed() - destroyed pools give back what they can, and are forgotten when empty. */
void spm_trim_closed(struct spm_model *model, struct spm_actions *actions);

#endif
