/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_ROUTE_WHOSE_H
#define SP_ROUTE_WHOSE_H

/*
 * Whose -- is memory that the program asks about ours?
 */

#include <stdbool.h>
#include <streampool/model.h>

#include "driver/driver.h"
#include "track/context.h"

enum sp_whose {
        SP_FOREIGN, /* the driver's */
        SP_OURS,    /* in a live block */
        SP_FREED,   /* at an address of ours, and in none */
};

/** sp_whose() - @block: return argument, written for SP_OURS. */
enum sp_whose sp_whose(CUdeviceptr pointer, struct spm_allocation *block);

/** sp_whose_context() - the owner of a block; NULL of an asynchronous one. */
struct sp_context *sp_whose_context(const struct spm_allocation *block);

/** sp_known_outside() - from now on the block is never served again (Q3), and work of its last
 * owner has ended. */
void sp_known_outside(const struct spm_allocation *block);

/** sp_is_whole_native() - is it a whole cuMemAlloc of ours, which can do what any other can? */
bool sp_is_whole_native(const struct spm_allocation *block);

/** sp_can_be_exported() - would cuIpcGetMemHandle answer for it? */
bool sp_can_be_exported(const struct spm_allocation *block);

#endif
