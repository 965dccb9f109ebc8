/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Control -- layouts and windows of persistent memory while the program runs
 *
 * Installations go through the test, which can have the host be short of memory for one of them.
 */

#define STREAMPOOL_API /* linked with the library, not loaded with it */

#include <criterion/criterion.h>
#include <streampool/streampool.h>
#include <string.h>

#include "route/hand.h"
#include "tests/shim/pooling.h"
#include "track/layout.h"

static char why[256];
static unsigned int fail_at; /* the n-th installation from now on; 0: none */

enum spm_status __real_spm_pool_install(struct spm_model *model, spm_pool pool,
                                        const struct spm_layout *layout,
                                        struct spm_layout_error *error,
                                        struct spm_actions *actions);
enum spm_status __wrap_spm_pool_install(struct spm_model *model, spm_pool pool,
                                        const struct spm_layout *layout,
                                        struct spm_layout_error *error,
                                        struct spm_actions *actions);

enum spm_status __wrap_spm_pool_install(struct spm_model *model, spm_pool pool,
                                        const struct spm_layout *layout,
                                        struct spm_layout_error *error, struct spm_actions *actions)
{
        actions->count = 0;
        if (fail_at && !--fail_at)
                return SPM_E_HOST_MEMORY;
        return __real_spm_pool_install(model, pool, layout, error, actions);
}

TestSuite(control, .init = begin_pooling);

static enum streampool_status set_layout(const char *text, int device)
{
        strcpy(why, "?");
        return streampool_set_layout(text, device, why, sizeof(why));
}

static void must_set(const char *text, int device)
{
        cr_assert_eq(set_layout(text, device), STREAMPOOL_OK, "%s: %s", text, why);
        cr_assert_str_empty(why);
}

static const struct sp_device *device_of(int ordinal)
{
        return sp_device_of_ordinal(ordinal);
}

static CUdeviceptr alloc_sync(size_t size)
{
        CUdeviceptr pointer = 0;

        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, size), CUDA_SUCCESS);
        return pointer;
}

static void free_sync(CUdeviceptr pointer)
{
        cr_assert_eq(sp_on_cuMemFree_v2(pointer), CUDA_SUCCESS);
}

/* As it is printed; "pool" without one. */
static const char *layout_of(spm_pool pool)
{
        static struct spm_layout layout;
        static char text[512];
        enum spm_status status = spm_pool_layout(sp_model_enter(), pool, &layout);

        sp_model_leave();
        if (status != SPM_OK)
                return "pool";
        cr_assert(spm_layout_print(&layout, text, sizeof(text)));
        return text;
}

static uint64_t live_in(spm_pool pool, unsigned int shelf)
{
        struct spm_shelf_stats stats = {0};

        (void)spm_layout_stats(sp_model_enter(), pool, shelf, &stats);
        sp_model_leave();
        return stats.requested;
}

static spm_pool sync_pool(void)
{
        return sp_context_current()->sync_pool;
}

static spm_pool async_pool(void)
{
        return device_of(0)->async_pool;
}

/* Both kinds of pools that a program begins with. */
static void expect_layouts(const char *text)
{
        cr_expect_str_eq(layout_of(sync_pool()), text);
        cr_expect_str_eq(layout_of(async_pool()), text);
}

Test(control_before, nothing_can_be_said_before_cuda_is_used)
{
        cr_expect_eq(set_layout("direct", -1), STREAMPOOL_NOTHING);
        cr_expect_str_eq(why, "streampool is not at work in this process, or not yet");
        cr_expect_eq(streampool_persistent_enter(-1), STREAMPOOL_NOTHING);
        cr_expect_eq(streampool_persistent_leave(-1), STREAMPOOL_NOTHING);
}

Test(control, the_text_is_parsed_and_devices_are_counted)
{
        must_set("direct", -1);
        cr_expect_eq(set_layout("exclusive:max=1M\nsliced:page=12Q", -1), STREAMPOOL_INVALID);
        cr_expect_str_eq(
                why,
                "pool 2, at line 2, character 13: page '12Q' is no size such as 4096, 64K or 32M");
        cr_expect_eq(set_layout("sliced:page=1M,slice=2M", -1), STREAMPOOL_INVALID);
        cr_expect_eq(set_layout("sliced", 99), STREAMPOOL_INVALID);
        cr_expect(strstr(why, "device=99 is none of the"), "%s", why);
        cr_expect_eq(set_layout("sliced", -2), STREAMPOOL_INVALID);
        cr_expect_eq(streampool_persistent_enter(99), STREAMPOOL_INVALID);
        cr_expect_eq(streampool_persistent_leave(-2), STREAMPOOL_INVALID);
        expect_layouts("direct");
}

