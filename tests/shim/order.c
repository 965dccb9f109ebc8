/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Order -- who is blamed for the order of streams, and who is not because it cannot be known
 *
 * What the hooks do around a submission is done by hand here. In virtual time nothing ends while
 * nobody waits. The plain cases are in tests/examples/bugs, and what orders what in
 * tests/property/witness.c.
 */

#define _GNU_SOURCE

#include "route/order.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/config.h"
#include "tests/shim/pooling.h"
#include "tests/sim_driver/control.h"

#define SIZE ((size_t)1 << 16)

static CUstream other;
static bool is_refused; /* the memory for a witness */

struct spm_witness *__real_spm_witness_new(const struct spm_witness_config *config);
struct spm_witness *__wrap_spm_witness_new(const struct spm_witness_config *config);
struct spm_witness *__wrap_spm_witness_new(const struct spm_witness_config *config)
{
        return is_refused ? NULL : __real_spm_witness_new(config);
}

static void begin(void)
{
        setenv("STREAMPOOL_CHECK", "order", 1);
        begin_pooling();
        cr_assert_eq(sp_on_cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
}

TestSuite(order, .init = begin);
TestSuite(order_else);

/* what a program does */

static CUdeviceptr plain_block(void)
{
        CUdeviceptr pointer = 0;

        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, SIZE), CUDA_SUCCESS);
        return pointer;
}

static void call(CUstream on, const char *function, CUresult result,
                 void (*touch)(CUstream on, CUdeviceptr pointer), CUdeviceptr pointer)
{
        struct sp_order_call made;

        sp_order_begin(&made, function, on);
        touch(on, pointer);
        sp_order_end(&made, result);
}

static void write_all(CUstream on, CUdeviceptr pointer)
{
        sp_use_row("cuMemsetD8Async", SP_SIDE_DEVICE, true, pointer, SIZE);
        (void)sp_driver.cuMemsetD8Async(pointer, 1, SIZE, on);
}

static void read_all(CUstream on, CUdeviceptr pointer)
{
        CUdeviceptr to = plain_block();

        sp_use_row("cuMemcpyDtoDAsync", SP_SIDE_DEVICE, false, pointer, SIZE);
        (void)sp_driver.cuMemcpyDtoDAsync_v2(to, pointer, SIZE, on);
}

static void take_as_argument(CUstream on, CUdeviceptr pointer)
{
        sp_order_use(on, pointer, 0, SPM_TOUCH_ARGUMENT);
}

/* Every other piece of the lines. */
static void write_columns(CUstream on, CUdeviceptr pointer)
{
        sp_use_rows("cuMemsetD2D8Async", pointer, 256, 128, 8);
        (void)sp_driver.cuMemsetD2D8Async(pointer, 256, 1, 128, 8, on);
}

static void write_on(CUstream on, CUdeviceptr pointer)
{
        call(on, "cuMemsetD8Async", CUDA_SUCCESS, write_all, pointer);
}

/* findings */

static void see(const struct sp_finding *finding, void *user)
{
        struct sp_finding *last = user;
        uint64_t times = last->times;

        *last = *finding;
        last->times += times;
}

/* The last one; its times are those of all. */
static struct sp_finding found(void)
{
        struct sp_finding last = {0};

        cr_assert(sp_ledger_each_finding(see, &last));
        return last;
}

/* what is said */

Test(order, a_race_is_told_with_both_places_and_streams)
{
        CUdeviceptr pointer = plain_block();
        struct sp_finding finding;

        sp_caller = &other;
        write_on(stream, pointer);
        sp_caller = &stream;
        call(other, "cuMemcpyDtoDAsync", CUDA_SUCCESS, read_all, pointer);
        finding = found();
        cr_expect_eq(finding.times, 1);
        cr_expect_eq(finding.kind, SP_FINDING_RACE);
        cr_expect_eq(finding.site, &stream);
        cr_expect_eq(finding.earlier, SP_EARLIER_WRITE);
        cr_expect_eq(finding.earlier_at, &other);
        cr_expect_str_eq(finding.earlier_by, "cuMemsetD8Async");
        cr_expect_eq(finding.stream, (uintptr_t)other);
        cr_expect_eq(finding.earlier_stream, (uintptr_t)stream);
        cr_expect_eq(finding.block.address, pointer);
        cr_expect_eq(finding.touched, SIZE);
}

