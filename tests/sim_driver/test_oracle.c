/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Oracle -- it fires on every kind of early reuse, and on nothing else
 *
 * The planted pools below hand one block of the driver out twice, as a pool on top
 * of it would: what the program owns is told through control.h.
 */

#include "test_bench.h"

#include <signal.h>

#define COUNT 1024
#define BYTES (COUNT * sizeof(uint32_t))

TestSuite(oracle, .init = bench_start, .timeout = 20);

static CUdeviceptr slab(void)
{
        return bench_alloc(1 << 20);
}

/* The old owner uses p on `stream` and frees it; a pool without patience gives it to the next. */
static void use_and_hand_over(CUdeviceptr p, CUstream stream)
{
        sim_oracle_alloc(p, BYTES);
        bench_spin(stream, 10 * MS);
        bench_fill(stream, p, COUNT, 1);
        sim_oracle_free(p);
        sim_oracle_alloc(p, BYTES);
}

Test(oracle, fires_when_a_block_is_reused_on_another_stream, .signal = SIGABRT)
{
        CUdeviceptr p = slab();

        use_and_hand_over(p, bench.n1);
        bench_fill(bench.n2, p, COUNT, 2);
        sim_run_all();
}

Test(oracle, fires_when_the_old_owner_only_reads, .signal = SIGABRT)
{
        CUdeviceptr p = slab(), counter = slab();

        sim_oracle_alloc(p, BYTES);
        bench_fill(bench.n1, p, COUNT, 1);
        bench_watch(bench.n1, p, COUNT, 1, 10 * MS, counter);
        sim_oracle_free(p);
        sim_oracle_alloc(p, BYTES);
        bench_fill(bench.n2, p, COUNT, 2);
        sim_run_all();
}

Test(oracle, fires_when_the_new_owner_only_reads, .signal = SIGABRT)
{
        CUdeviceptr p = slab();

        use_and_hand_over(p, bench.n1);
        bench_watch(bench.n2, p, COUNT, 1, 0, slab());
        sim_run_all();
}

Test(oracle, fires_on_the_second_of_two_blocks_that_one_copy_touches, .signal = SIGABRT)
{
        CUdeviceptr p = slab();

        sim_oracle_alloc(p, BYTES);
        use_and_hand_over(p + BYTES, bench.n1);
        OK(cuMemsetD8Async(p, 1, 2 * BYTES, bench.n2));
}

Test(oracle, fires_on_a_host_copy_to_a_block_in_use, .signal = SIGABRT)
{
        CUdeviceptr p = slab();
        uint32_t value = 2;

        use_and_hand_over(p, bench.n1);
        cuMemcpyHtoD_v2(p, &value, sizeof(value));
}

Test(oracle, fires_on_one_byte_in_common, .signal = SIGABRT)
{
        CUdeviceptr p = slab();

        sim_oracle_alloc(p, BYTES);
        bench_spin(bench.n1, 10 * MS);
        bench_fill(bench.n1, p, COUNT, 1);
        sim_oracle_free(p);
        sim_oracle_alloc(p + BYTES - 1, BYTES);
        OK(cuMemsetD8Async(p + BYTES - 1, 1, 1, bench.n2));
}

Test(oracle, fires_on_reuse_inside_a_graph, .signal = SIGABRT)
{
        CUdeviceptr p = slab();
        CUgraph graph;
        CUgraphExec exec;

        OK(cuStreamBeginCapture_v2(bench.n1, CU_STREAM_CAPTURE_MODE_RELAXED));
        bench_spin(bench.n1, 10 * MS);
        bench_fill(bench.n1, p, COUNT, 1);
        OK(cuStreamEndCapture(bench.n1, &graph));
        OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
        sim_oracle_alloc(p, BYTES);
        OK(cuGraphLaunch(exec, bench.n1));
        sim_oracle_free(p);
        sim_oracle_alloc(p, BYTES);
        bench_fill(bench.n2, p, COUNT, 2);
}

