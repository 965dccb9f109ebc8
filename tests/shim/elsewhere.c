/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Elsewhere -- memory that the pool has nothing to do with: whose is it, and where does it count?
 *
 * Memory of a graph, of a pool on the host or on another device than its stream's, and of a pool
 * that another process made. The simulated driver has no pools of the host, and no other process
 * here: what stands for them are functions of this file.
 */

#include <criterion/criterion.h>

#include "tests/shim/begin.h"
#include "track/ledger.h"
#include "track/limit.h"

static void start(void)
{
        begin_on(1);
}

TestSuite(elsewhere, .init = start);

static struct sp_kind_totals totals(enum sp_kind kind)
{
        struct sp_ledger_totals now;

        cr_assert(sp_ledger_totals(&now));
        return now.kind[kind];
}

/* pools of other processes */

static CUresult CUDAAPI lend_pointer(CUdeviceptr *pointer, CUmemoryPool pool,
                                     CUmemPoolPtrExportData *exported)
{
        (void)pool;
        (void)exported;
        *pointer = 0x730000000000;
        return CUDA_SUCCESS;
}

static CUdeviceptr given_back;

static CUresult CUDAAPI free_lent(CUdeviceptr pointer, CUstream stream)
{
        (void)stream;
        given_back = pointer;
        return CUDA_SUCCESS;
}

/* Before the one who made it does (cuda.h); the order of the two is the program's business. */
Test(elsewhere, a_pointer_of_an_imported_pool_is_given_back_to_the_driver)
{
        CUdeviceptr pointer;

        sp_driver.cuMemPoolImportPointer = lend_pointer;
        cr_assert_eq(sp_on_cuMemPoolImportPointer(&pointer, NULL, NULL), CUDA_SUCCESS);
        sp_driver.cuMemFreeAsync = free_lent;
        cr_expect_eq(sp_on_cuMemFreeAsync(pointer, CU_STREAM_LEGACY), CUDA_SUCCESS);
        cr_expect_eq(given_back, pointer);
        cr_expect_eq(totals(SP_KIND_IMPORTED).tally.count, 0);
        cr_expect_eq(totals(SP_KIND_IMPORTED).tally.freed, 1);
}

/* memory that is of no device, or of another than the stream's */

static CUresult CUDAAPI make_any(CUmemoryPool *pool, const CUmemPoolProps *props)
{
        *pool = (CUmemoryPool)(uintptr_t)(0x740000000000 + (uint64_t)props->location.type * 16 +
                                          (uint64_t)props->location.id);
        return CUDA_SUCCESS;
}

static CUresult destroyed = CUDA_SUCCESS;

static CUresult CUDAAPI destroy_any(CUmemoryPool pool)
{
        (void)pool;
        return destroyed;
}

static CUresult CUDAAPI alloc_any(CUdeviceptr *pointer, size_t size, CUmemoryPool pool,
                                  CUstream stream)
{
        static uint64_t next = 0x750000000000;

        (void)pool;
        (void)stream;
        *pointer = next;
        next += size;
        return CUDA_SUCCESS;
}

static void begin_any(void)
{
        sp_driver.cuMemPoolCreate = make_any;
        sp_driver.cuMemPoolDestroy = destroy_any;
        sp_driver.cuMemAllocFromPoolAsync = alloc_any;
        sp_driver.cuMemFreeAsync = free_lent;
}

static CUmemoryPool any_pool(CUmemLocationType type, int id)
{
        CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location = {.type = type, .id = id}};
        CUmemoryPool pool;

        cr_assert_eq(sp_on_cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
        return pool;
}

