/* SPDX-License-Identifier: Apache-2.0 */

/*
 * On context -- a context ends, and what was its own ends with it
 *
 * Nothing of a context may be touched once the driver has been told to destroy
 * it (D16): it is marked as ending before the call, so that no thread asks or
 * serves in it, and forgotten after the call has succeeded. Its synchronous
 * blocks are gone like the driver's own (L2); they are no leaks. Mapped memory
 * that was behind them outlives a context, so that is given back by us.
 *
 * A primary context that is reset keeps its handle and gets a new id at the
 * next retain. The driver's pools survive that, and so does mapped memory
 * (measured), so asynchronous blocks go on as if nothing had happened (L3).
 */

#include "base/life.h"
#include "route/order.h"
#include "route/perform.h"
#include "route/route.h"
#include "route/work.h"
#include "track/backing.h"
#include "track/export.h"
#include "track/held.h"
#include "track/import.h"
#include "track/ledger.h"
#include "track/pinned.h"
#include "track/signature.h"
#include "track/state.h"
#include "track/submit.h"
#include "track/vmm.h"

/* They die with it, and if one is freed later, that is known. */
static void end_blocks(const struct sp_context *context)
{
        struct spm_model *model = sp_model_enter();
        unsigned int index = 0;
        spm_pool pool;

        sp_held_context_gone(model, context->sync_pool);
        while ((pool = sp_pinned_each(context, &index)))
                sp_held_context_gone(model, pool);
        sp_model_leave();
}

static void remove_from_model(struct sp_context *context)
{
        struct spm_actions actions;
        enum spm_status status;

        do {
                status = spm_context_remove(sp_model_enter(), context->model, &actions);
                sp_model_leave();
                sp_perform(&actions, NULL);
        } while (status == SPM_AGAIN);
}

/* Every context counts for those who have to know whether there is another (track/pinned.c). */

static CUresult note_made(CUresult result)
{
        if (result == CUDA_SUCCESS)
                sp_pinned_context_made();
        return result;
}

CUresult CUDAAPI sp_on_cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device)
{
        return note_made(SP_ASK(sp_driver.cuCtxCreate(context, flags, device)));
}

CUresult CUDAAPI sp_on_cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
        return note_made(SP_ASK(sp_driver.cuCtxCreate_v2(context, flags, device)));
}

CUresult CUDAAPI sp_on_cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity, int count,
                                      unsigned int flags, CUdevice device)
{
        return note_made(SP_ASK(sp_driver.cuCtxCreate_v3(context, affinity, count, flags, device)));
}

#if CUDA_VERSION >= 12050
CUresult CUDAAPI sp_on_cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *params,
                                      unsigned int flags, CUdevice device)
{
        return note_made(SP_ASK(sp_driver.cuCtxCreate_v4(context, params, flags, device)));
}
#endif

static void begin_end(struct sp_context *context)
{
        sp_signature_forget();
        if (!context)
                return;
        sp_context_begin_end(context);
        /* Handles of its streams, and its own, may soon mean others. */
        sp_submit_forget();
}

static void finish_end(struct sp_context *context, bool ended)
{
        if (!context || !sp_context_finish_end(context, ended))
                return;
        /* What was its work is gone, and the rest may have been waited for. */
        if (sp_order_is_on)
                sp_order_blur();
        if (context->is_primary && !atomic_exchange(&context->device->primary_down, true))
                atomic_fetch_add(&sp_primaries_down, 1);
        sp_epoch_end();
        sp_stream_forget_context(context);
        sp_export_end_pool(context->sync_pool);
        sp_import_forget(context);
        end_blocks(context);
        remove_from_model(context);
        sp_range_leave(&context->range);
        sp_stamper_forget(&context->stamper);
        sp_ledger_context_gone(context->model);
        /* It outlives every context; but whoever ends one means the device to be free. */
        sp_vmm_trim(context->device->ordinal, 0);
}

/* The runtime releases the primary context while the process ends: nobody needs the figures of
 * what is left then, and the driver may be gone before we are done. */
static struct sp_context *known(CUcontext handle)
{
        return sp_life_is_on() && handle ? sp_context_find(handle) : NULL;
}

static CUresult destroy(CUcontext handle, CUresult (*call)(CUcontext))
{
        struct sp_ending ending = {.handle = handle};
        struct sp_context *context;
        CUresult result;

        if (!sp_life_is_on())
                return call(handle);
        sp_ending_begin(&ending);
        context = known(handle);
        begin_end(context);
        result = call(handle);
        finish_end(context, result == CUDA_SUCCESS);
        if (result == CUDA_SUCCESS)
                sp_pinned_context_gone();
        sp_ending_finish(&ending);
        return result;
}

CUresult CUDAAPI sp_on_cuCtxDestroy(CUcontext handle)
{
        return destroy(handle, sp_driver.cuCtxDestroy);
}

CUresult CUDAAPI sp_on_cuCtxDestroy_v2(CUcontext handle)
{
        return destroy(handle, sp_driver.cuCtxDestroy_v2);
}

