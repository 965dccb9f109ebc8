/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Time -- virtual and real, and the host's part in it
 */

#include "test_bench.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

TestSuite(time, .init = bench_start, .timeout = 20);

static void start_in_real_time(void)
{
        setenv("SIM_TIME", "threads", 1);
        bench_start();
}

TestSuite(real_time, .init = start_in_real_time, .timeout = 20);

static uint64_t wall_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static pthread_mutex_t of_the_program = PTHREAD_MUTEX_INITIALIZER;
static CUresult inside;
static int order[3], ran;

static void host_function(void *number)
{
        pthread_mutex_lock(&of_the_program);
        inside = cuStreamQuery(bench.n1);
        order[ran++] = *(int *)number;
        pthread_mutex_unlock(&of_the_program);
}

Test(time, a_wait_of_an_hour_takes_no_time)
{
        uint64_t before = wall_ns();

        bench_spin(bench.n1, 3600000ull * MS);
        OK(cuStreamSynchronize(bench.n1));
        cr_expect_lt(wall_ns() - before, 5000ull * MS);
        cr_expect_geq(sim_now_ns(), 3600000ull * MS);
}

Test(time, a_host_function_runs_in_stream_order_and_may_not_call_the_driver)
{
        int one = 1, two = 2;

        bench_spin(bench.n1, 10 * MS);
        OK(cuLaunchHostFunc(bench.n1, host_function, &one));
        OK(cuLaunchHostFunc(bench.n1, host_function, &two));
        cr_expect_eq(ran, 0);
        OK(cuStreamSynchronize(bench.n1));
        cr_expect_eq(ran, 2);
        cr_expect_eq(order[0], 1);
        cr_expect_eq(order[1], 2);
        cr_expect_eq(inside, CUDA_ERROR_NOT_PERMITTED);
}

static uint64_t entered_ns, left_ns;

static void slow_host_function(void *unused)
{
        (void)unused;
        entered_ns = sim_now_ns();
        nanosleep(&(struct timespec){.tv_nsec = 20 * MS}, NULL);
        left_ns = sim_now_ns();
}

Test(time, virtual_time_stands_still_while_a_host_function_runs)
{
        bench_spin(bench.n2, 10 * MS);
        OK(cuLaunchHostFunc(bench.n1, slow_host_function, NULL));
        OK(cuStreamSynchronize(bench.n2));
        cr_expect_eq(entered_ns, 0);
        cr_expect_eq(left_ns, 0);
}

Test(time, a_query_does_not_run_a_host_function_on_its_own_thread)
{
        int one = 1;

        OK(cuLaunchHostFunc(bench.n1, host_function, &one));
        pthread_mutex_lock(&of_the_program);
        cuStreamQuery(bench.n1);
        pthread_mutex_unlock(&of_the_program);
        OK(cuStreamSynchronize(bench.n1));
        cr_expect_eq(ran, 1);
}

Test(time, a_stream_waits_for_a_value_that_another_writes)
{
        CUdeviceptr flag = bench_alloc(4), p = bench_alloc(4096);

        OK(cuMemsetD32_v2(flag, 0, 1));
        OK(cuStreamWaitValue32_v2(bench.n1, flag, 3, CU_STREAM_WAIT_VALUE_GEQ));
        bench_fill(bench.n1, p, 1024, 9);
        bench_spin(bench.n2, 10 * MS);
        OK(cuStreamWriteValue32_v2(bench.n2, flag, 3, CU_STREAM_WRITE_VALUE_DEFAULT));
        cr_expect_eq(cuStreamQuery(bench.n1), CUDA_ERROR_NOT_READY);
        OK(cuStreamSynchronize(bench.n1));
        cr_expect_eq((sim_now_ns() + MS / 2) / MS, 10);
        cr_expect_eq(bench_value(p), 9);
}

Test(time, a_batch_of_values_is_done_in_its_order)
{
        CUdeviceptr flag = bench_alloc(8), p = bench_alloc(16);
        CUstreamBatchMemOpParams list[2] = {0};

        list[0].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
        list[0].waitValue.address = flag;
        list[0].waitValue.value64 = 7;
        list[0].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
        list[1].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
        list[1].writeValue.address = p;
        list[1].writeValue.value = 9;
        OK(cuMemsetD32_v2(flag, 0, 2));
        OK(cuMemsetD32_v2(p, 0, 4));
        OK(cuStreamBatchMemOp_v2(bench.n1, 2, list, 0));
        bench_spin(bench.n2, 10 * MS);
        OK(cuStreamWriteValue64(bench.n2, flag, 7, CU_STREAM_WRITE_VALUE_DEFAULT));
        cr_expect_eq(cuStreamQuery(bench.n1), CUDA_ERROR_NOT_READY);
        OK(cuStreamSynchronize(bench.n1));
        cr_expect_eq((sim_now_ns() + MS / 2) / MS, 10);
        cr_expect_eq(bench_value(p), 9);
        cr_expect_eq(cuStreamBatchMemOp_v2(bench.n1, 0, list, 0), CUDA_ERROR_INVALID_VALUE);
}