/* Where 1000 bytes of @pool are written down, on a stream of device 1. */
static int device_of(CUmemoryPool pool)
{
        uint64_t counted[2] = {sp_limit_counted(0), sp_limit_counted(1)};
        struct sp_ledger_entry entry = {.device = -2};
        struct sp_ledger_totals now;
        CUdeviceptr pointer;

        cr_assert_eq(sp_on_cuMemAllocFromPoolAsync(&pointer, 1000, pool, CU_STREAM_LEGACY),
                     CUDA_SUCCESS);
        cr_assert(sp_ledger_find(SP_SPACE_DEVICE, pointer, &entry));
        cr_assert(sp_ledger_totals(&now));
        for (int i = 0; i < 2; i++) {
                cr_expect_eq(sp_limit_counted(i), counted[i] + (entry.device == i ? 1024 : 0),
                             "device %d, of %d", i, entry.device);
                cr_expect_eq(now.device[i].bytes, entry.device == i ? 1000 : 0);
        }
        cr_assert_eq(sp_on_cuMemFreeAsync(pointer, CU_STREAM_LEGACY), CUDA_SUCCESS);
        for (int i = 0; i < 2; i++)
                cr_expect_eq(sp_limit_counted(i), counted[i], "device %d", i);
        return entry.device;
}

Test(elsewhere, memory_of_a_pool_on_the_host_counts_for_no_device)
{
        struct sp_ledger_totals now;
        CUmemoryPool pool;

        begin_any();
        /* By number, as older headers have no names for them: HOST, HOST_NUMA. */
        cr_expect_eq(device_of(any_pool((CUmemLocationType)2, 0)), -1);
        pool = any_pool((CUmemLocationType)3, 1);
        cr_expect_eq(device_of(pool), -1);
        cr_expect_eq(device_of(any_pool(CU_MEM_LOCATION_TYPE_DEVICE, 0)), 0, "as it says itself");
        cr_expect_eq(device_of(any_pool(CU_MEM_LOCATION_TYPE_DEVICE, 1)), 1);
        cr_assert(sp_ledger_totals(&now));
        cr_expect_eq(now.kind[SP_KIND_ASYNC].tally.made, 4);
        cr_expect_eq(now.device[0].bytes_high, 1000);
        cr_expect_eq(now.device[1].bytes_high, 1000);
        /* A handle is another pool's once it was destroyed, and not before. */
        destroyed = CUDA_ERROR_INVALID_VALUE;
        cr_expect_eq(sp_on_cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(device_of(pool), -1);
        destroyed = CUDA_SUCCESS;
        cr_expect_eq(sp_on_cuMemPoolDestroy(pool), CUDA_SUCCESS);
        cr_expect_eq(device_of(pool), 1, "the stream's, as nobody knows it");
}

/* memory of graphs */

Test(elsewhere, memory_of_a_graph_is_no_leak_and_freed_by_any_call)
{
        struct sp_ledger_totals now;

        for (int way = 0; way < 2; way++) {
                CUstream stream;
                CUdeviceptr pointer;
                CUgraphExec exec;
                CUgraph graph;

                cr_assert_eq(sp_on_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
                cr_assert_eq(
                        sp_on_cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                        CUDA_SUCCESS);
                cr_assert_eq(sp_on_cuMemAllocAsync(&pointer, 1 << 20, stream), CUDA_SUCCESS);
                cr_assert_eq(sp_on_cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
                cr_assert_eq(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
                cr_assert_eq(sp_on_cuGraphLaunch(exec, stream), CUDA_SUCCESS);
                cr_expect_eq(totals(SP_KIND_ASYNC).tally.made, 0, "it is the graph's");
                cr_expect_eq(sp_limit_counted(1), 0);
                cr_assert_eq(sp_on_cuStreamSynchronize(stream), CUDA_SUCCESS);
                cr_expect_eq(way ? sp_on_cuMemFree_v2(pointer)
                                 : sp_on_cuMemFreeAsync(pointer, stream),
                             CUDA_SUCCESS);
                cr_expect_eq(sp_on_cuMemFreeAsync(pointer, stream), CUDA_ERROR_INVALID_VALUE);
        }
        cr_expect_eq(totals(SP_KIND_ASYNC).tally.made, 0);
        cr_assert(sp_ledger_totals(&now));
        cr_expect_eq(now.findings[SP_FINDING_FOREIGN] + now.findings[SP_FINDING_DOUBLE_FREE], 2,
                     "the second frees, and they alone");
}
