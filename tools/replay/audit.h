/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AUDIT_H
#define AUDIT_H

/*
 * Audit -- is everything that an allocator serves disjoint, and is there memory?
 *
 * A figure of an allocator that serves a byte twice, or one that it has given
 * back, is worth nothing. The audit keeps every live block and every segment by
 * itself; it is used in tests, not while something is timed.
 */

#include <stdbool.h>
#include <stdint.h>

#include "set.h"

struct audit {
        struct set live;
        struct set mapped;  /* segments */
        bool has_segments;  /* the allocator tells of them; if not, they are not looked at */
        uint64_t overlaps;  /* blocks served over a live one, segments over another */
        uint64_t unknown;   /* frees of what is not live, releases of what is no segment */
        uint64_t unmapped;  /* blocks that were served, or still live, where no memory is */
        uint64_t misplaced; /* segments where the allocator may have none */
        uint64_t hash;      /* of all addresses, in order */
};

/** audit_add() - a block was served. */
void audit_add(struct audit *audit, uint64_t address, uint64_t size);

/** audit_take() - it was freed. */
void audit_take(struct audit *audit, uint64_t address);

/** audit_map() - a segment was obtained. */
void audit_map(struct audit *audit, uint64_t address, uint64_t size);

/** audit_unmap() - it was given back, in one piece. */
void audit_unmap(struct audit *audit, uint64_t address, uint64_t size);

void audit_fini(struct audit *audit);

bool audit_is_clean(const struct audit *audit);

#endif
