/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Area -- addresses tiled by blocks
 */

#include "area.h"

#include <stdlib.h>

#include "bench.h"
#include "state.h"

#define BASE ((uint64_t)1 << 45)
#define GIB  ((size_t)1 << 30)

/* A leaf of the map covers 2^15 pages, at most a GiB: the usual page is 32 KiB, the smallest is the
 * alignment. */
#define PAGE  (32 * KIB)
#define SMALL ((size_t)512)

TestSuite(area, .init = bench_set_up, .fini = bench_tear_down);

static spm_pool range_pool(size_t small_size)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .range_base = BASE,
                .range_size = 64 * GIB,
                .small_size = small_size,
                .release_threshold = SIZE_MAX,
        };

        return bench_pool(config);
}

static enum spm_status status_at(uint64_t address)
{
        struct spm_allocation allocation;

        return spm_find(bench.model, address, &allocation);
}

/* The block that is found there; 0 if there is none. */
static uint64_t found_at(uint64_t address)
{
        struct spm_allocation allocation;

        return spm_find(bench.model, address, &allocation) ? 0 : allocation.address;
}

static enum spm_status free_at(uint64_t address)
{
        struct spm_actions actions;

        return spm_free(bench.model, address, 0, SPM_FREE_ASYNC, bench.s, NULL, &actions);
}

static void expect_found(uint64_t block, size_t size)
{
        cr_expect_eq(found_at(block), block, "its first byte");
        cr_expect_eq(found_at(block + 1), block);
        cr_expect_eq(found_at(block + size / 2), block);
        cr_expect_eq(found_at(block + size - 1), block, "its last byte");
        cr_expect_eq(free_at(block + 1), SPM_E_INTERIOR);
        cr_expect_eq(free_at(block + size / 2), SPM_E_INTERIOR);
        cr_expect_eq(free_at(block + size - 1), SPM_E_INTERIOR);
}

Test(area, a_block_is_found_by_any_address_in_it_and_by_none_outside)
{
        spm_pool pool = range_pool(0);
        uint64_t a = bench_alloc(pool, bench.s, PAGE + SMALL);
        uint64_t b = bench_alloc(pool, bench.s, 3 * PAGE);

        cr_assert_eq(b, a + PAGE + SMALL, "side by side, and b begins inside a page");
        expect_found(a, PAGE + SMALL);
        expect_found(b, 3 * PAGE);
        cr_expect_eq(status_at(b + 3 * PAGE), SPM_E_DOUBLE_FREE, "free memory");
        cr_expect_eq(status_at(BASE + 4 * MIB), SPM_E_FOREIGN, "a hole");
        cr_expect_eq(status_at(BASE - 1), SPM_E_FOREIGN);
        cr_expect_eq(status_at(BASE + 64 * GIB), SPM_E_FOREIGN);
        bench_free(a, bench.s);
        cr_expect_eq(status_at(b - 1), SPM_E_DOUBLE_FREE, "before b, in its page");
        expect_found(b, 3 * PAGE);
        bench_free(b, bench.s);
        cr_expect_eq(status_at(b), SPM_E_DOUBLE_FREE);
        cr_expect_eq(free_at(b), SPM_E_DOUBLE_FREE);
}

Test(area, a_block_is_found_from_other_leaves_than_it_begins_in)
{
        spm_pool pool = range_pool(0);
        size_t size = 3 * GIB + SMALL;
        uint64_t a = bench_alloc(pool, bench.s, size);
        uint64_t b = bench_alloc(pool, bench.s, 2 * MIB);
        unsigned int i;

        cr_assert_eq(a % GIB, 0);
        cr_assert_eq(b, a + size, "b begins in the first page of a leaf, which is not all its own");
        expect_found(a, size);
        expect_found(b, 2 * MIB);
        for (i = 1; i <= 3; i++) {
                cr_expect_eq(found_at(a + i * GIB - 1), a);
                cr_expect_eq(found_at(a + i * GIB), a);
        }
        bench_free(a, bench.s);
        cr_expect_eq(status_at(b - 1), SPM_E_DOUBLE_FREE);
        cr_expect_eq(status_at(a + GIB), SPM_E_DOUBLE_FREE);
        expect_found(b, 2 * MIB);
}

