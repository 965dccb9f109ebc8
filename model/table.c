/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table -- handle to thing
 *
 * A table is freed with its last thing and made again with the next one. Some
 * are empty most of the time, such as that of stamps, so what one table needs
 * at first is kept in the model.
 */

#include "table.h"

#include "state.h"

/* Where memory of this size is kept, or NULL. */
static void **kept(struct spm_model *model, size_t bytes)
{
        if (bytes == sizeof(UT_hash_table))
                return &model->spare_table;
        if (bytes == HASH_INITIAL_NUM_BUCKETS * sizeof(UT_hash_bucket))
                return &model->spare_buckets;
        return NULL;
}

/* Not zeroed: uthash does that. */
static void *new_memory(struct spm_model *model, size_t bytes)
{
        void **spare = kept(model, bytes);
        void *memory = spare ? *spare : NULL;

        if (!memory)
                return spm_host_new(model, bytes);
        *spare = NULL;
        return memory;
}

static void free_memory(struct spm_model *model, void *memory, size_t bytes)
{
        void **spare = kept(model, bytes);

        if (spare && !*spare)
                *spare = memory;
        else
                spm_host_free(model, memory);
}

void spm_table_forget(struct spm_model *model)
{
        spm_host_free(model, model->spare_table);
        spm_host_free(model, model->spare_buckets);
        model->spare_table = NULL;
        model->spare_buckets = NULL;
}

static struct spm_object **direct(struct spm_table *table, const struct spm_object *object)
{
        return &table->direct[object->id % SPM_TABLE_DIRECT];
}

struct spm_object *spm_table_find_hashed(const struct spm_table *table, uint32_t id)
{
        struct spm_object *object;

        HASH_FIND(hh, table->head, &id, sizeof(id), object);
        return object;
}

bool spm_table_put(struct spm_model *model, struct spm_table *table, struct spm_object *object)
{
        struct spm_object *head = table->head;

        HASH_ADD(hh, head, id, sizeof(object->id), object);
        table->head = head;
        /* A failed addition was rolled back and has left no table behind. */
        if (!object->hh.tbl)
                return false;
        if (!*direct(table, object))
                *direct(table, object) = object;
        return true;
}

bool spm_table_add(struct spm_model *model, struct spm_table *table, struct spm_object *object)
{
        if (table->last_id == UINT32_MAX)
                return false;
        object->id = table->last_id + 1;
        if (!spm_table_put(model, table, object))
                return false;
        table->last_id = object->id;
        return true;
}

void spm_table_remove(struct spm_model *model, struct spm_table *table, struct spm_object *object)
{
        HASH_DELETE(hh, table->head, object);
        if (*direct(table, object) == object)
                *direct(table, object) = NULL;
}
