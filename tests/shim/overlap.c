/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Overlap -- a copy that writes where it reads
 *
 * The figures against a map of all bytes; then on the simulated driver.
 */

#include "tests/shim/using.h"

/* figures */

#define PLACES 200

static void mark(const struct sp_use *use, unsigned char bit, unsigned char *map)
{
        for (size_t z = 0; z < use->slices; z++)
                for (size_t y = 0; y < use->rows; y++)
                        for (size_t x = 0; x < use->width; x++)
                                map[use->address + z * use->slice + y * use->pitch + x] |= bit;
}

static void compare_with_map(const struct sp_use *one, const struct sp_use *other)
{
        unsigned char map[PLACES] = {0};
        uint64_t expected = 0;

        cr_assert(one->address + sp_use_span(one) <= PLACES &&
                  other->address + sp_use_span(other) <= PLACES);
        mark(one, 1, map);
        mark(other, 2, map);
        for (uint64_t i = PLACES; i-- > 0;)
                expected = map[i] == 3 ? i : expected;
        cr_assert_eq(sp_use_meet(one, other), expected,
                     "at %llu and %llu, pitches %zu and %zu, they meet at %llu, not at %llu",
                     (unsigned long long)one->address, (unsigned long long)other->address,
                     one->pitch, other->pitch, (unsigned long long)expected,
                     (unsigned long long)sp_use_meet(one, other));
}

Test(overlap_figures, rows_meet_where_a_map_says_so)
{
        for (size_t width = 1; width <= 3; width++)
                for (size_t pitch = width; pitch <= 7; pitch++)
                        for (size_t other_pitch = width; other_pitch <= 7; other_pitch++)
                                for (uint64_t at = 1; at <= 60; at++)
                                        compare_with_map(&(struct sp_use){.address = 20,
                                                                          .width = width,
                                                                          .pitch = pitch,
                                                                          .rows = 4,
                                                                          .slices = 1},
                                                         &(struct sp_use){.address = at,
                                                                          .width = width,
                                                                          .pitch = other_pitch,
                                                                          .rows = 4,
                                                                          .slices = 1});
}

Test(overlap_figures, slices_too)
{
        for (size_t height = 2; height <= 4; height++)
                for (uint64_t at = 1; at <= 100; at++)
                        compare_with_map(&(struct sp_use){.address = 40,
                                                          .width = 2,
                                                          .pitch = 5,
                                                          .rows = 2,
                                                          .slice = 5 * height,
                                                          .slices = 3},
                                         &(struct sp_use){.address = at,
                                                          .width = 2,
                                                          .pitch = 4,
                                                          .rows = 2,
                                                          .slice = 12,
                                                          .slices = 3});
}

Test(overlap_figures, what_touches_nothing_meets_nothing)
{
        struct sp_use row = {.address = 100, .width = 10, .rows = 1, .slices = 1};
        struct sp_use none = {.address = 100, .width = 0, .rows = 1, .slices = 1};

        cr_expect_eq(sp_use_meet(&row, &none), 0);
        cr_expect_eq(sp_use_meet(&none, &row), 0);
        cr_expect_eq(sp_use_meet(&row, &row), 100);
}

Test(overlap_figures, the_end_of_all_addresses_is_no_byte)
{
        struct sp_use last = {.address = UINT64_MAX - 9, .width = 9, .rows = 1, .slices = 1};
        struct sp_use all = {.address = 1, .width = UINT64_MAX - 20, .rows = 1, .slices = 1};
        struct sp_use more = {.address = UINT64_MAX - 4, .width = 100, .rows = 1, .slices = 1};

        cr_expect_eq(sp_use_meet(&last, &all), 0);
        cr_expect_eq(sp_use_meet(&last, &more), UINT64_MAX - 4);
}

/* Rows that lie between each other all the way cost a step each. */
Test(overlap_figures, of_very_many_rows_it_may_not_be_seen)
{
        struct sp_use rows = {
                .address = 100, .width = 1, .pitch = 2, .rows = (size_t)1 << 40, .slices = 1};
        struct sp_use between = rows;

        between.address = 101;
        cr_expect_eq(sp_use_meet(&rows, &between), 0);
}

/* looking */

TestSuite(overlap, .init = begin_using);

static void copy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
        sp_use_copy("cuMemcpyDtoD", SP_SIDE_DEVICE, to, SP_SIDE_DEVICE, from, bytes);
}

