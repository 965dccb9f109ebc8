/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bins -- free blocks by size
 *
 * Beside a plain array, which is searched from end to end. What one search
 * costs is the depth of the tree that it goes down, and can be told from the
 * links of the blocks.
 */

#include "bins.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "area.h"
#include "state.h"

#define UNIT  ((size_t)512)
#define EXACT (64 * SPM_EXACT_ROWS * UNIT) /* from here on bins are trees */
#define MANY  400
#define STEPS 20000
#define CROWD 65536
#define FEW   64

static struct spm_model model;
static struct spm_bins bins;
static struct spm_block blocks[MANY];
static bool inside[MANY];
static bool refuse;

static void *ask(size_t count, size_t size, void *user)
{
        (void)user;
        return refuse ? NULL : calloc(count, size);
}

static void give(void *memory, void *user)
{
        (void)user;
        free(memory);
}

static void set_up(void)
{
        memset(&bins, 0, sizeof(bins));
        memset(inside, 0, sizeof(inside));
        refuse = false;
        model.config.alloc = ask;
        model.config.free = give;
        spm_bins_init(&bins, UNIT);
}

static void tear_down(void)
{
        spm_bins_forget(&model, &bins);
        cr_expect_eq(model.host_bytes, 0);
}

TestSuite(bins, .init = set_up, .fini = tear_down);

static uint64_t seed = 1;

static uint64_t any(uint64_t below)
{
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        return seed % below;
}

/* Of all kinds: in exact bins, where trees begin, in the same tree, equal ones, and huge. */
static size_t any_size(void)
{
        switch (any(6)) {
        case 0:
                return UNIT * (1 + any(EXACT / UNIT - 1));
        case 1:
                return EXACT - 4 * UNIT + UNIT * any(8);
        case 2:
                return EXACT + UNIT * any(4096);
        case 3:
                return UNIT * (1 + any(3));
        case 4:
                return ((size_t)1 << 30) + UNIT * any(64);
        default:
                return UNIT << any(40);
        }
}

static struct spm_block *block_of(size_t i, uint64_t address, size_t size)
{
        blocks[i] = (struct spm_block){.address = address, .size = size};
        return &blocks[i];
}

static void insert(size_t i)
{
        cr_assert(spm_bins_insert(&model, &bins, &blocks[i]));
        inside[i] = true;
}

static void drop(size_t i)
{
        spm_bins_remove(&bins, &blocks[i]);
        inside[i] = false;
}

/* The smallest size of at least @size; of trees the lowest address, too. NULL if there is none. */
static const struct spm_block *best(size_t size)
{
        const struct spm_block *found = NULL;
        size_t i;

        for (i = 0; i < MANY; i++) {
                const struct spm_block *block = &blocks[i];

                if (!inside[i] || block->size < size)
                        continue;
                if (!found || block->size < found->size ||
                    (block->size == found->size && block->address < found->address))
                        found = block;
        }
        return found;
}

static void expect_best(size_t size)
{
        const struct spm_block *expected = best(size);
        const struct spm_block *found = spm_bins_at_least(&bins, size);

        if (!expected) {
                cr_assert_null(found, "nothing has %zu bytes", size);
                return;
        }
        cr_assert_not_null(found, "something has %zu bytes", size);
        cr_assert_eq(found->size, expected->size, "%zu: %zu against %zu", size, found->size,
                     expected->size);
        if (found->size >= EXACT)
                cr_assert_eq(found, expected, "%zu: the lowest address", size);
}

/* In each direction every block is met once, in the order of sizes, and in trees of addresses. */
static void expect_order(size_t count)
{
        const struct spm_block *block;
        const struct spm_block *last = NULL;
        size_t up = 0;
        size_t down = 0;

        for (block = spm_bins_at_least(&bins, UNIT); block; block = spm_bins_after(&bins, block)) {
                cr_assert_lt(up++, count);
                if (last)
                        cr_assert_leq(last->size, block->size);
                if (last && last->size == block->size && block->size >= EXACT)
                        cr_assert_lt(last->address, block->address);
                last = block;
        }
        cr_assert_eq(up, count);
        last = NULL;
        for (block = spm_bins_largest(&bins); block; block = spm_bins_before(&bins, block)) {
                cr_assert_lt(down++, count);
                if (last)
                        cr_assert_geq(last->size, block->size);
                last = block;
        }
        cr_assert_eq(down, count);
}

