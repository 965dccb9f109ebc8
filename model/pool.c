/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pool -- whose memory it is, its attributes and its figures
 */

#include "pool.h"

#include <assert.h>
#include <string.h>

#include "host.h"
#include "limbo.h"
#include "state.h"
#include "subject.h"

#define MIB ((size_t)1 << 20)

static bool is_power_of_two(size_t n)
{
        return n && !(n & (n - 1));
}

static void fill_defaults(struct spm_pool_config *config)
{
        if (!config->grain)
                config->grain = 2 * MIB;
        if (!config->segment_size)
                config->segment_size = 32 * MIB;
        if (!config->align)
                config->align = 512;
        if (!config->large_align)
                config->large_align = config->align;
}

static enum spm_status check_config(const struct spm_model *model,
                                    const struct spm_pool_config *config)
{
        if (config->device < 0)
                return SPM_E_INVALID_DEVICE;
        if (config->max_size && (config->initial_size > config->max_size ||
                                 config->release_threshold > config->max_size))
                return SPM_E_INVALID_VALUE;
        if (!is_power_of_two(config->grain) || !is_power_of_two(config->align) ||
            !is_power_of_two(config->large_align) || config->align > config->grain)
                return SPM_E_INVALID_VALUE;
        if ((unsigned int)config->kind > SPM_POOL_HOST ||
            (unsigned int)config->provider > SPM_PROVIDER_MODEL)
                return SPM_E_INVALID_VALUE;
        /* What is freed without a stream waits for its context, so there must be one. */
        if (config->kind != SPM_POOL_ASYNC || config->context) {
                const struct spm_context_state *context =
                        spm_subject_context(model, config->context);

                if (!context || context->gone)
                        return SPM_E_UNKNOWN;
        }
        return SPM_OK;
}

enum spm_status spm_pool_new(struct spm_model *model, const struct spm_pool_config *config,
                             struct spm_pool_state **result)
{
        struct spm_pool_config full = *config;
        struct spm_pool_state *pool;
        enum spm_status status;

        fill_defaults(&full);
        status = check_config(model, &full);
        if (status)
                return status;
        pool = spm_host_new(model, sizeof(*pool));
        if (!pool)
                return SPM_E_HOST_MEMORY;
        pool->config = full;
        pool->follow = true;
        pool->opportunistic = true;
        pool->internal = true;
        if (!spm_table_add(model, &model->pools, &pool->object)) {
                spm_host_free(model, pool);
                return SPM_E_HOST_MEMORY;
        }
        *result = pool;
        return SPM_OK;
}

void spm_pool_free(struct spm_model *model, struct spm_pool_state *pool)
{
        assert(!pool->busy && !pool->idle);
        spm_limbo_forget_pool(model, pool);
        spm_host_free(model, pool->access);
        spm_table_remove(model, &model->pools, &pool->object);
        spm_host_free(model, pool);
}

struct spm_pool_state *spm_pool_find(const struct spm_model *model, spm_pool id)
{
        return (struct spm_pool_state *)spm_table_find(&model->pools, id);
}

struct spm_pool_state *spm_pool_first(const struct spm_model *model)
{
        return (struct spm_pool_state *)model->pools.head;
}

struct spm_pool_state *spm_pool_next(const struct spm_pool_state *pool)
{
        return (struct spm_pool_state *)spm_object_next(&pool->object);
}

size_t spm_pool_reserve_size(const struct spm_pool_state *pool, size_t size, size_t *align)
{
        const struct spm_pool_config *config = &pool->config;
        size_t rounded = (size + config->align - 1) & ~(config->align - 1);

        if (rounded < size)
                return 0;
        *align = config->align;
        if (config->large_size && size > config->large_size && config->large_align > config->align)
                *align = config->large_align;
        return rounded;
}

bool spm_pool_is_done(const struct spm_model *model, const struct spm_pool_state *pool,
                      struct spm_point point)
{
        bool sync = pool->config.kind == SPM_POOL_ASYNC && !pool->opportunistic;

        return spm_point_is_done(model, point, sync);
}

/* attributes */

