/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Pool -- accounting, trimming and reuse as measured (U4, U5, U6, M33-M35)
 */

#include <string.h>
#include "test_support.h"

#define UNIT (32 * MIB)

static CUmemoryPool default_pool(void)
{
        CUmemoryPool pool;

        ok(cuDeviceGetDefaultMemPool(&pool, 0));
        return pool;
}

static uint64_t get(CUmemoryPool pool, CUmemPool_attribute attribute)
{
        cuuint64_t value;

        ok(cuMemPoolGetAttribute(pool, attribute, &value));
        return value;
}

static CUresult set(CUmemoryPool pool, CUmemPool_attribute attribute, uint64_t value)
{
        return cuMemPoolSetAttribute(pool, attribute, &value);
}

#define USED          CU_MEMPOOL_ATTR_USED_MEM_CURRENT
#define USED_HIGH     CU_MEMPOOL_ATTR_USED_MEM_HIGH
#define RESERVED      CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
#define RESERVED_HIGH CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH

/* U4, number by number. */
Test(sim, used_counts_requests_and_reserved_counts_units)
{
        static const size_t sizes[] = {1, 512, 513, 1048577, 2097152, 34603008};
        static const uint64_t used[] = {1, 513, 1026, 1049603, 3146755, 37749763};
        struct world world = begin();
        CUmemoryPool pool = default_pool();
        CUdeviceptr p;

        for (int i = 0; i < 6; i++) {
                ok(cuMemAllocAsync(&p, sizes[i], world.s1));
                cr_expect_eq(get(pool, USED), used[i]);
                cr_expect_eq(get(pool, RESERVED), i < 5 ? UNIT : 2 * UNIT);
        }
        spin(&world, world.s1, 50 * MS);
        ok(cuMemFreeAsync(p, world.s1));
        cr_expect_eq(get(pool, USED), 3146755, "used drops at the free, not at its end");
        cr_expect_eq(get(pool, RESERVED), 2 * UNIT);
        ok(cuStreamSynchronize(world.s1));
        cr_expect_eq(get(pool, RESERVED), UNIT);
        cr_expect_eq(get(pool, USED_HIGH), 37749763);
        cr_expect_eq(get(pool, RESERVED_HIGH), 2 * UNIT);
        ok(set(pool, USED_HIGH, 0));
        cr_expect_eq(get(pool, USED_HIGH), 3146755);
        ok(set(pool, RESERVED_HIGH, 0));
        cr_expect_eq(get(pool, RESERVED_HIGH), UNIT);
}

