/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Pinned -- when is a page-locked block served again, and how much is kept?
 *
 * The simulated driver aborts when the new owner of bytes touches them before the
 * old one's work is done; its calls are counted.
 */

#include "tests/shim/pinned_acts.h"

#include "report/counters.h"
#include "track/pinned.h"
#include "track/state.h"

enum { SLOTS = 2 * 1024 * 1024 / 512 }; /* small blocks in a chunk */

/* when */

Test(pinned, is_served_again_once_it_is_seen_to_be_done, .init = start)
{
        char *first = alloc(8, 0), *second;

        sim_oracle_alloc((uintptr_t)first, 8);
        copy_from(first, 8, stream);
        sim_oracle_free((uintptr_t)first);
        give(first);
        second = alloc(8, 0);
        cr_expect_neq(second, first, "the copy has not been made");
        sim_oracle_alloc((uintptr_t)second, 8);
        copy_from(second, 8, stream);
        synchronise();
        cr_expect_eq(alloc(8, 0), first);
        cr_expect_gt(sim_oracle_judged(), 0);
}

/* The host uses a block at once, so order on the device is not enough. */
Test(pinned, is_asked_about_before_more_is_obtained, .init = start)
{
        char *first = alloc(8, 0), *other;

        for (int i = 1; i < SLOTS; i++)
                alloc(8, 0);
        cr_expect_eq(sim_calls("cuMemHostAlloc"), 1);
        copy_from(first, 8, stream);
        give(first);
        sim_poll_cost(0);
        other = alloc(8, 0);
        cr_expect_neq(other, first);
        cr_expect_eq(sim_calls("cuMemHostAlloc"), 2, "it was not done");
        for (int i = 1; i < SLOTS; i++)
                alloc(8, 0);
        sim_run_all();
        cr_expect_eq(alloc(8, 0), first, "now it is");
        cr_expect_eq(sim_calls("cuMemHostAlloc"), 2);
        cr_expect_eq(sim_calls("cuStreamWaitEvent"), 0);
}

Test(pinned, costs_the_driver_a_call_for_thousands, .init = start)
{
        for (int i = 0; i < 10000; i++) {
                char *host = alloc(8, 0);

                cr_assert_eq(cuMemcpyHtoDAsync_v2(device_block, host, 8, stream), CUDA_SUCCESS);
                give(host);
                if (i % 100 == 0)
                        synchronise();
        }
        cr_expect_leq(sim_calls("cuMemHostAlloc"), 1);
        cr_expect_eq(sim_calls("cuMemFreeHost"), 0);
        cr_expect_eq(totals().pooled, 10000);
}

Test(pinned, is_not_waited_for_by_a_free, .init = start)
{
        char *host = alloc(8, 0);

        copy_from(host, 8, stream);
        give(host);
        cr_expect_gt(sim_pending(), 0);
}

static void start_with_barrier(void)
{
        setenv("STREAMPOOL_FREE", "sync", 1);
        start();
}

Test(pinned, is_waited_for_by_a_free_where_that_is_wanted, .init = start_with_barrier)
{
        char *host = alloc(8, 0);

        copy_from(host, 8, stream);
        give(host);
        cr_expect_eq(sim_pending(), 0);
}

/* which */

Test(pinned, is_kept_apart_by_its_flags, .init = start)
{
        static const unsigned int flags[] = {0, CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_DEVICEMAP,
                                             CU_MEMHOSTALLOC_WRITECOMBINED,
                                             CU_MEMHOSTALLOC_PORTABLE |
                                                     CU_MEMHOSTALLOC_WRITECOMBINED};
        enum { COUNT = sizeof(flags) / sizeof(flags[0]) };
        char *first[COUNT];
        unsigned int bare, ours;

        for (int i = 0; i < COUNT; i++) {
                void *host;

                cr_assert_eq(sp_driver.cuMemHostAlloc(&host, 8, flags[i]), CUDA_SUCCESS);
                cr_assert_eq(sp_driver.cuMemHostGetFlags(&bare, host), CUDA_SUCCESS);
                first[i] = alloc(8, flags[i]);
                cr_assert(is_pooled(first[i]));
                alloc(8, flags[i]);
                cr_assert_eq(sp_on_cuMemHostGetFlags(&ours, first[i] + 4), CUDA_SUCCESS);
                cr_expect_eq(ours, bare, "%#x", flags[i]);
                cr_expect_eq(sim_calls("cuMemHostAlloc"), 2 * (unsigned int)i + 2);
        }
        for (int i = 0; i < COUNT; i++)
                give(first[i]);
        synchronise();
        for (int i = 0; i < COUNT; i++)
                cr_expect_eq(alloc(8, flags[i]), first[i], "%#x", flags[i]);
}

Test(pinned, comes_from_both_functions_alike, .init = start)
{
        void *first, *second;

        cr_assert_eq(sp_on_cuMemAllocHost_v2(&first, 100), CUDA_SUCCESS);
        give(first);
        synchronise();
        second = alloc(100, 0);
        cr_expect_eq(second, first);
        cr_expect_eq(sim_calls("cuMemAllocHost_v2"), 0);
}

