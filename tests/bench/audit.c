/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Audit -- is everything that an allocator serves disjoint?
 */

#include "audit.h"

#include <stdlib.h>

#include "measure.h"

struct entry {
        struct set_node node;
        uint64_t end;
};

static void note(struct audit *audit, uint64_t value)
{
        audit->hash = (audit->hash ^ value) * 0x100000001b3u;
}

void audit_add(struct audit *audit, uint64_t address, uint64_t size)
{
        struct entry *entry = must_calloc(1, sizeof(*entry));
        const struct entry *last;

        note(audit, address);
        entry->node.high = address;
        entry->end = address + size;
        last = (struct entry *)set_at_most(&audit->live, address + size - 1, UINT64_MAX);
        if (last && last->end > address) {
                audit->overlaps++;
                free(entry);
                return;
        }
        set_insert(&audit->live, &entry->node);
}

void audit_take(struct audit *audit, uint64_t address)
{
        struct set_node *node = set_at_least(&audit->live, address, 0);

        note(audit, ~address);
        if (!node || node->high != address) {
                audit->unknown++;
                return;
        }
        set_remove(&audit->live, node);
        free(node);
}

void audit_fini(struct audit *audit)
{
        struct set_node *node;

        while ((node = set_at_least(&audit->live, 0, 0))) {
                set_remove(&audit->live, node);
                free(node);
        }
}

bool audit_is_clean(const struct audit *audit)
{
        return !audit->overlaps && !audit->unknown;
}
