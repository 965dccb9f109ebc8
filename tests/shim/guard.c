/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Guard -- what memory holds when it was served and when it was freed, and in whose order
 *
 * In virtual time nothing ends while nobody waits, so what a stream was given last is
 * pending still when a call has waited for nothing.
 */

#define _GNU_SOURCE

#include "route/guard.h"

#include <stdlib.h>
#include <string.h>

#include "route/redzone.h"
#include "tests/shim/pooling.h"
#include "tests/sim_driver/control.h"

#define SIZE ((size_t)1 << 20)
#define HALF (SIZE / 2)

static CUstream other;

static void begin(const char *poison)
{
        setenv("STREAMPOOL_POISON", poison, 1);
        begin_pooling();
        cr_assert_eq(sp_on_cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
}

static void begin_poison(void)
{
        begin("alloc,free");
}

TestSuite(guard, .init = begin_poison);

static CUdeviceptr take(void)
{
        CUdeviceptr pointer = 0;

        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, SIZE), CUDA_SUCCESS);
        return pointer;
}

static CUdeviceptr take_on(CUstream on)
{
        CUdeviceptr pointer = 0;

        cr_assert_eq(sp_on_cuMemAllocAsync(&pointer, SIZE, on), CUDA_SUCCESS);
        return pointer;
}

static void drop(CUdeviceptr pointer)
{
        cr_assert_eq(sp_on_cuMemFree_v2(pointer), CUDA_SUCCESS);
}

static void drop_on(CUdeviceptr pointer, CUstream on)
{
        cr_assert_eq(sp_on_cuMemFreeAsync(pointer, on), CUDA_SUCCESS);
}

/* What was freed is ready for anybody. */
static void settle(void)
{
        cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
}

/* Device memory of the simulated driver is the host's, at the same address. */
static bool holds(CUdeviceptr pointer, size_t size, unsigned char byte)
{
        const unsigned char *bytes = (const unsigned char *)(uintptr_t)pointer; // NOLINT

        return bytes[0] == byte && memcmp(bytes, bytes + 1, size - 1) == 0;
}

static void write_all(CUdeviceptr pointer, unsigned char byte)
{
        cr_assert_eq(sp_driver.cuMemsetD8_v2(pointer, byte, SIZE), CUDA_SUCCESS);
        sim_run_all();
}

static bool is_busy(CUstream on)
{
        sim_poll_cost(0);
        return sp_driver.cuStreamQuery(on) == CUDA_ERROR_NOT_READY;
}

/* For far longer than a fill takes. */
static void make_busy(CUstream on)
{
        uint64_t nanoseconds = UINT64_C(1000000000);
        void *arguments[] = {&nanoseconds};
        CUmodule module;
        CUfunction spin;

        cr_assert_eq(sp_driver.cuModuleLoadData(&module, ""), CUDA_SUCCESS);
        cr_assert_eq(cuModuleGetFunction(&spin, module, "spin"), CUDA_SUCCESS);
        launch_on(on);
        cr_assert_eq(sp_driver.cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, on, arguments, NULL),
                     CUDA_SUCCESS);
        cr_assert(is_busy(on));
}

Test(guard, a_synchronous_block_is_filled_when_the_call_returns_whatever_streams_do)
{
        CUdeviceptr pointer;

        make_busy(other);
        pointer = take();
        cr_expect(holds(pointer, SIZE, SP_POISON_SERVED));
        cr_expect(is_busy(other), "it was waited for");
}

Test(guard, a_synchronous_block_is_filled_when_it_is_freed_and_the_context_has_been_idle)
{
        CUdeviceptr pointer = take();

        write_all(pointer, 7);
        make_busy(other);
        drop(pointer);
        cr_expect_not(is_busy(other));
        cr_expect(holds(pointer, SIZE, SP_POISON_FREED));
}

