/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Context end -- a context that is gone is asked nothing, and its record is gone
 *
 * The simulated driver aborts when it is given a handle that was destroyed.
 */

#include <criterion/criterion.h>
#include <pthread.h>

#include "base/life.h"
#include "driver/driver.h"
#include "tests/shim/begin.h"
#include "tests/sim_driver/control.h"
#include "track/context.h"
#include "track/state.h"
#include "track/submit.h"

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

/* A record is made of what the driver says of a context, and that takes a while. */

static CUcontext primary;
static CUresult (*ask)(size_t *free_bytes, size_t *total_bytes);

static void start_unknown(void)
{
        CUdevice device;

        start();
        cr_assert_eq(cuDeviceGet(&device, 0), CUDA_SUCCESS);
        cr_assert_eq(sp_driver.cuDevicePrimaryCtxRetain(&primary, device), CUDA_SUCCESS);
        cr_assert_eq(cuCtxSetCurrent(primary), CUDA_SUCCESS);
}

Test(context_end, keeps_others_from_a_record_of_it, .init = start_unknown)
{
        struct sp_ending ending = {.ordinal = 0}, other = {.ordinal = 1};

        sp_ending_begin(&ending);
        sp_ending_begin(&other);
        cr_expect_null(sp_context_current());
        cr_expect_eq(sp_on_cuMemAlloc_v2(&pointer, 4096), CUDA_SUCCESS, "the driver's, then");
        sp_ending_finish(&ending);
        cr_expect_not_null(sp_context_current(), "the other end is none of its business");
        sp_ending_finish(&other);
        cr_expect_eq(sp_on_cuMemFree_v2(pointer), CUDA_SUCCESS);
}

/* It has begun none. */
static void *end_own_capture(void *unused)
{
        CUgraph graph;

        cr_expect_eq(cuCtxSetCurrent(primary), CUDA_SUCCESS);
        cr_expect_neq(sp_on_cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph), CUDA_SUCCESS);
        return unused;
}

/* Its stream has no record then, and captures all the same. */
Test(context_end, keeps_no_capture_from_being_seen, .init = start_unknown)
{
        struct sp_ending ending = {.ordinal = 0};
        CUstream streams[3] = {NULL, NULL, CU_STREAM_PER_THREAD};
        pthread_t other;
        CUgraph graph;

        for (int i = 0; i < 2; i++)
                cr_assert_eq(sp_driver.cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING),
                             CUDA_SUCCESS);
        sp_ending_begin(&ending);
        for (int i = 0; i < 3; i++) {
                cr_assert_eq(
                        sp_on_cuStreamBeginCapture_v2(streams[i], CU_STREAM_CAPTURE_MODE_RELAXED),
                        CUDA_SUCCESS);
                cr_expect_neq(
                        sp_on_cuStreamBeginCapture_v2(streams[i], CU_STREAM_CAPTURE_MODE_RELAXED),
                        CUDA_SUCCESS);
        }
        sp_ending_finish(&ending);
        cr_expect_eq(sp_on_cuMemAlloc_v2(&pointer, 4096), CUDA_SUCCESS, "the context is known now");
        cr_expect_eq(sp_on_cuStreamEndCapture(streams[0], &graph), CUDA_SUCCESS,
                     "and nothing was asked that would have ended the capture");
        cr_expect(sp_is_capturing());
        cr_expect_neq(sp_on_cuStreamEndCapture(streams[0], &graph), CUDA_SUCCESS);
        cr_expect_eq(sp_on_cuStreamDestroy_v2(streams[1]), CUDA_SUCCESS);
        cr_assert_eq(pthread_create(&other, NULL, end_own_capture, NULL), 0);
        pthread_join(other, NULL);
        cr_expect(sp_is_capturing(), "its per-thread stream is another one");
        cr_expect_eq(sp_on_cuStreamEndCapture(streams[2], &graph), CUDA_SUCCESS);
        cr_expect_not(sp_is_capturing());
}

#if CUDA_VERSION >= 12050
/* Nor is a green context known as one then, and what it does is in no order with the primary one.
 */
