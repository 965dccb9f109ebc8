/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Install -- a pool gets a layout, another one, or none again; and what goes from shelf to shelf
 */

#include "bench.h"
#include "shelves.h"

#include <stdio.h>
#include <string.h>

TestSuite(install, .init = bench_set_up, .fini = bench_tear_down);

static struct spm_layout_error error;

static bool has_layout(spm_pool pool, const char *text)
{
        static struct spm_layout layout;
        char printed[256];

        if (spm_pool_layout(bench.model, pool, &layout))
                return text == NULL;
        cr_assert(spm_layout_print(&layout, printed, sizeof(printed)));
        return text && strcmp(printed, text) == 0;
}

Test(install, a_layout_is_as_it_was_installed)
{
        const char *text = "sliced:page=1000,cap=60M;exclusive:max=7;persistent=enforced";

        cr_expect(has_layout(shelves_pool(text), text));
}

Test(install, pools_of_every_kind_can_have_one)
{
        static const enum spm_pool_kind kinds[] = {SPM_POOL_SYNC, SPM_POOL_ASYNC, SPM_POOL_HOST};

        for (unsigned int i = 0; i < 3; i++) {
                spm_stream stream = kinds[i] == SPM_POOL_ASYNC ? bench.s : 0;
                struct spm_pool_config config = {.kind = kinds[i]};
                spm_pool pool;
                uint64_t at;

                if (kinds[i] != SPM_POOL_ASYNC)
                        config.context = bench.context;
                pool = bench_pool(config);
                cr_assert_eq(shelves_install(pool, "sliced:page=4M,cap=4M;direct", &error), SPM_OK);
                at = bench_alloc(pool, stream, 4 * MIB);
                bench_free(at, stream);
                cr_expect_eq(bench_stats(pool).pending_bytes, 4 * MIB);
                bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
                cr_expect_eq(bench_stats(pool).ready_bytes, 4 * MIB);
                cr_expect_eq(bench_alloc(pool, stream, 3 * MIB), at);
                cr_expect_eq(bench_stats(pool).hits, 1);
                bench_free(at, stream);
        }
}

Test(install, live_blocks_are_in_the_way_and_the_old_layout_stays)
{
        spm_pool pool = shelves_pool("sliced:page=1M");
        uint64_t at = bench_alloc(pool, bench.s, 1000);
        uint64_t more = bench_alloc(pool, bench.s, 24);

        bench_free(more, bench.s);
        cr_expect_eq(shelves_install(pool, "direct", &error), SPM_E_IN_USE);
        cr_expect_eq(error.fault, SPM_LAYOUT_POOLS_IN_USE);
        cr_expect(spm_layout_is_transient(error.fault));
        cr_expect_eq(error.value, 1000);
        cr_expect_eq(error.limit, 256);
        cr_expect(has_layout(pool, "sliced:page=1M"));
        more = bench_alloc(pool, bench.s, 24);
        cr_expect_eq(shelves_stats(pool, 0).live_blocks, 2, "it serves as before");
        bench_free(at, bench.s);
        bench_free(more, bench.s);
        cr_expect_eq(shelves_install(pool, "direct", &error), SPM_E_IN_USE, "they are pending");
        cr_expect_eq(error.value, 0);
        cr_expect_eq(error.limit, 1024 + 256);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
        cr_expect_eq(shelves_install(pool, "direct", &error), SPM_OK);
        cr_expect(has_layout(pool, "direct"));
        bench_alloc(pool, bench.s, 1000);
        cr_expect_eq(bench_stats(pool).reserved_current, 1024);
}

Test(install, a_heap_in_use_is_in_the_way_too)
{
        uint64_t at = bench_alloc(bench.async, bench.s, 1000);

        cr_expect_eq(shelves_install(bench.async, "direct", &error), SPM_E_IN_USE);
        cr_expect_eq(error.value, 1000);
        cr_expect(has_layout(bench.async, NULL));
        shelves_free(at);
        cr_expect_eq(shelves_install(bench.async, "direct", &error), SPM_OK);
        cr_expect_eq(bench_stats(bench.async).reserved_current, 0);
        at = bench_alloc(bench.async, bench.s, 1000);
        cr_expect_str_eq(bench.log, "G");
        cr_expect_eq(bench.grown, 2 * MIB);
        shelves_free(at);
}

