/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ledger -- what is remembered of the allocations of pools that track uses
 *
 * Generations count up, so a power of two of buckets spreads them evenly by
 * their lowest bits, and there are as many buckets as entries.
 */

#include "ledger.h"

#include <assert.h>
#include <string.h>

#include "front.h"
#include "host.h"
#include "tag.h"

#define BUCKETS   64 /* at first */
#define SWEEP_FEW 4

/* life of the ledger */

bool spm_ledger_open(struct spm_model *model)
{
        struct spm_ledger *ledger = model->ledger;

        if (ledger)
                return true;
        ledger = spm_host_new(model, sizeof(*ledger));
        if (!ledger)
                return false;
        ledger->buckets = spm_host_new(model, BUCKETS * sizeof(struct spm_entry *));
        ledger->bucket_count = BUCKETS;
        ledger->untagged = spm_host_new(model, sizeof(*ledger->untagged));
        if (!ledger->buckets || !ledger->untagged) {
                spm_host_free(model, ledger->buckets);
                spm_host_free(model, ledger->untagged);
                spm_host_free(model, ledger);
                return false;
        }
        model->ledger = ledger;
        return true;
}

static struct spm_entry **bucket_of(const struct spm_ledger *ledger, uint64_t generation)
{
        return &ledger->buckets[generation & (ledger->bucket_count - 1)];
}

/* Without memory for more buckets the chains are longer, and that is all. */
static void grow(struct spm_model *model)
{
        struct spm_ledger *ledger = model->ledger;
        struct spm_entry **before = ledger->buckets;
        size_t count = ledger->bucket_count;
        struct spm_entry **more = spm_host_new(model, 2 * count * sizeof(struct spm_entry *));
        size_t i;

        if (!more)
                return;
        ledger->buckets = more;
        ledger->bucket_count = 2 * count;
        for (i = 0; i < count; i++)
                while (before[i]) {
                        struct spm_entry *entry = before[i];
                        struct spm_entry **bucket = bucket_of(ledger, entry->id.generation);

                        before[i] = entry->next;
                        entry->next = *bucket;
                        *bucket = entry;
                }
        spm_host_free(model, before);
}

static void forget_usages(struct spm_model *model, struct spm_entry *entry)
{
        if (entry->usages != entry->few)
                spm_host_free(model, entry->usages);
        entry->usages = NULL;
        entry->usage_count = 0;
        entry->usage_room = 0;
}

/* Out of its bucket; one is kept for the next allocation. */
static void forget(struct spm_model *model, struct spm_entry *entry)
{
        struct spm_ledger *ledger = model->ledger;
        struct spm_entry **at = bucket_of(ledger, entry->id.generation);

        while (*at != entry)
                at = &(*at)->next;
        *at = entry->next;
        ledger->count--;
        forget_usages(model, entry);
        if (ledger->spare) {
                spm_host_free(model, entry);
                return;
        }
        memset(entry, 0, sizeof(*entry));
        ledger->spare = entry;
}

void spm_ledger_forget(struct spm_model *model)
{
        struct spm_ledger *ledger = model->ledger;
        size_t i;

        if (!ledger)
                return;
        for (i = 0; i < ledger->bucket_count; i++)
                while (ledger->buckets[i])
                        forget(model, ledger->buckets[i]);
        spm_tag_forget(model);
        spm_host_free(model, ledger->spare);
        spm_host_free(model, ledger->buckets);
        spm_host_free(model, ledger);
        model->ledger = NULL;
}

/* entries */

bool spm_ledger_reserve(struct spm_model *model)
{
        struct spm_ledger *ledger = model->ledger;

        if (ledger->count >= ledger->bucket_count)
                grow(model);
        if (!ledger->spare)
                ledger->spare = spm_host_new(model, sizeof(struct spm_entry));
        return ledger->spare != NULL;
}

/* The allocation is a write of its stream (B9). */
void spm_ledger_start(struct spm_model *model, struct spm_block *block, struct spm_tag_state *tag)
{
        struct spm_ledger *ledger = model->ledger;
        struct spm_entry **bucket = bucket_of(ledger, block->generation);
        struct spm_entry *entry = ledger->spare;

        ledger->spare = NULL;
        entry->id.address = block->address;
        entry->id.generation = block->generation;
        entry->id.stream = block->streams[0];
        entry->id.device = block->area->pool->config.device;
        entry->life = SPM_LIFE_LIVE;
        entry->block = block;
        entry->block_life = spm_block_life(block) & ~SPM_STATE_MASK;
        entry->size = block->requested;
        entry->tag = tag ? tag : ledger->untagged;
        entry->usages = entry->few;
        entry->usage_room = SPM_ENTRY_FEW;
        entry->usage_count = 1;
        entry->few[0].stream = block->streams[0];
        entry->few[0].write = block->positions[0];
        entry->few[0].serial = ++ledger->serial;
        entry->next = *bucket;
        *bucket = entry;
        ledger->count++;
        spm_tag_count(model, entry->tag, entry->size);
}

struct spm_entry *spm_ledger_find(const struct spm_model *model, uint64_t generation)
{
        struct spm_entry *entry;

        if (!model->ledger)
                return NULL;
        entry = *bucket_of(model->ledger, generation);
        while (entry && entry->id.generation != generation)
                entry = entry->next;
        return entry;
}

/* freed */

static void move(struct spm_entry *entry, enum spm_life life)
{
        assert(spm_life_may_become(entry->life, life));
        entry->life = life;
}

static void add_point(struct spm_point *points, uint32_t *count, struct spm_point point)
{
        uint32_t i;

        for (i = 0; i < *count && points[i].stream != point.stream; i++)
                ;
        if (i == *count)
                points[(*count)++] = point;
        else if (points[i].position < point.position)
                points[i].position = point.position;
}

