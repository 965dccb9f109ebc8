/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Misuse in the ledger -- what was found so far, and whose memory is touched?
 */

#include <string.h>

#include "track/held.h"
#include "track/ledger_inner.h"
#include "track/state.h"

void (*sp_ledger_heed)(const struct sp_finding *finding);

static const char *const finding_names[SP_FINDING_COUNT] = {
        [SP_FINDING_USE_AFTER_FREE] = "use_after_free",
        [SP_FINDING_OUT_OF_BOUNDS] = "out_of_bounds",
        [SP_FINDING_USE_BEFORE_ALLOC] = "use_before_alloc",
        [SP_FINDING_RACE] = "race",
        [SP_FINDING_OVERLAP] = "overlap",
        [SP_FINDING_OVERRUN] = "overrun",
        [SP_FINDING_FREE_BEFORE_USE] = "free_before_use",
        [SP_FINDING_FREE_BEFORE_ALLOC] = "free_before_alloc",
        [SP_FINDING_SYNC_FREE] = "sync_free",
        [SP_FINDING_DOUBLE_FREE] = "double_free",
        [SP_FINDING_WRONG_KIND] = "wrong_kind",
        [SP_FINDING_INTERIOR] = "interior",
        [SP_FINDING_AFTER_CONTEXT] = "after_context",
        [SP_FINDING_FOREIGN] = "foreign",
        [SP_FINDING_ARGUMENT_AFTER_FREE] = "argument_after_free",
};

const char *sp_finding_name(enum sp_finding_kind kind)
{
        return finding_names[kind];
}

/* what a finding says of the block that it is about */

void sp_finding_about(struct sp_finding *finding, const struct sp_ledger_node *node)
{
        finding->has_block = true;
        finding->block = node->entry;
        if (node->state == SP_NODE_FREED) {
                finding->freed_by = node->freed_by;
                finding->freed_at = node->freed_at;
        }
}

void sp_finding_about_past(struct sp_finding *finding, const struct sp_past *past)
{
        finding->has_block = true;
        finding->block = (struct sp_ledger_entry){
                .address = past->address,
                .bytes = past->bytes,
                .kind = past->kind,
                .device = -1,
                .pooled = true,
                .site = past->site,
        };
        finding->freed_by = past->freed_by;
        finding->freed_at = past->freed_at;
}

/* the list */

static bool is_same(const struct sp_finding *a, const struct sp_finding *b)
{
        return a->kind == b->kind && a->site == b->site && a->result == b->result &&
               strcmp(a->function, b->function) == 0 && a->has_block == b->has_block &&
               a->block.kind == b->block.kind && a->block.site == b->block.site &&
               a->freed_at == b->freed_at && a->is_write == b->is_write &&
               a->argument == b->argument && a->kernel == b->kernel &&
               a->is_argument == b->is_argument && a->earlier == b->earlier &&
               a->earlier_at == b->earlier_at;
}

static void list_locked(struct sp_finding *finding)
{
        for (size_t i = 0; i < sp_ledger.finding_count; i++) {
                if (is_same(&sp_ledger.findings[i], finding)) {
                        finding->times = ++sp_ledger.findings[i].times;
                        return;
                }
        }
        if (sp_ledger.finding_count == SP_LEDGER_FINDINGS) {
                sp_ledger.totals.unlisted++;
                return;
        }
        sp_ledger.findings[sp_ledger.finding_count++] = *finding;
}

void sp_ledger_overrun(const struct sp_ledger_entry *block, const char *function, const void *site,
                       uint64_t outside, uint64_t beyond)
{
        struct sp_finding finding = {
                .kind = SP_FINDING_OVERRUN,
                .address = block->address,
                .function = function,
                .site = site,
                .times = 1,
                .has_block = true,
                .block = *block,
                .outside = outside,
                .beyond = beyond,
        };

        sp_ledger_add_finding(&finding);
}

