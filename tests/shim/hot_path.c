/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Hot path -- does a pooled allocation cost what on_memory.c says?
 *
 * Counted, not timed: driver calls by the simulated driver, locks and host
 * allocations by wrappers that the linker puts around sp_lock_take(), calloc()
 * and malloc() of this program.
 */

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/lock.h"
#include "route/hand.h"
#include "tests/shim/begin.h"
#include "tests/sim_driver/control.h"

static unsigned int locks, allocations;

void __real_sp_lock_take(struct sp_lock *lock);
void __wrap_sp_lock_take(struct sp_lock *lock);
bool __real_sp_lock_take_bounded(struct sp_lock *lock, unsigned int milliseconds);
bool __wrap_sp_lock_take_bounded(struct sp_lock *lock, unsigned int milliseconds);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void __wrap_sp_lock_take(struct sp_lock *lock)
{
        locks++;
        __real_sp_lock_take(lock);
}

bool __wrap_sp_lock_take_bounded(struct sp_lock *lock, unsigned int milliseconds)
{
        locks++;
        return __real_sp_lock_take_bounded(lock, milliseconds);
}

void *__wrap_calloc(size_t count, size_t size)
{
        allocations++;
        return __real_calloc(count, size);
}

void *__wrap_malloc(size_t size)
{
        allocations++;
        return __real_malloc(size);
}

static CUstream stream;

static void start(void)
{
        begin_on(0);
        cr_assert_eq(sp_on_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
}

static void count_from_here(void)
{
        locks = 0;
        allocations = 0;
        sim_calls_reset();
}

/* One block, freed and known to be idle: the next allocation finds it. */
static void warm(size_t size)
{
        get_at_hand(size);
        cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
}

Test(hot_path, a_pair_of_cuMemAlloc_and_cuMemFree_takes_no_lock, .init = start)
{
        CUdeviceptr pointer;

        warm(4096);
        count_from_here();
        for (int i = 0; i < 50; i++) { /* fewer than SP_TICK_CALLS */
                cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, 4096), CUDA_SUCCESS);
                cr_assert_eq(sp_on_cuMemFree_v2(pointer), CUDA_SUCCESS);
        }
        cr_expect_eq(locks, 0, "%u locks", locks);
        cr_expect_eq(sim_calls("cuCtxGetCurrent"), 50);
        cr_expect_eq(sim_calls_all(), 50, "%llu driver calls", (unsigned long long)sim_calls_all());
        cr_expect_eq(allocations, 0, "%u host allocations", allocations);
}

static pthread_barrier_t barrier;

static void *have_at_hand(void *context)
{
        cr_assert_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
        get_at_hand(4096);
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        return NULL;
}

static unsigned int locks_of_pairs(int count)
{
        CUdeviceptr pointer;

        count_from_here();
        for (int i = 0; i < count; i++) {
                cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, 4096), CUDA_SUCCESS);
                cr_assert_eq(sp_on_cuMemFree_v2(pointer), CUDA_SUCCESS);
        }
        return locks;
}

/* Where several streams have work, what is freed waits for all of it, and a lock is taken for a
 * number of calls, if threads have waited for one another at that for a quarter of them. */
Test(hot_path, threads_that_wait_for_one_another_take_fewer_locks, .init = start)
{
        enum { PAIRS = 4 * SP_HAND_LOOK };
        unsigned int least = ~0u, most = 0;
        CUcontext context;
        pthread_t other;

        pthread_barrier_init(&barrier, NULL, 2);
        cr_assert_eq(cuCtxGetCurrent(&context), CUDA_SUCCESS);
        cr_assert_eq(pthread_create(&other, NULL, have_at_hand, context), 0);
        pthread_barrier_wait(&barrier);
        warm(4096);
        launch_on(stream);
        launch_on(CU_STREAM_LEGACY);
        sp_lock_waits += SP_HAND_LOOK / 4 - 1;
        most = locks_of_pairs(PAIRS);
        cr_expect_geq(most, 2 * PAIRS, "%u locks", most);
        sp_lock_waits += SP_HAND_LOOK / 4;
        (void)locks_of_pairs(PAIRS);
        least = locks_of_pairs(PAIRS);
        cr_expect_leq(least, PAIRS / 2, "%u locks", least);
        cr_expect_leq(sim_calls_all(), PAIRS + PAIRS / 8, "%llu driver calls",
                      (unsigned long long)sim_calls_all());
        pthread_barrier_wait(&barrier);
        pthread_join(other, NULL);
}

