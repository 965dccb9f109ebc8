/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_CHECK_H
#define SPM_CHECK_H

/*
 * Check -- every invariant by name
 *
 * SPM_CHECK() ends each input in debug builds. While a model is small it
 * looks every time; later often enough that a step stays cheap on average.
 */

#include <streampool/model.h>

#ifdef SPM_DEBUG
void spm_check_step(struct spm_model *model);
#define SPM_CHECK(model) spm_check_step(model)
#else
#define SPM_CHECK(model) ((void)(model))
#endif

#endif
