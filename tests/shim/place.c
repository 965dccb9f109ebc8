/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Place -- two that want the same addresses, and memory that will not leave its own
 *
 * The lists of actions are made by hand, so that each step of carrying them out
 * can be made to fail.
 */

#include <criterion/criterion.h>
#include <sched.h>
#include <time.h>

#include "tests/shim/begin.h"
#include "tests/shim/growing.h"
#include "tests/sim_driver/control.h"
#include "track/backing.h"
#include "track/state.h"

#define MIB   ((size_t)1 << 20)
#define CHUNK (8 * MIB)
#define RANGE ((size_t)16 << 30)

void __real_spm_grow_failed(struct spm_model *model, struct spm_request *request);
void __wrap_spm_grow_failed(struct spm_model *model, struct spm_request *request);

static struct sp_context *context;
static unsigned int refusals, naps;
static size_t before;

void __wrap_spm_grow_failed(struct spm_model *model, struct spm_request *request)
{
        refusals++;
        __real_spm_grow_failed(model, request);
}

int __real_nanosleep(const struct timespec *time, struct timespec *rest);
int __wrap_nanosleep(const struct timespec *time, struct timespec *rest);

int __wrap_nanosleep(const struct timespec *time, struct timespec *rest)
{
        naps++;
        return __real_nanosleep(time, rest);
}

/* A place that the model has not come to yet. */
static CUdeviceptr place(unsigned int number)
{
        return context->range.base + RANGE / 4 * 3 + number * CHUNK;
}

static void start(void)
{
        begin_on(0);
        context = sp_context_current();
        cr_assert_not_null(context);
        before = used();
        grow(context->sync_pool, place(0), CHUNK);
        sim_calls_reset();
}

TestSuite(place, .init = start);

/* The list that releases place 0, which is idle. */
static struct spm_actions release(bool moves)
{
        struct spm_actions actions = forget(context->sync_pool);

        cr_assert_eq(actions.count, 1);
        cr_assert_eq(actions.item[0].address, place(0));
        actions.item[0].moves = moves;
        return actions;
}

static void perform_release(void)
{
        struct spm_actions actions = release(false);

        perform(&actions);
}

static void fail_unmapping(unsigned int times)
{
        for (unsigned int i = 1; i <= times; i++)
                sim_fail("cuMemUnmap", i, CUDA_ERROR_UNKNOWN);
}

/* Each request would ask for memory and give it back again, for nothing. */
Test(place, that_is_taken_costs_no_driver_call)
{
        grow(context->sync_pool, place(0), CHUNK);
        grow(context->sync_pool, place(0) + CHUNK / 2, CHUNK);
        grow(context->sync_pool, place(0) - CHUNK / 2, CHUNK);
        cr_expect_eq(sim_calls("cuMemCreate") + sim_calls("cuMemMap"), 0);
        cr_expect_eq(refusals, 0, "a lack of memory is something else");
        cr_expect_eq(atomic_load(&context->range.users), 2);
}

/* The model may have something else in mind by then; but not if nobody got on. */
Test(place, that_is_taken_is_waited_for_once_if_at_all)
{
        struct spm_actions actions = {0};

        for (unsigned int i = 0; i < 10; i++)
                add_grow(&actions, context->sync_pool, place(0), CHUNK);
        perform(&actions);
        cr_expect_eq(naps, 1);
        add_grow(&actions, context->sync_pool, place(1), CHUNK);
        perform(&actions);
        cr_expect_eq(naps, 1);
        cr_expect(model_has(place(1)));
}

Test(place, can_be_taken_again_once_it_was_left)
{
        perform_release();
        cr_expect_eq(used(), before);
        grow(context->sync_pool, place(0), CHUNK);
        cr_expect(is_mapped(place(0)) && model_has(place(0)));
}

/* It would be sent there again and again: nobody else is on the way. */
Test(place, is_refused_where_the_driver_will_not_map)
{
        sim_fail("cuMemMap", 1, CUDA_ERROR_INVALID_VALUE);
        grow(context->sync_pool, place(1), CHUNK);
        cr_expect_eq(refusals, 1);
        grow(context->sync_pool, place(1), CHUNK);
        cr_expect_eq(refusals, 1);
        cr_expect(is_mapped(place(1)) && model_has(place(1)));
}

Test(place, is_cleared_when_it_is_wanted)
{
        fail_unmapping(1);
        perform_release();
        cr_assert(is_mapped(place(0)));
        cr_expect_eq(used(), before + CHUNK);
        grow(context->sync_pool, place(0) - CHUNK / 2, CHUNK);
        cr_expect(model_has(place(0)) && is_mapped(place(0)) && is_mapped(place(0) - 1));
        cr_expect_not(is_mapped(place(1) - 1));
        cr_expect_eq(used(), before + CHUNK);
        cr_expect_eq(refusals, 0);
        cr_expect_eq(atomic_load(&context->range.users), 2);
}

Test(place, is_refused_where_something_will_not_leave)
{
        fail_unmapping(3);
        perform_release();
        grow(context->sync_pool, place(0), CHUNK);
        grow(context->sync_pool, place(0), CHUNK);
        cr_expect_eq(refusals, 2);
        grow(context->sync_pool, place(1), CHUNK);
        cr_expect(model_has(place(1)), "that is somewhere else");
        grow(context->sync_pool, place(0), CHUNK);
        cr_expect(model_has(place(0)));
        cr_expect_eq(refusals, 2);
}

Test(place, that_is_not_left_is_no_memory_for_a_move)
{
        struct spm_actions actions = release(true);

        fail_unmapping(1);
        add_grow(&actions, context->sync_pool, place(5), CHUNK);
        perform(&actions);
        cr_expect(model_has(place(5)));
        cr_expect_eq(sim_calls("cuMemCreate"), 1);
        cr_expect_eq(used(), before + 2 * CHUNK);
}

/* The program does not notice, and does not pay for it ever after. */
Test(place, that_is_not_left_costs_an_allocation_little)
{
        CUdeviceptr pointer;

        perform_release();
        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, CHUNK), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemFree_v2(pointer), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
        fail_unmapping(60);
        sp_trim_pool(context->sync_pool, 0);
        for (int i = 0; i < 5; i++) {
                uint64_t calls = sim_calls_all();

                cr_expect_eq(sp_on_cuMemAlloc_v2(&pointer, 2 * CHUNK), CUDA_SUCCESS);
                cr_expect_lt(sim_calls_all() - calls, 200);
        }
}

/* When the wait for it has begun. Asks of the driver would not be allowed on its own thread. */
static void CUDA_CB note_unmapped(void *user)
{
        while (!sim_calls("cuCtxSynchronize"))
                sched_yield();
        *(uint64_t *)user = sim_calls("cuMemUnmap");
}

/* Others may have been sent there, and the wait can be as long as the program's own work. */
Test(place, is_left_before_a_wait)
{
        struct spm_actions actions = release(false);
        uint64_t unmapped = 0;

        actions.item[1] = actions.item[0];
        actions.item[0] =
                (struct spm_action){.kind = SPM_ACT_SYNC_CONTEXT, .context = context->model};
        actions.count = 2;
        cr_assert_eq(cuLaunchHostFunc(CU_STREAM_LEGACY, note_unmapped, &unmapped), CUDA_SUCCESS);
        perform(&actions);
        cr_expect_eq(sim_calls("cuCtxSynchronize"), 1);
        cr_expect_eq(sim_calls("cuMemUnmap"), 1);
        cr_expect_eq(unmapped, 1);
}
