/* SPDX-License-Identifier: Apache-2.0 */

/*
 * VMM, kept -- how much, for how long, and by how many threads
 */

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "route/tick.h"
#include "tests/shim/mapping.h"
#include "track/limit.h"

static void start_tight(void)
{
        setenv("STREAMPOOL_GROWTH", "tight", 1);
        start_mapping();
}

static void start_limited(void)
{
        setenv("STREAMPOOL_LIMIT", "34M", 1);
        start_mapping();
}

TestSuite(vmm_kept, .init = start_mapping);
TestSuite(vmm_tight, .init = start_tight);
TestSuite(vmm_limited, .init = start_limited);

/* how much */

Test(vmm_kept, no_more_than_64_MiB_of_a_device_the_oldest_goes)
{
        struct array arrays[5], other = make_on(1, 16 * MIB);

        for (int i = 0; i < 5; i++)
                arrays[i] = make(16 * MIB);
        for (int i = 0; i < 5; i++)
                give(arrays[i]);
        give(other);
        cr_expect_eq(sp_vmm_kept(1), 16 * MIB);
        cr_expect_eq(in_use(0), 64 * MIB);
        for (int i = 0; i < 4; i++) {
                struct array array = make(16 * MIB);

                cr_expect_eq(array.va, arrays[4 - i].va, "the youngest first");
        }
        cr_expect_eq(sp_vmm_kept(0), 0);
        cr_expect_eq(sp_vmm_kept(1), 16 * MIB);
}

Test(vmm_kept, memory_that_the_program_keeps_for_itself_is_unmapped_beyond_that)
{
        struct array arrays[5];

        for (int i = 0; i < 5; i++)
                arrays[i] = make(16 * MIB);
        sim_calls_reset();
        for (int i = 0; i < 5; i++)
                ok(sp_on_cuMemUnmap(arrays[i].va, arrays[i].size));
        cr_expect_eq(sim_calls("cuMemUnmap"), 1);
        cr_expect_eq(sp_vmm_kept(0), 0);
}

Test(vmm_kept, memory_that_is_not_released_does_not_go)
{
        struct array one = make(4 * MIB);

        ok(sp_on_cuMemUnmap(one.va, one.size));
        give(make(2 * MIB));
        sim_calls_reset();
        cr_expect_eq(sp_vmm_trim(0, 0), 2 * MIB);
        cr_expect_eq(sim_calls("cuMemUnmap"), 1);
}

/* 34 MiB together are the most that the program had; then it has 20, and 32 are kept. */
static void expect_kept_beside_more(uint64_t kept, uint64_t most)
{
        struct array small[4], large;

        for (int i = 0; i < 4; i++)
                small[i] = make(8 * MIB);
        for (int i = 0; i < 4; i++)
                give(small[i]);
        cr_expect_eq(sp_vmm_kept(0), 32 * MIB);
        sim_memory_high_reset(0);
        large = make(20 * MIB);
        cr_expect_eq(sp_vmm_kept(0), kept);
        give(large);
        give(make(32 * MIB));
        cr_expect_leq(in_use(0), most);
        cr_expect_leq(sim_memory_high(0), most);
}

Test(vmm_kept, hardly_more_than_the_program_itself_had_at_once)
{
        expect_kept_beside_more(24 * MIB, (34 + 16) * MIB);
}

Test(vmm_tight, never_more_than_the_program_itself_had_at_once)
{
        expect_kept_beside_more(8 * MIB, 34 * MIB);
}

/* What the program may have it gets. */
Test(vmm_limited, never_more_than_the_program_itself_had_at_once)
{
        expect_kept_beside_more(8 * MIB, 34 * MIB);
}

Test(vmm_kept, other_memory_of_the_program_counts_for_that)
{
        struct array large = make(40 * MIB), small;

        give(large);
        small = make(32 * MIB);
        give(small);
        cr_expect_eq(sp_vmm_kept(0), 32 * MIB);
        large = make(40 * MIB);
        cr_expect_eq(sp_vmm_kept(0), 0);
        cr_expect_eq(in_use(0), 40 * MIB);
}

/* for how long */

Test(vmm_kept, what_is_short_of_memory_gets_it)
{
        CUmemGenericAllocationHandle handle;
        CUdeviceptr pointer;
        struct array one;
        size_t pitch;

        give(make(4 * MIB));
        sim_fail("cuMemAllocPitch_v2", 1, CUDA_ERROR_OUT_OF_MEMORY);
        ok(sp_on_cuMemAllocPitch_v2(&pointer, &pitch, 64, 1, 4));
        cr_expect_eq(sp_vmm_kept(0), 0);

        give(make(4 * MIB));
        one = make_on(1, 4 * MIB);
        give(make_on(1, 4 * MIB));
        give(one);
        sim_fail("cuMemCreate", 1, CUDA_ERROR_OUT_OF_MEMORY);
        ok(create(&handle, 2 * MIB, 1));
        cr_expect_eq(sp_vmm_kept(1), 0, "whatever context is current");
        cr_expect_eq(sp_vmm_kept(0), 4 * MIB);
}

