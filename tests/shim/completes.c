/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Completes -- which calls of the program tell us that freed memory is idle, and which do not?
 *
 * One stream frees a block; then a call is made, which succeeds or fails. The block is pending or
 * ready afterwards: nothing but the program's own call can have told, as nothing else is asked.
 */

#include "tests/shim/begin.h"
#include "tests/sim_driver/control.h"

#define SIZE ((size_t)8 << 20)

static CUstream stream, other;
static CUevent before, after;
static CUcontext context;

static void start(void)
{
        context = begin_on(0);
        cr_assert_eq(sp_on_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_assert_eq(cuEventCreate(&before, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
        cr_assert_eq(cuEventCreate(&after, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
}

TestSuite(completes, .init = start);

static uint64_t pending(void)
{
        struct spm_stats stats = {0};

        spm_stats(sp_model_enter(), sp_context_current()->device->async_pool, &stats);
        sp_model_leave();
        return stats.pending_bytes;
}

static CUresult wait_for_stream(void)
{
        return sp_on_cuStreamSynchronize(stream);
}

static CUresult ask_stream(void)
{
        return sp_on_cuStreamQuery(stream);
}

static CUresult wait_for_event(void)
{
        return sp_on_cuEventSynchronize(after);
}

static CUresult ask_event(void)
{
        return sp_on_cuEventQuery(after);
}

static CUresult wait_for_context(void)
{
        return sp_on_cuCtxSynchronize();
}

#if CUDA_VERSION >= 13000
static CUresult wait_for_named_context(void)
{
        return sp_on_cuCtxSynchronize_v2(context);
}
#endif

static CUresult wait_for_another_stream(void)
{
        return sp_on_cuStreamSynchronize(other);
}

static CUresult ask_another_stream(void)
{
        return sp_on_cuStreamQuery(other);
}

static CUresult wait_for_an_earlier_event(void)
{
        return sp_on_cuEventSynchronize(before);
}

static CUresult wait_on_the_device(void)
{
        return sp_on_cuStreamWaitEvent(other, after, 0);
}

static CUresult record_again(void)
{
        return sp_on_cuEventRecord(before, stream);
}

static const struct row {
        const char *symbol;
        CUresult (*call)(void);
        bool completes;
} rows[] = {
        {"cuStreamSynchronize", wait_for_stream, true},
        {"cuStreamQuery", ask_stream, true},
        {"cuEventSynchronize", wait_for_event, true},
        {"cuEventQuery", ask_event, true},
        {"cuCtxSynchronize", wait_for_context, true},
#if CUDA_VERSION >= 13000
        {"cuCtxSynchronize_v2", wait_for_named_context, true},
#endif
        {"cuStreamSynchronize", wait_for_another_stream, false},
        {"cuStreamQuery", ask_another_stream, false},
        {"cuEventSynchronize", wait_for_an_earlier_event, false},
        {"cuStreamWaitEvent", wait_on_the_device, false},
        {"cuEventRecord", record_again, false},
};

static void free_between_events(void)
{
        CUdeviceptr pointer;

        cr_assert_eq(sp_on_cuMemAllocAsync(&pointer, SIZE, stream), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuEventRecord(before, stream), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemFreeAsync(pointer, stream), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuEventRecord(after, stream), CUDA_SUCCESS);
        cr_assert_eq(pending(), SIZE);
}

static void finish(void)
{
        cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
        cr_assert_eq(pending(), 0);
}

Test(completes, what_was_before_it_every_wait_and_question_that_ends_well)
{
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                free_between_events();
                cr_assert_eq(rows[i].call(), CUDA_SUCCESS, "row %zu: %s", i, rows[i].symbol);
                cr_expect_eq(pending(), rows[i].completes ? 0 : SIZE, "row %zu: %s", i,
                             rows[i].symbol);
                finish();
        }
}

Test(completes, nothing_at_all_a_call_that_fails)
{
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                free_between_events();
                sim_fail(rows[i].symbol, 1, CUDA_ERROR_INVALID_VALUE);
                cr_assert_eq(rows[i].call(), CUDA_ERROR_INVALID_VALUE, "row %zu: %s", i,
                             rows[i].symbol);
                cr_expect_eq(pending(), SIZE, "row %zu: %s", i, rows[i].symbol);
                finish();
        }
}

/* frees of the driver's own memory */

static CUdeviceptr drivers;

static CUresult managed(void)
{
        return sp_on_cuMemAllocManaged(&drivers, SIZE, CU_MEM_ATTACH_GLOBAL);
}

static CUresult pitched(void)
{
        size_t pitch;

        return sp_on_cuMemAllocPitch_v2(&drivers, &pitch, 100, 7, 4);
}

/* Of a pool that can be shared, which the driver serves from. */
static CUresult ordered(void)
{
        static CUmemoryPool pool;
        CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};

        if (!pool)
                cr_assert_eq(sp_on_cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
        return sp_on_cuMemAllocFromPoolAsync(&drivers, SIZE, pool, other);
}

static CUresult nothing(void)
{
        drivers = 0;
        return CUDA_SUCCESS;
}

/* The driver waits for the whole context when it frees memory that is the context's (E1). */
Test(completes, what_was_before_it_a_free_that_waits_and_no_other)
{
        static const struct {
                const char *name;
                CUresult (*make)(void);
                bool completes;
        } kinds[] = {
                {"managed", managed, true},
                {"pitched", pitched, true},
                {"of a pool", ordered, false},
                {"nothing", nothing, false},
        };

        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
                cr_assert_eq(kinds[i].make(), CUDA_SUCCESS, "%s", kinds[i].name);
                free_between_events();
                cr_assert_eq(sp_on_cuMemFree_v2(drivers), CUDA_SUCCESS, "%s", kinds[i].name);
                cr_expect_eq(pending(), kinds[i].completes ? 0 : SIZE, "%s", kinds[i].name);
                finish();
        }
}
