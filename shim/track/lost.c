/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lost -- which entries cannot be alive, though nobody was seen to free them?
 *
 * The driver gives out no address of memory that lives. Where two entries of the ledger overlap,
 * the older one was freed in a way that was not seen: past the shim, or with something that took it
 * along. If both begin at one address, that is noticed at once (node.c). Else it is found here, by
 * a walk over all entries in the order of their addresses, once for a report and not for a call. So
 * what is lost is not called a leak.
 *
 * Only memory that the driver has made for us is compared. What it made elsewhere, or maps where
 * the program says, can have several names.
 */

#include "track/ledger_inner.h"
#include "track/state.h"

static bool is_compared(const struct sp_ledger_node *node)
{
        switch (node->entry.kind) {
        case SP_KIND_DEVICE:
        case SP_KIND_ASYNC:
        case SP_KIND_PITCH:
        case SP_KIND_MANAGED:
        case SP_KIND_PINNED:
                return node->state == SP_NODE_LIVE;
        default:
                return false;
        }
}

static int by_address(const struct sp_ledger_node *a, const struct sp_ledger_node *b)
{
        return (a->key.address > b->key.address) - (a->key.address < b->key.address);
}

static void lose_locked(struct sp_ledger_node *node)
{
        sp_ledger.totals.kind[node->entry.kind].lost++;
        sp_node_retire_locked(node, "a call that was not seen");
        node->freed_at = NULL;
}

/* Of the entries so far, the one that reaches farthest. */
struct reach {
        uint64_t end;
        uint64_t sequence;
        struct sp_ledger_node *node; /* NULL if it is lost itself; what it lies over still is */
};

static void compare_locked(struct reach *reach, struct sp_ledger_node *node)
{
        uint64_t end = node->entry.address + node->entry.bytes;
        uint64_t sequence = node->entry.sequence;

        if (node->entry.address < reach->end && sequence > reach->sequence) {
                if (reach->node)
                        lose_locked(reach->node);
                reach->node = NULL;
        } else if (node->entry.address < reach->end) {
                lose_locked(node);
                node = NULL;
        }
        if (end > reach->end)
                *reach = (struct reach){end, sequence, node};
}

void sp_ledger_find_lost(void)
{
        struct reach reach = {0};
        struct spm_model *model;

        if (!sp_books_enter_bounded(&model))
                return;
        HASH_SRT(hh, sp_ledger.nodes, by_address);
        /* To retire one may drop the oldest of the history, never a node that lives. */
        for (struct sp_ledger_node *node = sp_ledger.nodes; node; node = node->hh.next)
                if (is_compared(node))
                        compare_locked(&reach, node);
        sp_model_leave();
}
