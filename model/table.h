/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_TABLE_H
#define SPM_TABLE_H

/*
 * Table -- handle to thing
 *
 * uthash with the model's allocator, and without its habit of ending the
 * process when memory is short. No other file includes uthash.h.
 *
 * A thing begins with a struct spm_object. Tables are walked in the order of
 * insertion, from head along hh.next.
 */

#include <stdbool.h>
#include <stdint.h>
#include <streampool/model.h>

#define HASH_NONFATAL_OOM 1
/* These expand inside functions that have a variable "model" in scope. */
#define uthash_malloc(bytes)       spm_host_new(model, bytes)
#define uthash_free(memory, bytes) spm_host_free(model, memory)
#include <uthash.h>

struct spm_object {
        uint32_t id;
        UT_hash_handle hh;
};

struct spm_table {
        struct spm_object *head;
        uint32_t last_id;
};

/** spm_table_add() - gives the object a handle that was never given before.
 * Return: false if there is no memory; nothing has changed. */
bool spm_table_add(struct spm_model *model, struct spm_table *table, struct spm_object *object);

/** spm_table_put() - the object already has its id, which is not in the table. */
bool spm_table_put(struct spm_model *model, struct spm_table *table, struct spm_object *object);

void spm_table_remove(struct spm_model *model, struct spm_table *table, struct spm_object *object);

struct spm_object *spm_table_find(const struct spm_table *table, uint32_t id);

static inline struct spm_object *spm_object_next(const struct spm_object *object)
{
        return object->hh.next;
}

#endif
