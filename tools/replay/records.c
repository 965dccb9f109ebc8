/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records -- how much of the host's memory the model's own books take
 */

#include "records.h"

#include <stdlib.h>

/* Before each record: what it counts for. As wide as the strictest alignment. */
union head {
        size_t size;
        max_align_t align;
};

void *records_new(size_t count, size_t size, void *user)
{
        struct records *records = user;
        union head *head = calloc(1, sizeof(*head) + count * size);

        if (!head)
                return NULL;
        head->size = count * size;
        records->bytes += head->size;
        if (records->bytes > records->high)
                records->high = records->bytes;
        return head + 1;
}

void records_free(void *memory, void *user)
{
        struct records *records = user;
        union head *head;

        if (!memory)
                return;
        head = (union head *)memory - 1;
        records->bytes -= head->size;
        free(head);
}
