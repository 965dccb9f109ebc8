/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Range -- many handles inside one reservation are one piece of memory
 *
 * Pieces of 2 MiB, side by side. Each is also mapped at a place of its own, so
 * that a test can see in which handle the bytes arrived.
 */

#include <signal.h>
#include "test_support.h"

#define PIECE  (2 * MIB)
#define PIECES 3
#define WORDS  (PIECE / 4)

struct range {
        CUdeviceptr base;
        CUmemGenericAllocationHandle handle[PIECES];
        CUdeviceptr alias[PIECES];
};

static CUresult allow(CUdeviceptr va, size_t bytes)
{
        CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

        access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        return cuMemSetAccess(va, bytes, &access, 1);
}

static void map(CUdeviceptr va, CUmemGenericAllocationHandle handle)
{
        ok(cuMemMap(va, PIECE, 0, handle, 0));
        ok(allow(va, PIECE));
}

/* Addresses for twice the pieces, of which the first half is mapped. */
static struct range begin_range(void)
{
        CUmemAllocationProp prop = memory_of(0);
        struct range range;

        ok(cuMemAddressReserve(&range.base, 2 * PIECES * PIECE, 0, 0, 0));
        for (size_t i = 0; i < PIECES; i++) {
                ok(cuMemCreate(&range.handle[i], PIECE, &prop, 0));
                ok(cuMemAddressReserve(&range.alias[i], PIECE, 0, 0, 0));
                map(range.base + i * PIECE, range.handle[i]);
                map(range.alias[i], range.handle[i]);
        }
        ok(cuMemsetD32(range.base, 0, PIECES * WORDS));
        ok(cuCtxSynchronize());
        return range;
}

static uint32_t word_at(CUdeviceptr va)
{
        uint32_t word;

        ok(cuMemcpyDtoH(&word, va, sizeof(word)));
        return word;
}

