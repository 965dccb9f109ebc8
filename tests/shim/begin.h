/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BEGIN_H
#define BEGIN_H

/*
 * Begin -- the shim is on, and a context of the simulated driver is current
 */

#include <criterion/criterion.h>

#include "base/life.h"
#include "driver/driver.h"
#include "route/route.h"
#include "track/state.h"
#include "track/ledger.h"
#include "track/submit.h"

static inline CUcontext begin_on(int ordinal)
{
        CUcontext context;
        CUdevice device;

        cr_assert(sp_driver_load());
        cr_assert_eq(sp_driver.cuInit(0), CUDA_SUCCESS);
        cr_assert(sp_life_start());
        cr_assert_eq(cuDeviceGet(&device, ordinal), CUDA_SUCCESS);
        cr_assert_eq(sp_driver.cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
        cr_assert_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
        return context;
}

/* Allocations that the pools have answered, of device memory. */
static inline uint64_t served_by_pools(void)
{
        struct sp_ledger_totals totals;

        cr_assert(sp_ledger_totals(&totals));
        return totals.kind[SP_KIND_DEVICE].pooled + totals.kind[SP_KIND_ASYNC].pooled;
}

/* Frees of such memory, whoever had served it. */
static inline uint64_t freed_to_pools(void)
{
        struct sp_ledger_totals totals;

        cr_assert(sp_ledger_totals(&totals));
        return totals.kind[SP_KIND_DEVICE].tally.freed + totals.kind[SP_KIND_ASYNC].tally.freed;
}

/* Memory that is ready is served before what one stream may have early: nothing is left of it. */
static inline void use_up_ready(size_t size)
{
        struct sp_context *context = sp_context_current();
        struct spm_stats stats = {0};
        CUdeviceptr pointer;

        do {
                cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, size), CUDA_SUCCESS);
                spm_stats(sp_model_enter(), context->sync_pool, &stats);
                sp_model_leave();
        } while (stats.ready_bytes >= size);
}

/* From then on this thread has blocks at hand, and what it frees last is served first. */
static inline void get_at_hand(size_t size)
{
        CUdeviceptr pointer;

        for (int i = 0; i < 2; i++) {
                cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, size), CUDA_SUCCESS);
                cr_assert_eq(sp_on_cuMemFree_v2(pointer), CUDA_SUCCESS);
        }
}

/* A kernel was launched there: what its hook does, which a unit test does not go through. */
static inline void launch_on(CUstream stream)
{
        struct sp_submitter *self = sp_submit_enter();

        sp_submit_mark(stream, SP_SUBMIT_LAUNCH);
        sp_submit_leave(self);
}

#if CUDA_VERSION >= 12050
/* Of device 0, with all that it has. */
static inline CUgreenCtx make_green(void)
{
        CUdevResource everything;
        CUdevResourceDesc desc;
        CUgreenCtx green;

        cr_assert_eq(cuDeviceGetDevResource(0, &everything, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
        cr_assert_eq(cuDevResourceGenerateDesc(&desc, &everything, 1), CUDA_SUCCESS);
        cr_assert_eq(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM), CUDA_SUCCESS);
        return green;
}
#endif

#endif
