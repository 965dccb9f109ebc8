/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AUDIT_H
#define AUDIT_H

/*
 * Audit -- is everything that an allocator serves disjoint?
 *
 * A figure of an allocator that serves a byte twice is worth nothing. The
 * audit keeps every live block by itself; it is used in tests, not while
 * something is timed.
 */

#include <stdbool.h>
#include <stdint.h>

#include "set.h"

struct audit {
        struct set live;
        uint64_t overlaps; /* blocks served over a live one */
        uint64_t unknown;  /* frees of what is not live */
        uint64_t hash;     /* of all addresses, in order */
};

/** audit_add() - a block was served. */
void audit_add(struct audit *audit, uint64_t address, uint64_t size);

/** audit_take() - it was freed. */
void audit_take(struct audit *audit, uint64_t address);

void audit_fini(struct audit *audit);

bool audit_is_clean(const struct audit *audit);

#endif
