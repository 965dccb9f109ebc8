/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Unmapped -- memory that the program maps itself, used when it has unmapped it
 *
 * The driver may have it mapped still (track/vmm.h), and would do what it is asked.
 */

#include <stdlib.h>

#include "route/uses.h"

#include "tests/shim/begin.h"
#include "tests/shim/findings.h"

#define SIZE ((size_t)2 << 20)

struct range {
        CUdeviceptr base;
        CUmemGenericAllocationHandle memory;
};

static struct range make(void)
{
        CUmemAllocationProp properties = {
                .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
        };
        struct range range;

        cr_assert_eq(sp_on_cuMemCreate(&range.memory, SIZE, &properties, 0), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemAddressReserve(&range.base, SIZE, 0, 0, 0), CUDA_SUCCESS);
        return range;
}

static void map(struct range range)
{
        CUmemAccessDesc access = {
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };

        cr_assert_eq(sp_on_cuMemMap(range.base, SIZE, 0, range.memory, 0), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemSetAccess(range.base, SIZE, &access, 1), CUDA_SUCCESS);
}

static void unmap(struct range range)
{
        cr_assert_eq(sp_on_cuMemUnmap(range.base, SIZE), CUDA_SUCCESS);
}

static void give(struct range range)
{
        cr_assert_eq(sp_on_cuMemRelease(range.memory), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemAddressFree(range.base, SIZE), CUDA_SUCCESS);
}

static void set(CUdeviceptr address)
{
        sp_use_row("cuMemsetD8", SP_SIDE_DEVICE, true, address, 4);
}

static void check(void)
{
        struct range range = make();

        map(range);
        set(range.base);
        cr_expect_eq(findings(), 0, "it is mapped");
        unmap(range);
        map(range);
        set(range.base + SIZE / 2);
        cr_expect_eq(findings(), 0, "it is mapped again");
        unmap(range);
        set(range.base + SIZE / 2);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].kind, SP_FINDING_USE_AFTER_FREE);
        cr_assert(found[0].has_block);
        cr_expect_eq(found[0].block.address, range.base);
        cr_expect_eq(found[0].block.kind, SP_KIND_MAPPED);
        cr_expect_str_eq(found[0].freed_by, "cuMemUnmap");
        set(range.base + SIZE);
        cr_expect_eq(findings(), 1, "nothing was there");
        give(range);
        sp_caller = &range;
        sp_use_row("cuMemcpy", SP_SIDE_UNIFIED, true, range.base - 64, 4);
        cr_expect_eq(findings(), 1);
}

Test(unmapped, memory_that_is_kept_is_used_too_late)
{
        begin_on(0);
        check();
}

Test(unmapped, so_is_what_the_driver_has_unmapped)
{
        setenv("STREAMPOOL_MODE", "observe", 1);
        begin_on(0);
        check();
}

/* Another range lies over the place. */
Test(unmapped, what_is_mapped_there_since_is_meant)
{
        struct range range, other;

        setenv("STREAMPOOL_VMM", "pass", 1);
        begin_on(0);
        range = make();
        other = make();
        map(range);
        unmap(range);
        cr_assert_eq(sp_on_cuMemMap(range.base, SIZE, 0, other.memory, 0), CUDA_SUCCESS);
        set(range.base);
        cr_expect_eq(findings(), 0);
}
