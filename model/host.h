/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_HOST_H
#define SPM_HOST_H

/*
 * Host -- where the model's own records live
 *
 * The allocator of struct spm_config, or the C library's. Every other module
 * gets its memory here, so that a test can make the n-th request fail.
 */

#include <stddef.h>
#include <streampool/model.h>

/** spm_host_new() - zeroed memory, or NULL. */
void *spm_host_new(struct spm_model *model, size_t size);

/** spm_host_free() - NULL is accepted. */
void spm_host_free(struct spm_model *model, void *memory);

#endif