Test(vmm_kept, the_pools_grow_instead)
{
        CUdeviceptr pointer;

        give(make(4 * MIB));
        sim_fail("cuMemCreate", 1, CUDA_ERROR_OUT_OF_MEMORY);
        sim_fail("cuMemCreate", 2, CUDA_ERROR_OUT_OF_MEMORY);
        ok(sp_on_cuMemAlloc_v2(&pointer, MIB));
        cr_expect_eq(sp_vmm_kept(0), 0);
        ok(sp_on_cuMemFree_v2(pointer));
}

Test(vmm_kept, it_goes_with_the_context)
{
        CUcontext context;
        CUdeviceptr pointer;

        ok(sp_on_cuMemAlloc_v2(&pointer, MIB));
        give(make(4 * MIB));
        ok(sp_on_cuDevicePrimaryCtxReset_v2(0));
        cr_expect_eq(sp_vmm_kept(0), 0);
        ok(sp_driver.cuDevicePrimaryCtxRetain(&context, 0));
}

/* One tick is a tenth of the decay. */
Test(vmm_kept, what_is_idle_for_long_goes)
{
        struct array one = make(4 * MIB), two = make(2 * MIB);

        give(one);
        for (int i = 0; i < 5; i++)
                sp_vmm_tick();
        give(two);
        for (int i = 0; i < 5; i++)
                sp_vmm_tick();
        cr_expect_eq(sp_vmm_kept(0), 6 * MIB);
        sp_vmm_tick();
        cr_expect_eq(sp_vmm_kept(0), 2 * MIB);
        for (int i = 0; i < 5; i++)
                sp_vmm_tick();
        cr_expect_eq(sp_vmm_kept(0), 0);
}

Test(vmm_set, the_programs_waits_bring_the_time)
{
        setenv("STREAMPOOL_DECAY", "10ms", 1);
        start_mapping();
        give(make(4 * MIB));
        for (int i = 0; i < 10000 && sp_vmm_kept(0); i++) {
                const struct timespec moment = {.tv_nsec = 1000000};

                nanosleep(&moment, NULL);
                ok(sp_on_cuCtxSynchronize());
        }
        cr_expect_eq(in_use(0), 0);
}

/* where nothing is kept */

static void expect_passed_on(void)
{
        start_mapping();
        give(make(4 * MIB));
        give(make(4 * MIB));
        cr_expect_eq(sim_calls_all(), 14);
        cr_expect_eq(in_use(0), 0);
}

Test(vmm_set, nothing_if_it_is_not_wanted)
{
        setenv("STREAMPOOL_VMM", "pass", 1);
        expect_passed_on();
}

Test(vmm_set, nothing_by_who_only_looks)
{
        setenv("STREAMPOOL_MODE", "observe", 1);
        expect_passed_on();
}