/* G5: an order that the driver cannot see. One wait too many between the two is a deadlock. */
Test(time, a_kernel_holds_its_stream_until_the_word_is_there)
{
        CUdeviceptr flag = bench_alloc(4), p = bench_alloc(4);

        OK(cuMemsetD32_v2(flag, 0, 1));
        OK(cuMemsetD32_v2(p, 0, 1));
        OK(cuCtxSynchronize());
        bench_hold(bench.n1, flag, 2);
        bench_add(bench.n1, p, 1, 7);
        bench_spin(bench.n2, 10 * MS);
        OK(cuStreamSynchronize(bench.n2));
        cr_expect_eq(cuStreamQuery(bench.n1), CUDA_ERROR_NOT_READY);
        bench_fill(bench.n2, flag, 1, 2);
        OK(cuStreamSynchronize(bench.n1));
        cr_expect_eq(bench_value(p), 7);
}

Test(time, a_wait_for_a_kernel_that_nobody_ends_is_a_deadlock, .signal = SIGABRT)
{
        CUdeviceptr flag = bench_alloc(4);

        OK(cuMemsetD32_v2(flag, 0, 1));
        bench_hold(bench.n1, flag, 2);
        OK(cuStreamSynchronize(bench.n1));
}

Test(time, two_kernels_meet_and_each_needs_the_other)
{
        CUdeviceptr one = bench_alloc(8), other = one + 4;

        OK(cuMemsetD32_v2(one, 0, 2));
        OK(cuCtxSynchronize());
        bench_meet(bench.n1, one, other, 1);
        cr_expect_eq(cuStreamQuery(bench.n1), CUDA_ERROR_NOT_READY);
        bench_meet(bench.n2, other, one, 1);
        OK(cuStreamSynchronize(bench.n1));
        OK(cuStreamSynchronize(bench.n2));
        cr_expect_eq(bench_value(other), 1);
}

