/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segment -- driver memory tiled by blocks
 *
 * A record is never allocated in the middle of a change: whoever may split
 * first sees to it that spare records are at hand, and joining returns them.
 * So a free cannot fail.
 */

#include "segment.h"

#include <assert.h>

#include "host.h"
#include "pool.h"
#include "state.h"

static struct spm_block *take_spare(struct spm_model *model)
{
        struct spm_block *block = model->spare;

        assert(block);
        model->spare = block->next;
        model->spares--;
        model->blocks++;
        *block = (struct spm_block){0};
        return block;
}

static void give_spare(struct spm_model *model, struct spm_block *block)
{
        block->next = model->spare;
        model->spare = block;
        model->spares++;
        model->blocks--;
}

bool spm_block_reserve(struct spm_model *model, unsigned int count)
{
        while (model->spares < count) {
                struct spm_block *block = spm_host_new(model, sizeof(*block));

                if (!block)
                        return false;
                block->next = model->spare;
                model->spare = block;
                model->spares++;
        }
        return true;
}

void spm_block_forget_spares(struct spm_model *model)
{
        while (model->spare) {
                struct spm_block *block = model->spare;

                model->spare = block->next;
                spm_host_free(model, block);
        }
        model->spares = 0;
}

static bool overlaps(const struct spm_model *model, uint64_t base, size_t size)
{
        struct spm_node *node = spm_tree_at_most(&model->areas, base + (size - 1), UINT64_MAX);
        struct spm_segment_state *other;

        if (!node)
                return false;
        other = spm_node_owner(node, struct spm_segment_state, by_base);
        return other->base + (other->size - 1) >= base;
}

enum spm_status spm_segment_new(struct spm_model *model, struct spm_pool_state *pool, uint64_t base,
                                size_t size, void *cookie, struct spm_segment_state **result)
{
        struct spm_segment_state *segment;
        struct spm_block *block;

        if (!base || !size || base + (size - 1) < base || overlaps(model, base, size))
                return SPM_E_INVALID_VALUE;
        if (!spm_block_reserve(model, 1))
                return SPM_E_HOST_MEMORY;
        segment = spm_host_new(model, sizeof(*segment));
        if (!segment)
                return SPM_E_HOST_MEMORY;
        if (!spm_table_add(model, &model->segments, &segment->object)) {
                spm_host_free(model, segment);
                return SPM_E_HOST_MEMORY;
        }

        segment->base = base;
        segment->size = size;
        segment->cookie = cookie;
        segment->by_base.major = base;
        spm_tree_insert(&model->areas, &segment->by_base);
        spm_pool_attach_segment(pool, segment);

        block = take_spare(model);
        block->segment = segment;
        block->address = base;
        block->size = size;
        block->fresh = true;
        segment->first = block;
        spm_pool_make_ready(model, block);
        *result = segment;
        return SPM_OK;
}

void spm_segment_free(struct spm_model *model, struct spm_segment_state *segment)
{
        assert(!segment->busy);
        segment->pool->sealed_bytes -= segment->sealed;
        while (segment->first) {
                struct spm_block *block = segment->first;

                if (block->state == SPM_BLOCK_READY)
                        spm_pool_take_ready(block);
                segment->first = block->next;
                give_spare(model, block);
        }
        spm_pool_detach_segment(segment);
        spm_tree_remove(&model->areas, &segment->by_base);
        spm_table_remove(model, &model->segments, &segment->object);
        spm_host_free(model, segment);
}

struct spm_segment_state *spm_segment_at(const struct spm_model *model, uint64_t address)
{
        struct spm_node *node = spm_tree_at_most(&model->areas, address, UINT64_MAX);
        struct spm_segment_state *segment;

        if (!node)
                return NULL;
        segment = spm_node_owner(node, struct spm_segment_state, by_base);
        return address - segment->base < segment->size ? segment : NULL;
}

struct spm_block *spm_block_split(struct spm_model *model, struct spm_block *block, size_t size)
{
        struct spm_block *rest = take_spare(model);

        assert(block->state == SPM_BLOCK_LOOSE && size && size < block->size);
        *rest = *block;
        rest->address += size;
        rest->size -= size;
        rest->previous = block;
        if (rest->next)
                rest->next->previous = rest;
        block->next = rest;
        block->size = size;
        return rest;
}

void spm_block_absorb(struct spm_model *model, struct spm_block *block, struct spm_block *other)
{
        assert(block->state == SPM_BLOCK_LOOSE && other->state == SPM_BLOCK_LOOSE);
        assert(block->segment == other->segment);
        assert(block->next == other || block->previous == other);

        if (block->previous == other) {
                block->address = other->address;
                block->previous = other->previous;
                if (block->previous)
                        block->previous->next = block;
                else
                        block->segment->first = block;
        } else {
                block->next = other->next;
                if (block->next)
                        block->next->previous = block;
        }
        block->size += other->size;
        block->fresh = block->fresh && other->fresh;
        give_spare(model, other);
}

struct spm_block *spm_block_live_at(const struct spm_model *model, uint64_t address)
{
        struct spm_node *node = spm_tree_at_most(&model->live, address, UINT64_MAX);
        struct spm_block *block;

        if (!node)
                return NULL;
        block = spm_node_owner(node, struct spm_block, by_order);
        return address - block->address < block->size ? block : NULL;
}

void spm_block_enliven(struct spm_model *model, struct spm_block *block)
{
        assert(block->state == SPM_BLOCK_LOOSE);
        block->state = SPM_BLOCK_LIVE;
        block->by_order.major = block->address;
        block->by_order.minor = 0;
        spm_tree_insert(&model->live, &block->by_order);
        spm_pool_count_busy(block, true);
}

void spm_block_unliven(struct spm_model *model, struct spm_block *block)
{
        assert(block->state == SPM_BLOCK_LIVE);
        spm_tree_remove(&model->live, &block->by_order);
        block->state = SPM_BLOCK_LOOSE;
        spm_pool_count_busy(block, false);
}
