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
#include "track/state.h"

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

/* Of pageable memory it is not certain, and then it is assumed. */
static bool is_waited_for(const char *function)
{
        for (size_t i = 0; i < sizeof(on_device) / sizeof(on_device[0]); i++)
                if (strcmp(function, on_device[i]) == 0)
                        return false;
        return begins(function, "cuMemcpy") && !strstr(function, "Async");
}

/* Between contexts, without a stream: behind all work of both, and what comes later is behind it.
 */
static bool is_barrier(const char *function)
{
        return strcmp(function, "cuMemcpyPeer") == 0 || strcmp(function, "cuMemcpy3DPeer") == 0;
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

        call->function = function;
        call->target = target;
        call->is_waited_for = is_waited_for(function);
        call->is_barrier = is_barrier(function);
        call->site = NULL;
        call->touches = 0;
        call->is_word = effect->waits || effect->signals;
        if (call->is_barrier)
                sp_order_blur();
        if (sp_order_actor(target, &call->actor))
                submit(call->actor, effect);
        else
                call->actor.stream = 0;
        sp_order_now = call;
}

void sp_order_end(struct sp_order_call *call, CUresult result)
{
        struct spm_witness *witness;

        sp_order_now = NULL;
        if (result != CUDA_SUCCESS || !call->actor.stream)
                return;
        witness = sp_witness_enter();
        if (!sp_is_capturing())
                sp_order_remember(witness, call);
        /* Only in part is it certain, so it ends no silence. */
        if (call->is_waited_for)
                spm_witness_signal(witness, call->actor);
        if (call->is_barrier)
                spm_witness_blur(witness);
        sp_witness_leave();
}
