/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recall -- what magazines have counted, and how their blocks come back
 *
 * H6. Neither what is freed into a magazine of the legacy stream nor what it serves is an operation
 * of that stream, so it puts no blocking stream behind another one. That must make no difference.
 * So it is barred while its context has a blocking stream, while one may have work that the model
 * was not told of, and while one that is gone may have some that it was told of (work.h).
 *
 * The proof in short: let w be work of the old owner of a block that is served so, and x work of
 * the new one. w was submitted before the free, which is behind it for one of two reasons.
 * 1. By what the driver has seen on the legacy stream. Then so is x wherever it is: on the legacy
 * stream; on a blocking one, which was made later, and runs after what the driver has seen of the
 * legacy one; or on a third, behind either by an event.
 * 2. By a blocking stream b that had w, or waited for it, when the block was freed or at an
 * earlier call on the legacy stream. The magazine was barred then, so what was freed then went to
 * limbo. It is let go when b is gone and its count is over, which takes that its work is
 * complete; or, where nothing is announced, when b is gone. But then the legacy stream was stamped,
 * so that 1 holds (leave_legacy() in model.c). Where it could not be, what was freed waits for the
 * context as well, and no magazine is filled with it, because it is not open (part_from_legacy()).
 */

#include "recall.h"

#include "front.h"
#include "host.h"
#include "limbo.h"
#include "ripe.h"
#include "state.h"
#include "work.h"

#define PATIENCE 10000000 /* looks; some tens of milliseconds */
#define AT_ONCE  1000     /* looks; some microseconds */

/* figures */

struct spm_magazine_sums spm_magazine_sum(const struct spm_pool_state *pool)
{
        struct spm_magazine_sums sums = {0};
        const struct spm_magazine *magazine;

        for (magazine = pool->magazines; magazine; magazine = magazine->next) {
                sums.used += atomic_load_explicit(&magazine->used, memory_order_relaxed);
                sums.rounded += atomic_load_explicit(&magazine->rounded, memory_order_relaxed);
                sums.live += atomic_load_explicit(&magazine->live, memory_order_relaxed);
                sums.hits += atomic_load_explicit(&magazine->hits, memory_order_relaxed);
                sums.allocs += atomic_load_explicit(&magazine->allocs, memory_order_relaxed);
                sums.frees += atomic_load_explicit(&magazine->frees, memory_order_relaxed);
        }
        return sums;
}

static void settle_tallies(const struct spm_magazine *magazine)
{
        unsigned int i;

        for (i = 0; i < SPM_TALLIES; i++) {
                struct spm_tally *tally = magazine->pool->config.tallies[i];

                if (!tally)
                        continue;
                tally->count += (uint64_t)magazine->live;
                tally->bytes += (uint64_t)magazine->used;
                tally->made += magazine->allocs;
                tally->made_bytes += (uint64_t)magazine->made;
                tally->freed += magazine->frees;
                spm_tally_raise(tally);
        }
}

/* The magazine is ours for the moment. */
void spm_magazine_settle(struct spm_magazine *magazine)
{
        struct spm_pool_state *pool = magazine->pool;
        uint64_t rounded = (uint64_t)magazine->rounded;

        settle_tallies(magazine);
        pool->used_bytes += (uint64_t)magazine->used;
        pool->rounded_bytes += rounded;
        pool->pending_bytes -= rounded;
        pool->live_blocks += (uint64_t)magazine->live;
        pool->allocs += magazine->allocs;
        pool->hits += magazine->hits;
        pool->frees += magazine->frees;
        pool->used_granted -= (uint64_t)magazine->used_granted;
        pool->live_granted -= (uint64_t)magazine->live_granted;
        magazine->used = 0;
        magazine->rounded = 0;
        magazine->live = 0;
        magazine->made = 0;
        magazine->allocs = 0;
        magazine->hits = 0;
        magazine->frees = 0;
        magazine->used_granted = 0;
        magazine->live_granted = 0;
}

/* An eighth of what is left below the marks. */
void spm_magazine_grant(struct spm_magazine *magazine)
{
        struct spm_pool_state *pool = magazine->pool;
        uint64_t used = pool->used_bytes + pool->used_granted;
        uint64_t live = pool->live_blocks + pool->live_granted;

        if (used >= pool->used_high || live >= pool->live_blocks_high)
                return;
        magazine->used_granted = (int64_t)((pool->used_high - used) / 8);
        magazine->live_granted = (int64_t)((pool->live_blocks_high - live) / 8);
        pool->used_granted += (uint64_t)magazine->used_granted;
        pool->live_granted += (uint64_t)magazine->live_granted;
}

/* recall */