/* More than a magazine holds. */
Test(hot_path, a_large_cuMemAlloc_takes_one_lock_and_one_driver_call, .init = start)
{
        CUdeviceptr pointer;

        warm(8 << 20);
        count_from_here();
        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, 8 << 20), CUDA_SUCCESS);
        cr_expect_eq(locks, 1, "%u locks", locks);
        cr_expect_eq(sim_calls_all(), 1, "%llu driver calls", (unsigned long long)sim_calls_all());
        cr_expect_eq(sim_calls("cuCtxGetCurrent"), 1);
        cr_expect_eq(allocations, 0, "%u host allocations", allocations);
}

Test(hot_path, a_large_cuMemFree_takes_one_lock_and_no_driver_call, .init = start)
{
        CUdeviceptr pointer;

        warm(8 << 20);
        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, 8 << 20), CUDA_SUCCESS);
        count_from_here();
        cr_assert_eq(sp_on_cuMemFree_v2(pointer), CUDA_SUCCESS);
        cr_expect_eq(locks, 1, "%u locks", locks);
        cr_expect_eq(sim_calls_all(), 0, "%llu driver calls", (unsigned long long)sim_calls_all());
        cr_expect_eq(allocations, 0, "%u host allocations", allocations);
}

/* R1: what the only stream that has work is given next runs after all that can touch the block. */
Test(hot_path, a_pair_while_one_stream_has_work_asks_for_the_context, .init = start)
{
        CUdeviceptr pointer, again;

        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, 1 << 20), CUDA_SUCCESS);
        use_up_ready(1 << 20);
        launch_on(stream);
        cr_assert_eq(sp_on_cuMemFree_v2(pointer), CUDA_SUCCESS);
        count_from_here();
        for (int i = 0; i < 100; i++) {
                cr_assert_eq(sp_on_cuMemAlloc_v2(&again, 1 << 20), CUDA_SUCCESS);
                cr_expect_eq(again, pointer);
                cr_assert_eq(sp_on_cuMemFree_v2(again), CUDA_SUCCESS);
        }
        cr_expect_eq(sim_calls_all(), sim_calls("cuCtxGetCurrent"));
}

/* One event before the launch, so that the end of R1 never waits for what is launched later. */
Test(hot_path, a_launch_after_such_a_pair_records_one_event, .init = start)
{
        CUdeviceptr pointer;

        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, 1 << 20), CUDA_SUCCESS);
        use_up_ready(1 << 20);
        for (int i = 0; i < 10; i++) {
                launch_on(stream);
                launch_on(stream);
                cr_assert_eq(sp_on_cuMemFree_v2(pointer), CUDA_SUCCESS);
                cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, 1 << 20), CUDA_SUCCESS);
        }
        count_from_here();
        for (int i = 0; i < 10; i++) {
                launch_on(stream);
                launch_on(stream);
                cr_assert_eq(sp_on_cuMemFree_v2(pointer), CUDA_SUCCESS);
                cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, 1 << 20), CUDA_SUCCESS);
        }
        cr_expect_eq(sim_calls("cuEventRecord"), 10);
        cr_expect_eq(sim_calls("cuCtxRecordEvent") + sim_calls("cuEventQuery"), 0);
}

/* From then on everything in the context runs after what was served early. */
Test(hot_path, a_second_stream_is_made_to_wait_once, .init = start)
{
        CUdeviceptr pointer;
        CUstream other;

        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, 1 << 20), CUDA_SUCCESS);
        use_up_ready(1 << 20);
        launch_on(stream);
        cr_assert_eq(sp_on_cuMemFree_v2(pointer), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, 1 << 20), CUDA_SUCCESS);
        launch_on(stream);
        cr_assert_eq(sp_on_cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        count_from_here();
        launch_on(other);
        launch_on(other);
        cr_expect_eq(sim_calls("cuStreamWaitEvent"), 1);
        cr_expect_eq(sim_calls("cuCtxWaitEvent") + sim_calls("cuEventSynchronize"), 0);
        cr_expect_eq(sim_calls("cuEventRecord") + sim_calls("cuCtxRecordEvent"), 0);
}

Test(hot_path, a_batch_of_frees_records_one_event, .init = start)
{
        enum { FREES = 128 }; /* STREAMPOOL_BATCH */
        CUdeviceptr pointers[FREES];

        for (int i = 0; i < FREES; i++)
                cr_assert_eq(sp_on_cuMemAlloc_v2(&pointers[i], 512), CUDA_SUCCESS);
        launch_on(stream);
        launch_on(CU_STREAM_LEGACY);
        count_from_here();
        for (int i = 0; i < FREES; i++)
                cr_assert_eq(sp_on_cuMemFree_v2(pointers[i]), CUDA_SUCCESS);
        cr_expect_eq(sim_calls("cuCtxRecordEvent"), 1);
        cr_expect_eq(sim_calls("cuMemFree_v2"), 0);
        cr_expect_eq(sim_calls("cuCtxSynchronize"), 0);
}