Test(control, the_line_is_cut_where_the_caller_says)
{
        memset(why, 'x', sizeof(why));
        cr_expect_eq(streampool_set_layout("bogus", -1, why, 5), STREAMPOOL_INVALID);
        cr_expect_eq(strlen(why), 4);
        cr_expect_eq(why[5], 'x');
        cr_expect_eq(streampool_set_layout("bogus", -1, NULL, 5), STREAMPOOL_INVALID);
        cr_expect_eq(streampool_set_layout("bogus", -1, why, 0), STREAMPOOL_INVALID);
        cr_expect_eq(strlen(why), 4);
}

Test(control, a_pool_in_use_keeps_all_as_they_are)
{
        CUdeviceptr one, two;

        must_set("sliced:page=4M", -1);
        one = alloc_sync(3 * MIB);
        two = alloc(MIB);
        cr_expect_eq(set_layout("direct", -1), STREAMPOOL_IN_USE);
        cr_expect(strstr(why, "pools in use: 2, with 4194304 bytes live"), "%s", why);
        give_back(two);
        synchronise();
        cr_expect_eq(set_layout("direct", -1), STREAMPOOL_IN_USE);
        cr_expect(strstr(why, "pools in use: 1, with 3145728 bytes live"), "%s", why);
        expect_layouts("sliced:page=4M");
        free_sync(one);
        must_set("direct", -1);
        expect_layouts("direct");
}

/* The driver's own cuMemFree would have waited. */
Test(control, what_is_freed_is_waited_for)
{
        CUdeviceptr pointer;

        free_sync(alloc_sync(MIB));
        pointer = alloc(MIB);
        give_back(pointer);
        must_set("direct", -1);
        expect_layouts("direct");
        cr_expect_eq(live_in(sync_pool(), 0), 0);
        cr_expect_eq(told(default_of(0), CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0, "given back");
}

Test(control, later_pools_begin_with_it)
{
        CUmemoryPool pool;
        CUcontext context;

        must_set("direct", -1);
        pool = plain();
        give_back(alloc_from(pool, MIB));
        cr_expect_str_eq(layout_of(sp_mempool_model(pool)), "direct");
        cr_assert_eq(sp_driver.cuDevicePrimaryCtxRetain(&context, 1), CUDA_SUCCESS);
        cr_assert_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
        free_sync(alloc_sync(MIB));
        cr_expect_str_eq(layout_of(sync_pool()), "direct");
        synchronise();
        must_set("pool", -1);
        cr_expect_str_eq(layout_of(sync_pool()), "pool");
        cr_expect_str_eq(layout_of(sp_mempool_model(pool)), "pool");
        expect_layouts("pool");
        destroy(pool);
        must_set("direct", -1);
}

Test(control, a_device_may_have_its_own)
{
        CUmemoryPool pool;
        CUcontext context;

        must_set("exclusive:max=64M", -1);
        must_set("direct", 1);
        expect_layouts("exclusive:max=64M");
        cr_assert_eq(sp_driver.cuDevicePrimaryCtxRetain(&context, 1), CUDA_SUCCESS);
        cr_assert_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
        free_sync(alloc_sync(MIB));
        cr_expect_str_eq(layout_of(sync_pool()), "direct");
        must_set(NULL, 1);
        cr_expect_str_eq(layout_of(sync_pool()), "pool");
        cr_expect_str_eq(layout_of(async_pool()), "exclusive:max=64M");
        must_set("direct:reclaim=4M", -1);
        cr_expect_str_eq(layout_of(sync_pool()), "direct:reclaim=4M");
        pool = make((CUmemPoolProps){.location.id = 1});
        cr_expect_str_eq(layout_of(sp_mempool_serving(pool, device_of(1))), "direct:reclaim=4M",
                         "what was said of it alone counts no more");
}

Test(control, the_host_has_no_memory_for_one_and_none_has_it)
{
        must_set("direct", -1);
        cr_assert_eq(streampool_persistent_enter(-1), STREAMPOOL_OK);
        for (unsigned int n = 1; n <= 2; n++) {
                fail_at = n;
                cr_expect_eq(set_layout("sliced:page=4M", -1), STREAMPOOL_NO_MEMORY);
                cr_expect_str_eq(why, "the host has no memory for it");
                expect_layouts("direct");
                cr_expect_eq(fail_at, 0);
                fail_at = n;
                cr_expect_eq(set_layout("pool", -1), STREAMPOOL_NO_MEMORY);
                expect_layouts("direct");
        }
        (void)alloc(MIB);
        cr_expect_eq(live_in(async_pool(), 1), MIB, "the window is as open as it was");
}

Test(control, a_library_that_has_given_up_says_so)
{
        sp_life_off("a test");
        cr_expect_eq(set_layout("direct", -1), STREAMPOOL_UNSUPPORTED);
        cr_expect_str_eq(why, "streampool has given up, and new memory is the driver's");
        cr_expect_eq(streampool_persistent_enter(0), STREAMPOOL_UNSUPPORTED);
}

/* One that no layout fits, as a model of its own would have it. */
Test(control, a_pool_that_cannot_have_one_says_why)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC, .large_size = MIB, .large_align = 64 * MIB};
        spm_pool pool;

        cr_assert(sp_layout_make_pool(sp_model_enter(), &config, &pool));
        sp_model_leave();
        cr_expect_eq(set_layout("direct", -1), STREAMPOOL_UNSUPPORTED);
        cr_expect_str_eq(why, "large_align above the grain keeps a pool from having a layout");
        expect_layouts("pool");
}

