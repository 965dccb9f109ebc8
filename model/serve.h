/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_SERVE_H
#define SPM_SERVE_H

/*
 * Serve -- a free block becomes the program's
 *
 * A block that is still pending keeps what its memory waits for, its birth,
 * and the program's stream is put behind that: by the order it has, or by a
 * wait that is asked for.
 */

#include <streampool/model.h>

#include "fit.h"

/**
 * spm_serve_fit() - give the memory to the program
 * @actions: the belt, and what a legacy stream needs (H6)
 *
 * Return: SPM_OK; SPM_E_HOST_MEMORY; SPM_E_UNKNOWN when a legacy stream cannot have the block now,
 * because no stamp is to be had. Nothing has changed then.
 */
enum spm_status spm_serve_fit(struct spm_model *model, const struct spm_want *want,
                              const struct spm_fit *fit, struct spm_block **served,
                              struct spm_actions *actions);

/** spm_serve_slab() - make slots of the class that is wanted. Return: false if there is no room for
 * a run, or no host memory. */
bool spm_serve_slab(struct spm_model *model, const struct spm_want *want);

#endif
