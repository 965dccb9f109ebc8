/* SPDX-License-Identifier: Apache-2.0 */

/* Route -- does this call belong to the pool, to the mirror, or to the driver? */

#include "route/route.h"

#include "base/config.h"
#include "base/life.h"
#include "report/occasion.h"
#include "route/order.h"
#include "route/perform.h"
#include "route/tick.h"
#include "route/work.h"
#include "track/mempool.h"
#include "track/state.h"

bool sp_route_start(void)
{
        sp_stream_thread_ends = sp_order_thread_ends;
        sp_work_start();
        return sp_state_start();
}

static bool may_pool(void)
{
        return sp_route_pools() && sp_route_may_act();
}

struct sp_context *sp_route_pooling_context(void)
{
        struct sp_context *context = may_pool() ? sp_context_current() : NULL;

        if (!context || !sp_context_pools(context))
                return NULL;
        sp_work_watch(context);
        return context;
}

struct sp_stream *sp_route_pooling_stream(CUstream handle)
{
        struct sp_stream *stream = may_pool() ? sp_stream_of(handle) : NULL;

        if (!stream || !sp_context_pools(stream->context) ||
            !sp_route_current_pool(stream->context->device))
                return NULL;
        sp_work_watch(stream->context);
        return stream;
}

spm_pool sp_route_pool_behind(CUmemoryPool pool, CUstream handle, struct sp_stream **stream)
{
        *stream = pool && may_pool() ? sp_stream_of(handle) : NULL;
        if (!*stream || !sp_context_pools((*stream)->context))
                return 0;
        sp_work_watch((*stream)->context);
        return sp_mempool_serving(pool, (*stream)->context->device);
}

bool sp_route_owns(CUdeviceptr address)
{
        struct spm_allocation block;
        enum spm_status status;

        if (!sp_route_pools())
                return false;
        status = spm_find(sp_model_enter(), address, &block);
        sp_model_leave();
        return status != SPM_E_FOREIGN;
}

CUresult sp_route_ask_driver(void)
{
        return sp_driver.cuMemFree_v2(0);
}

/* mirror */

uint64_t sp_mirror_alloc(spm_pool pool, spm_stream stream, size_t size)
{
        struct spm_allocation block;

        if (sp_config()->mode != SP_MODE_OBSERVE || !pool)
                return 0;
        return sp_serve(pool, stream, size, 0, NULL, &block) ? block.address : 0;
}

void sp_mirror_free(uint64_t shadow, enum spm_free_kind kind, spm_stream stream)
{
        struct spm_actions actions;
        enum spm_status status;

        if (!shadow)
                return;
        status = spm_free(sp_model_enter(), shadow, 0, kind, stream, NULL, &actions);
        sp_model_leave();
        if (status == SPM_OK)
                sp_perform(&actions, NULL);
}

/* waits of the program */

void sp_sync_start(struct sp_sync *sync, struct sp_context *context, struct spm_scope scope)
{
        *sync = (struct sp_sync){.context = context, .scope = scope};
        if (sp_order_is_on)
                sync->version = sp_order_version(scope);
        if (!scope.id || !sp_life_is_on())
                return;
        sync->open = spm_sync_begin(sp_model_enter(), scope, &sync->ticket) == SPM_OK;
        sp_model_leave();
}

/* The program may look at what its pools hold as soon as the call returns (U5). */
static void trim_rest(void)
{
        struct spm_actions actions;
        enum spm_status status;

        do {
                status = spm_trim_due(sp_model_enter(), &actions);
                sp_model_leave();
                sp_perform(&actions, NULL);
        } while (status == SPM_AGAIN);
}

void sp_sync_finish(struct sp_sync *sync, enum spm_sync how, CUresult result)
{
        struct spm_actions actions;
        struct spm_model *model;
        bool crowded;

        sp_context_note_result(sync->context, result);
        sp_report_if_asked();
        if (sp_order_is_on && result == CUDA_SUCCESS)
                sp_order_saw(sync->context, sync->scope, sync->version);
        if (!sync->open)
                return;
        model = sp_model_enter();
        spm_sync_end(model, &sync->ticket, how, result == CUDA_SUCCESS, &actions);
        crowded = how == SPM_SYNC_WAIT && result == CUDA_SUCCESS && sync->context &&
                  spm_context_is_crowded(model, sync->context->model);
        sp_model_leave();
        sp_perform(&actions, NULL);
        if (how == SPM_SYNC_WAIT && actions.count)
                trim_rest();
        if (crowded)
                sp_work_recount(sync->context);
        sp_tick();
}