Test(time, a_wait_against_an_order_by_value_is_a_deadlock, .signal = SIGABRT)
{
        CUdeviceptr flag = bench_alloc(4);

        OK(cuMemsetD32_v2(flag, 0, 1));
        OK(cuStreamWaitValue32_v2(bench.n1, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
        OK(cuEventRecord(bench.event, bench.n1));
        OK(cuStreamWaitEvent(bench.n2, bench.event, 0));
        OK(cuStreamWriteValue32_v2(bench.n2, flag, 1, CU_STREAM_WRITE_VALUE_DEFAULT));
        cuStreamSynchronize(bench.n1);
}

/* ---- what the host waits for (M32) ---- */

static CUdeviceptr busy_block(CUstream stream)
{
        CUdeviceptr p = bench_alloc(1 << 20);

        bench_spin(stream, 50 * MS);
        return p;
}

static uint64_t took_ms(uint64_t since)
{
        return (sim_now_ns() - since + MS / 2) / MS;
}

static unsigned char pageable[1 << 20];

Test(time, a_pageable_copy_waits_for_blocking_streams_only)
{
        CUdeviceptr p = busy_block(bench.n1);
        uint64_t before = sim_now_ns();

        OK(cuMemcpyHtoD_v2(p, pageable, sizeof(pageable)));
        cr_expect_eq(took_ms(before), 0);
        p = busy_block(bench.b1);
        before = sim_now_ns();
        OK(cuMemcpyHtoD_v2(p, pageable, sizeof(pageable)));
        cr_expect_eq(took_ms(before), 50);
}

Test(time, a_small_pageable_copy_is_staged_and_not_waited_for)
{
        CUdeviceptr p = busy_block(bench.b1);
        uint64_t before = sim_now_ns();

        pageable[0] = 1;
        OK(cuMemcpyHtoD_v2(p, pageable, 4));
        cr_expect_eq(took_ms(before), 0);
        pageable[0] = 2;
        cr_expect_eq(bench_value(p), 1);
}

Test(time, an_asynchronous_pageable_copy_may_reuse_its_source)
{
        CUdeviceptr p = busy_block(bench.n1);

        pageable[0] = 1;
        OK(cuMemcpyHtoDAsync_v2(p, pageable, sizeof(pageable), bench.n1));
        pageable[0] = 2;
        cr_expect_eq(bench_value(p), 1);
}

Test(time, a_pinned_copy_reads_its_source_when_it_runs)
{
        CUdeviceptr p = busy_block(bench.n1);
        uint32_t *pinned;

        OK(cuMemHostAlloc((void **)&pinned, 4096, 0));
        *pinned = 1;
        OK(cuMemcpyHtoDAsync_v2(p, pinned, 4, bench.n1));
        *pinned = 2;
        cr_expect_eq(bench_value(p), 2);
}

Test(time, a_set_does_not_wait_and_a_copy_to_the_host_does)
{
        CUdeviceptr p = busy_block(bench.b1);
        uint64_t before = sim_now_ns();
        uint32_t value = 0;

        OK(cuMemsetD32_v2(p, 7, 16));
        cr_expect_eq(took_ms(before), 0);
        OK(cuMemcpyDtoH_v2(&value, p, 4));
        cr_expect_eq(took_ms(before), 50);
        cr_expect_eq(value, 7);
}

Test(time, per_thread_copies_do_not_use_the_legacy_stream)
{
        CUdeviceptr p = busy_block(bench.b1);
        uint64_t before = sim_now_ns();

        OK(cuMemcpyHtoD_v2_ptds(p, pageable, sizeof(pageable)));
        cr_expect_eq(took_ms(before), 0);
}

Test(time, boxes_land_where_they_should)
{
        CUdeviceptr p = bench_alloc(64 * 8);
        unsigned char back[8] = {0};
        CUDA_MEMCPY2D copy = {
                .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                .srcDevice = p,
                .srcPitch = 64,
                .srcXInBytes = 2,
                .srcY = 1,
                .dstMemoryType = CU_MEMORYTYPE_HOST,
                .dstHost = back,
                .dstPitch = 4,
                .WidthInBytes = 2,
                .Height = 2,
        };

        OK(cuMemsetD8_v2(p, 0, 64 * 8));
        OK(cuMemsetD2D16_v2(p + 64 + 2, 64, 0x0201, 1, 2));
        OK(cuMemcpy2D_v2(&copy));
        cr_expect_arr_eq(back, ((unsigned char[]){1, 2, 0, 0, 1, 2, 0, 0}), 8);
        cr_expect_eq(cuMemsetD8_v2(p, 0, 64 * 8 + 1), CUDA_ERROR_INVALID_VALUE, "M31");
}

Test(time, an_asynchronous_copy_to_pageable_memory_waits)
{
        CUdeviceptr p = busy_block(bench.n1);
        uint64_t before = sim_now_ns();

        OK(cuMemcpyDtoHAsync_v2(pageable, p, sizeof(pageable), bench.n1));
        cr_expect_eq(took_ms(before), 50);
}

/* ---- real time ---- */

Test(real_time, a_spin_lasts_as_long_as_it_says)
{
        uint64_t before = wall_ns();

        bench_spin(bench.n1, 30 * MS);
        bench_spin(bench.n2, 30 * MS);
        cr_expect_eq(cuStreamQuery(bench.n1), CUDA_ERROR_NOT_READY);
        OK(cuCtxSynchronize());
        cr_expect_geq(wall_ns() - before, 30ull * MS);
        cr_expect_eq(sim_pending(), 0);
}

static void *free_behind_a_kernel(void *address)
{
        OK(cuCtxSetCurrent(bench.context));
        OK(cuMemFree_v2((CUdeviceptr)(uintptr_t)address));
        return NULL;
}

Test(real_time, a_waiting_thread_does_not_hold_the_others)
{
        CUdeviceptr p = bench_alloc(4096), q = bench_alloc(4096);
        pthread_t thread;
        uint64_t before = wall_ns();

        bench_spin(bench.n1, 500 * MS);
        pthread_create(&thread, NULL, free_behind_a_kernel, (void *)(uintptr_t)p);
        OK(cuMemsetD32Async(q, 1, 1, bench.n2));
        OK(cuStreamSynchronize(bench.n2));
        cr_expect_lt(wall_ns() - before, 400ull * MS);
        pthread_join(thread, NULL);
        cr_expect_geq(wall_ns() - before, 500ull * MS);
}

Test(real_time, the_oracle_watches_too, .signal = SIGABRT)
{
        CUdeviceptr p = bench_alloc(4096);

        sim_oracle_alloc(p, 4096);
        bench_spin(bench.n1, 50 * MS);
        bench_fill(bench.n1, p, 1024, 1);
        sim_oracle_free(p);
        sim_oracle_alloc(p, 4096);
        bench_fill(bench.n2, p, 1024, 2);
        sim_run_all();
}