Test(install, what_is_known_outside_is_in_the_way)
{
        spm_pool pool = shelves_pool("sliced:page=1M");
        uint64_t at = bench_alloc(pool, bench.s, 1000);
        uint64_t other = bench_alloc(pool, bench.s, 1000);

        cr_assert_eq(spm_export(bench.model, at), SPM_OK);
        shelves_free(at);
        shelves_free(other);
        cr_expect_eq(bench_stats(pool).sealed_bytes, 1024);
        cr_expect_eq(shelves_install(pool, "direct", &error), SPM_E_IN_USE);
        shelves_trim(pool);
        cr_expect_eq(shelves_install(pool, "direct", &error), SPM_OK, "its page went");
}

Test(install, what_cannot_have_a_layout_never_can)
{
        struct spm_pool_config config = {.kind = SPM_POOL_ASYNC,
                                         .range_base = (uint64_t)1 << 42,
                                         .range_size = (uint64_t)1 << 36};
        struct spm_magazine *magazine;
        spm_pool pool = bench_pool(config);
        spm_pool wide;

        cr_assert_eq(spm_magazine_new(bench.model, pool, bench.s, &magazine), SPM_OK);
        cr_expect_eq(shelves_install(pool, "direct", &error), SPM_E_UNSUPPORTED);
        cr_expect_eq(error.fault, SPM_LAYOUT_UNSUPPORTED);
        cr_expect_not(spm_layout_is_transient(error.fault));
        cr_expect(has_layout(pool, NULL));
        spm_magazine_end(bench.model, magazine);
        cr_expect_eq(shelves_install(pool, "direct", &error), SPM_OK);
        cr_expect_eq(spm_magazine_new(bench.model, pool, bench.s, &magazine), SPM_E_INVALID_VALUE);
        config = (struct spm_pool_config){
                .kind = SPM_POOL_ASYNC, .large_size = MIB, .large_align = 4 * MIB};
        wide = bench_pool(config);
        cr_expect_eq(shelves_install(wide, "direct", &error), SPM_E_UNSUPPORTED);
        cr_expect_str_eq(error.field, "large_align above the grain");
}

/* Its owner may not notice for long, and may end it long after. */
Test(install, magazines_that_are_retired_are_not_in_the_way)
{
        struct spm_pool_config config = {.kind = SPM_POOL_ASYNC,
                                         .range_base = (uint64_t)1 << 42,
                                         .range_size = (uint64_t)1 << 36};
        struct spm_allocation block;
        struct spm_magazine *magazine, *again;
        spm_pool pool = bench_pool(config);
        uint64_t held = bench_alloc(pool, bench.s, KIB);

        cr_assert_eq(spm_magazine_new(bench.model, pool, bench.s, &magazine), SPM_OK);
        cr_assert(spm_magazine_free(magazine, held, 0, NULL));
        cr_expect_eq(spm_magazine_retire(bench.model, 99), SPM_E_UNKNOWN);
        cr_expect_eq(spm_magazine_retire(bench.model, pool), SPM_OK);
        cr_expect_not(spm_magazine_alloc(magazine, KIB, 0, &block), "it serves nothing any more");
        cr_expect_eq(shelves_install(pool, "direct", &error), SPM_E_IN_USE);
        cr_expect_eq(error.value, 0);
        cr_expect_gt(error.limit, 0, "what it held is freed, and not complete");
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        cr_expect_eq(shelves_install(pool, "direct", &error), SPM_OK);
        held = bench_alloc(pool, bench.s, KIB);
        cr_expect_not(spm_magazine_free(magazine, held, 0, NULL));
        shelves_free(held);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        cr_expect_eq(shelves_install(pool, NULL, &error), SPM_OK);
        cr_assert_eq(spm_magazine_new(bench.model, pool, bench.s, &again), SPM_OK);
        spm_magazine_end(bench.model, magazine);
        cr_expect_eq(shelves_install(pool, "direct", &error), SPM_E_UNSUPPORTED,
                     "there is another");
        spm_magazine_end(bench.model, again);
        cr_expect(spm_check(bench.model, NULL, 0));
}