Test(bins, whatever_is_put_in_and_taken_out_the_best_fit_is_exact)
{
        size_t count = 0;
        size_t counted;
        int step;

        for (step = 0; step < STEPS; step++) {
                size_t i = any(MANY);

                if (inside[i]) {
                        drop(i);
                        count--;
                } else {
                        block_of(i, (i + 1) << 44, any_size());
                        insert(i);
                        count++;
                }
                expect_best(any_size());
                expect_best(blocks[any(MANY)].size + UNIT * any(2));
                if (step % 100)
                        continue;
                cr_assert(spm_bins_check(&bins, &counted));
                cr_assert_eq(counted, count);
                expect_order(count);
        }
}

/* A block that is joined or cut where it is. */
Test(bins, what_changes_is_found_by_what_it_is_now)
{
        size_t counted;
        int step;

        cr_assert(spm_bins_prepare(&model, &bins, UNIT << 40));
        refuse = true;
        for (step = 0; step < STEPS; step++) {
                size_t i = any(FEW);
                uint64_t address = (i + 1) << 44 | any(64) * UNIT;

                if (inside[i]) {
                        spm_bins_change(&bins, &blocks[i], address,
                                        any(2) ? any_size() : blocks[i].size + any(2) * UNIT);
                        cr_assert_eq(blocks[i].address, address);
                } else {
                        block_of(i, address, any_size());
                        insert(i);
                }
                expect_best(blocks[i].size);
                cr_assert(spm_bins_check(&bins, &counted));
                if (!any(8))
                        drop(i);
        }
}

Test(bins, when_all_is_taken_out_nothing_is_left)
{
        size_t i;

        for (i = 0; i < MANY; i++) {
                block_of(i, (i + 1) << 44, any_size());
                insert(i);
        }
        cr_expect(spm_bins_largest(&bins));
        for (i = 0; i < MANY; i++)
                drop((i * 7) % MANY);
        cr_expect(!spm_bins_largest(&bins));
        cr_expect_null(spm_bins_largest(&bins));
        cr_expect_null(spm_bins_at_least(&bins, UNIT));
}

Test(bins, a_single_block_is_found_by_all_sizes_up_to_its_own)
{
        block_of(0, UNIT, EXACT + 200 * UNIT);
        insert(0);
        cr_expect_eq(spm_bins_at_least(&bins, EXACT + 200 * UNIT), &blocks[0]);
        cr_expect_eq(spm_bins_at_least(&bins, UNIT), &blocks[0], "far above");
        cr_expect_eq(spm_bins_largest(&bins), &blocks[0]);
        cr_expect_null(spm_bins_before(&bins, &blocks[0]));
        cr_expect_null(spm_bins_after(&bins, &blocks[0]));
        cr_expect_null(spm_bins_at_least(&bins, EXACT + 201 * UNIT), "in the same bin");
        cr_expect_null(spm_bins_at_least(&bins, EXACT + EXACT / 2), "in the same row");
        cr_expect_null(spm_bins_at_least(&bins, 16 * EXACT));
        cr_expect_null(spm_bins_at_least(&bins, ~(UNIT - 1)));
        drop(0);
}

Test(bins, the_largest_size_there_is_is_found_from_the_smallest_and_back)
{
        spm_bins_init(&bins, 1);
        insert((size_t)(block_of(0, 1, 1) - blocks));
        insert((size_t)(block_of(1, 2, SIZE_MAX) - blocks));
        cr_expect_eq(spm_bins_at_least(&bins, 2), &blocks[1]);
        cr_expect_eq(spm_bins_after(&bins, &blocks[0]), &blocks[1]);
        cr_expect_eq(spm_bins_largest(&bins), &blocks[1]);
        cr_expect_eq(spm_bins_before(&bins, &blocks[1]), &blocks[0]);
        cr_expect_eq(spm_bins_at_least(&bins, SIZE_MAX), &blocks[1]);
        drop(0);
        drop(1);
}

