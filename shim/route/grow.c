/* SPDX-License-Identifier: Apache-2.0 */

/* Grow -- segments of the pools come and go */

#include "route/grow.h"

#include <assert.h>
#include <time.h>

#include "base/log.h"
#include "route/perform.h"
#include "route/thrift.h"
#include "track/backing.h"
#include "track/mempool.h"
#include "track/pinned.h"
#include "track/state.h"

/* Whose pool is it, what is it made of, and where? Return: false if it is nobody's any more. */
static bool find_owner(struct sp_backing_wish *wish, struct sp_mempool **held)
{
        wish->context = sp_context_by_pool(wish->pool);
        if (wish->context)
                wish->range = &wish->context->range;
        else
                wish->context = sp_pinned_owner(wish->pool, &wish->host_flags);
        if (wish->context) {
                wish->device = wish->context->device;
                wish->is_pinned = !wish->range;
                return true;
        }
        while ((wish->device = sp_device_each(wish->device)))
                if (wish->device->async_pool == wish->pool) {
                        wish->range = &wish->device->range;
                        return true;
                }
        *held = sp_mempool_hold(wish->pool);
        if (!*held)
                return false;
        wish->device = sp_device_of_ordinal((*held)->ordinal);
        wish->range = &(*held)->range;
        return true;
}

/* Nothing yet, if the process is to be thrifty. Else first what the model would like, then what it
 * needs, then what it needs once the other pools of the device have given back what they hold
 * ready, and if this is the last resort, what they hold freed. What this pool holds ready is the
 * model's to move, if it can be moved, or was obtained a moment ago for this very request; waiting
 * for what it holds freed is the model's to ask for.
 */
static CUresult obtain(const struct spm_action *action, struct sp_backing_wish *wish,
                       struct sp_segment **segment)
{
        spm_pool spared = action->address ? action->pool : 0;
        CUresult result;

        if (!wish->is_pinned && sp_thrift_refuses(wish->device, action))
                return CUDA_ERROR_OUT_OF_MEMORY;
        /* Less costs the driver as much time. */
        if (wish->is_pinned && action->size <= SP_HOST_SMALL && wish->size < SP_HOST_CHUNK)
                wish->size = SP_HOST_CHUNK;
        result = sp_backing_obtain(wish, segment);
        if (result == CUDA_ERROR_OUT_OF_MEMORY && wish->size > action->size) {
                wish->size = action->size;
                result = sp_backing_obtain(wish, segment);
        }
        if (result == CUDA_ERROR_OUT_OF_MEMORY && !wish->is_pinned) {
                if (sp_trim_device(wish->device, spared))
                        result = sp_backing_obtain(wish, segment);
                if (result == CUDA_ERROR_OUT_OF_MEMORY && action->last &&
                    sp_relieve_device(wish->device, spared))
                        result = sp_backing_obtain(wish, segment);
        }
        sp_context_note_result(wish->context, result);
        return result;
}

static enum spm_status add(const struct spm_action *action, struct sp_segment *segment)
{
        enum spm_status status;
        spm_segment id;

        sp_log(SP_LOG_DEBUG, "pool %u: obtained %zu MiB", action->pool, segment->size >> 20);
        status = spm_segment_add(sp_model_enter(), action->pool, segment->base, segment->size,
                                 segment, &id);
        sp_model_leave();
        if (status != SPM_OK)
                sp_backing_give_back(segment, NULL);
        return status;
}

static CUresult obtain_one(const struct spm_action *action, struct sp_backing_wish *wish)
{
        struct sp_segment *segment;
        CUresult result = obtain(action, wish, &segment);

        if (result == CUDA_SUCCESS && add(action, segment) != SPM_OK)
                result = CUDA_ERROR_OUT_OF_MEMORY;
        return result;
}

/*
 * What the driver has not got in one piece it may have in several: they are halved until they come.
 * So one that has less is found out after as many calls as there are halves.
 */
static CUresult obtain_parts(const struct spm_action *action, struct sp_backing_wish *wish)
{
        size_t left = action->size, part = left / 2;
        CUresult result = CUDA_SUCCESS;
        struct sp_segment *segment;

        while (left && result == CUDA_SUCCESS) {
                part = (part + SP_GRAIN - 1) & ~(SP_GRAIN - 1);
                wish->size = part < left ? part : left;
                result = sp_backing_obtain(wish, &segment);
                if (result == CUDA_ERROR_OUT_OF_MEMORY && wish->size > SP_GRAIN) {
                        part = wish->size / 2;
                        result = CUDA_SUCCESS;
                        continue;
                }
                if (result == CUDA_SUCCESS && add(action, segment) != SPM_OK)
                        result = CUDA_ERROR_OUT_OF_MEMORY;
                wish->address += wish->size;
                left -= wish->size;
        }
        return result;
}

/* The last resort, unless it is to be in one piece. */
static bool may_be_parted(const struct spm_action *action, const struct spm_request *request)
{
        return action->last && action->address && action->size > SP_GRAIN && !request->whole;
}

CUresult sp_grow(const struct spm_action *action, struct spm_request *request,
                 struct sp_spares *spares)
{
        struct sp_backing_wish wish = {
                .pool = action->pool,
                .address = action->address,
                .size = action->address ? action->size : action->preferred,
                .spares = spares,
        };
        CUresult result = CUDA_ERROR_INVALID_CONTEXT;
        struct sp_mempool *held = NULL;

        assert(request);
        if (find_owner(&wish, &held))
                result = obtain_one(action, &wish);
        if (result == CUDA_ERROR_OUT_OF_MEMORY && may_be_parted(action, request))
                result = obtain_parts(action, &wish);
        if (held)
                sp_mempool_let_go(held);
        if (result == CUDA_SUCCESS || result == CUDA_ERROR_ALREADY_MAPPED)
                return result;
        sp_log(SP_LOG_INFO, "pool %u: no %zu bytes to be had (%d)", action->pool, action->size,
               (int)result);
        sp_grow_refuse(request);
        return result;
}

/* What the other one does there takes some ten microseconds; it may have to find memory first. */
void sp_grow_wait(void)
{
        const struct timespec moment = {.tv_nsec = 20000};

        nanosleep(&moment, NULL);
}

void sp_grow_refuse(struct spm_request *request)
{
        spm_grow_failed(sp_model_enter(), request);
        sp_model_leave();
}

void sp_shrink(const struct spm_action *action, struct sp_spares *spares)
{
        sp_log(SP_LOG_DEBUG, "pool %u: %s %zu MiB", action->pool,
               action->moves ? "moves" : "gave back", action->size >> 20);
        sp_backing_give_back(action->cookie, action->moves ? spares : NULL);
}