Test(area, the_smallest_pages_have_smaller_leaves)
{
        size_t leaf = SMALL << 15;
        spm_pool pool = range_pool(SMALL);
        uint64_t c = bench_alloc(pool, bench.s, SMALL);
        uint64_t a = bench_alloc(pool, bench.s, 2 * leaf + SMALL);
        uint64_t b = bench_alloc(pool, bench.s, leaf);
        uint64_t d = bench_alloc(pool, bench.s, SMALL);

        cr_assert_eq(b, a + 2 * leaf + SMALL);
        cr_assert_eq(d, c + SMALL, "a block in every page");
        expect_found(a, 2 * leaf + SMALL);
        expect_found(b, leaf);
        expect_found(c, SMALL);
        expect_found(d, SMALL);
}

/* The first block is in the large heap, whose leaves are others. */
Test(area, nothing_is_found_in_an_area_without_leaves)
{
        spm_pool pool = range_pool(0);
        uint64_t a = bench_alloc(pool, bench.s, 2 * MIB);

        cr_expect_eq(found_at(a), a);
        cr_expect_eq(status_at(BASE), SPM_E_FOREIGN);
        cr_expect_eq(free_at(BASE), SPM_E_FOREIGN);
        cr_expect_eq(status_at(a + 2 * GIB), SPM_E_FOREIGN);
        cr_expect_eq(free_at(a + 2 * GIB), SPM_E_FOREIGN);
}

Test(area, ranges_do_not_overlap)
{
        struct spm_pool_config config = {.kind = SPM_POOL_ASYNC};
        spm_segment segment;
        spm_pool pool;

        range_pool(0);
        config.range_base = BASE + 64 * GIB - 2 * MIB;
        config.range_size = GIB;
        cr_expect_eq(spm_pool_create(bench.model, &config, &pool), SPM_E_INVALID_VALUE);
        config.range_base = BASE - GIB + 2 * MIB;
        cr_expect_eq(spm_pool_create(bench.model, &config, &pool), SPM_E_INVALID_VALUE);
        config.range_base = BASE - GIB;
        cr_expect_eq(spm_pool_create(bench.model, &config, &pool), SPM_OK);
        config.range_base = BASE + 64 * GIB;
        cr_expect_eq(spm_pool_create(bench.model, &config, &pool), SPM_OK);
        cr_expect_eq(spm_segment_add(bench.model, bench.async, BASE + GIB, 2 * MIB, NULL, &segment),
                     SPM_E_INVALID_VALUE, "of another pool");
}

/* Segments by themselves, in an order that is not that of their addresses. */
#define LONE 97

static uint64_t lone_at(unsigned int i)
{
        return BASE + (uint64_t)(i * 31 % LONE) * 8 * MIB;
}

Test(area, many_segments_are_told_apart)
{
        spm_segment segments[LONE];
        unsigned int i;

        for (i = 0; i < LONE; i++)
                cr_assert_eq(spm_segment_add(bench.model, bench.async, lone_at(i), 4 * MIB, NULL,
                                             &segments[i]),
                             SPM_OK);
        for (i = 0; i < LONE; i++) {
                uint64_t base = lone_at(i);
                const struct spm_area *area = spm_area_at(bench.model, base);

                cr_assert_not_null(area);
                cr_expect_eq(area->base, base);
                cr_expect_eq(spm_area_at(bench.model, base + 4 * MIB - 1), area);
                cr_expect_null(spm_area_at(bench.model, base + 4 * MIB));
                cr_expect_null(spm_area_at(bench.model, base - 1));
                cr_expect(spm_area_overlaps(bench.model, base - 1, 2));
                cr_expect(spm_area_overlaps(bench.model, base + 4 * MIB - 1, 2));
                cr_expect(spm_area_overlaps(bench.model, base - 4 * MIB, 12 * MIB));
                cr_expect_not(spm_area_overlaps(bench.model, base - 4 * MIB, 4 * MIB));
                cr_expect_not(spm_area_overlaps(bench.model, base + 4 * MIB, 4 * MIB));
        }
}