/* Drops one use of the current context. The last one destroys it, and then it is current no more;
 * its handle must not be asked anything. */
CUresult CUDAAPI sp_on_cuCtxDetach(CUcontext handle)
{
        struct sp_ending ending = {.handle = handle};
        struct sp_context *context;
        CUcontext current = NULL;
        CUresult result;
        bool ended;

        if (!sp_life_is_on())
                return sp_driver.cuCtxDetach(handle);
        sp_ending_begin(&ending);
        context = known(handle);
        begin_end(context);
        result = sp_driver.cuCtxDetach(handle);
        ended = result == CUDA_SUCCESS && sp_driver.cuCtxGetCurrent(&current) == CUDA_SUCCESS &&
                current != handle;
        finish_end(context, ended);
        if (ended)
                sp_pinned_context_gone();
        sp_ending_finish(&ending);
        return result;
}

#if CUDA_VERSION >= 12040
CUresult CUDAAPI sp_on_cuGreenCtxDestroy(CUgreenCtx green)
{
        struct sp_ending ending = {0};
        struct sp_context *context;
        CUresult result;

        if (!sp_life_is_on() ||
            sp_driver.cuCtxFromGreenCtx(&ending.handle, green) != CUDA_SUCCESS || !ending.handle)
                return sp_driver.cuGreenCtxDestroy(green);
        sp_ending_begin(&ending);
        context = known(ending.handle);
        begin_end(context);
        result = sp_driver.cuGreenCtxDestroy(green);
        finish_end(context, result == CUDA_SUCCESS);
        sp_ending_finish(&ending);
        return result;
}
#endif

/* primary contexts */

static bool is_primary_of(const struct sp_context *context, CUdevice ordinal)
{
        return context->is_primary && context->device->ordinal == ordinal &&
               !atomic_load(&context->gone);
}

/* The last release is a reset (L3); whether it was the last shows afterwards only. Another thread
 * may have retained it again since: then it is another one. */
static bool is_over(const struct sp_context *context)
{
        unsigned int flags;
        int active = 1;

        return sp_driver.cuDevicePrimaryCtxGetState(context->device->ordinal, &flags, &active) ==
                       CUDA_SUCCESS &&
               (!active || !sp_context_lives(context));
}

static CUresult end_primary(CUdevice ordinal, CUresult (*call)(CUdevice), bool resets)
{
        struct sp_ending ending = {.ordinal = ordinal};
        struct sp_context *context = NULL;
        CUresult result;

        if (!sp_life_is_on())
                return call(ordinal);
        sp_ending_begin(&ending);
        while ((context = sp_context_each(context)))
                if (is_primary_of(context, ordinal))
                        begin_end(context);
        result = call(ordinal);
        while ((context = sp_context_each(context)))
                if (is_primary_of(context, ordinal))
                        finish_end(context, result == CUDA_SUCCESS && (resets || is_over(context)));
        sp_ending_finish(&ending);
        return result;
}

CUresult CUDAAPI sp_on_cuDevicePrimaryCtxRelease(CUdevice device)
{
        return end_primary(device, sp_driver.cuDevicePrimaryCtxRelease, false);
}

CUresult CUDAAPI sp_on_cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
        return end_primary(device, sp_driver.cuDevicePrimaryCtxRelease_v2, false);
}

CUresult CUDAAPI sp_on_cuDevicePrimaryCtxReset(CUdevice device)
{
        return end_primary(device, sp_driver.cuDevicePrimaryCtxReset, true);
}

CUresult CUDAAPI sp_on_cuDevicePrimaryCtxReset_v2(CUdevice device)
{
        return end_primary(device, sp_driver.cuDevicePrimaryCtxReset_v2, true);
}

/* peers: every cuMemAlloc block of @peer, past and to come, can be used from here (Q9) */

static void grant(CUcontext handle, enum spm_access access, CUmemAccess_flags flags)
{
        struct sp_context *peer = known(handle), *here = peer ? sp_context_current() : NULL;
        CUstreamCaptureMode mode;

        if (!here || here->device == peer->device)
                return;
        spm_pool_set_access(sp_model_enter(), peer->sync_pool, here->device->ordinal, access);
        sp_model_leave();
        mode = sp_bracket_open();
        sp_backing_grant(peer->sync_pool, here->device->ordinal, flags);
        sp_bracket_close(mode);
}

CUresult CUDAAPI sp_on_cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
        CUresult result;

        /* What the peer does waits for nothing of ours. */
        if (sp_life_is_on())
                sp_work_share(NULL);
        result = sp_driver.cuCtxEnablePeerAccess(peer, flags);
        if (result == CUDA_SUCCESS)
                grant(peer, SPM_ACCESS_READ_WRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        return result;
}

CUresult CUDAAPI sp_on_cuCtxDisablePeerAccess(CUcontext peer)
{
        CUresult result = sp_driver.cuCtxDisablePeerAccess(peer);

        if (result == CUDA_SUCCESS)
                grant(peer, SPM_ACCESS_NONE, CU_MEM_ACCESS_FLAGS_PROT_NONE);
        return result;
}
