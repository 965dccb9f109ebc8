/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Ledger -- what does the program hold, and what did it give back wrongly?
 *
 * A node is LIVE, then TAKEN while the driver is asked to free it, then FREED
 * and part of a bounded history, and LIVE again when its address comes back.
 * Another thread may be given an address while its node is TAKEN: it takes the
 * node over, and the sequence number tells the first thread so.
 */

#include "track/ledger.h"

#include <stdlib.h>

#include "base/life.h"
#include "track/ledger_inner.h"

#define SLAB_NODES 64

/* Of CUresult (cuda.h). */
enum { SUCCESS = 0, DEINITIALIZED = 4 };

struct sp_ledger sp_ledger = {.lock = SP_LOCK_INIT(SP_RANK_LEDGER)};

/* words */

static const char *const kind_names[SP_KIND_COUNT] = {
        [SP_KIND_DEVICE] = "device",
        [SP_KIND_ASYNC] = "async",
        [SP_KIND_PITCH] = "pitch",
        [SP_KIND_MANAGED] = "managed",
        [SP_KIND_ARRAY] = "array",
        [SP_KIND_MIPMAP] = "mipmap",
        [SP_KIND_VMM] = "vmm",
        [SP_KIND_PINNED] = "pinned",
        [SP_KIND_REGISTERED] = "registered",
        [SP_KIND_IMPORTED] = "imported",
        [SP_KIND_SHARED] = "shared",
        [SP_KIND_MAPPED] = "mapped",
};

const char *sp_kind_name(enum sp_kind kind)
{
        return kind_names[kind];
}

bool sp_kind_leaks(enum sp_kind kind)
{
        return kind < SP_KIND_IMPORTED;
}

static bool is_device_memory(enum sp_kind kind)
{
        return kind < SP_KIND_PINNED;
}

/* Stream-ordered and physical memory outlives contexts (E8). */
static bool dies_with_context(enum sp_kind kind)
{
        return kind != SP_KIND_ASYNC && kind != SP_KIND_VMM && kind != SP_KIND_SHARED &&
               kind != SP_KIND_MAPPED;
}

/* Opened as often as it is closed. */
static bool is_counted(enum sp_kind kind)
{
        return kind == SP_KIND_IMPORTED || kind == SP_KIND_SHARED;
}

enum sp_space sp_space_of(enum sp_kind kind)
{
        switch (kind) {
        case SP_KIND_PINNED:
        case SP_KIND_REGISTERED:
                return SP_SPACE_HOST;
        case SP_KIND_ARRAY:
                return SP_SPACE_ARRAY;
        case SP_KIND_MIPMAP:
                return SP_SPACE_MIPMAP;
        case SP_KIND_VMM:
        case SP_KIND_SHARED:
                return SP_SPACE_HANDLE;
        case SP_KIND_MAPPED:
                return SP_SPACE_MAPPED;
        default:
                return SP_SPACE_DEVICE;
        }
}

/* nodes */

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

void sp_node_count_locked(const struct sp_ledger_node *node, bool alive)
{
        const struct sp_ledger_entry *entry = &node->entry;
        struct sp_kind_totals *totals = &sp_ledger.totals.kind[entry->kind];
        int device = entry->device < SP_LEDGER_DEVICES ? entry->device : SP_LEDGER_DEVICES - 1;
        bool on_device = is_device_memory(entry->kind) && device >= 0;

        if (!alive) {
                totals->count--;
                totals->bytes -= entry->bytes;
                if (on_device)
                        sp_ledger.totals.device[device].bytes -= entry->bytes;
                return;
        }
        totals->count++;
        totals->bytes += entry->bytes;
        if (totals->count_high < totals->count)
                totals->count_high = totals->count;
        if (totals->bytes_high < totals->bytes)
                totals->bytes_high = totals->bytes;
        if (on_device) {
                uint64_t bytes = sp_ledger.totals.device[device].bytes += entry->bytes;

                if (sp_ledger.totals.device[device].bytes_high < bytes)
                        sp_ledger.totals.device[device].bytes_high = bytes;
        }
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
        if (node->memory)
                sp_physical_unmapped_locked(node);
        node->freed_by = freed_by;
        node->freed_at = sp_caller;
        node->context_ended = false;
        history_append_locked(node);
}

/* entries */

