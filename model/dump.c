/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dump -- the state as text and as a number
 */

#include <streampool/model.h>

#include "limbo.h"
#include "layout.h"
#include "pool.h"
#include "recall.h"
#include "slab.h"
#include "stamp.h"
#include "state.h"
#include "subject.h"
#include "text.h"

struct dump {
        void (*line)(const char *text, void *user);
        void *user;
        struct spm_text text;
        char buffer[256];
};

static void start(struct dump *dump, const char *what, uint64_t id)
{
        spm_text_start(&dump->text, dump->buffer, sizeof(dump->buffer));
        spm_text_count(&dump->text, what, id);
}

static void end(struct dump *dump)
{
        dump->line(dump->buffer, dump->user);
}

static const char *state_name(enum spm_block_state state)
{
        static const char *const names[] = {
                [SPM_BLOCK_LOOSE] = "loose", [SPM_BLOCK_LIVE] = "live",
                [SPM_BLOCK_HELD] = "held",   [SPM_BLOCK_PENDING] = "pending",
                [SPM_BLOCK_READY] = "ready", [SPM_BLOCK_SEALED] = "sealed",
                [SPM_BLOCK_HOLE] = "hole",   [SPM_BLOCK_SLAB] = "slab",
                [SPM_BLOCK_KEPT] = "kept",
        };

        return names[state];
}

static void dump_context(struct dump *dump, const struct spm_context_state *context)
{
        const struct spm_stream_state *stream;

        start(dump, "context", context->object.id);
        spm_text_count(&dump->text, "device", (uint64_t)context->device);
        spm_text_count(&dump->text, "captures", context->captures);
        spm_text_count(&dump->text, "stamps", context->stamps.count);
        spm_text_count(&dump->text, "unstamped", context->unstamped);
        end(dump);
        for (stream = context->streams; stream; stream = stream->next) {
                start(dump, "  stream", stream->object.id);
                spm_text_count(&dump->text, "kind", stream->kind);
                spm_text_count(&dump->text, "submitted", stream->submitted);
                spm_text_count(&dump->text, "done", stream->done_poll);
                spm_text_count(&dump->text, "waited", stream->done_sync);
                spm_text_count(&dump->text, "freed", stream->freed);
                spm_text_count(&dump->text, "stamped", stream->stamped);
                if (stream->retired)
                        spm_text_word(&dump->text, "retired");
                if (stream->capturing)
                        spm_text_word(&dump->text, "capturing");
                end(dump);
        }
}

static void dump_block(struct dump *dump, const char *indent, const struct spm_block *block)
{
        unsigned int i;

        spm_text_start(&dump->text, dump->buffer, sizeof(dump->buffer));
        spm_text_address(&dump->text, indent, block->address);
        spm_text_count(&dump->text, "size", block->size);
        spm_text_word(&dump->text, state_name(spm_block_state(block)));
        for (i = 0; i < block->dep_count; i++) {
                spm_text_count(&dump->text, "after", spm_block_dep(block, i).stream);
                spm_text_count(&dump->text, "/", spm_block_dep(block, i).position);
        }
        if (spm_block_is(block, SPM_BLOCK_PENDING) && block->open)
                spm_text_word(&dump->text, "open");
        end(dump);
}

static void dump_area(struct dump *dump, const struct spm_area *area)
{
        const struct spm_block *block;
        uint32_t i;

        start(dump, area->is_lone ? "  segment of" : "  range of", area->segment_count);
        spm_text_address(&dump->text, "base", area->base);
        spm_text_count(&dump->text, "size", area->size);
        if (area->shelf) {
                spm_text_count(&dump->text, "shelf", area->shelf->index);
                spm_text_count(&dump->text, "page", area->page_index);
                spm_text_count(&dump->text, "idle", area->page_idle);
        }
        end(dump);
        for (block = area->first; block; block = block->next) {
                dump_block(dump, "    block", block);
                if (!spm_block_is(block, SPM_BLOCK_SLAB))
                        continue;
                for (i = 0; i < block->slab->count; i++)
                        if (!spm_block_is(&block->slab->slots[i], SPM_BLOCK_READY))
                                dump_block(dump, "      slot", &block->slab->slots[i]);
        }
}

