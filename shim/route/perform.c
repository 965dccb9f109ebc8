/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Perform -- carry out what the model asks for, and report what came of it
 *
 * In observe mode the model decides as if it served, and nothing is carried
 * out: a stamp is reported as not to be had.
 */

#include "route/perform.h"

#include <time.h>

#include "base/config.h"
#include "report/counters.h"
#include "route/grow.h"
#include "route/stamps.h"
#include "route/whole.h"
#include "track/state.h"
#include "track/stream.h"

static bool is_default(const struct sp_stream *stream)
{
        return stream->handle == CU_STREAM_LEGACY || stream->handle == CU_STREAM_PER_THREAD;
}

/* A default stream's handle means the current context's, so that has to be the right one. */
static CUresult enter_for(const struct sp_stream *stream, bool *pushed)
{
        CUcontext current;

        *pushed = is_default(stream) && (sp_driver.cuCtxGetCurrent(&current) != CUDA_SUCCESS ||
                                         current != stream->context->handle);
        return *pushed ? sp_driver.cuCtxPushCurrent_v2(stream->context->handle) : CUDA_SUCCESS;
}

static void leave(bool pushed)
{
        CUcontext popped;

        if (pushed)
                sp_driver.cuCtxPopCurrent_v2(&popped);
}

/* one action each */

static CUresult record(const struct spm_action *action, struct sp_stamp *stamp,
                       struct sp_context **context)
{
        struct sp_stream *stream;
        CUresult result;
        bool pushed;

        if (!action->stream) {
                *context = sp_context_by_model(action->context);
                if (!sp_whole_enter(*context))
                        return CUDA_ERROR_NOT_PERMITTED;
                result = sp_whole_record(*context, stamp);
                sp_whole_leave(*context);
                return result;
        }
        stream = sp_stream_enter(action->stream);
        if (!stream)
                return CUDA_ERROR_NOT_PERMITTED;
        *context = stream->context;
        result = enter_for(stream, &pushed);
        if (result == CUDA_SUCCESS) {
                result = sp_stamp_on_stream(&stream->context->stamper, stream->handle, stamp);
                leave(pushed);
        }
        sp_stream_leave(stream);
        return result;
}

static bool perform_record(const struct spm_action *action)
{
        struct sp_context *context = NULL;
        struct spm_actions more;
        struct sp_stamp stamp;
        bool recorded = false;
        CUresult result;

        if (sp_config()->mode != SP_MODE_OBSERVE) {
                result = record(action, &stamp, &context);
                sp_context_note_result(context, result);
                recorded = result == CUDA_SUCCESS;
                if (recorded && !sp_stamps_add(action->stamp, &stamp, context)) {
                        sp_stamp_drop(&stamp);
                        recorded = false;
                }
        }
        sp_count_add(stamps_recorded, recorded);
        spm_stamp_recorded(sp_model_enter(), action->stamp, recorded, &more);
        sp_model_leave();
        sp_perform(&more, NULL);
        return recorded;
}

static bool perform_wait_stream(const struct spm_action *action)
{
        struct sp_stream *stream = sp_stream_enter(action->stream);
        struct sp_held_stamp *held = sp_stamps_get(action->stamp);
        CUresult result = CUDA_ERROR_INVALID_HANDLE;
        bool pushed;

        if (stream && held && sp_context_enter(held->context)) {
                result = enter_for(stream, &pushed);
                if (result == CUDA_SUCCESS) {
                        result = sp_stamp_make_wait(&held->stamp, stream->handle);
                        leave(pushed);
                        sp_count(device_waits);
                }
                sp_context_leave(held->context);
        }
        if (held)
                sp_stamps_put(held);
        if (stream)
                sp_stream_leave(stream);
        return result == CUDA_SUCCESS;
}

/* A kernel that did not end in the time of one wait may be there to stay: for so long others only
 * look. */
#define IN_VAIN_NS ((uint64_t)10000000000)

