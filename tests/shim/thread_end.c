/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Thread end -- what a thread leaves behind in the model, and what it does not leave there twice
 *
 * A program may have a thread for each request. Its per-thread stream must not
 * stay for ever: every stamp and every synchronisation of the context walks
 * the streams that the model knows.
 */

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "route/hand.h"
#include "route/route.h"
#include "tests/shim/begin.h"
#include "tests/sim_driver/control.h"
#include "track/context.h"
#include "track/state.h"
#include "track/stream.h"

#define THREADS 50

static CUcontext context;

/* The linker hands us what tables of the shim are made by: malloc() and memset(), of which some
 * compilers make a calloc(). */
static bool heap_has_no_table;
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_malloc(size_t size)
{
        return heap_has_no_table && size == sizeof(UT_hash_table) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
        if (heap_has_no_table && count * size == sizeof(UT_hash_table))
                return NULL;
        return __real_calloc(count, size);
}

static void start(void)
{
        context = begin_on(0);
}

static void count_stream(const char *line, void *user)
{
        unsigned int *count = user;

        *count += strncmp(line, "  stream", 8) == 0;
}

static unsigned int streams(void)
{
        unsigned int count = 0;

        spm_dump(sp_model_enter(), count_stream, &count);
        sp_model_leave();
        return count;
}

static void in_threads(void *(*run)(void *argument))
{
        for (int i = 0; i < THREADS; i++) {
                pthread_t thread;

                cr_assert_eq(pthread_create(&thread, NULL, run, NULL), 0);
                cr_assert_eq(pthread_join(thread, NULL), 0);
        }
}

/* Freed in the order of the thread's stream, and not known to be idle when the thread ends. */
static void *leave_pending(void *argument)
{
        CUdeviceptr pointer;

        cuCtxSetCurrent(context);
        sp_on_cuMemAllocAsync(&pointer, 4096, CU_STREAM_PER_THREAD);
        sp_on_cuMemFreeAsync(pointer, CU_STREAM_PER_THREAD);
        return argument;
}

Test(thread_end, streams_of_threads_go_with_them, .init = start)
{
        unsigned int before;

        leave_pending(NULL);
        cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
        before = streams();
        in_threads(leave_pending);
        cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
        cr_expect_eq(streams(), before, "%u streams, %u before", streams(), before);
}

/* With its line and its legacy stream, which come with it. */
static unsigned int streams_of_context(void)
{
        cr_assert_not_null(sp_context_current());
        return streams();
}

/* another thread registers a stream while this one does */

static __typeof__(sp_driver.cuStreamGetFlags) ask_flags;

static CUresult CUDAAPI be_slower(CUstream handle, unsigned int *flags)
{
        sp_driver.cuStreamGetFlags = ask_flags;
        cr_assert_not_null(sp_stream_of(handle));
        return ask_flags(handle, flags);
}

Test(thread_end, of_two_threads_that_meet_a_stream_at_once_one_leaves_nothing, .init = start)
{
        unsigned int before = streams_of_context();
        struct sp_stream *first;
        CUstream handle;

        cr_assert_eq(sp_driver.cuStreamCreate(&handle, 0), CUDA_SUCCESS);
        ask_flags = sp_driver.cuStreamGetFlags;
        sp_driver.cuStreamGetFlags = be_slower;
        first = sp_stream_of(handle);
        cr_assert_not_null(first);
        cr_expect_eq(sp_stream_of(handle), first);
        cr_expect_eq(streams(), before + 1, "%u streams, %u before", streams(), before);
}

/* The host has no memory for the table of streams. */
Test(thread_end, a_stream_that_is_not_to_be_had_leaves_nothing, .init = start)
{
        unsigned int before = streams_of_context();
        CUstream handle;

        cr_assert_eq(sp_driver.cuStreamCreate(&handle, 0), CUDA_SUCCESS);
        heap_has_no_table = true;
        cr_expect_null(sp_stream_of(handle));
        cr_expect_null(sp_stream_of(CU_STREAM_PER_THREAD));
        heap_has_no_table = false;
        cr_expect_eq(streams(), before, "%u streams, %u before", streams(), before);
        cr_expect_not_null(sp_stream_of(handle));
}

Test(thread_end, no_stamp_is_recorded_in_a_thread_that_ends, .init = start)
{
        uint64_t records;

        sim_calls_reset();
        in_threads(leave_pending);
        records = sim_calls("cuEventRecord");
        cr_expect_eq(records, 0, "%llu records", (unsigned long long)records);
}

static void *use_twice(void *argument)
{
        leave_pending(NULL);
        sp_order_thread_ends();
        return leave_pending(argument);
}

/* A destructor of the program may come after ours, and use the stream again. */
Test(thread_end, a_late_destructor_may_use_its_stream_again, .init = start)
{
        unsigned int before;

        leave_pending(NULL);
        before = streams();
        in_threads(use_twice);
        cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
        cr_expect_eq(streams(), before, "%u streams, %u before", streams(), before);
}

/* In a destructor of a key, which comes after the end of which the C library tells. */
static void take_and_give(void *unused)
{
        CUdeviceptr pointer;

        (void)unused;
        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, 4096), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemFree_v2(pointer), CUDA_SUCCESS);
        cr_expect_null(sp_hands, "nobody would take them back");
}

static pthread_key_t at_end;

static void *take_at_end(void *argument)
{
        CUdeviceptr pointer;

        cuCtxSetCurrent(context);
        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, 4096), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemFree_v2(pointer), CUDA_SUCCESS);
        cr_expect_not_null(sp_hands);
        cr_assert_eq(pthread_setspecific(at_end, &at_end), 0);
        return argument;
}

Test(thread_end, who_allocates_after_it_has_nothing_at_hand, .init = start)
{
        cr_assert_eq(pthread_key_create(&at_end, take_and_give), 0);
        in_threads(take_at_end);
}
