/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stamps -- one set of promises, kept by both ways to record one
 *
 * Every test runs with the context event of the driver (12.5 and later), and
 * again without it, as on an older driver: `old` takes the function away.
 */

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "driver/driver.h"
#include "stamp/stamp.h"
#include "tests/sim_driver/control.h"

#define SPIN_NS 1000000

static CUcontext context;
static CUfunction spin;
static struct sp_stamper stamper;

static void start(bool old)
{
        CUdevice device;
        CUmodule module;

        cr_assert(sp_driver_load());
        cr_assert_eq(sp_driver.cuInit(0), CUDA_SUCCESS);
        cr_assert_eq(cuDeviceGet(&device, 0), CUDA_SUCCESS);
        cr_assert_eq(sp_driver.cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
        cr_assert_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
        cr_assert_eq(sp_driver.cuModuleLoadData(&module, ""), CUDA_SUCCESS);
        cr_assert_eq(cuModuleGetFunction(&spin, module, "spin"), CUDA_SUCCESS);
        /* Asking takes no time here, so that "not done" is not answered by waiting for it. */
        sim_poll_cost(0);
        if (old)
                sp_driver.cuCtxRecordEvent = NULL;
        sp_stamper_init(&stamper, context);
}

static void run_on(CUstream stream)
{
        uint64_t nanoseconds = SPIN_NS;
        void *arguments[] = {&nanoseconds};

        cr_assert_eq(sp_driver.cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL),
                     CUDA_SUCCESS);
}

static struct sp_stamp in_context(const CUstream *others, unsigned int count)
{
        struct sp_stamp stamp;

        cr_assert_eq(sp_stamp_in_context(&stamper, others, count, &stamp), CUDA_SUCCESS);
        return stamp;
}

static void expect_done_with_the_kernel(const struct sp_stamp *stamp)
{
        cr_expect_eq(sp_stamp_poll(stamp), CUDA_ERROR_NOT_READY, "done before the kernel is");
        sim_advance(2 * SPIN_NS);
        cr_expect_eq(sp_stamp_poll(stamp), CUDA_SUCCESS, "not done after the kernel");
}

ParameterizedTestParameters(stamp, covers_a_blocking_stream)
{
        static bool old[] = {false, true};

        return cr_make_param_array(bool, old, 2);
}

ParameterizedTest(bool *old, stamp, covers_a_blocking_stream)
{
        struct sp_stamp stamp;
        CUstream stream;

        start(*old);
        cr_assert_eq(sp_driver.cuStreamCreate(&stream, 0), CUDA_SUCCESS);
        run_on(stream);
        stamp = in_context(NULL, 0);
        expect_done_with_the_kernel(&stamp);
}

ParameterizedTestParameters(stamp, covers_a_non_blocking_stream)
{
        static bool old[] = {false, true};

        return cr_make_param_array(bool, old, 2);
}

ParameterizedTest(bool *old, stamp, covers_a_non_blocking_stream)
{
        struct sp_stamp stamp;
        CUstream stream;

        start(*old);
        cr_assert_eq(sp_driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        run_on(stream);
        stamp = in_context(&stream, 1);
        expect_done_with_the_kernel(&stamp);
        sp_stamp_drop(&stamp);
}

ParameterizedTestParameters(stamp, covers_the_default_streams)
{
        static bool old[] = {false, true};

        return cr_make_param_array(bool, old, 2);
}

ParameterizedTest(bool *old, stamp, covers_the_default_streams)
{
        CUstream streams[] = {CU_STREAM_LEGACY, CU_STREAM_PER_THREAD};

        start(*old);
        for (int i = 0; i < 2; i++) {
                struct sp_stamp stamp;

                run_on(streams[i]);
                stamp = in_context(NULL, 0);
                expect_done_with_the_kernel(&stamp);
        }
}

ParameterizedTestParameters(stamp, of_one_stream_leaves_out_the_others)
{
        static bool old[] = {false, true};

        return cr_make_param_array(bool, old, 2);
}

ParameterizedTest(bool *old, stamp, of_one_stream_leaves_out_the_others)
{
        struct sp_stamp stamp;
        CUstream busy, idle;

        start(*old);
        cr_assert_eq(sp_driver.cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_assert_eq(sp_driver.cuStreamCreate(&idle, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        run_on(busy);
        cr_assert_eq(sp_stamp_on_stream(&stamper, idle, &stamp), CUDA_SUCCESS);
        sim_advance(SPIN_NS / 2);
        cr_expect_eq(sp_stamp_poll(&stamp), CUDA_SUCCESS);
}

ParameterizedTestParameters(stamp, makes_another_stream_wait)
{
        static bool old[] = {false, true};

        return cr_make_param_array(bool, old, 2);
}

ParameterizedTest(bool *old, stamp, makes_another_stream_wait)
{
        struct sp_stamp first, second;
        CUstream busy, idle;

        start(*old);
        cr_assert_eq(sp_driver.cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_assert_eq(sp_driver.cuStreamCreate(&idle, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        run_on(busy);
        first = in_context(&busy, 1);
        cr_assert_eq(sp_stamp_make_wait(&first, idle), CUDA_SUCCESS);
        cr_assert_eq(sp_stamp_on_stream(&stamper, idle, &second), CUDA_SUCCESS);
        expect_done_with_the_kernel(&second);
        sp_stamp_drop(&first);
}

ParameterizedTestParameters(stamp, uses_dropped_events_again)
{
        static bool old[] = {false, true};

        return cr_make_param_array(bool, old, 2);
}

ParameterizedTest(bool *old, stamp, uses_dropped_events_again)
{
        CUstream other;
        uint64_t made;

        start(*old);
        cr_assert_eq(sp_driver.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        for (int i = 0; i < 3; i++) {
                struct sp_stamp stamp = in_context(&other, 1);

                sp_stamp_drop(&stamp);
                if (i == 0)
                        made = sim_calls("cuEventCreate");
        }
        cr_expect_eq(sim_calls("cuEventCreate"), made);
}

/* What cannot be recorded is said, and nothing is lost: the event goes back. */
Test(stamp, that_cannot_be_recorded_keeps_its_event)
{
        struct sp_stamp stamp = {.event = (CUevent)1};
        uint64_t made;

        start(false);
        sim_fail("cuCtxRecordEvent", 1, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        cr_expect_eq(sp_stamp_in_context(&stamper, NULL, 0, &stamp),
                     CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        cr_expect_eq(stamp.event, (CUevent)1, "written on success only");
        made = sim_calls("cuEventCreate");
        stamp = in_context(NULL, 0);
        cr_expect_eq(sim_calls("cuEventCreate"), made);
}
