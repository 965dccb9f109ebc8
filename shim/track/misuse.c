/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Misuse in the ledger -- what was a refused free?
 *
 * The driver says "invalid value" and no more. We say which: from the entry at
 * that address, its history, the other spaces, and the live allocations around
 * it. The last is a walk over all entries, so a program that does nothing but
 * wrong frees is told "foreign" after a while instead of being slowed down.
 */

#include <string.h>

#include "base/life.h"
#include "track/ledger_inner.h"

#define SCANS_MAX 1000

/* The CUresult values that blame the argument (cuda.h): INVALID_VALUE, INVALID_HANDLE,
 * HOST_MEMORY_NOT_REGISTERED, NOT_SUPPORTED. The others tell of a device or context in error. */
static bool blames_argument(int result)
{
        return result == 1 || result == 400 || result == 713 || result == 801;
}

static const char *const finding_names[SP_FINDING_COUNT] = {
        [SP_FINDING_DOUBLE_FREE] = "double_free", [SP_FINDING_WRONG_KIND] = "wrong_kind",
        [SP_FINDING_INTERIOR] = "interior",       [SP_FINDING_AFTER_CONTEXT] = "after_context",
        [SP_FINDING_FOREIGN] = "foreign",
};

const char *sp_finding_name(enum sp_finding_kind kind)
{
        return finding_names[kind];
}

static bool has_range(uint64_t space)
{
        return space == SP_SPACE_DEVICE || space == SP_SPACE_HOST || space == SP_SPACE_MAPPED;
}

/* A live entry of another space at exactly @address. */
static struct sp_ledger_node *elsewhere_locked(enum sp_space space, uint64_t address)
{
        for (enum sp_space other = 0; other < SP_SPACE_ORPHAN; other++) {
                struct sp_ledger_node *node = NULL;

                if (other != space)
                        node = sp_node_find_locked(other, address);
                if (node && node->state == SP_NODE_LIVE)
                        return node;
        }
        return NULL;
}

/* A live allocation around @address. */
static struct sp_ledger_node *around_locked(enum sp_space space, uint64_t address)
{
        if (!has_range(space) || sp_ledger.scans >= SCANS_MAX)
                return NULL;
        sp_ledger.scans++;
        for (struct sp_ledger_node *node = sp_ledger.nodes; node; node = node->hh.next) {
                if (node->state == SP_NODE_LIVE && has_range(node->key.space) &&
                    address - node->entry.address < node->entry.bytes)
                        return node;
        }
        return NULL;
}

/* Memory of the device may be the host's after it was freed, and the other way round. */
static struct sp_ledger_node *successor_locked(enum sp_space space, uint64_t address)
{
        enum sp_space other = space == SP_SPACE_DEVICE ? SP_SPACE_HOST : SP_SPACE_DEVICE;
        struct sp_ledger_node *node = NULL;

        if (space == SP_SPACE_DEVICE || space == SP_SPACE_HOST)
                node = sp_node_find_locked(other, address);
        return node && node->state == SP_NODE_LIVE ? node : NULL;
}

static enum sp_finding_kind classify_locked(enum sp_space space, uint64_t address,
                                            struct sp_ledger_node **block)
{
        struct sp_ledger_node *node = sp_node_find_locked(space, address);

        if (node && node->state == SP_NODE_FREED) {
                *block = successor_locked(space, address);
                if (*block)
                        return SP_FINDING_WRONG_KIND;
        }
        *block = node;
        if (node && node->state == SP_NODE_FREED && node->context_ended)
                return SP_FINDING_AFTER_CONTEXT;
        /* TAKEN: another thread is freeing it at this moment. */
        if (node && node->state != SP_NODE_LIVE)
                return SP_FINDING_DOUBLE_FREE;
        if (node)
                return SP_FINDING_WRONG_KIND;
        *block = elsewhere_locked(space, address);
        if (*block)
                return SP_FINDING_WRONG_KIND;
        *block = around_locked(space, address);
        if (*block)
                return (*block)->key.space == space ? SP_FINDING_INTERIOR : SP_FINDING_WRONG_KIND;
        return SP_FINDING_FOREIGN;
}

static bool is_same(const struct sp_finding *a, const struct sp_finding *b)
{
        return a->kind == b->kind && a->site == b->site && a->result == b->result &&
               strcmp(a->function, b->function) == 0 && a->has_block == b->has_block &&
               a->block.kind == b->block.kind && a->block.site == b->block.site &&
               a->freed_at == b->freed_at;
}

static void list_locked(const struct sp_finding *finding)
{
        for (size_t i = 0; i < sp_ledger.finding_count; i++) {
                if (is_same(&sp_ledger.findings[i], finding)) {
                        sp_ledger.findings[i].times++;
                        return;
                }
        }
        if (sp_ledger.finding_count == SP_LEDGER_FINDINGS) {
                sp_ledger.totals.unlisted++;
                return;
        }
        sp_ledger.findings[sp_ledger.finding_count++] = *finding;
}

void sp_ledger_bad_free(enum sp_space space, uint64_t address, const char *function, int result)
{
        struct sp_finding finding = {
                .address = address,
                .result = result,
                .function = function,
                .site = sp_caller,
                .times = 1,
        };
        struct sp_ledger_node *block;

        if (address == 0 || !blames_argument(result))
                return;
        sp_lock_take(&sp_ledger.lock);
        finding.kind = classify_locked(space, address, &block);
        if (block) {
                finding.has_block = true;
                finding.block = block->entry;
                if (block->state == SP_NODE_FREED) {
                        finding.freed_by = block->freed_by;
                        finding.freed_at = block->freed_at;
                }
        }
        sp_ledger.totals.findings[finding.kind]++;
        list_locked(&finding);
        sp_lock_drop(&sp_ledger.lock);
}

bool sp_ledger_each_finding(void (*visit)(const struct sp_finding *finding, void *user), void *user)
{
        if (!sp_lock_take_bounded(&sp_ledger.lock, SP_LEDGER_PATIENCE))
                return false;
        for (size_t i = 0; i < sp_ledger.finding_count; i++)
                visit(&sp_ledger.findings[i], user);
        sp_lock_drop(&sp_ledger.lock);
        return true;
}
