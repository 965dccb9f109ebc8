/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Relieve -- the device is full: what do the pools hold that nobody uses?
 *
 * The driver's own cuMemFree would have waited and given the memory back, so
 * here we may wait as well: for everything freed so far, but only for a bounded
 * time, because the stamp also covers work that was submitted after the free
 * and that may never end (F6, G5).
 */

#include "route/perform.h"

#include "base/log.h"
#include "report/counters.h"
#include "route/route.h"
#include "route/whole.h"
#include "stamp/stamp.h"
#include "track/mempool.h"
#include "track/pinned.h"
#include "track/state.h"
#include "track/vmm.h"

size_t sp_trim_pool(spm_pool pool, size_t keep)
{
        size_t sum = 0, released;
        struct spm_actions actions;
        enum spm_status status;

        do {
                released = 0;
                status = spm_trim(sp_model_enter(), pool, keep, &released, &actions);
                sp_model_leave();
                sp_perform(&actions, NULL);
                sum += released;
        } while (status == SPM_AGAIN);
        return sum;
}

static bool has_pending(spm_pool pool)
{
        struct spm_stats stats;
        bool known = spm_stats(sp_model_enter(), pool, &stats) == SPM_OK;

        sp_model_leave();
        return known && stats.pending_bytes > 0;
}

static bool has_any_pending(const struct sp_device *device)
{
        spm_pool pools[SP_MEMPOOLS_MAX];
        unsigned int count = sp_mempools_on(device, pools);

        while (count && !has_pending(pools[count - 1]))
                count--;
        return count;
}

/* A stamp now, and a bounded wait for it. */
static CUresult wait_for_all(struct sp_context *context)
{
        struct sp_stamp stamp;
        CUresult result = CUDA_ERROR_NOT_PERMITTED;

        if (!sp_quiet_enter())
                return result;
        if (sp_context_enter(context))
                result = sp_whole_record(context, &stamp);
        else
                context = NULL;
        sp_quiet_leave();
        if (result == CUDA_SUCCESS) {
                result = sp_wait_or_look(context, &stamp, false);
                sp_stamp_drop(&stamp);
        }
        if (context)
                sp_context_leave(context);
        return result;
}

bool sp_settle(struct sp_context *context)
{
        struct spm_scope scope = {SPM_SCOPE_CONTEXT, context->model};
        struct spm_actions actions;
        struct spm_ticket ticket;
        enum spm_status status;
        CUresult result;

        status = spm_sync_begin(sp_model_enter(), scope, &ticket);
        sp_model_leave();
        if (status != SPM_OK)
                return false;
        result = wait_for_all(context);
        sp_context_note_result(context, result);
        spm_sync_end(sp_model_enter(), &ticket, SPM_SYNC_POLL, result == CUDA_SUCCESS, &actions);
        sp_model_leave();
        sp_perform(&actions, NULL);
        return result == CUDA_SUCCESS;
}

static bool is_pooled_on(const struct sp_context *context, const struct sp_device *device)
{
        return context->device == device && sp_context_pools(context);
}

size_t sp_trim_device(struct sp_device *device, spm_pool spared)
{
        spm_pool pools[SP_MEMPOOLS_MAX];
        unsigned int count = sp_mempools_on(device, pools);
        size_t released = sp_vmm_trim(device->ordinal, 0);

        for (unsigned int i = 0; i < count; i++)
                if (pools[i] != spared)
                        released += sp_trim_pool(pools[i], 0);
        for (struct sp_context *context = sp_context_each(NULL); context;
             context = sp_context_each(context))
                if (is_pooled_on(context, device) && context->sync_pool != spared)
                        released += sp_trim_pool(context->sync_pool, 0);
        return released;
}

static bool holds_pinned(const struct sp_context *context)
{
        unsigned int index = 0;

        return sp_context_pools(context) && sp_pinned_each(context, &index);
}

/* Giving this memory back waits for its context, so only where that is idle by then. */
bool sp_relieve_host(void)
{
        CUstreamCaptureMode mode;
        size_t released = 0;

        if (!sp_route_may_act())
                return false;
        mode = sp_bracket_open();
        for (struct sp_context *context = sp_context_each(NULL); context;
             context = sp_context_each(context)) {
                unsigned int index = 0;
                spm_pool pool;

                if (!holds_pinned(context) || !sp_settle(context))
                        continue;
                while ((pool = sp_pinned_each(context, &index)))
                        released += sp_trim_pool(pool, 0);
        }
        sp_bracket_close(mode);
        if (released)
                sp_count(reliefs);
        return released > 0;
}

bool sp_relieve_device(struct sp_device *device, spm_pool spared)
{
        CUstreamCaptureMode mode;
        size_t released;

        if (!device || !sp_route_pools())
                return false;
        mode = sp_bracket_open();
        for (struct sp_context *context = sp_context_each(NULL); context;
             context = sp_context_each(context))
                if (is_pooled_on(context, device) && sp_route_may_act() &&
                    (has_pending(context->sync_pool) || has_any_pending(device)))
                        sp_settle(context);
        released = sp_trim_device(device, spared);
        sp_bracket_close(mode);
        sp_log(SP_LOG_INFO, "device %d is short of memory: gave %zu MiB back", device->ordinal,
               released >> 20);
        if (released)
                sp_count(reliefs);
        return released > 0;
}

bool sp_relieve(void)
{
        struct sp_context *current = sp_context_current();
        bool relieved = false;

        if (current)
                return sp_relieve_device(current->device, 0);
        for (struct sp_device *device = sp_device_each(NULL); device;
             device = sp_device_each(device))
                relieved = sp_relieve_device(device, 0) || relieved;
        return relieved;
}
