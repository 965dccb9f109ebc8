/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_QUARANTINE_H
#define SPM_QUARANTINE_H

/*
 * Quarantine -- freed, and served to nobody for a while
 *
 * A pool may keep what was freed last, up to a number of bytes, so that an address that
 * is used or freed once more is nobody else's yet. What exceeds that leaves in
 * the order it came in, as if it were freed only then, but what it waits for stays
 * what it was. All of it leaves when memory is short, before anybody is refused, and
 * when the pool is trimmed or destroyed.
 *
 * Kept bytes are pending in all figures. Nobody waits for them, and a block that is
 * larger than the quarantine is never in it.
 */

#include <stdbool.h>
#include <streampool/model.h>

#include "pool.h"
#include "record.h"

/** spm_quarantine_put() - a LOOSE block whose dependencies are set becomes KEPT, and what is too
 * much then leaves. One that is known outside is served to nobody anyhow: it goes where it would
 * without a quarantine. */
void spm_quarantine_put(struct spm_model *model, struct spm_block *block);

/** spm_quarantine_take() - KEPT to LOOSE; dependencies are kept. */
void spm_quarantine_take(struct spm_block *block);

/** spm_quarantine_end() - all of it leaves. Return: was there any? */
bool spm_quarantine_end(struct spm_model *model, struct spm_pool_state *pool);

#endif
