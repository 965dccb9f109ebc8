/* SPDX-License-Identifier: Apache-2.0 */

/* Memory pool, place -- on which device is the memory of a pool of the driver's, if on any? */

#include "track/mempool_place.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/lock.h"
#include "base/table.h"

struct place {
        CUmemoryPool handle;
        int device;
        UT_hash_handle hh;
};

/* Guarded by: table_lock. */
static struct place *places;
static struct sp_lock table_lock = SP_LOCK_INIT(SP_RANK_CONTEXT);

/* Most programs make no pool, and take no lock. */
static atomic_bool has_any;

static int forget_locked(CUmemoryPool handle)
{
        struct place *place;
        int was;

        HASH_FIND_PTR(places, &handle, place);
        if (!place)
                return SP_PLACE_UNKNOWN;
        was = place->device;
        HASH_DEL(places, place);
        free(place);
        return was;
}

int sp_mempool_place_of(const CUmemPoolProps *props)
{
        return props->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? props->location.id
                                                                   : SP_PLACE_HOST;
}

void sp_mempool_place_set(CUmemoryPool handle, int place)
{
        struct place *made = place == SP_PLACE_UNKNOWN ? NULL : calloc(1, sizeof(*made));
        bool is_known;

        if (!made)
                return;
        made->handle = handle;
        made->device = place;
        sp_lock_take(&table_lock);
        forget_locked(handle);
        HASH_ADD_PTR(places, handle, made);
        is_known = made->hh.tbl != NULL;
        sp_lock_drop(&table_lock);
        if (is_known)
                atomic_store(&has_any, true);
        else
                free(made);
}

int sp_mempool_place(CUmemoryPool handle)
{
        const struct place *place;
        int device = SP_PLACE_UNKNOWN;

        if (!atomic_load(&has_any))
                return device;
        sp_lock_take(&table_lock);
        HASH_FIND_PTR(places, &handle, place);
        if (place)
                device = place->device;
        sp_lock_drop(&table_lock);
        return device;
}

int sp_mempool_place_take(CUmemoryPool handle)
{
        int was;

        if (!atomic_load(&has_any))
                return SP_PLACE_UNKNOWN;
        sp_lock_take(&table_lock);
        was = forget_locked(handle);
        sp_lock_drop(&table_lock);
        return was;
}
