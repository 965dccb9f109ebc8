/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_LEDGER_INNER_H
#define SP_LEDGER_INNER_H

/*
 * Ledger, inside -- what its files share
 *
 *   ledger.c     entries come and go
 *   node.c       the table they are in
 *   lost.c       entries that cannot be alive
 *   physical.c   memory that has handles and mappings
 *   refused.c    what a refused free was
 *   misuse.c     the list of findings, and whose memory is touched
 *
 * One table holds the live entries and the last ones that were freed, so that
 * the pair of calls that matters most, an address coming back at once, finds
 * its node in place and moves nothing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/table.h"
#include "track/ledger.h"

#define SP_LEDGER_HISTORY 4096 /* freed entries that are remembered */

enum sp_node_state {
        SP_NODE_LIVE,
        SP_NODE_TAKEN, /* the driver is being asked to free it */
        SP_NODE_FREED, /* history */
};

/* No padding: compared as bytes. */
struct sp_ledger_key {
        uint64_t address;
        uint64_t space;
};

struct sp_ledger_node {
        struct sp_ledger_key key;
        struct sp_ledger_entry entry;
        enum sp_node_state state;
        bool context_ended;            /* FREED: by sp_ledger_context_gone() */
        unsigned int holds;            /* imports, or handles given out; 1 for other kinds */
        unsigned int maps;             /* HANDLE and ORPHAN: mappings that point here */
        struct sp_ledger_node *memory; /* MAPPED and LIVE: what is mapped, or NULL */
        const char *freed_by;
        const void *freed_at;
        struct sp_reuse before;       /* who had the address before; freed_by is NULL if none had */
        struct sp_ledger_node *older; /* FREED: in the history */
        struct sp_ledger_node *newer; /* the same; or the next spare node */
        UT_hash_handle hh;
};

/* Guarded by: the model's lock. Nodes are recycled and never given back to the host. */
struct sp_ledger {
        struct sp_ledger_node *nodes; /* by key */
        struct sp_ledger_node *oldest, *newest;
        size_t history;
        struct sp_ledger_node *spare;
        uint64_t sequence;
        struct sp_ledger_totals totals;              /* @pooled counts what the driver served */
        struct spm_tally created[SP_LEDGER_DEVICES]; /* of SP_KIND_VMM; its peak is not reset */
        struct sp_finding findings[SP_LEDGER_FINDINGS];
        size_t finding_count;
        unsigned int scans; /* walks over all nodes that a bad free has cost */
};

extern struct sp_ledger sp_ledger;

enum sp_space sp_space_of(enum sp_kind kind);

/** sp_ledger_device() - where the figures of a device are. */
static inline int sp_ledger_device(int device)
{
        return device < SP_LEDGER_DEVICES ? device : SP_LEDGER_DEVICES - 1;
}

/** sp_ledger_device_tally() - of device memory on @device; NULL for other kinds and places. */
struct spm_tally *sp_ledger_device_tally(enum sp_kind kind, int device);

/* All of these need the model's lock. */

struct sp_ledger_node *sp_node_find_locked(enum sp_space space, uint64_t address);

/** sp_node_claim_locked() - a node for an address, TAKEN, counted nowhere and otherwise not filled
 * in; what stood there is lost or history. NULL if the host has no memory. */
struct sp_ledger_node *sp_node_claim_locked(enum sp_space space, uint64_t address);

/** sp_node_write_locked() - a live node for @entry; NULL if the host has no memory. */
struct sp_ledger_node *sp_node_write_locked(const struct sp_ledger_entry *entry);

/** sp_node_rekey_locked() - the same node under another key; false if it had to be dropped for
 * lack of memory. */
bool sp_node_rekey_locked(struct sp_ledger_node *node, enum sp_space space, uint64_t address);

/** sp_node_retire_locked() - from LIVE or TAKEN to history. */
void sp_node_retire_locked(struct sp_ledger_node *node, const char *freed_by);

/** sp_node_forget_locked() - out of history. */
void sp_node_forget_locked(struct sp_ledger_node *node);

/** sp_node_drop_locked() - forget a node that is not in history. */
void sp_node_drop_locked(struct sp_ledger_node *node);

/** sp_node_count_locked() - @node counts among the live, or no longer. */
void sp_node_count_locked(const struct sp_ledger_node *node, bool alive);

/** sp_node_uncount_locked() - the memory of @node is gone, and counts against no limit any more. */
void sp_node_uncount_locked(struct sp_ledger_node *node);

/** sp_finding_about() - @finding is about @node, which is freed or lives. */
void sp_finding_about(struct sp_finding *finding, const struct sp_ledger_node *node);

struct sp_past;

/** sp_finding_about_past() - @finding is about a block that the pools had. */
void sp_finding_about_past(struct sp_finding *finding, const struct sp_past *past);

/** sp_physical_orphan_locked() - @node, TAKEN, has lost its handle and lives on by its mappings. */
void sp_physical_orphan_locked(struct sp_ledger_node *node);

/** sp_physical_release_locked() - the same, because its last handle was released by @function. */
void sp_physical_release_locked(struct sp_ledger_node *node, const char *function);

/** sp_physical_unmapped_locked() - the mapping @node no longer holds its memory. */
void sp_physical_unmapped_locked(struct sp_ledger_node *node);

#endif
