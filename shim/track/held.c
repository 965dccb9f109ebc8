/* SPDX-License-Identifier: Apache-2.0 */

/* Held -- what the program holds of the pools' memory, and gave back of it last */

#include "track/held.h"

#include "base/config.h"
#include "base/life.h"
#include "track/ledger_inner.h"

#define REMEMBERED 4096

/* Guarded by: the model's lock. The last ones that were freed, a ring. */
static struct sp_past ring[REMEMBERED];
static uint64_t written;

uint64_t sp_held_user(void)
{
        return (uint64_t)(uintptr_t)sp_caller & ~SP_HELD_SYNC_MEMOPS;
}

static const enum sp_kind kinds[] = {
        [SPM_POOL_SYNC] = SP_KIND_DEVICE,
        [SPM_POOL_ASYNC] = SP_KIND_ASYNC,
        [SPM_POOL_HOST] = SP_KIND_PINNED,
};

/* live blocks */

static struct sp_ledger_entry entry_of(const struct spm_allocation *block)
{
        return (struct sp_ledger_entry){
                .address = block->address,
                .bytes = block->size,
                .reserved = block->reserved,
                .kind = kinds[block->kind],
                .pooled = true,
                .device = block->device,
                .stream = block->stream,
                .site = sp_held_site(block->user),
                .sequence = block->generation,
        };
}

/* In observe mode the pools are a mirror, and the driver serves. */
static bool has_blocks(const struct spm_model *model)
{
        return model && sp_config()->mode == SP_MODE_POOL;
}

bool sp_held_at(const struct spm_model *model, uint64_t address, struct sp_ledger_entry *entry)
{
        struct spm_allocation block;

        if (!has_blocks(model) || spm_find(model, address, &block) != SPM_OK)
                return false;
        *entry = entry_of(&block);
        return true;
}

struct walk {
        void (*visit)(const struct sp_ledger_entry *entry, void *user);
        void *user;
};

static bool visit_entry(const struct spm_allocation *block, void *user)
{
        struct walk *walk = user;
        struct sp_ledger_entry entry = entry_of(block);

        walk->visit(&entry, walk->user);
        return true;
}

void sp_held_each(const struct spm_model *model,
                  void (*visit)(const struct sp_ledger_entry *entry, void *user), void *user)
{
        struct walk walk = {visit, user};

        if (has_blocks(model))
                spm_each_live(model, 0, visit_entry, &walk);
}

void sp_held_tally(struct spm_pool_config *wish)
{
        enum sp_kind kind = kinds[wish->kind];

        if (sp_config()->mode != SP_MODE_POOL)
                return;
        wish->tallies[0] = &sp_ledger.totals.kind[kind].tally;
        wish->tallies[1] = sp_ledger_device_tally(kind, wish->device);
}

/* blocks that were freed */

static void remember(const struct spm_allocation *block, const char *function, bool context_ended)
{
        struct sp_past *past = &ring[written++ % REMEMBERED];

        past->address = block->address;
        past->generation = block->generation;
        past->bytes = block->size;
        past->site = sp_held_site(block->user);
        past->freed_at = sp_caller;
        past->freed_by = function;
        past->kind = kinds[block->kind];
        past->context_ended = context_ended;
}

void sp_held_freed(const struct spm_allocation *block, const char *function)
{
        remember(block, function, false);
}

bool sp_held_past(uint64_t address, struct sp_past *past)
{
        bool found = false;

        for (uint64_t i = written; i && i + REMEMBERED > written && !found; i--) {
                const struct sp_past *each = &ring[(i - 1) % REMEMBERED];

                found = each->address == address;
                if (found)
                        *past = *each;
        }
        return found;
}

static bool end_block(const struct spm_allocation *block, void *user)
{
        struct sp_kind_totals *totals = &sp_ledger.totals.kind[kinds[block->kind]];

        (void)user;
        totals->released++;
        remember(block, "the end of its context", true);
        return true;
}

void sp_held_context_gone(const struct spm_model *model, spm_pool pool)
{
        if (has_blocks(model))
                spm_each_live(model, pool, end_block, NULL);
}
