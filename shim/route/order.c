/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Order -- is memory used and freed in the order of the program's streams?
 *
 * What the witness hears of order. It may hear of more than there is, and must not hear of less:
 * a submission, and a wait on the device, before the driver does; a record, and what the host has
 * seen, when the driver has said that it is so. A call that fails has ordered something all the
 * same. What is not known to be one stream is not followed at all.
 *
 * While anything captures, what was submitted before counts as complete, and nothing that is
 * submitted is remembered: what a graph does is done when it is launched, and a launch can do
 * anything.
 */

#include "route/order.h"

#include <stdatomic.h>

#include "base/life.h"
#include "base/lock.h"
#include "base/log.h"
#include "track/state.h"

bool sp_order_is_on;

/* Written once, before the shim is on; what it points to is guarded by the lock. */
static struct spm_witness *witness;
static struct sp_lock witness_lock = SP_LOCK_INIT(SP_RANK_WITNESS);

void sp_order_start(void)
{
        witness = spm_witness_new(NULL);
        if (witness)
                sp_order_is_on = true;
        else
                sp_log(SP_LOG_WARNING, "STREAMPOOL_CHECK=order: no host memory for it");
}

struct spm_witness *sp_witness_enter(void)
{
        sp_lock_take(&witness_lock);
        if (sp_is_capturing())
                spm_witness_blur(witness);
        return witness;
}

void sp_witness_leave(void)
{
        sp_lock_drop(&witness_lock);
}

/* streams */

struct spm_actor sp_order_actor_of(const struct sp_stream *stream)
{
        return (struct spm_actor){
                .stream = stream->model,
                .context = stream->context->model,
                .kind = stream->handle == CU_STREAM_LEGACY       ? SPM_STREAM_LEGACY
                        : stream->handle == CU_STREAM_PER_THREAD ? SPM_STREAM_PER_THREAD
                        : stream->is_blocking                    ? SPM_STREAM_BLOCKING
                                                                 : SPM_STREAM_NON_BLOCKING,
        };
}

/* Without a current context a default stream means nothing: the driver refuses. */
static bool has_context(void)
{
        CUcontext current;

        return sp_driver.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current;
}

bool sp_order_actor(CUstream target, struct spm_actor *actor)
{
        const struct sp_stream *stream;

        if (!sp_life_is_on())
                return false;
        stream = sp_stream_of(target);
        /* How streams of a green context stand to those of others is not told. */
        if (stream && !atomic_load(&stream->context->forward_only)) {
                *actor = sp_order_actor_of(stream);
                return true;
        }
        if (stream)
                sp_order_give_up("a green context has streams");
        else if (has_context())
                sp_order_give_up("a stream is not known");
        return false;
}

/* silence */

void sp_order_blur(void)
{
        spm_witness_blur(sp_witness_enter());
        sp_witness_leave();
}

void sp_order_give_up(const char *why)
{
        static atomic_bool is_told;

        spm_witness_give_up(sp_witness_enter());
        sp_witness_leave();
        if (!atomic_exchange(&is_told, true))
                sp_log(SP_LOG_WARNING,
                       "STREAMPOOL_CHECK=order: %s, and nothing more is said of the order", why);
}

/* events */

void sp_order_record(spm_event event, CUstream target)
{
        struct spm_actor actor;

        if (!sp_order_actor(target, &actor))
                return;
        spm_witness_record(sp_witness_enter(), event, actor);
        sp_witness_leave();
}

void sp_order_record_context(spm_event event, spm_context context)
{
        spm_witness_record_context(sp_witness_enter(), event, context);
        sp_witness_leave();
}

void sp_order_taint(spm_event event, bool forever)
{
        spm_witness_taint(sp_witness_enter(), event, forever);
        sp_witness_leave();
}

void sp_order_wait(CUstream target, spm_event event)
{
        struct spm_actor actor;

        if (!sp_order_actor(target, &actor))
                return;
        if (event)
                spm_witness_wait(sp_witness_enter(), actor, event);
        else
                spm_witness_submit(sp_witness_enter(), actor);
        sp_witness_leave();
}

void sp_order_wait_context(spm_event event, spm_context context)
{
        /* An event that was never recorded orders nothing (M28). */
        if (!event)
                return;
        spm_witness_wait_context(sp_witness_enter(), context, event);
        sp_witness_leave();
}

/* what the host has seen */

uint64_t sp_order_version(struct spm_scope scope)
{
        const struct spm_witness *entered = sp_witness_enter();
        uint64_t version = scope.kind == SPM_SCOPE_EVENT ? spm_witness_version(entered, scope.id)
                                                         : spm_witness_now(entered);

        sp_witness_leave();
        return version;
}

static void saw_stream(struct spm_witness *entered, const struct sp_context *context,
                       spm_stream stream, uint64_t since)
{
        bool is_legacy = context && context->legacy == stream;
        struct spm_actor actor = {
                .stream = stream,
                .context = context ? context->model : 0,
                /* Of others it is known if they were given anything. */
                .kind = is_legacy ? SPM_STREAM_LEGACY : SPM_STREAM_BLOCKING,
        };

        spm_witness_saw_stream(entered, actor, since);
}

void sp_order_saw(const struct sp_context *context, struct spm_scope scope, uint64_t version)
{
        struct spm_witness *entered = sp_witness_enter();

        if (!scope.id)
                spm_witness_blur(entered);
        else if (scope.kind == SPM_SCOPE_STREAM)
                saw_stream(entered, context, scope.id, version);
        else if (scope.kind == SPM_SCOPE_CONTEXT)
                spm_witness_saw_context(entered, scope.id, version);
        else
                spm_witness_saw_event(entered, scope.id, version);
        sp_witness_leave();
}