Test(overlap, one_byte_is_enough_in_either_direction)
{
        CUdeviceptr blocks[] = {pooled(1000), managed(1000)};

        for (size_t i = 0; i < 2; i++) {
                copy(blocks[i] + 500, blocks[i], 500);
                copy(blocks[i], blocks[i] + 500, 500);
                cr_expect_eq(findings(), i);
                sp_caller = &blocks[i];
                copy(blocks[i] + 499, blocks[i], 500);
                cr_assert_eq(findings(), i + 1);
                cr_expect_eq(found[i].kind, SP_FINDING_OVERLAP);
                cr_expect_eq(found[i].address, blocks[i] + 499);
                cr_expect_eq(found[i].source, blocks[i]);
                cr_expect_eq(found[i].shared, blocks[i] + 499);
                cr_expect_eq(found[i].touched, 500);
                cr_expect(found[i].is_write);
                cr_assert(found[i].has_block);
                cr_expect_eq(found[i].block.address, blocks[i]);
                copy(blocks[i], blocks[i] + 499, 500);
                cr_expect_eq(findings(), i + 1);
                cr_expect_eq(found[i].times, 2);
        }
}

/* Of ten rows, from @block to where they are. */
static CUDA_MEMCPY2D left_halves(CUdeviceptr block)
{
        return (CUDA_MEMCPY2D){
                .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                .srcDevice = block,
                .srcPitch = 100,
                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                .dstDevice = block,
                .dstPitch = 100,
                .WidthInBytes = 50,
                .Height = 10,
        };
}

Test(overlap, memory_that_is_copied_to_where_it_is_stays_what_it_was)
{
        CUdeviceptr block = pooled(1000);
        CUDA_MEMCPY2D rows = left_halves(block);

        copy(block, block, 1000);
        sp_use_2d("cuMemcpy2D", &rows);
        cr_expect_eq(findings(), 0);
        rows.dstPitch = 50;
        sp_use_2d("cuMemcpy2D", &rows);
        cr_expect_eq(findings(), 1, "rows that move together");
}

/* One half of each row to the other; then one column too far. */
Test(overlap, rows_that_lie_beside_each_other_do_not_touch)
{
        CUdeviceptr block = pooled(1000);
        CUDA_MEMCPY2D rows = left_halves(block);

        rows.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
        rows.dstXInBytes = 50;
        sp_use_2d("cuMemcpy2D", &rows);
        cr_expect_eq(findings(), 0);
        rows.dstXInBytes = 49;
        sp_use_2d("cuMemcpy2D", &rows);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].kind, SP_FINDING_OVERLAP);
        cr_expect_eq(found[0].shared, block + 49);
        cr_expect_eq(found[0].touched, 500);
}

Test(overlap, of_boxes_it_is_seen_and_of_arrays_nothing)
{
        CUdeviceptr block = pooled(4000);
        CUDA_MEMCPY3D box = {
                .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                .srcDevice = block,
                .srcPitch = 100,
                .srcHeight = 10,
                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                .dstDevice = block,
                .dstZ = 1,
                .dstPitch = 100,
                .dstHeight = 10,
                .WidthInBytes = 100,
                .Height = 10,
                .Depth = 2,
        };

        sp_use_3d("cuMemcpy3D", &box);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].shared, block + 1000);
        box.dstMemoryType = CU_MEMORYTYPE_ARRAY;
        sp_caller = &box;
        sp_use_3d("cuMemcpy3D", &box);
        box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        box.dstZ = 2;
        sp_use_3d("cuMemcpy3D", &box);
        cr_expect_eq(findings(), 1);
}

Test(overlap, each_copy_of_a_list_is_looked_at)
{
        CUdeviceptr block = pooled(1000);
        CUdeviceptr to[] = {block, block + 600}, from[] = {block + 100, block + 500};
        size_t sizes[] = {100, 101};

        sp_use_list("cuMemcpyBatchAsync", to, from, sizes, 2);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].address, block + 600);
        cr_expect_eq(found[0].shared, block + 600);
}

/* A page of the host's, where the runtime would say the same. */
Test(overlap, memory_of_the_hosts_has_no_block)
{
        static char own[100];

        sp_use_copy("cuMemcpy", SP_SIDE_UNIFIED, (uintptr_t)own + 1, SP_SIDE_UNIFIED,
                    (uintptr_t)own, 50);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].kind, SP_FINDING_OVERLAP);
        cr_expect_not(found[0].has_block);
        copy((uintptr_t)own + 1, (uintptr_t)own, 50);
        cr_expect_eq(findings(), 1, "the driver refuses a device address that is none");
}

Test(overlap, of_freed_memory_only_that_is_told)
{
        CUdeviceptr block = pooled(1000);

        cr_assert_eq(sp_on_cuMemFree_v2(block), CUDA_SUCCESS);
        copy(block + 1, block, 500);
        for (size_t i = 0; i < findings(); i++)
                cr_expect_eq(found[i].kind, SP_FINDING_USE_AFTER_FREE);
}

Test(overlap, nothing_is_said_while_a_stream_captures)
{
        CUdeviceptr block = pooled(1000);

        atomic_fetch_add(&sp_captures, 1);
        copy(block + 1, block, 500);
        cr_expect_eq(findings(), 0);
        atomic_fetch_sub(&sp_captures, 1);
        copy(block + 1, block, 500);
        cr_expect_eq(findings(), 1);
}