Test(order, who_uses_what_is_complete_is_right_though_nobody_waited)
{
        CUdeviceptr pointer = plain_block();

        write_on(stream, pointer);
        sim_run_all();
        write_on(other, pointer);
        cr_expect_eq(found().times, 0);
        write_on(stream, pointer);
        cr_expect_eq(found().times, 1, "and what comes later is not");
}

Test(order, a_call_that_fails_has_touched_nothing)
{
        CUdeviceptr pointer = plain_block();

        call(stream, "cuMemsetD8Async", CUDA_ERROR_INVALID_VALUE, write_all, pointer);
        write_on(other, pointer);
        cr_expect_eq(found().times, 0);
}

Test(order, an_argument_is_not_proven_and_races_with_nothing)
{
        CUdeviceptr pointer = alloc(SIZE);

        write_on(stream, pointer);
        call(other, "cuLaunchKernel", CUDA_SUCCESS, take_as_argument, pointer);
        cr_expect_eq(found().times, 1);
        cr_expect_eq(found().kind, SP_FINDING_USE_BEFORE_ALLOC);
        cr_expect(found().is_argument);
        cr_assert_eq(sp_driver.cuMemsetD8Async(pointer, 1, SIZE, other), CUDA_SUCCESS);
        give_back(pointer);
        cr_expect_eq(found().times, 2);
        cr_expect_eq(found().kind, SP_FINDING_FREE_BEFORE_USE);
        cr_expect_eq(found().earlier, SP_EARLIER_ARGUMENT);
}

Test(order, a_call_may_give_work_to_several_streams)
{
        CUdeviceptr pointer = alloc(SIZE);
        struct sp_order_call made;

        write_on(stream, pointer);
        sp_order_submit(other);
        sp_order_begin(&made, "cuLaunchCooperativeKernelMultiDevice", stream);
        sp_order_use(stream, pointer, 0, SPM_TOUCH_ARGUMENT);
        cr_expect_eq(found().times, 0);
        sp_order_use(other, pointer, 0, SPM_TOUCH_ARGUMENT);
        cr_expect_eq(found().kind, SP_FINDING_USE_BEFORE_ALLOC);
        cr_expect_eq(found().stream, (uintptr_t)other);
        sp_order_end(&made, CUDA_SUCCESS);
}

Test(order, rows_with_gaps_race_with_nothing_but_are_uses)
{
        CUdeviceptr pointer = alloc(SIZE);

        write_on(stream, pointer);
        sim_run_all();
        call(other, "cuMemsetD2D8Async", CUDA_SUCCESS, write_columns, pointer);
        call(stream, "cuMemsetD2D8Async", CUDA_SUCCESS, write_columns, pointer + 128);
        cr_expect_eq(found().times, 0);
        give_back(pointer);
        cr_expect_eq(found().kind, SP_FINDING_FREE_BEFORE_USE);
}

Test(order, of_many_uses_in_one_call_the_last_ones_are_looked_at_too)
{
        CUdeviceptr pointer = plain_block();
        struct sp_order_call made;

        write_on(stream, pointer);
        sp_order_begin(&made, "cuLaunchKernel", other);
        for (int i = 0; i <= SP_ORDER_TOUCHES; i++)
                sp_order_use(other, pointer, 0, SPM_TOUCH_ARGUMENT);
        cr_expect_eq(found().times, 0);
        sp_order_use(other, pointer, SIZE, SPM_TOUCH_WRITE);
        cr_expect_eq(found().kind, SP_FINDING_RACE);
        sp_order_end(&made, CUDA_SUCCESS);
}

/* what is not said */

Test(order, a_stream_that_is_destroyed_cannot_be_asked)
{
        CUdeviceptr pointer = plain_block();

        write_on(other, pointer);
        cr_assert_eq(sp_on_cuStreamDestroy_v2(other), CUDA_SUCCESS);
        write_on(stream, pointer);
        cr_expect_eq(found().times, 0);
}

static CUcontext context;
static pthread_barrier_t barrier;

/* Its stream is there until the other thread has asked. */
static void *write_on_own(void *pointer)
{
        cr_assert_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
        write_on(CU_STREAM_PER_THREAD, *(CUdeviceptr *)pointer);
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        return NULL;
}