Test(oracle, fires_although_the_second_owner_came_and_went, .signal = SIGABRT)
{
        CUdeviceptr p = slab();

        use_and_hand_over(p, bench.n1);
        sim_oracle_free(p);
        sim_oracle_alloc(p, BYTES);
        bench_fill(bench.n2, p, COUNT, 2);
}

Test(oracle, fires_when_two_own_a_byte_at_once, .signal = SIGABRT)
{
        CUdeviceptr p = slab();

        sim_oracle_alloc(p, BYTES);
        sim_oracle_alloc(p + BYTES - 1, 1);
}

Test(oracle, fires_when_memory_in_use_is_unmapped, .signal = SIGABRT)
{
        CUmemAllocationProp properties = {
                .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
        };
        CUmemAccessDesc access = {
                .location = properties.location,
                .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        CUmemGenericAllocationHandle handle;
        CUdeviceptr p;

        OK(cuMemCreate(&handle, 2 << 20, &properties, 0));
        OK(cuMemAddressReserve(&p, 2 << 20, 0, 0, 0));
        OK(cuMemMap(p, 2 << 20, 0, handle, 0));
        OK(cuMemSetAccess(p, 2 << 20, &access, 1));
        bench_spin(bench.n1, 10 * MS);
        bench_fill(bench.n1, p, COUNT, 1);
        OK(cuMemUnmap(p, 2 << 20));
        sim_run_all();
}

/* ---- and is silent ---- */

/* The access of the old owner and that of the new one. */
static void expect_judged(void)
{
        sim_run_all();
        cr_expect_geq(sim_oracle_judged(), 2, "too little was judged");
}

Test(oracle, accepts_reuse_on_the_same_stream)
{
        CUdeviceptr p = slab();

        use_and_hand_over(p, bench.n1);
        bench_fill(bench.n1, p, COUNT, 2);
        expect_judged();
}

Test(oracle, accepts_reuse_behind_an_event)
{
        CUdeviceptr p = slab();

        use_and_hand_over(p, bench.n1);
        OK(cuEventRecord(bench.event, bench.n1));
        OK(cuStreamWaitEvent(bench.n2, bench.event, 0));
        bench_fill(bench.n2, p, COUNT, 2);
        expect_judged();
        cr_expect_eq(bench_value(p), 2);
}

Test(oracle, accepts_reuse_after_a_wait_of_the_host)
{
        CUdeviceptr p = slab();

        use_and_hand_over(p, bench.n1);
        OK(cuStreamSynchronize(bench.n1));
        bench_fill(bench.n2, p, COUNT, 2);
        expect_judged();
}

Test(oracle, accepts_neighbours_in_one_block_of_the_driver)
{
        CUdeviceptr p = slab();

        sim_oracle_alloc(p, BYTES);
        sim_oracle_alloc(p + BYTES, BYTES);
        bench_spin(bench.n1, 10 * MS);
        bench_fill(bench.n1, p, COUNT, 1);
        sim_oracle_free(p);
        bench_fill(bench.n2, p + BYTES, COUNT, 2);
        expect_judged();
}

Test(oracle, accepts_one_owner_on_many_streams)
{
        CUdeviceptr p = slab();

        sim_oracle_alloc(p, BYTES);
        bench_spin(bench.n1, 10 * MS);
        bench_fill(bench.n1, p, COUNT, 1);
        bench_fill(bench.n2, p, COUNT, 2);
        expect_judged();
}

/* Without a word from the program, the driver's own allocations are the owners. */
Test(oracle, accepts_what_the_driver_itself_does)
{
        CUdeviceptr p, q;

        for (int i = 0; i < 20; i++) {
                CUstream stream = i & 1 ? bench.n1 : bench.b1;

                OK(cuMemAllocAsync(&p, BYTES << (i % 3), stream));
                bench_spin(stream, MS);
                bench_fill(stream, p, COUNT, (uint32_t)i);
                OK(cuMemFreeAsync(p, stream));
                q = bench_alloc(BYTES);
                bench_fill(bench.n2, q, COUNT, (uint32_t)i);
                OK(cuMemFree_v2(q));
        }
        cr_expect_gt(sim_oracle_judged(), 20);
}