/* Each takes with it nothing but itself. */
Test(area, a_segment_that_goes_leaves_the_others)
{
        uint64_t at[16];
        struct spm_actions actions;
        unsigned int i;

        for (i = 0; i < 16; i++)
                at[i] = bench_alloc(bench.async, bench.s, 4 * MIB);
        for (i = 0; i < 16; i += 2)
                bench_free(at[i], 0);
        cr_assert_eq(spm_trim(bench.model, bench.async, 0, NULL, &actions), SPM_OK);
        cr_expect_eq(actions.count, 8u);
        for (i = 0; i < 16; i++) {
                cr_expect_eq(spm_area_at(bench.model, at[i]) != NULL, i % 2);
                cr_expect_eq(status_at(at[i]), i % 2 ? SPM_OK : SPM_E_FOREIGN);
        }
        /* Nor is the one that the latest free was in remembered. */
        cr_expect_eq(spm_free(bench.model, at[14], 0, SPM_FREE_SYNC, 0, NULL, &actions),
                     SPM_E_FOREIGN);
}

/* records */

static unsigned int granted;

static void *ask(size_t count, size_t size, void *user)
{
        (void)user;
        if (!granted)
                return NULL;
        granted--;
        return calloc(count, size);
}

static void give(void *memory, void *user)
{
        (void)user;
        free(memory);
}

Test(area, records_are_at_hand_or_it_is_said_that_they_are_not)
{
        struct spm_model model = {.config = {.alloc = ask, .free = give}};
        unsigned int have;

        granted = 0;
        cr_expect_not(spm_block_reserve(&model, 1));
        granted = 100;
        cr_expect(spm_block_reserve(&model, 100));
        cr_expect_geq(model.spares, 100u);
        cr_expect_gt(model.extras, 0u);
        have = model.spares;
        granted = 0;
        cr_expect(spm_block_reserve(&model, have), "they are there already");
        cr_expect_not(spm_block_reserve(&model, have + 1));
        cr_expect_eq(model.spares, have);
        granted = 100;
        cr_expect(spm_block_reserve(&model, have + 1));
        spm_block_forget_spares(&model);
        cr_expect_eq(model.host_bytes, 0);
}

Test(area, records_are_used_again)
{
        uint64_t at[200];
        uint64_t before = 0;
        int round;
        int i;

        for (round = 0; round < 20; round++) {
                for (i = 0; i < 200; i++)
                        at[i] = bench_alloc(bench.sync, 0, SMALL * (size_t)(1 + i % 7));
                for (i = 0; i < 200; i++)
                        bench_free(at[i * 33 % 200], 0);
                bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_QUERY);
                if (round == 10)
                        before = bench.model->host_bytes;
        }
        cr_expect_eq(bench.model->host_bytes, before);
}

/* The points of a block are more than fit in its record. */
Test(area, points_survive_a_split)
{
        struct spm_point deps[SPM_BLOCK_DEPS];
        struct spm_model *model = bench.model;
        struct spm_area *area;
        struct spm_block *block;
        struct spm_block *rest;
        unsigned int i;

        bench_give(bench.async, 2 * MIB);
        area = spm_area_at(model, bench.next_base - 66 * MIB);
        cr_assert_not_null(area);
        block = area->first;
        for (i = 0; i < SPM_BLOCK_DEPS; i++)
                deps[i] = (struct spm_point){i + 1, 10 * i};
        cr_assert(spm_block_reserve(model, 1));
        cr_assert(spm_block_set_deps(model, block, deps, SPM_BLOCK_DEPS));
        cr_expect_not(spm_block_set_deps(model, block, deps, SPM_BLOCK_DEPS + 1));
        rest = spm_block_split(model, block, MIB);
        cr_assert_eq(rest->dep_count, SPM_BLOCK_DEPS);
        for (i = 0; i < SPM_BLOCK_DEPS; i++) {
                cr_expect_eq(spm_block_dep(block, i).position, 10 * i);
                cr_expect_eq(spm_block_dep(rest, i).position, 10 * i);
                cr_expect_eq(spm_block_dep(rest, i).stream, i + 1);
        }
        cr_expect_neq(block->extra, rest->extra);
        spm_block_drop_deps(model, block);
        spm_block_absorb(model, block, rest);
        cr_expect_eq(block->size, 2 * MIB);
        cr_expect_eq(area->first, block);
        cr_expect_eq(area->last, block);
}
