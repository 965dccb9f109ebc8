/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Uses -- what a copy touches, and whose memory that is
 *
 * The figures alone; then on the simulated driver, with blocks of the pools and of the driver.
 */

#include "tests/shim/using.h"

/* figures */

struct figures {
        size_t width, pitch, rows, slice, slices;
        uint64_t span;
        char why[48];
};

static const struct figures spans[] = {
        {10, 0, 1, 0, 1, 10, "a row"},
        {10, 16, 3, 0, 1, 42, "no gap behind the last row"},
        {10, 16, 3, 64, 2, 106, "nor behind the last slice"},
        {10, 10, 3, 30, 2, 60, "no gaps at all"},
        {0, 16, 3, 64, 2, 0, "no byte"},
        {10, 16, 0, 64, 2, 0, "no row"},
        {10, 16, 3, 64, 0, 0, "no slice"},
        {10, 9, 2, 0, 1, 0, "rows overlap"},
        {10, 9, 1, 0, 1, 10, "the pitch of one row is nobody's"},
        {10, 16, 3, 41, 2, 0, "slices overlap"},
        {10, 16, 3, 0, 1, 42, "the distance of one slice is nobody's"},
        {1, SIZE_MAX, 2, 0, 1, UINT64_MAX, "just as far as can be counted"},
        {2, SIZE_MAX, 2, 0, 1, UINT64_MAX, "one byte farther"},
        {1, SIZE_MAX / 2, 4, 0, 1, UINT64_MAX, "much farther"},
        {1, 1, 1, SIZE_MAX / 2, 4, UINT64_MAX, "by slices"},
};

Test(use_figures, a_span_ends_with_the_last_byte)
{
        for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
                const struct figures *row = &spans[i];
                struct sp_use use = {.width = row->width,
                                     .pitch = row->pitch,
                                     .rows = row->rows,
                                     .slice = row->slice,
                                     .slices = row->slices};

                cr_expect_eq(sp_use_span(&use), row->span, "%s: %llu", row->why,
                             (unsigned long long)sp_use_span(&use));
        }
}

/* Against a map of all bytes. */
static void compare_with_map(const struct sp_use *use)
{
        uint64_t span = sp_use_span(use), expected = 0;
        char touched[400] = {0};

        cr_assert(span && span <= sizeof(touched));
        for (size_t z = 0; z < use->slices; z++)
                for (size_t y = 0; y < use->rows; y++)
                        for (size_t x = 0; x < use->width; x++)
                                touched[z * use->slice + y * use->pitch + x] = 1;
        for (uint64_t offset = span; offset-- > 0;) {
                expected = touched[offset] ? offset : expected;
                cr_assert_eq(sp_use_next(use, offset), expected,
                             "%zu x %zu x %zu: from %llu on it is %llu, not %llu", use->width,
                             use->rows, use->slices, (unsigned long long)offset,
                             (unsigned long long)expected,
                             (unsigned long long)sp_use_next(use, offset));
        }
}

Test(use_figures, the_next_byte_is_the_next_that_is_touched)
{
        for (size_t width = 1; width <= 4; width++)
                for (size_t rows = 1; rows <= 4; rows++)
                        for (size_t slices = 1; slices <= 3; slices++)
                                for (size_t gap = 0; gap < 3; gap++)
                                        compare_with_map(&(struct sp_use){
                                                .width = width,
                                                .pitch = width + gap,
                                                .rows = rows,
                                                .slice = (width + gap) * (rows + gap),
                                                .slices = slices,
                                        });
}

Test(use_figures, what_is_too_large_is_the_largest)
{
        cr_expect_eq(sp_use_times(3, 4), 12);
        cr_expect_eq(sp_use_times(UINT64_MAX / 2, 4), UINT64_MAX);
}

/* looking */

static void set(CUdeviceptr address, size_t bytes)
{
        sp_use_row("cuMemsetD8", SP_SIDE_DEVICE, true, address, bytes);
}

TestSuite(uses, .init = begin_using);

Test(uses, one_byte_past_the_end_is_one_too_many)
{
        CUdeviceptr blocks[] = {pooled(1000), managed(1000)};

        for (size_t i = 0; i < 2; i++) {
                set(blocks[i], 1000);
                set(blocks[i] + 999, 1);
                cr_expect_eq(findings(), i);
                set(blocks[i] + 10, 991);
                cr_assert_eq(findings(), i + 1);
                cr_expect_eq(found[i].kind, SP_FINDING_OUT_OF_BOUNDS);
                cr_expect_eq(found[i].address, blocks[i] + 10);
                cr_expect_eq(found[i].block.address, blocks[i]);
                cr_expect_eq(found[i].outside, 1000);
                cr_expect_eq(found[i].beyond, 1);
                cr_expect_eq(found[i].touched, 991);
                cr_expect(found[i].is_write);
        }
}