enum spm_status spm_pool_set(struct spm_model *model, struct spm_pool_state *pool,
                             enum spm_pool_attribute attribute, uint64_t value)
{
        switch (attribute) {
        case SPM_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
                pool->follow = value != 0;
                return SPM_OK;
        case SPM_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
                pool->opportunistic = value != 0;
                spm_limbo_collect_pool(model, pool);
                return SPM_OK;
        case SPM_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
                pool->internal = value != 0;
                return SPM_OK;
        case SPM_ATTR_RELEASE_THRESHOLD:
                pool->config.release_threshold = value > SIZE_MAX ? SIZE_MAX : (size_t)value;
                return SPM_OK;
        case SPM_ATTR_RESERVED_MEM_HIGH:
                if (value)
                        return SPM_E_READ_ONLY;
                pool->reserved_high = pool->reserved_bytes;
                return SPM_OK;
        case SPM_ATTR_USED_MEM_HIGH:
                if (value)
                        return SPM_E_READ_ONLY;
                pool->used_high = pool->used_bytes;
                return SPM_OK;
        case SPM_ATTR_RESERVED_MEM_CURRENT:
        case SPM_ATTR_USED_MEM_CURRENT:
                return SPM_E_READ_ONLY;
        }
        return SPM_E_INVALID_VALUE;
}

enum spm_status spm_pool_get(const struct spm_pool_state *pool, enum spm_pool_attribute attribute,
                             uint64_t *value)
{
        switch (attribute) {
        case SPM_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
                *value = pool->follow;
                return SPM_OK;
        case SPM_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
                *value = pool->opportunistic;
                return SPM_OK;
        case SPM_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
                *value = pool->internal;
                return SPM_OK;
        case SPM_ATTR_RELEASE_THRESHOLD:
                *value = pool->config.release_threshold;
                return SPM_OK;
        case SPM_ATTR_RESERVED_MEM_CURRENT:
                *value = pool->reserved_bytes;
                return SPM_OK;
        case SPM_ATTR_RESERVED_MEM_HIGH:
                *value = pool->reserved_high;
                return SPM_OK;
        case SPM_ATTR_USED_MEM_CURRENT:
                *value = pool->used_bytes;
                return SPM_OK;
        case SPM_ATTR_USED_MEM_HIGH:
                *value = pool->used_high;
                return SPM_OK;
        }
        return SPM_E_INVALID_VALUE;
}

enum spm_status spm_pool_allow(struct spm_model *model, struct spm_pool_state *pool, int peer,
                               enum spm_access access)
{
        struct spm_peer_access *grown;
        unsigned int i;

        if (peer < 0 || peer == pool->config.device)
                return SPM_E_INVALID_DEVICE;
        for (i = 0; i < pool->access_count; i++)
                if (pool->access[i].peer == peer) {
                        pool->access[i].access = access;
                        return SPM_OK;
                }
        grown = spm_host_new(model, (pool->access_count + 1) * sizeof(*grown));
        if (!grown)
                return SPM_E_HOST_MEMORY;
        if (pool->access_count)
                memcpy(grown, pool->access, pool->access_count * sizeof(*grown));
        grown[pool->access_count] = (struct spm_peer_access){peer, access};
        spm_host_free(model, pool->access);
        pool->access = grown;
        pool->access_count++;
        return SPM_OK;
}

enum spm_access spm_pool_allowed(const struct spm_pool_state *pool, int peer)
{
        unsigned int i;

        if (peer == pool->config.device)
                return SPM_ACCESS_READ_WRITE;
        for (i = 0; i < pool->access_count; i++)
                if (pool->access[i].peer == peer)
                        return pool->access[i].access;
        return SPM_ACCESS_NONE;
}

void spm_pool_reset_peaks(struct spm_pool_state *pool)
{
        pool->used_high = pool->used_bytes;
        pool->reserved_high = pool->reserved_bytes;
        pool->live_blocks_high = pool->live_blocks;
}

void spm_pool_figures(const struct spm_pool_state *pool, struct spm_stats *stats)
{
        const struct spm_node *largest = spm_tree_last(&pool->ready);

        *stats = (struct spm_stats){
                .reserved_current = pool->reserved_bytes,
                .reserved_high = pool->reserved_high,
                .used_current = pool->used_bytes,
                .used_high = pool->used_high,
                .live_blocks = pool->live_blocks,
                .live_blocks_high = pool->live_blocks_high,
                .rounded_current = pool->rounded_bytes,
                .pending_bytes = pool->pending_bytes,
                .ready_bytes = pool->ready_bytes,
                .sealed_bytes = pool->sealed_bytes,
                .largest_ready = largest ? largest->major : 0,
                .segments = pool->segment_count,
                .allocs = pool->allocs,
                .frees = pool->frees,
                .hits = pool->hits,
                .grows = pool->grows,
                .releases = pool->releases,
                .undone = pool->undone,
        };
}

