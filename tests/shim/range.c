/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Range -- segments come and go in the addresses that a pool has for itself
 *
 * The lists of actions are made by hand, so that each step of carrying them out
 * can be made to fail.
 */

#include <criterion/criterion.h>

#include "report/counters.h"
#include "tests/shim/begin.h"
#include "tests/shim/growing.h"
#include "tests/sim_driver/control.h"
#include "track/backing.h"
#include "track/state.h"

#define MIB    ((size_t)1 << 20)
#define CHUNK  (8 * MIB)
#define MEMORY ((size_t)4 << 30) /* of a simulated device */
#define RANGE  (4 * MEMORY)

/* Not in the table of the shim, and by its plain name an older function. */
CUresult cuMemsetD8_v2(CUdeviceptr address, unsigned char value, size_t count);

void __real_spm_grow_failed(struct spm_model *model, struct spm_request *request);
void __wrap_spm_grow_failed(struct spm_model *model, struct spm_request *request);

static struct sp_context *context;
static unsigned int refusals;

void __wrap_spm_grow_failed(struct spm_model *model, struct spm_request *request)
{
        refusals++;
        __real_spm_grow_failed(model, request);
}

static void start(void)
{
        begin_on(0);
        context = sp_context_current();
        cr_assert_not_null(context);
}

TestSuite(range, .init = start);

/* A place that the model has not come to yet. */
static CUdeviceptr place(unsigned int number)
{
        return context->range.base + RANGE / 4 * 3 + number * CHUNK;
}

static void fill(CUdeviceptr address, size_t size)
{
        cr_expect_eq(cuMemsetD8_v2(address, 1, size), CUDA_SUCCESS);
        cr_expect_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
}

/* the range itself */

Test(range, is_several_times_the_memory_and_there_from_the_beginning)
{
        struct spm_pool_config config;

        cr_expect_eq(context->range.size, RANGE);
        cr_expect_eq(context->device->range.size, RANGE);
        cr_expect_neq(context->range.base, context->device->range.base);
        spm_pool_get_config(sp_model_enter(), context->sync_pool, &config);
        sp_model_leave();
        cr_expect_eq(config.range_base, context->range.base);
        cr_expect_eq(config.range_size, RANGE);
        spm_pool_get_config(sp_model_enter(), context->device->async_pool, &config);
        sp_model_leave();
        cr_expect_eq(config.range_base, context->device->range.base);
}

static void start_short_of_addresses(unsigned int times)
{
        for (unsigned int i = 1; i <= times; i++)
                sim_fail("cuMemAddressReserve", i, CUDA_ERROR_OUT_OF_MEMORY);
        start();
        sim_fail_none();
}

Test(few_addresses, make_a_smaller_range)
{
        start_short_of_addresses(2);
        cr_expect_eq(context->device->range.size, RANGE / 4);
        cr_expect_eq(context->range.size, RANGE);
}

/* Each of the two pools tries three sizes. */
Test(few_addresses, make_none_and_each_segment_has_its_own)
{
        CUdeviceptr one, other;

        start_short_of_addresses(6);
        cr_expect_eq(context->device->range.size, 0);
        cr_expect_eq(context->range.size, 0);
        cr_assert_eq(sp_on_cuMemAlloc_v2(&one, CHUNK), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemAllocAsync(&other, CHUNK, CU_STREAM_LEGACY), CUDA_SUCCESS);
        cr_expect_eq(served_by_pools(), 2);
        cr_expect_eq(sim_calls("cuMemAddressReserve"), 6 + 2);
        cr_expect_eq(sp_on_cuMemFree_v2(one), CUDA_SUCCESS);
        cr_expect_eq(sp_on_cuMemFree_v2(other), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
        cr_expect(sp_relieve());
        cr_expect_eq(sim_calls("cuMemAddressFree"), 2);
        cr_expect_eq(sp_on_cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
        cr_expect_eq(sim_calls("cuMemAddressFree"), 2, "there is no range to give back");
}

static bool is_reserved(CUdeviceptr base, size_t size)
{
        CUdeviceptr again = 0;

        cr_assert_eq(sp_driver.cuMemAddressReserve(&again, size, 0, base, 0), CUDA_SUCCESS);
        return again != base;
}

Test(range, is_given_back_with_the_context)
{
        CUdeviceptr pointer, base = context->range.base;
        size_t before = used();

        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, CHUNK), CUDA_SUCCESS);
        grow(context->sync_pool, place(0), CHUNK);
        cr_assert(is_reserved(base, RANGE));
        cr_assert_eq(sp_on_cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
        cr_expect_not(is_reserved(base, RANGE));
        cr_expect(is_reserved(context->device->range.base, RANGE), "the device's pool goes on");

        begin_on(0);
        cr_expect_eq(used(), before);
        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, CHUNK), CUDA_SUCCESS);
        cr_expect_neq(sp_context_current(), context);
        cr_expect_gt(sp_context_current()->range.size, 0);
}

