/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slab -- small blocks, side by side
 */

#include "slab.h"

#include "bench.h"
#include "slots.h"

TestSuite(slab, .init = slots_set_up, .fini = bench_tear_down);

static const struct spm_block *block_at(uint64_t address)
{
        return spm_area_live_at(spm_area_at(bench.model, address), address);
}

/* classes and runs */

static void expect_classes(size_t align, size_t page)
{
        struct spm_pool_state some = {
                .config.align = align,
                .unit_shift = (unsigned int)__builtin_ctzll(align),
                .page = page,
        };
        unsigned int last_class = 0;
        size_t last = 0;
        size_t size;

        for (size = 1; size <= page; size++) {
                size_t unused;
                size_t exact = spm_pool_reserve_size(&some, size, &unused);
                size_t slot = 0;
                unsigned int klass = spm_slab_class(&some, exact, &slot);

                cr_assert_lt(klass, (unsigned int)SPM_CLASSES, "%zu", size);
                cr_assert_geq(slot, size);
                cr_assert_leq(slot, page);
                cr_assert_eq(slot % align, 0);
                cr_assert_leq((slot - exact) * 5, slot, "%zu in a slot of %zu", size, slot);
                if (exact <= 8 * align)
                        cr_assert_eq(slot, exact);
                if (last)
                        cr_assert_eq(klass - last_class, slot != last,
                                     "the next class, if it is another one");
                last_class = klass;
                last = slot;
        }
        cr_expect_eq(spm_slab_class(&some, page + align, &last), SPM_NO_CLASS);
}

Test(slab, every_small_size_has_a_class_that_wastes_a_fifth_at_most)
{
        expect_classes(512, PAGE);
        expect_classes(512, 4 * KIB);
        expect_classes(512, 1024);
        expect_classes(64, 4 * KIB);
        expect_classes(1024, PAGE);
}

Test(slab, a_pool_whose_page_is_its_alignment_has_no_classes)
{
        struct spm_pool_state some = {.config.align = 512, .unit_shift = 9, .page = 512};
        size_t slot;

        cr_expect_eq(spm_slab_class(&some, 512, &slot), SPM_NO_CLASS);
}

static void expect_runs(size_t align, size_t page)
{
        struct spm_pool_state some = {
                .config.align = align,
                .unit_shift = (unsigned int)__builtin_ctzll(align),
                .page = page,
        };
        size_t size;

        for (size = align; size <= page; size += align) {
                size_t slot;
                size_t run;

                spm_slab_class(&some, size, &slot);
                run = spm_slab_run_size(&some, slot);
                cr_assert_eq(run % page, 0);
                cr_assert_geq(run / slot, 8, "slots of %zu in %zu", slot, run);
                cr_assert_leq(run % slot * 16, run, "the tail of %zu in %zu", slot, run);
                cr_assert_leq(run, 8 * page, "nor is it larger than it must be");
        }
}

Test(slab, a_run_has_eight_slots_and_a_short_tail)
{
        expect_runs(512, PAGE);
        expect_runs(512, 4 * KIB);
        expect_runs(64, 4 * KIB);
}

/* slots */

Test(slab, small_blocks_lie_side_by_side_whatever_is_between_them)
{
        uint64_t a = bench_alloc(pool, bench.s, 1000);
        uint64_t other = bench_alloc(pool, bench.s, 5 * KIB);
        uint64_t large = bench_alloc(pool, bench.s, PAGE + 1);
        uint64_t b = bench_alloc(pool, bench.s, 513);

        cr_expect_eq(b, a + 1024);
        cr_expect(block_at(a)->is_slot && block_at(other)->is_slot);
        cr_expect_neq(block_at(a)->slab, block_at(other)->slab);
        cr_expect_not(block_at(large)->is_slot);
        cr_expect_eq(bench_stats(pool).used_current, 1000 + 5 * KIB + PAGE + 1 + 513);
        cr_expect_eq(bench_stats(pool).rounded_current, 1024 + 5 * KIB + PAGE + 512 + 1024);
        cr_expect_eq(bench_stats(pool).reserved_current, 2 * MIB);
}

Test(slab, every_slot_of_a_run_is_served_once_before_there_is_another_run)
{
        uint64_t first = bench_alloc(pool, bench.s, 20 * KIB);
        uint32_t count = block_at(first)->slab->count;
        uint32_t i;

        cr_assert_eq(count, 12u, "256 KiB");
        for (i = 1; i < count; i++)
                cr_expect_eq(bench_alloc(pool, bench.s, 20 * KIB), first + i * 20 * KIB);
        cr_expect_eq(runs(), 1u);
        cr_expect_neq(block_at(bench_alloc(pool, bench.s, 20 * KIB))->slab, block_at(first)->slab);
        cr_expect_eq(runs(), 2u);
}

