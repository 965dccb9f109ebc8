/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Order, calls -- what a submission means for what comes after it
 *
 * Most are work in their stream, and no more. The others are known by their names: those that can
 * wait for anything, those from which the host can learn that they are done, and copies that the
 * host waits for.
 */

#include <string.h>

#include "route/order.h"
#include "track/context.h"

struct effect {
        const char *begins; /* the function's name */
        bool waits;         /* for anything, which may be submitted later */
        bool signals;       /* the host can learn from it that it is done */
};

static const struct effect effects[] = {
        {"cuStreamWaitValue", .waits = true},
        {"cuStreamWriteValue", .signals = true},
        {"cuStreamBatchMemOp", .waits = true, .signals = true},
        {"cuLaunchHostFunc", .waits = true, .signals = true},
        {"cuStreamAddCallback", .waits = true, .signals = true},
        {"cuSignalExternalSemaphores", .signals = true},
        {"cuWaitExternalSemaphores", .waits = true},
        {"cuGraphicsMapResources", .waits = true, .signals = true},
        {"cuGraphicsUnmapResources", .waits = true, .signals = true},
};

/* Copies without a stream that return before they are done (cuda.h, API synchronization behavior).
 */
static const char *const on_device[] = {
        "cuMemcpyDtoD",
        "cuMemcpyDtoA",
        "cuMemcpyAtoD",
        "cuMemcpyAtoA",
};

static bool begins(const char *name, const char *with)
{
        return strncmp(name, with, strlen(with)) == 0;
}

static const struct effect *effect_of(const char *function)
{
        static const struct effect none;

        for (size_t i = 0; i < sizeof(effects) / sizeof(effects[0]); i++)
                if (begins(function, effects[i].begins))
                        return &effects[i];
        return &none;
}

static bool is_async(const char *function)
{
        return strstr(function, "Async");
}

/* Of pageable memory it is not certain, and then it is assumed. */
static bool is_waited_for(const char *function)
{
        for (size_t i = 0; i < sizeof(on_device) / sizeof(on_device[0]); i++)
                if (strcmp(function, on_device[i]) == 0)
                        return false;
        return begins(function, "cuMemcpy") && !is_async(function);
}

/* Between two devices and on the default stream (or none), a copy is behind all work of both, and
 * what comes later is behind it. */
static bool is_barrier(const char *function, CUstream target)
{
        const struct sp_device *device = sp_device_each(NULL);

        if (strcmp(function, "cuMemcpyPeer") == 0 || strcmp(function, "cuMemcpy3DPeer") == 0)
                return true;
        return begins(function, "cuMemcpy") &&
               (target == CU_STREAM_LEGACY || !is_async(function)) && device && device->next;
}

/* Their attributes may let them read while they are called (cuda.h, CUmemcpySrcAccessOrder). */
static bool reads_early(const char *function)
{
        return begins(function, "cuMemcpyBatch") || begins(function, "cuMemcpyWithAttributes");
}

static void submit(struct spm_actor actor, const struct effect *effect)
{
        struct spm_witness *witness = sp_witness_enter();

        if (effect->waits)
                spm_witness_mute(witness, actor);
        else
                spm_witness_submit(witness, actor);
        if (effect->signals)
                spm_witness_signal(witness, actor);
        sp_witness_leave();
}

void sp_order_submit(CUstream target)
{
        struct spm_actor actor;

        if (sp_order_actor(target, &actor))
                submit(actor, &(struct effect){0});
}

void sp_order_unfollowed(CUstream target)
{
        struct spm_actor actor;

        if (sp_order_actor(target, &actor))
                submit(actor, &(struct effect){.waits = true, .signals = true});
}

__thread struct sp_order_call *sp_order_now __attribute__((tls_model("initial-exec")));

void sp_order_begin(struct sp_order_call *call, const char *function, CUstream target)
{
        const struct effect *effect = effect_of(function);

        /* But for the touches, of which there are none yet. */
        memset(call, 0, offsetof(struct sp_order_call, touch));
        call->function = function;
        call->target = target;
        call->is_sync = begins(function, "cuMem") && !is_async(function);
        call->waits = effect->waits;
        call->is_word = effect->waits || effect->signals;
        call->reads_early = reads_early(function);
        call->is_waited_for = is_waited_for(function);
        call->is_barrier = is_barrier(function, target);
        if (call->is_barrier)
                sp_order_blur();
        if (sp_order_actor(target, &call->actor))
                submit(call->actor, effect);
        sp_order_now = call;
}

/* Between memory of the host's a copy is done when it returns, and so is a set of it. */
static bool was_waited_for(const struct sp_order_call *call)
{
        return call->is_waited_for ||
               (call->is_elsewhere && (call->is_sync || !call->is_on_device));
}

void sp_order_end(struct sp_order_call *call, CUresult result)
{
        bool is_waited = was_waited_for(call);
        struct spm_witness *witness;

        sp_order_now = NULL;
        if (result != CUDA_SUCCESS || !call->actor.stream ||
            !(call->touches || is_waited || call->is_barrier || call->waits))
                return;
        witness = sp_witness_enter();
        if (call->waits)
                spm_witness_mute(witness, call->actor);
        sp_order_remember(witness, call);
        /* Not all of that is certain, so it ends no silence. */
        if (is_waited)
                spm_witness_signal(witness, call->actor);
        if (call->is_barrier)
                spm_witness_blur(witness);
        sp_witness_leave();
}