static void launch(CUfunction function, CUstream stream, CUdeviceptr va, uint64_t count,
                   uint32_t value)
{
        void *arguments[] = {&va, &count, &value};

        ok(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
}

static void launch_watch(CUstream stream, CUdeviceptr va, uint64_t count, uint64_t nanoseconds,
                         CUdeviceptr mismatches)
{
        uint32_t expected = 0;
        void *arguments[] = {&va, &count, &expected, &nanoseconds, &mismatches};

        ok(cuLaunchKernel(find_kernel("watch"), 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
}

Test(sim, a_set_reaches_over_handles)
{
        struct range range;

        begin();
        range = begin_range();
        ok(cuMemsetD32(range.base + PIECE - 4, 7, WORDS + 2));
        cr_expect_eq(word_at(range.alias[0] + PIECE - 4), 7);
        cr_expect_eq(word_at(range.alias[1]), 7);
        cr_expect_eq(word_at(range.alias[1] + PIECE - 4), 7);
        cr_expect_eq(word_at(range.alias[2]), 7);
        cr_expect_eq(word_at(range.alias[2] + 4), 0);
        cr_expect_eq(word_at(range.alias[0] + PIECE - 8), 0);
        expect(1, cuMemsetD32(range.base + PIECE, 7, 2 * WORDS + 1));
}

Test(sim, a_copy_reaches_over_handles)
{
        static uint32_t words[2 * WORDS];
        struct range range;

        begin();
        range = begin_range();
        for (size_t i = 0; i < 2 * WORDS; i++)
                words[i] = (uint32_t)i;
        ok(cuMemcpyHtoD(range.base + MIB, words, sizeof(words)));
        cr_expect_eq(word_at(range.alias[1]), WORDS / 2);
        ok(cuMemcpyDtoD(range.base, range.base + MIB + 4, PIECE + MIB));
        cr_expect_eq(word_at(range.alias[0]), 1);
        cr_expect_eq(word_at(range.alias[1] + MIB - 4), WORDS + WORDS / 2);
        expect(1, cuMemcpyDtoD(range.base, range.base + PIECE + 4, 2 * PIECE));
}

Test(sim, a_kernel_reaches_over_handles)
{
        struct world world = begin();
        struct range range = begin_range();

        launch(find_kernel("fill"), world.s1, range.base + PIECE - 64, 32, 9);
        ok(cuStreamSynchronize(world.s1));
        cr_expect_eq(word_at(range.alias[0] + PIECE - 4), 9);
        cr_expect_eq(word_at(range.alias[1] + 60), 9);
        cr_expect_eq(word_at(range.alias[1] + 64), 0);
}

Test(sim, a_kernel_that_reaches_into_a_hole_faults, .signal = SIGABRT)
{
        struct world world = begin();
        struct range range = begin_range();

        ok(cuMemUnmap(range.base + PIECE, PIECE));
        launch(find_kernel("fill"), world.s1, range.base + PIECE - 64, 32, 9);
        cuStreamSynchronize(world.s1);
}

Test(sim, one_handle_goes_and_its_neighbours_stay)
{
        CUmemAllocationProp prop = memory_of(0);
        CUmemGenericAllocationHandle other;
        struct range range;
        CUdeviceptr base;
        size_t bytes;

        begin();
        range = begin_range();
        ok(cuMemUnmap(range.base + PIECE, PIECE));
        ok(cuMemsetD8(range.base, 1, PIECE));
        ok(cuMemsetD8(range.base + 2 * PIECE, 1, PIECE));
        expect(1, cuMemsetD8(range.base, 1, PIECE + 1));
        expect(1, cuMemcpyDtoD(range.alias[0], range.base + PIECE, 4));
        expect(1, cuMemAddressFree(range.base, 2 * PIECES * PIECE));

        ok(cuMemCreate(&other, PIECE, &prop, 0));
        map(range.base + PIECE, other);
        ok(cuMemsetD8(range.base, 2, PIECES * PIECE));
        cr_expect_eq(word_at(range.alias[1]), 0, "its handle is there no more");
        ok(cuMemGetAddressRange(&base, &bytes, range.base + PIECE + 4));
        cr_expect(base == range.base + PIECE && bytes == PIECE);
        ok(cuCtxSynchronize());
        ok(cuMemUnmap(range.base, 2 * PIECES * PIECE));
        ok(cuMemAddressFree(range.base, 2 * PIECES * PIECE));
}

Test(sim, a_handle_takes_its_bytes_along)
{
        CUdeviceptr end;
        struct range range;
        size_t before;

        begin();
        range = begin_range();
        end = range.base + (2 * PIECES - 1) * PIECE;
        ok(cuMemsetD32(range.base + PIECE, 11, WORDS));
        ok(cuCtxSynchronize());
        before = free_bytes();
        ok(cuMemUnmap(range.base + PIECE, PIECE));
        ok(cuMemMap(end, PIECE, 0, range.handle[1], 0));
        expect(1, cuMemsetD8(end, 0, 1)); /* the access was that of the mapping */
        ok(allow(end, PIECE));
        cr_expect_eq(word_at(end + PIECE - 4), 11);
        cr_expect_eq(free_bytes(), before);
        ok(cuMemRelease(range.handle[1]));
        cr_expect_eq(free_bytes(), before, "it is mapped");
}

Test(sim, access_is_that_of_each_mapping)
{
        CUmemAccessDesc none = {.location.type = CU_MEM_LOCATION_TYPE_DEVICE};
        CUmemAccessDesc peer = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READ};
        CUmemLocation place = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1};
        unsigned long long flags;
        struct range range;

        begin();
        range = begin_range();
        ok(cuMemSetAccess(range.base + PIECE, PIECE, &none, 1));
        ok(cuMemsetD8(range.base, 1, PIECE));
        expect(1, cuMemsetD8(range.base, 1, PIECE + 1));
        peer.location = place;
        ok(cuMemSetAccess(range.base, PIECE, &peer, 1));
        ok(cuMemGetAccess(&flags, &place, range.base + PIECE - 1));
        cr_expect_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
        ok(cuMemGetAccess(&flags, &place, range.base + PIECE));
        cr_expect_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
        expect(1, cuMemSetAccess(range.base, PIECES * PIECE + 1, &peer, 1));
}

Test(sim, unmapping_where_a_kernel_runs_kills_the_process, .signal = SIGABRT)
{
        struct world world = begin();
        struct range range = begin_range();

        launch_watch(world.s1, range.base + PIECE - 4, 2, 50 * MS, range.alias[2]);
        cuMemUnmap(range.base + PIECE, PIECE);
        raise(SIGTERM); /* too late */
}

Test(sim, unmapping_beside_a_running_kernel_is_fine)
{
        struct world world = begin();
        struct range range = begin_range();

        launch_watch(world.s1, range.base + PIECE - 4, 1, 50 * MS, range.alias[2]);
        ok(cuMemUnmap(range.base + PIECE, PIECE));
        map(range.base + PIECE, range.handle[1]);
        expect(600, cuStreamQuery(world.s1));
        ok(cuStreamSynchronize(world.s1));
}

/* One block of the program in two handles, and the next one in the second of them. */
static void hand_over(const struct world *world, const struct range *range, CUstream next)
{
        CUdeviceptr block = range->base + PIECE - MIB;
        CUfunction fill = find_kernel("fill"); /* before anything runs: a load waits */

        sim_oracle_alloc(block, 2 * MIB);
        launch_watch(world->s1, block, 2 * MIB / 4, 10 * MS, range->alias[2]);
        sim_oracle_free(block);
        sim_oracle_alloc(range->base + PIECE, MIB);
        launch(fill, next, range->base + PIECE + MIB - 4, 1, 1);
        sim_run_all();
}

Test(sim, the_oracle_fires_on_reuse_of_a_blocks_second_handle, .signal = SIGABRT)
{
        struct world world = begin();
        struct range range = begin_range();

        hand_over(&world, &range, world.s2);
}

Test(sim, the_oracle_accepts_ordered_reuse_of_a_blocks_second_handle)
{
        struct world world = begin();
        struct range range = begin_range();
        uint64_t before = sim_oracle_judged();

        hand_over(&world, &range, world.s1);
        cr_expect_geq(sim_oracle_judged() - before, 2);
}

Test(sim, a_large_range_holds_many_handles)
{
        enum { COUNT = 200 };
        CUmemAllocationProp prop = memory_of(0);
        size_t bytes = (size_t)64 << 30, step = bytes / COUNT / PIECE * PIECE, before;
        CUdeviceptr base;

        begin();
        before = free_bytes();
        ok(cuMemAddressReserve(&base, bytes, 0, 0, 0));
        for (size_t i = 0; i < COUNT; i++) {
                CUmemGenericAllocationHandle handle;

                ok(cuMemCreate(&handle, PIECE, &prop, 0));
                map(base + i * step, handle);
                ok(cuMemRelease(handle));
                ok(cuMemsetD32(base + i * step, (uint32_t)i, 1));
        }
        cr_expect_eq(before - free_bytes(), COUNT * PIECE);
        ok(cuCtxSynchronize());
        for (size_t i = 0; i < COUNT; i += 2)
                ok(cuMemUnmap(base + i * step, PIECE));
        for (size_t i = 1; i < COUNT; i += 2)
                cr_expect_eq(word_at(base + i * step), i);
        cr_expect_eq(before - free_bytes(), COUNT * PIECE / 2);
}
