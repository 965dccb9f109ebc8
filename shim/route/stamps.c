/* SPDX-License-Identifier: Apache-2.0 */

/* Stamps -- which events are behind a stamp of the model? */

#include "route/stamps.h"

#include <stdlib.h>

#include "base/lock.h"

/* Guarded by: table_lock. */
static struct sp_held_stamp *stamps;
static struct sp_lock table_lock = SP_LOCK_INIT(SP_RANK_CONTEXT);

bool sp_stamps_add(spm_stamp id, const struct sp_stamp *stamp, struct sp_context *context)
{
        struct sp_held_stamp *held = calloc(1, sizeof(*held));
        bool added;

        if (!held)
                return false;
        held->id = id;
        held->stamp = *stamp;
        held->context = context;
        held->references = 1;
        sp_lock_take(&table_lock);
        HASH_ADD(hh, stamps, id, sizeof(id), held);
        added = held->hh.tbl != NULL;
        sp_lock_drop(&table_lock);
        if (!added)
                free(held);
        return added;
}

struct sp_held_stamp *sp_stamps_get(spm_stamp id)
{
        struct sp_held_stamp *held;

        sp_lock_take(&table_lock);
        HASH_FIND(hh, stamps, &id, sizeof(id), held);
        if (held)
                held->references++;
        sp_lock_drop(&table_lock);
        return held;
}

void sp_stamps_put(struct sp_held_stamp *held)
{
        bool last;

        sp_lock_take(&table_lock);
        last = --held->references == 0;
        if (last)
                HASH_DEL(stamps, held);
        sp_lock_drop(&table_lock);
        if (!last)
                return;
        /* The events of a context that is gone are gone with it. */
        if (!atomic_load(&held->context->gone))
                sp_stamp_drop(&held->stamp);
        free(held);
}