Test(context_end, keeps_no_green_context_from_being_one, .init = start_unknown)
{
        struct sp_ending ending = {.ordinal = 0};
        CUgreenCtx green = make_green();
        CUcontext converted;

        cr_assert_eq(sp_on_cuCtxDestroy_v2(handle), CUDA_SUCCESS);
        cr_assert_eq(cuCtxSetCurrent(primary), CUDA_SUCCESS);
        sp_ending_begin(&ending);
        cr_assert_eq(sp_on_cuCtxFromGreenCtx(&converted, green), CUDA_SUCCESS);
        sp_ending_finish(&ending);
        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, 4096), CUDA_SUCCESS);
        cr_expect_neq(atomic_load(&sp_submit_context), primary, "it is not alone");
        cr_expect_not(atomic_load(&sp_context_of(primary)->forward_only));
        cr_assert_not_null(sp_context_of(converted));
        cr_expect(atomic_load(&sp_context_of(converted)->forward_only));
}
#endif

/* Another thread's reset, in the middle of it. */
static CUresult CUDAAPI ask_and_reset(size_t *free_bytes, size_t *total_bytes)
{
        CUresult result = ask(free_bytes, total_bytes);

        sp_driver.cuMemGetInfo_v2 = ask;
        cr_expect_eq(sp_on_cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
        cr_expect_eq(sp_driver.cuDevicePrimaryCtxRetain(&primary, 0), CUDA_SUCCESS);
        return result;
}

Test(context_end, voids_a_record_that_is_being_made, .init = start_unknown)
{
        ask = sp_driver.cuMemGetInfo_v2;
        sp_driver.cuMemGetInfo_v2 = ask_and_reset;
        cr_expect_null(sp_context_current());
        for (record = sp_context_each(NULL); record; record = sp_context_each(record))
                cr_expect_neq(record->handle, primary);
        record = sp_context_current();
        cr_expect(record && record->is_primary && sp_context_lives(record));
}

/* Another thread, which meets the context at the same time and is faster. */
static CUresult CUDAAPI ask_and_meet(size_t *free_bytes, size_t *total_bytes)
{
        sp_driver.cuMemGetInfo_v2 = ask;
        record = sp_context_current();
        return ask(free_bytes, total_bytes);
}

/* What the model is told it must be told to forget, and may then ask for something. */
Test(context_end, is_nothing_the_model_hears_of_for_a_record_too_many, .init = start_unknown)
{
        uint64_t reserved = sim_calls("cuMemAddressReserve");
        spm_context last;

        ask = sp_driver.cuMemGetInfo_v2;
        sp_driver.cuMemGetInfo_v2 = ask_and_meet;
        cr_expect_eq(sp_context_current(), record);
        cr_expect_not_null(record);
        cr_expect_eq(sim_calls("cuMemAddressReserve"), reserved + 2);
        cr_expect_eq(sim_calls("cuMemAddressFree"), 1);
        last = record->model;
        cr_assert_eq(cuCtxCreate_v2(&handle, 0, 0), CUDA_SUCCESS);
        cr_expect_eq(sp_context_current()->model, last + 1, "the next handle of the model");
}

/* The second user of a primary context ends its use. */
static void release_with_id_refused(CUresult code)
{
        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, 4096), CUDA_SUCCESS);
        record = sp_context_current();
        cr_assert_eq(sp_driver.cuDevicePrimaryCtxRetain(&primary, 0), CUDA_SUCCESS);
        sim_fail("cuCtxGetId", 1, (int)code);
        cr_assert_eq(sp_on_cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
}

Test(context_end, is_not_taken_from_a_question_that_failed, .init = start_unknown)
{
        release_with_id_refused(CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect_not(atomic_load(&record->gone));
        cr_expect_eq(sp_on_cuMemFree_v2(pointer), CUDA_SUCCESS);
}

Test(context_end, is_taken_from_a_driver_that_says_so, .init = start_unknown)
{
        release_with_id_refused(CUDA_ERROR_INVALID_CONTEXT);
        cr_expect(atomic_load(&record->gone));
}