static bool dump_tag(const struct spm_tag_figures *figures, void *user)
{
        struct dump *dump = user;

        start(dump, "tag", figures->tag);
        spm_text_word(&dump->text, figures->name);
        spm_text_count(&dump->text, "live", figures->live_bytes);
        spm_text_count(&dump->text, "high", figures->live_bytes_high);
        spm_text_count(&dump->text, "at the peak of all", figures->bytes_at_peak);
        end(dump);
        return true;
}

void spm_dump(const struct spm_model *model, void (*line)(const char *text, void *user), void *user)
{
        struct dump dump = {.line = line, .user = user};
        const struct spm_pool_state *pool;
        const struct spm_object *object;
        const struct spm_area *area;
        struct spm_stats stats;

        spm_magazine_stop_all(model, true);
        for (object = model->contexts.head; object; object = spm_object_next(object))
                dump_context(&dump, (const struct spm_context_state *)object);
        for (pool = spm_pool_first(model); pool; pool = spm_pool_next(pool)) {
                start(&dump, "pool", pool->object.id);
                spm_text_count(&dump.text, "kind", pool->config.kind);
                spm_pool_figures(pool, &stats);
                spm_text_count(&dump.text, "reserved", stats.reserved_current);
                spm_text_count(&dump.text, "used", stats.used_current);
                spm_text_count(&dump.text, "pending", stats.pending_bytes);
                spm_text_count(&dump.text, "ready", stats.ready_bytes);
                spm_text_count(&dump.text, "sealed", stats.sealed_bytes);
                end(&dump);
                for (area = pool->areas; area; area = area->next)
                        dump_area(&dump, area);
        }
        spm_each_tag(model, dump_tag, &dump);
        spm_magazine_go_on(model);
}

/* FNV-1a over the bytes of a number, lowest first. */
static uint64_t mix(uint64_t hash, uint64_t number)
{
        unsigned int i;

        for (i = 0; i < 8; i++) {
                hash ^= (number >> (8 * i)) & 0xff;
                hash *= 0x100000001b3u;
        }
        return hash;
}

static bool mix_block(const struct spm_allocation *allocation, void *user)
{
        uint64_t *hash = user;

        *hash = mix(*hash, allocation->address);
        *hash = mix(*hash, allocation->size);
        *hash = mix(*hash, allocation->generation);
        return true;
}

uint64_t spm_hash(const struct spm_model *model)
{
        uint64_t hash = 0xcbf29ce484222325u;
        const struct spm_pool_state *pool;
        struct spm_stats stats;

        spm_each_live(model, 0, mix_block, &hash);
        for (pool = spm_pool_first(model); pool; pool = spm_pool_next(pool)) {
                spm_pool_figures(pool, &stats);
                hash = mix(hash, stats.reserved_current);
                hash = mix(hash, stats.reserved_high);
                hash = mix(hash, stats.used_current);
                hash = mix(hash, stats.used_high);
                hash = mix(hash, stats.pending_bytes);
                hash = mix(hash, stats.ready_bytes);
                hash = mix(hash, stats.sealed_bytes);
                hash = mix(hash, stats.allocs);
                hash = mix(hash, stats.frees);
                hash = mix(hash, stats.hits);
                hash = mix(hash, stats.grows);
                hash = mix(hash, stats.releases);
                hash = mix(hash, stats.moves);
        }
        return hash;
}

/* names */

const char *spm_status_name(enum spm_status status)
{
        switch (status) {
#define NAME(status)                                                                               \
        case status:                                                                               \
                return #status
                NAME(SPM_OK);
                NAME(SPM_AGAIN);
                NAME(SPM_E_INVALID_VALUE);
                NAME(SPM_E_OUT_OF_MEMORY);
                NAME(SPM_E_DOUBLE_FREE);
                NAME(SPM_E_FOREIGN);
                NAME(SPM_E_INTERIOR);
                NAME(SPM_E_STALE);
                NAME(SPM_E_INVALID_DEVICE);
                NAME(SPM_E_READ_ONLY);
                NAME(SPM_E_UNKNOWN);
                NAME(SPM_E_HOST_MEMORY);
                NAME(SPM_E_USE_AFTER_FREE);
                NAME(SPM_E_OUT_OF_BOUNDS);
                NAME(SPM_E_MISUSE);
                NAME(SPM_E_OUT_OF_BUDGET);
                NAME(SPM_E_DRIVER);
                NAME(SPM_E_TOO_BIG);
                NAME(SPM_E_IN_USE);
                NAME(SPM_E_UNSUPPORTED);
#undef NAME
        }
        return "unknown status";
}
