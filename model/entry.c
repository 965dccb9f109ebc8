/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry -- one allocation in the ledger: how it is made and found, and who uses it
 *
 * The rest of ledger.h.
 */

#include <string.h>

#include "front.h"
#include "host.h"
#include "ledger.h"
#include "tag.h"

static bool is_given(const struct spm_model *model, uint64_t generation)
{
        return generation && generation <= model->generation;
}

/* Why no entry of the ledger is the live allocation @id: it was another's all along, it is no more,
 * or its pool writes none down. */
static enum spm_status explain(const struct spm_model *model, struct spm_block_id id, bool known)
{
        struct spm_block *block;

        if (known)
                return SPM_E_USE_AFTER_FREE;
        if (spm_block_find_live(model, id.address, &block) == SPM_E_FOREIGN)
                return SPM_E_FOREIGN;
        if (!is_given(model, id.generation))
                return SPM_E_INVALID_VALUE;
        return spm_area_at(model, id.address)->pool->config.track_uses ? SPM_E_USE_AFTER_FREE
                                                                       : SPM_E_MISUSE;
}

enum spm_status spm_ledger_live(const struct spm_model *model, struct spm_block_id id,
                                struct spm_entry **result)
{
        struct spm_entry *entry = spm_ledger_find(model, id.generation);

        if (entry && entry->id.address != id.address)
                return SPM_E_INVALID_VALUE;
        if (!entry || entry->life != SPM_LIFE_LIVE)
                return explain(model, id, entry != NULL);
        if (entry->id.device != id.device)
                return SPM_E_INVALID_DEVICE;
        *result = entry;
        return SPM_OK;
}

/* allocations */

enum spm_status spm_ledger_alloc(struct spm_model *model, struct spm_pool_state *pool,
                                 struct spm_request *request, struct spm_allocation *allocation,
                                 struct spm_actions *actions)
{
        struct spm_tag_state *tag = NULL;
        struct spm_block *block;
        enum spm_status status;

        if (request->tag && !(tag = spm_tag_find(model, request->tag)))
                return SPM_E_UNKNOWN;
        if (!spm_ledger_reserve(model))
                return SPM_E_HOST_MEMORY;
        pool->is_apart = pool->layout != NULL;
        pool->is_tracked = false;
        status = spm_alloc(model, request, allocation, actions);
        pool->is_tracked = true;
        pool->is_apart = true;
        if (status == SPM_OK && spm_block_find_live(model, allocation->address, &block) == SPM_OK)
                spm_ledger_start(model, block, tag);
        return status;
}

/* usages */

static void remove_usage(struct spm_entry *entry, uint32_t i)
{
        entry->usages[i] = entry->usages[--entry->usage_count];
}

void spm_entry_tidy(struct spm_entry *entry)
{
        uint32_t i;

        for (i = entry->usage_count; i--;) {
                const struct spm_usage *usage = &entry->usages[i];

                if (!usage->prepared && !usage->read && !usage->write)
                        remove_usage(entry, i);
        }
}

/* Streams that are gone are complete, and nobody can ask about them. */
static void forget_gone(const struct spm_model *model, struct spm_entry *entry)
{
        uint32_t i;

        for (i = entry->usage_count; i--;)
                if (!entry->usages[i].prepared &&
                    !spm_subject_stream(model, entry->usages[i].stream))
                        remove_usage(entry, i);
}

static bool make_room(struct spm_model *model, struct spm_entry *entry)
{
        uint32_t room = 2 * entry->usage_room;
        struct spm_usage *more;

        if (entry->usage_count < entry->usage_room)
                return true;
        forget_gone(model, entry);
        if (entry->usage_count < entry->usage_room)
                return true;
        more = spm_host_new(model, room * sizeof(*more));
        if (!more)
                return false;
        memcpy(more, entry->usages, entry->usage_count * sizeof(*more));
        if (entry->usages != entry->few)
                spm_host_free(model, entry->usages);
        entry->usages = more;
        entry->usage_room = room;
        return true;
}

struct spm_usage *spm_entry_usage(struct spm_model *model, struct spm_entry *entry,
                                  spm_stream stream)
{
        struct spm_usage *usage;
        uint32_t i;

        for (i = 0; i < entry->usage_count; i++)
                if (entry->usages[i].stream == stream)
                        return &entry->usages[i];
        if (!make_room(model, entry))
                return NULL;
        usage = &entry->usages[entry->usage_count++];
        memset(usage, 0, sizeof(*usage));
        usage->stream = stream;
        return usage;
}

/* invariants */

static const char *check_usages(const struct spm_model *model, const struct spm_entry *entry)
{
        uint32_t i;
        uint32_t j;

        for (i = 0; i < entry->usage_count; i++) {
                const struct spm_usage *usage = &entry->usages[i];
                const struct spm_stream_state *stream = spm_subject_stream(model, usage->stream);

                for (j = 0; j < i; j++)
                        if (entry->usages[j].stream == usage->stream)
                                return "B22 a stream has one usage of a block";
                if (stream && (usage->read > stream->submitted || usage->write > stream->submitted))
                        return "B30 a use was submitted";
        }
        return NULL;
}

static const char *check_entry(const struct spm_model *model, const struct spm_entry *entry)
{
        if (entry->life != SPM_LIFE_LIVE)
                return entry->usages ? "B5 what is freed has no usages" : NULL;
        if (!spm_block_is(entry->block, SPM_BLOCK_LIVE) ||
            entry->block->generation != entry->id.generation ||
            entry->block->address != entry->id.address)
                return "B3 a live entry is that of its block";
        return check_usages(model, entry);
}

const char *spm_ledger_check(const struct spm_model *model)
{
        const struct spm_ledger *ledger = model->ledger;
        const struct spm_pool_state *pool;
        const char *broken = NULL;
        uint64_t live = 0;
        uint64_t expected = 0;
        size_t i;

        for (i = 0; !broken && i < ledger->bucket_count; i++) {
                const struct spm_entry *entry;

                for (entry = ledger->buckets[i]; !broken && entry; entry = entry->next) {
                        live += entry->life == SPM_LIFE_LIVE;
                        broken = check_entry(model, entry);
                }
        }
        /* A pool that takes the usual way is about to have an entry more. */
        for (pool = spm_pool_first(model); pool; pool = spm_pool_next(pool)) {
                if (pool->config.track_uses && !pool->is_tracked)
                        return broken;
                expected += pool->config.track_uses && !pool->ended ? pool->live_blocks : 0;
        }
        if (!broken && live != expected)
                broken = "B3 each block of a pool that tracks uses has an entry";
        return broken;
}
