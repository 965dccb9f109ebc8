/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Refused -- what was a free that the driver did not carry out?
 *
 * The driver says "invalid value" and no more. We say which: from the block of a
 * pool or the entry at that address, its history, the other spaces, and the live
 * allocations around it. The last is a walk over all entries, so a program that does nothing but
 * wrong frees is told "foreign" after a while instead of being slowed down.
 *
 * Of a second free it is told who else has had the address: the block that lies there by now, or
 * the one that was there before. In the second case it may be the free in the middle that was one
 * too many, of a pointer that was kept from the earlier block.
 */

#include "base/life.h"
#include "track/held.h"
#include "track/ledger_inner.h"
#include "track/state.h"

#define SCANS_MAX 1000

/* The CUresult values that blame the argument (cuda.h): INVALID_VALUE, INVALID_HANDLE,
 * HOST_MEMORY_NOT_REGISTERED, NOT_SUPPORTED. The others tell of a device or context in error. */
static bool blames_argument(int result)
{
        return result == 1 || result == 400 || result == 713 || result == 801;
}

static bool has_range(uint64_t space)
{
        return space == SP_SPACE_DEVICE || space == SP_SPACE_HOST || space == SP_SPACE_MAPPED;
}

/* what lives there */

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

/* what was freed, and by whom its address is had besides */

static struct sp_reuse reuse_of_past(const struct sp_past *past)
{
        return (struct sp_reuse){
                .address = past->address,
                .bytes = past->bytes,
                .kind = past->kind,
                .site = past->site,
                .freed_by = past->freed_by,
                .freed_at = past->freed_at,
        };
}

static void tell_reuse(struct sp_finding *finding, const struct sp_reuse *reuse)
{
        finding->has_reuse = true;
        finding->reuse = *reuse;
}

static void tell_living(struct sp_finding *finding, const struct sp_ledger_entry *live)
{
        tell_reuse(finding, &(struct sp_reuse){
                                    .address = live->address,
                                    .bytes = live->bytes,
                                    .kind = live->kind,
                                    .site = live->site,
                            });
}

/* @held lives in the pools around the address, or is NULL; @before was there, or was not freed. */
static enum sp_finding_kind second_free_locked(enum sp_space space, struct sp_finding *finding,
                                               const struct sp_ledger_entry *held,
                                               const struct sp_reuse *before, bool context_ended)
{
        const struct sp_ledger_node *around = NULL;

        if (!held)
                around = around_locked(space, finding->address);
        if (held || around)
                tell_living(finding, held ? held : &around->entry);
        else if (before->freed_by)
                tell_reuse(finding, before);
        return context_ended ? SP_FINDING_AFTER_CONTEXT : SP_FINDING_DOUBLE_FREE;
}

/* Of the ledger's; FREED, or another thread is freeing it at this moment. */
static enum sp_finding_kind freed_node_locked(enum sp_space space, struct sp_finding *finding,
                                              const struct sp_ledger_entry *held,
                                              const struct sp_ledger_node *node)
{
        sp_finding_about(finding, node);
        return second_free_locked(space, finding, held, &node->before,
                                  node->state == SP_NODE_FREED && node->context_ended);
}

/* Of the pools'. */
static enum sp_finding_kind past_locked(enum sp_space space, struct sp_finding *finding,
                                        const struct sp_ledger_entry *held,
                                        const struct sp_past *past)
{
        struct sp_reuse before = {0};
        struct sp_past earlier;

        if (sp_held_past_before(past->address, past->generation, &earlier))
                before = reuse_of_past(&earlier);
        sp_finding_about_past(finding, past);
        return second_free_locked(space, finding, held, &before, past->context_ended);
}

/* which it is */

static enum sp_finding_kind about_live(struct sp_finding *finding, enum sp_finding_kind kind,
                                       const struct sp_ledger_entry *live)
{
        finding->has_block = true;
        finding->block = *live;
        return kind;
}

/* No block has begun here but what is freed now by the wrong function, or in the middle. */
static enum sp_finding_kind never_freed_locked(const struct spm_model *model, enum sp_space space,
                                               struct sp_finding *finding,
                                               const struct sp_ledger_entry *held)
{
        const struct sp_ledger_node *around;

        if (held)
                return about_live(finding,
                                  space == sp_space_of(held->kind) ? SP_FINDING_INTERIOR
                                                                   : SP_FINDING_WRONG_KIND,
                                  held);
        around = around_locked(space, finding->address);
        if (around)
                return about_live(finding,
                                  around->key.space == space ? SP_FINDING_INTERIOR
                                                             : SP_FINDING_WRONG_KIND,
                                  &around->entry);
        /* Where it was freed is not remembered any more. Fresh memory is not told from freed. */
        if ((space == SP_SPACE_DEVICE || space == SP_SPACE_HOST) &&
            sp_held_is_free(model, finding->address))
                return SP_FINDING_DOUBLE_FREE;
        return SP_FINDING_FOREIGN;
}

static enum sp_finding_kind classify_locked(const struct spm_model *model, enum sp_space space,
                                            struct sp_finding *finding)
{
        uint64_t address = finding->address;
        const struct sp_ledger_node *node = sp_node_find_locked(space, address);
        const struct sp_ledger_node *other = NULL;
        struct sp_ledger_entry block;
        const struct sp_ledger_entry *held =
                has_range(space) && sp_held_at(model, address, &block) ? &block : NULL;
        struct sp_past past;

        if (held && held->address == address)
                return about_live(finding, SP_FINDING_WRONG_KIND, held);
        if (node && node->state == SP_NODE_LIVE)
                return about_live(finding, SP_FINDING_WRONG_KIND, &node->entry);
        if (node && node->state == SP_NODE_FREED)
                other = successor_locked(space, address);
        else if (!node)
                other = elsewhere_locked(space, address);
        if (other)
                return about_live(finding, SP_FINDING_WRONG_KIND, &other->entry);
        if (node)
                return freed_node_locked(space, finding, held, node);
        if (sp_held_past(address, &past) && sp_space_of(past.kind) == space)
                return past_locked(space, finding, held, &past);
        return never_freed_locked(model, space, finding, held);
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
        const struct spm_model *model;

        if (address == 0 || !blames_argument(result))
                return;
        model = sp_model_enter();
        finding.kind = classify_locked(model, space, &finding);
        sp_model_leave();
        sp_ledger_add_finding(&finding);
}
