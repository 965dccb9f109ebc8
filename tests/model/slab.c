/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slab -- small blocks, side by side
 */

#include "slab.h"

#include <stdlib.h>

#include "bench.h"
#include "pool.h"
#include "state.h"

#define PAGE (32 * KIB)
#define BASE ((uint64_t)1 << 45)

static spm_pool pool;

static void set_up(void)
{
        struct spm_pool_config config = {.kind = SPM_POOL_ASYNC, .release_threshold = SIZE_MAX};

        bench_set_up();
        pool = bench_pool(config);
}

TestSuite(slab, .init = set_up, .fini = bench_tear_down);

static const struct spm_block *block_at(uint64_t address)
{
        return spm_area_live_at(spm_area_at(bench.model, address), address);
}

/* Runs in all of the pool. */
static unsigned int runs(void)
{
        const struct spm_area *area = spm_pool_find(bench.model, pool)->areas;
        unsigned int count = 0;

        for (; area; area = area->next) {
                const struct spm_block *tile = area->first;

                for (; tile; tile = tile->next)
                        count += spm_block_state(tile) == SPM_BLOCK_SLAB;
        }
        return count;
}

static enum spm_status free_at(uint64_t address, uint64_t generation)
{
        struct spm_actions actions;

        return spm_free(bench.model, address, generation, SPM_FREE_SYNC, 0, NULL, &actions);
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

/* runs come and go */

#define MANY 400 /* slots of 1000 bytes: several runs */

static void fill(uint64_t at[MANY])
{
        int i;

        for (i = 0; i < MANY; i++)
                at[i] = bench_alloc(pool, bench.s, 1000);
}

Test(slab, runs_that_are_not_used_go_back_but_for_one)
{
        struct spm_actions actions;
        uint64_t at[MANY];
        int i;

        fill(at);
        cr_expect_eq(runs(), 7u, "of 64 slots each");
        for (i = 0; i < MANY; i++)
                bench_free(at[i * 33 % MANY], 0);
        cr_expect_eq(runs(), 1u, "so that the next block does not make another");
        cr_assert_eq(spm_trim(bench.model, pool, 0, NULL, &actions), SPM_OK);
        cr_expect_eq(runs(), 0u);
        cr_expect_eq(bench_stats(pool).reserved_current, 0);
}

Test(slab, a_run_with_one_live_slot_stays)
{
        struct spm_actions actions;
        uint64_t at[MANY];
        int i;

        fill(at);
        for (i = 0; i < MANY; i++)
                if (i != 100)
                        bench_free(at[i], 0);
        cr_assert_eq(spm_trim(bench.model, pool, 0, NULL, &actions), SPM_OK);
        cr_expect_eq(runs(), 1u);
        cr_expect_eq(bench_stats(pool).reserved_current, 2 * MIB);
        cr_expect_eq(free_at(at[100] + 512, 0), SPM_E_INTERIOR);
        cr_expect_eq(free_at(at[100], 0), SPM_OK);
}

Test(slab, the_memory_of_a_run_serves_any_size_afterwards)
{
        struct spm_pool_config config = {.kind = SPM_POOL_ASYNC, .max_size = 2 * MIB};
        uint64_t at[MANY];
        int i;

        pool = bench_pool(config);
        fill(at);
        for (i = 0; i < MANY; i++)
                bench_free(at[i], 0);
        bench_alloc(pool, bench.s, MIB);
        bench_alloc(pool, bench.s, 512 * KIB);
        bench_alloc(pool, bench.s, 12 * KIB);
        cr_expect_eq(bench_stats(pool).reserved_current, 2 * MIB);
}

Test(slab, records_of_runs_are_used_again)
{
        uint64_t before = 0;
        int round;
        int i;

        for (round = 0; round < 20; round++) {
                uint64_t at[MANY];

                fill(at);
                for (i = 0; i < MANY; i++)
                        bench_free(at[i], 0);
                if (round == 10)
                        before = bench.model->host_bytes;
        }
        cr_expect_eq(bench.model->host_bytes, before);
}

Test(slab, what_was_never_served_is_fresh_and_a_hit_is_not)
{
        struct spm_allocation allocation;
        uint64_t at[MANY];
        int i;

        fill(at);
        cr_expect_eq(bench_stats(pool).hits, 0);
        for (i = 0; i < MANY; i++)
                bench_free(at[i], 0);
        bench_try(pool, bench.s, 1000, false, &allocation);
        cr_expect(allocation.reused);
        cr_expect_eq(bench_stats(pool).hits, 1);
        bench_try(pool, bench.s, 384 * KIB, false, &allocation);
        cr_expect(allocation.reused, "of what were runs");
}

Test(slab, an_exported_slot_is_served_to_nobody_and_keeps_its_run)
{
        uint64_t at[MANY];
        int i;

        fill(at);
        cr_assert_eq(spm_export(bench.model, at[7]), SPM_OK);
        for (i = 0; i < MANY; i++)
                bench_free(at[i], 0);
        cr_expect_eq(bench_stats(pool).sealed_bytes, 1024);
        for (i = 0; i < 2 * MANY; i++)
                cr_expect_neq(bench_alloc(pool, bench.s, 1000), at[7], "I10");
        cr_expect_eq(free_at(at[7], 0), SPM_E_DOUBLE_FREE);
}

/* where there is no room */

static size_t most;

static void *ask(size_t count, size_t size, void *user)
{
        (void)user;
        return size > most ? NULL : calloc(count, size);
}

static void give(void *memory, void *user)
{
        (void)user;
        free(memory);
}

/* The record of a run is larger than most, so it may be the only one that is refused, for ever. */
Test(slab, without_a_record_for_a_run_a_pool_does_not_grow)
{
        struct spm_config config = {.alloc = ask, .free = give};
        struct spm_pool_config made_up = {.kind = SPM_POOL_ASYNC, .provider = SPM_PROVIDER_MODEL};
        struct spm_request request = {.size = 1000};
        struct spm_allocation allocation;
        struct spm_actions actions;
        struct spm_model *model;
        struct spm_stats stats;
        spm_context context;
        enum spm_status status;

        most = SIZE_MAX;
        cr_assert_eq(spm_model_new(&config, &model), SPM_OK);
        cr_assert_eq(spm_context_add(model, 0, &context), SPM_OK);
        cr_assert_eq(spm_stream_add(model, context, SPM_STREAM_NON_BLOCKING, &request.stream),
                     SPM_OK);
        cr_assert_eq(spm_pool_create(model, &made_up, &request.pool), SPM_OK);
        request.size = MIB;
        cr_assert_eq(spm_alloc(model, &request, &allocation, &actions), SPM_OK);
        most = 6 * KIB;
        request =
                (struct spm_request){.pool = request.pool, .stream = request.stream, .size = 1000};
        status = spm_alloc(model, &request, &allocation, &actions);
        cr_expect_eq(status, SPM_OK, "%s", spm_status_name(status));
        cr_expect_eq(allocation.reserved, PAGE, "a page of its own");
        cr_assert_eq(spm_stats(model, request.pool, &stats), SPM_OK);
        cr_expect_eq(stats.reserved_current, 2 * MIB);
        spm_model_free(model);
}

Test(slab, a_small_block_has_a_page_of_its_own_where_no_run_fits)
{
        struct spm_pool_config config = {.kind = SPM_POOL_ASYNC, .max_size = 2 * MIB};
        struct spm_allocation allocation;
        uint64_t a;

        pool = bench_pool(config);
        a = bench_alloc(pool, bench.s, 2 * MIB - PAGE);
        cr_assert_eq(bench_try(pool, bench.s, 1000, true, &allocation), SPM_OK);
        cr_expect_eq(allocation.address, a + 2 * MIB - PAGE);
        cr_expect_eq(allocation.reserved, PAGE);
        cr_expect_eq(runs(), 0u);
        cr_expect_eq(bench_try(pool, bench.s, 1000, true, &allocation), SPM_E_OUT_OF_MEMORY);
        bench_free(a + 2 * MIB - PAGE, bench.s);
        cr_expect_eq(bench_try(pool, bench.s, 2000, true, &allocation), SPM_OK);
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
