/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Ledger -- what does the program hold, and what did it give back wrongly?
 *
 * What the kinds are, and how an entry comes and goes. Another thread may be
 * given an address while the driver is asked to free it: it takes the node over,
 * and the sequence number tells the first thread so.
 */

#include "track/ledger.h"

#include <streampool/stats.h>
#include <string.h>

#include "base/life.h"
#include "track/held.h"
#include "track/ledger_inner.h"
#include "track/state.h"

/* Of CUresult (cuda.h). */
enum { SUCCESS = 0, DEINITIALIZED = 4 };

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

/* entries */

void sp_ledger_add(const struct sp_ledger_entry *entry)
{
        struct sp_kind_totals *totals = &sp_ledger.totals.kind[entry->kind];
        struct sp_ledger_node *node = NULL;

        sp_model_enter();
        totals->tally.made++;
        totals->tally.made_bytes += entry->bytes;
        totals->pooled++;
        if (is_counted(entry->kind))
                node = sp_node_find_locked(sp_space_of(entry->kind), entry->address);
        /* A handle that was made here and comes back is one more to the same memory. */
        if (node && node->state == SP_NODE_LIVE &&
            (node->entry.kind == entry->kind || node->entry.kind == SP_KIND_VMM))
                node->holds++;
        else
                (void)sp_node_write_locked(entry);
        sp_model_leave();
}

bool sp_ledger_take(enum sp_space space, uint64_t address, struct sp_ledger_entry *entry)
{
        struct sp_ledger_node *node;
        bool found;

        sp_model_enter();
        node = sp_node_find_locked(space, address);
        found = node && node->state == SP_NODE_LIVE;
        if (found) {
                *entry = node->entry;
                if (--node->holds == 0) {
                        node->state = SP_NODE_TAKEN;
                        sp_node_count_locked(node, false);
                }
        }
        sp_model_leave();
        return found;
}

bool sp_ledger_is_fatal(uint64_t address)
{
        const struct sp_ledger_node *node;
        bool fatal;

        sp_model_enter();
        node = sp_node_find_locked(SP_SPACE_DEVICE, address);
        fatal = node && node->state == SP_NODE_FREED && !node->context_ended &&
                node->entry.kind == SP_KIND_DEVICE && !strcmp(node->freed_by, "cuMemFreeAsync");
        sp_model_leave();
        return fatal;
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

        sp_model_enter();
        node = taken_locked(entry);
        if (node) {
                node->holds++;
                if (node->state == SP_NODE_TAKEN) {
                        node->state = SP_NODE_LIVE;
                        sp_node_count_locked(node, true);
                }
        }
        sp_model_leave();
}

size_t sp_ledger_keep_counted(const struct sp_ledger_entry *entry)
{
        struct sp_ledger_node *node;
        size_t counted = 0;

        sp_model_enter();
        node = taken_locked(entry);
        if (node) {
                counted = node->entry.counted;
                node->entry.counted = 0;
        }
        sp_model_leave();
        return counted;
}

void sp_ledger_freed(const struct sp_ledger_entry *entry, const char *function)
{
        struct sp_ledger_node *node;

        sp_model_enter();
        node = taken_locked(entry);
        sp_ledger.totals.kind[entry->kind].tally.freed++;
        if (node && node->state == SP_NODE_TAKEN) {
                if (node->maps)
                        sp_physical_release_locked(node, function);
                else
                        sp_node_retire_locked(node, function);
        }
        sp_model_leave();
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
        const struct spm_model *model = sp_model_enter();
        struct sp_ledger_node *node = sp_node_find_locked(space, address);
        bool found = node && node->state == SP_NODE_LIVE;

        if (found)
                *entry = node->entry;
        else
                found = sp_held_at(model, address, entry) && entry->address == address &&
                        sp_space_of(entry->kind) == space;
        sp_model_leave();
        return found;
}

void sp_ledger_context_gone(uint32_t context)
{
        if (sp_life_state() == SP_LIFE_LEAVING)
                return;
        sp_model_enter();
        /* Retiring may drop the oldest of the history, never the node itself. */
        for (struct sp_ledger_node *node = sp_ledger.nodes; node; node = node->hh.next) {
                if (node->state != SP_NODE_LIVE || node->entry.context != context ||
                    !dies_with_context(node->entry.kind))
                        continue;
                sp_ledger.totals.kind[node->entry.kind].released++;
                sp_node_retire_locked(node, "the end of its context");
                node->context_ended = true;
        }
        sp_model_leave();
}

/* figures */

bool sp_ledger_totals(struct sp_ledger_totals *totals)
{
        struct spm_model *model;

        if (!sp_books_enter_bounded(&model))
                return false;
        if (model)
                spm_settle(model);
        *totals = sp_ledger.totals;
        sp_model_leave();
        for (unsigned int i = 0; i < SP_KIND_COUNT; i++)
                totals->kind[i].pooled = totals->kind[i].tally.made - totals->kind[i].pooled;
        return true;
}

bool sp_ledger_each_live(void (*visit)(const struct sp_ledger_entry *entry, void *user), void *user)
{
        struct spm_model *model;

        if (!sp_books_enter_bounded(&model))
                return false;
        sp_held_each(model, visit, user);
        for (struct sp_ledger_node *node = sp_ledger.nodes; node; node = node->hh.next) {
                if (node->state == SP_NODE_LIVE)
                        visit(&node->entry, user);
        }
        sp_model_leave();
        return true;
}

static void reset_peaks(struct spm_tally *tally)
{
        tally->count_high = tally->count;
        tally->bytes_high = tally->bytes;
}

void sp_ledger_reset_peaks(void)
{
        struct spm_model *model = sp_model_enter();

        if (model)
                spm_settle(model);
        for (unsigned int i = 0; i < SP_KIND_COUNT; i++)
                reset_peaks(&sp_ledger.totals.kind[i].tally);
        for (unsigned int i = 0; i < SP_LEDGER_DEVICES; i++)
                reset_peaks(&sp_ledger.totals.device[i]);
        sp_model_leave();
}
