/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Context end -- a context that is gone is asked nothing, and its record is gone
 *
 * The simulated driver aborts when it is given a handle that was destroyed.
 */

#include <criterion/criterion.h>

#include "base/life.h"
#include "driver/driver.h"
#include "track/context.h"

/* Every header declares another version of it. */
CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);

static CUcontext handle;
static struct sp_context *record;
static CUdeviceptr pointer;

static void start(void)
{
        CUdevice device;

        cr_assert(sp_driver_load());
        cr_assert_eq(sp_driver.cuInit(0), CUDA_SUCCESS);
        cr_assert(sp_life_start());
        cr_assert_eq(cuDeviceGet(&device, 0), CUDA_SUCCESS);
        cr_assert_eq(cuCtxCreate_v2(&handle, 0, device), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, 4096), CUDA_SUCCESS);
        record = sp_context_current();
        cr_assert_not_null(record);
}

static void expect_gone(void)
{
        cr_expect(atomic_load(&record->gone));
        cr_expect_not(sp_context_enter(record), "nothing of ours may use it");
        cr_expect_eq(sp_on_cuMemFree_v2(pointer), CUDA_ERROR_INVALID_VALUE);
}

Test(context_end, by_destroying, .init = start)
{
        cr_assert_eq(sp_on_cuCtxDestroy_v2(handle), CUDA_SUCCESS);
        expect_gone();
}

Test(context_end, by_detaching, .init = start)
{
        cr_assert_eq(sp_on_cuCtxDetach(handle), CUDA_SUCCESS);
        expect_gone();
}

Test(context_end, not_while_one_of_our_calls_uses_it, .init = start)
{
        cr_assert(sp_context_enter(record));
        sp_context_leave(record);
        sp_context_begin_end(record);
        cr_expect_not(sp_context_enter(record), "it is ending");
        cr_expect_not(sp_context_finish_end(record, false));
        cr_assert(sp_context_enter(record), "it did not end");
        sp_context_leave(record);
}