Test(install, may_be_asked_about_before)
{
        spm_pool pool = shelves_pool_of(SPM_POOL_ASYNC, "direct");
        uint64_t held = bench_alloc(pool, bench.s, MIB);
        struct spm_actions actions;
        uint64_t released = 0;
        uint64_t hash = spm_hash(bench.model);

        cr_expect_eq(spm_pool_may_install(bench.model, 99, NULL, &error), SPM_E_UNKNOWN);
        cr_expect_eq(spm_pool_may_install(bench.model, pool, NULL, &error), SPM_E_IN_USE);
        cr_expect_eq(error.value, MIB);
        cr_expect_eq(spm_pool_may_install(bench.model, pool, &(struct spm_layout){0}, &error),
                     SPM_E_INVALID_VALUE);
        cr_expect_eq(spm_hash(bench.model), hash);
        shelves_free(held);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
        cr_expect_eq(spm_pool_may_install(bench.model, pool, NULL, &error), SPM_AGAIN,
                     "a page is idle");
        cr_assert_eq(spm_trim(bench.model, pool, 0, &released, &actions), SPM_OK);
        bench_do(&actions, NULL);
        cr_expect_eq(spm_pool_may_install(bench.model, pool, NULL, &error), SPM_OK);
        cr_expect_eq(spm_pool_install(bench.model, pool, NULL, &error, &actions), SPM_OK);
        cr_expect_eq(actions.count, 0);
}

Test(install, persistent_pages_that_are_idle_go_first)
{
        spm_pool pool = shelves_pool_of(SPM_POOL_ASYNC, "direct;persistent=enforced");
        uint64_t idle = bench_alloc(pool, bench.s, MIB);
        struct spm_layout layout;
        struct spm_actions actions;
        uint64_t released = 0;

        cr_assert_eq(spm_layout_parse("direct", &layout, NULL), SPM_OK);
        bench_alloc(pool, bench.s, 4 * MIB);
        cr_expect_eq(spm_pool_may_install(bench.model, pool, &layout, &error), SPM_OK);
        shelves_free(idle);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
        cr_expect_eq(spm_pool_may_install(bench.model, pool, &layout, &error), SPM_AGAIN);
        cr_assert_eq(spm_trim(bench.model, pool, 0, &released, &actions), SPM_OK);
        bench_do(&actions, NULL);
        cr_expect_eq(spm_pool_may_install(bench.model, pool, &layout, &error), SPM_OK);
        cr_expect_eq(spm_pool_install(bench.model, pool, &layout, &error, &actions), SPM_OK);
        cr_expect_eq(actions.count, 0);
        cr_expect_eq(shelves_stats(pool, 1).live_blocks, 1);
}

Test(install, a_wrong_layout_changes_nothing)
{
        struct spm_layout layout = {.count = 1};
        struct spm_actions actions;
        spm_pool pool = shelves_pool("sliced:page=1M");

        shelves_free(bench_alloc(pool, bench.s, 1));
        cr_expect_eq(spm_pool_install(bench.model, pool, &layout, &error, &actions),
                     SPM_E_INVALID_VALUE);
        cr_expect_eq(error.fault, SPM_LAYOUT_ZERO_SIZE);
        cr_expect_eq(shelves_stats(pool, 0).pages, 1);
        cr_expect_eq(spm_pool_install(bench.model, 99, &layout, &error, &actions), SPM_E_UNKNOWN);
}

Test(install, what_is_persistent_is_taken_along)
{
        spm_pool pool = shelves_pool("sliced:page=1M");
        uint64_t kept;
        uint64_t old;

        cr_assert_eq(spm_persistent_enter(bench.model, pool), SPM_OK);
        kept = bench_alloc(pool, bench.s, 5000);
        old = bench_alloc(pool, bench.s, 100);
        cr_assert_eq(spm_persistent_leave(bench.model, pool), SPM_OK);
        shelves_free(old);
        shelves_free(bench_alloc(pool, bench.s, 1));
        cr_expect_eq(shelves_install(pool, "direct;direct;persistent=size-match", &error), SPM_OK);
        cr_expect_eq(bench_stats(pool).reserved_current, 5120, "the rest was idle");
        cr_expect_eq(shelves_stats(pool, 2).live_blocks, 1);
        cr_expect_eq(shelves_stats(pool, 2).largest_alloc, 0, "marks start anew");
        cr_expect_eq(shelves_stats(pool, 2).pages_unmapped, 0);
        bench_alloc(pool, bench.s, 5000);
        cr_expect_eq(shelves_stats(pool, 2).live_blocks, 2, "its sizes are known");
        shelves_free(kept);
        cr_expect_eq(shelves_stats(pool, 2).live_blocks, 1);
        cr_expect_eq(shelves_install(pool, NULL, &error), SPM_E_IN_USE,
                     "the default heap has no place for it");
        cr_expect(has_layout(pool, "direct;direct;persistent=size-match"));
}

/* The default heap is what it was, address for address. */

