/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Spans -- blocks that lie in several segments, and segments that move for them
 *
 * In the tight mode every segment is of 2 MiB, and what is free moves before
 * more is obtained. To the program a block is one allocation all the same.
 */

#include <criterion/criterion.h>
#include <stdlib.h>

#include "report/counters.h"
#include "tests/shim/begin.h"
#include "tests/sim_driver/control.h"
#include "track/context.h"
#include "track/state.h"

#define MIB   ((size_t)1 << 20)
#define PIECE (2 * MIB)
#define EXTRA 2 /* pieces that the pool may take to be sure of a place */

/* Not in the table of the shim, and by their plain names older functions. */
CUresult cuMemsetD32_v2(CUdeviceptr address, unsigned int value, size_t count);
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);

static void start(void)
{
        setenv("STREAMPOOL_GROWTH", "tight", 1);
        begin_on(0);
}

TestSuite(spans, .init = start);

static CUdeviceptr alloc(size_t size)
{
        CUdeviceptr pointer;

        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, size), CUDA_SUCCESS);
        return pointer;
}

/* The block is free, and known to be idle. */
static void give(CUdeviceptr pointer)
{
        cr_assert_eq(sp_on_cuMemFree_v2(pointer), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
}

static size_t held(void)
{
        struct spm_stats stats;

        cr_assert_eq(spm_stats(sp_model_enter(), sp_context_current()->sync_pool, &stats), SPM_OK);
        sp_model_leave();
        return stats.reserved_current;
}

static void set(CUdeviceptr pointer, unsigned int value, size_t bytes)
{
        cr_expect_eq(cuMemsetD32_v2(pointer, value, bytes / 4), CUDA_SUCCESS);
}

static unsigned int word_at(CUdeviceptr pointer)
{
        unsigned int word = 0;

        cr_expect_eq(cuMemcpyDtoH_v2(&word, pointer, sizeof(word)), CUDA_SUCCESS);
        return word;
}

Test(spans, are_one_allocation_to_the_program)
{
        const size_t size = 5 * PIECE + 4096;
        CUdeviceptr pointer = alloc(size), base, start_address;
        unsigned long long id, first;
        size_t length, range_size;

        cr_assert_geq(sp_counter_sum(SP_COUNTER_segments_obtained), 6);
        cr_assert_eq(sp_on_cuPointerGetAttribute(&first, CU_POINTER_ATTRIBUTE_BUFFER_ID, pointer),
                     CUDA_SUCCESS);
        for (size_t at = 0; at < size; at += MIB) {
                cr_expect_eq(sp_on_cuMemGetAddressRange_v2(&base, &length, pointer + at),
                             CUDA_SUCCESS);
                cr_expect(base == pointer && length == size, "%#zx", at);
                cr_expect_eq(sp_on_cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                                         pointer + at),
                             CUDA_SUCCESS);
                cr_expect_eq(id, first, "%#zx", at);
                sp_on_cuPointerGetAttribute(&start_address, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                            pointer + at);
                sp_on_cuPointerGetAttribute(&range_size, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                            pointer + at);
                cr_expect(start_address == pointer && range_size == size, "%#zx", at);
        }
        cr_expect_eq(sp_on_cuMemGetAddressRange_v2(&base, &length, pointer + size),
                     CUDA_ERROR_NOT_FOUND);
        cr_expect_eq(sp_on_cuMemFree_v2(pointer + PIECE), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_on_cuMemFree_v2(pointer), CUDA_SUCCESS);
}

