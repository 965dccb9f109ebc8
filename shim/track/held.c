/* SPDX-License-Identifier: Apache-2.0 */

/* Held -- what the program holds of the pools' memory, and gave back of it last */

#include "track/held.h"

#include "base/config.h"
#include "base/life.h"
#include "track/ledger_inner.h"

#define REMEMBERED 4096

/* For a function that reads what another thread may be writing, and can do with half of it. */
#define SP_MAY_RACE __attribute__((no_sanitize("thread")))

/* Guarded by: the model's lock. Of frees that take it. */
static struct sp_past past_blocks[REMEMBERED];
static struct sp_past_ring common = {.past = past_blocks, .room = REMEMBERED};

/* Atomic: those of threads. */
static _Atomic(struct sp_past_ring *) rings;

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

void sp_past_join(struct sp_past_ring *ring, struct sp_past *past, unsigned int room)
{
        *ring = (struct sp_past_ring){.past = past, .room = room, .next = atomic_load(&rings)};
        while (!atomic_compare_exchange_weak(&rings, &ring->next, ring))
                ;
}

void sp_past_add(struct sp_past_ring *ring, const struct spm_allocation *block,
                 const char *function, bool context_ended)
{
        struct sp_past *past = &ring->past[ring->written++ & (ring->room - 1)];

        atomic_store_explicit(&past->address, 0, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);
        past->generation = block->generation;
        past->bytes = block->size;
        past->site = sp_held_site(block->user);
        past->freed_at = sp_caller;
        past->freed_by = function;
        past->kind = kinds[block->kind];
        past->context_ended = context_ended;
        atomic_store_explicit(&past->address, block->address, memory_order_release);
}

void sp_held_freed(const struct spm_allocation *block, const char *function)
{
        sp_past_add(&common, block, function, false);
}

/* Which life of an address is looked for: the newest below @generation. */
struct look {
        uint64_t address;
        bool around; /* it need not begin there */
        uint64_t generation;
};

/* Of a ring that its owner may be writing: one that is overwritten meanwhile is left out. */
static SP_MAY_RACE void look_into(const struct sp_past_ring *ring, const struct look *look,
                                  struct sp_past *newest)
{
        for (unsigned int i = 0; i < ring->room; i++) {
                const struct sp_past *past = &ring->past[i];
                uint64_t start = atomic_load_explicit(&past->address, memory_order_acquire);
                bool fits = look->around ? start && look->address - start < past->bytes
                                         : look->address == start;

                if (fits && past->generation > newest->generation &&
                    past->generation < look->generation)
                        *newest = *past;
        }
}

static void look_into_all(const struct look *look, struct sp_past *newest)
{
        const struct sp_past_ring *ring;

        *newest = (struct sp_past){0};
        look_into(&common, look, newest);
        for (ring = atomic_load(&rings); ring; ring = ring->next)
                look_into(ring, look, newest);
}

bool sp_held_past(uint64_t address, struct sp_past *past)
{
        return sp_held_past_before(address, UINT64_MAX, past);
}

bool sp_held_past_before(uint64_t address, uint64_t generation, struct sp_past *past)
{
        look_into_all(&(struct look){.address = address, .generation = generation}, past);
        return past->address == address;
}

bool sp_held_past_around(uint64_t address, struct sp_past *past)
{
        look_into_all(&(struct look){address, .around = true, .generation = UINT64_MAX}, past);
        return past->address && address - past->address < past->bytes;
}

bool sp_held_is_free(const struct spm_model *model, uint64_t address)
{
        struct spm_allocation block;

        return has_blocks(model) && spm_find(model, address, &block) == SPM_E_DOUBLE_FREE;
}

static bool end_block(const struct spm_allocation *block, void *user)
{
        struct sp_kind_totals *totals = &sp_ledger.totals.kind[kinds[block->kind]];

        (void)user;
        totals->released++;
        sp_past_add(&common, block, "the end of its context", true);
        return true;
}

void sp_held_context_gone(const struct spm_model *model, spm_pool pool)
{
        if (has_blocks(model))
                spm_each_live(model, pool, end_block, NULL);
}