/* What stood at the address of a new entry; NULL if its node cannot be used again. */
static struct sp_ledger_node *vacate_locked(struct sp_ledger_node *node)
{
        if (node->state == SP_NODE_FREED) {
                history_remove_locked(node);
                return node;
        }
        if (node->state == SP_NODE_LIVE) {
                sp_node_count_locked(node, false);
                sp_ledger.totals.kind[node->entry.kind].lost++;
        }
        if (node->memory)
                sp_physical_unmapped_locked(node);
        if (node->maps == 0)
                return node;
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

void sp_ledger_add(const struct sp_ledger_entry *entry)
{
        struct sp_kind_totals *totals = &sp_ledger.totals.kind[entry->kind];
        struct sp_ledger_node *node = NULL;

        sp_lock_take(&sp_ledger.lock);
        totals->made++;
        totals->made_bytes += entry->bytes;
        totals->pooled += entry->pooled;
        if (is_counted(entry->kind))
                node = sp_node_find_locked(sp_space_of(entry->kind), entry->address);
        /* A handle that was made here and comes back is one more to the same memory. */
        if (node && node->state == SP_NODE_LIVE &&
            (node->entry.kind == entry->kind || node->entry.kind == SP_KIND_VMM))
                node->holds++;
        else
                (void)sp_node_write_locked(entry);
        sp_lock_drop(&sp_ledger.lock);
}

bool sp_ledger_take(enum sp_space space, uint64_t address, struct sp_ledger_entry *entry)
{
        struct sp_ledger_node *node;
        bool found;

        sp_lock_take(&sp_ledger.lock);
        node = sp_node_find_locked(space, address);
        found = node && node->state == SP_NODE_LIVE;
        if (found) {
                *entry = node->entry;
                if (--node->holds == 0) {
                        node->state = SP_NODE_TAKEN;
                        sp_node_count_locked(node, false);
                }
        }
        sp_lock_drop(&sp_ledger.lock);
        return found;
}

/* The node of an entry that was taken; NULL if its address has been given out again since. */
static struct sp_ledger_node *taken_locked(const struct sp_ledger_entry *entry)
{
        struct sp_ledger_node *node = sp_node_find_locked(sp_space_of(entry->kind), entry->address);

        if (!node || node->state == SP_NODE_FREED || node->entry.sequence != entry->sequence)
                return NULL;
        return node;
}

void sp_ledger_put_back(const struct sp_ledger_entry *entry)
{
        struct sp_ledger_node *node;

        sp_lock_take(&sp_ledger.lock);
        node = taken_locked(entry);
        if (node) {
                node->holds++;
                if (node->state == SP_NODE_TAKEN) {
                        node->state = SP_NODE_LIVE;
                        sp_node_count_locked(node, true);
                }
        }
        sp_lock_drop(&sp_ledger.lock);
}

void sp_ledger_freed(const struct sp_ledger_entry *entry, const char *function)
{
        struct sp_ledger_node *node;

        sp_lock_take(&sp_ledger.lock);
        node = taken_locked(entry);
        sp_ledger.totals.kind[entry->kind].freed++;
        if (node && node->state == SP_NODE_TAKEN) {
                if (node->maps)
                        sp_physical_release_locked(node, function);
                else
                        sp_node_retire_locked(node, function);
        }
        sp_lock_drop(&sp_ledger.lock);
}

void sp_ledger_free_ended(const struct sp_ledger_entry *entry, enum sp_space space,
                          uint64_t address, const char *function, int result)
{
        if (entry && (result == SUCCESS || result == DEINITIALIZED)) {
                sp_ledger_freed(entry, function);
                return;
        }
        if (entry)
                sp_ledger_put_back(entry);
        sp_ledger_bad_free(space, address, function, result);
}

bool sp_ledger_find(enum sp_space space, uint64_t address, struct sp_ledger_entry *entry)
{
        struct sp_ledger_node *node;
        bool found;

        sp_lock_take(&sp_ledger.lock);
        node = sp_node_find_locked(space, address);
        found = node && node->state == SP_NODE_LIVE;
        if (found)
                *entry = node->entry;
        sp_lock_drop(&sp_ledger.lock);
        return found;
}

void sp_ledger_context_gone(uint32_t context)
{
        if (sp_life_state() == SP_LIFE_LEAVING)
                return;
        sp_lock_take(&sp_ledger.lock);
        /* Retiring may drop the oldest of the history, never the node itself. */
        for (struct sp_ledger_node *node = sp_ledger.nodes; node; node = node->hh.next) {
                if (node->state != SP_NODE_LIVE || node->entry.context != context ||
                    !dies_with_context(node->entry.kind))
                        continue;
                sp_ledger.totals.kind[node->entry.kind].released++;
                sp_node_retire_locked(node, "the end of its context");
                node->context_ended = true;
        }
        sp_lock_drop(&sp_ledger.lock);
}

/* figures */

bool sp_ledger_totals(struct sp_ledger_totals *totals)
{
        if (!sp_lock_take_bounded(&sp_ledger.lock, SP_LEDGER_PATIENCE))
                return false;
        *totals = sp_ledger.totals;
        sp_lock_drop(&sp_ledger.lock);
        return true;
}

bool sp_ledger_each_live(void (*visit)(const struct sp_ledger_entry *entry, void *user), void *user)
{
        if (!sp_lock_take_bounded(&sp_ledger.lock, SP_LEDGER_PATIENCE))
                return false;
        for (struct sp_ledger_node *node = sp_ledger.nodes; node; node = node->hh.next) {
                if (node->state == SP_NODE_LIVE)
                        visit(&node->entry, user);
        }
        sp_lock_drop(&sp_ledger.lock);
        return true;
}

void sp_ledger_reset_peaks(void)
{
        sp_lock_take(&sp_ledger.lock);
        for (unsigned int i = 0; i < SP_KIND_COUNT; i++) {
                sp_ledger.totals.kind[i].count_high = sp_ledger.totals.kind[i].count;
                sp_ledger.totals.kind[i].bytes_high = sp_ledger.totals.kind[i].bytes;
        }
        for (unsigned int i = 0; i < SP_LEDGER_DEVICES; i++)
                sp_ledger.totals.device[i].bytes_high = sp_ledger.totals.device[i].bytes;
        sp_lock_drop(&sp_ledger.lock);
}
