/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Limit told -- what does a program hear of its limit, and a person of a refusal?
 *
 * And what does the pool do above a soft limit, of which the program hears
 * nothing?
 */

#include "report/shortage.h"
#include "tests/shim/limiting.h"
#include "track/limit.h"

static CUdeviceptr ordered;

/* Of 8 MiB. */
static void make_array(void)
{
        CUDA_ARRAY_DESCRIPTOR desc = {
                .Width = 1024, .Height = 2048, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
        CUarray array;

        cr_assert_eq(sp_on_cuArrayCreate_v2(&array, &desc), CUDA_SUCCESS);
}

/* what the program is told */

static void expect_info(size_t free_wanted, size_t total_wanted)
{
        size_t free_bytes = 5, total = 5, device;

        cr_assert_eq(sp_on_cuMemGetInfo_v2(&free_bytes, &total), CUDA_SUCCESS);
        cr_expect_eq(free_bytes, free_wanted, "free: %zu", free_bytes);
        cr_expect_eq(total, total_wanted, "total: %zu", total);
        cr_assert_eq(sp_on_cuDeviceTotalMem_v2(&device, 0), CUDA_SUCCESS);
        cr_expect_eq(device, total, "of the device: %zu", device);
        total = free_bytes = 5;
        cr_assert_eq(sp_on_cuMemGetInfo_v2(NULL, &total), CUDA_SUCCESS);
        cr_expect_eq(total, total_wanted);
        cr_assert_eq(sp_on_cuMemGetInfo_v2(&free_bytes, NULL), CUDA_SUCCESS);
        cr_expect_eq(free_bytes, free_wanted);
        cr_assert_eq(sp_on_cuMemGetInfo_v2(NULL, NULL), CUDA_SUCCESS);
}

Test(info, tells_of_a_device_as_large_as_the_limit)
{
        CUdeviceptr pointer;

        start("pool", "64M", 0);
        expect_info(64 * MIB, 64 * MIB);
        pointer = alloc(3 * MIB);
        expect_info(61 * MIB, 64 * MIB);
        give(pointer);
        expect_info(64 * MIB, 64 * MIB);
        give(alloc(64 * MIB));
        make_array();
        expect_info(56 * MIB, 64 * MIB);
        alloc(56 * MIB);
        expect_info(0, 64 * MIB);
}

Test(info, tells_so_when_only_observing)
{
        start("observe", "64M", 0);
        alloc(3 * MIB);
        expect_info(60 * MIB, 64 * MIB);
}

Test(info, tells_of_less_where_others_have_it)
{
        CUdeviceptr pointer;

        start("pool", "3G", 0);
        cr_assert_eq(sp_driver.cuMemAlloc_v2(&pointer, 2 * GIB), CUDA_SUCCESS);
        expect_info(2 * GIB, 3 * GIB);
}

Test(info, is_the_drivers_where_there_is_no_limit)
{
        start("observe", "0", 0);
        alloc(64 * MIB);
        expect_info(4 * GIB - 64 * MIB, 4 * GIB);
        expect_refusal(4 * GIB);
}

Test(info, is_the_drivers_where_the_limit_is_larger)
{
        start("pool", "5G", 0);
        alloc(64 * MIB);
        expect_info(4 * GIB - 64 * MIB, 4 * GIB);
}

Test(info, refuses_what_the_driver_refuses)
{
        size_t total;

        start("pool", "64M", 0);
        cr_expect_eq(sp_on_cuDeviceTotalMem_v2(NULL, 0), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_on_cuDeviceTotalMem_v2(&total, 7), CUDA_ERROR_INVALID_DEVICE);
}

/* the soft limit */

/* On two streams: what one alone has to do, nobody waits for (R1). */
static void keep_busy(void)
{
        uint64_t nanoseconds = 1000000;
        void *arguments[] = {&nanoseconds};
        CUstream streams[2] = {stream};
        CUfunction spin;
        CUmodule module;

        cr_assert_eq(sp_on_cuStreamCreate(&streams[1], CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_assert_eq(sp_driver.cuModuleLoadData(&module, ""), CUDA_SUCCESS);
        cr_assert_eq(cuModuleGetFunction(&spin, module, "spin"), CUDA_SUCCESS);
        for (unsigned int i = 0; i < 2; i++) {
                cr_assert_eq(sp_driver.cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, streams[i],
                                                      arguments, NULL),
                             CUDA_SUCCESS);
                launch_on(streams[i]);
        }
}

/* Two blocks, of which one is freed while the device is busy, and another. Return: what is held. */
static size_t churn(const char *soft)
{
        CUdeviceptr pointer;

        setenv("STREAMPOOL_SOFT_LIMIT", soft, 1);
        setenv("STREAMPOOL_GROWTH", "tight", 1);
        start("pool", "0", 0);
        alloc(16 * MIB);
        pointer = alloc(16 * MIB);
        keep_busy();
        give(pointer);
        alloc(16 * MIB);
        return used();
}

Test(soft, limit_unset_the_pool_grows_beside_what_is_pending)
{
        cr_expect_geq(churn("0"), 48 * MIB);
}

Test(soft, limit_makes_the_pool_wait_for_what_is_pending)
{
        cr_expect_eq(churn("0:32M"), 32 * MIB);
        cr_expect_gt(sp_counter_sum(SP_COUNTER_host_waits), 0);
}

Test(soft, limit_refuses_nothing_and_changes_no_figure)
{
        setenv("STREAMPOOL_SOFT_LIMIT", "32M", 1);
        start("pool", "0", 0);
        for (unsigned int i = 0; i < 4; i++)
                alloc(16 * MIB);
        cr_expect_eq(served_by_pools(), 4);
        expect_info(4 * GIB - 64 * MIB, 4 * GIB);
}

Test(soft, limit_is_gone_back_to_at_the_next_wait)
{
        CUdeviceptr pointer, ordered_pointer;

        setenv("STREAMPOOL_SOFT_LIMIT", "1%", 1); /* 40.96 MiB */
        start("pool", "0", 0);
        alloc(8 * MIB);
        pointer = alloc(32 * MIB);
        cr_assert_eq(sp_on_cuMemAllocAsync(&ordered_pointer, 16 * MIB, stream), CUDA_SUCCESS);
        cr_expect_eq(used(), 56 * MIB);
        cr_assert_eq(sp_on_cuMemFreeAsync(ordered_pointer, stream), CUDA_SUCCESS);
        give(pointer);
        cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
        cr_expect_leq(used(), 40 * MIB, "%zu MiB", used() / MIB);
        cr_expect_geq(used(), 30 * MIB, "what is within stays: %zu MiB", used() / MIB);
}

/* the report */

Test(shortage, says_who_holds_the_memory)
{
        struct sp_shortage shortage;
        static const char here, there;

        start("pool", "64M", 0);
        cr_expect_not(sp_shortage_last(&shortage));
        sp_caller = &here;
        alloc(20 * MIB);
        alloc(20 * MIB);
        give(alloc(4 * MIB));
        sp_caller = &there;
        make_array();
        cr_assert_eq(sp_on_cuMemAllocAsync(&ordered, 6 * MIB, stream), CUDA_SUCCESS);
        expect_refusal(17 * MIB);
        cr_assert(sp_shortage_last(&shortage));
        cr_expect(shortage.by_limit && shortage.complete);
        cr_expect_eq(shortage.kind, SP_KIND_DEVICE);
        cr_expect_eq(shortage.bytes, 17 * MIB);
        cr_expect_eq(shortage.device, 0);
        cr_expect_eq(shortage.site, &there);
        cr_expect_eq(shortage.limit, 64 * MIB);
        cr_expect_eq(shortage.total_bytes, 4 * GIB);
        cr_expect_eq(shortage.free_bytes, 4 * GIB - used());
        cr_expect_eq(shortage.held_bytes, 54 * MIB);
        cr_expect_eq(shortage.kinds[SP_KIND_DEVICE].bytes, 40 * MIB);
        cr_expect_eq(shortage.kinds[SP_KIND_DEVICE].count, 2);
        cr_expect_eq(shortage.kinds[SP_KIND_ARRAY].bytes, 8 * MIB);
        cr_expect_eq(shortage.sites[0].site, &here);
        cr_expect_eq(shortage.sites[0].bytes, 40 * MIB);
        cr_expect_eq(shortage.sites[1].kind, SP_KIND_ARRAY);
        cr_expect_eq(shortage.sites[2].bytes, 6 * MIB);
        cr_expect_eq(shortage.sites[3].count, 0);
        cr_expect_eq(shortage.streams[0].stream, 0);
        cr_expect_eq(shortage.streams[0].bytes, 48 * MIB);
        cr_expect_eq(shortage.streams[1].stream, (uintptr_t)stream);
        cr_expect_eq(shortage.sync.used, 40 * MIB);
        cr_expect_eq(shortage.async.used, 6 * MIB);
}

Test(shortage, is_told_of_the_driver_too_and_not_every_time)
{
        struct sp_shortage shortage;
        CUdeviceptr pointer;

        start("observe", "0", 1);
        expect_refusal(5 * GIB);
        cr_assert(sp_shortage_last(&shortage));
        cr_expect_not(shortage.by_limit);
        cr_expect_eq(shortage.limit, SP_LIMIT_NONE);
        cr_expect_eq(shortage.device, 1);
        cr_expect_eq(shortage.bytes, 5 * GIB);
        cr_expect_eq(sp_on_cuMemAlloc_v2(&pointer, 6 * GIB), CUDA_ERROR_OUT_OF_MEMORY);
        cr_assert(sp_shortage_last(&shortage));
        cr_expect_eq(shortage.bytes, 5 * GIB, "so soon after the first");
}