Test(order, the_own_stream_of_another_thread_cannot_be_asked)
{
        CUdeviceptr pointer = plain_block(), mine = plain_block();
        pthread_t thread;

        pthread_barrier_init(&barrier, NULL, 2);
        cr_assert_eq(sp_driver.cuCtxGetCurrent(&context), CUDA_SUCCESS);
        cr_assert_eq(pthread_create(&thread, NULL, write_on_own, &pointer), 0);
        pthread_barrier_wait(&barrier);
        write_on(CU_STREAM_PER_THREAD, mine);
        write_on(other, pointer);
        cr_expect_eq(found().times, 0, "this thread's has work, and is not the one");
        write_on(other, mine);
        cr_expect_eq(found().times, 1, "one's own can");
        pthread_barrier_wait(&barrier);
        pthread_join(thread, NULL);
}

Test(order, while_something_captures_nothing_is_said_or_remembered)
{
        CUdeviceptr pointer = plain_block();
        CUstream captured;
        CUgraph graph;

        write_on(stream, pointer);
        cr_assert_eq(sp_on_cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_RELAXED),
                     CUDA_SUCCESS);
        write_on(other, pointer);
        cr_assert_eq(sp_on_cuStreamEndCapture(captured, &graph), CUDA_SUCCESS);
        write_on(captured, pointer);
        cr_expect_eq(found().times, 0);
}

Test(order, what_is_submitted_unseen_may_order_anything)
{
        CUdeviceptr pointer = plain_block();

        write_on(stream, pointer);
        cr_assert(sp_submit_unknown("cuBrandNewLaunch"));
        write_on(other, pointer);
        cr_expect_eq(found().times, 0);
}

Test(order, what_a_graph_does_is_not_followed_until_its_end_is_seen)
{
        CUdeviceptr pointer = plain_block();

        write_on(stream, pointer);
        sp_order_unfollowed(other);
        write_on(other, pointer);
        cr_expect_eq(found().times, 0);
        cr_assert_eq(sp_on_cuStreamSynchronize(other), CUDA_SUCCESS);
        write_on(stream, pointer);
        write_on(other, pointer);
        cr_expect_eq(found().times, 1);
}

Test(order, a_batch_may_have_read_while_it_was_called)
{
        CUdeviceptr pointer = plain_block();

        call(stream, "cuMemcpyBatchAsync", CUDA_SUCCESS, read_all, pointer);
        write_on(other, pointer);
        cr_expect_eq(found().times, 0);
}

/* Is a set on the legacy stream waited for by the host? */
static bool is_waited_for(CUdeviceptr pointer, CUdeviceptr touched)
{
        write_on(CU_STREAM_LEGACY, pointer);
        call(CU_STREAM_LEGACY, "cuMemsetD8", CUDA_SUCCESS, write_all, touched);
        write_on(other, pointer);
        return found().times == 0;
}

Test(order, a_set_without_a_stream_is_not_waited_for)
{
        cr_expect_not(is_waited_for(plain_block(), plain_block()));
}

Test(order, but_of_memory_of_the_hosts_it_is)
{
        void *pages;

        cr_assert_eq(sp_on_cuMemHostAlloc(&pages, SIZE, 0), CUDA_SUCCESS);
        cr_expect(is_waited_for(plain_block(), (uintptr_t)pages));
}

Test(order, and_of_memory_that_says_so)
{
        CUdeviceptr pointer = plain_block();
        unsigned int on = 1;

        cr_assert_eq(sp_on_cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, pointer),
                     CUDA_SUCCESS);
        cr_expect(is_waited_for(plain_block(), pointer));
}

Test(order, who_has_given_up_says_nothing)
{
        CUdeviceptr pointer = plain_block();

        write_on(stream, pointer);
        sp_order_give_up("a test has no streams");
        write_on(other, pointer);
        cr_expect_eq(found().times, 0);
}

/* start */

Test(order_else, is_looked_at_on_request_only)
{
        setenv("STREAMPOOL_CHECK", "uses", 1);
        begin_pooling();
        cr_expect_not(sp_order_is_on);
}

Test(order_else, without_memory_for_a_witness_nothing_is_looked_at)
{
        is_refused = true;
        begin();
        cr_expect_not(sp_order_is_on);
}

Test(order_else, of_uses_alone_is_not_asked_where_only_the_order_is)
{
        CUdeviceptr pointer;

        begin();
        pointer = plain_block();
        sp_use_row("cuMemsetD8Async", SP_SIDE_DEVICE, true, pointer, SIZE + 1);
        cr_expect_eq(found().times, 0);
}
