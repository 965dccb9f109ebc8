/* SPDX-License-Identifier: Apache-2.0 */

/*
 * On event -- what an event stands for, and who is behind it
 *
 * Records, and waits of a stream or of a whole context for an event: what orders
 * streams among themselves. The driver gets each call as it is, and the model is told
 * before and after, as in on_order.c. Where the host waits for an event is there.
 *
 * While a capture is open, calls on a capturing stream are no work and no
 * order: the model does not hear of them, and an event recorded there says
 * nothing until it is recorded again (H18, C3).
 */

#include "base/life.h"
#include "route/order.h"
#include "route/perform.h"
#include "route/route.h"
#include "route/work.h"
#include "track/event.h"
#include "track/state.h"

/* records: an event is about to stand for what a stream, or a context, has submitted */

struct recording {
        spm_event event;
        struct spm_ticket ticket;
        bool open;
        bool in_capture;
};

/* The stream or context is none that we know: what the event said before it says no more. */
static void forget_record(CUevent event)
{
        spm_event known = sp_event_find(event);

        if (!known)
                return;
        spm_event_taint(sp_model_enter(), known, false);
        sp_model_leave();
}

static void start_record(struct recording *recording, CUevent event, struct spm_scope where,
                         bool in_capture)
{
        struct spm_actions actions;

        *recording = (struct recording){.in_capture = in_capture};
        if (!sp_life_is_on())
                return;
        if (!where.id && !in_capture) {
                forget_record(event);
                return;
        }
        recording->event = sp_event_of(event);
        if (!recording->event || in_capture)
                return;
        recording->open = spm_record_begin(sp_model_enter(), recording->event, where,
                                           &recording->ticket, &actions) == SPM_OK;
        sp_model_leave();
        sp_perform(&actions, NULL);
}

static void finish_record(struct recording *recording, CUresult result)
{
        if (recording->open)
                spm_record_end(sp_model_enter(), &recording->ticket, result == CUDA_SUCCESS);
        else if (recording->event && recording->in_capture && result == CUDA_SUCCESS)
                spm_event_taint(sp_model_enter(), recording->event, false);
        else
                return;
        sp_model_leave();
}

/* What was recorded in a capture says nothing, and a record that has no event here is one that is
 * not followed. */
static SP_COLD void order_record(const struct recording *recording, CUevent event, CUstream handle,
                                 CUresult result)
{
        spm_event known;

        if (result != CUDA_SUCCESS || !sp_life_is_on())
                return;
        known = sp_event_find(event);
        if (!known)
                sp_order_give_up("an event was recorded that is not known");
        else if (recording->in_capture)
                sp_order_taint(known, false);
        else
                sp_order_record(known, handle);
}

static void start_stream_record(struct recording *recording, CUevent event, CUstream handle)
{
        struct sp_stream *stream = sp_life_is_on() ? sp_stream_of(handle) : NULL;
        struct spm_scope where = {SPM_SCOPE_STREAM, stream ? stream->model : 0};

        start_record(recording, event, where, stream && sp_stream_captures(stream));
}

CUresult CUDAAPI sp_on_cuEventRecord(CUevent event, CUstream stream)
{
        struct recording recording;
        CUresult result;

        start_stream_record(&recording, event, stream);
        result = sp_driver.cuEventRecord(event, stream);
        finish_record(&recording, result);
        if (sp_order_is_on)
                order_record(&recording, event, stream, result);
        return result;
}

CUresult CUDAAPI sp_on_cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
        struct recording recording;
        CUresult result;

        start_stream_record(&recording, event, stream);
        result = sp_driver.cuEventRecordWithFlags(event, stream, flags);
        finish_record(&recording, result);
        if (sp_order_is_on)
                order_record(&recording, event, stream, result);
        /* An external record in a capture happens again at every launch of the graph (H12). */
        if (result == CUDA_SUCCESS && recording.in_capture && recording.event) {
                bool forever = flags & CU_EVENT_RECORD_EXTERNAL;

                spm_event_taint(sp_model_enter(), recording.event, forever);
                sp_model_leave();
                if (sp_order_is_on)
                        sp_order_taint(recording.event, forever);
        }
        return result;
}