Test(guard, an_asynchronous_block_is_filled_in_the_order_of_its_stream)
{
        CUdeviceptr pointer;

        make_busy(stream);
        pointer = take_on(stream);
        cr_expect_not(holds(pointer, SIZE, SP_POISON_SERVED), "too early");
        cr_expect(is_busy(stream), "it was waited for");
        drop_on(pointer, stream);
        cr_expect(is_busy(stream), "it was waited for");
        synchronise();
        cr_expect(holds(pointer, SIZE, SP_POISON_FREED));
        cr_expect_eq(take_on(stream), pointer);
        synchronise();
        cr_expect(holds(pointer, SIZE, SP_POISON_SERVED));
}

Test(guard, a_block_that_another_stream_frees_is_filled_in_the_order_of_that)
{
        CUdeviceptr pointer = take_on(stream);

        synchronise();
        make_busy(other);
        drop_on(pointer, other);
        synchronise();
        cr_expect(holds(pointer, SIZE, SP_POISON_SERVED));
        cr_assert_eq(sp_on_cuStreamSynchronize(other), CUDA_SUCCESS);
        cr_expect(holds(pointer, SIZE, SP_POISON_FREED));
}

Test(guard, only_what_was_asked_for_is_filled)
{
        CUdeviceptr pointer = take(), beside;

        write_all(pointer, 7);
        drop(pointer);
        settle();
        cr_assert_eq(sp_on_cuMemAlloc_v2(&beside, HALF + 1), CUDA_SUCCESS);
        cr_assert_eq(beside, pointer);
        cr_expect(holds(beside, HALF + 1, SP_POISON_SERVED));
        cr_expect(holds(beside + HALF + 1, HALF - 1, SP_POISON_FREED));
}

/* The driver's own free waits for nothing then, and neither does ours (A5). */
Test(guard, a_block_with_a_fill_pending_is_nobody_elses_after_a_free_without_a_stream)
{
        CUdeviceptr pointer;

        make_busy(stream);
        pointer = take_on(stream);
        drop(pointer);
        cr_expect(is_busy(stream), "it was waited for");
        cr_expect_neq(take_on(other), pointer, "its fills are still to come");
        synchronise();
        cr_expect(holds(pointer, SIZE, SP_POISON_FREED));
        cr_expect_eq(take_on(other), pointer);
}

Test(guard, memory_is_left_alone_while_something_captures)
{
        CUdeviceptr pointer = take();
        CUgraph graph;

        write_all(pointer, 7);
        cr_assert_eq(sp_on_cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED),
                     CUDA_SUCCESS);
        drop(pointer);
        cr_expect(holds(pointer, SIZE, 7));
        cr_expect_eq(sp_on_cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
}

Test(guard, an_allocation_does_not_fail_because_its_fill_does)
{
        CUdeviceptr pointer;

        sim_fail("cuStreamCreate", 1, CUDA_ERROR_OUT_OF_MEMORY);
        pointer = take();
        cr_expect_not(holds(pointer, SIZE, SP_POISON_SERVED));
        sim_fail("cuMemsetD8Async", 1, CUDA_ERROR_INVALID_VALUE);
        drop(pointer);
        cr_expect_not(holds(pointer, SIZE, SP_POISON_FREED));
        sim_fail("cuMemsetD8Async", 1, CUDA_ERROR_INVALID_VALUE);
        pointer = take_on(stream);
        drop_on(pointer, stream);
        cr_expect(holds(take(), SIZE, SP_POISON_SERVED), "it never fills again");
}

Test(guard, a_wrong_free_fills_nothing)
{
        CUdeviceptr pointer = take();

        write_all(pointer, 7);
        cr_expect_eq(sp_on_cuMemFree_v2(pointer + 512), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_on_cuMemFreeAsync(pointer + 512, stream), CUDA_ERROR_INVALID_VALUE);
        sim_run_all();
        cr_expect(holds(pointer, SIZE, 7));
        drop(pointer);
        sim_calls_reset();
        cr_expect_eq(sp_on_cuMemFree_v2(pointer), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sim_calls("cuMemsetD8Async"), 0);
}

/* other settings */

Test(guard_else, each_of_the_two_fills_is_asked_for_by_itself)
{
        CUdeviceptr pointer;

        begin("free");
        pointer = take();
        write_all(pointer, 7);
        drop(pointer);
        cr_expect(holds(pointer, SIZE, SP_POISON_FREED));
        settle();
        cr_assert_eq(take(), pointer);
        cr_expect(holds(pointer, SIZE, SP_POISON_FREED));
}