static uint64_t use_heap(spm_pool pool, uint64_t *end)
{
        uint64_t at[40];
        uint64_t hash = 0;
        unsigned int i;

        for (i = 0; i < 40; i++) {
                at[i] = bench_alloc(pool, bench.s, (i % 7 + 1) * (i % 3 ? 3000 : 700000));
                hash = hash * 31 + at[i];
                if (i % 4 == 3)
                        bench_free(at[i - 2], bench.s);
        }
        for (i = 0; i < 40; i++)
                if (i % 4 != 1)
                        bench_free(at[i], bench.s);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
        shelves_trim(pool);
        *end = bench_stats(pool).reserved_current;
        return hash;
}

Test(install, the_default_heap_is_as_it_was)
{
        struct spm_pool_config config = {.kind = SPM_POOL_ASYNC,
                                         .provider = SPM_PROVIDER_MODEL,
                                         .release_threshold = SIZE_MAX};
        spm_pool pool = bench_pool(config);
        uint64_t left;
        uint64_t first = use_heap(pool, &left);

        cr_assert_eq(left, 0);
        cr_expect_eq(shelves_install(pool, "sliced:page=32M", &error), SPM_OK);
        shelves_free(bench_alloc(pool, bench.s, 1));
        cr_expect_eq(shelves_install(pool, NULL, &error), SPM_OK);
        cr_expect(has_layout(pool, NULL));
        cr_expect_eq(use_heap(pool, &left), first);
        cr_expect_eq(shelves_install(pool, NULL, &error), SPM_OK, "it has none already");
}

Test(install, a_pool_that_ends_gives_its_pages_back)
{
        spm_pool pool = shelves_pool_of(SPM_POOL_ASYNC, "direct");
        struct spm_actions actions;
        struct spm_shelf_stats stats;
        uint64_t idle = bench_alloc(pool, bench.s, 2 * MIB);
        uint64_t held = bench_alloc(pool, bench.s, 4 * MIB);

        shelves_free(idle);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
        cr_assert_eq(spm_pool_destroy(bench.model, pool, &actions), SPM_OK);
        cr_expect_eq(actions.count, 1);
        cr_expect_eq(shelves_refused(pool, 1), SPM_E_UNKNOWN);
        shelves_free(held);
        cr_expect_eq(spm_layout_stats(bench.model, pool, 0, &stats), SPM_E_UNKNOWN);
}

Test(install, a_context_that_ends_takes_its_pools_along)
{
        spm_pool pool = shelves_pool_of(SPM_POOL_SYNC, "sliced:page=4M;direct");
        struct spm_actions actions;

        bench_alloc(pool, 0, MIB);
        bench_free(bench_alloc(pool, 0, 64 * MIB), 0);
        cr_assert_eq(spm_context_remove(bench.model, bench.context, &actions), SPM_OK);
        bench_do(&actions, NULL);
        cr_expect_eq(spm_stats(bench.model, pool, &(struct spm_stats){0}), SPM_E_UNKNOWN);
}

/* routing */

Test(install, the_first_shelf_that_takes_it_serves)
{
        spm_pool pool = shelves_pool("sliced:page=1M,slice=4K,cap=1M;exclusive:max=64K;direct");

        bench_alloc(pool, bench.s, 4096);
        bench_alloc(pool, bench.s, 4097);
        bench_alloc(pool, bench.s, 64 * KIB + 1);
        for (unsigned int i = 0; i < 3; i++)
                cr_expect_eq(shelves_stats(pool, i).live_blocks, 1);
        cr_expect_eq(shelves_stats(pool, 0).spills, 0);
}

Test(install, each_preset_takes_all_sizes_up_to_its_own)
{
        static const char *const presets[] = {"exclusive", "subslices"};

        for (unsigned int i = 0; i < 2; i++) {
                spm_pool pool = shelves_pool(presets[i]);
                size_t size;

                for (size = 1; size <= (size_t)1 << 30; size = size * 5 / 2 + 1)
                        shelves_free(bench_alloc(pool, bench.s, size));
                bench_alloc(pool, bench.s, (size_t)1 << 30);
                cr_expect_eq(shelves_refused(pool, ((size_t)1 << 30) + 1), SPM_E_TOO_BIG);
                cr_expect_eq(shelves_refusal(pool).limit, (size_t)1 << 30);
        }
}