/* A block takes more than was asked for. */
Test(uses, what_begins_past_the_end_is_outside_from_its_first_byte)
{
        CUdeviceptr block = pooled(1000);

        set(block + 1004, 4);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].outside, 1004);
        cr_expect_eq(found[0].beyond, 8);
}

Test(uses, what_cannot_be_counted_is_outside)
{
        CUdeviceptr block = pooled(1000);

        set(block, SIZE_MAX);
        sp_use_rows("cuMemsetD2D8", block, SIZE_MAX / 2, 4, 5);
        cr_expect_eq(findings(), 2);
}

Test(uses, of_one_place_and_one_block_are_one_finding)
{
        CUdeviceptr block = pooled(1000);

        for (int i = 0; i < 3; i++)
                set(block, 1001);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].times, 3);
        sp_use_row("cuMemsetD8", SP_SIDE_DEVICE, false, block, 1001);
        cr_expect_eq(findings(), 2, "to read is something else");
}

Test(uses, what_was_freed_is_known_inside_too)
{
        CUdeviceptr block = pooled(1000);

        cr_assert_eq(sp_on_cuMemFree_v2(block), CUDA_SUCCESS);
        set(block + 500, 4);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].kind, SP_FINDING_USE_AFTER_FREE);
        cr_assert(found[0].has_block);
        cr_expect_eq(found[0].block.address, block);
        cr_expect_eq(found[0].block.bytes, 1000);
        cr_expect_str_eq(found[0].freed_by, "cuMemFree");
}

/* Beside a block that lives, where none has ever been. */
Test(uses, of_free_memory_that_was_nobodys_say_so)
{
        CUdeviceptr block = pooled(1000);

        set(block + (1 << 20), 4);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].kind, SP_FINDING_USE_AFTER_FREE);
        cr_expect_not(found[0].has_block);
}

Test(uses, an_address_that_is_given_out_again_is_no_freed_one)
{
        CUdeviceptr block, again;

        get_at_hand(1000);
        block = pooled(1000);
        cr_assert_eq(sp_on_cuMemFree_v2(block), CUDA_SUCCESS);
        again = pooled(1000);
        cr_assert_eq(again, block);
        set(again, 1000);
        cr_expect_eq(findings(), 0);
}

static CUdeviceptr pitched(size_t *pitch)
{
        CUdeviceptr block;

        cr_assert_eq(sp_on_cuMemAllocPitch_v2(&block, pitch, 100, 10, 4), CUDA_SUCCESS);
        return block;
}

Test(uses, rows_of_the_driver_end_with_their_gap)
{
        size_t pitch;
        CUdeviceptr block = pitched(&pitch);

        set(block, 10 * pitch);
        cr_expect_eq(findings(), 0);
        sp_use_rows("cuMemsetD2D8", block, pitch, 100, 11);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].block.kind, SP_KIND_PITCH);
        cr_expect_eq(found[0].outside, 10 * pitch);
        cr_expect_eq(found[0].beyond, 100);
}

/* By a parameter that can be nothing but device memory, and nobody has the address now. */
Test(uses, what_the_driver_freed_is_remembered)
{
        size_t pitch;
        CUdeviceptr block = pitched(&pitch);

        cr_assert_eq(sp_on_cuMemFree_v2(block), CUDA_SUCCESS);
        sp_use_row("cuMemcpy", SP_SIDE_UNIFIED, true, block + 8, 4);
        cr_expect_eq(findings(), 0, "it may be the host's");
        set(block + 8, 4);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].kind, SP_FINDING_USE_AFTER_FREE);
        cr_expect_eq(found[0].block.address, block);
        cr_expect_str_eq(found[0].freed_by, "cuMemFree");
}

Test(uses, without_a_context_it_is_not_known_what_is_there)
{
        size_t pitch;
        CUdeviceptr block = pitched(&pitch);

        cr_assert_eq(sp_on_cuMemFree_v2(block), CUDA_SUCCESS);
        cr_assert_eq(cuCtxSetCurrent(NULL), CUDA_SUCCESS);
        set(block, 4);
        cr_expect_eq(findings(), 0);
}

Test(uses, of_managed_memory_the_address_may_be_the_hosts)
{
        CUdeviceptr block = managed(1000);

        cr_assert_eq(sp_on_cuMemFree_v2(block), CUDA_SUCCESS);
        set(block, 4);
        cr_expect_eq(findings(), 0);
}

