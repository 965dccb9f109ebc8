/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The life of memory pools -- destroyed with blocks, and their handles given out again
 */

#include "report/counters.h"
#include "report/figures.h"
#include "tests/shim/pooling.h"
#include "track/backing.h"

TestSuite(mempool_life, .init = begin_pooling);

static size_t held(void)
{
        size_t free_bytes, total;

        cr_assert_eq(sp_driver.cuMemGetInfo_v2(&free_bytes, &total), CUDA_SUCCESS);
        return total - free_bytes;
}

Test(mempool_life, a_block_outlives_its_pool)
{
        CUmemoryPool pool = plain(), said = NULL;
        CUdeviceptr p = alloc_from(pool, 64 * MIB), q = alloc_from(pool, 64 * MIB);
        unsigned int word = 0;

        give_back(q);
        synchronise();
        destroy(pool);
        cr_expect_eq(cuMemsetD32_v2(p, 77, 16), CUDA_SUCCESS);
        cr_expect_eq(cuMemcpyDtoH_v2(&word, p, 4), CUDA_SUCCESS);
        cr_expect_eq(word, 77);
        cr_expect_eq(held(), 64 * MIB, "what is free goes at once");
        cr_expect_eq(sp_on_cuPointerGetAttribute(&said, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p),
                     CUDA_SUCCESS);
        cr_expect_eq(said, pool);

        give_back(p);
        cr_expect_eq(sp_on_cuMemFreeAsync(p, stream), CUDA_ERROR_INVALID_VALUE);
        synchronise();
        cr_expect_eq(held(), 0);
        cr_expect_eq(freed_to_pools(), 2);
}

/* The addresses are the driver's again once the last block is gone, and the record with them. */
Test(mempool_life, ends_with_its_last_block)
{
        CUmemoryPool pool = plain(), other;
        CUdeviceptr p = alloc_from(pool, 5000);
        spm_pool model = sp_mempool_model(pool);
        struct sp_mempool *record = sp_mempool_hold(model);
        uint64_t freed = sim_calls("cuMemAddressFree");

        cr_assert_not_null(record);
        sp_mempool_let_go(record);
        destroy(pool);
        cr_expect(sp_backing_reserves(p + 64 * MIB));
        cr_expect_eq(sim_calls("cuMemAddressFree"), freed);
        give_back(p);
        synchronise();
        cr_expect_eq(sim_calls("cuMemAddressFree"), freed + 1);
        cr_expect_not(sp_backing_reserves(p + 64 * MIB));
        other = plain();
        alloc_from(other, 5000);
        cr_expect_null(sp_mempool_hold(model), "whoever comes next clears up");
}

Test(mempool_life, a_held_record_stays)
{
        CUmemoryPool pool = plain();
        struct sp_mempool *record;
        spm_pool model;

        give_back(alloc_from(pool, 5000));
        synchronise();
        model = sp_mempool_model(pool);
        record = sp_mempool_hold(model);
        destroy(pool);
        cr_expect_eq(record->model, model);
        cr_expect_eq(sp_range_take(&record->range, record->range.base, 2 * MIB),
                     CUDA_ERROR_INVALID_CONTEXT, "nobody's range any more");
        sp_mempool_let_go(record);
        cr_expect_null(sp_mempool_hold(model));
}