static uint64_t now(void)
{
        struct timespec time;

        clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
        return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

CUresult sp_wait_or_look(struct sp_context *context, const struct sp_stamp *stamp, bool brief)
{
        _Atomic(uint64_t) *until = brief ? &context->brief_until : &context->in_vain_until;
        CUresult result;

        if (now() < atomic_load(until))
                return sp_stamp_poll(stamp);
        sp_count(host_waits);
        result = sp_stamp_wait(stamp, brief ? SP_STAMP_MOMENT_MS : SP_STAMP_PATIENCE_MS);
        if (result == CUDA_ERROR_NOT_READY)
                atomic_store(until, now() + IN_VAIN_NS);
        return result;
}

static CUresult poll(const struct spm_action *action, const struct sp_held_stamp *held, bool waits)
{
        if (waits && (action->bounded || action->brief))
                return sp_wait_or_look(held->context, &held->stamp, action->brief);
        if (waits)
                sp_count(host_waits);
        else
                sp_count(stamps_polled);
        return waits ? sp_stamp_wait(&held->stamp, SP_STAMP_FOR_EVER) : sp_stamp_poll(&held->stamp);
}

static void perform_poll(const struct spm_action *action, bool waits)
{
        struct sp_held_stamp *held = sp_stamps_get(action->stamp);
        struct spm_actions more;
        CUresult result = CUDA_ERROR_NOT_READY;

        if (!held)
                return;
        if (sp_context_enter(held->context)) {
                result = poll(action, held, waits);
                sp_context_leave(held->context);
        }
        sp_context_note_result(held->context, result);
        sp_stamps_put(held);
        if (result != CUDA_SUCCESS)
                return;
        spm_stamp_done(sp_model_enter(), action->stamp, &more);
        sp_model_leave();
        sp_perform(&more, NULL);
}

/* A question about, or a wait for, a whole stream or context on the model's behalf; entered by the
 * caller. */
static void perform_sync(struct spm_scope scope, struct sp_context *context, CUstream stream,
                         struct spm_actions *more)
{
        struct spm_ticket ticket;
        CUcontext popped;
        CUresult result;

        more->count = 0;
        if (spm_sync_begin(sp_model_enter(), scope, &ticket) != SPM_OK) {
                sp_model_leave();
                return;
        }
        sp_model_leave();
        result = sp_driver.cuCtxPushCurrent_v2(context->handle);
        if (result == CUDA_SUCCESS) {
                result = stream ? sp_driver.cuStreamQuery(stream) : sp_driver.cuCtxSynchronize();
                sp_driver.cuCtxPopCurrent_v2(&popped);
        }
        sp_context_note_result(context, result);
        spm_sync_end(sp_model_enter(), &ticket, SPM_SYNC_POLL, result == CUDA_SUCCESS, more);
        sp_model_leave();
}

static void perform_poll_stream(const struct spm_action *action)
{
        struct sp_stream *stream = sp_stream_enter(action->stream);
        struct spm_scope scope = {SPM_SCOPE_STREAM, action->stream};
        struct spm_actions more;

        if (!stream)
                return;
        sp_count(stamps_polled);
        perform_sync(scope, stream->context, stream->handle, &more);
        sp_stream_leave(stream);
        sp_perform(&more, NULL);
}

static void perform_sync_context(const struct spm_action *action)
{
        struct sp_context *context = sp_context_by_model(action->context);
        struct spm_scope scope = {SPM_SCOPE_CONTEXT, action->context};
        struct spm_actions more;

        if (sp_config()->mode == SP_MODE_OBSERVE || !sp_whole_enter(context))
                return;
        sp_count(host_waits);
        perform_sync(scope, context, NULL, &more);
        sp_whole_leave(context);
        sp_perform(&more, NULL);
}

/*
 * What cannot be told to the device is waited for here: a capture has begun in the meantime, or the
 * stamp was not to be had. One that is gone for another reason is done: the model drops a stamp
 * that is asked for by a fence when it is done, or its context gone, and not to have fewer
 * (thin_out() in model/stamp.c).
 */
static void perform_wait_fence(const struct spm_action *action, spm_stamp lost)
{
        struct sp_held_stamp *held;

        if (perform_wait_stream(action))
                return;
        held = sp_stamps_get(action->stamp);
        if (held && sp_context_enter(held->context)) {
                sp_count(host_waits);
                sp_stamp_wait(&held->stamp, SP_STAMP_FOR_EVER);
                sp_context_leave(held->context);
        } else if (!held && action->stamp == lost) {
                perform_sync_context(action);
        }
        if (held)
                sp_stamps_put(held);
}

static void perform_drop(const struct spm_action *action)
{
        struct sp_held_stamp *held = sp_stamps_get(action->stamp);

        if (!held)
                return;
        sp_stamps_put(held);
        sp_stamps_put(held);
}

/* all of them */

struct performing {
        struct spm_request *request;
        struct sp_spares *spares;
        enum sp_verdict verdict;
        bool grown;     /* something in this list */
        bool late;      /* others were faster than a growth of this list */
        bool refused;   /* a growth of this list: what comes after it would be of no use */
        spm_stamp lost; /* the last one of this list that was not to be had */
};

static void perform_grow(const struct spm_action *action, struct performing *performing)
{
        CUresult result;

        if (performing->verdict == SP_VERDICT_WHOLE) {
                spm_grow_whole(performing->request);
                return;
        }
        if (performing->refused) {
                sp_grow_refuse(performing->request);
                return;
        }
        result = sp_grow(action, performing->request, performing->spares);
        if (result == CUDA_SUCCESS)
                performing->grown = true;
        else if (result == CUDA_ERROR_ALREADY_MAPPED)
                performing->late = true;
        else
                performing->refused = true;
}

static bool perform_one(const struct spm_action *action, struct performing *performing)
{
        switch (action->kind) {
        case SPM_ACT_RECORD:
                if (perform_record(action))
                        return true;
                performing->lost = action->stamp;
                return false;
        case SPM_ACT_WAIT_STREAM:
                return perform_wait_stream(action);
        case SPM_ACT_WAIT_FENCE:
                perform_wait_fence(action, performing->lost);
                return true;
        case SPM_ACT_POLL:
                perform_poll(action, false);
                return true;
        case SPM_ACT_POLL_STREAM:
                perform_poll_stream(action);
                return true;
        case SPM_ACT_WAIT_HOST:
                sp_spares_drop(performing->spares);
                if (action->stamp == performing->lost)
                        perform_sync_context(action);
                else
                        perform_poll(action, true);
                return true;
        case SPM_ACT_SYNC_CONTEXT:
                sp_spares_drop(performing->spares);
                perform_sync_context(action);
                return true;
        case SPM_ACT_GROW:
                perform_grow(action, performing);
                return true;
        case SPM_ACT_DROP:
                perform_drop(action);
                return true;
        case SPM_ACT_RELEASE:
                break;
        }
        return true;
}

/* Records and waits of streams that do not capture are legal anywhere (3A). */
static bool needs_bracket(const struct spm_actions *actions)
{
        for (unsigned int i = 0; i < actions->count; i++) {
                const struct spm_action *action = &actions->item[i];

                if (action->kind != SPM_ACT_DROP && action->kind != SPM_ACT_WAIT_STREAM &&
                    (action->kind != SPM_ACT_RECORD || !action->stream))
                        return true;
        }
        return false;
}

bool sp_perform_step(const struct spm_actions *actions, struct spm_request *request,
                     struct sp_spares *spares, enum sp_verdict verdict)
{
        struct performing performing = {
                .request = request,
                .spares = spares,
                .verdict = verdict,
                .refused = verdict == SP_VERDICT_REFUSE || verdict == SP_VERDICT_GIVE_UP,
        };
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
        bool kept = true;
        bool bracketed;

        if (!actions->count)
                return true;
        bracketed = needs_bracket(actions);
        if (bracketed)
                mode = sp_bracket_open();
        /* These first: the model may have sent others to where they are, and a wait can be long. */
        for (unsigned int i = 0; i < actions->count; i++)
                if (actions->item[i].kind == SPM_ACT_RELEASE)
                        sp_shrink(&actions->item[i], spares);
        for (unsigned int i = 0; i < actions->count; i++)
                kept = perform_one(&actions->item[i], &performing) && kept;
        if (bracketed)
                sp_bracket_close(mode);
        if (performing.late && !performing.grown && !performing.refused)
                sp_grow_wait();
        return kept;
}

bool sp_perform_all(const struct spm_actions *actions, struct spm_request *request)
{
        struct sp_spares spares;
        bool kept;

        spares.count = 0;
        kept = sp_perform_step(actions, request, &spares, SP_VERDICT_TRY);
        sp_spares_drop(&spares);
        return kept;
}
