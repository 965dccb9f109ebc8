/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table -- handle to thing
 */

#include "table.h"

#include "host.h"

bool spm_table_put(struct spm_model *model, struct spm_table *table, struct spm_object *object)
{
        struct spm_object *head = table->head;

        HASH_ADD(hh, head, id, sizeof(object->id), object);
        table->head = head;
        /* A failed addition was rolled back and has left no table behind. */
        return object->hh.tbl != NULL;
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
}