/* The driver gives the handle of a destroyed pool out again. */
Test(mempool_life, a_handle_that_comes_back_is_a_new_pool)
{
        CUmemoryPool pool = plain(), again;
        CUdeviceptr p;
        spm_pool model;

        set(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 0);
        set(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, UINT64_MAX);
        p = alloc_from(pool, 5000);
        model = sp_mempool_model(pool);
        destroy(pool);
        cr_expect_eq(sp_mempool_model(pool), 0);

        again = plain();
        cr_assert_eq(again, pool, "the simulated driver gives the newest out first");
        cr_expect_eq(told(again, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
        alloc_from(again, 600);
        cr_expect_neq(sp_mempool_model(again), model);
        cr_expect_eq(told(again, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 600);
        cr_expect_eq(models(again, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC), 1);
        cr_expect_eq(models(again, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 0);
        give_back(p);
        cr_expect_eq(told(again, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 600);
}

Test(mempool_life, a_handle_can_come_back_as_one_of_the_drivers)
{
        CUmemPoolProps special = {.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
        CUmemoryPool pool = plain(), again;

        give_back(alloc_from(pool, 5000));
        synchronise();
        destroy(pool);
        again = make(special);
        cr_assert_eq(again, pool);
        alloc_from(again, 5000);
        cr_expect(is_drivers(again));
}

Test(mempool_life, goes_on_if_the_driver_does_not_destroy_it)
{
        CUmemoryPool pool = plain();

        alloc_from(pool, 5000);
        sim_fail("cuMemPoolDestroy", 1, CUDA_ERROR_UNKNOWN);
        cr_expect_eq(sp_on_cuMemPoolDestroy(pool), CUDA_ERROR_UNKNOWN);
        alloc_from(pool, 600);
        cr_expect_eq(told(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 5600);
        cr_expect_not(is_drivers(pool));
        destroy(pool);
}

Test(mempool_life, of_a_default_pool_has_no_end)
{
        CUdeviceptr p = alloc(5000);

        cr_expect_eq(sp_on_cuMemPoolDestroy(default_of(0)), CUDA_ERROR_INVALID_VALUE);
        alloc(600);
        cr_expect_eq(told(default_of(0), CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 5600);
        cr_expect_not(is_drivers(default_of(0)));
        give_back(p);
}

Test(mempool_life, of_the_current_pool_makes_the_default_one_current)
{
        CUmemoryPool pool = plain();

        cr_assert_eq(sp_on_cuDeviceSetMemPool(0, pool), CUDA_SUCCESS);
        alloc(5000);
        destroy(pool);
        alloc(600);
        cr_expect_eq(told(default_of(0), CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 600);
        cr_expect_not(is_drivers(default_of(0)));
}

/* Many, one after the other: nothing of them stays. */
Test(mempool_life, leaves_nothing_behind)
{
        size_t before = held();
        uint64_t reserved = sim_calls("cuMemAddressReserve"), freed = sim_calls("cuMemAddressFree");

        for (int i = 0; i < 200; i++) {
                CUmemoryPool pool = plain();

                give_back(alloc_from(pool, 3 * MIB));
                destroy(pool);
                synchronise();
        }
        cr_expect_eq(held(), before);
        cr_expect_eq(sim_calls("cuMemAddressReserve") - reserved, 200);
        cr_expect_eq(sim_calls("cuMemAddressFree") - freed, 200);
        cr_expect_eq(served_by_pools(), 200);
}

/* A pool is often destroyed before the report is written. */
Test(mempool_life, is_told_in_the_report)
{
        struct sp_figures figures = {0};

        for (int i = 0; i < 3; i++) {
                CUmemoryPool pool = plain();

                give_back(alloc_from(pool, (size_t)(1 + i) * MIB));
                give_back(alloc_from(pool, 4096));
                destroy(pool);
                synchronise();
        }
        alloc(600);
        sp_route_figures(&figures);
        cr_assert_eq(figures.pools, 2);
        cr_expect_eq(figures.pool[0].class, SP_CLASS_ASYNC);
        cr_expect_eq(figures.pool[0].allocs, 6);
        cr_expect_eq(figures.pool[0].frees, 6);
        cr_expect_eq(figures.pool[0].requested_high, 3 * MIB);
        cr_expect_geq(figures.pool[0].reserved_high, 3 * MIB);
        cr_expect_eq(figures.pool[0].reserved, 0);
        cr_expect_eq(figures.pool[1].requested, 600);

        sp_route_reset_peaks();
        figures = (struct sp_figures){0};
        sp_route_figures(&figures);
        cr_expect_eq(figures.pool[0].allocs, 6);
        cr_expect_eq(figures.pool[0].requested_high, 0);
}
