/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_EXPORT_H
#define SP_TRACK_EXPORT_H

/*
 * Export -- blocks that other processes may open
 *
 * A record lives from the first cuIpcGetMemHandle of a block to its free: it is
 * gone before the model lets anybody else have, or give back, the memory. Any
 * thread may call; no lock is held in a driver call.
 */

#include <stdbool.h>
#include <streampool/model.h>

#include "driver/driver.h"
#include "track/seal.h"

/** sp_export_can() - can a live block of cuMemAlloc memory be opened elsewhere by a sealed handle?
 */
bool sp_export_can(const struct spm_allocation *block);

/**
 * sp_export_seal() - the handle of a live block, the same one each time
 * @block:  for which sp_export_can() holds
 * @handle: return argument
 *
 * Return: CUDA_SUCCESS, or why there is none: the driver's code; CUDA_ERROR_OUT_OF_MEMORY if the
 * host has no memory or no descriptor to give; CUDA_ERROR_OPERATING_SYSTEM if nobody could get at
 * it.
 */
CUresult sp_export_seal(const struct spm_allocation *block, CUipcMemHandle *handle);

/** sp_export_descriptor() - a copy of the descriptor of a part, or of the table (porter.h), for
 * whom knows the key; -1: there is none. The caller closes it. */
int sp_export_descriptor(const struct sp_seal *seal, uint32_t part);

/** sp_export_is_own() - did this process make the seal? */
bool sp_export_is_own(const struct sp_seal *seal);

/** sp_export_end() - the block is freed: nobody can open it any more; does nothing if it has no
 * record. Under the model's lock, under which it was freed. */
void sp_export_end(const struct spm_allocation *block);

/** sp_export_end_pool() - the same for all blocks of a pool that is gone with its context. */
void sp_export_end_pool(spm_pool pool);

#endif
