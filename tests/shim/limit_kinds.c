/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Limit kinds -- what counts against a limit, for how much, and until when?
 *
 * In observe mode the driver serves everything, so that each kind meets the limit
 * by itself; in pool mode the pool does.
 */

#include "tests/shim/limiting.h"
#include "track/limit.h"

/* each meets a limit of 8 MiB of which 4 are taken */

static CUdeviceptr sync_address;
static CUresult plain(size_t size)
{
        return sp_on_cuMemAlloc_v2(&sync_address, size);
}

static CUresult pitched(size_t size)
{
        size_t pitch;

        return sp_on_cuMemAllocPitch_v2(&sync_address, &pitch, 100, size / 512, 4);
}

static CUresult managed(size_t size)
{
        return sp_on_cuMemAllocManaged(&sync_address, size, CU_MEM_ATTACH_GLOBAL);
}

static CUresult free_plain(void)
{
        return sp_on_cuMemFree_v2(sync_address);
}

static CUresult ordered(size_t size)
{
        return sp_on_cuMemAllocAsync(&sync_address, size, stream);
}

static CUresult from_pool(size_t size)
{
        static CUmemoryPool pool;
        CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};

        if (!pool)
                cr_assert_eq(cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
        return sp_on_cuMemAllocFromPoolAsync(&sync_address, size, pool, stream);
}

static CUresult free_ordered(void)
{
        return sp_on_cuMemFreeAsync(sync_address, stream);
}

static CUarray array;
static CUresult flat(size_t size)
{
        CUDA_ARRAY_DESCRIPTOR desc = {.Width = 1024,
                                      .Height = size / 4096,
                                      .Format = CU_AD_FORMAT_FLOAT,
                                      .NumChannels = 1};

        return sp_on_cuArrayCreate_v2(&array, &desc);
}

static CUDA_ARRAY3D_DESCRIPTOR deep_desc(size_t size)
{
        return (CUDA_ARRAY3D_DESCRIPTOR){.Width = 64,
                                         .Height = 16,
                                         .Depth = size / 4096,
                                         .Format = CU_AD_FORMAT_FLOAT,
                                         .NumChannels = 1};
}

static CUresult deep(size_t size)
{
        CUDA_ARRAY3D_DESCRIPTOR desc = deep_desc(size);

        return sp_on_cuArray3DCreate_v2(&array, &desc);
}

static CUresult free_array(void)
{
        return sp_on_cuArrayDestroy(array);
}

static CUmipmappedArray mipmap;
static CUresult levels(size_t size)
{
        CUDA_ARRAY3D_DESCRIPTOR desc = deep_desc(size);

        return sp_on_cuMipmappedArrayCreate(&mipmap, &desc, 1);
}

static CUresult free_levels(void)
{
        return sp_on_cuMipmappedArrayDestroy(mipmap);
}

static CUmemGenericAllocationHandle handle;
static CUresult physical(size_t size)
{
        CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};

        return sp_on_cuMemCreate(&handle, (size + 2 * MIB - 1) / (2 * MIB) * (2 * MIB), &prop, 0);
}

static CUresult free_physical(void)
{
        return sp_on_cuMemRelease(handle);
}

static const struct {
        const char *name;
        const char *symbol;
        CUresult (*make)(size_t size);
        CUresult (*unmake)(void);
        size_t more; /* than fits */
} kinds[] = {
        {"device", "cuMemAlloc_v2", plain, free_plain, 1},
        {"pitch", "cuMemAllocPitch_v2", pitched, free_plain, 512},
        {"managed", "cuMemAllocManaged", managed, free_plain, 1},
        {"async", "cuMemAllocAsync", ordered, free_ordered, 1},
        {"from a pool", "cuMemAllocFromPoolAsync", from_pool, free_ordered, 1},
        {"array", "cuArrayCreate_v2", flat, free_array, 4096},
        {"deep array", "cuArray3DCreate_v2", deep, free_array, 4096},
        {"mipmap", "cuMipmappedArrayCreate", levels, free_levels, 4096},
        {"physical", "cuMemCreate", physical, free_physical, 1},
};

