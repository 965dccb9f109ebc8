/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is set on memory pools -- by the program and by STREAMPOOL_POOL_*: does the pool behind
 * know?
 */

#include <stdlib.h>

#include "tests/shim/pooling.h"
#include "track/mempool_set.h"

#define FOLLOW        CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES
#define OPPORTUNISTIC CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC
#define INTERNAL      CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES
#define THRESHOLD     CU_MEMPOOL_ATTR_RELEASE_THRESHOLD

TestSuite(mempool_set, .init = begin_pooling);

/* Both pools and the program agree. */
static void expect(CUmemoryPool pool, CUmemPool_attribute attribute, uint64_t value)
{
        cr_expect_eq(drivers(pool, attribute), value, "the driver's %d", (int)attribute);
        cr_expect_eq(told(pool, attribute), value, "the program's %d", (int)attribute);
        cr_expect_eq(models(pool, attribute), value, "the model's %d", (int)attribute);
}

/* the program */

Test(mempool_set, before_and_after_the_first_allocation)
{
        CUmemoryPool pool = plain();

        set(pool, FOLLOW, 0);
        set(pool, THRESHOLD, 3 * MIB);
        alloc_from(pool, 5000);
        expect(pool, FOLLOW, 0);
        expect(pool, OPPORTUNISTIC, 1);
        expect(pool, INTERNAL, 1);
        expect(pool, THRESHOLD, 3 * MIB);
        set(pool, OPPORTUNISTIC, 0);
        set(pool, FOLLOW, 1);
        set(pool, THRESHOLD, UINT64_MAX);
        expect(pool, FOLLOW, 1);
        expect(pool, OPPORTUNISTIC, 0);
        expect(pool, THRESHOLD, UINT64_MAX);
}

Test(mempool_set, on_the_default_pool)
{
        CUmemoryPool pool = default_of(0);

        set(pool, INTERNAL, 0);
        set(pool, THRESHOLD, 3 * MIB);
        expect(pool, INTERNAL, 0);
        expect(pool, THRESHOLD, 3 * MIB);
}

