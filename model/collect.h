/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_COLLECT_H
#define SPM_COLLECT_H

/*
 * Collect -- what has waited for points that are complete
 *
 * Its blocks leave limbo, its stamps are dropped, and a retired stream that
 * nothing waits for any more is forgotten.
 */

#include <stdbool.h>
#include <streampool/model.h>

#include "order.h"
#include "subject.h"

/**
 * spm_collect_clock() - the host has seen all points of @clock complete
 * @sync: the program itself waited
 *
 * Blocks that wait for nothing any more become READY, stamps that say nothing new are dropped, and
 * retired streams without remains are forgotten: look streams up again. With @sync, pools whose
 * frees were completed are marked.
 */
void spm_collect_clock(struct spm_model *model, const struct spm_clock *clock, bool sync);

/** spm_collect_stream() - act on its present state; if it is retired, it may be gone then. */
void spm_collect_stream(struct spm_model *model, struct spm_stream_state *stream);

/** spm_collect_strays() - the same for the blocks that have no lane. */
void spm_collect_strays(struct spm_model *model);

/** spm_collect_pool() - look again, by the pool's present standard of completeness. */
void spm_collect_pool(struct spm_model *model, struct spm_pool_state *pool);

#endif
