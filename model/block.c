/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Block -- allocations and frees
 *
 * Part of the front door (model.c): how a block's life begins and ends. What it
 * waits for when it has ended is in block_wait.c. A free cannot fail once the
 * block is found: it needs no memory, and what it would like to ask for can
 * wait.
 */

#include "front.h"
#include "ladder.h"
#include "layout.h"
#include "ledger.h"
#include "limbo.h"
#include "magazine.h"
#include "piece.h"
#include "pool.h"
#include "quarantine.h"
#include "recall.h"
#include "ripe.h"
#include "segment.h"
#include "stamp.h"
#include "state.h"
#include "subject.h"

/* Of the most that was in use, a batch; and bytes of one that is large enough in any pool. */
#define BATCH_SHARE 16
#define BATCH_LEAST ((uint64_t)8 << 20)

/* Identifiers of the driver's buffers count up from 1; these do not meet them (Q5). */
#define BUFFER_ID_BASE ((uint64_t)1 << 48)

void spm_block_describe(const struct spm_block *block, struct spm_allocation *allocation)
{
        const struct spm_pool_state *pool = block->area->pool;

        /* One by one: compilers clear the rest of a compound literal of this size in a way that
         * takes longer than all of a magazine's pair. */
        allocation->address = block->address;
        allocation->reserved = block->size;
        allocation->size = block->requested;
        allocation->generation = block->generation;
        allocation->buffer_id = BUFFER_ID_BASE + block->generation;
        allocation->pool = pool->object.id;
        allocation->kind = pool->config.kind;
        allocation->device = pool->config.device;
        allocation->stream = pool->config.kind == SPM_POOL_ASYNC ? block->streams[0] : 0;
        allocation->segment = 0;
        allocation->cookie = NULL;
        allocation->segment_base = 0;
        allocation->segment_size = 0;
        allocation->user = block->user;
        allocation->exported = block->exported;
        allocation->reused = !block->fresh;
        allocation->announce = false;
        allocation->unseen = false;
}

void spm_block_place(const struct spm_block *block, struct spm_allocation *allocation)
{
        const struct spm_segment_state *segment = *spm_area_segment(block->area, block->address);

        allocation->segment = segment->object.id;
        allocation->cookie = segment->cookie;
        allocation->segment_base = segment->base;
        allocation->segment_size = segment->size;
}

/* allocations */

static SPM_COLD enum spm_status alloc_apart(struct spm_model *model, struct spm_request *request,
                                            struct spm_allocation *allocation,
                                            struct spm_actions *actions)
{
        struct spm_pool_state *pool = spm_pool_find(model, request->pool);

        if (!pool || pool->closed)
                return SPM_E_UNKNOWN;
        if (pool->is_tracked)
                return spm_ledger_alloc(model, pool, request, allocation, actions);
        return spm_routing_alloc(model, pool, request, allocation, actions);
}

enum spm_status spm_alloc(struct spm_model *model, struct spm_request *request,
                          struct spm_allocation *allocation, struct spm_actions *actions)
{
        struct spm_pool_state *pool = spm_pool_find(model, request->pool);
        struct spm_want want = {.pool = pool, .requested = request->size, .user = request->user};
        struct spm_magazine *magazine = request->magazine;
        struct spm_block *block = NULL;
        enum spm_status status;

        actions->count = 0;
        if (!request->size)
                return SPM_E_INVALID_VALUE;
        /* So that the usual way costs what it would without the other one. */
        if (__builtin_expect(!pool || pool->is_apart, false))
                return alloc_apart(model, request, allocation, actions);
        want.size = request->size + request->extra;
        if (want.size >= request->size)
                want.size = spm_pool_reserve_size(pool, want.size, &want.align);
        if (want.size < request->size)
                return SPM_E_INVALID_VALUE;
        want.klass = spm_slab_class(pool, want.size, &want.size);
        want.heap = spm_pool_heap(pool, want.size);
        if (pool->config.kind == SPM_POOL_ASYNC) {
                want.stream = spm_subject_usable(model, request->stream);
                if (!want.stream)
                        return SPM_E_UNKNOWN;
        } else {
                want.stream = spm_work_early(pool->work);
                if (magazine && spm_ripe_now(magazine) == SPM_WORK_FREE_LOCKED)
                        magazine = spm_magazine_lay_down(model, magazine);
        }
        if (magazine && spm_magazine_serve(model, magazine, &want, allocation))
                return spm_model_finish(model, SPM_OK, actions);
        status = spm_ladder_climb(model, &want, request, &block, actions);
        if (status == SPM_OK) {
                spm_block_describe(block, allocation);
                allocation->announce = pool->config.kind != SPM_POOL_ASYNC && block->dep_count;
                /* More than its own point, and no wait that the driver has seen. */
                allocation->unseen = pool->config.kind == SPM_POOL_ASYNC && block->dep_count > 1 &&
                                     !block->belted;
                if (magazine)
                        spm_magazine_visit(model, magazine, &want);
        }
        return spm_model_finish(model, status, actions);
}

