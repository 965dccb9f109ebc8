/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Store -- pools, and the memory they are made of
 *
 * Part of the front door (model.c): segments come and go, pools have
 * attributes and figures.
 */

#include "check.h"
#include "front.h"
#include "grow.h"
#include "pool.h"
#include "quarantine.h"
#include "recall.h"
#include "segment.h"
#include "state.h"
#include "trim.h"

/* segments */

enum spm_status spm_segment_add(struct spm_model *model, spm_pool id, uint64_t base, size_t size,
                                void *cookie, spm_segment *result)
{
        struct spm_pool_state *pool = spm_pool_find(model, id);
        struct spm_segment_state *segment;
        const struct spm_pool_config *config;
        enum spm_status status;

        if (!pool || pool->closed)
                return SPM_E_UNKNOWN;
        config = &pool->config;
        if (!base || !size || base & (config->grain - 1) || size & (config->grain - 1))
                return SPM_E_INVALID_VALUE;
        if (config->max_size &&
            (size > config->max_size || pool->reserved_bytes > config->max_size - size))
                return SPM_E_OUT_OF_MEMORY;
        status = spm_segment_new(model, pool, base, size, cookie, &segment);
        if (status)
                return status;
        pool->grows++;
        *result = segment->object.id;
        SPM_CHECK(model);
        return SPM_OK;
}

/* pools */

static struct spm_pool_state *open_pool(const struct spm_model *model, spm_pool id)
{
        struct spm_pool_state *pool = spm_pool_find(model, id);

        return pool && !pool->closed ? pool : NULL;
}

enum spm_status spm_pool_create(struct spm_model *model, const struct spm_pool_config *config,
                                spm_pool *result)
{
        struct spm_pool_state *pool;
        enum spm_status status = spm_pool_new(model, config, &pool);
        size_t grain;
        size_t size;

        if (status)
                return status;
        grain = pool->config.grain;
        size = (config->initial_size + grain - 1) & ~(grain - 1);
        if (size < config->initial_size || (config->max_size && size > config->max_size))
                size = config->initial_size & ~(grain - 1);
        if (config->provider == SPM_PROVIDER_MODEL && size)
                status = spm_grow_initial(model, pool, size);
        if (status) {
                spm_pool_free(model, pool);
                return status;
        }
        *result = pool->object.id;
        SPM_CHECK(model);
        return SPM_OK;
}

enum spm_status spm_pool_destroy(struct spm_model *model, spm_pool id, struct spm_actions *actions)
{
        struct spm_pool_state *pool = spm_pool_find(model, id);
        uint64_t released = 0;
        bool all;

        actions->count = 0;
        if (!pool || (pool->closed && !pool->spanning && !pool->sealed))
                return SPM_E_UNKNOWN;
        if (pool->config.is_default)
                return SPM_E_INVALID_VALUE;
        if (!pool->closed) {
                pool->closed = true;
                pool->is_apart = true;
                pool->config.release_threshold = 0;
                pool->config.keep = 0;
                pool->config.quarantine = 0;
                pool->detour = pool->config.track_uses || pool->layout;
                model->closed_pools++;
                spm_magazine_abandon(model, pool);
                spm_quarantine_end(model, pool);
        }
        all = pool->config.release_needs_idle ||
              spm_trim_pool(model, pool, 0, 0, &released, actions);
        return spm_model_finish(model, all ? SPM_OK : SPM_AGAIN, actions);
}

enum spm_status spm_pool_get_config(const struct spm_model *model, spm_pool id,
                                    struct spm_pool_config *config)
{
        const struct spm_pool_state *pool = spm_pool_find(model, id);

        if (!pool)
                return SPM_E_UNKNOWN;
        *config = pool->config;
        return SPM_OK;
}

enum spm_status spm_pool_set_attribute(struct spm_model *model, spm_pool id,
                                       enum spm_pool_attribute attribute, uint64_t value)
{
        struct spm_pool_state *pool = open_pool(model, id);
        enum spm_status status;

        if (!pool)
                return SPM_E_UNKNOWN;
        status = spm_pool_set(model, pool, attribute, value);
        SPM_CHECK(model);
        return status;
}

enum spm_status spm_pool_get_attribute(const struct spm_model *model, spm_pool id,
                                       enum spm_pool_attribute attribute, uint64_t *value)
{
        const struct spm_pool_state *pool = spm_pool_find(model, id);

        return pool ? spm_pool_get(pool, attribute, value) : SPM_E_UNKNOWN;
}

enum spm_status spm_pool_set_access(struct spm_model *model, spm_pool id, int peer,
                                    enum spm_access access)
{
        struct spm_pool_state *pool = open_pool(model, id);

        return pool ? spm_pool_allow(model, pool, peer, access) : SPM_E_UNKNOWN;
}

enum spm_status spm_pool_get_access(const struct spm_model *model, spm_pool id, int peer,
                                    enum spm_access *access)
{
        const struct spm_pool_state *pool = spm_pool_find(model, id);

        if (!pool)
                return SPM_E_UNKNOWN;
        if (peer < 0)
                return SPM_E_INVALID_DEVICE;
        *access = spm_pool_allowed(pool, peer);
        return SPM_OK;
}

enum spm_status spm_trim(struct spm_model *model, spm_pool id, size_t keep, size_t *released,
                         struct spm_actions *actions)
{
        struct spm_pool_state *pool = spm_pool_find(model, id);
        uint64_t bytes = 0;
        bool all;

        actions->count = 0;
        if (!pool)
                return SPM_E_UNKNOWN;
        spm_magazine_recall(model, pool);
        spm_quarantine_end(model, pool);
        all = spm_trim_pool(model, pool, keep, 0, &bytes, actions);
        if (released)
                *released = (size_t)bytes;
        return spm_model_finish(model, all ? SPM_OK : SPM_AGAIN, actions);
}

enum spm_status spm_trim_due(struct spm_model *model, struct spm_actions *actions)
{
        actions->count = 0;
        spm_model_finish(model, SPM_OK, actions);
        return model->unfinished && actions->count ? SPM_AGAIN : SPM_OK;
}

enum spm_status spm_stats(const struct spm_model *model, spm_pool id, struct spm_stats *stats)
{
        const struct spm_pool_state *pool = spm_pool_find(model, id);

        if (!pool)
                return SPM_E_UNKNOWN;
        spm_pool_figures(pool, stats);
        stats->host_bytes = model->host_bytes;
        return SPM_OK;
}

void spm_settle(struct spm_model *model)
{
        struct spm_pool_state *pool;

        for (pool = spm_pool_first(model); pool; pool = spm_pool_next(pool))
                if (pool->magazines)
                        spm_magazine_settle_all(pool);
}

enum spm_status spm_reset_peaks(struct spm_model *model, spm_pool id)
{
        struct spm_pool_state *pool = spm_pool_find(model, id);

        if (!pool)
                return SPM_E_UNKNOWN;
        spm_pool_reset_peaks(pool);
        return SPM_OK;
}