static void raise_flag(struct spm_magazine *magazine)
{
        atomic_store(&magazine->recalled, 1);
}

static void make_barrier(const struct spm_magazine *magazine)
{
        if (magazine->is_fenced)
                magazine->model->config.fence(magazine->model->config.user);
}

/* Once the flag is up, and behind a barrier. */
static bool is_outside(const struct spm_magazine *magazine)
{
        return atomic_load(&magazine->recalled) && !atomic_load(&magazine->inside);
}

/* A thread of higher priority that kept the processor could keep the owner inside for ever. */
static void wait_outside(const struct spm_magazine *magazine)
{
        const struct spm_config *config = &magazine->model->config;
        unsigned int looks;

        for (looks = 0; !is_outside(magazine); looks += looks < AT_ONCE)
                if (looks == AT_ONCE && config->pause)
                        config->pause(config->user);
}

static void seize(struct spm_magazine *magazine)
{
        raise_flag(magazine);
        make_barrier(magazine);
        wait_outside(magazine);
}

bool spm_magazine_is_barred(const struct spm_stream_state *stream)
{
        if (stream->kind == SPM_STREAM_LINE)
                return stream->context->captures != 0;
        return stream->capturing ||
               (stream->kind == SPM_STREAM_LEGACY && stream->context->blocking) ||
               spm_work_is_trapped(stream);
}

bool spm_magazine_is_empty(const struct spm_magazine *magazine)
{
        unsigned int klass = 0;

        while (klass < SPM_CLASSES && !magazine->small[klass])
                klass++;
        return klass == SPM_CLASSES && !magazine->large_count && !magazine->waiting_count;
}

void spm_magazine_let_go(struct spm_magazine *magazine)
{
        if (!magazine->dead && !spm_magazine_is_barred(magazine->stream))
                atomic_store_explicit(&magazine->recalled, 0, memory_order_release);
}

/* Its owner may count on at any moment, but what it counts then is later than this. */
static bool has_counted(const struct spm_magazine *magazine)
{
        return magazine->used_granted || magazine->live_granted ||
               atomic_load_explicit(&magazine->used, memory_order_relaxed) ||
               atomic_load_explicit(&magazine->live, memory_order_relaxed) ||
               atomic_load_explicit(&magazine->allocs, memory_order_relaxed) ||
               atomic_load_explicit(&magazine->frees, memory_order_relaxed);
}

void spm_magazine_settle_all(struct spm_pool_state *pool)
{
        struct spm_magazine *magazine;
        bool any = false;

        for (magazine = pool->magazines; magazine; magazine = magazine->next)
                if (has_counted(magazine)) {
                        raise_flag(magazine);
                        any = true;
                }
        if (any)
                make_barrier(pool->magazines);
        for (magazine = pool->magazines; any && magazine; magazine = magazine->next) {
                if (is_outside(magazine))
                        spm_magazine_settle(magazine);
                spm_magazine_let_go(magazine);
        }
}

static void give_back(struct spm_model *model, struct spm_magazine *magazine,
                      struct spm_block *block)
{
        magazine->held--;
        magazine->pool->pending_bytes -= block->size;
        if (!block->is_slot)
                spm_area_note(block, false);
        spm_block_become(block, SPM_BLOCK_LOOSE);
        /* As in a lane (mark_synced() in collect.c): whoever waited for the stream knows. */
        if (block->dep_count && block->positions[0] <= magazine->stream->done_sync)
                magazine->pool->synced = true;
        if (block->dep_count)
                spm_block_wait(model, block, magazine->stream, block->positions[0]);
        if (block->dep_count && magazine->is_sync)
                magazine->stream->context->unstamped = true;
        spm_limbo_put(model, block);
}

void spm_magazine_spill(struct spm_model *model, struct spm_magazine *magazine)
{
        while (magazine->waiting_count)
                give_back(model, magazine, spm_ripe_take(magazine));
}

void spm_magazine_flush(struct spm_model *model, struct spm_magazine *magazine)
{
        if (!magazine->waiting_count)
                return;
        spm_magazine_settle(magazine);
        spm_magazine_spill(model, magazine);
        SPM_CHECK(model);
}

bool spm_magazine_empty(struct spm_model *model, struct spm_magazine *magazine)
{
        unsigned int klass;
        bool any = magazine->large_count != 0 || magazine->waiting_count;

        spm_magazine_settle(magazine);
        spm_magazine_spill(model, magazine);
        while (magazine->large_count)
                give_back(model, magazine, magazine->large[--magazine->large_count]);
        for (klass = 0; klass < SPM_CLASSES; klass++) {
                any = any || magazine->small[klass];
                while (magazine->small[klass]) {
                        struct spm_block *block = magazine->small[klass];

                        magazine->small[klass] = block->newer;
                        give_back(model, magazine, block);
                }
                magazine->small_count[klass] = 0;
        }
        return any;
}