Test(limit, counts_every_kind)
{
        start("observe", "8M", 0);
        alloc(4 * MIB);
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
                const char *name = kinds[i].name;
                uint64_t before = sim_calls(kinds[i].symbol);

                cr_expect_eq(kinds[i].make(4 * MIB + kinds[i].more), CUDA_ERROR_OUT_OF_MEMORY, "%s",
                             name);
                cr_expect_eq(sim_calls(kinds[i].symbol), before, "%s: the driver was asked", name);
                cr_expect_eq(sp_limit_counted(0), 4 * MIB, "%s refused: %zu", name,
                             sp_limit_counted(0));
                cr_expect_eq(kinds[i].make(4 * MIB), CUDA_SUCCESS, "%s", name);
                cr_expect_eq(sp_limit_counted(0), 8 * MIB, "%s: %zu", name, sp_limit_counted(0));
                expect_refusal(1);
                cr_expect_eq(kinds[i].unmake(), CUDA_SUCCESS, "%s", name);
                cr_expect_eq(sp_limit_counted(0), 4 * MIB, "%s freed: %zu", name,
                             sp_limit_counted(0));
        }
}

Test(limit, forgets_what_the_driver_refused)
{
        start("observe", "8M", 0);
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
                sim_fail(kinds[i].symbol, 1, CUDA_ERROR_OUT_OF_MEMORY);
                cr_expect_eq(kinds[i].make(2 * MIB), CUDA_ERROR_OUT_OF_MEMORY, "%s", kinds[i].name);
                sim_fail(kinds[i].symbol, 1, CUDA_ERROR_UNKNOWN);
                cr_expect_eq(kinds[i].make(2 * MIB), CUDA_ERROR_UNKNOWN, "%s", kinds[i].name);
                cr_expect_eq(sp_limit_counted(0), 0, "%s: %zu", kinds[i].name, sp_limit_counted(0));
        }
}

Test(limit, forgets_what_the_driver_refused_to_the_pool)
{
        start("pool", "8M", 0);
        sim_fail("cuMemCreate", 1, CUDA_ERROR_OUT_OF_MEMORY);
        sim_fail("cuMemMap", 2, CUDA_ERROR_UNKNOWN);
        give(alloc(2 * MIB));
        alloc(8 * MIB);
        cr_expect_eq(sp_limit_counted(0), 8 * MIB);
        cr_expect_eq(used(), 8 * MIB);
}

Test(limit, counts_a_free_that_failed_as_none)
{
        CUdeviceptr pointer;

        start("observe", "8M", 0);
        pointer = alloc(8 * MIB);
        sim_fail("cuMemFree_v2", 1, CUDA_ERROR_UNKNOWN);
        cr_expect_eq(sp_on_cuMemFree_v2(pointer), CUDA_ERROR_UNKNOWN);
        expect_refusal(1);
        give(pointer);
        cr_expect_eq(sp_limit_counted(0), 0);
}

/* Physical memory counts while it has a handle or a mapping, and once. */
Test(limit, counts_physical_memory_for_as_long_as_it_is_there)
{
        CUdeviceptr range;
        CUmemGenericAllocationHandle again;

        start("observe", "8M", 0);
        cr_assert_eq(sp_driver.cuMemAddressReserve(&range, 8 * MIB, 0, 0, 0), CUDA_SUCCESS);
        cr_assert_eq(physical(8 * MIB), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemMap(range, 8 * MIB, 0, handle, 0), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemRelease(handle), CUDA_SUCCESS);
        cr_expect_eq(sp_limit_counted(0), 8 * MIB, "it is mapped");
        cr_assert_eq(sp_on_cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)range),
                     CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemUnmap(range, 8 * MIB), CUDA_SUCCESS);
        cr_expect_eq(sp_limit_counted(0), 8 * MIB, "it has a handle");
        cr_assert_eq(sp_on_cuMemRelease(again), CUDA_SUCCESS);
        cr_expect_eq(sp_limit_counted(0), 0);
        cr_assert_eq(physical(8 * MIB), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemMap(range, 8 * MIB, 0, handle, 0), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemRelease(handle), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemUnmap(range, 8 * MIB), CUDA_SUCCESS);
        cr_expect_eq(sp_limit_counted(0), 0, "the mapping was the last");
}

