/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_LADDER_H
#define SPM_LADDER_H

/*
 * Ladder -- from a request to a block, and what to try before giving up
 *
 * Rungs, in the order of what they cost the program (A1, O1):
 *
 *   serve      a block that may be had now
 *   poll       ask whether frees have completed meanwhile
 *   pressure   wait for the oldest batch, where the driver's own free would
 *              have waited and too much has gathered (O3)
 *   gather     take the blocks of magazines back, and ask of every stream
 *              whether it is idle
 *   spare      before the sole stream's heap (work.h) passes what the pool may
 *              hold (grow.h), wait for what was freed to it, oldest first
 *   grow       ask for more segments
 *   internal   memory is short: order the stream behind another's free
 *   wait       for what is pending, on the host
 *   release    segments that do not fit, so that the driver can join them
 *   regrow     exactly what is needed
 *
 * Nothing before "internal" makes a stream or, but for O3 and what cuMemFree()
 * would have waited for, the host wait for anything that it would not wait for
 * without us (G5, I6).
 */

#include <streampool/model.h>

#include "fit.h"

/**
 * spm_ladder_climb() - one step
 * @want: of a synchronous pool, its stream may become the sole one on the way
 *
 * Return: SPM_OK with @block; SPM_AGAIN; SPM_E_OUT_OF_MEMORY; SPM_E_HOST_MEMORY.
 */
enum spm_status spm_ladder_climb(struct spm_model *model, struct spm_want *want,
                                 struct spm_request *request, struct spm_block **block,
                                 struct spm_actions *actions);

/** spm_ladder_step() - one rung, when nothing was to be had. Return: SPM_OK to look again at once;
 * else as spm_ladder_climb(). */
enum spm_status spm_ladder_step(struct spm_model *model, const struct spm_want *want,
                                struct spm_request *request, struct spm_actions *actions);

/** spm_ladder_grows() - has the request come to the rung where pools grow? */
bool spm_ladder_grows(const struct spm_request *request);

/** spm_ladder_is_short() - has the request come to the rungs where waits are allowed (I6)? */
bool spm_ladder_is_short(const struct spm_request *request);

/** spm_ladder_refused() - the caller could not grow the pool. */
void spm_ladder_refused(struct spm_request *request);

/** spm_ladder_whole() - the step that asked for growth asks again, for whole pieces. */
void spm_ladder_whole(struct spm_request *request);

#endif