/* M35 */
Test(sim, only_high_marks_can_be_reset_and_only_to_zero)
{
        CUmemoryPool pool;

        begin();
        pool = default_pool();
        expect(1, set(pool, RESERVED, 0));
        expect(1, set(pool, USED, 0));
        expect(1, set(pool, USED_HIGH, 5));
        expect(1, set(pool, RESERVED_HIGH, 5));
        ok(set(pool, USED_HIGH, 0));
        expect(1, cuMemPoolDestroy(pool));
        ok(cuMemPoolTrimTo(pool, 0));
        cr_expect_eq(get(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 0);
}

Test(sim, the_three_policies_are_on_at_first)
{
        int value;

        begin();
        for (int i = CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES;
             i <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES; i++) {
                ok(cuMemPoolGetAttribute(default_pool(), i, &value));
                cr_expect_eq(value, 1);
                value = 0;
                ok(cuMemPoolSetAttribute(default_pool(), i, &value));
                value = 7;
                ok(cuMemPoolGetAttribute(default_pool(), i, &value));
                cr_expect_eq(value, 0);
        }
}

/* ---- U5: which call gives memory back ---- */

enum call {
        STREAM_SYNC,
        OTHER_STREAM_SYNC,
        LEGACY_SYNC,
        EVENT_SYNC,
        CONTEXT_SYNC,
        STREAM_QUERY,
        EVENT_QUERY,
        COPY_TO_HOST,
        NEXT_ALLOC,
        CALLS,
};

static const uint64_t reserved_after[CALLS] = {
        [STREAM_SYNC] = 0,        [OTHER_STREAM_SYNC] = 64 * MIB,
        [LEGACY_SYNC] = 64 * MIB, [EVENT_SYNC] = 0,
        [CONTEXT_SYNC] = 0,       [STREAM_QUERY] = 64 * MIB,
        [EVENT_QUERY] = 64 * MIB, [COPY_TO_HOST] = 64 * MIB,
        [NEXT_ALLOC] = 64 * MIB,
};

static void call(enum call which, const struct world *world, CUevent event, CUdeviceptr other)
{
        CUdeviceptr p;
        int byte;

        switch (which) {
        case STREAM_SYNC:
                ok(cuStreamSynchronize(world->s1));
                break;
        case OTHER_STREAM_SYNC:
                ok(cuStreamSynchronize(world->s2));
                break;
        case LEGACY_SYNC:
                ok(cuStreamSynchronize(NULL));
                break;
        case EVENT_SYNC:
                ok(cuEventSynchronize(event));
                break;
        case CONTEXT_SYNC:
                ok(cuCtxSynchronize());
                break;
        case STREAM_QUERY:
                ok(cuStreamQuery(world->s1));
                break;
        case EVENT_QUERY:
                ok(cuEventQuery(event));
                break;
        case COPY_TO_HOST:
                ok(cuMemcpyDtoH(&byte, other, 4));
                break;
        case NEXT_ALLOC:
                ok(cuMemAllocAsync(&p, 64 * MIB, world->s1));
                break;
        case CALLS:
                break;
        }
}

Test(sim, memory_goes_back_at_the_measured_calls)
{
        struct world world = begin();
        CUmemoryPool pool = default_pool();
        CUdeviceptr p, other;
        CUevent event;

        ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
        ok(cuMemAlloc(&other, 4));
        for (int i = 0; i < CALLS; i++) {
                ok(cuMemAllocAsync(&p, 64 * MIB, world.s1));
                ok(cuMemFreeAsync(p, world.s1));
                ok(cuEventRecord(event, world.s1));
                sim_run_all();
                call(i, &world, event, other);
                cr_expect_eq(get(pool, RESERVED), reserved_after[i], "call %d", i);
                ok(cuCtxSynchronize());
        }
}

Test(sim, the_threshold_is_kept)
{
        struct world world = begin();
        CUmemoryPool pool = default_pool();
        CUdeviceptr p, q;

        ok(set(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, UNIT));
        ok(cuMemAllocAsync(&p, 64 * MIB, world.s1));
        ok(cuMemAllocAsync(&q, 64 * MIB, world.s1));
        ok(cuMemFreeAsync(p, world.s1));
        ok(cuMemFreeAsync(q, world.s1));
        ok(cuStreamSynchronize(world.s1));
        cr_expect_eq(get(pool, RESERVED), UNIT);
}

/* M33 */
Test(sim, a_trim_leaves_pending_memory_alone)
{
        struct world world = begin();
        CUmemoryPool pool = default_pool();
        CUdeviceptr p;

        ok(cuMemAllocAsync(&p, 64 * MIB, world.s1));
        spin(&world, world.s1, 50 * MS);
        ok(cuMemFreeAsync(p, world.s1));
        ok(cuMemPoolTrimTo(pool, 0));
        cr_expect_eq(get(pool, RESERVED), 64 * MIB);
        expect(600, cuStreamQuery(world.s1));
        sim_run_all();
        ok(cuMemPoolTrimTo(pool, 33 * MIB));
        cr_expect_eq(get(pool, RESERVED), 64 * MIB, "at least so many bytes stay");
        ok(cuMemPoolTrimTo(pool, 32 * MIB));
        cr_expect_eq(get(pool, RESERVED), 32 * MIB);
        ok(cuMemPoolTrimTo(pool, 0));
        cr_expect_eq(get(pool, RESERVED), 0);
}

/* ---- U6: the matrix ---- */

enum scene {
        PENDING,
        DONE,
        PENDING_EDGE,
        DONE_QUERY,
        DONE_SYNC,
        SCENES,
};

/* Rows: Follow 1, Opportunistic 2, Internal 4; columns: scenes; 1: the same address. */
static const char matrix[8][SCENES + 1] = {
        [0] = "00001", [1] = "00101", [2] = "01011", [3] = "01111",
        [4] = "00001", [5] = "00101", [6] = "01011", [7] = "01111",
};

static bool is_reused(const struct world *world, CUmemoryPool pool, enum scene scene)
{
        CUdeviceptr p, q;
        CUevent event;

        ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
        ok(cuMemAllocFromPoolAsync(&p, 64 * MIB, pool, world->s1));
        spin(world, world->s1, 50 * MS);
        ok(cuMemFreeAsync(p, world->s1));
        ok(cuEventRecord(event, world->s1));
        if (scene == PENDING_EDGE)
                ok(cuStreamWaitEvent(world->s2, event, 0));
        else if (scene != PENDING)
                sim_run_all();
        if (scene == DONE_QUERY)
                ok(cuEventQuery(event));
        if (scene == DONE_SYNC)
                ok(cuStreamSynchronize(world->s1));
        ok(cuMemAllocFromPoolAsync(&q, 64 * MIB, pool, world->s2));
        ok(cuEventDestroy(event));
        return p == q;
}

Test(sim, reuse_on_another_stream_follows_the_matrix)
{
        struct world world = begin();
        CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED};
        cuuint64_t all = UINT64_MAX;

        props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        for (int policy = 0; policy < 8; policy++) {
                for (int scene = 0; scene < SCENES; scene++) {
                        CUmemoryPool pool;

                        ok(cuMemPoolCreate(&pool, &props));
                        ok(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
                        for (int i = 0; i < 3; i++) {
                                int on = policy >> i & 1;

                                ok(cuMemPoolSetAttribute(
                                        pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES + i,
                                        &on));
                        }
                        cr_expect_eq(is_reused(&world, pool, scene), matrix[policy][scene] == '1',
                                     "policy %d, scene %d", policy, scene);
                        ok(cuMemPoolDestroy(pool));
                        ok(cuCtxSynchronize());
                }
        }
}
