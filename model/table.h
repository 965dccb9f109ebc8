/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_TABLE_H
#define SPM_TABLE_H

/*
 * Table -- handle to thing
 *
 * uthash with the model's allocator, with a hash made for handles, and without
 * its habit of ending the process when memory is short. No other file includes
 * uthash.h.
 *
 * A thing begins with a struct spm_object. Tables are walked in the order of
 * insertion, from head along hh.next.
 */

#include <stdbool.h>
#include <stdint.h>
#include <streampool/model.h>

/*
 * Handles count up, and those that live on are often regular: every second, every 64th. Bits that
 * choose a bucket are the low ones, so the high ones of a product are folded into them. Both steps
 * can be undone, so equal hashes are equal handles and no key is compared.
 */
static inline uint32_t spm_table_hash(uint32_t id)
{
        uint32_t product = id * 0x9E3779B1u; /* odd: 2^32 by the golden ratio */

        return product ^ (product >> 16);
}

#define HASH_FUNCTION(key, length, hash) ((hash) = spm_table_hash(*(const uint32_t *)(key)))
#define HASH_KEYCMP(a, b, length)        0
#define HASH_NONFATAL_OOM                1
/* These expand in table.c, inside functions that have a variable "model" in scope. */
#define uthash_malloc(bytes)       new_memory(model, bytes)
#define uthash_free(memory, bytes) free_memory(model, memory, bytes)
#include <uthash.h>

struct spm_object {
        uint32_t id;
        UT_hash_handle hh;
};

#define SPM_TABLE_DIRECT 64

struct spm_table {
        struct spm_object *head;
        uint32_t last_id;
        /* By the low bits of the id: the first of its kind, so long as it is there, or NULL. */
        struct spm_object *direct[SPM_TABLE_DIRECT];
};

/** spm_table_add() - gives the object a handle that was never given before.
 * Return: false if there is no memory; nothing has changed. */
bool spm_table_add(struct spm_model *model, struct spm_table *table, struct spm_object *object);

/** spm_table_put() - the object already has its id, which is not in the table. */
bool spm_table_put(struct spm_model *model, struct spm_table *table, struct spm_object *object);

void spm_table_remove(struct spm_model *model, struct spm_table *table, struct spm_object *object);

/** spm_table_find() - NULL if there is none; about eight instructions for one of the few things
 * that most programs have, about thirty otherwise. Changes nothing. */
struct spm_object *spm_table_find_hashed(const struct spm_table *table, uint32_t id);
static inline struct spm_object *spm_table_find(const struct spm_table *table, uint32_t id)
{
        struct spm_object *object = table->direct[id % SPM_TABLE_DIRECT];

        return object && object->id == id ? object : spm_table_find_hashed(table, id);
}

/** spm_table_forget() - the memory that is kept for the next table. */
void spm_table_forget(struct spm_model *model);

static inline struct spm_object *spm_object_next(const struct spm_object *object)
{
        return object->hh.next;
}

#endif