/*
 * More streams than a block can wait for: it waits for all that their contexts had submitted. Its
 * first point remains, since its lane is that stream's. Return: false if there are too many even
 * so.
 */
static bool wait_for_contexts(struct spm_model *model, struct spm_block *block,
                              const struct spm_entry *entry)
{
        struct spm_point points[SPM_BLOCK_DEPS];
        uint32_t count = 0;
        uint32_t i;

        if (block->dep_count)
                points[count++] = spm_block_dep(block, 0);
        for (i = 1; i < block->dep_count + entry->usage_count; i++) {
                spm_stream id = i < block->dep_count ? spm_block_dep(block, i).stream
                                                     : entry->usages[i - block->dep_count].stream;
                const struct spm_stream_state *stream = spm_subject_stream(model, id);
                struct spm_stream_state *line = stream ? stream->context->line : NULL;

                if (!line)
                        continue;
                if (count == SPM_BLOCK_DEPS)
                        return false;
                line->context->unstamped = true;
                add_point(points, &count,
                          (struct spm_point){line->object.id, spm_stream_submit(line)});
        }
        return spm_block_set_deps(model, block, points, count);
}

/* A use that the host will have seen when it has seen @stream's free needs no point of its own. */
static bool is_implied(const struct spm_model *model, const struct spm_stream_state *stream,
                       struct spm_point point)
{
        return !point.position || spm_point_is_done(model, point, false) ||
               (stream && spm_stream_has_waited(stream, point));
}

static bool wait_for_uses(struct spm_model *model, struct spm_block *block,
                          const struct spm_entry *entry, const struct spm_stream_state *stream)
{
        uint32_t i;

        for (i = 0; i < entry->usage_count; i++) {
                const struct spm_usage *usage = &entry->usages[i];
                uint64_t last = usage->read > usage->write ? usage->read : usage->write;
                struct spm_point point = {usage->stream, last};
                struct spm_stream_state *user;

                if (is_implied(model, stream, point))
                        continue;
                if (!spm_block_wait_more(model, block, point))
                        return wait_for_contexts(model, block, entry);
                /* When that stream ends it is to be stamped, though no lane of its own has this. */
                user = spm_subject_stream(model, usage->stream);
                if (user->freed < last)
                        user->freed = last;
        }
        return true;
}

static void enlist(struct spm_model *model, struct spm_entry *entry)
{
        struct spm_ledger *ledger = model->ledger;

        entry->newer = NULL;
        entry->older = ledger->newest;
        if (entry->older)
                entry->older->newer = entry;
        else
                ledger->oldest = entry;
        ledger->newest = entry;
        ledger->retired++;
}

static void delist(struct spm_model *model, struct spm_entry *entry)
{
        struct spm_ledger *ledger = model->ledger;

        if (entry->older)
                entry->older->newer = entry->newer;
        else
                ledger->oldest = entry->newer;
        if (entry->newer)
                entry->newer->older = entry->older;
        else
                ledger->newest = entry->older;
        ledger->retired--;
        forget(model, entry);
}

void spm_ledger_free(struct spm_model *model, struct spm_block *block,
                     const struct spm_stream_state *stream)
{
        struct spm_entry *entry = spm_ledger_find(model, block->generation);
        uint32_t i;

        assert(entry && entry->life == SPM_LIFE_LIVE);
        /* As in block_wait.c: without memory for what it waits for, it is never served again. */
        if (!wait_for_uses(model, block, entry, stream))
                block->exported = true;
        spm_tag_uncount(model, entry->tag, entry->size, true);
        forget_usages(model, entry);
        move(entry, SPM_LIFE_RETIRED);
        entry->point_count = block->dep_count;
        for (i = 0; i < block->dep_count; i++)
                entry->points[i] = spm_block_dep(block, i);
        enlist(model, entry);
        spm_ledger_sweep(model, false);
}

void spm_ledger_drop(struct spm_model *model, const struct spm_block *block, bool undone)
{
        struct spm_entry *entry = spm_ledger_find(model, block->generation);

        assert(entry && entry->block == block);
        if (undone)
                spm_tag_undo(model, entry->tag, entry->size);
        else
                spm_tag_uncount(model, entry->tag, entry->size, false);
        forget(model, entry);
}

enum spm_life spm_entry_look(const struct spm_model *model, struct spm_entry *entry)
{
        const struct spm_block *block = entry->block;
        bool is_kept = spm_block_is(block, SPM_BLOCK_KEPT) &&
                       (block->state & ~SPM_STATE_MASK) == entry->block_life;
        uint32_t i;

        if (entry->life == SPM_LIFE_LIVE)
                return entry->life;
        for (i = 0; i < entry->point_count; i++)
                if (!spm_point_is_done(model, entry->points[i], false))
                        return entry->life;
        if (entry->life != (is_kept ? SPM_LIFE_QUARANTINED : SPM_LIFE_FREED))
                move(entry, is_kept ? SPM_LIFE_QUARANTINED : SPM_LIFE_FREED);
        return entry->life;
}

/* If there are too many, the oldest are forgotten though they are not complete. */
void spm_ledger_sweep(struct spm_model *model, bool all)
{
        struct spm_ledger *ledger = model->ledger;
        struct spm_entry *entry = ledger->oldest;
        unsigned int looked;

        for (looked = 0; entry && (all || looked < SWEEP_FEW); looked++) {
                struct spm_entry *newer = entry->newer;

                if (spm_entry_look(model, entry) == SPM_LIFE_FREED ||
                    ledger->retired > SPM_LEDGER_RETIRED)
                        delist(model, entry);
                entry = newer;
        }
}
