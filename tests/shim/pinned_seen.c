/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Pinned, seen -- a page-locked block of ours looks like one of the driver's, and ends like one
 */

#include "tests/shim/pinned_acts.h"

#include "report/figures.h"

/* what the program sees */

Test(pinned_seen, looks_like_an_allocation_of_its_own, .init = start)
{
        char *small = alloc(1000, 0), *other = alloc(100, 0), *large = alloc(3 * MIB, 0);
        uint64_t id = attribute_of(small, CU_POINTER_ATTRIBUTE_BUFFER_ID);
        CUipcMemHandle handle;
        unsigned int on = 1;

        expect_allocation(small, 1000);
        expect_allocation(other, 100);
        expect_allocation(large, 3 * MIB);
        cr_expect_neq(attribute_of(other, CU_POINTER_ATTRIBUTE_BUFFER_ID), id);
        cr_expect_eq(sp_on_cuIpcGetMemHandle(&handle, (uintptr_t)large), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_on_cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
                                                 (uintptr_t)small),
                     CUDA_ERROR_INVALID_VALUE, "as of the driver's own");
        give(small);
        synchronise();
        cr_assert_eq(alloc(1000, 0), small);
        cr_expect_neq(attribute_of(small, CU_POINTER_ATTRIBUTE_BUFFER_ID), id, "another one");
}

/* A driver that knows what it returned, and nothing inside of it. */
static CUresult begins(const void *host)
{
        CUdeviceptr start_address = 0;
        CUresult result = sp_driver.cuPointerGetAttribute(
                &start_address, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, (uintptr_t)host);

        return result == CUDA_SUCCESS && start_address != (uintptr_t)host ? CUDA_ERROR_INVALID_VALUE
                                                                          : result;
}

static CUresult CUDAAPI get_pointer(CUdeviceptr *address, void *host, unsigned int flags)
{
        CUresult result = begins(host);

        return result == CUDA_SUCCESS ? cuMemHostGetDevicePointer_v2(address, host, flags) : result;
}

static CUresult CUDAAPI get_flags(unsigned int *flags, void *host)
{
        CUresult result = begins(host);

        return result == CUDA_SUCCESS ? cuMemHostGetFlags(flags, host) : result;
}

Test(pinned_seen, is_asked_about_where_its_chunk_begins, .init = start)
{
        CUdeviceptr address = 0;
        unsigned int flags;
        char *host;

        alloc(8, 0);
        host = alloc(1000, 0);
        sp_driver.cuMemHostGetDevicePointer_v2 = get_pointer;
        sp_driver.cuMemHostGetFlags = get_flags;
        cr_expect_eq(sp_on_cuMemHostGetDevicePointer_v2(&address, host, 0), CUDA_SUCCESS);
        cr_expect_eq(address, (uintptr_t)host);
        cr_expect_eq(sp_on_cuMemHostGetFlags(&flags, host), CUDA_SUCCESS);
        cr_expect_eq(sp_on_cuMemHostGetFlags(&flags, host + 4), CUDA_ERROR_INVALID_VALUE,
                     "as this driver says of its own");
        cr_expect_eq(sp_on_cuMemHostGetFlags(NULL, host), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_on_cuMemHostGetDevicePointer_v2(NULL, host, 0), CUDA_ERROR_INVALID_VALUE);
}

Test(pinned_seen, is_unknown_once_it_is_freed, .init = start)
{
        char *host = alloc(1000, 0);
        CUdeviceptr address = 0;
        unsigned int flags = 0;
        uint64_t value;
        size_t length;

        give(host);
        cr_expect_eq(sp_on_cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                                 (uintptr_t)host),
                     CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_on_cuMemGetAddressRange_v2(&address, &length, (uintptr_t)host),
                     CUDA_ERROR_NOT_FOUND);
        cr_expect_eq(sp_on_cuMemHostGetDevicePointer_v2(&address, host, 0),
                     CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_on_cuMemHostGetFlags(&flags, host), CUDA_ERROR_INVALID_VALUE);
        cr_expect(address == 0 && flags == 0, "nothing was written");
}

