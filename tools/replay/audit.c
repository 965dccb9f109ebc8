/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Audit -- is everything that an allocator serves disjoint, and is there memory?
 */

#include "audit.h"

#include <stdlib.h>

#include "measure.h"

/* A live block or a segment. */
struct entry {
        struct set_node node;
        uint64_t end;
};

static void note(struct audit *audit, uint64_t value)
{
        audit->hash = (audit->hash ^ value) * 0x100000001b3u;
}

/* The last entry that begins before @end, if it reaches beyond @address. */
static struct entry *within(const struct set *set, uint64_t address, uint64_t end)
{
        struct entry *last = (struct entry *)set_at_most(set, end - 1, UINT64_MAX);

        return last && last->end > address ? last : NULL;
}

/* Return: false if something is there already. */
static bool put(struct set *set, uint64_t address, uint64_t size)
{
        struct entry *entry;

        if (within(set, address, address + size))
                return false;
        entry = must_calloc(1, sizeof(*entry));
        entry->node.high = address;
        entry->end = address + size;
        set_insert(set, &entry->node);
        return true;
}

/* Return: the end of what began at @address, 0 if nothing did. */
static uint64_t take(struct set *set, uint64_t address)
{
        struct set_node *node = set_at_least(set, address, 0);
        uint64_t end;

        if (!node || node->high != address)
                return 0;
        end = ((struct entry *)node)->end;
        set_remove(set, node);
        free(node);
        return end;
}

static bool is_mapped(const struct audit *audit, uint64_t address, uint64_t end)
{
        while (address < end) {
                const struct entry *segment = within(&audit->mapped, address, address + 1);

                if (!segment)
                        return false;
                address = segment->end;
        }
        return true;
}

/* blocks */

void audit_add(struct audit *audit, uint64_t address, uint64_t size)
{
        note(audit, address);
        if (!put(&audit->live, address, size))
                audit->overlaps++;
        if (audit->has_segments && !is_mapped(audit, address, address + size))
                audit->unmapped++;
}

void audit_take(struct audit *audit, uint64_t address)
{
        note(audit, ~address);
        if (!take(&audit->live, address))
                audit->unknown++;
}

/* segments */

void audit_map(struct audit *audit, uint64_t address, uint64_t size)
{
        audit->has_segments = true;
        if (!put(&audit->mapped, address, size))
                audit->overlaps++;
}

void audit_unmap(struct audit *audit, uint64_t address, uint64_t size)
{
        if (take(&audit->mapped, address) != address + size)
                audit->unknown++;
        if (within(&audit->live, address, address + size))
                audit->unmapped++;
}

/* outcome */

static void empty(struct set *set)
{
        struct set_node *node;

        while ((node = set_at_least(set, 0, 0)))
                take(set, node->high);
}

void audit_fini(struct audit *audit)
{
        empty(&audit->live);
        empty(&audit->mapped);
}

bool audit_is_clean(const struct audit *audit)
{
        return !audit->overlaps && !audit->unknown && !audit->unmapped && !audit->misplaced;
}
