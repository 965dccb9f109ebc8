/* SPDX-License-Identifier: Apache-2.0 */

/*
 * No ids -- contexts of a driver before 12.0, which has no cuCtxGetId
 *
 * Two contexts must not be taken for one because neither has a number.
 */

#include <criterion/criterion.h>

#include "tests/shim/begin.h"
#include "track/context.h"
#include "track/ledger.h"
#include "track/state.h"

#define BYTES ((size_t)1 << 20)

static CUcontext one, other;

static void start(void)
{
        CUcontext popped;

        one = begin_on(0);
        sp_driver.cuCtxGetId = NULL;
        cr_assert_eq(sp_driver.cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
        cr_assert_eq(sp_driver.cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
}

TestSuite(no_ids, .init = start);

static CUdeviceptr alloc_in(CUcontext context)
{
        CUdeviceptr pointer = 0;

        cr_assert_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, BYTES), CUDA_SUCCESS);
        return pointer;
}

static CUdeviceptr alloc_with_work_in(CUcontext context)
{
        CUdeviceptr pointer = alloc_in(context);
        CUstream stream;

        cr_assert_eq(sp_on_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        launch_on(stream);
        return pointer;
}

static uint64_t pending_in(CUcontext context)
{
        struct spm_stats stats = {0};

        spm_stats(sp_model_enter(), sp_context_of(context)->sync_pool, &stats);
        sp_model_leave();
        return stats.pending_bytes;
}

Test(no_ids, a_free_that_waits_for_one_context_says_nothing_about_the_other)
{
        CUdeviceptr pitched;
        size_t pitch;

        cr_assert_eq(sp_on_cuMemFree_v2(alloc_with_work_in(one)), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemFree_v2(alloc_with_work_in(other)), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemAllocPitch_v2(&pitched, &pitch, 1000, 10, 4), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemFree_v2(pitched), CUDA_SUCCESS);
        cr_expect_eq(pending_in(other), 0, "the driver's own free has waited for it");
        cr_expect_eq(pending_in(one), BYTES);

        cr_assert_eq(cuCtxSetCurrent(one), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemFree_v2(alloc_in(other)), CUDA_SUCCESS);
        cr_assert_eq(cuCtxSetCurrent(one), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemAllocPitch_v2(&pitched, &pitch, 1000, 10, 4), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemFree_v2(pitched), CUDA_SUCCESS);
        cr_expect_eq(pending_in(one), 0);
        cr_expect_eq(pending_in(other), BYTES);
}

Test(no_ids, what_ends_with_one_context_goes_on_in_the_other)
{
        CUdeviceptr stays = alloc_in(one), goes = alloc_in(other);
        struct sp_ledger_entry entry;

        cr_assert_eq(cuCtxSetCurrent(one), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuCtxDestroy_v2(other), CUDA_SUCCESS);
        cr_expect(sp_ledger_find(SP_SPACE_DEVICE, stays, &entry));
        cr_expect_not(sp_ledger_find(SP_SPACE_DEVICE, goes, &entry));
        cr_expect_eq(sp_on_cuMemFree_v2(stays), CUDA_SUCCESS);
}
