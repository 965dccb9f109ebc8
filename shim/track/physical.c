/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Physical memory in the ledger -- alive while it has a handle or a mapping
 *
 * cuMemCreate gives a handle; retaining and importing give it again; cuMemMap
 * makes the memory live on when the last handle is released. It is counted
 * from its creation to the end of whichever is last, and leaks if there is a
 * mapping left at exit although nobody has a handle any more (E14).
 *
 * Without a handle it is kept in SP_SPACE_ORPHAN, by its sequence number.
 */

#include "track/ledger_inner.h"
#include "track/state.h"

/* To another key; if the host has no memory for that, nothing points to @node any more. */
static bool move_locked(struct sp_ledger_node *node, enum sp_space space, uint64_t address)
{
        if (sp_node_rekey_locked(node, space, address))
                return true;
        for (struct sp_ledger_node *map = sp_ledger.nodes; map; map = map->hh.next) {
                if (map->memory == node)
                        map->memory = NULL;
        }
        return false;
}

void sp_physical_orphan_locked(struct sp_ledger_node *node)
{
        if (!move_locked(node, SP_SPACE_ORPHAN, node->entry.sequence))
                return;
        node->state = SP_NODE_LIVE;
        sp_node_count_locked(node, true);
}

void sp_physical_release_locked(struct sp_ledger_node *node, const char *function)
{
        struct sp_ledger_entry entry = node->entry;
        struct sp_ledger_node *past;

        sp_physical_orphan_locked(node);
        entry.counted = 0;
        past = sp_node_claim_locked(SP_SPACE_HANDLE, entry.address);
        if (past) {
                past->entry = entry;
                sp_node_retire_locked(past, function);
        }
}

void sp_physical_unmapped_locked(struct sp_ledger_node *node)
{
        struct sp_ledger_node *memory = node->memory;

        node->memory = NULL;
        if (--memory->maps > 0 || memory->key.space != SP_SPACE_ORPHAN)
                return;
        sp_node_count_locked(memory, false);
        sp_node_uncount_locked(memory);
        sp_node_drop_locked(memory);
}

/* The mapping that holds @address, or NULL. */
static struct sp_ledger_node *mapping_locked(uint64_t address)
{
        struct sp_ledger_node *node = sp_node_find_locked(SP_SPACE_MAPPED, address);

        if (node && node->state == SP_NODE_LIVE)
                return node;
        for (node = sp_ledger.nodes; node; node = node->hh.next) {
                if (node->key.space == SP_SPACE_MAPPED && node->state == SP_NODE_LIVE &&
                    address - node->entry.address < node->entry.bytes)
                        return node;
        }
        return NULL;
}

void sp_ledger_retain(uint64_t handle, uint64_t address)
{
        struct sp_ledger_node *node;
        struct sp_ledger_node *map;

        sp_model_enter();
        node = sp_node_find_locked(SP_SPACE_HANDLE, handle);
        if (node && node->state == SP_NODE_LIVE) {
                node->holds++;
                goto drop;
        }
        map = mapping_locked(address);
        if (!map || !map->memory || map->memory->key.space != SP_SPACE_ORPHAN)
                goto drop;
        if (node && node->state == SP_NODE_FREED)
                sp_node_forget_locked(node);
        node = map->memory;
        if (move_locked(node, SP_SPACE_HANDLE, handle)) {
                node->entry.address = handle;
                node->holds = 1;
        }
drop:
        sp_model_leave();
}

uint64_t sp_ledger_below_peak(int device, uint64_t more)
{
        const struct spm_tally *created = &sp_ledger.created[sp_ledger_device(device)];
        uint64_t bytes, high;

        sp_model_enter();
        bytes = created->bytes + more;
        high = created->bytes_high;
        sp_model_leave();
        return high > bytes ? high - bytes : 0;
}

void sp_ledger_map(uint64_t address, size_t bytes, uint64_t handle)
{
        struct sp_ledger_entry entry = {
                .address = address,
                .bytes = bytes,
                .kind = SP_KIND_MAPPED,
                .device = -1,
        };
        struct sp_ledger_node *memory;
        struct sp_ledger_node *map;

        sp_model_enter();
        map = sp_node_write_locked(&entry);
        memory = sp_node_find_locked(SP_SPACE_HANDLE, handle);
        if (map && memory && memory->state == SP_NODE_LIVE) {
                map->memory = memory;
                memory->maps++;
        }
        sp_model_leave();
}

static void unmap_beyond_a_hole_locked(uint64_t address, size_t bytes)
{
        /* Retiring may drop the oldest of the history, never the node itself. */
        for (struct sp_ledger_node *node = sp_ledger.nodes; node; node = node->hh.next)
                if (node->key.space == SP_SPACE_MAPPED && node->state == SP_NODE_LIVE &&
                    node->entry.address - address < bytes)
                        sp_node_retire_locked(node, "cuMemUnmap");
}

void sp_ledger_unmap(uint64_t address, size_t bytes)
{
        uint64_t at = address;

        sp_model_enter();
        while (at - address < bytes) {
                struct sp_ledger_node *map = sp_node_find_locked(SP_SPACE_MAPPED, at);

                if (!map || map->state != SP_NODE_LIVE || map->entry.bytes == 0)
                        break;
                at += map->entry.bytes;
                sp_node_retire_locked(map, "cuMemUnmap");
        }
        if (at - address < bytes)
                unmap_beyond_a_hole_locked(at, bytes - (at - address));
        sp_model_leave();
}