Test(pinned_seen, is_freed_by_its_own_function_only, .init = start)
{
        char *host = alloc(1000, 0), *first = alloc(3 * MIB, 0);

        alloc(8, 0);
        cr_expect_eq(sp_on_cuMemFreeHost(host + 512), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(found(SP_FINDING_INTERIOR), 1);
        cr_expect_eq(sp_on_cuMemFree_v2((uintptr_t)host), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_on_cuMemFreeAsync((uintptr_t)host, stream), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_on_cuMemFree_v2((uintptr_t)first), CUDA_ERROR_INVALID_VALUE, "a chunk");
        cr_expect_eq(sp_on_cuMemFreeHost((void *)(uintptr_t)device_block),
                     CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(found(SP_FINDING_WRONG_KIND), 4);
        cr_expect_eq(totals().tally.count, 3, "they are alive");
        expect_allocation(host, 1000);
        expect_allocation(first, 3 * MIB);
        give(host);
        cr_expect_eq(sp_on_cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(found(SP_FINDING_DOUBLE_FREE), 1);
        cr_expect_eq(sp_on_cuMemFree_v2(device_block), CUDA_SUCCESS);
}

Test(pinned_seen, is_reported_as_such, .init = start)
{
        static struct sp_figures figures;
        unsigned int host_pools = 0;

        give(alloc(8, 0));
        alloc(2 * MIB, 0);
        sp_route_figures(&figures);
        for (unsigned int i = 0; i < figures.pools; i++)
                host_pools += figures.pool[i].class == SP_CLASS_HOST &&
                              figures.pool[i].allocs == 1 && figures.pool[i].reserved == 2 * MIB;
        cr_expect_eq(host_pools, 2);
        sp_route_reset_peaks();
        figures.pools = 0;
        sp_route_figures(&figures);
        for (unsigned int i = 0; i < figures.pools; i++)
                cr_expect_eq(figures.pool[i].requested_high, figures.pool[i].requested);
}

Test(pinned_seen, can_be_freed_without_a_context, .init = start)
{
        char *host = alloc(8, 0);

        cr_assert_eq(cuCtxSetCurrent(NULL), CUDA_SUCCESS);
        give(host);
        cr_expect_eq(totals().tally.freed, 1);
}

/* other contexts */

static CUcontext another(void)
{
        CUcontext made;

        cr_assert_eq(sp_on_cuCtxCreate_v2(&made, 0, 0), CUDA_SUCCESS);
        cr_assert_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
        return made;
}

/* A copy that the second context makes is not seen by waiting for the first. */
Test(pinned_seen, is_not_served_while_another_context_could_be_using_it, .init = start)
{
        char *host = alloc(8, 0), *next;
        CUcontext other = another();
        CUstream theirs;

        sim_oracle_alloc((uintptr_t)host, 8);
        cr_assert_eq(cuCtxSetCurrent(other), CUDA_SUCCESS);
        cr_assert_eq(cuStreamCreate(&theirs, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        copy_from(host, 8, theirs);
        cr_assert_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
        sim_oracle_free((uintptr_t)host);
        give(host);
        next = alloc(8, 0);
        cr_expect_neq(next, host);
        cr_expect_not(is_pooled(next));
        cr_expect_not(is_pooled(alloc(8, CU_MEMHOSTALLOC_PORTABLE)));
        cr_assert_eq(sp_on_cuCtxDestroy_v2(other), CUDA_SUCCESS);
        synchronise();
        cr_expect_eq(alloc(8, 0), host, "there is nobody else any more");
}

/* The runtime makes primary contexts by ways that nobody can watch. */
Test(pinned_seen, is_the_drivers_while_another_device_is_in_use, .init = start)
{
        CUcontext other;

        cr_expect(is_pooled(alloc(8, 0)));
        cr_assert_eq(sp_driver.cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
        cr_expect_not(is_pooled(alloc(8, 0)));
        cr_assert_eq(sp_driver.cuDevicePrimaryCtxRelease_v2(1), CUDA_SUCCESS);
        cr_expect(is_pooled(alloc(8, 0)));
}

Test(pinned_seen, is_the_drivers_beside_a_context_of_unknown_origin, .init = start)
{
        CUcontext other;
        CUstream theirs;

        cr_assert_eq(sp_driver.cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuStreamCreate(&theirs, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_assert_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
        cr_expect_not(is_pooled(alloc(8, 0)));
}

Test(pinned_seen, is_the_drivers_beside_a_primary_context, .init = start)
{
        CUcontext other = another();

        cr_assert_eq(cuCtxSetCurrent(other), CUDA_SUCCESS);
        cr_expect_not(is_pooled(alloc(8, 0)));
        cr_assert_eq(sp_driver.cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
}

static void start_made(void)
{
        cr_assert(sp_driver_load());
        cr_assert_eq(sp_driver.cuInit(0), CUDA_SUCCESS);
        cr_assert(sp_life_start());
        cr_assert_eq(sp_on_cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
        sim_calls_reset();
}

Test(pinned_seen, ends_with_its_context, .init = start_made)
{
        char *host = alloc(8, 0), *large = alloc(2 * MIB, 0);

        cr_assert(is_pooled(host) && is_pooled(large));
        cr_assert_eq(sp_on_cuCtxDestroy_v2(context), CUDA_SUCCESS);
        cr_expect_eq(sim_calls("cuMemFreeHost"), 0, "the driver has freed the chunks");
        cr_expect_eq(totals().released, 2, "it is no leak");
        cr_assert_eq(sp_on_cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
        cr_expect_eq(sp_on_cuMemFreeHost(large), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(found(SP_FINDING_AFTER_CONTEXT), 1);
        cr_expect(is_pooled(alloc(8, 0)), "a new context has new pools");
        cr_expect_eq(sim_live_allocations(), 1);
}

Test(pinned_seen, ends_with_a_reset, .init = start)
{
        alloc(8, 0);
        cr_assert_eq(sp_on_cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
        cr_expect_eq(totals().released, 1);
        cr_assert_eq(sp_driver.cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
        cr_assert_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
        cr_expect(is_pooled(alloc(8, 0)));
}

/* captures */

static void capture(CUstreamCaptureMode mode)
{
        cr_assert_eq(sp_on_cuStreamBeginCapture_v2(stream, mode), CUDA_SUCCESS);
}

Test(pinned_seen, is_the_drivers_in_a_capture, .init = start)
{
        char *host = alloc(8, 0), *other;
        CUgraph graph;
        void *refused;

        capture(CU_STREAM_CAPTURE_MODE_RELAXED);
        other = alloc(8, 0);
        cr_expect_not(is_pooled(other));
        give(host);
        give(other);
        cr_expect_eq(sp_on_cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);

        host = alloc(8, 0);
        capture(CU_STREAM_CAPTURE_MODE_GLOBAL);
        cr_expect_eq(sp_on_cuMemFreeHost(host), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        cr_expect_eq(sp_on_cuMemHostAlloc(&refused, 8, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        cr_expect_eq(sp_on_cuStreamEndCapture(stream, &graph),
                     CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        expect_allocation(host, 8);
        give(host);
}

/* off */

static void start_off(void)
{
        setenv("STREAMPOOL_PINNED", "off", 1);
        start();
}

static void start_observing(void)
{
        setenv("STREAMPOOL_MODE", "observe", 1);
        start();
}

static void expect_forwarded(void)
{
        for (unsigned int i = 1; i < 10; i++) {
                char *host = alloc(8, 0);

                cr_expect_not(is_pooled(host));
                give(host);
                cr_expect_eq(sim_calls("cuMemHostAlloc"), i);
                cr_expect_eq(sim_calls("cuMemFreeHost"), i);
        }
}

Test(pinned_seen, can_be_left_to_the_driver, .init = start_off)
{
        expect_forwarded();
}

Test(pinned_seen, is_only_watched_when_observing, .init = start_observing)
{
        expect_forwarded();
}