/* How long a row is the driver says when it has made it. */
static __typeof__(sp_driver.cuMemAllocPitch_v2) real_pitch;
static size_t row_wanted;
static CUresult CUDAAPI pitch_of(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
                                 unsigned int element)
{
        CUresult result = real_pitch(pointer, pitch, row_wanted, height, element);

        (void)width;
        return result;
}

Test(limit, follows_the_driver_in_the_length_of_rows)
{
        CUdeviceptr pointer, refused = 5;
        size_t pitch, refused_pitch = 7;

        start("observe", "8M", 0);
        real_pitch = sp_driver.cuMemAllocPitch_v2;
        sp_driver.cuMemAllocPitch_v2 = pitch_of;
        row_wanted = 1024;
        cr_assert_eq(sp_on_cuMemAllocPitch_v2(&pointer, &pitch, 512, 4096, 4), CUDA_SUCCESS);
        cr_expect_eq(sp_limit_counted(0), 4 * MIB);
        cr_expect_eq(sp_on_cuMemAllocPitch_v2(&refused, &refused_pitch, 512, 8192, 4),
                     CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect(refused == 5 && refused_pitch == 7, "written on success only");
        cr_expect_eq(sp_limit_counted(0), 4 * MIB);
        cr_expect_eq(used(), 4 * MIB, "it was given back");
        row_wanted = 512;
        cr_assert_eq(sp_on_cuMemAllocPitch_v2(&pointer, &pitch, 1024, 4096, 4), CUDA_SUCCESS);
        cr_expect_eq(sp_limit_counted(0), 6 * MIB);
}

Test(limit, forgets_what_ends_with_a_context)
{
        CUcontext context;

        start("pool", "64M", 0);
        cr_assert_eq(sp_on_cuMemAllocManaged(&sync_address, MIB, CU_MEM_ATTACH_GLOBAL),
                     CUDA_SUCCESS);
        cr_assert_eq(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
        alloc(32 * MIB);
        cr_assert_eq(flat(8 * MIB), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemAllocManaged(&sync_address, 4 * MIB, CU_MEM_ATTACH_GLOBAL),
                     CUDA_SUCCESS);
        cr_expect_geq(sp_limit_counted(0), 45 * MIB);
        cr_assert_eq(sp_on_cuCtxDestroy_v2(context), CUDA_SUCCESS);
        cr_expect_eq(sp_limit_counted(0), MIB);
}

Test(limit, does_not_count_memory_of_the_host)
{
        void *small, *large;

        start("pool", "8M", 0);
        cr_assert_eq(sp_on_cuMemHostAlloc(&small, 4096, 0), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemHostAlloc(&large, 16 * MIB, 0), CUDA_SUCCESS);
        cr_expect_eq(sp_limit_counted(0), 0);
        cr_assert_eq(sp_on_cuMemFreeHost(small), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemFreeHost(large), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
        cr_expect_eq(sp_limit_counted(0), 0);
        alloc(8 * MIB);
}

/* A handle of another device's memory is made with this one current. */
Test(limit, counts_where_the_memory_is)
{
        CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1}};

        start("pool", "8M", 0);
        cr_assert_eq(sp_on_cuMemCreate(&handle, 8 * MIB, &prop, 0), CUDA_SUCCESS);
        cr_expect_eq(sp_limit_counted(0), 0);
        cr_expect_eq(sp_limit_counted(1), 8 * MIB);
        cr_expect_eq(sp_on_cuMemCreate(&handle, 2 * MIB, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
        alloc(8 * MIB);
}

/* where pools are cut up: what they have no room for is the driver's, and counts as it asks */

static void lay_out(const char *layout, const char *limit)
{
        setenv("STREAMPOOL_LAYOUT", layout, 1);
        start("pool", limit, 0);
}

Test(limit, what_a_layout_has_no_room_for_is_the_drivers)
{
        lay_out("sliced:page=8M,slice=1M,cap=8M", "64M");
        for (int i = 0; i < 56; i++)
                alloc(MIB);
        expect_refusal(16 * MIB);
}

/* The pages that it began, and could not have all of, are given back for that. */
Test(limit, a_page_that_the_limit_has_no_room_for_holds_nothing)
{
        lay_out("sliced:page=32M,slice=1M,cap=256M", "30M");
        for (int i = 0; i < 30; i++)
                alloc(MIB);
        expect_refusal(MIB);
}
