/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tag -- whose the memory is, by names of the caller's own
 */

#include "tag.h"

#include <string.h>

#include "host.h"
#include "ledger.h"
#include "state.h"

struct spm_tag_state *spm_tag_find(const struct spm_model *model, uint32_t id)
{
        if (!model->ledger)
                return NULL;
        return id ? (struct spm_tag_state *)spm_table_find(&model->ledger->tags, id)
                  : model->ledger->untagged;
}

static struct spm_tag_state *find_name(const struct spm_model *model, const char *name,
                                       size_t length)
{
        struct spm_object *object;

        for (object = model->ledger->tags.head; object; object = spm_object_next(object))
                if (!memcmp(((struct spm_tag_state *)object)->name, name, length + 1))
                        return (struct spm_tag_state *)object;
        return NULL;
}

enum spm_status spm_tag_add(struct spm_model *model, const char *name, uint32_t *id)
{
        size_t length = name ? strlen(name) : 0;
        struct spm_tag_state *tag;

        if (!length || length >= SPM_TAG_NAME)
                return SPM_E_INVALID_VALUE;
        if (!spm_ledger_open(model))
                return SPM_E_HOST_MEMORY;
        tag = find_name(model, name, length);
        if (!tag) {
                tag = spm_host_new(model, sizeof(*tag));
                if (!tag)
                        return SPM_E_HOST_MEMORY;
                memcpy(tag->name, name, length);
                tag->peak = model->ledger->peaks;
                if (!spm_table_add(model, &model->ledger->tags, &tag->object)) {
                        spm_host_free(model, tag);
                        return SPM_E_HOST_MEMORY;
                }
        }
        *id = tag->object.id;
        return SPM_OK;
}

void spm_tag_forget(struct spm_model *model)
{
        struct spm_ledger *ledger = model->ledger;

        while (ledger->tags.head) {
                struct spm_object *object = ledger->tags.head;

                spm_table_remove(model, &ledger->tags, object);
                spm_host_free(model, object);
        }
        spm_host_free(model, ledger->untagged);
}

/* figures */

static uint64_t at_peak(const struct spm_ledger *ledger, const struct spm_tag_state *tag)
{
        return tag->peak < ledger->peaks ? tag->tally.bytes : tag->at_peak;
}

/* It is about to change. */
static void write_down(const struct spm_ledger *ledger, struct spm_tag_state *tag)
{
        tag->at_peak = at_peak(ledger, tag);
        tag->peak = ledger->peaks;
}

static void add(struct spm_tally *tally, size_t size)
{
        spm_tally_add(tally, size);
        tally->made++;
        tally->made_bytes += size;
}

void spm_tag_count(struct spm_model *model, struct spm_tag_state *tag, size_t size)
{
        struct spm_ledger *ledger = model->ledger;
        uint64_t high = ledger->total.bytes_high;

        write_down(ledger, tag);
        add(&tag->tally, size);
        add(&ledger->total, size);
        ledger->peaks += ledger->total.bytes_high > high;
}

void spm_tag_uncount(struct spm_model *model, struct spm_tag_state *tag, size_t size, bool freed)
{
        struct spm_ledger *ledger = model->ledger;

        write_down(ledger, tag);
        spm_tally_take(&tag->tally, size);
        spm_tally_take(&ledger->total, size);
        tag->tally.freed += freed;
        ledger->total.freed += freed;
}

static void take_back(struct spm_tally *tally, size_t size)
{
        tally->made--;
        tally->made_bytes -= size;
}

void spm_tag_undo(struct spm_model *model, struct spm_tag_state *tag, size_t size)
{
        spm_tag_uncount(model, tag, size, false);
        take_back(&tag->tally, size);
        take_back(&model->ledger->total, size);
}

/* questions */

static void describe(const struct spm_tally *tally, uint64_t bytes_at_peak,
                     struct spm_tag_figures *figures)
{
        memset(figures, 0, sizeof(*figures));
        figures->live_blocks = tally->count;
        figures->live_bytes = tally->bytes;
        figures->live_bytes_high = tally->bytes_high;
        figures->bytes_at_peak = bytes_at_peak;
        figures->made = tally->made;
        figures->made_bytes = tally->made_bytes;
        figures->freed = tally->freed;
}

static bool visit_tag(const struct spm_ledger *ledger, const struct spm_tag_state *tag,
                      bool (*visit)(const struct spm_tag_figures *figures, void *user), void *user)
{
        struct spm_tag_figures figures;

        describe(&tag->tally, at_peak(ledger, tag), &figures);
        figures.tag = tag->object.id;
        memcpy(figures.name, tag->name, sizeof(figures.name));
        return visit(&figures, user);
}

void spm_each_tag(const struct spm_model *model,
                  bool (*visit)(const struct spm_tag_figures *figures, void *user), void *user)
{
        const struct spm_ledger *ledger = model->ledger;
        const struct spm_object *object;

        if (!ledger || !visit_tag(ledger, ledger->untagged, visit, user))
                return;
        for (object = ledger->tags.head; object; object = spm_object_next(object))
                if (!visit_tag(ledger, (const struct spm_tag_state *)object, visit, user))
                        return;
}

void spm_tag_total(const struct spm_model *model, struct spm_tag_figures *figures)
{
        static const struct spm_tally none;
        const struct spm_tally *total = model->ledger ? &model->ledger->total : &none;

        describe(total, total->bytes_high, figures);
}

enum spm_status spm_tag_of(const struct spm_model *model, struct spm_block_id id, uint32_t *tag)
{
        struct spm_entry *entry;
        enum spm_status status = spm_ledger_live(model, id, &entry);

        if (status == SPM_OK)
                *tag = entry->tag->object.id;
        return status;
}

/* invariants */

struct sums {
        uint64_t count, bytes, at_peak, made, freed;
};

static bool sum_up(const struct spm_tag_figures *figures, void *user)
{
        struct sums *sums = user;

        sums->count += figures->live_blocks;
        sums->bytes += figures->live_bytes;
        sums->at_peak += figures->bytes_at_peak;
        sums->made += figures->made;
        sums->freed += figures->freed;
        return true;
}

/* A pool that takes the usual way is about to have a block more than the tags know. */
static bool used_by_pools(const struct spm_model *model, uint64_t *used)
{
        const struct spm_pool_state *pool;

        *used = 0;
        for (pool = spm_pool_first(model); pool; pool = spm_pool_next(pool)) {
                if (pool->config.track_uses && !pool->is_tracked)
                        return false;
                *used += pool->config.track_uses && !pool->ended ? pool->used_bytes : 0;
        }
        return true;
}

const char *spm_tag_check(const struct spm_model *model)
{
        const struct spm_tally *total = &model->ledger->total;
        struct sums sums = {0};
        uint64_t used;

        spm_each_tag(model, sum_up, &sums);
        if (sums.count != total->count || sums.bytes != total->bytes)
                return "B2 what is live is the sum over tags";
        if (sums.at_peak != total->bytes_high)
                return "B2 the peak is the sum over tags";
        if (sums.made != total->made || sums.freed != total->freed)
                return "B2 what was made and freed is the sum over tags";
        if (used_by_pools(model, &used) && used != total->bytes)
                return "B2 the tags have what the pools have";
        return NULL;
}
