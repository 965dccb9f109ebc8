/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Room -- what no device could hold is refused without filling one
 */

#include "route/room.h"

#include <stdlib.h>

#include "route/perform.h"
#include "tests/shim/begin.h"
#include "tests/sim_driver/control.h"

#define MIB    ((size_t)1 << 20)
#define GIB    ((size_t)1 << 30)
#define MEMORY (8 * GIB)

static CUstream stream;

static void start_with(const char *memory, const char *reserve)
{
        setenv("SIM_MEMORY", memory, 1);
        setenv("SIM_RESERVE", reserve, 1);
        begin_on(0);
        cr_assert_eq(sp_on_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
}

static void start(void)
{
        start_with("8G", "0");
}

static void start_with_reserve(void)
{
        start_with("8G", "16M");
}

static void start_with_large_reserve(void)
{
        start_with("8G", "512M");
}

TestSuite(room, .init = start);
TestSuite(reserve, .init = start_with_reserve);
TestSuite(large_reserve, .init = start_with_large_reserve);

static size_t unused(void)
{
        size_t free_bytes, total;

        cr_assert_eq(sp_driver.cuMemGetInfo_v2(&free_bytes, &total), CUDA_SUCCESS);
        return free_bytes;
}

static CUresult ask(bool async, CUdeviceptr *pointer, size_t size)
{
        *pointer = 0;
        sim_calls_reset();
        return async ? sp_on_cuMemAllocAsync(pointer, size, stream)
                     : sp_on_cuMemAlloc_v2(pointer, size);
}

static CUdeviceptr take(bool async, size_t size)
{
        CUdeviceptr pointer;

        cr_assert_eq(ask(async, &pointer, size), CUDA_SUCCESS, "%zu MiB", size / MIB);
        return pointer;
}

/* The calls that cost much, those of giving back included. */
static uint64_t calls(void)
{
        return sim_calls("cuMemCreate") + sim_calls("cuMemSetAccess") + sim_calls("cuMemUnmap") +
               sim_calls("cuMemRelease") + sim_calls("cuMemAlloc_v2") +
               sim_calls("cuMemAllocAsync");
}

static void expect_refused(bool async, size_t size, unsigned int most)
{
        size_t before = unused();
        CUdeviceptr pointer;

        cr_expect_eq(ask(async, &pointer, size), CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect_leq(calls(), most, "%zu MiB: %llu creates in %llu calls", size / MIB,
                      (unsigned long long)sim_calls("cuMemCreate"), (unsigned long long)calls());
        cr_expect_geq(unused(), before, "nothing stays");
}

static void fill(size_t size, unsigned int count)
{
        for (unsigned int i = 0; i < count; i++)
                take(i % 2, size);
}

Test(room, is_looked_for_before_a_device_is_filled)
{
        CUdeviceptr pointer, small;

        cr_assert_eq(sp_on_cuMemAlloc_v2(&small, 1 << 20), CUDA_SUCCESS);
        sim_calls_reset();
        cr_expect_eq(sp_on_cuMemAlloc_v2(&pointer, MEMORY), CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect_eq(sp_on_cuMemAllocAsync(&pointer, 2 * MEMORY, CU_STREAM_LEGACY),
                     CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect_eq(sim_calls("cuMemCreate"), 0);
        cr_expect_eq(sp_on_cuMemFree_v2(small), CUDA_SUCCESS);
}

Test(room, counts_what_is_idle_and_what_is_freed)
{
        CUdeviceptr half = take(false, MEMORY / 2), most;

        expect_refused(false, MEMORY / 4 * 3, 1);
        cr_assert_eq(sp_on_cuMemFree_v2(half), CUDA_SUCCESS);
        most = take(false, MEMORY / 4 * 3);
        cr_expect_eq(sp_on_cuMemFree_v2(most), CUDA_SUCCESS);
}

/* Growth that is a small part of what was free is not worth a question each time. */
Test(room, is_looked_for_once_while_there_is_plenty)
{
        sim_calls_reset();
        for (unsigned int i = 0; i < 8; i++)
                cr_assert_eq(sp_on_cuMemAlloc_v2(&(CUdeviceptr){0}, 64 * MIB), CUDA_SUCCESS);
        cr_expect_eq(sim_calls("cuMemGetInfo_v2"), 1);
}

/* The driver calls free what it does not give. */
Test(reserve, is_found_out_by_one_question)
{
        fill(GIB, 7);
        for (unsigned int i = 0; i < 4; i++)
                expect_refused(i % 2, unused() - i * 4 * MIB, 4);
        expect_refused(false, unused() - 2 * MIB, 4);
}

Test(reserve, is_all_that_is_left)
{
        CUdeviceptr rest, parts[3];

        fill(GIB, 7);
        rest = take(false, unused() - 16 * MIB);
        cr_expect_leq(sim_calls("cuMemCreate"), 2);
        cr_expect_eq(served_by_pools(), 8);
        cr_expect_eq(unused(), 16 * MIB);
        cr_assert_eq(sp_on_cuMemFree_v2(rest), CUDA_SUCCESS);
        for (unsigned int i = 0; i < 3; i++)
                parts[i] = take(i % 2, 320 * MIB);
        cr_expect_eq(served_by_pools(), 11, "the large piece was in nobody's way");
        for (unsigned int i = 0; i < 3; i++)
                cr_expect_eq(sp_on_cuMemFree_v2(parts[i]), CUDA_SUCCESS);
}

/* More than is thought of: what is obtained on the way is given back, and not obtained again. */
Test(large_reserve, costs_no_more_than_there_are_halves)
{
        CUdeviceptr pointer;

        fill(GIB, 5);
        expect_refused(false, unused() - 256 * MIB, 450);
        expect_refused(false, unused() - 256 * MIB, 700);
        cr_expect_eq(ask(true, &pointer, unused() - 512 * MIB), CUDA_SUCCESS);
}

/* After a refusal pieces are small, but not of a large block. */
Test(room, of_a_large_block_is_in_few_pieces_after_a_refusal)
{
        CUdeviceptr pointer = take(false, 6 * GIB);

        expect_refused(false, 4 * GIB, 1);
        cr_assert_eq(sp_on_cuMemFree_v2(pointer), CUDA_SUCCESS);
        cr_assert(sp_relieve());
        take(false, 5 * GIB);
        cr_expect_leq(sim_calls("cuMemCreate"), 2 * 64 + 1);
}

/* What the simulated driver has is in pieces of 8 MiB, none beside another. */
static void break_up(void)
{
        static CUmemGenericAllocationHandle handles[MEMORY / (8 * MIB)];
        CUmemAllocationProp prop = {
                .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
        };
        unsigned int count = 0;

        while (!sp_driver.cuMemCreate(&handles[count], 8 * MIB, &prop, 0))
                count++;
        for (unsigned int i = 0; i < count; i += 2)
                cr_assert_eq(sp_driver.cuMemRelease(handles[i]), CUDA_SUCCESS);
}

Test(room, may_be_in_pieces)
{
        break_up();
        take(false, 3 * GIB);
        cr_expect_eq(served_by_pools(), 1);
        cr_expect_leq(sim_calls("cuMemCreate"), 2 * (3 * GIB / (8 * MIB)));
}
