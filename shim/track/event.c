/* SPDX-License-Identifier: Apache-2.0 */

/* Event -- which of the model's events does a handle mean? */

#include "track/event.h"

#include <stdlib.h>

#include "base/lock.h"
#include "base/table.h"
#include "track/state.h"

struct event {
        CUevent handle;
        spm_event model;
        UT_hash_handle hh;
};

/* Guarded by: table_lock. */
static struct event *events;
static struct sp_lock table_lock = SP_LOCK_INIT(SP_RANK_CONTEXT);

spm_event sp_event_find(CUevent handle)
{
        struct event *event;
        spm_event model;

        sp_lock_take(&table_lock);
        HASH_FIND_PTR(events, &handle, event);
        model = event ? event->model : 0;
        sp_lock_drop(&table_lock);
        return model;
}

static spm_event publish(CUevent handle, spm_event model)
{
        struct event *made = calloc(1, sizeof(*made)), *event;

        if (!made)
                return 0;
        made->handle = handle;
        made->model = model;
        sp_lock_take(&table_lock);
        HASH_FIND_PTR(events, &handle, event);
        if (!event) {
                event = made;
                HASH_ADD_PTR(events, handle, event);
                if (!event->hh.tbl)
                        event = NULL;
        }
        model = event ? event->model : 0;
        sp_lock_drop(&table_lock);
        if (event != made)
                free(made);
        return model;
}

spm_event sp_event_of(CUevent handle)
{
        spm_event known = sp_event_find(handle), made = 0;
        enum spm_status status;

        if (known)
                return known;
        status = spm_event_add(sp_model_enter(), &made);
        sp_model_leave();
        if (status != SPM_OK)
                return 0;
        known = publish(handle, made);
        if (known != made) {
                spm_event_remove(sp_model_enter(), made);
                sp_model_leave();
        }
        return known;
}

void sp_event_forget(CUevent handle)
{
        struct event *event;

        sp_lock_take(&table_lock);
        HASH_FIND_PTR(events, &handle, event);
        if (event)
                HASH_DEL(events, event);
        sp_lock_drop(&table_lock);
        if (!event)
                return;
        spm_event_remove(sp_model_enter(), event->model);
        sp_model_leave();
        free(event);
}