static void pair(size_t size)
{
        CUdeviceptr pointer;

        cr_assert_eq(sp_on_cuMemAllocAsync(&pointer, size, stream), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemFreeAsync(pointer, stream), CUDA_SUCCESS);
}

/* What this thread has at hand. */
Test(hot_path, an_asynchronous_pair_takes_no_lock_and_no_driver_call, .init = start)
{
        pair(64 << 10);
        pair(64 << 10);
        count_from_here();
        for (int i = 0; i < 50; i++) /* fewer than SP_TICK_CALLS */
                pair(64 << 10);
        cr_expect_eq(locks, 0, "%u locks", locks);
        cr_expect_eq(sim_calls_all(), 0, "%llu driver calls", (unsigned long long)sim_calls_all());
        cr_expect_eq(allocations, 0, "%u host allocations", allocations);
}

/* More than a magazine holds. */
Test(hot_path, a_large_asynchronous_pair_takes_two_locks_and_no_driver_call, .init = start)
{
        pair(8 << 20);
        pair(8 << 20);
        count_from_here();
        pair(8 << 20);
        cr_expect_eq(locks, 2, "%u locks", locks);
        cr_expect_eq(sim_calls_all(), 0, "%llu driver calls", (unsigned long long)sim_calls_all());
        cr_expect_eq(allocations, 0, "%u host allocations", allocations);
}

