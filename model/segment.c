/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segment -- memory that was obtained, and where it is
 */

#include "segment.h"

#include "host.h"
#include "pool.h"
#include "state.h"

static void note_segment(struct spm_segment_state *segment, struct spm_segment_state *value)
{
        uint64_t grain = segment->area->pool->config.grain;
        uint64_t at;

        for (at = segment->base; at - segment->base < segment->size; at += grain)
                *spm_area_segment(segment->area, at) = value;
}

/* The hole of one of the pool's ranges that has room for it all, or NULL. */
static struct spm_block *find_hole(const struct spm_pool_state *pool, uint64_t base, size_t size)
{
        unsigned int i;

        for (i = 0; i < pool->heap_count; i++) {
                struct spm_block *hole = pool->heaps[i].holes;

                for (; hole; hole = hole->right)
                        if (base >= hole->address && base - hole->address <= hole->size &&
                            hole->size - (base - hole->address) >= size)
                                return hole;
        }
        return NULL;
}

/* Cuts the middle out of a hole; the parts before and behind stay holes. Two records are at hand.
 */
static struct spm_block *cut_hole(struct spm_model *model, struct spm_block *hole, uint64_t base,
                                  size_t size)
{
        struct spm_block *middle = hole;

        spm_pool_take_hole(hole);
        if (base > hole->address) {
                middle = spm_block_split(model, hole, (size_t)(base - hole->address));
                spm_pool_add_hole(hole);
        }
        if (middle->size > size)
                spm_pool_add_hole(spm_block_split(model, middle, size));
        return middle;
}

/* A hole to put it in: of a range, or a new area of its own. */
static enum spm_status make_place(struct spm_model *model, struct spm_pool_state *pool,
                                  uint64_t base, size_t size, struct spm_block **hole)
{
        struct spm_area *area;

        *hole = find_hole(pool, base, size);
        if (*hole)
                return SPM_OK;
        if (spm_area_overlaps(model, base, size))
                return SPM_E_INVALID_VALUE;
        area = spm_area_new(model, pool, pool->heap_count - 1, base, size, true);
        if (!area)
                return SPM_E_HOST_MEMORY;
        *hole = area->first;
        return SPM_OK;
}

enum spm_status spm_segment_new(struct spm_model *model, struct spm_pool_state *pool, uint64_t base,
                                size_t size, void *cookie, struct spm_segment_state **result)
{
        struct spm_segment_state *segment;
        enum spm_status status;
        struct spm_block *block;

        if (!base || !size || base + (size - 1) < base)
                return SPM_E_INVALID_VALUE;
        segment = spm_host_new(model, sizeof(*segment));
        if (!segment)
                return SPM_E_HOST_MEMORY;
        if (!spm_table_add(model, &model->segments, &segment->object)) {
                spm_host_free(model, segment);
                return SPM_E_HOST_MEMORY;
        }
        status = make_place(model, pool, base, size, &block);
        if (status)
                goto undo;
        segment->area = block->area;
        status = SPM_E_HOST_MEMORY;
        if (!spm_area_prepare(model, segment->area, base, size) || !spm_block_reserve(model, 2)) {
                if (segment->area->is_lone)
                        spm_area_free(model, segment->area);
                goto undo;
        }

        segment->base = base;
        segment->size = size;
        segment->cookie = cookie;
        note_segment(segment, segment);
        segment->area->segment_count++;
        spm_pool_count_segment(pool, size, true);
        block = cut_hole(model, block, base, size);
        block->fresh = true;
        spm_pool_make_ready(model, block);
        *result = segment;
        return SPM_OK;

undo:
        spm_table_remove(model, &model->segments, &segment->object);
        spm_host_free(model, segment);
        return status;
}

struct spm_segment_state *spm_segment_at(const struct spm_model *model, uint64_t address)
{
        const struct spm_area *area = spm_area_at(model, address);

        if (!area || !area->leaves[(address - area->base) >> area->leaf_shift])
                return NULL;
        return *spm_area_segment(area, address);
}

/* READY memory is backed, so there is always a segment to look at. */
static struct spm_segment_state *whole_in(const struct spm_block *block, uint64_t last)
{
        struct spm_segment_state *segment = *spm_area_segment(block->area, last);

        return segment->base >= block->address ? segment : NULL;
}

struct spm_segment_state *spm_segment_last_in(const struct spm_block *block)
{
        uint64_t last = block->address + (block->size - 1);
        struct spm_segment_state *segment = whole_in(block, last);

        if (!segment || segment->base + (segment->size - 1) == last)
                return segment;
        return segment->base > block->address ? whole_in(block, segment->base - 1) : NULL;
}

struct spm_segment_state *spm_segment_before(const struct spm_block *block,
                                             const struct spm_segment_state *segment)
{
        return segment->base > block->address ? whole_in(block, segment->base - 1) : NULL;
}

void spm_segment_drop(struct spm_model *model, struct spm_segment_state *segment)
{
        note_segment(segment, NULL);
        segment->area->segment_count--;
        spm_pool_count_segment(segment->area->pool, segment->size, false);
        spm_table_remove(model, &model->segments, &segment->object);
        spm_host_free(model, segment);
}

void spm_segment_free(struct spm_model *model, struct spm_block *block,
                      struct spm_segment_state *segment)
{
        struct spm_area *area = block->area;
        struct spm_block *hole = block;

        spm_pool_take_ready(block);
        if (segment->base > block->address)
                hole = spm_block_split(model, block, (size_t)(segment->base - block->address));
        if (hole->size > segment->size)
                spm_pool_make_ready(model, spm_block_split(model, hole, segment->size));
        if (hole != block)
                spm_pool_make_ready(model, block);
        spm_segment_drop(model, segment);
        spm_pool_make_hole(model, hole);
        if (area->is_lone)
                spm_area_free(model, area);
}
