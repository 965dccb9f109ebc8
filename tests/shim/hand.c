/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Hand -- blocks that a thread has at hand: when they are served, and what is known of them
 *
 * What the pool counts as pending of an idle device lies in magazines.
 */

#include <criterion/criterion.h>
#include <pthread.h>

#include "route/hand.h"
#include "tests/shim/pooling.h"
#include "track/ledger.h"

#define SIZE ((size_t)64 << 10)

TestSuite(hand, .init = begin_pooling);

static CUdeviceptr take_on(CUstream on)
{
        CUdeviceptr pointer = 0;

        cr_assert_eq(sp_on_cuMemAllocAsync(&pointer, SIZE, on), CUDA_SUCCESS);
        return pointer;
}

/* A block that lies in this thread's magazine for the stream. */
static CUdeviceptr keep(void)
{
        CUdeviceptr pointer;

        (void)take_on(stream); /* the magazine is made on the way */
        pointer = take_on(stream);
        cr_assert_eq(sp_on_cuMemFreeAsync(pointer, stream), CUDA_SUCCESS);
        return pointer;
}

static struct spm_stats stats_of(spm_pool pool)
{
        struct spm_stats stats;

        cr_assert_eq(spm_stats(sp_model_enter(), pool, &stats), SPM_OK);
        sp_model_leave();
        return stats;
}

static spm_pool default_pool(void)
{
        return sp_context_current()->device->async_pool;
}

Test(hand, what_was_freed_last_is_served_first)
{
        CUdeviceptr pointer = keep();

        cr_expect_geq(stats_of(default_pool()).pending_bytes, SIZE);
        cr_expect_eq(take_on(stream), pointer);
}

static struct sp_finding found;
static unsigned int findings;

static void note_finding(const struct sp_finding *finding, void *unused)
{
        (void)unused;
        found = *finding;
        findings++;
}

Test(hand, a_second_free_is_refused_and_says_where_the_first_was)
{
        static char here[2];
        CUdeviceptr pointer;

        sp_caller = &here[0];
        pointer = keep();
        sp_caller = &here[1];
        cr_expect_eq(sp_on_cuMemFreeAsync(pointer, stream), CUDA_ERROR_INVALID_VALUE);
        cr_assert(sp_ledger_each_finding(note_finding, NULL));
        cr_assert_eq(findings, 1);
        cr_expect_eq(found.kind, SP_FINDING_DOUBLE_FREE);
        cr_expect_eq(found.block.bytes, SIZE);
        cr_expect_eq(found.block.site, &here[0]);
        cr_expect_str_eq(found.freed_by, "cuMemFreeAsync");
        cr_expect_eq(found.freed_at, &here[0]);
        cr_expect_eq(found.site, &here[1]);
}

/* Frees of this thread that are remembered one by one are fewer. */
#define LONG_AGO (SP_HAND_PAST + 100)

Test(hand, a_second_free_long_after_the_first_is_still_one)
{
        static char here;
        CUdeviceptr pointer = keep(), other;

        for (unsigned int i = 0; i < LONG_AGO; i++) {
                cr_assert_eq(sp_on_cuMemAllocAsync(&other, 512, stream), CUDA_SUCCESS);
                cr_assert_neq(other, pointer);
                cr_assert_eq(sp_on_cuMemFreeAsync(other, stream), CUDA_SUCCESS);
        }
        sp_caller = &here;
        cr_expect_eq(sp_on_cuMemFreeAsync(pointer, stream), CUDA_ERROR_INVALID_VALUE);
        cr_assert(sp_ledger_each_finding(note_finding, NULL));
        cr_assert_eq(findings, 1);
        cr_expect_eq(found.kind, SP_FINDING_DOUBLE_FREE, "%s", sp_finding_name(found.kind));
        cr_expect_not(found.has_block);
        cr_expect_eq(found.site, &here);
}

Test(hand, what_is_in_no_memory_of_the_pools_is_foreign)
{
        cr_expect_eq(sp_on_cuMemFreeAsync(0x1234, stream), CUDA_ERROR_INVALID_VALUE);
        cr_assert(sp_ledger_each_finding(note_finding, NULL));
        cr_assert_eq(findings, 1);
        cr_expect_eq(found.kind, SP_FINDING_FOREIGN, "%s", sp_finding_name(found.kind));
}

static const void *leaked_site;

static void note_live(const struct sp_ledger_entry *entry, void *pointer)
{
        if (entry->address == *(CUdeviceptr *)pointer)
                leaked_site = entry->site;
}

