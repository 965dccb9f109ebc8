/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Nodes of the ledger -- one table of what lives and what was freed last
 *
 * A node is LIVE, then TAKEN while the driver is asked to free it, then FREED
 * and part of a bounded history, and LIVE again when its address comes back.
 */

#include "track/ledger_inner.h"

#include <stdlib.h>

#include <streampool/stats.h>

#include "base/life.h"
#include "track/limit.h"

#define SLAB_NODES 64

struct sp_ledger sp_ledger;

/* Addresses differ in their middle bits; a multiplication brings them where uthash looks. */
static unsigned int hash_of(const struct sp_ledger_key *key)
{
        return (unsigned int)(((key->address ^ key->space << 60) * 0x9e3779b97f4a7c15ULL) >> 32);
}

struct sp_ledger_node *sp_node_find_locked(enum sp_space space, uint64_t address)
{
        struct sp_ledger_key key = {.address = address, .space = space};
        struct sp_ledger_node *node;

        HASH_FIND_BYHASHVALUE(hh, sp_ledger.nodes, &key, sizeof(key), hash_of(&key), node);
        return node;
}

static struct sp_ledger_node *node_new_locked(void)
{
        struct sp_ledger_node *node = sp_ledger.spare;

        if (!node) {
                node = calloc(SLAB_NODES, sizeof(*node));
                if (!node)
                        return NULL;
                for (size_t i = 0; i + 1 < SLAB_NODES; i++)
                        node[i].newer = &node[i + 1];
        }
        sp_ledger.spare = node->newer;
        return node;
}

static bool node_insert_locked(struct sp_ledger_node *node, enum sp_space space, uint64_t address)
{
        node->key = (struct sp_ledger_key){.address = address, .space = space};
        node->hh.tbl = NULL;
        HASH_ADD_BYHASHVALUE(hh, sp_ledger.nodes, key, sizeof(node->key), hash_of(&node->key),
                             node);
        if (node->hh.tbl)
                return true;
        sp_ledger.totals.unwritten++;
        node->newer = sp_ledger.spare;
        sp_ledger.spare = node;
        return false;
}

void sp_node_drop_locked(struct sp_ledger_node *node)
{
        HASH_DELETE(hh, sp_ledger.nodes, node);
        node->newer = sp_ledger.spare;
        sp_ledger.spare = node;
}

bool sp_node_rekey_locked(struct sp_ledger_node *node, enum sp_space space, uint64_t address)
{
        HASH_DELETE(hh, sp_ledger.nodes, node);
        return node_insert_locked(node, space, address);
}

struct spm_tally *sp_ledger_device_tally(enum sp_kind kind, int device)
{
        if (kind >= SP_KIND_PINNED || device < 0)
                return NULL;
        return &sp_ledger.totals.device[sp_ledger_device(device)];
}

void sp_node_count_locked(const struct sp_ledger_node *node, bool alive)
{
        const struct sp_ledger_entry *entry = &node->entry;
        struct spm_tally *tallies[] = {
                &sp_ledger.totals.kind[entry->kind].tally,
                sp_ledger_device_tally(entry->kind, entry->device),
                entry->kind == SP_KIND_VMM && entry->device >= 0
                        ? &sp_ledger.created[sp_ledger_device(entry->device)]
                        : NULL,
        };

        for (int i = 0; i < 3; i++) {
                if (tallies[i] && alive)
                        spm_tally_add(tallies[i], entry->bytes);
                else if (tallies[i])
                        spm_tally_take(tallies[i], entry->bytes);
        }
}

void sp_node_uncount_locked(struct sp_ledger_node *node)
{
        bool is_locked =
                node->entry.kind == SP_KIND_PINNED || node->entry.kind == SP_KIND_REGISTERED;

        sp_limit_give(is_locked ? SP_LIMIT_HOST : node->entry.device, node->entry.counted);
        node->entry.counted = 0;
}

/* history */

static void history_remove_locked(struct sp_ledger_node *node)
{
        if (node->older)
                node->older->newer = node->newer;
        else
                sp_ledger.oldest = node->newer;
        if (node->newer)
                node->newer->older = node->older;
        else
                sp_ledger.newest = node->older;
        sp_ledger.history--;
}

static void history_append_locked(struct sp_ledger_node *node)
{
        node->state = SP_NODE_FREED;
        node->older = sp_ledger.newest;
        node->newer = NULL;
        if (sp_ledger.newest)
                sp_ledger.newest->newer = node;
        else
                sp_ledger.oldest = node;
        sp_ledger.newest = node;
        if (++sp_ledger.history > SP_LEDGER_HISTORY) {
                struct sp_ledger_node *oldest = sp_ledger.oldest;

                history_remove_locked(oldest);
                sp_node_drop_locked(oldest);
        }
}

void sp_node_forget_locked(struct sp_ledger_node *node)
{
        history_remove_locked(node);
        sp_node_drop_locked(node);
}

void sp_node_retire_locked(struct sp_ledger_node *node, const char *freed_by)
{
        if (node->state == SP_NODE_LIVE)
                sp_node_count_locked(node, false);
        sp_node_uncount_locked(node);
        if (node->memory)
                sp_physical_unmapped_locked(node);
        node->freed_by = freed_by;
        node->freed_at = sp_caller;
        node->context_ended = false;
        history_append_locked(node);
}

/* addresses */

static struct sp_reuse life_of(const struct sp_ledger_node *node)
{
        return (struct sp_reuse){
                .address = node->entry.address,
                .bytes = node->entry.bytes,
                .kind = node->entry.kind,
                .site = node->entry.site,
                .freed_by = node->freed_by,
                .freed_at = node->freed_at,
        };
}

/* What stood at the address of a new entry; NULL if its node cannot be used again. */
static struct sp_ledger_node *vacate_locked(struct sp_ledger_node *node)
{
        if (node->state == SP_NODE_FREED) {
                history_remove_locked(node);
                node->before = life_of(node);
                return node;
        }
        /* How this one ended, or is about to, is not known. */
        node->before = (struct sp_reuse){0};
        if (node->state == SP_NODE_LIVE) {
                sp_node_count_locked(node, false);
                sp_ledger.totals.kind[node->entry.kind].lost++;
        }
        if (node->memory)
                sp_physical_unmapped_locked(node);
        if (node->maps == 0) {
                sp_node_uncount_locked(node);
                return node;
        }
        node->state = SP_NODE_TAKEN;
        sp_physical_orphan_locked(node);
        return NULL;
}

struct sp_ledger_node *sp_node_claim_locked(enum sp_space space, uint64_t address)
{
        struct sp_ledger_node *node = sp_node_find_locked(space, address);

        if (node)
                node = vacate_locked(node);
        if (!node) {
                node = node_new_locked();
                if (!node) {
                        sp_ledger.totals.unwritten++;
                        return NULL;
                }
                if (!node_insert_locked(node, space, address))
                        return NULL;
                node->before = (struct sp_reuse){0};
        }
        node->state = SP_NODE_TAKEN;
        node->holds = 0;
        node->maps = 0;
        node->memory = NULL;
        return node;
}

struct sp_ledger_node *sp_node_write_locked(const struct sp_ledger_entry *entry)
{
        struct sp_ledger_node *node =
                sp_node_claim_locked(sp_space_of(entry->kind), entry->address);

        if (!node)
                return NULL;
        node->entry = *entry;
        if (!entry->site)
                node->entry.site = sp_caller;
        if (!entry->sequence)
                node->entry.sequence = ++sp_ledger.sequence;
        node->state = SP_NODE_LIVE;
        node->holds = 1;
        sp_node_count_locked(node, true);
        return node;
}