Test(spans, can_be_shared_as_a_whole_and_not_beyond)
{
        CUdeviceptr pointer = alloc(3 * PIECE);
        int file = -1;

        alloc(3 * PIECE);
        cr_expect_eq(sp_on_cuMemGetHandleForAddressRange(&file, pointer, 3 * PIECE,
                                                         CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
                     CUDA_SUCCESS);
        cr_expect_eq(sp_on_cuMemGetHandleForAddressRange(&file, pointer + PIECE, 3 * PIECE,
                                                         CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
                     CUDA_ERROR_INVALID_VALUE);
}

/* What a hole and its neighbour lack comes from a free block elsewhere; what is in between stays.
 */
Test(spans, are_made_of_segments_that_move)
{
        CUdeviceptr first = alloc(8 * PIECE), second = alloc(8 * PIECE), third;

        set(second, 4711, 8 * PIECE);
        give(first);
        cr_assert_geq(held(), 16 * PIECE);
        sim_calls_reset();
        third = alloc(12 * PIECE);
        cr_expect_leq(held(), (20 + EXTRA) * PIECE, "%zu MiB", held() / MIB);
        cr_expect_geq(sp_counter_sum(SP_COUNTER_segments_moved), 8 - EXTRA);
        cr_expect_leq(sim_calls("cuMemCreate"), 4 + EXTRA);
        cr_expect_eq(sim_calls("cuMemRelease"), 0);
        cr_expect_eq(sim_calls("cuMemAddressReserve"), 0);
        set(third, 7, 12 * PIECE);
        for (size_t at = 0; at < 8 * PIECE; at += MIB)
                cr_expect_eq(word_at(second + at), 4711);
        cr_expect_eq(cuMemcpyDtoD_v2(second, third + 4 * PIECE + 4, 8 * PIECE - 4), CUDA_SUCCESS);
        cr_expect_eq(word_at(second + 8 * PIECE - 8), 7);
}

/* More than fit into one list of actions: what is left of one list serves the next. */
Test(spans, move_in_any_number)
{
        CUdeviceptr first = alloc(40 * PIECE), second = alloc(PIECE), third;

        give(first);
        sim_calls_reset();
        third = alloc(41 * PIECE);
        cr_expect_leq(held(), (42 + EXTRA) * PIECE, "%zu MiB", held() / MIB);
        cr_expect_leq(sim_calls("cuMemCreate"), 1 + EXTRA);
        cr_expect_eq(sim_calls("cuMemRelease"), 0);
        cr_expect_geq(sp_counter_sum(SP_COUNTER_segments_moved), 40 - EXTRA);
        set(third, 7, 41 * PIECE);
        set(second, 8, PIECE);
        cr_expect_eq(word_at(third + 41 * PIECE - 4), 7);
}

/* The driver serves what the pool cannot, and needs the memory for it. */
Test(spans, leave_nothing_behind_that_came_to_nothing)
{
        for (unsigned int i = 1; i <= 30; i++)
                sim_fail("cuMemMap", i, CUDA_ERROR_OUT_OF_MEMORY);
        alloc(3 * PIECE);
        sim_fail_none();
        cr_expect_eq(sim_calls("cuMemAlloc_v2"), 1);
        cr_expect_gt(sim_calls("cuMemCreate"), 0);
        cr_expect_eq(sim_calls("cuMemCreate"), sim_calls("cuMemRelease"));
}

/* A pointer to what was freed is unknown, whether or not its memory has moved away. */
Test(spans, leave_no_pointers_behind)
{
        CUdeviceptr first = alloc(8 * PIECE), base;
        CUmemorytype type;
        size_t size;

        alloc(8 * PIECE);
        give(first);
        for (unsigned int round = 0; round < 2; round++) {
                cr_expect_eq(sp_on_cuMemGetAddressRange_v2(&base, &size, first),
                             CUDA_ERROR_NOT_FOUND);
                cr_expect_eq(
                        sp_on_cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, first),
                        CUDA_ERROR_INVALID_VALUE);
                cr_expect_eq(sp_on_cuMemFree_v2(first), CUDA_ERROR_INVALID_VALUE);
                alloc(12 * PIECE);
        }
        cr_expect_eq(sp_driver.cuMemGetAddressRange_v2(&base, &size, first), CUDA_ERROR_NOT_FOUND,
                     "it has moved");
}

/* Also in the tight mode: nothing else is in them. */
Test(spans, of_a_large_block_are_few)
{
        CUdeviceptr large;

        sim_calls_reset();
        large = alloc(512 * MIB);
        cr_expect_leq(sim_calls("cuMemCreate"), 4 + EXTRA);
        cr_expect_leq(held(), 512 * MIB + EXTRA * PIECE);
        cr_expect_eq(cuMemcpyDtoD_v2(large, large + 256 * MIB, 256 * MIB), CUDA_SUCCESS);
        cr_expect_eq(sp_on_cuMemFree_v2(large), CUDA_SUCCESS);
}

/* Two segments of 128 MiB, which neither can move to the next block nor stay for this one. */
Test(spans, of_a_large_block_are_given_back_for_a_small_one)
{
        CUdeviceptr large = alloc(256 * MIB), small;

        give(large);
        sim_calls_reset();
        small = alloc(5 * PIECE);
        cr_expect_eq(sim_calls("cuMemRelease"), 2);
        cr_expect_leq(held(), (5 + EXTRA) * PIECE, "%zu MiB", held() / MIB);
        set(small, 4711, 5 * PIECE);
        large = alloc(256 * MIB);
        set(large, 7, 256 * MIB);
        cr_expect_eq(word_at(small + 5 * PIECE - 4), 4711);
}