Test(pinned, is_the_drivers_where_we_know_less, .init = start)
{
        void *host = NULL;

        cr_expect_eq(sp_on_cuMemHostAlloc(&host, 8, 0x80), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sim_calls("cuMemHostAlloc"), 1);
        cr_expect_eq(sp_on_cuMemHostAlloc(NULL, 8, 0), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_on_cuMemHostAlloc(&host, 0, 0), CUDA_SUCCESS);
        cr_expect_null(host);
        cr_expect_eq(sp_on_cuMemAllocHost_v2(&host, 0), CUDA_SUCCESS);
        cr_expect_not(is_pooled(alloc(65 * MIB, 0)), "it could not be kept");
        cr_assert_eq(cuCtxSetCurrent(NULL), CUDA_SUCCESS);
        cr_expect_eq(sp_on_cuMemHostAlloc(&host, 8, 0), CUDA_ERROR_INVALID_CONTEXT);
        cr_expect_eq(sp_on_cuMemFreeHost(NULL), CUDA_SUCCESS);
}

Test(pinned, begins_where_the_driver_would_let_it, .init = start)
{
        static const size_t sizes[] = {1,     511,        513,     4095,   4096,
                                       70000, 1000 * KIB, MIB + 1, 3 * MIB};

        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                size_t align = sizes[i] < 4096 ? 512 : 4096;

                for (int times = 0; times < 3; times++)
                        cr_expect_eq((uintptr_t)alloc(sizes[i], 0) % align, 0, "%zu", sizes[i]);
        }
}

/* how much */

Test(pinned, has_a_chunk_of_its_own_when_large, .init = start)
{
        char *large = alloc(8 * MIB, 0), *small;

        cr_assert(is_pooled(large));
        give(large);
        synchronise();
        small = alloc(8, 0);
        cr_expect(small < large || small >= large + 8 * MIB, "it would keep the large one");
        cr_expect_eq(sim_calls("cuMemHostAlloc"), 2);
        cr_expect_eq(alloc(8 * MIB, 0), large);
        cr_expect_eq(sim_calls("cuMemHostAlloc"), 2);
}

static size_t reserved(void)
{
        struct sp_context *owner = sp_context_current();
        unsigned int index = 0;
        struct spm_stats stats;
        size_t sum = 0;
        spm_pool pool;

        while ((pool = sp_pinned_each(owner, &index))) {
                spm_stats(sp_model_enter(), pool, &stats);
                sp_model_leave();
                sum += stats.reserved_current;
        }
        return sum;
}

Test(pinned, is_not_hoarded, .init = start)
{
        enum { BLOCKS = 6 };
        char *blocks[BLOCKS];

        for (int i = 0; i < BLOCKS; i++)
                blocks[i] = alloc(40 * MIB, 0);
        copy_from(blocks[0], 8, stream);
        give(blocks[0]);
        cr_expect_gt(sim_pending(), 0, "so much may lie idle");
        for (int i = 1; i < BLOCKS; i++)
                give(blocks[i]);
        cr_expect_eq(sim_pending(), 0, "the free waited as the driver's would");
        cr_expect_leq(reserved(), 120 * MIB, "%zu MiB", reserved() / MIB);
        synchronise();
        cr_expect_leq(reserved(), (64 + 40) * MIB, "%zu MiB", reserved() / MIB);
}

Test(pinned, is_not_hoarded_in_small_pieces, .init = start)
{
        enum { BLOCKS = 600 };
        char *blocks[BLOCKS];

        for (int i = 0; i < BLOCKS; i++)
                blocks[i] = alloc(512 * KIB, 0);
        for (int i = 0; i < BLOCKS; i++)
                give(blocks[i]);
        cr_expect_leq(reserved(), 170 * MIB, "%zu MiB", reserved() / MIB);
}

static void start_keeping_nothing(void)
{
        setenv("STREAMPOOL_KEEP", "0", 1);
        start();
}

Test(pinned, goes_back_when_the_context_is_synchronised, .init = start_keeping_nothing)
{
        give(alloc(8, 0));
        cr_expect_eq(sim_calls("cuMemFreeHost"), 0);
        synchronise();
        cr_expect_eq(sim_calls("cuMemFreeHost"), 1);
        cr_expect_eq(reserved(), 0);
}

Test(pinned, goes_back_when_the_host_is_short_of_it, .init = start)
{
        void *host;

        give(alloc(MIB, 0));
        give(alloc(MIB, CU_MEMHOSTALLOC_WRITECOMBINED));
        cr_assert_eq(reserved(), 4 * MIB);
        sim_fail("cuMemHostAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect_eq(sp_on_cuMemHostAlloc(&host, 65 * MIB, 0), CUDA_SUCCESS);
        cr_expect_eq(reserved(), 0);
        cr_expect_eq(sp_counter_sum(SP_COUNTER_reliefs), 1);
        sim_fail("cuMemHostAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect_eq(sp_on_cuMemHostAlloc(&host, 65 * MIB, 0), CUDA_ERROR_OUT_OF_MEMORY);
}

Test(pinned, makes_do_with_less_than_a_chunk, .init = start)
{
        sim_fail("cuMemHostAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect(is_pooled(alloc(8, 0)));
        cr_expect_lt(reserved(), 2 * MIB);
}
