/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Memory pools -- is a plain pool's memory ours, and everything else the driver's?
 */

#include <pthread.h>

#include "report/counters.h"
#include "report/figures.h"
#include "route/perform.h"
#include "tests/shim/pooling.h"

TestSuite(mempool, .init = begin_pooling);

Test(mempool, of_the_program_is_served_by_us)
{
        CUmemoryPool pool = plain();
        CUdeviceptr pointer = alloc_from(pool, 5000);

        cr_expect_not(is_drivers(pool));
        cr_expect_eq(told(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 5000);
        cr_expect_geq(told(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 5000);
        cr_expect_eq(told(default_of(0), CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
        give_back(pointer);
        cr_expect_eq(told(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
        cr_expect_eq(told(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 5000);
        cr_expect_eq(served_by_pools(), 1);
        cr_expect_eq(freed_to_pools(), 1);
}

Test(mempool, of_another_kind_is_served_by_the_driver)
{
        CUmemPoolProps props[] = {
                {.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR},
#if CUDA_VERSION >= 12020
                {.maxSize = 64 * MIB},
#endif
                {.reserved = {[3] = 1}},
        };

        for (unsigned int i = 0; i < sizeof(props) / sizeof(props[0]); i++) {
                CUmemoryPool pool = make(props[i]);
                CUdeviceptr pointer = alloc_from(pool, 5000);

                cr_expect(is_drivers(pool), "row %u", i);
                cr_expect_eq(told(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 5000, "row %u", i);
                give_back(pointer);
                cr_expect_eq(sp_on_cuMemPoolDestroy(pool), CUDA_SUCCESS);
        }
        cr_expect_eq(served_by_pools(), 0);
}

Test(mempool, that_is_current_serves)
{
        CUmemoryPool pool = plain();

        cr_assert_eq(sp_on_cuDeviceSetMemPool(0, pool), CUDA_SUCCESS);
        alloc(5000);
        cr_expect_eq(told(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 5000);
        cr_expect_not(is_drivers(pool));
        cr_assert_eq(sp_on_cuDeviceSetMemPool(0, default_of(0)), CUDA_SUCCESS);
        alloc(600);
        cr_expect_eq(told(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 5000);
        cr_expect_eq(told(default_of(0), CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 600);
}

#if CUDA_VERSION >= 13000
Test(mempool, can_be_made_current_in_two_ways)
{
        CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
        CUmemoryPool pool = plain();

        cr_assert_eq(sp_on_cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, pool),
                     CUDA_SUCCESS);
        alloc(5000);
        cr_expect_eq(told(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 5000);
}
#endif

/* Before anything was asked about the device. */
Test(mempool_early, that_is_current_already_serves)
{
        CUmemoryPool pool;

        begin_on(0);
        pool = plain();
        cr_assert_eq(sp_on_cuDeviceSetMemPool(0, pool), CUDA_SUCCESS);
        cr_assert_null(sp_device_each(NULL));
        cr_assert_eq(sp_on_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        alloc(5000);
        cr_expect_not(is_drivers(pool));
        cr_expect_eq(told(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 5000);
}

Test(mempool, of_another_device_than_the_streams_is_the_drivers)
{
        CUmemPoolProps props = {.location.id = 1};
        CUmemoryPool pool = make(props);

        alloc_from(pool, 5000);
        cr_expect(is_drivers(pool));
}

static void begin_capture(CUstream captured)
{
        cr_assert_eq(sp_on_cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_RELAXED),
                     CUDA_SUCCESS);
}

/* What the driver had to serve counts, and its frees go back to it. */
Test(mempool, is_the_sum_of_ours_and_the_drivers)
{
        CUmemoryPool pool = plain();
        CUdeviceptr ours, theirs;
        CUstream captured;
        CUgraph graph;

        set(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, UINT64_MAX);
        cr_assert_eq(sp_on_cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        ours = alloc_from(pool, 64 * MIB);
        begin_capture(captured);
        theirs = alloc_from(pool, 32 * MIB);
        cr_assert_eq(sp_on_cuStreamEndCapture(captured, &graph), CUDA_SUCCESS);
        cr_expect_eq(drivers(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 32 * MIB);
        cr_expect_eq(told(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 96 * MIB);
        cr_expect_geq(told(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 96 * MIB);
        give_back(ours);
        give_back(theirs);
        synchronise();
        cr_expect_eq(told(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);

        cr_expect_eq(sp_on_cuMemPoolTrimTo(pool, 48 * MIB), CUDA_SUCCESS);
        cr_expect_geq(told(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 48 * MIB);
        cr_expect_lt(told(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 48 * MIB + 32 * MIB,
                     "the driver's part is kept twice");
        cr_expect_eq(sp_on_cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
        cr_expect_eq(told(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
}

Test(mempool, is_what_a_block_says_it_is_from)
{
        CUmemoryPool pool = plain(), said = NULL;
        CUdeviceptr pointer = alloc_from(pool, 5000);

        cr_assert_eq(sp_on_cuPointerGetAttribute(&said, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
                                                 pointer + 4999),
                     CUDA_SUCCESS);
        cr_expect_eq(said, pool);
        cr_assert_eq(sp_on_cuPointerGetAttribute(&said, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
                                                 alloc(5000)),
                     CUDA_SUCCESS);
        cr_expect_eq(said, default_of(0));
        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, 5000), CUDA_SUCCESS);
        cr_assert_eq(
                sp_on_cuPointerGetAttribute(&said, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pointer),
                CUDA_SUCCESS);
        cr_expect_null(said);
}

Test(mempool, is_seen_by_the_report_and_by_those_who_are_short_of_memory)
{
        CUmemoryPool pool = plain();
        struct sp_figures figures = {0};
        size_t free_bytes, total;

        give_back(alloc_from(pool, 64 * MIB));
        synchronise();
        cr_assert_geq(told(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 64 * MIB);
        sp_route_figures(&figures);
        cr_assert_eq(figures.pools, 1);
        cr_expect_eq(figures.pool[0].class, SP_CLASS_ASYNC);
        cr_expect_eq(figures.pool[0].requested_high, 64 * MIB);
        cr_expect_eq(sp_on_cuMemGetInfo_v2(&free_bytes, &total), CUDA_SUCCESS);
        cr_expect_eq(free_bytes, total, "what is idle counts as free");
        cr_expect(sp_relieve());
        cr_expect_eq(told(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
}

/* Each has addresses for itself, of which there is an end. */
Test(mempool, that_is_one_too_many_is_the_drivers)
{
        CUmemoryPool pool[SP_MEMPOOLS_MAX];
        CUdeviceptr pointer[SP_MEMPOOLS_MAX];
        spm_pool models[SP_MEMPOOLS_MAX];

        for (int i = 0; i < SP_MEMPOOLS_MAX; i++) {
                pool[i] = plain();
                pointer[i] = alloc_from(pool[i], 5000);
                cr_expect_eq(is_drivers(pool[i]), i == SP_MEMPOOLS_MAX - 1, "%d", i);
        }
        cr_expect_eq(sp_mempools_on(sp_device_of_ordinal(0), models), SP_MEMPOOLS_MAX);
        for (int i = 0; i < SP_MEMPOOLS_MAX - 1; i++) {
                give_back(pointer[i]);
                cr_assert_eq(sp_on_cuMemPoolDestroy(pool[i]), CUDA_SUCCESS);
        }
        synchronise();
        alloc_from(pool[SP_MEMPOOLS_MAX - 1], 600);
        cr_expect_eq(drivers(pool[SP_MEMPOOLS_MAX - 1], CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 5000,
                     "there is room again");
}

static CUmemoryPool fresh;
static pthread_barrier_t barrier;

static void *allocate_at_once(void *argument)
{
        CUdeviceptr *pointer = argument;

        pthread_barrier_wait(&barrier);
        *pointer = alloc_from(fresh, 5000);
        return NULL;
}

/* One makes its memory, and the others have to wait for that. */
Test(mempool, that_is_new_to_many_threads_is_ours_for_all_of_them)
{
        enum { THREADS = 4, ROUNDS = 50 };

        pthread_barrier_init(&barrier, NULL, THREADS);
        for (int round = 0; round < ROUNDS; round++) {
                CUdeviceptr pointers[THREADS];
                pthread_t threads[THREADS];

                fresh = plain();
                for (int i = 0; i < THREADS; i++)
                        cr_assert_eq(
                                pthread_create(&threads[i], NULL, allocate_at_once, &pointers[i]),
                                0);
                for (int i = 0; i < THREADS; i++)
                        pthread_join(threads[i], NULL);
                cr_expect_not(is_drivers(fresh), "round %d", round);
                cr_expect_eq(told(fresh, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 5000 * THREADS);
                for (int i = 0; i < THREADS; i++)
                        give_back(pointers[i]);
                destroy(fresh);
                synchronise();
        }
}