static void raise_flags(const struct spm_pool_state *pool)
{
        struct spm_magazine *magazine;

        for (magazine = pool->magazines; magazine; magazine = magazine->next)
                raise_flag(magazine);
        if (pool->magazines)
                make_barrier(pool->magazines);
}

static void seize_all(const struct spm_pool_state *pool)
{
        struct spm_magazine *magazine;

        raise_flags(pool);
        for (magazine = pool->magazines; magazine; magazine = magazine->next)
                wait_outside(magazine);
}

bool spm_magazine_recall(struct spm_model *model, struct spm_pool_state *pool)
{
        struct spm_magazine *magazine;
        bool any = false;

        seize_all(pool);
        for (magazine = pool->magazines; magazine; magazine = magazine->next) {
                any = spm_magazine_empty(model, magazine) || any;
                spm_magazine_let_go(magazine);
        }
        return any;
}

void spm_magazine_tell(struct spm_model *model, const struct spm_context_state *context)
{
        struct spm_pool_state *pool;
        struct spm_magazine *magazine;

        for (pool = context->line->magazines ? spm_pool_first(model) : NULL; pool;
             pool = spm_pool_next(pool))
                for (magazine = pool->work == &context->work ? pool->magazines : NULL; magazine;
                     magazine = magazine->next)
                        atomic_store_explicit(&magazine->told, context->work.frees,
                                              memory_order_relaxed);
}

void spm_magazine_kill(struct spm_magazine *magazine)
{
        struct spm_context_state *context = magazine->stream->context;

        magazine->dead = true;
        magazine->stream->magazines--;
        magazine->stream = NULL;
        if (magazine->is_sync)
                spm_work_note(magazine->model, context);
}

void spm_magazine_recall_stream(struct spm_model *model, struct spm_stream_state *stream, bool ends)
{
        struct spm_pool_state *pool;
        struct spm_magazine *magazine;

        for (pool = stream->magazines ? spm_pool_first(model) : NULL; pool;
             pool = spm_pool_next(pool))
                for (magazine = pool->magazines; magazine; magazine = magazine->next) {
                        if (magazine->stream != stream || magazine->dead)
                                continue;
                        seize(magazine);
                        spm_magazine_empty(model, magazine);
                        if (ends)
                                spm_magazine_kill(magazine);
                }
}

void spm_magazine_recall_legacy(struct spm_model *model, struct spm_context_state *context)
{
        if (context->legacy_stream)
                spm_magazine_recall_stream(model, context->legacy_stream, false);
}

void spm_magazine_abandon(struct spm_model *model, struct spm_pool_state *pool)
{
        struct spm_magazine *magazine;

        for (magazine = pool->magazines; magazine; magazine = magazine->next) {
                if (magazine->dead)
                        continue;
                seize(magazine);
                spm_magazine_empty(model, magazine);
                spm_magazine_kill(magazine);
        }
}

/* Whoever only reports does not wait for ever: the owner may be the thread that reports, in a
 * handler of a signal that came while it was inside, or one that a fork has left behind. */
void spm_magazine_stop_all(const struct spm_model *model, bool patient)
{
        const struct spm_pool_state *pool;
        const struct spm_magazine *magazine;
        unsigned int patience = PATIENCE;

        for (pool = spm_pool_first(model); pool; pool = spm_pool_next(pool)) {
                raise_flags(pool);
                for (magazine = pool->magazines; magazine; magazine = magazine->next)
                        if (patient)
                                wait_outside(magazine);
                        else
                                while (patience && !is_outside(magazine))
                                        patience--;
        }
}

void spm_magazine_go_on(const struct spm_model *model)
{
        const struct spm_pool_state *pool;
        struct spm_magazine *magazine;

        for (pool = spm_pool_first(model); pool; pool = spm_pool_next(pool))
                for (magazine = pool->magazines; magazine; magazine = magazine->next)
                        spm_magazine_let_go(magazine);
}

void spm_magazine_orphan(struct spm_model *model, struct spm_pool_state *pool)
{
        while (pool->magazines) {
                struct spm_magazine *magazine = pool->magazines;

                pool->magazines = magazine->next;
                magazine->pool = NULL;
                magazine->next = model->orphans;
                model->orphans = magazine;
        }
}

void spm_magazine_forget(struct spm_model *model)
{
        while (model->orphans) {
                struct spm_magazine *magazine = model->orphans;

                model->orphans = magazine->next;
                spm_host_free(model, magazine);
        }
}