CUresult CUDAAPI sp_on_cuEventDestroy(CUevent event)
{
        sp_event_forget(event);
        return sp_driver.cuEventDestroy(event);
}

CUresult CUDAAPI sp_on_cuEventDestroy_v2(CUevent event)
{
        sp_event_forget(event);
        return sp_driver.cuEventDestroy_v2(event);
}

/* device waits: a stream, or a context, is about to wait for an event */

struct waiting {
        struct spm_ticket ticket;
        bool open;
};

static void start_wait(struct waiting *waiting, struct spm_scope waiter, CUevent handle)
{
        spm_event event = waiter.id ? sp_event_find(handle) : 0;

        waiting->open = false;
        if (!event)
                return;
        waiting->open = spm_wait_begin(sp_model_enter(), waiter, event, &waiting->ticket) == SPM_OK;
        sp_model_leave();
}

static void finish_wait(struct waiting *waiting, CUresult result)
{
        if (!waiting->open)
                return;
        spm_wait_end(sp_model_enter(), &waiting->ticket, result == CUDA_SUCCESS);
        sp_model_leave();
}

CUresult CUDAAPI sp_on_cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int flags)
{
        struct sp_stream *stream = sp_life_is_on() ? sp_stream_of(handle) : NULL;
        bool counts = stream && !sp_stream_captures(stream);
        struct spm_scope waiter = {SPM_SCOPE_STREAM, counts ? stream->model : 0};
        struct waiting waiting;
        struct sp_submitter *self = sp_submit_enter();
        CUresult result;

        sp_submit_mark(handle, SP_SUBMIT_LAUNCH);
        if (sp_order_is_on)
                sp_order_wait(handle, sp_event_find(event));
        start_wait(&waiting, waiter, event);
        result = sp_driver.cuStreamWaitEvent(handle, event, flags);
        sp_submit_leave(self);
        if (sp_order_is_on)
                sp_order_wait(handle, sp_event_find(event));
        /* Waiting for a captured event draws the stream into the capture: no order was made. */
        finish_wait(&waiting,
                    stream && sp_stream_captures(stream) ? CUDA_ERROR_NOT_PERMITTED : result);
        return result;
}

/* whole contexts */

#if CUDA_VERSION >= 12050
static struct spm_scope whole(CUcontext handle)
{
        struct sp_context *context = sp_life_is_on() ? sp_context_find(handle) : NULL;

        return (struct spm_scope){SPM_SCOPE_CONTEXT, context ? context->model : 0};
}

static SP_COLD void order_whole(struct spm_scope where, spm_event event,
                                void (*tell)(spm_event event, spm_context context))
{
        if (where.id)
                tell(event, where.id);
        else
                sp_order_give_up("a whole context is not known");
}

CUresult CUDAAPI sp_on_cuCtxRecordEvent(CUcontext context, CUevent event)
{
        struct spm_scope where = whole(context);
        struct recording recording;
        CUresult result;

        start_record(&recording, event, where, false);
        result = sp_driver.cuCtxRecordEvent(context, event);
        finish_record(&recording, result);
        if (sp_order_is_on && result == CUDA_SUCCESS)
                order_whole(where, sp_event_find(event), sp_order_record_context);
        return result;
}

CUresult CUDAAPI sp_on_cuCtxWaitEvent(CUcontext context, CUevent event)
{
        struct spm_scope where = whole(context);
        struct waiting waiting;
        CUresult result;

        /* Streams that have no name here wait, too. */
        sp_work_blur();
        if (sp_order_is_on)
                order_whole(where, sp_event_find(event), sp_order_wait_context);
        start_wait(&waiting, where, event);
        result = sp_driver.cuCtxWaitEvent(context, event);
        finish_wait(&waiting, result);
        return result;
}
#endif