void spm_grow_failed(struct spm_model *model, struct spm_request *request)
{
        struct spm_pool_state *pool = spm_pool_find(model, request->pool);

        if (pool)
                pool->is_short = true;
        spm_ladder_refused(request);
}

void spm_grow_whole(struct spm_request *request)
{
        spm_ladder_whole(request);
}

/* frees */

enum spm_status spm_block_find_live(const struct spm_model *model, uint64_t address,
                                    struct spm_block **block)
{
        const struct spm_area *area = spm_area_at(model, address);

        *block = area ? spm_area_live_at(area, address) : NULL;
        if (*block)
                return SPM_OK;
        return area && spm_segment_at(model, address) ? SPM_E_DOUBLE_FREE : SPM_E_FOREIGN;
}

/* The live block that begins at @address, or NULL. Mostly it is in the area of the one before. */
static struct spm_block *find_start(struct spm_model *model, uint64_t address)
{
        struct spm_area *area = model->near;
        struct spm_block *block;

        if (!area || address - area->base >= area->size) {
                area = spm_area_at(model, address);
                if (!area)
                        return NULL;
                model->near = area;
        }
        block = spm_area_start(area, address);
        return spm_block_is(block, SPM_BLOCK_LIVE) ? block : NULL;
}

/* Why none does. */
static SPM_COLD enum spm_status explain(const struct spm_model *model, uint64_t address)
{
        struct spm_block *block;
        enum spm_status status = spm_block_find_live(model, address, &block);

        return status ? status : SPM_E_INTERIOR;
}

/* The program has got the block, so the belt it was served with has been submitted. */
static void learn_belt(struct spm_model *model, const struct spm_block *block)
{
        struct spm_stream_state *stream;

        if (!block->belted)
                return;
        stream = spm_subject_stream(model, block->streams[0]);
        if (!stream)
                return;
        spm_stream_wake(stream);
        spm_clock_raise(model, &stream->clock, spm_block_dep(block, 1));
}

static void wait_in_order(struct spm_model *model, struct spm_block *block,
                          struct spm_stream_state *stream)
{
        spm_block_wait(model, block, stream, spm_stream_submit(stream));
}

static void wait_for_context(struct spm_model *model, struct spm_block *block,
                             struct spm_context_state *context)
{
        struct spm_stream_state *line = context->line;
        struct spm_point point = {line->object.id, spm_stream_submit(line)};

        spm_block_set_deps(model, block, &point, 1);
        context->unstamped = true;
        line->open_blocks++;
        line->open_bytes += block->size;
}

/* In nobody's order: for the context, or for what an asynchronous block was born with. */
static void wait_for_all(struct spm_model *model, struct spm_block *block,
                         struct spm_context_state *context)
{
        if (context && spm_work_is_idle(&context->work))
                spm_block_drop_deps(model, block);
        else if (context)
                wait_for_context(model, block, context);
        else if (block->dep_count)
                spm_block_wait_for_birth(model, block);
}

/* Of a small pool less is a batch, so that it does not have to grow while it waits for one. */
static bool is_full(const struct spm_model *model, const struct spm_stream_state *stream,
                    const struct spm_pool_state *pool)
{
        uint64_t share = spm_most(pool->used_high / BATCH_SHARE, BATCH_LEAST);

        return stream->open_blocks >= model->config.batch_blocks ||
               stream->open_bytes >= spm_least(share, model->config.batch_bytes);
}

/*
 * A batch of the context is stamped here, where the driver's own free would have waited for all
 * that the stamp covers. A per-thread stream can be stamped by nobody else (F5).
 */
static void stamp_full(struct spm_model *model, const struct spm_pool_state *pool,
                       struct spm_context_state *context, struct spm_stream_state *stream,
                       struct spm_actions *actions)
{
        if (context && context->unstamped && is_full(model, context->line, pool))
                spm_stamp_ask(model, context->line, false, actions);
        if (stream && stream->kind == SPM_STREAM_PER_THREAD && is_full(model, stream, pool) &&
            spm_stamp_is_due(stream))
                spm_stamp_ask(model, stream, true, actions);
}

/* A free that the driver does not see is an operation of a legacy stream all the same (H6). */
static void trap(struct spm_model *model, struct spm_stream_state *stream,
                 struct spm_actions *actions)
{
        if (spm_work_is_trapped(stream) && !spm_stamp_trap(model, stream, true, actions))
                spm_stamp_do_without(stream, actions);
}