Test(guard_else, in_quarantine_memory_keeps_what_it_was_filled_with)
{
        CUdeviceptr pointer;

        setenv("STREAMPOOL_QUARANTINE", "1M", 1);
        begin("alloc,free");
        pointer = take();
        drop(pointer);
        settle();
        cr_expect_neq(take(), pointer);
        cr_expect(holds(pointer, SIZE, SP_POISON_FREED));
        cr_expect_eq(sp_on_cuMemFree_v2(pointer), CUDA_ERROR_INVALID_VALUE);
        pointer = take_on(stream);
        drop_on(pointer, stream);
        cr_expect_neq(take_on(stream), pointer);
        synchronise();
        cr_expect(holds(pointer, SIZE, SP_POISON_FREED));
}

/* redzones */

#define ZONE 1000

struct seen {
        unsigned int count;
        struct sp_finding last;
};

static void see(const struct sp_finding *finding, void *user)
{
        struct seen *seen = user;

        seen->count++;
        seen->last = *finding;
}

static struct seen findings(void)
{
        struct seen seen = {0};

        cr_assert(sp_ledger_each_finding(see, &seen));
        return seen;
}

static void begin_redzone(const char *poison)
{
        setenv("STREAMPOOL_REDZONE", "1000", 1);
        begin(poison);
}

/* As a kernel would that goes too far. */
static void write_on(CUdeviceptr at, size_t size, CUstream on)
{
        launch_on(on);
        cr_assert_eq(sp_driver.cuMemsetD8Async(at, 7, size, on), CUDA_SUCCESS);
}

static void expect_overrun(CUdeviceptr pointer, const char *function, uint64_t outside,
                           uint64_t beyond)
{
        struct seen seen = findings();

        cr_assert_eq(seen.count, 1);
        cr_expect_eq(seen.last.kind, SP_FINDING_OVERRUN);
        cr_expect_eq(seen.last.block.address, pointer);
        cr_expect_eq(seen.last.block.bytes, SIZE);
        cr_expect_str_eq(seen.last.function, function);
        cr_expect_eq(seen.last.outside, outside);
        cr_expect_eq(seen.last.beyond, beyond);
}

Test(guard_else, what_is_written_behind_a_synchronous_block_is_seen_when_it_is_freed)
{
        CUdeviceptr pointer;

        begin_redzone("");
        pointer = take();
        make_busy(other);
        write_on(pointer + 10, SIZE, other);
        drop(pointer);
        expect_overrun(pointer, "cuMemFree", SIZE, 10);
}

Test(guard_else, the_first_byte_and_the_last_one_are_told_of_all_that_was_asked_for)
{
        CUdeviceptr pointer;

        begin_redzone("alloc,free");
        pointer = take();
        write_on(pointer + SIZE + 3, 1, stream);
        write_on(pointer + SIZE + ZONE - 1, 1, stream);
        drop(pointer);
        expect_overrun(pointer, "cuMemFree", SIZE + 3, ZONE);
}

Test(guard_else, of_what_is_looked_at_in_pieces_none_is_left_out)
{
        CUdeviceptr pointer;

        setenv("STREAMPOOL_REDZONE", "12000", 1);
        begin("");
        pointer = take();
        write_on(pointer + SIZE + 5000, 6000, stream);
        drop(pointer);
        expect_overrun(pointer, "cuMemFree", SIZE + 5000, 11000);
}

Test(guard_else, behind_an_asynchronous_block_it_is_seen_later_and_nobody_waits)
{
        CUdeviceptr pointer;

        begin_redzone("");
        pointer = take_on(stream);
        make_busy(stream);
        write_on(pointer, SIZE + 1, stream);
        drop_on(pointer, stream);
        cr_expect(is_busy(stream), "it was waited for");
        for (int i = 0; i < 300; i++)
                drop_on(take_on(other), other);
        cr_expect(is_busy(stream), "it was waited for");
        cr_expect_eq(findings().count, 0);
        synchronise();
        for (int i = 0; i < 300; i++)
                drop_on(take_on(stream), stream);
        expect_overrun(pointer, "cuMemFreeAsync", SIZE, 1);
}