Test(uses, a_pointer_of_the_hosts_is_looked_for_in_page_locked_blocks)
{
        char own[8];
        void *pages;

        cr_assert_eq(sp_on_cuMemHostAlloc(&pages, 1000, 0), CUDA_SUCCESS);
        sp_use_row("cuMemcpyDtoH", SP_SIDE_HOST, true, (uintptr_t)own, sizeof(own));
        sp_use_row("cuMemcpyDtoH", SP_SIDE_HOST, true, (uintptr_t)pages, 1000);
        cr_expect_eq(findings(), 0);
        sp_use_row("cuMemcpyDtoH", SP_SIDE_HOST, true, (uintptr_t)pages, 1001);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].block.kind, SP_KIND_PINNED);
}

Test(uses, nothing_is_said_of_null_nor_of_no_bytes)
{
        CUdeviceptr block = pooled(1000);

        set(0, 100);
        set(block + 1004, 0);
        sp_use_2d("cuMemcpy2D", NULL);
        sp_use_3d("cuMemcpy3D", NULL);
        sp_use_3d_peer("cuMemcpy3DPeer", NULL);
        sp_use_list("cuMemcpyBatchAsync", NULL, NULL, NULL, 7);
        cr_expect_eq(findings(), 0);
}

Test(uses, nothing_is_said_while_a_stream_captures)
{
        CUdeviceptr block = pooled(1000);

        atomic_fetch_add(&sp_captures, 1);
        set(block, 1001);
        cr_expect_eq(findings(), 0);
        atomic_fetch_sub(&sp_captures, 1);
        set(block, 1001);
        cr_expect_eq(findings(), 1);
}

/* boxes */

Test(uses, both_ends_of_a_plane_are_looked_at)
{
        CUdeviceptr from = pooled(1000), to = pooled(2000);
        CUDA_MEMCPY2D copy = {
                .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                .srcDevice = from,
                .srcPitch = 100,
                .srcXInBytes = 20,
                .srcY = 1,
                .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                .dstDevice = to,
                .dstPitch = 200,
                .dstXInBytes = 120,
                .dstY = 1,
                .WidthInBytes = 80,
                .Height = 9,
        };

        sp_use_2d("cuMemcpy2D", &copy);
        cr_expect_eq(findings(), 0);
        copy.Height = 10;
        sp_use_2d("cuMemcpy2D", &copy);
        cr_assert_eq(findings(), 2);
        cr_expect_eq(found[0].address, to + 320);
        cr_expect_eq(found[0].outside, 2120, "%llu", (unsigned long long)found[0].outside);
        cr_expect(found[0].is_write);
        cr_expect_eq(found[1].address, from + 120);
        cr_expect_eq(found[1].outside, 1020);
        cr_expect_eq(found[1].touched, 800);
        cr_expect_not(found[1].is_write);
}

static CUDA_MEMCPY3D_PEER cube(CUdeviceptr from)
{
        return (CUDA_MEMCPY3D_PEER){
                .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                .srcDevice = from,
                .srcPitch = 20,
                .srcHeight = 5,
                .srcXInBytes = 10,
                .srcY = 4,
                .srcZ = 1,
                .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                .WidthInBytes = 10,
                .Height = 1,
                .Depth = 9,
        };
}

Test(uses, a_box_has_slices)
{
        CUDA_MEMCPY3D_PEER copy = cube(pooled(1000));

        sp_use_3d_peer("cuMemcpy3DPeer", &copy);
        cr_expect_eq(findings(), 0);
        copy.Depth = 10;
        sp_use_3d_peer("cuMemcpy3DPeer", &copy);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].address, copy.srcDevice + 190);
        cr_expect_eq(found[0].outside, 1090);
        cr_expect_eq(found[0].beyond, 100);
}

Test(uses, of_a_box_without_a_height_where_it_begins_is_not_known)
{
        CUDA_MEMCPY3D_PEER copy = cube(pooled(1000));

        copy.srcHeight = 0;
        copy.Depth = 1;
        copy.Height = 100;
        sp_use_3d_peer("cuMemcpy3DPeer", &copy);
        cr_expect_eq(findings(), 0);
}

Test(uses, each_of_a_list_is_looked_at)
{
        CUdeviceptr block = pooled(1000), other = pooled(1000);
        CUdeviceptr to[] = {block, block + 500}, from[] = {block + 500, other};
        size_t sizes[] = {500, 501};

        sp_use_list("cuMemcpyBatchAsync", to, from, sizes, 1);
        cr_expect_eq(findings(), 0);
        sp_use_list("cuMemcpyBatchAsync", to, from, sizes, 2);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].address, block + 500);
}
