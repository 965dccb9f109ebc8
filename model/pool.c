/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pool -- whose memory it is, its attributes and its figures
 */

#include "pool.h"

#include <string.h>

#include "bits.h"
#include "collect.h"
#include "host.h"
#include "layout.h"
#include "ledger.h"
#include "recall.h"
#include "state.h"
#include "subject.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* Of a range that is made up: more than any device has. */
#define RANGE_SIZE ((uint64_t)1 << 40)

static bool is_power_of_two(size_t n)
{
        return n && !(n & (n - 1));
}

/* Sizes of slabs that fit a smaller grain or alignment than usual. */
static size_t usual_small(const struct spm_pool_config *config)
{
        size_t small = (config->growth == SPM_GROWTH_TIGHT ? 4 : 32) * KIB;

        while (small * 64 > config->grain || small > config->align * SPM_SLOT_UNITS)
                small /= 2;
        return small;
}

/* In grains, the most of one segment. A driver takes as long for twice as much as for two. */
#define SEGMENT_MOST 1024

/* Memory that is made up costs nothing to get, and is in pieces that can move. */
static uint64_t most_of_segment(const struct spm_pool_config *config, size_t given)
{
        if (given || !config->range_size || config->provider == SPM_PROVIDER_MODEL)
                return config->segment_size;
        return (uint64_t)SEGMENT_MOST * config->grain;
}