/* magazines */

static bool has_hand(void)
{
        CUdeviceptr pointer = alloc(MIB);

        give_back(pointer);
        synchronise();
        return sp_hand_of(stream) != NULL;
}

Test(control, magazines_go_with_the_heap_and_come_back_with_it)
{
        cr_expect(has_hand());
        must_set("direct", -1);
        cr_expect_not(has_hand());
        expect_layouts("direct");
        must_set("pool", -1);
        cr_expect(has_hand());
        cr_expect_eq(set_layout("bogus", -1), STREAMPOOL_INVALID);
        cr_expect(has_hand());
        (void)alloc(MIB);
        cr_expect_eq(set_layout("direct", -1), STREAMPOOL_IN_USE);
        cr_expect(has_hand(), "in vain, and they are there again");
}

/* windows */

Test(control, windows_nest_and_are_of_those_who_opened_them)
{
        const spm_pool pool = async_pool();

        must_set("exclusive:max=64M", -1);
        cr_expect_eq(streampool_persistent_leave(-1), STREAMPOOL_OK);
        cr_expect_eq(streampool_persistent_enter(-1), STREAMPOOL_OK);
        cr_expect_eq(streampool_persistent_enter(0), STREAMPOOL_OK);
        cr_expect_eq(streampool_persistent_enter(1), STREAMPOOL_OK);
        (void)alloc(MIB);
        cr_expect_eq(live_in(pool, 1), MIB);
        cr_expect_eq(streampool_persistent_leave(-1), STREAMPOOL_OK);
        cr_expect_eq(streampool_persistent_leave(-1), STREAMPOOL_OK, "which is one too many");
        (void)alloc(MIB);
        cr_expect_eq(live_in(pool, 1), 2 * MIB);
        cr_expect_eq(streampool_persistent_leave(0), STREAMPOOL_OK);
        (void)alloc(MIB);
        cr_expect_eq(live_in(pool, 1), 2 * MIB);
        cr_expect_eq(live_in(pool, 0), MIB);
}

Test(control, a_window_is_open_for_pools_that_come_later)
{
        CUmemoryPool made = plain();

        cr_expect_eq(streampool_persistent_enter(0), STREAMPOOL_OK, "without a layout");
        must_set("direct", -1);
        (void)alloc(MIB);
        cr_expect_eq(live_in(async_pool(), 1), MIB);
        (void)alloc_from(made, MIB);
        cr_expect_eq(live_in(sp_mempool_model(made), 1), MIB);
        must_set("exclusive:max=8M", -1);
        cr_expect_eq(live_in(async_pool(), 1), MIB, "it is taken along");
        (void)alloc(MIB);
        cr_expect_eq(live_in(async_pool(), 1), 2 * MIB, "and so is the window, once");
        cr_expect_eq(streampool_persistent_leave(0), STREAMPOOL_OK);
        (void)alloc(MIB);
        cr_expect_eq(live_in(async_pool(), 0), MIB);
        cr_expect_eq(set_layout("pool", -1), STREAMPOOL_IN_USE, "a heap takes nothing along");
        cr_expect(strstr(why, "with 4194304 bytes live"), "%s", why);
}

Test(control, persistent_pages_that_are_idle_are_given_back)
{
        must_set("direct;persistent=enforced", -1);
        give_back(alloc(MIB));
        synchronise();
        cr_expect_geq(told(default_of(0), CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), MIB);
        must_set("exclusive:max=8M", -1);
        cr_expect_eq(told(default_of(0), CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
        cr_expect_eq(drivers(default_of(0), CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
}