void sp_ledger_add_finding(const struct sp_finding *finding)
{
        struct sp_finding added = *finding;
        struct spm_model *model;

        /* Also while the process ends, and whoever has the lock may have ended before. */
        if (!sp_books_enter_bounded(&model))
                return;
        sp_ledger.totals.findings[added.kind]++;
        list_locked(&added);
        sp_model_leave();
        if (sp_ledger_heed)
                sp_ledger_heed(&added);
}

bool sp_ledger_each_finding(void (*visit)(const struct sp_finding *finding, void *user), void *user)
{
        struct spm_model *model;

        if (!sp_books_enter_bounded(&model))
                return false;
        for (size_t i = 0; i < sp_ledger.finding_count; i++)
                visit(&sp_ledger.findings[i], user);
        sp_model_leave();
        return true;
}

/* uses */

static void was_freed(struct sp_finding *finding, const struct sp_past *past)
{
        sp_finding_about_past(finding, past);
        finding->kind = SP_FINDING_USE_AFTER_FREE;
}

enum sp_pooled sp_ledger_pooled(uint64_t address, struct sp_finding *finding)
{
        const struct spm_model *model = sp_model_enter();
        enum sp_pooled pooled = SP_POOLED_NOT;
        struct sp_past past;

        if (sp_held_at(model, address, &finding->block)) {
                finding->has_block = true;
                pooled = SP_POOLED_LIVE;
        } else if (sp_held_is_free(model, address)) {
                finding->kind = SP_FINDING_USE_AFTER_FREE;
                if (sp_held_past_around(address, &past))
                        was_freed(finding, &past);
                pooled = SP_POOLED_FREE;
        }
        sp_model_leave();
        return pooled;
}

/* Memory of the device, that the program has by one address and of one piece. */
static bool is_one_piece(enum sp_kind kind)
{
        return kind == SP_KIND_DEVICE || kind == SP_KIND_ASYNC || kind == SP_KIND_PITCH;
}

bool sp_ledger_block(uint64_t base, struct sp_finding *finding)
{
        const struct sp_ledger_node *node;
        bool found;

        sp_model_enter();
        node = sp_node_find_locked(SP_SPACE_DEVICE, base);
        found = node && node->state == SP_NODE_LIVE &&
                (is_one_piece(node->entry.kind) || node->entry.kind == SP_KIND_MANAGED);
        if (found)
                sp_finding_about(finding, node);
        sp_model_leave();
        return found;
}

static bool is_of_device(enum sp_kind kind)
{
        return is_one_piece(kind) || kind == SP_KIND_MAPPED;
}

/* Addresses of managed and of page-locked memory may be the host's by now. */
static const struct sp_ledger_node *freed_locked(uint64_t address)
{
        const struct sp_ledger_node *node = sp_ledger.newest;

        while (node && !(is_of_device(node->entry.kind) &&
                         address - node->entry.address < node->entry.bytes))
                node = node->older;
        return node;
}

bool sp_ledger_was_unmapped(uint64_t base, struct sp_finding *finding)
{
        const struct sp_ledger_node *node;
        bool found;

        sp_model_enter();
        node = sp_node_find_locked(SP_SPACE_MAPPED, base);
        found = node && node->state == SP_NODE_FREED;
        if (found) {
                sp_finding_about(finding, node);
                finding->kind = SP_FINDING_USE_AFTER_FREE;
        }
        sp_model_leave();
        return found;
}

bool sp_ledger_was_freed(uint64_t address, struct sp_finding *finding)
{
        const struct sp_ledger_node *node;
        struct sp_past past;
        bool found;

        sp_model_enter();
        node = freed_locked(address);
        found = node || (sp_held_past_around(address, &past) && is_one_piece(past.kind));
        if (node) {
                sp_finding_about(finding, node);
                finding->kind = SP_FINDING_USE_AFTER_FREE;
        } else if (found) {
                was_freed(finding, &past);
        }
        sp_model_leave();
        return found;
}
