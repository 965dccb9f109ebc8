/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tick -- idle memory is given back as time passes
 *
 * A pool is to hold what was in use at the peak of the last decay time, and
 * what its growth mode allows beyond that. Time is cut into windows of that
 * length, and the peaks of the present one and of the one before count: so
 * what a program needs again within that time stays, and nothing stays for
 * more than twice as long.
 *
 * What exceeds that goes bit by bit, in proportion to the time that has
 * passed, so that a program which comes back soon finds most of it.
 */

#include "front.h"
#include "piece.h"
#include "pool.h"
#include "recall.h"
#include "state.h"
#include "trim.h"

/* Half of the excess is gone after about a sixth of the decay time, nearly all after one. */
#define SPEED 4

static void turn_window(struct spm_pool_state *pool, uint64_t now)
{
        if (now - pool->window_start < pool->config.decay)
                return;
        pool->window_start = now;
        pool->is_short = false;
        pool->is_varied = false;
        pool->window_before = pool->window_high;
        pool->window_high = pool->rounded_bytes + (uint64_t)spm_magazine_sum(pool).rounded;
        /* What growth is measured by forgets older peaks as well. */
        pool->busy_high =
                pool->window_before > pool->window_high ? pool->window_before : pool->window_high;
}

/* How much of @excess is due after @passed. */
static uint64_t due(const struct spm_pool_state *pool, uint64_t excess, uint64_t passed)
{
        if (passed >= pool->config.decay / SPEED)
                return excess;
        return (uint64_t)((double)excess * ((double)passed * SPEED / (double)pool->config.decay));
}

/* What the pool may hold when this tick ends. A large segment can be more than the growth mode
 * allows beyond what was in use: when all of the excess is due, it does not stay for that. */
static void set_target(struct spm_pool_state *pool, uint64_t now)
{
        uint64_t high =
                pool->window_high > pool->window_before ? pool->window_high : pool->window_before;
        uint64_t busy = pool->rounded_bytes + pool->pending_bytes;
        uint64_t used = high > busy ? high : busy;
        uint64_t keep = spm_piece_allowed(pool, used);
        uint64_t excess = 0;

        if (keep < pool->config.release_threshold)
                keep = used = pool->config.release_threshold;
        if (pool->reserved_bytes > keep)
                excess = due(pool, pool->reserved_bytes - keep, now - pool->ticked);
        pool->tick_target = pool->reserved_bytes - excess;
        pool->tick_large = excess && pool->tick_target == keep ? used : pool->tick_target;
}

/* Return: false if there is more to do. The target stands until it is reached, and time in which
 * less than a segment was due adds up. */
static bool tick_pool(struct spm_model *model, struct spm_pool_state *pool, uint64_t now,
                      struct spm_actions *actions)
{
        uint64_t released = 0;

        if (!pool->is_ticking) {
                set_target(pool, now);
                pool->is_ticking = true;
                if (pool->tick_target < pool->reserved_bytes && pool->magazines)
                        spm_magazine_recall(model, pool);
        }
        if (!spm_trim_decay(model, pool, pool->tick_target, pool->tick_large, &released, actions))
                return false;
        pool->is_ticking = false;
        if (released || pool->tick_target == pool->reserved_bytes)
                pool->ticked = now;
        return true;
}

enum spm_status spm_tick(struct spm_model *model, uint64_t now, struct spm_actions *actions)
{
        enum spm_status status = SPM_OK;
        struct spm_pool_state *pool;

        actions->count = 0;
        for (pool = spm_pool_first(model); pool && now > model->now; pool = spm_pool_next(pool)) {
                if (!pool->config.decay || pool->closed || pool->layout ||
                    pool->config.release_needs_idle)
                        continue;
                if (!pool->window_start) {
                        pool->window_start = now;
                        pool->ticked = now;
                }
                turn_window(pool, now);
                if (!tick_pool(model, pool, now, actions)) {
                        status = SPM_AGAIN;
                        break;
                }
        }
        if (status == SPM_OK)
                model->now = now;
        return spm_model_finish(model, status, actions);
}