Test(install, a_full_shelf_spills_and_warns_once)
{
        spm_pool pool = shelves_pool("sliced:page=1K,cap=2K;sliced:page=2K,cap=2K;direct");
        unsigned int index = 99;
        unsigned int i;

        for (i = 0; i < 2; i++)
                bench_alloc(pool, bench.s, 1024);
        cr_expect_not(spm_layout_warn(bench.model, pool, &index));
        for (i = 0; i < 1002; i++)
                bench_alloc(pool, bench.s, 1024);
        cr_expect_eq(shelves_stats(pool, 0).spills, 1002);
        cr_expect_eq(shelves_stats(pool, 1).spills, 1000);
        cr_expect_eq(shelves_stats(pool, 1).live_blocks, 2);
        cr_expect(spm_layout_warn(bench.model, pool, &index) && index == 0);
        cr_expect(spm_layout_warn(bench.model, pool, &index) && index == 1);
        cr_expect_not(spm_layout_warn(bench.model, pool, &index));
}

Test(install, warns_again_once_it_is_installed_again)
{
        static const char text[] = "sliced:page=1K,cap=1K;direct";
        spm_pool pool = shelves_pool(text);
        unsigned int round;

        for (round = 0; round < 2; round++) {
                uint64_t a = bench_alloc(pool, bench.s, 1024);
                uint64_t b = bench_alloc(pool, bench.s, 1024);
                unsigned int index = 99;

                cr_expect_eq(shelves_stats(pool, 0).spills, 1, "round %u", round);
                cr_expect_eq(shelves_stats(pool, 0).pages_peak, 1);
                cr_expect(spm_layout_warn(bench.model, pool, &index) && index == 0);
                cr_expect_not(spm_layout_warn(bench.model, pool, &index));
                shelves_free(a);
                shelves_free(b);
                cr_assert_eq(shelves_install(pool, text, &error), SPM_OK);
                cr_expect_eq(shelves_stats(pool, 0).spills, 0);
                cr_expect_eq(shelves_stats(pool, 0).pages_peak, 0);
                cr_expect_eq(shelves_stats(pool, 0).largest_alloc, 0);
                cr_expect_not(spm_layout_warn(bench.model, pool, &index));
        }
}

Test(install, a_shelf_that_is_not_full_does_not_spill)
{
        spm_pool pool = shelves_pool_of(SPM_POOL_ASYNC, "sliced:page=2M,slice=1M,cap=4M;direct");
        struct spm_allocation block;

        shelves_free(bench_alloc(pool, bench.s, 2 * MIB));
        cr_expect_eq(shelves_stats(pool, 1).pages, 1, "idle, and of the right size");
        bench.no_memory = true;
        cr_expect_eq(bench_try(pool, bench.s, MIB, true, &block), SPM_E_OUT_OF_MEMORY);
        cr_expect_str_eq(bench.log, "GXG", "it makes way for a page, and is none: %s", bench.log);
        cr_expect_eq(shelves_stats(pool, 0).spills, 0);
        cr_expect_eq(shelves_refusal(pool).fault, SPM_LAYOUT_CAPACITY_EXCEEDED);
}

/* dry run */

/* A pattern of blocks that come and go, twenty at a time. Return: was all of it served? */
static bool replay(const char *text, uint64_t *peak)
{
        spm_pool pool = shelves_pool(text);
        struct spm_allocation block;
        uint64_t at[20] = {0};
        unsigned int i;

        for (i = 0; i < 400; i++) {
                if (at[i % 20])
                        bench_free(at[i % 20], bench.s);
                if (bench_try(pool, bench.s, (i * 7919 % 64 + 1) * 256, true, &block))
                        return false;
                at[i % 20] = block.address;
        }
        *peak = shelves_stats(pool, 0).pages_peak;
        return true;
}

Test(install, the_pages_of_a_dry_run_are_enough_and_one_less_is_not)
{
        char text[64];
        uint64_t peak;
        uint64_t again;

        cr_assert(replay("sliced:page=16K", &peak));
        cr_assert_gt(peak, 2u);
        snprintf(text, sizeof(text), "sliced:page=16K,cap=%luK", (unsigned long)(16 * peak));
        cr_expect(replay(text, &again));
        cr_expect_eq(again, peak);
        snprintf(text, sizeof(text), "sliced:page=16K,cap=%luK", (unsigned long)(16 * (peak - 1)));
        cr_expect_not(replay(text, &again));
}

Test(install, equal_calls_give_equal_addresses)
{
        uint64_t hash[2];

        for (unsigned int i = 0; i < 2; i++) {
                uint64_t peak;

                if (i) {
                        bench_tear_down();
                        bench_set_up();
                }
                cr_assert(replay("sliced:page=16K,slice=8K,cap=32K;exclusive:max=16K,period=20",
                                 &peak));
                hash[i] = spm_hash(bench.model);
        }
        cr_expect_eq(hash[0], hash[1]);
}