Test(hand, whoever_holds_a_block_of_it_is_known)
{
        static char here;
        CUdeviceptr pointer = keep();
        struct sp_ledger_totals totals;

        sp_caller = &here;
        cr_assert_eq(take_on(stream), pointer);
        cr_assert(sp_ledger_each_live(note_live, &pointer));
        cr_expect_eq(leaked_site, &here);
        cr_assert(sp_ledger_totals(&totals));
        cr_expect_eq(totals.kind[SP_KIND_ASYNC].tally.count, 2);
        cr_expect_eq(totals.kind[SP_KIND_ASYNC].tally.made, 3);
        cr_expect_eq(totals.kind[SP_KIND_ASYNC].tally.made_bytes, 3 * SIZE);
        cr_expect_eq(totals.kind[SP_KIND_ASYNC].tally.freed, 1);
        cr_expect_eq(totals.kind[SP_KIND_ASYNC].pooled, 3);
        cr_expect_eq(totals.device[0].bytes, 2 * SIZE);
}

Test(hand, a_pool_that_becomes_current_is_served_from_at_once)
{
        CUmemoryPool pool = plain();
        CUdeviceptr kept = keep();
        spm_pool ours;

        cr_assert_eq(sp_on_cuDeviceSetMemPool(0, pool), CUDA_SUCCESS);
        cr_expect_neq(take_on(stream), kept);
        ours = sp_mempool_model(pool);
        cr_assert_neq(ours, 0);
        cr_expect_eq(stats_of(ours).used_current, SIZE);
}

Test(hand, while_something_captures_the_driver_serves)
{
        CUdeviceptr kept = keep();
        CUstream other;
        CUgraph graph;

        cr_assert_eq(sp_on_cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuStreamBeginCapture_v2(other, CU_STREAM_CAPTURE_MODE_RELAXED),
                     CUDA_SUCCESS);
        cr_expect_neq(take_on(stream), kept);
        cr_expect_eq(sim_calls("cuMemAllocAsync"), 1);
        cr_assert_eq(sp_on_cuStreamEndCapture(other, &graph), CUDA_SUCCESS);
        cr_expect_eq(take_on(stream), kept);
}

/* Its handle can be another stream's at once, which is not behind the work of the first. */
Test(hand, of_a_destroyed_stream_is_not_its_successors)
{
        uint64_t nanoseconds = 1000000;
        void *arguments[] = {&nanoseconds};
        CUdeviceptr kept = keep();
        CUstream old = stream;
        CUfunction spin;
        CUmodule module;

        cr_assert_eq(sp_driver.cuModuleLoadData(&module, ""), CUDA_SUCCESS);
        cr_assert_eq(cuModuleGetFunction(&spin, module, "spin"), CUDA_SUCCESS);
        cr_assert_eq(take_on(stream), kept);
        cr_assert_eq(sp_driver.cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL),
                     CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemFreeAsync(kept, stream), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuStreamDestroy_v2(stream), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_assert_eq(stream, old, "as on an H200");
        cr_expect_neq(take_on(stream), kept);
}

/* The alloc is behind the legacy stream's work, and the driver has not heard of it (H6). */
Test(hand, on_a_blocking_stream_the_stream_owes_an_operation)
{
        CUstream blocking;
        CUdeviceptr pointer;

        cr_assert_eq(sp_on_cuStreamCreate(&blocking, CU_STREAM_DEFAULT), CUDA_SUCCESS);
        (void)take_on(blocking);
        pointer = take_on(blocking);
        cr_assert_eq(sp_on_cuMemFreeAsync(pointer, blocking), CUDA_SUCCESS);
        atomic_store(&sp_stream_find(blocking)->owes, false);
        cr_assert_eq(take_on(blocking), pointer);
        cr_expect(atomic_load(&sp_stream_find(blocking)->owes));
}

static void *use_a_hand(void *context)
{
        cr_assert_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
        (void)keep();
        return NULL;
}

Test(hand, of_a_thread_that_ends_goes_back_to_the_pool)
{
        CUcontext context;
        pthread_t thread;

        cr_assert_eq(cuCtxGetCurrent(&context), CUDA_SUCCESS);
        for (int i = 0; i < 3; i++) {
                cr_assert_eq(pthread_create(&thread, NULL, use_a_hand, context), 0);
                pthread_join(thread, NULL);
        }
        cr_assert_eq(sp_on_cuStreamSynchronize(stream), CUDA_SUCCESS);
        cr_expect_eq(stats_of(default_pool()).pending_bytes, 0);
}
