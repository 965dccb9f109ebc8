/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_SHORTAGE_H
#define SP_SHORTAGE_H

/*
 * Shortage -- the program was refused device memory: who holds it?
 *
 * Told on stderr when it happens (STREAMPOOL_LOG=1), the first time and then now
 * and then, because programs with caches of their own are refused as a matter of
 * course; and the last one that was told again in the report at exit.
 *
 * Nothing here calls the driver. A lock that another thread keeps is given up
 * on after a while; then `complete` is false and the figures are those that were to be had.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "track/ledger.h"

#define SP_SHORTAGE_ROWS 5 /* the largest of each list */

struct sp_holder {
        const void *site; /* NULL in a list of streams */
        uint64_t stream;  /* 0 in a list of sites, and for memory that is on no stream */
        enum sp_kind kind;
        uint64_t count, bytes;
};

/* Bytes, of one device and all its contexts. */
struct sp_shortage_pool {
        uint64_t used, reserved, pending, ready, largest_ready;
};

struct sp_shortage {
        /* What was asked for: the caller's to fill in. */
        enum sp_kind kind;
        uint64_t bytes;
        int device; /* -1 if not known; then what follows is of all devices */
        const void *site;
        bool by_limit;                    /* refused by STREAMPOOL_LIMIT, not by the driver */
        uint64_t limit, counted;          /* @limit is UINT64_MAX if there is none */
        uint64_t free_bytes, total_bytes; /* as the driver says; 0 if it does not */
        /* What sp_shortage_tell() finds out: who holds memory of the device. */
        bool complete;
        uint64_t time; /* of those that were told in this process, from 1 */
        uint64_t held_bytes, held_count;
        struct sp_holder kinds[SP_KIND_COUNT];
        struct sp_holder sites[SP_SHORTAGE_ROWS]; /* most bytes first; no count: no more */
        struct sp_holder streams[SP_SHORTAGE_ROWS];
        struct sp_shortage_pool sync, async;
};

/** sp_shortage_is_due() - is this one to be told? True for one thread at a time. */
bool sp_shortage_is_due(void);

/** sp_shortage_tell() - find out the rest, write it, keep it. */
void sp_shortage_tell(struct sp_shortage *shortage);

/** sp_shortage_last() - the last one that was told; false if there was none. */
bool sp_shortage_last(struct sp_shortage *shortage);

/** sp_shortage_text() - for people; more lines than one. */
void sp_shortage_text(struct sp_text *text, const struct sp_shortage *shortage);

#endif
