/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Limit -- what may a process hold of a device?
 *
 * What the driver has in use, to the byte and at any moment, the simulated one
 * tells. What counts, and until when, is in limit_kinds.c.
 */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "tests/shim/limiting.h"
#include "track/limit.h"

/* the boundary */

Test(limit, is_reached_and_not_passed_by_what_the_driver_serves)
{
        CUdeviceptr all;

        start("observe", "8M", 0);
        all = alloc(8 * MIB);
        cr_expect_eq(sp_limit_counted(0), 8 * MIB);
        expect_refusal(1);
        give(all);
        cr_expect_eq(sp_limit_counted(0), 0);
        expect_refusal(8 * MIB + 1);
        all = alloc(6 * MIB + 1);
        cr_expect_eq(sp_limit_counted(0), 8 * MIB, "as the driver rounds it");
        give(all);
        alloc(6 * MIB);
        alloc(MIB);
        alloc(MIB - 512);
        alloc(512);
        expect_refusal(1);
        cr_expect_eq(used(), 8 * MIB);
        cr_expect_eq(sim_memory_high(0), 8 * MIB);
}

Test(limit, is_reached_and_not_passed_by_the_pool)
{
        CUdeviceptr blocks[32];

        start("pool", "64M", 0);
        for (unsigned int i = 0; i < 32; i++)
                blocks[i] = alloc(2 * MIB);
        cr_expect_eq(served_by_pools(), 32);
        cr_expect_eq(used(), 64 * MIB);
        expect_refusal(1);
        expect_refusal(64 * MIB);
        give(blocks[7]);
        blocks[7] = alloc(2 * MIB);
        expect_refusal(512);
        for (unsigned int i = 0; i < 32; i++)
                give(blocks[i]);
        give(alloc(64 * MIB));
        expect_refusal(64 * MIB + 1);
        cr_expect_eq(sim_memory_high(0), 64 * MIB);
}

Test(limit, is_the_same_for_plain_memory_of_the_pool)
{
        CUdeviceptr first;
        size_t pitch;

        setenv("STREAMPOOL_BACKING", "native", 1);
        start("pool", "64M", 0);
        first = alloc(40 * MIB);
        alloc(24 * MIB);
        expect_refusal(1);
        give(first);
        first = alloc(40 * MIB);
        expect_refusal(1);
        give(first);
        cr_assert_eq(sp_driver.cuCtxSynchronize(), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemAllocPitch_v2(&first, &pitch, 512, 80 * 1024, 4), CUDA_SUCCESS,
                     "the pool gives it back");
        cr_expect_eq(sp_limit_counted(0), 64 * MIB);
        cr_expect_eq(sim_memory_high(0), 64 * MIB);
}

/* What one pool holds idle, the other may have; and the driver. */
Test(limit, makes_the_pools_give_back_what_they_hold_idle)
{
        CUdeviceptr pointer;
        size_t pitch;

        start("pool", "64M", 0);
        give(alloc(60 * MIB));
        cr_assert_eq(sp_on_cuMemAllocAsync(&pointer, 60 * MIB, stream), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemFreeAsync(pointer, stream), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemAllocPitch_v2(&pointer, &pitch, 512, 120 * 1024, 4), CUDA_SUCCESS);
        cr_expect_eq(sp_limit_counted(0), 60 * MIB);
        cr_expect_eq(used(), 60 * MIB, "%zu", used());
        cr_expect_leq(sim_memory_high(0), 64 * MIB);
}