/* segments and blocks */

static void link_idle(struct spm_pool_state *pool, struct spm_segment_state *segment)
{
        segment->next = NULL;
        segment->previous = pool->last_idle;
        if (pool->last_idle)
                pool->last_idle->next = segment;
        else
                pool->idle = segment;
        pool->last_idle = segment;
}

static void link_busy(struct spm_pool_state *pool, struct spm_segment_state *segment)
{
        segment->previous = NULL;
        segment->next = pool->busy;
        if (pool->busy)
                pool->busy->previous = segment;
        pool->busy = segment;
}

static void unlink_segment(struct spm_segment_state *segment)
{
        struct spm_pool_state *pool = segment->pool;

        if (segment->previous)
                segment->previous->next = segment->next;
        else if (pool->idle == segment)
                pool->idle = segment->next;
        else
                pool->busy = segment->next;
        if (segment->next)
                segment->next->previous = segment->previous;
        else if (pool->last_idle == segment)
                pool->last_idle = segment->previous;
}

void spm_pool_attach_segment(struct spm_pool_state *pool, struct spm_segment_state *segment)
{
        segment->pool = pool;
        link_idle(pool, segment);
        pool->segment_count++;
        pool->reserved_bytes += segment->size;
        if (pool->reserved_high < pool->reserved_bytes)
                pool->reserved_high = pool->reserved_bytes;
}

void spm_pool_detach_segment(struct spm_segment_state *segment)
{
        unlink_segment(segment);
        segment->pool->segment_count--;
        segment->pool->reserved_bytes -= segment->size;
}

void spm_pool_count_busy(struct spm_block *block, bool busy)
{
        struct spm_segment_state *segment = block->segment;

        if (busy && !segment->busy++) {
                unlink_segment(segment);
                link_busy(segment->pool, segment);
        } else if (!busy && !--segment->busy) {
                unlink_segment(segment);
                link_idle(segment->pool, segment);
        }
}

void spm_pool_make_ready(struct spm_model *model, struct spm_block *block)
{
        struct spm_pool_state *pool = block->segment->pool;

        assert(block->state == SPM_BLOCK_LOOSE);
        block->dep_count = 0;
        if (block->exported) {
                block->state = SPM_BLOCK_SEALED;
                pool->sealed_bytes += block->size;
                block->segment->sealed += block->size;
                return;
        }
        if (block->previous && block->previous->state == SPM_BLOCK_READY) {
                struct spm_block *other = block->previous;

                spm_pool_take_ready(other);
                spm_block_absorb(model, block, other);
        }
        if (block->next && block->next->state == SPM_BLOCK_READY) {
                struct spm_block *other = block->next;

                spm_pool_take_ready(other);
                spm_block_absorb(model, block, other);
        }
        block->state = SPM_BLOCK_READY;
        block->by_size.major = block->size;
        block->by_size.minor = block->address;
        spm_tree_insert(&pool->ready, &block->by_size);
        pool->ready_bytes += block->size;
}

void spm_pool_take_ready(struct spm_block *block)
{
        struct spm_pool_state *pool = block->segment->pool;

        assert(block->state == SPM_BLOCK_READY);
        spm_tree_remove(&pool->ready, &block->by_size);
        pool->ready_bytes -= block->size;
        block->state = SPM_BLOCK_LOOSE;
}

void spm_pool_count_live(const struct spm_block *block, bool live)
{
        struct spm_pool_state *pool = block->segment->pool;

        if (!live) {
                pool->live_blocks--;
                pool->used_bytes -= block->requested;
                pool->rounded_bytes -= block->size;
                return;
        }
        pool->live_blocks++;
        pool->used_bytes += block->requested;
        pool->rounded_bytes += block->size;
        if (pool->live_blocks_high < pool->live_blocks)
                pool->live_blocks_high = pool->live_blocks;
        if (pool->used_high < pool->used_bytes)
                pool->used_high = pool->used_bytes;
}