Test(bins, of_the_newest_two_of_a_size_the_lower_one_is_first)
{
        insert((size_t)(block_of(0, 4 * UNIT, UNIT) - blocks));
        insert((size_t)(block_of(1, 9 * UNIT, UNIT) - blocks));
        cr_expect_eq(spm_bins_at_least(&bins, UNIT), &blocks[0]);
        insert((size_t)(block_of(2, 2 * UNIT, UNIT) - blocks));
        cr_expect_eq(spm_bins_at_least(&bins, UNIT), &blocks[2]);
        drop(0);
        drop(2);
        cr_expect_eq(spm_bins_at_least(&bins, UNIT), &blocks[1]);
        drop(1);
}

Test(bins, what_was_prepared_needs_no_memory_later)
{
        size_t most = (size_t)1 << 33;
        size_t size;

        cr_assert(spm_bins_prepare(&model, &bins, most));
        refuse = true;
        for (size = UNIT; size <= most; size *= 2) {
                block_of(0, UNIT, size);
                insert(0);
                drop(0);
        }
        block_of(0, UNIT, 4 * most);
        cr_expect_not(spm_bins_insert(&model, &bins, &blocks[0]));
        cr_expect(!spm_bins_largest(&bins), "nothing has changed");
        refuse = false;
        insert(0);
        drop(0);
}

Test(bins, without_memory_for_all_rows_preparing_fails_and_can_be_tried_again)
{
        refuse = true;
        cr_expect_not(spm_bins_prepare(&model, &bins, EXACT));
        refuse = false;
        cr_expect(spm_bins_prepare(&model, &bins, EXACT));
}

/* cost */

static void crowd_in(struct spm_block *crowd, uint64_t stride, size_t sizes)
{
        size_t i;

        for (i = 0; i < CROWD; i++) {
                size_t size = EXACT + UNIT * any(sizes);

                crowd[i] = (struct spm_block){.address = (i + 1) * stride, .size = size};
                cr_assert(spm_bins_insert(&model, &bins, &crowd[i]));
        }
}

/* Blocks that are looked at on the way to the deepest one. Nobody else needs older here. */
static unsigned int cost_of(struct spm_block *crowd)
{
        unsigned int most = 0;
        size_t i;

        for (i = 0; i < CROWD; i++) {
                if (crowd[i].left)
                        crowd[i].left->older = &crowd[i];
                if (crowd[i].right)
                        crowd[i].right->older = &crowd[i];
        }
        for (i = 0; i < CROWD; i++) {
                const struct spm_block *block = &crowd[i];
                unsigned int steps = 0;

                for (; block; block = block->older)
                        steps++;
                most = steps > most ? steps : most;
        }
        return most;
}

static void expect_few(struct spm_block *crowd, uint64_t stride, size_t sizes)
{
        unsigned int cost;

        spm_bins_forget(&model, &bins);
        crowd_in(crowd, stride, sizes);
        cost = cost_of(crowd);
        cr_assert_leq(cost, FEW, "every %zu units, %zu sizes: %u blocks", (size_t)(stride / UNIT),
                      sizes, cost);
}

/* A random tree of so many has about 40 levels, and one of any even shape at least 16. */
Test(bins, a_search_among_many_blocks_looks_at_a_few)
{
        /* Multiples of the golden ratio that are nearly whole: a plain product orders these. */
        static const uint64_t units[] = {4181, 6765, 10946, 17711, 28657, 46368, 75025, 121393};
        struct spm_block *crowd = calloc(CROWD, sizeof(*crowd));
        uint64_t stride;
        size_t i;

        cr_assert_not_null(crowd);
        for (stride = EXACT; stride <= (uint64_t)1 << 34; stride *= 2) {
                expect_few(crowd, stride, 1);
                expect_few(crowd, stride + UNIT, 16);
                expect_few(crowd, stride, 4096);
        }
        for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
                expect_few(crowd, units[i] * UNIT, 1);
        for (i = 0; i < 16; i++)
                expect_few(crowd, EXACT + UNIT * any(1 << 16), 1);
        free(crowd);
}
