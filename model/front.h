/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_FRONT_H
#define SPM_FRONT_H

/*
 * Front -- what the files of the front door share
 */

#include <streampool/model.h>

/** spm_model_finish() - the end of every input that has actions: what closed pools can give back,
 * dropped stamps, and in debug builds a check. Return: @status. */
enum spm_status spm_model_finish(struct spm_model *model, enum spm_status status,
                                 struct spm_actions *actions);

#endif