/* The runtime library sets attributes before anything is done on the device. */
Test(mempool_set_early, on_the_default_pool_of_an_unknown_device)
{
        CUmemoryPool pool;

        begin_on(0);
        pool = default_of(0);
        set(pool, INTERNAL, 0);
        set(pool, THRESHOLD, 3 * MIB);
        cr_assert_null(sp_device_each(NULL), "it is not unknown");
        cr_assert_eq(sp_on_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        alloc(5000);
        expect(pool, INTERNAL, 0);
        expect(pool, OPPORTUNISTIC, 1);
        expect(pool, THRESHOLD, 3 * MIB);
}

Test(mempool_set, with_an_error_changes_nothing)
{
        CUmemoryPool pool = plain();
        uint64_t five = 5;

        alloc_from(pool, 5000);
        give_back(alloc_from(pool, 600));
        for (int i = CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT; i <= CU_MEMPOOL_ATTR_USED_MEM_HIGH; i++)
                cr_expect_eq(sp_on_cuMemPoolSetAttribute(pool, (CUmemPool_attribute)i, &five),
                             CUDA_ERROR_INVALID_VALUE, "%d", i);
        cr_expect_eq(sp_on_cuMemPoolSetAttribute(pool, THRESHOLD, NULL), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(told(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 5600);
        set(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0);
        cr_expect_eq(told(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 5000);
}

/* A pool of which nobody has set a threshold keeps what STREAMPOOL_KEEP says; one of which somebody
 * has, though it be the same, does as the driver would. */
Test(mempool_set, a_threshold_of_0_gives_everything_back)
{
        CUmemoryPool pool = plain();
        CUdeviceptr p = alloc_from(pool, 128 * MIB);

        give_back(p);
        synchronise();
        cr_expect_geq(told(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 128 * MIB);
        set(pool, THRESHOLD, 0);
        cr_assert_eq(alloc_from(pool, 128 * MIB), p);
        give_back(p);
        synchronise();
        cr_expect_eq(told(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0, "all of it, at once");
}

/* the options */

static void option(const char *name, const char *value)
{
        setenv(name, value, 1);
}

static void all_options(void)
{
        option("STREAMPOOL_POOL_THRESHOLD", "5M");
        option("STREAMPOOL_POOL_FOLLOW", "0");
        option("STREAMPOOL_POOL_OPPORTUNISTIC", "0");
        option("STREAMPOOL_POOL_INTERNAL", "no");
}

static void expect_options(CUmemoryPool pool)
{
        expect(pool, FOLLOW, 0);
        expect(pool, OPPORTUNISTIC, 0);
        expect(pool, INTERNAL, 0);
        expect(pool, THRESHOLD, 5 * MIB);
}

Test(mempool_options, say_what_pools_begin_with)
{
        CUmemoryPool pool;

        all_options();
        begin_pooling();
        pool = plain();
        cr_expect_eq(told(pool, THRESHOLD), 5 * MIB, "before the first allocation");
        alloc_from(pool, 5000);
        expect_options(pool);
        expect_options(default_of(0));
        give_back(alloc_from(pool, 128 * MIB));
        synchronise();
        cr_expect_lt(told(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), (5 + 32) * MIB);
        cr_expect_geq(told(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 5 * MIB);
}

Test(mempool_options, leave_other_pools_alone)
{
        CUmemPoolProps special = {.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};

        all_options();
        begin_pooling();
        cr_expect_eq(drivers(make(special), THRESHOLD), 0);
}

Test(mempool_options, that_say_nothing_set_nothing)
{
        CUmemoryPool pool;

        option("STREAMPOOL_POOL_THRESHOLD", "");
        option("STREAMPOOL_POOL_FOLLOW", "1");
        begin_pooling();
        pool = plain();
        alloc_from(pool, 5000);
        expect(pool, OPPORTUNISTIC, 1);
        expect(pool, THRESHOLD, 0);
        cr_expect_eq(sim_calls("cuMemPoolSetAttribute"), 2, "one for each of two pools");
        give_back(alloc_from(pool, 128 * MIB));
        synchronise();
        cr_expect_geq(told(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 128 * MIB);
}

Test(mempool_options, may_be_a_share_of_the_memory)
{
        CUmemoryPool pool;
        size_t total;

        option("STREAMPOOL_POOL_THRESHOLD", "25%");
        begin_pooling();
        cr_assert_eq(sp_driver.cuDeviceTotalMem_v2(&total, 0), CUDA_SUCCESS);
        pool = plain();
        alloc_from(pool, 5000);
        expect(pool, THRESHOLD, total / 4);
}

Test(mempool_options, give_way_to_the_program)
{
        CUmemoryPool pool;

        all_options();
        begin_pooling();
        pool = plain();
        set(pool, FOLLOW, 1);
        set(pool, THRESHOLD, 7 * MIB);
        alloc_from(pool, 5000);
        expect(pool, FOLLOW, 1);
        expect(pool, THRESHOLD, 7 * MIB);
        set(default_of(0), THRESHOLD, 7 * MIB);
        expect(default_of(0), THRESHOLD, 7 * MIB);
}

/* Also to what it said before the device was used. */
Test(mempool_options, give_way_to_an_early_program)
{
        CUmemoryPool pool;

        all_options();
        begin_on(0);
        pool = default_of(0);
        set(pool, THRESHOLD, 0);
        cr_assert_null(sp_device_each(NULL));
        cr_assert_eq(sp_on_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        alloc(5000);
        expect(pool, THRESHOLD, 0);
        expect(pool, FOLLOW, 0);
}

Test(mempool_options, are_in_force_when_the_program_looks)
{
        all_options();
        begin_on(0);
        cr_expect_eq(told(default_of(0), THRESHOLD), 5 * MIB);
        cr_expect_eq(told(default_of(1), FOLLOW), 0);
        cr_assert_null(sp_device_each(NULL));
}

Test(mempool_options, stay_if_they_are_to)
{
        CUmemoryPool pool;
        uint64_t five = 5;

        all_options();
        unsetenv("STREAMPOOL_POOL_INTERNAL");
        option("STREAMPOOL_POOL_FORCE", "1");
        begin_pooling();
        pool = plain();
        set(pool, FOLLOW, 1);
        set(pool, INTERNAL, 0);
        alloc_from(pool, 5000);
        set(pool, THRESHOLD, 7 * MIB);
        set(default_of(0), OPPORTUNISTIC, 1);
        expect_options(pool);
        expect(default_of(0), OPPORTUNISTIC, 0);
        set(pool, INTERNAL, 1);
        expect(pool, INTERNAL, 1); /* of which no option says anything */
        cr_expect_eq(sp_on_cuMemPoolSetAttribute(pool, THRESHOLD, NULL), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_on_cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &five),
                     CUDA_ERROR_INVALID_VALUE);
}

/* A report without a pool has the driver's pools set all the same. */
Test(mempool_options, hold_while_observing)
{
        CUmemoryPool pool;

        all_options();
        option("STREAMPOOL_MODE", "observe");
        begin_pooling();
        pool = plain();
        alloc_from(pool, 5000);
        alloc(5000);
        cr_expect(is_drivers(pool) && is_drivers(default_of(0)));
        cr_expect_eq(told(pool, THRESHOLD), 5 * MIB);
        cr_expect_eq(told(default_of(0), FOLLOW), 0);
}

/* access */

static void allow(CUmemoryPool pool, int peer, CUmemAccess_flags flags)
{
        CUmemAccessDesc access = {
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = peer},
                .flags = flags,
        };

        cr_assert_eq(sp_on_cuMemPoolSetAccess(pool, &access, 1), CUDA_SUCCESS);
}

static unsigned long long rights(CUdeviceptr pointer, int peer)
{
        CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = peer};
        unsigned long long flags = 99;

        cr_assert_eq(sp_driver.cuMemGetAccess(&flags, &location, pointer), CUDA_SUCCESS);
        return flags;
}

/* Nothing was ever done on the other device. */
Test(mempool_set, access_for_what_is_there_and_what_is_to_come)
{
        CUmemoryPool pool = plain();
        CUdeviceptr before = alloc_from(pool, 48 * MIB), after;

        allow(pool, 1, CU_MEM_ACCESS_FLAGS_PROT_READ);
        after = alloc_from(pool, 48 * MIB);
        cr_expect_eq(rights(before, 1), CU_MEM_ACCESS_FLAGS_PROT_READ);
        cr_expect_eq(rights(after, 1), CU_MEM_ACCESS_FLAGS_PROT_READ);
        cr_expect_eq(rights(alloc(48 * MIB), 1), CU_MEM_ACCESS_FLAGS_PROT_NONE, "another pool's");
        allow(pool, 1, CU_MEM_ACCESS_FLAGS_PROT_NONE);
        cr_expect_eq(rights(after, 1), CU_MEM_ACCESS_FLAGS_PROT_NONE);
        cr_expect_eq(rights(alloc_from(pool, 48 * MIB), 1), CU_MEM_ACCESS_FLAGS_PROT_NONE);
}

Test(mempool_set, access_before_the_first_allocation)
{
        CUmemoryPool pool = plain();

        allow(pool, 1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        cr_expect_eq(rights(alloc_from(pool, 48 * MIB), 1), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        cr_expect_not(is_drivers(pool));
}

Test(mempool_set_early, access_to_the_default_pool_of_an_unknown_device)
{
        begin_on(0);
        allow(default_of(0), 1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        cr_assert_null(sp_device_each(NULL), "it is not unknown");
        cr_assert_eq(sp_on_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_expect_eq(rights(alloc(48 * MIB), 1), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        cr_expect_not(is_drivers(default_of(0)));
}

/* The driver's own pool can be reached, and ours cannot. */
Test(mempool_set, access_that_we_cannot_give_makes_it_the_drivers)
{
        CUmemoryPool pool = plain();
        CUdeviceptr p = alloc_from(pool, 5000);

        alloc(5000);
        sim_fail("cuMemSetAccess", 1, CUDA_ERROR_INVALID_DEVICE);
        allow(pool, 1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        alloc_from(pool, 600);
        cr_expect_eq(drivers(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 600);
        cr_expect_eq(told(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 5600);
        give_back(p);
        cr_expect_eq(told(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 600);

        sim_fail("cuMemSetAccess", 1, CUDA_ERROR_INVALID_DEVICE);
        allow(default_of(0), 1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        alloc(600);
        cr_expect_eq(drivers(default_of(0), CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 600);
}

/* A setting of another thread's cannot be lost, whichever of the two the driver saw last. */
Test(mempool_set, the_model_has_what_the_driver_has)
{
        CUmemoryPool pool = plain();
        uint64_t bytes = 9 * MIB;

        alloc_from(pool, 5000);
        cr_assert_eq(sp_driver.cuMemPoolSetAttribute(pool, THRESHOLD, &bytes), CUDA_SUCCESS);
        sp_mempool_was_set(pool, THRESHOLD);
        expect(pool, THRESHOLD, 9 * MIB);
}
