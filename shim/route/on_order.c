/* SPDX-License-Identifier: Apache-2.0 */

/*
 * On order -- streams, and the program's own waits
 *
 * What streams there are, and what the host sees of their work: by waiting for a
 * stream, an event or a context, or asking about it. What orders streams among
 * themselves is in on_event.c.
 *
 * Every call goes to the driver as it is; before a stream is waited for or asked
 * about, it gets an operation where the driver could not see an allocation. The
 * model is told before, because what completes is what was submitted before the call
 * (H4, H5), and after, because only the driver knows whether it worked.
 */

#include "base/life.h"
#include "route/perform.h"
#include "route/route.h"
#include "track/event.h"
#include "track/state.h"

/* streams */

CUresult CUDAAPI sp_on_cuStreamCreate(CUstream *stream, unsigned int flags)
{
        CUresult result = SP_ASK(sp_driver.cuStreamCreate(stream, flags));

        if (result == CUDA_SUCCESS)
                sp_stream_made(*stream, flags);
        return result;
}

CUresult CUDAAPI sp_on_cuStreamCreateWithPriority(CUstream *stream, unsigned int flags,
                                                  int priority)
{
        CUresult result = SP_ASK(sp_driver.cuStreamCreateWithPriority(stream, flags, priority));

        if (result == CUDA_SUCCESS)
                sp_stream_made(*stream, flags);
        return result;
}

/* The last chance to learn when the stream's work is done: afterwards its handle means nothing,
 * and its work goes on (L1). */
static struct sp_stream *retire(CUstream handle)
{
        struct sp_stream *stream = sp_stream_find(handle);
        struct spm_actions actions;
        enum spm_status status;

        sp_capture_forget(handle);
        if (!stream)
                return NULL;
        status = spm_stream_retire(sp_model_enter(), stream->model, &actions);
        sp_model_leave();
        if (status == SPM_OK)
                sp_perform(&actions, NULL);
        sp_stream_forget(stream);
        return stream;
}

/* The driver may have ended its own part of the thread: no stamp is to be had any more. */
static void refuse_records(struct spm_actions *actions)
{
        unsigned int kept = 0;

        for (unsigned int i = 0; i < actions->count; i++) {
                struct spm_actions more;

                if (actions->item[i].kind != SPM_ACT_RECORD) {
                        actions->item[kept++] = actions->item[i];
                        continue;
                }
                spm_stamp_recorded(sp_model_enter(), actions->item[i].stamp, false, &more);
                sp_model_leave();
                sp_perform(&more, NULL);
        }
        actions->count = kept;
}

/* After fork(), and at the end of the process, everything is left as it is. */
void sp_order_thread_ends(void)
{
        struct sp_stream *stream;
        struct spm_actions actions;
        enum spm_status status;

        while (sp_life_is_on() && (stream = sp_stream_take_own())) {
                status = spm_stream_retire(sp_model_enter(), stream->model, &actions);
                sp_model_leave();
                if (status == SPM_OK) {
                        refuse_records(&actions);
                        sp_perform(&actions, NULL);
                }
                sp_stream_end_own(stream);
        }
}

CUresult CUDAAPI sp_on_cuStreamDestroy(CUstream stream)
{
        retire(stream);
        return sp_driver.cuStreamDestroy(stream);
}

CUresult CUDAAPI sp_on_cuStreamDestroy_v2(CUstream stream)
{
        retire(stream);
        return sp_driver.cuStreamDestroy_v2(stream);
}

/* waits and questions */

/* The driver would have an allocation to wait for, that is behind the legacy stream or what the
 * context waits for; of an idle stream it says that it is idle. So there is an operation now. */
static void see_allocation(struct sp_stream *stream)
{
        struct sp_stream *entered = sp_stream_enter(stream->model);
        struct sp_stamp stamp;
        CUstreamCaptureMode mode;

        if (!entered)
                return;
        atomic_store(&stream->owes, false);
        mode = sp_bracket_open();
        if (sp_stamp_on_stream(&stream->context->stamper, stream->handle, &stamp) == CUDA_SUCCESS)
                sp_stamp_drop(&stamp);
        sp_bracket_close(mode);
        sp_stream_leave(entered);
}

static void start_stream(struct sp_sync *sync, CUstream handle)
{
        struct sp_stream *stream = sp_life_is_on() ? sp_stream_of(handle) : NULL;
        struct spm_scope scope = {SPM_SCOPE_STREAM, stream ? stream->model : 0};

        if (stream && atomic_load_explicit(&stream->owes, memory_order_relaxed))
                see_allocation(stream);
        sp_sync_start(sync, stream ? stream->context : NULL, scope);
}

CUresult CUDAAPI sp_on_cuStreamSynchronize(CUstream stream)
{
        struct sp_sync sync;
        CUresult result;

        start_stream(&sync, stream);
        result = sp_driver.cuStreamSynchronize(stream);
        sp_sync_finish(&sync, SPM_SYNC_WAIT, result);
        return result;
}

CUresult CUDAAPI sp_on_cuStreamQuery(CUstream stream)
{
        struct sp_sync sync;
        CUresult result;

        start_stream(&sync, stream);
        result = sp_driver.cuStreamQuery(stream);
        sp_sync_finish(&sync, SPM_SYNC_QUERY, result);
        return result;
}

static void start_event(struct sp_sync *sync, CUevent event)
{
        struct spm_scope scope = {SPM_SCOPE_EVENT, sp_life_is_on() ? sp_event_find(event) : 0};

        sp_sync_start(sync, NULL, scope);
}

/* An event says which context it belongs to only to the model, so a sticky error is noted against
 * the current one, which is asked for only then. */
static void finish_event(struct sp_sync *sync, enum spm_sync how, CUresult result)
{
        if (sync->open && result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
                sync->context = sp_context_current();
        sp_sync_finish(sync, how, result);
}

CUresult CUDAAPI sp_on_cuEventSynchronize(CUevent event)
{
        struct sp_sync sync;
        CUresult result;

        start_event(&sync, event);
        result = sp_driver.cuEventSynchronize(event);
        finish_event(&sync, SPM_SYNC_WAIT, result);
        return result;
}

CUresult CUDAAPI sp_on_cuEventQuery(CUevent event)
{
        struct sp_sync sync;
        CUresult result;

        start_event(&sync, event);
        result = sp_driver.cuEventQuery(event);
        finish_event(&sync, SPM_SYNC_QUERY, result);
        return result;
}

static void start_context(struct sp_sync *sync, struct sp_context *context)
{
        struct spm_scope scope = {SPM_SCOPE_CONTEXT, context ? context->model : 0};

        sp_sync_start(sync, context, scope);
}

CUresult CUDAAPI sp_on_cuCtxSynchronize(void)
{
        struct sp_sync sync;
        CUresult result;

        start_context(&sync, sp_context_current());
        result = sp_driver.cuCtxSynchronize();
        sp_sync_finish(&sync, SPM_SYNC_WAIT, result);
        return result;
}

#if CUDA_VERSION >= 13000
CUresult CUDAAPI sp_on_cuCtxSynchronize_v2(CUcontext handle)
{
        struct sp_sync sync;
        CUresult result;

        start_context(&sync, handle ? sp_context_find(handle) : sp_context_current());
        result = sp_driver.cuCtxSynchronize_v2(handle);
        sp_sync_finish(&sync, SPM_SYNC_WAIT, result);
        return result;
}
#endif