/* The second device is asked whether it has a context. */
Test(hot_path, a_page_locked_block_takes_one_lock_and_two_driver_calls, .init = start)
{
        void *host;

        cr_assert_eq(sp_on_cuMemHostAlloc(&host, 8, 0), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemFreeHost(host), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
        count_from_here();
        cr_assert_eq(sp_on_cuMemHostAlloc(&host, 8, 0), CUDA_SUCCESS);
        cr_expect_eq(locks, 1, "%u locks", locks);
        cr_expect_eq(sim_calls_all(), 2, "%llu driver calls", (unsigned long long)sim_calls_all());
        cr_expect_eq(sim_calls("cuDevicePrimaryCtxGetState"), 1);
        count_from_here();
        cr_assert_eq(sp_on_cuMemFreeHost(host), CUDA_SUCCESS);
        cr_expect_eq(locks, 1, "%u locks", locks);
        cr_expect_eq(sim_calls_all(), 0, "%llu driver calls", (unsigned long long)sim_calls_all());
        cr_expect_eq(allocations, 0, "%u host allocations", allocations);
}

/* Caching allocators ask about events at every allocation. */
Test(hot_path, a_question_about_an_event_is_one_driver_call, .init = start)
{
        CUevent event;

        cr_assert_eq(sp_driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuEventRecord(event, stream), CUDA_SUCCESS);
        count_from_here();
        cr_assert_eq(sp_on_cuEventSynchronize(event), CUDA_SUCCESS);
        locks = 0;
        cr_assert_eq(sp_on_cuEventQuery(event), CUDA_SUCCESS);
        cr_expect_eq(locks, 3, "%u locks", locks);
        cr_expect_eq(sim_calls_all(), 2, "%llu driver calls", (unsigned long long)sim_calls_all());
}

Test(hot_path, a_record_and_a_wait_are_one_driver_call_each, .init = start)
{
        CUevent event;

        cr_assert_eq(sp_driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuEventRecord(event, stream), CUDA_SUCCESS);
        count_from_here();
        cr_assert_eq(sp_on_cuEventRecord(event, stream), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuStreamWaitEvent(stream, event, 0), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuStreamQuery(stream), CUDA_SUCCESS);
        cr_expect_eq(sim_calls_all(), 3, "%llu driver calls", (unsigned long long)sim_calls_all());
}

Test(hot_path, a_pair_on_one_stream_asks_the_driver_nothing, .init = start)
{
        CUdeviceptr pointer;

        cr_assert_eq(sp_on_cuMemAllocAsync(&pointer, 4096, stream), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemFreeAsync(pointer, stream), CUDA_SUCCESS);
        count_from_here();
        for (int i = 0; i < 100; i++) {
                cr_assert_eq(sp_on_cuMemAllocAsync(&pointer, 4096, stream), CUDA_SUCCESS);
                cr_assert_eq(sp_on_cuMemFreeAsync(pointer, stream), CUDA_SUCCESS);
        }
        cr_expect_eq(sim_calls_all(), 0, "%llu driver calls", (unsigned long long)sim_calls_all());
}

static void pairs(CUstream where, unsigned int count)
{
        CUdeviceptr pointer;

        for (unsigned int i = 0; i < count; i++) {
                cr_assert_eq(sp_on_cuMemAllocAsync(&pointer, 4096, where), CUDA_SUCCESS);
                cr_assert_eq(sp_on_cuMemFreeAsync(pointer, where), CUDA_SUCCESS);
        }
}

Test(hot_path, a_pair_on_the_legacy_stream_asks_for_the_context, .init = start)
{
        pairs(CU_STREAM_LEGACY, 1);
        launch_on(CU_STREAM_LEGACY);
        launch_on(stream);
        count_from_here();
        pairs(CU_STREAM_LEGACY, 100);
        cr_expect_eq(sim_calls_all(), sim_calls("cuCtxGetCurrent"));
        cr_expect_leq(sim_calls_all(), 2 * 100);
}

static void count_at_hand(CUstream handle)
{
        pairs(handle, 2);
        count_from_here();
        pairs(handle, 100);
        cr_expect_eq(locks, 0, "%u locks on %p", locks, (void *)handle);
        cr_expect_eq(sim_calls("cuCtxGetCurrent"), 2 * 100);
        cr_expect_eq(sim_calls_all(), 2 * 100);
}

Test(hot_path, a_pair_on_a_default_stream_takes_no_lock, .init = start)
{
        pairs(CU_STREAM_LEGACY, 1);
        cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
        count_at_hand(CU_STREAM_LEGACY);
        count_at_hand(CU_STREAM_PER_THREAD);
}

/* It is another stream there. */
Test(hot_path, what_is_at_hand_on_a_default_stream_is_of_its_context, .init = start)
{
        CUdeviceptr here, there;
        CUcontext other;

        pairs(CU_STREAM_LEGACY, 1);
        cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
        pairs(CU_STREAM_LEGACY, 2);
        cr_assert_eq(sp_on_cuMemAllocAsync(&here, 4096, CU_STREAM_LEGACY), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemFreeAsync(here, CU_STREAM_LEGACY), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemAllocAsync(&there, 4096, CU_STREAM_LEGACY), CUDA_SUCCESS);
        cr_expect_neq(there, here);
        cr_expect_eq(sp_on_cuMemFreeAsync(there, CU_STREAM_LEGACY), CUDA_SUCCESS);
        cr_expect_eq(sp_on_cuCtxDestroy_v2(other), CUDA_SUCCESS);
}

/* Allocations and frees there would have ordered streams that wait for it (H6). */
Test(hot_path, a_pair_on_the_legacy_stream_beside_one_that_blocks_is_two_events, .init = start)
{
        CUstream blocking;

        cr_assert_eq(sp_on_cuStreamCreate(&blocking, CU_STREAM_DEFAULT), CUDA_SUCCESS);
        pairs(CU_STREAM_LEGACY, 1);
        launch_on(blocking);
        pairs(CU_STREAM_LEGACY, 100); /* until there are events enough */
        count_from_here();
        pairs(CU_STREAM_LEGACY, 100);
        cr_expect_eq(sim_calls("cuEventRecord"), 200);
        cr_expect_eq(sim_calls("cuStreamWaitEvent"), 0);
        /* The rest asks for the context, twice a call. */
        cr_expect_leq(sim_calls_all(), 6 * 100 + 10, "%llu driver calls",
                      (unsigned long long)sim_calls_all());
        /* Until the program has waited, and that one has had no work since. */
        for (int i = 0; i < 2; i++) {
                launch_on(CU_STREAM_LEGACY);
                cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
        }
        count_from_here();
        pairs(CU_STREAM_LEGACY, 100);
        cr_expect_eq(sim_calls("cuEventRecord"), 0);
}

/* What one of them has is no work of the other. */
Test(hot_path, a_pair_on_the_legacy_stream_of_each_of_two_contexts_is_no_event, .init = start)
{
        CUcontext contexts[2];

        cr_assert_eq(sp_driver.cuCtxGetCurrent(&contexts[0]), CUDA_SUCCESS);
        cr_assert_eq(sp_driver.cuDevicePrimaryCtxRetain(&contexts[1], 1), CUDA_SUCCESS);
        for (int i = 0; i < 20; i++) {
                cr_assert_eq(cuCtxSetCurrent(contexts[i % 2]), CUDA_SUCCESS);
                launch_on(CU_STREAM_LEGACY);
                pairs(CU_STREAM_LEGACY, 1);
                cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
        }
        count_from_here();
        for (int i = 0; i < 20; i++) {
                cr_assert_eq(cuCtxSetCurrent(contexts[i % 2]), CUDA_SUCCESS);
                launch_on(CU_STREAM_LEGACY);
                pairs(CU_STREAM_LEGACY, 10);
        }
        cr_expect_eq(sim_calls("cuEventRecord"), 0);
        cr_expect_eq(sim_calls("cuCtxRecordEvent"), 0);
}
