/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_ROUTE_STAMPS_H
#define SP_ROUTE_STAMPS_H

/*
 * Stamps -- which events are behind a stamp of the model?
 *
 * Whoever uses one holds it, so that another thread's SPM_ACT_DROP does not
 * give its event to somebody else in the middle of a wait.
 */

#include <stdbool.h>
#include <streampool/model.h>

#include "base/table.h"
#include "stamp/stamp.h"
#include "track/context.h"

/* Written once before publication: everything but the last two, which are the table's. */
struct sp_held_stamp {
        spm_stamp id;
        struct sp_stamp stamp;
        struct sp_context *context;
        unsigned int references; /* one is the model's */
        UT_hash_handle hh;
};

/** sp_stamps_add() - a stamp was recorded; it is the model's until sp_stamps_put(). False when the
 * host has no memory: the stamp is the caller's still. */
bool sp_stamps_add(spm_stamp id, const struct sp_stamp *stamp, struct sp_context *context);

/** sp_stamps_get() - hold a stamp; NULL if it was dropped. */
struct sp_held_stamp *sp_stamps_get(spm_stamp id);

/** sp_stamps_put() - no longer; the last one gives its events back. */
void sp_stamps_put(struct sp_held_stamp *held);

#endif