Test(slab, a_slot_is_found_from_inside_and_a_bad_free_of_it_is_told_apart)
{
        struct spm_allocation allocation;
        uint64_t a;
        uint64_t b;
        uint64_t run;

        bench_try(pool, bench.s, 20 * KIB - 5, false, &allocation);
        a = allocation.address;
        b = bench_alloc(pool, bench.s, 20 * KIB);
        run = block_at(a)->slab->base;
        cr_assert_eq(spm_find(bench.model, a + 20 * KIB - 1, &allocation), SPM_OK);
        cr_expect_eq(allocation.address, a);
        cr_expect_eq(allocation.size, 20 * KIB - 5);
        cr_expect_eq(allocation.reserved, 20 * KIB);
        cr_expect_eq(free_at(a + 1, 0), SPM_E_INTERIOR);
        cr_expect_eq(free_at(a + 20 * KIB - 1, 0), SPM_E_INTERIOR);
        cr_expect_eq(free_at(a, allocation.generation + 1), SPM_E_STALE);
        cr_expect_eq(free_at(b + 20 * KIB, 0), SPM_E_DOUBLE_FREE, "a slot that is free");
        cr_expect_eq(free_at(run + 12 * 20 * KIB, 0), SPM_E_DOUBLE_FREE, "the tail of the run");
        cr_expect_eq(free_at(run + 12 * 20 * KIB + 512, 0), SPM_E_DOUBLE_FREE);
        bench_free(a, bench.s);
        cr_expect_eq(free_at(a, 0), SPM_E_DOUBLE_FREE, "pending");
        cr_expect_eq(free_at(a + 1, 0), SPM_E_DOUBLE_FREE);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
        cr_expect_eq(free_at(a, 0), SPM_E_DOUBLE_FREE, "ready");
        cr_expect_eq(free_at(b, 0), SPM_OK);
}

/* Without a division: so every unit of a run of every class is looked at. */
Test(slab, every_address_of_every_run_belongs_to_the_slot_it_lies_in)
{
        size_t size;

        for (size = 512; size <= PAGE; size += 512) {
                uint64_t address = bench_alloc(pool, bench.s, size);
                struct spm_slab *slab = block_at(address)->slab;
                size_t at;

                for (at = 0; at < slab->run->size; at += 512) {
                        const struct spm_block *slot = spm_slab_slot(slab, slab->base + at, false);
                        const struct spm_block *exact = spm_slab_slot(slab, slab->base + at, true);
                        size_t index = at / slab->slot_size;

                        if (index >= slab->count) {
                                cr_assert_null(slot, "the tail");
                                continue;
                        }
                        cr_assert_eq(slot, &slab->slots[index]);
                        cr_assert_eq(slot, spm_slab_slot(slab, slab->base + at + 511, false));
                        cr_assert_eq(exact, at % slab->slot_size ? NULL : slot);
                        cr_assert_null(spm_slab_slot(slab, slab->base + at + 1, true));
                }
        }
}

Test(slab, a_stream_has_its_newest_slot_back_and_no_other_stream_has_it)
{
        uint64_t a = bench_alloc(pool, bench.s, 1000);
        uint64_t b = bench_alloc(pool, bench.s, 1000);
        uint64_t c;

        bench_free(a, bench.s);
        bench_free(b, bench.s);
        c = bench_alloc(pool, bench.t, 1000);
        cr_expect(c != a && c != b);
        cr_expect_eq(bench_alloc(pool, bench.s, 600), b, "any size of the class");
        cr_expect_eq(bench_alloc(pool, bench.s, 1000), a);
        cr_expect_str_eq(bench.log, "");
        cr_expect_eq(bench_stats(pool).hits, 2);
}

Test(slab, a_slot_follows_events_as_any_block)
{
        uint64_t a = bench_alloc(pool, bench.s, 1000);

        bench_free(a, bench.s);
        bench_wait(bench.t, bench_record(bench.s));
        /* Ready slots come first. */
        while (block_at(bench_alloc(pool, bench.t, 1000))->slab->ready_count)
                ;
        cr_expect_eq(bench_alloc(pool, bench.t, 1000), a);
        cr_expect_str_eq(bench.log, "W", "G3: a belt");
}

Test(slab, a_tight_pool_has_slots_up_to_four_kib)
{
        struct spm_pool_config config = {.kind = SPM_POOL_ASYNC, .growth = SPM_GROWTH_TIGHT};
        struct spm_allocation allocation;
        uint64_t a;

        pool = bench_pool(config);
        a = bench_alloc(pool, bench.s, 4 * KIB);
        cr_expect(block_at(a)->is_slot);
        cr_expect_eq(bench_alloc(pool, bench.s, 4 * KIB), a + 4 * KIB);
        bench_try(pool, bench.s, 4 * KIB + 1, false, &allocation);
        cr_expect_not(block_at(allocation.address)->is_slot);
        cr_expect_eq(allocation.reserved, 4 * KIB + 512, "not rounded to a class");
        spm_pool_get_config(bench.model, pool, &config);
        cr_expect_eq(config.small_size, 4 * KIB);
}

Test(slab, synchronous_pools_have_slots_too)
{
        struct spm_pool_config config = {.kind = SPM_POOL_SYNC, .context = bench.context};
        uint64_t a;
        uint64_t b;

        pool = bench_pool(config);
        a = bench_alloc(pool, 0, 1000);
        b = bench_alloc(pool, 0, 1000);
        cr_expect_eq(b, a + 1024);
        bench_free(a, 0);
        cr_expect_neq(bench_alloc(pool, 0, 1000), a, "F1: it is pending");
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_QUERY);
        cr_expect_eq(bench_alloc(pool, 0, 1000), a);
}