/* LIVE to LOOSE, unless the owner of a magazine has been faster. */
static bool begin_end(struct spm_block *block, uint32_t life)
{
        if (block->area->pool->magazines)
                return life && spm_block_end_life(block, life, SPM_BLOCK_LOOSE);
        spm_block_become(block, SPM_BLOCK_LOOSE);
        return true;
}

/* It waits for its uses as well, or is kept for a while. */
static SPM_COLD void put_by_detour(struct spm_model *model, struct spm_block *block,
                                   const struct spm_stream_state *stream)
{
        if (block->area->shelf)
                spm_shelf_freed(block);
        if (block->area->pool->config.track_uses)
                spm_ledger_free(model, block, stream);
        if (block->area->pool->config.quarantine)
                spm_quarantine_put(model, block);
        else
                spm_limbo_put(model, block);
}

/* Nobody finds it any more. */
static void end_life(struct spm_block *block)
{
        if (!block->is_slot)
                spm_area_note(block, false);
        block->fresh = false;
}

static SPM_MAY_RACE enum spm_status may_free(const struct spm_model *model,
                                             const struct spm_block *block, uint64_t generation,
                                             enum spm_free_kind kind, spm_stream id,
                                             struct spm_stream_state **stream)
{
        if (generation && generation != block->generation)
                return SPM_E_STALE;
        if ((kind == SPM_FREE_HOST) != (block->area->pool->config.kind == SPM_POOL_HOST))
                return SPM_E_INVALID_VALUE;
        if (kind == SPM_FREE_SYNC || kind == SPM_FREE_HOST)
                return SPM_OK;
        if (kind != SPM_FREE_ASYNC)
                return SPM_E_INVALID_VALUE;
        *stream = spm_subject_usable(model, id);
        return *stream ? SPM_OK : SPM_E_UNKNOWN;
}

enum spm_status spm_free(struct spm_model *model, uint64_t address, uint64_t generation,
                         enum spm_free_kind kind, spm_stream id, struct spm_allocation *freed,
                         struct spm_actions *actions)
{
        struct spm_context_state *context = NULL;
        struct spm_stream_state *stream = NULL;
        struct spm_stream_state *sole;
        struct spm_pool_state *pool;
        struct spm_block *block = find_start(model, address);
        uint32_t life;
        enum spm_status status;

        actions->count = 0;
        if (!block)
                return explain(model, address);
        life = spm_block_life(block);
        status = may_free(model, block, generation, kind, id, &stream);
        if (status)
                return status;
        if (!begin_end(block, life))
                return SPM_E_DOUBLE_FREE;

        pool = block->area->pool;
        sole = kind == SPM_FREE_SYNC ? spm_work_early(pool->work) : NULL;
        if (freed) {
                spm_block_describe(block, freed);
                freed->announce = sole != NULL;
                if (block->exported)
                        spm_block_place(block, freed);
        }
        spm_pool_count_end(block, true);
        end_life(block);
        learn_belt(model, block);
        if (pool->config.kind != SPM_POOL_ASYNC)
                context = pool->context;
        if (stream || sole)
                wait_in_order(model, block, stream ? stream : sole);
        else
                wait_for_all(model, block, context);
        if (context && ((stream && stream->context == context) || sole))
                context->unstamped = true;
        /* The driver's own would not have waited, so no later work may wait for what was before
         * (R1). */
        block->barred = context && stream;
        if (pool->detour)
                put_by_detour(model, block, stream);
        else
                spm_limbo_put(model, block);
        if (stream)
                trap(model, stream, actions);
        stamp_full(model, pool, context, stream, actions);
        return spm_model_finish(model, SPM_OK, actions);
}

enum spm_status spm_alloc_undo(struct spm_model *model, uint64_t address,
                               struct spm_actions *actions)
{
        struct spm_stream_state *stream;
        struct spm_pool_state *pool;
        struct spm_block *block = find_start(model, address);

        actions->count = 0;
        if (!block)
                return explain(model, address);
        if (!begin_end(block, spm_block_life(block)))
                return SPM_E_DOUBLE_FREE;
        pool = block->area->pool;
        if (pool->config.track_uses)
                spm_ledger_drop(model, block, true);
        spm_pool_count_undone(block);
        if (block->area->shelf)
                spm_shelf_freed(block);
        stream = spm_subject_stream(model, block->streams[0]);
        end_life(block);
        if (pool->config.kind != SPM_POOL_ASYNC) {
                wait_for_context(model, block, pool->context);
        } else if (stream && block->dep_count) {
                /* A belt may be missing: the stream itself may not have it in order either. */
                block->barred = true;
                block->positions[0] = spm_stream_submit(stream);
        }
        spm_limbo_put(model, block);
        return spm_model_finish(model, SPM_OK, actions);
}