static void fill_defaults(struct spm_pool_config *config)
{
        if (!config->grain)
                config->grain = 2 * MIB;
        if (!config->segment_size)
                config->segment_size =
                        config->growth == SPM_GROWTH_TIGHT ? config->grain : 32 * MIB;
        if (!config->align)
                config->align = 512;
        if (!config->small_size)
                config->small_size = usual_small(config);
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
        if (!is_power_of_two(config->small_size) || config->small_size > config->grain ||
            config->small_size / SPM_SLOT_UNITS > config->align ||
            (unsigned int)config->growth > SPM_GROWTH_TIGHT)
                return SPM_E_INVALID_VALUE;
        if (config->range_base % config->grain || config->range_size % config->grain ||
            !config->range_base != !config->range_size ||
            config->range_base + config->range_size < config->range_base)
                return SPM_E_INVALID_VALUE;
        if ((unsigned int)config->kind > SPM_POOL_HOST ||
            (unsigned int)config->provider > SPM_PROVIDER_MODEL)
                return SPM_E_INVALID_VALUE;
        if (config->track_uses && config->kind != SPM_POOL_ASYNC)
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

/*
 * A pool that was promised an amount, at most or to begin with, has one heap, so that it is there
 * for blocks of any size.
 */
enum spm_status spm_pool_make_heap(struct spm_model *model, struct spm_pool_state *pool)
{
        struct spm_pool_config *config = &pool->config;
        bool parted = !config->max_size && !config->initial_size;
        unsigned int i;

        if (config->provider == SPM_PROVIDER_MODEL && !config->range_size) {
                config->range_base = (model->next_base + config->grain - 1) & ~(config->grain - 1);
                config->range_size = RANGE_SIZE;
                model->next_base = config->range_base + config->range_size;
        }
        pool->page = config->small_size > config->align ? config->small_size : config->align;
        pool->heap_count = config->range_size / config->grain > 1 && parted ? 2 : 1;
        for (i = 0; i < pool->heap_count; i++) {
                pool->heaps[i].page = pool->page;
                spm_bins_init(&pool->heaps[i].ready, config->align);
                spm_bins_init(&pool->heaps[i].shore, config->align);
        }
        if (!config->range_size)
                return SPM_OK;
        if (spm_area_overlaps(model, config->range_base, config->range_size))
                return SPM_E_INVALID_VALUE;
        for (i = 0; i < pool->heap_count; i++) {
                uint64_t size = config->range_size / pool->heap_count & ~(config->grain - 1);
                uint64_t base = config->range_base + i * size;

                if (i && base % SPM_HEAP_SMALL == 0)
                        pool->heaps[i].page = SPM_HEAP_SMALL;
                if (!spm_area_new(model, pool, i, base, size, false))
                        return SPM_E_HOST_MEMORY;
        }
        return SPM_OK;
}

static void forget_heaps(struct spm_model *model, struct spm_pool_state *pool)
{
        unsigned int i;

        while (pool->areas)
                spm_area_free(model, pool->areas);
        for (i = 0; i < pool->heap_count; i++) {
                spm_bins_forget(model, &pool->heaps[i].ready);
                spm_bins_forget(model, &pool->heaps[i].shore);
        }
}

void spm_pool_leave_heap(struct spm_model *model, struct spm_pool_state *pool)
{
        forget_heaps(model, pool);
        pool->heap_count = 1;
        pool->page = pool->config.align;
        pool->heaps[0].page = pool->page;
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
        if (full.track_uses && !spm_ledger_open(model))
                return SPM_E_HOST_MEMORY;
        pool = spm_host_new(model, sizeof(*pool));
        if (!pool)
                return SPM_E_HOST_MEMORY;
        pool->config = full;
        pool->is_apart = full.track_uses;
        pool->is_tracked = full.track_uses;
        pool->detour = full.track_uses || full.quarantine;
        pool->context = spm_subject_context(model, full.context);
        pool->work = full.kind == SPM_POOL_SYNC ? &pool->context->work : NULL;
        pool->segment_most = most_of_segment(&full, config->segment_size);
        pool->follow = true;
        pool->opportunistic = true;
        pool->internal = true;
        pool->unit_shift = spm_lowest_bit(full.align);
        if (!spm_table_add(model, &model->pools, &pool->object)) {
                spm_host_free(model, pool);
                return SPM_E_HOST_MEMORY;
        }
        status = spm_pool_make_heap(model, pool);
        if (status) {
                spm_pool_free(model, pool);
                return status;
        }
        *result = pool;
        return SPM_OK;
}

void spm_pool_free(struct spm_model *model, struct spm_pool_state *pool)
{
        model->unfinished -= pool->unfinished;
        spm_magazine_orphan(model, pool);
        spm_lane_forget_pool(model, pool);
        forget_heaps(model, pool);
        spm_routing_forget(model, pool);
        spm_host_free(model, pool->access);
        spm_table_remove(model, &model->pools, &pool->object);
        spm_host_free(model, pool);
}

struct spm_pool_state *spm_pool_first(const struct spm_model *model)
{
        return (struct spm_pool_state *)model->pools.head;
}

struct spm_pool_state *spm_pool_next(const struct spm_pool_state *pool)
{
        return (struct spm_pool_state *)spm_object_next(&pool->object);
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
                spm_collect_pool(model, pool);
                return SPM_OK;
        case SPM_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
                pool->internal = value != 0;
                return SPM_OK;
        case SPM_ATTR_RELEASE_THRESHOLD:
                pool->config.release_threshold = value > SIZE_MAX ? SIZE_MAX : (size_t)value;
                pool->config.keep = 0;
                return SPM_OK;
        case SPM_ATTR_RESERVED_MEM_HIGH:
                if (value)
                        return SPM_E_READ_ONLY;
                pool->reserved_high = pool->reserved_bytes;
                return SPM_OK;
        case SPM_ATTR_USED_MEM_HIGH:
                if (value)
                        return SPM_E_READ_ONLY;
                spm_magazine_settle_all(pool);
                pool->used_high = pool->used_bytes + pool->used_granted;
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
                *value = pool->used_bytes + (uint64_t)spm_magazine_sum(pool).used;
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

/* An owner that is inside at this moment may have used all that it was granted. */
void spm_pool_reset_peaks(struct spm_pool_state *pool)
{
        spm_magazine_settle_all(pool);
        pool->used_high = pool->used_bytes + pool->used_granted;
        pool->reserved_high = pool->reserved_bytes;
        pool->live_blocks_high = pool->live_blocks + pool->live_granted;
}

void spm_pool_figures(const struct spm_pool_state *pool, struct spm_stats *stats)
{
        struct spm_magazine_sums sums = spm_magazine_sum(pool);
        const struct spm_block *largest = NULL;
        unsigned int i;

        for (i = 0; i < 2 * pool->heap_count; i++) {
                const struct spm_heap *heap = &pool->heaps[i / 2];
                const struct spm_block *block =
                        spm_bins_largest(i % 2 ? &heap->shore : &heap->ready);

                if (block && (!largest || block->size > largest->size))
                        largest = block;
        }

        *stats = (struct spm_stats){
                .reserved_current = pool->reserved_bytes,
                .reserved_high = pool->reserved_high,
                .used_current = pool->used_bytes + (uint64_t)sums.used,
                .used_high = pool->used_high,
                .live_blocks = pool->live_blocks + (uint64_t)sums.live,
                .live_blocks_high = pool->live_blocks_high,
                .rounded_current = pool->rounded_bytes + (uint64_t)sums.rounded,
                .pending_bytes = pool->pending_bytes - (uint64_t)sums.rounded,
                .ready_bytes = pool->ready_bytes,
                .sealed_bytes = pool->sealed_bytes,
                .largest_ready = largest ? largest->size : 0,
                .segments = pool->segment_count,
                .allocs = pool->allocs + sums.allocs,
                .frees = pool->frees + sums.frees,
                .hits = pool->hits + sums.hits,
                .grows = pool->grows,
                .releases = pool->releases,
                .moves = pool->moves,
                .undone = pool->undone,
        };
}
