/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_IMPORT_H
#define SP_TRACK_IMPORT_H

/*
 * Import -- sealed blocks of other processes that are open here
 *
 * As with the driver, a handle that is opened again in the same context has the
 * same address, and is closed as often. Any thread may call; no lock is held in a
 * driver call.
 */

#include <stdbool.h>
#include <stddef.h>

#include "driver/driver.h"
#include "track/context.h"
#include "track/seal.h"

struct sp_import;

/**
 * sp_import_open() - once more, or for the first time
 * @flags:   of cuIpcOpenMemHandle
 * @address: return argument, where the block begins
 *
 * Return: CUDA_SUCCESS, the driver's code, or CUDA_ERROR_INVALID_HANDLE: the exporter, or the
 * block, is gone, or out of reach.
 */
CUresult sp_import_open(const struct sp_seal *seal, struct sp_context *context, unsigned int flags,
                        CUdeviceptr *address);

/** sp_import_find() - the open block that holds @pointer; false if there is none. */
bool sp_import_find(CUdeviceptr pointer, CUdeviceptr *address, size_t *size,
                    struct sp_context **context);

/** sp_import_close() - once less; false if no open block begins there. What was closed as often as
 * opened stays mapped until it is swept. */
bool sp_import_close(CUdeviceptr address);

/** sp_import_take_closed() - what can be swept of @context, all in one list, or NULL. */
struct sp_import *sp_import_take_closed(const struct sp_context *context);

/** sp_import_sweep() - unmaps: no work may use it any more. */
void sp_import_sweep(struct sp_import *list);
/** sp_import_put_back() - not now. */
void sp_import_put_back(struct sp_import *list);

/** sp_import_forget() - the context is gone, with all that was open in it. */
void sp_import_forget(const struct sp_context *context);

#endif
