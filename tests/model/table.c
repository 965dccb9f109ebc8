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