/* What is wrong with a call is the driver's to say, whatever the limit. */
Test(limit, leaves_other_refusals_to_the_driver)
{
        CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = 1024, .Format = 0x20, .NumChannels = 3};
        CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 99}};
        CUmemGenericAllocationHandle handle;
        CUdeviceptr pointer = 5;
        CUarray array;

        start("pool", "1", 0);
        sim_calls_reset();
        cr_expect_eq(sp_on_cuMemAlloc_v2(NULL, 4096), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_on_cuMemAlloc_v2(&pointer, 0), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_on_cuMemAlloc_v2(&pointer, (size_t)1 << 50), CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect_eq(sim_calls("cuMemAlloc_v2"), 3, "all of them asked");
        cr_expect_eq(sp_on_cuMemAlloc_v2(&pointer, (size_t)1 << 40), CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect_eq(sp_on_cuMemAllocAsync(&pointer, (size_t)1 << 40, stream),
                     CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect_eq(sim_calls("cuMemAlloc_v2"), 3, "the device has less, and need not be asked");
        cr_expect_eq(sim_calls("cuMemAllocAsync"), 0);
        cr_expect_eq(sp_on_cuMemAllocAsync(&pointer, 0, stream), CUDA_SUCCESS);
        cr_expect_eq(sp_on_cuArray3DCreate_v2(NULL, &desc), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_on_cuArray3DCreate_v2(&array, NULL), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_on_cuMemCreate(&handle, 2 * MIB, &prop, 0),
                     sp_driver.cuMemCreate(&handle, 2 * MIB, &prop, 0));
        cr_assert_eq(cuCtxSetCurrent(NULL), CUDA_SUCCESS);
        cr_expect_eq(sp_on_cuMemAlloc_v2(&pointer, 4096), CUDA_ERROR_INVALID_CONTEXT);
}

Test(limit, says_in_a_capture_what_the_driver_says)
{
        CUdeviceptr pointer = 5;
        CUgraph graph;

        start("pool", "1M", 0);
        cr_assert_eq(sp_on_cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL),
                     CUDA_SUCCESS);
        cr_expect_eq(sp_on_cuMemAllocAsync(&pointer, 4 * MIB, stream), CUDA_SUCCESS,
                     "a node of the graph");
        cr_expect_eq(sp_on_cuMemAlloc_v2(&pointer, 4 * MIB), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        cr_expect_neq(sp_on_cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
        cr_expect_eq(sp_limit_counted(0), 0);
}

/* threads: nothing between the question and the answer */

#define UNITS 1 /* two threads are enough to pass it */

static atomic_uint held, too_many;

static void *take_and_give(void *unused)
{
        for (unsigned int taken = 0; taken < 3000000; taken++) {
                while (!sp_limit_take(60, 1))
                        sched_yield();
                if (atomic_fetch_add(&held, 1) >= UNITS || sp_limit_counted(60) > UNITS)
                        atomic_fetch_add(&too_many, 1);
                atomic_fetch_sub(&held, 1);
                sp_limit_give(60, 1);
        }
        return unused;
}

Test(limit, is_never_passed_by_threads)
{
        pthread_t threads[16];

        sp_limit_set(60, UNITS, 0);
        for (unsigned int i = 0; i < 16; i++)
                cr_assert_eq(pthread_create(&threads[i], NULL, take_and_give, NULL), 0);
        for (unsigned int i = 0; i < 16; i++)
                pthread_join(threads[i], NULL);
        cr_expect_eq(atomic_load(&too_many), 0);
        cr_expect_eq(sp_limit_counted(60), 0);
}

/* devices */

Test(limit, may_be_that_of_one_device)
{
        CUdeviceptr pointer;
        size_t total;

        start("pool", "1:64M", 0);
        alloc(128 * MIB);
        cr_assert_eq(sp_on_cuDeviceTotalMem_v2(&total, 0), CUDA_SUCCESS);
        cr_expect_eq(total, 4 * GIB);
        cr_assert_eq(sp_on_cuDeviceTotalMem_v2(&total, 1), CUDA_SUCCESS);
        cr_expect_eq(total, 64 * MIB);
        begin_on(1);
        pointer = alloc(64 * MIB);
        expect_refusal(1);
        give(pointer);
        cr_expect_eq(sim_memory_high(1), 64 * MIB);
}

Test(limit, may_be_a_share_of_the_device)
{
        CUdeviceptr pointer = 0;
        size_t total;

        start("observe", "25%,1:1%", 1);
        cr_assert_eq(sp_on_cuDeviceTotalMem_v2(&total, 1), CUDA_SUCCESS);
        cr_expect_eq(total, 4 * GIB / 100);
        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, 40 * MIB), CUDA_SUCCESS);
        cr_expect_eq(sp_on_cuMemAlloc_v2(&pointer, 2 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
        cr_assert_eq(sp_on_cuDeviceTotalMem_v2(&total, 0), CUDA_SUCCESS);
        cr_expect_eq(total, GIB);
}
