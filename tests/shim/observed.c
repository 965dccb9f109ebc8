/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Observed -- with STREAMPOOL_MODE=observe the driver serves, call by call
 *
 * A tool that looks at the driver's allocations, a sanitizer above all, sees each of the
 * program's as what it is.
 */

#include <stdlib.h>

#include "tests/shim/begin.h"
#include "tests/sim_driver/control.h"

#define SIZE ((size_t)2 << 20)

static CUstream stream;
static CUdeviceptr address;
static CUmemoryPool pool;
static CUarray array;
static void *host;

static CUresult plain(void)
{
        return sp_on_cuMemAlloc_v2(&address, SIZE);
}

static CUresult pitched(void)
{
        size_t pitch;

        return sp_on_cuMemAllocPitch_v2(&address, &pitch, 100, 7, 4);
}

static CUresult managed(void)
{
        return sp_on_cuMemAllocManaged(&address, SIZE, CU_MEM_ATTACH_GLOBAL);
}

static CUresult ordered(void)
{
        return sp_on_cuMemAllocAsync(&address, SIZE, stream);
}

static CUresult from_pool(void)
{
        return sp_on_cuMemAllocFromPoolAsync(&address, SIZE, pool, stream);
}

static CUresult pinned(void)
{
        return sp_on_cuMemHostAlloc(&host, SIZE, 0);
}

static CUresult pinned_without_flags(void)
{
        return sp_on_cuMemAllocHost_v2(&host, SIZE);
}

static CUresult flat(void)
{
        CUDA_ARRAY_DESCRIPTOR desc = {
                .Width = 64, .Height = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};

        return sp_on_cuArrayCreate_v2(&array, &desc);
}

static CUresult free_plain(void)
{
        return sp_on_cuMemFree_v2(address);
}

static CUresult free_ordered(void)
{
        return sp_on_cuMemFreeAsync(address, stream);
}

static CUresult free_pinned(void)
{
        return sp_on_cuMemFreeHost(host);
}

static CUresult free_array(void)
{
        return sp_on_cuArrayDestroy(array);
}

static const struct {
        const char *made_by;
        const char *freed_by;
        CUresult (*make)(void);
        CUresult (*unmake)(void);
} rows[] = {
        {"cuMemAlloc_v2", "cuMemFree_v2", plain, free_plain},
        {"cuMemAllocPitch_v2", "cuMemFree_v2", pitched, free_plain},
        {"cuMemAllocManaged", "cuMemFree_v2", managed, free_plain},
        {"cuMemAllocAsync", "cuMemFreeAsync", ordered, free_ordered},
        {"cuMemAllocAsync", "cuMemFree_v2", ordered, free_plain},
        {"cuMemAllocFromPoolAsync", "cuMemFreeAsync", from_pool, free_ordered},
        {"cuMemHostAlloc", "cuMemFreeHost", pinned, free_pinned},
        {"cuMemAllocHost_v2", "cuMemFreeHost", pinned_without_flags, free_pinned},
        {"cuArrayCreate_v2", "cuArrayDestroy", flat, free_array},
};

static void start(void)
{
        CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};

        setenv("STREAMPOOL_MODE", "observe", 1);
        begin_on(0);
        cr_assert_eq(sp_on_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
}

TestSuite(observed, .init = start);

/* How often the driver was asked for memory of any kind, or given it back. */
static uint64_t all_calls(void)
{
        static const char *const symbols[] = {
                "cuMemAlloc_v2",
                "cuMemAllocPitch_v2",
                "cuMemAllocManaged",
                "cuMemAllocAsync",
                "cuMemAllocFromPoolAsync",
                "cuMemHostAlloc",
                "cuMemAllocHost_v2",
                "cuArrayCreate_v2",
                "cuMemCreate",
                "cuMemFree_v2",
                "cuMemFreeAsync",
                "cuMemFreeHost",
                "cuArrayDestroy",
                "cuMemRelease",
        };
        uint64_t sum = 0;

        for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++)
                sum += sim_calls(symbols[i]);
        return sum;
}

Test(observed, each_allocation_and_each_free_is_one_call_of_the_driver)
{
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                for (int round = 0; round < 3; round++) {
                        sim_calls_reset();
                        cr_assert_eq(rows[i].make(), CUDA_SUCCESS, "%s", rows[i].made_by);
                        cr_expect_eq(sim_calls(rows[i].made_by), 1, "%s", rows[i].made_by);
                        cr_expect_eq(all_calls(), 1, "%s", rows[i].made_by);
                        cr_assert_eq(rows[i].unmake(), CUDA_SUCCESS, "%s", rows[i].freed_by);
                        cr_expect_eq(sim_calls(rows[i].freed_by), 1, "%s", rows[i].freed_by);
                        cr_expect_eq(all_calls(), 2, "%s", rows[i].freed_by);
                }
        }
        cr_expect_eq(served_by_pools(), 0);
}

/* Under a pool the two would be operations of that stream, at any price (H6). */
Test(observed, a_pair_on_the_legacy_stream_is_two_calls_of_the_driver)
{
        CUstream blocking[2];
        CUdeviceptr block;

        for (int i = 0; i < 2; i++) {
                cr_assert_eq(sp_on_cuStreamCreate(&blocking[i], CU_STREAM_DEFAULT), CUDA_SUCCESS);
                launch_on(blocking[i]);
        }
        sim_calls_reset();
        cr_assert_eq(sp_on_cuMemAllocAsync(&block, SIZE, CU_STREAM_LEGACY), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemFreeAsync(block, CU_STREAM_LEGACY), CUDA_SUCCESS);
        cr_expect_eq(sim_calls("cuEventRecord") + sim_calls("cuCtxSynchronize"), 0);
        cr_expect_eq(all_calls(), 2);
}