/* Another thread is about to map a segment, or has one to give back. */
Test(range, stays_while_somebody_is_in_it)
{
        CUdeviceptr base = context->range.base;

        cr_assert_eq(sp_range_take(&context->range, place(7), CHUNK), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
        cr_expect(is_reserved(base, RANGE));
        cr_expect(sp_range_holds(&context->range, base + RANGE - 1));
        sp_range_give(&context->range, place(7), CHUNK);
        cr_expect_not(is_reserved(base, RANGE));
        cr_expect_eq(sp_range_take(&context->range, place(7), CHUNK), CUDA_ERROR_INVALID_CONTEXT,
                     "it is nobody's any more");
        cr_expect_not(sp_range_holds(&context->range, base));
}

/* growth at an address */

Test(range, grows_where_the_model_says)
{
        uint64_t reserved = sim_calls("cuMemAddressReserve");

        grow(context->sync_pool, place(3), CHUNK);
        cr_expect(is_mapped(place(3)) && is_mapped(place(4) - 1));
        cr_expect_not(is_mapped(place(3) - 1) || is_mapped(place(4)));
        cr_expect(model_has(place(3)) && model_has(place(4) - 1));
        cr_expect_eq(sim_calls("cuMemAddressReserve"), reserved);
        fill(place(3), CHUNK);
}

Test(range, of_a_device_is_not_that_of_its_contexts)
{
        struct spm_actions actions = {0};
        CUdeviceptr address = context->device->range.base + RANGE / 2;

        add_grow(&actions, context->device->async_pool, address, CHUNK);
        perform(&actions);
        cr_expect(model_has(address));
        cr_expect_eq(atomic_load(&context->range.users), 1);
        cr_expect_eq(atomic_load(&context->device->range.users), 2);
        cr_assert_eq(sp_on_cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
        begin_on(0);
        cr_expect(is_mapped(address), "it outlives contexts");
}

/* Of three, the second is refused, whichever step it is that fails; then the third is not tried. */
static void refuse_second(const char *symbol, int code)
{
        struct spm_actions actions = {0};
        size_t before = used();

        for (unsigned int i = 0; i < 3; i++)
                add_grow(&actions, context->sync_pool, place(i), CHUNK);
        sim_fail(symbol, 2, code);
        perform(&actions);
        cr_expect(is_mapped(place(0)) && model_has(place(0)), "%s", symbol);
        cr_expect_not(is_mapped(place(1)) || model_has(place(1)), "%s", symbol);
        cr_expect_not(is_mapped(place(2)) || model_has(place(2)), "%s", symbol);
        cr_expect_eq(used() - before, CHUNK, "%s", symbol);
        cr_expect_eq(refusals, 2, "%s", symbol);

        actions = forget(context->sync_pool);
        perform(&actions);
        cr_expect_eq(used(), before, "%s", symbol);
        cr_expect_eq(atomic_load(&context->range.users), 1, "%s", symbol);
}

Test(range, forgets_what_could_not_be_created)
{
        refuse_second("cuMemCreate", CUDA_ERROR_OUT_OF_MEMORY);
}

Test(range, forgets_what_could_not_be_mapped)
{
        refuse_second("cuMemMap", CUDA_ERROR_OUT_OF_MEMORY);
}

Test(range, forgets_what_could_not_be_made_accessible)
{
        refuse_second("cuMemSetAccess", CUDA_ERROR_INVALID_VALUE);
}

/* Of two requests that were sent to one place the second goes on without a word: the model would
 * take it for a lack of memory. */
Test(range, is_not_refused_where_somebody_was_faster)
{
        struct spm_actions actions = {0};
        size_t before = used();

        grow(context->sync_pool, place(1), CHUNK);
        sim_calls_reset();
        add_grow(&actions, context->sync_pool, place(0) + CHUNK / 2, CHUNK);
        add_grow(&actions, context->sync_pool, place(2), CHUNK);
        perform(&actions);
        cr_expect_eq(refusals, 0);
        cr_expect_not(is_mapped(place(1) - 1));
        cr_expect(model_has(place(2)));
        cr_expect_eq(sim_calls("cuMemCreate"), 1, "what the one could not use is the other's");
        cr_expect_eq(used() - before, 2 * CHUNK);
        cr_expect_eq(sp_counter_sum(SP_COUNTER_segments_moved), 0);
}

/* moves */

/* One idle segment at place 0; the list that releases it, in order to move it. */
static struct spm_actions begin_move(void)
{
        struct spm_actions actions = forget(context->sync_pool);

        perform(&actions);
        grow(context->sync_pool, place(0), CHUNK);
        actions = forget(context->sync_pool);
        cr_assert_eq(actions.count, 1);
        cr_assert_eq(actions.item[0].kind, SPM_ACT_RELEASE);
        cr_assert_eq(actions.item[0].address, place(0));
        actions.item[0].moves = true;
        sim_calls_reset();
        return actions;
}

Test(range, moves_memory_without_asking_for_it_again)
{
        struct spm_actions actions = begin_move();
        uint64_t moved = sp_counter_sum(SP_COUNTER_segments_moved);
        uint64_t obtained = sp_counter_sum(SP_COUNTER_segments_obtained);
        size_t before = used();

        add_grow(&actions, context->sync_pool, place(5), CHUNK);
        perform(&actions);
        cr_expect_not(is_mapped(place(0)));
        cr_expect(is_mapped(place(5)) && model_has(place(5)));
        fill(place(5), CHUNK);
        cr_expect_eq(sim_calls("cuMemCreate"), 0);
        cr_expect_eq(sim_calls("cuMemRelease"), 0);
        cr_expect_eq(sim_calls("cuMemAddressReserve") + sim_calls("cuMemAddressFree"), 0);
        cr_expect_eq(used(), before);
        cr_expect_eq(sp_counter_sum(SP_COUNTER_segments_moved), moved + 1);
        cr_expect_eq(sp_counter_sum(SP_COUNTER_segments_obtained), obtained);
}

Test(range, gives_back_what_nothing_moved_into)
{
        struct spm_actions actions = begin_move();
        size_t before = used();

        perform(&actions);
        cr_expect_eq(sim_calls("cuMemRelease"), 1);
        cr_expect_eq(before - used(), CHUNK);
        cr_expect_eq(sp_counter_sum(SP_COUNTER_segments_obtained),
                     sp_counter_sum(SP_COUNTER_segments_given_back));
}

Test(range, keeps_nothing_of_a_segment_that_only_goes)
{
        struct spm_actions actions = begin_move();

        actions.item[0].moves = false;
        add_grow(&actions, context->sync_pool, place(5), CHUNK);
        perform(&actions);
        cr_expect_eq(sim_calls("cuMemCreate"), 1);
        cr_expect_eq(sim_calls("cuMemRelease"), 1);
}

/* Memory for one is no memory for two. */
Test(range, moves_a_segment_to_one_place_only)
{
        struct spm_actions actions = begin_move();
        size_t before = used();

        add_grow(&actions, context->sync_pool, place(5), CHUNK);
        add_grow(&actions, context->sync_pool, place(6), CHUNK);
        perform(&actions);
        cr_expect_eq(sim_calls("cuMemCreate"), 1);
        cr_expect_eq(used() - before, CHUNK);
        fill(place(5), 2 * CHUNK);
}

/* What is kept for a move must not be what the move lacks. */
Test(range, gives_up_a_piece_of_another_size_on_a_full_device)
{
        struct spm_actions actions = begin_move();
        size_t before = used();

        sim_fail("cuMemCreate", 1, CUDA_ERROR_OUT_OF_MEMORY);
        add_grow(&actions, context->sync_pool, place(5), 2 * CHUNK);
        perform(&actions);
        cr_expect(model_has(place(5)));
        cr_expect_eq(sim_calls("cuMemCreate"), 2);
        cr_expect_eq(sim_calls("cuMemRelease"), 1);
        cr_expect_eq(used() - before, CHUNK);
}

Test(range, loses_the_memory_of_a_move_that_fails_and_nothing_else)
{
        struct spm_actions actions = begin_move();
        size_t before = used();

        sim_fail("cuMemMap", 1, CUDA_ERROR_INVALID_VALUE);
        add_grow(&actions, context->sync_pool, place(5), CHUNK);
        perform(&actions);
        cr_expect_not(is_mapped(place(5)) || model_has(place(5)));
        cr_expect_eq(before - used(), CHUNK);
        cr_expect_eq(atomic_load(&context->range.users), 1);
}

/* A full device: other pools give back what they hold idle, this one's is for the model to move. */
Test(range, takes_from_other_pools_before_its_own)
{
        struct spm_actions actions = {0};
        CUdeviceptr pointer;

        cr_assert_eq(sp_on_cuMemAllocAsync(&pointer, CHUNK, CU_STREAM_LEGACY), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemFreeAsync(pointer, CU_STREAM_LEGACY), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
        grow(context->sync_pool, place(0), CHUNK);
        sim_fail("cuMemCreate", 1, CUDA_ERROR_OUT_OF_MEMORY);
        add_grow(&actions, context->sync_pool, place(5), CHUNK);
        perform(&actions);
        cr_expect(model_has(place(0)) && model_has(place(5)));
        cr_expect_not(is_mapped(pointer));
}

/* what the program sees */

Test(range, holds_no_pointers_where_nothing_is_mapped)
{
        CUmemorytype type;

        cr_expect_eq(sp_on_cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, place(9)),
                     CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sim_calls("cuPointerGetAttribute"), 0, "the driver knows it as reserved");
        cr_expect_eq(sp_on_cuMemFree_v2(place(9)), CUDA_ERROR_INVALID_VALUE);
        cr_expect(sp_backing_reserves(place(9)));
        cr_expect(sp_backing_reserves(context->device->range.base));
        cr_expect_not(sp_backing_reserves(context->device->range.base - 1) &&
                      sp_backing_reserves(context->range.base - 1));
}