Test(vmm_kept, nothing_while_something_captures)
{
        struct array one = make(4 * MIB), two = make(2 * MIB);
        CUstream stream;
        CUgraph graph;

        give(two);
        ok(sp_on_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        ok(sp_on_cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        give(one);
        cr_expect_eq(sp_vmm_kept(0), 2 * MIB);
        sim_calls_reset();
        two = make(2 * MIB);
        cr_expect_eq(sim_calls("cuMemCreate"), 1);
        ok(sp_on_cuStreamEndCapture(stream, &graph));
        give(two);
        cr_expect_eq(sp_vmm_kept(0), 4 * MIB);
}

Test(vmm_kept, nothing_once_a_context_has_failed)
{
        struct array array = make(4 * MIB);
        CUdeviceptr pointer;

        ok(sp_on_cuMemAlloc_v2(&pointer, MIB));
        sim_poison(CUDA_ERROR_ILLEGAL_ADDRESS);
        cr_expect_eq(sp_on_cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
        sim_calls_reset();
        sp_on_cuMemUnmap(array.va, array.size);
        sp_on_cuMemRelease(array.handle);
        sp_on_cuMemAddressFree(array.va, array.size);
        cr_expect_eq(sim_calls_all(), 3);
}

Test(vmm_kept, nothing_new_after_failing_open)
{
        struct array one = make(4 * MIB), two = make(2 * MIB);

        ok(sp_on_cuMemUnmap(one.va, one.size));
        sp_life_off("a test");
        give(two);
        ok(sp_on_cuMemRelease(one.handle));
        ok(sp_on_cuMemAddressFree(one.va, one.size));
        cr_expect_eq(in_use(0), 0);
}

/* threads */

static atomic_bool is_unmapping, may_unmap;
static CUresult (*unmap)(CUdeviceptr base, size_t size);

static CUresult CUDAAPI unmap_slowly(CUdeviceptr base, size_t size)
{
        atomic_store(&is_unmapping, true);
        while (!atomic_load(&may_unmap))
                sched_yield();
        return unmap(base, size);
}

static void *trim_slowly(void *unused)
{
        (void)unused;
        sp_vmm_trim(0, 0);
        return NULL;
}

static atomic_bool is_there, is_done;

static void *create_more(void *size)
{
        CUmemGenericAllocationHandle handle;

        atomic_store(&is_there, true);
        cr_expect_eq(create(&handle, *(const size_t *)size, 0), CUDA_SUCCESS);
        atomic_store(&is_done, true);
        return NULL;
}

static void *free_range(void *array)
{
        const struct array *freed = array;

        atomic_store(&is_there, true);
        cr_expect_eq(sp_on_cuMemAddressFree(freed->va, freed->size), CUDA_SUCCESS);
        atomic_store(&is_done, true);
        return NULL;
}

/* @work cannot be done before the driver has unmapped what is kept. @call: a function of the driver
 * that is called before that, or NULL. */
static void expect_to_wait(void *(*work)(void *), void *argument, const char *call)
{
        uint64_t calls = call ? sim_calls(call) : 0;
        const struct timespec moment = {.tv_nsec = 20000000};
        pthread_t trimmer, worker;

        unmap = sp_driver.cuMemUnmap;
        sp_driver.cuMemUnmap = unmap_slowly;
        cr_assert_eq(pthread_create(&trimmer, NULL, trim_slowly, NULL), 0);
        while (!atomic_load(&is_unmapping))
                sched_yield();
        cr_assert_eq(pthread_create(&worker, NULL, work, argument), 0);
        while (!atomic_load(&is_there) || (call && sim_calls(call) == calls))
                sched_yield();
        nanosleep(&moment, NULL);
        cr_expect_not(atomic_load(&is_done));
        atomic_store(&may_unmap, true);
        pthread_join(worker, NULL);
        pthread_join(trimmer, NULL);
}

Test(vmm_tight, the_peak_is_kept_while_another_thread_gives_back)
{
        size_t size = 34 * MIB;

        give(make(4 * MIB));
        sim_memory_high_reset(0);
        expect_to_wait(create_more, &size, NULL);
        cr_expect_leq(sim_memory_high(0), 34 * MIB);
}

Test(vmm_kept, what_another_thread_gives_back_is_waited_for)
{
        size_t size = 2 * MIB;

        give(make(4 * MIB));
        sim_fail("cuMemCreate", 1, CUDA_ERROR_OUT_OF_MEMORY);
        expect_to_wait(create_more, &size, "cuMemCreate");
}

Test(vmm_kept, addresses_that_the_program_still_has_are_unmapped_before_it_goes_on)
{
        struct array array = make(4 * MIB);

        ok(sp_on_cuMemUnmap(array.va, array.size));
        ok(sp_on_cuMemRelease(array.handle));
        expect_to_wait(free_range, &array, NULL);
}

#define THREADS 6
#define ROUNDS  300

static pthread_barrier_t barrier;
static atomic_bool is_over;

static void *work(void *seed)
{
        unsigned int random = (unsigned int)(uintptr_t)seed;
        CUcontext context;

        cr_assert_eq(sp_driver.cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
        cr_assert_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < ROUNDS; i++) {
                struct array one = make(2 * MIB * (1 + rand_r(&random) % 2));
                struct array two = make(2 * MIB);

                cr_assert_eq(cuMemsetD8_v2(one.va, 1, one.size), CUDA_SUCCESS);
                cr_assert_eq(cuMemsetD8_v2(two.va, 1, two.size), CUDA_SUCCESS);
                cr_assert_eq(cuCtxSynchronize(), CUDA_SUCCESS);
                give(one);
                give(two);
        }
        return NULL;
}

static void *trim(void *unused)
{
        (void)unused;
        while (!atomic_load(&is_over)) {
                sp_vmm_trim(0, 4 * MIB);
                sp_vmm_settle_range(0, SIZE_MAX);
        }
        return NULL;
}

Test(vmm_kept, many_threads_and_one_that_takes_it_all_away)
{
        pthread_t threads[THREADS], trimmer;

        pthread_barrier_init(&barrier, NULL, THREADS);
        cr_assert_eq(pthread_create(&trimmer, NULL, trim, NULL), 0);
        for (uintptr_t i = 0; i < THREADS; i++)
                cr_assert_eq(pthread_create(&threads[i], NULL, work, (void *)(i + 1)), 0);
        for (int i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
        atomic_store(&is_over, true);
        pthread_join(trimmer, NULL);
        sp_vmm_trim(0, 0);
        cr_expect_eq(in_use(0), 0);
        cr_expect_eq(sp_limit_counted(0), 0);
        cr_expect_eq(ledger().kind[SP_KIND_VMM].tally.bytes, 0);
        cr_expect_eq(ledger().kind[SP_KIND_MAPPED].tally.count, 0);
}