Test(guard_else, it_is_seen_at_the_end_if_nobody_has_looked_before)
{
        CUdeviceptr pointer;

        begin_redzone("free");
        pointer = take_on(stream);
        write_on(pointer + SIZE, 2, stream);
        drop(pointer);
        synchronise();
        cr_expect_eq(findings().count, 0);
        sim_calls_reset();
        sp_redzone_end();
        cr_expect_eq(sim_calls_all(), 0);
        expect_overrun(pointer, "cuMemFree", SIZE, 2);
}

Test(guard_else, a_copy_that_has_not_come_accuses_nobody)
{
        CUdeviceptr pointer;

        begin_redzone("");
        pointer = take_on(stream);
        synchronise();
        make_busy(stream);
        drop_on(pointer, stream);
        sp_redzone_end();
        cr_expect_eq(findings().count, 0);
}

Test(guard_else, what_was_not_filled_is_not_looked_at)
{
        begin_redzone("");
        sim_fail("cuMemsetD8Async", 1, CUDA_ERROR_INVALID_VALUE);
        drop(take());
        sim_fail("cuMemsetD8Async", 1, CUDA_ERROR_INVALID_VALUE);
        drop_on(take_on(stream), stream);
        synchronise();
        sp_redzone_end();
        cr_expect_eq(findings().count, 0);
}

Test(guard_else, more_frees_than_there_are_places_are_frees_all_the_same)
{
        CUdeviceptr pointer[400];

        begin_redzone("");
        for (int i = 0; i < 400; i++)
                pointer[i] = take_on(stream);
        make_busy(stream);
        for (int i = 0; i < 400; i++)
                drop_on(pointer[i], stream);
        cr_expect(is_busy(stream), "it was waited for");
        synchronise();
        cr_assert_eq(sp_on_cuMemAllocAsync(&pointer[0], SIZE, stream), CUDA_SUCCESS);
        write_on(pointer[0] + SIZE, 2, stream);
        drop_on(pointer[0], stream);
        synchronise();
        sp_redzone_end();
        expect_overrun(pointer[0], "cuMemFreeAsync", SIZE, 2);
}

Test(guard_else, where_there_is_no_room_for_a_redzone_the_pool_serves_without)
{
        CUdeviceptr pointer;

        setenv("STREAMPOOL_REDZONE", "1048576", 1);
        setenv("SIM_MEMORY", "8M", 1);
        begin("");
        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, 8 * MIB), CUDA_SUCCESS);
        cr_expect_eq(served_by_pools(), 1);
        drop(pointer);
        cr_expect_eq(findings().count, 0);
}

Test(guard_else, the_program_sees_the_size_that_it_asked_for)
{
        CUdeviceptr pointer, base;
        size_t size;

        begin_redzone("");
        pointer = take();
        cr_assert_eq(sp_on_cuMemGetAddressRange_v2(&base, &size, pointer), CUDA_SUCCESS);
        cr_expect_eq(base, pointer);
        cr_expect_eq(size, SIZE);
        cr_expect_eq(models(default_of(0), CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
        pointer = take_on(stream);
        cr_expect_eq(models(default_of(0), CU_MEMPOOL_ATTR_USED_MEM_CURRENT), SIZE);
}

/* The fill would not wait for the kernel that may use it still. */
Test(guard_else, what_was_freed_is_not_served_before_it_is_complete)
{
        CUdeviceptr pointer;

        begin("alloc");
        pointer = take();
        make_busy(stream);
        use_up_ready(SIZE);
        drop(pointer);
        cr_expect(is_busy(stream), "it was waited for");
        cr_expect_neq(take(), pointer);
        cr_expect(is_busy(stream), "it was waited for");
}

Test(guard_else, without_the_option_nothing_is_submitted)
{
        CUdeviceptr pointer;

        begin("");
        sim_calls_reset();
        pointer = take();
        drop(pointer);
        pointer = take_on(stream);
        drop_on(pointer, stream);
        cr_expect_eq(sim_calls("cuMemsetD8Async"), 0);
        cr_expect_eq(sim_calls("cuCtxSynchronize"), 0);
}
