/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trim -- what may be given back
 */

#include "trim.h"

#include "action.h"
#include "state.h"

static void release(struct spm_model *model, struct spm_segment_state *segment,
                    struct spm_actions *actions)
{
        struct spm_pool_state *pool = segment->pool;

        pool->releases++;
        if (pool->config.provider == SPM_PROVIDER_CALLER) {
                struct spm_action *action = spm_action_add(actions, SPM_ACT_RELEASE);

                action->context = pool->config.context;
                action->pool = pool->object.id;
                action->segment = segment->object.id;
                action->address = segment->base;
                action->size = segment->size;
                action->cookie = segment->cookie;
        }
        spm_segment_free(model, segment);
}

static bool may_release(const struct spm_model *model, const struct spm_pool_state *pool)
{
        const struct spm_context_state *context;

        if (!pool->config.release_needs_idle)
                return true;
        context = spm_subject_context(model, pool->config.context);
        return !context || !context->captures;
}

bool spm_trim_pool(struct spm_model *model, struct spm_pool_state *pool, uint64_t reserved,
                   uint64_t ready, uint64_t *released, struct spm_actions *actions)
{
        struct spm_segment_state *segment = pool->idle;

        if (!may_release(model, pool))
                return true;
        while (segment && pool->reserved_bytes > reserved) {
                struct spm_segment_state *next = segment->next;

                if (pool->reserved_bytes - segment->size >= reserved &&
                    pool->ready_bytes - (segment->size - segment->sealed) >= ready) {
                        if (pool->config.provider == SPM_PROVIDER_CALLER &&
                            !spm_actions_room(actions))
                                return false;
                        *released += segment->size;
                        release(model, segment, actions);
                }
                segment = next;
        }
        return true;
}

static bool concerns(const struct spm_pool_state *pool, const struct spm_context_state *context)
{
        if (pool->config.context)
                return pool->config.context == context->object.id;
        return pool->config.device == context->device;
}

void spm_trim_synced(struct spm_model *model, const struct spm_context_state *context,
                     struct spm_actions *actions)
{
        struct spm_pool_state *pool;

        for (pool = spm_pool_first(model); pool; pool = spm_pool_next(pool)) {
                bool due = pool->synced && !pool->config.release_needs_idle;
                uint64_t released = 0;

                pool->synced = false;
                if (due || (context && concerns(pool, context)))
                        spm_trim_pool(model, pool, pool->config.release_threshold,
                                      pool->config.keep, &released, actions);
        }
}

void spm_trim_closed(struct spm_model *model, struct spm_actions *actions)
{
        struct spm_pool_state *pool = spm_pool_first(model);

        while (model->closed_pools && pool) {
                struct spm_pool_state *next = spm_pool_next(pool);
                uint64_t released = 0;

                if (pool->closed && !pool->config.release_needs_idle)
                        spm_trim_pool(model, pool, 0, 0, &released, actions);
                if (pool->closed && !pool->segment_count) {
                        spm_pool_free(model, pool);
                        model->closed_pools--;
                }
                pool = next;
        }
}
