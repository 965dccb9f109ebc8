/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table -- handle to thing
 */

#include "table.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "state.h"

static struct spm_model model;
static bool exhausted;

static void *alloc(size_t count, size_t size, void *user)
{
        (void)user;
        return exhausted ? NULL : calloc(count, size);
}

static void release(void *memory, void *user)
{
        (void)user;
        free(memory);
}

Test(table, a_handle_is_never_given_twice)
{
        struct spm_table table = {0};
        struct spm_object a = {0};
        struct spm_object b = {0};

        cr_assert(spm_table_add(&model, &table, &a));
        spm_table_remove(&model, &table, &a);
        cr_assert(spm_table_add(&model, &table, &b));
        cr_expect_eq(b.id, 2);
        cr_expect_null(spm_table_find(&table, 1));
        cr_expect_eq(spm_table_find(&table, 2), &b);
        spm_table_remove(&model, &table, &b);
}

Test(table, zero_is_no_handle)
{
        struct spm_table table = {0};

        cr_expect_null(spm_table_find(&table, 0));
}

Test(table, handles_with_equal_low_bits_do_not_hide_each_other)
{
        struct spm_table table = {0};
        struct spm_object objects[4] = {0};
        int i;

        for (i = 0; i < 3; i++) {
                objects[i].id = 1 + (uint32_t)i * SPM_TABLE_DIRECT;
                cr_assert(spm_table_put(&model, &table, &objects[i]));
        }
        for (i = 0; i < 3; i++)
                cr_expect_eq(spm_table_find(&table, objects[i].id), &objects[i]);
        spm_table_remove(&model, &table, &objects[0]);
        objects[3].id = 1 + 3 * SPM_TABLE_DIRECT;
        cr_assert(spm_table_put(&model, &table, &objects[3]));
        cr_expect_null(spm_table_find(&table, objects[0].id));
        spm_table_remove(&model, &table, &objects[2]);
        cr_expect_null(spm_table_find(&table, objects[2].id));
        for (i = 1; i < 4; i += 2) {
                cr_expect_eq(spm_table_find(&table, objects[i].id), &objects[i]);
                spm_table_remove(&model, &table, &objects[i]);
        }
}

Test(table, is_walked_in_the_order_of_insertion)
{
        struct spm_table table = {0};
        struct spm_object objects[100] = {0};
        const struct spm_object *object;
        uint32_t expected = 1;
        int i;

        for (i = 0; i < 100; i++)
                cr_assert(spm_table_add(&model, &table, &objects[i]));
        for (object = table.head; object; object = spm_object_next(object))
                cr_expect_eq(object->id, expected++);
        for (i = 0; i < 100; i++)
                spm_table_remove(&model, &table, &objects[i]);
        cr_expect_null(table.head);
}

Test(table, survives_a_lack_of_memory)
{
        struct spm_table table = {0};
        struct spm_object object = {0};

        model.config.alloc = alloc;
        model.config.free = release;
        exhausted = true;
        cr_expect_not(spm_table_add(&model, &table, &object));
        cr_expect_null(table.head);
        exhausted = false;
        cr_assert(spm_table_add(&model, &table, &object));
        cr_expect_eq(object.id, 1);
        spm_table_remove(&model, &table, &object);
}

/* How many things are looked at to find each of 256 whose handles are @stride apart, on average. */
static double mean_steps(uint32_t stride)
{
        struct spm_table table = {0};
        struct spm_object objects[256] = {0};
        unsigned int steps = 0;
        int i;

        for (i = 0; i < 256; i++) {
                objects[i].id = 1 + (uint32_t)i * stride;
                cr_assert(spm_table_put(&model, &table, &objects[i]));
        }
        for (i = 0; i < 256; i++) {
                const UT_hash_table *hash = objects[i].hh.tbl;
                const UT_hash_handle *at =
                        hash->buckets[objects[i].hh.hashv & (hash->num_buckets - 1)].hh_head;

                cr_assert_eq(spm_table_find(&table, objects[i].id), &objects[i]);
                for (steps++; at != &objects[i].hh; at = at->hh_next)
                        steps++;
        }
        for (i = 0; i < 256; i++)
                spm_table_remove(&model, &table, &objects[i]);
        spm_table_forget(&model);
        return steps / 256.0;
}

Test(table, regular_handles_are_found_as_fast_as_others)
{
        static const uint32_t strides[] = {1, 2, 3, 7, 16, 64, 100, 256, 1000, 4096, 65536};
        size_t i;

        for (i = 0; i < sizeof(strides) / sizeof(*strides); i++)
                cr_expect_lt(mean_steps(strides[i]), 5.0, "every %u", strides[i]);
}

Test(table, becomes_empty_and_full_without_the_host)
{
        struct spm_table table = {0};
        struct spm_object object = {0};

        cr_assert(spm_table_add(&model, &table, &object));
        spm_table_remove(&model, &table, &object);
        model.config.alloc = alloc;
        model.config.free = release;
        exhausted = true;
        cr_expect(spm_table_add(&model, &table, &object));
        spm_table_remove(&model, &table, &object);
        spm_table_forget(&model);
        cr_expect_not(spm_table_add(&model, &table, &object));
}
