/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Survey -- a pool looked at from end to end
 *
 * Part of the front door (model.c).
 */

#include <streampool/survey.h>

#include "area.h"
#include "pool.h"
#include "recall.h"
#include "segment.h"
#include "slab.h"
#include "state.h"

#define MILLION  1000000u
#define SMALLEST 16u /* the first bucket's, by its number; it holds what is smaller, too */

/* sizes */

static unsigned int bucket_of(size_t size)
{
        unsigned int bucket = 0;

        while (bucket < SPM_SIZE_BUCKETS - 1 && size / 2 >= (size_t)SMALLEST << bucket)
                bucket++;
        return bucket;
}

void spm_sizes_add(struct spm_sizes *sizes, size_t size)
{
        if (!sizes->count || size < sizes->smallest)
                sizes->smallest = size;
        if (size > sizes->largest)
                sizes->largest = size;
        sizes->count++;
        sizes->bytes += size;
        sizes->buckets[bucket_of(size)]++;
}

size_t spm_sizes_percentile(const struct spm_sizes *sizes, unsigned int percent)
{
        uint64_t share = percent < 100 ? percent : 100;
        /* Rounded up, and at least the first: of one size each percentile is that size. */
        uint64_t rank = sizes->count / 100 * share + (sizes->count % 100 * share + 99) / 100;
        unsigned int bucket = 0;
        uint64_t seen;
        size_t end;

        if (!sizes->count)
                return 0;
        seen = sizes->buckets[0];
        while (seen < rank || !seen)
                seen += sizes->buckets[++bucket];
        if (bucket == SPM_SIZE_BUCKETS - 1)
                return sizes->largest;
        end = ((size_t)SMALLEST << bucket) * 2 - 1;
        return end < sizes->largest ? end : sizes->largest;
}

/* blocks */

static void add_piece(struct spm_survey *survey, uint64_t size)
{
        survey->free_pieces++;
        survey->free_bytes += size;
        if (size > survey->largest_free)
                survey->largest_free = size;
}

static void look_at_block(struct spm_survey *survey, const struct spm_block *block)
{
        if (spm_block_is(block, SPM_BLOCK_LIVE))
                spm_sizes_add(&survey->live, block->requested);
        else if (spm_block_is(block, SPM_BLOCK_READY))
                add_piece(survey, block->size);
}

static void look_at_tile(struct spm_survey *survey, const struct spm_block *tile)
{
        uint32_t i;

        if (!spm_block_is(tile, SPM_BLOCK_SLAB)) {
                look_at_block(survey, tile);
                return;
        }
        for (i = 0; i < tile->slab->count; i++)
                look_at_block(survey, &tile->slab->slots[i]);
}

/* what a trim would find */

static bool is_unused(const struct spm_block *tile)
{
        if (spm_block_is(tile, SPM_BLOCK_SLAB))
                return tile->slab->ready_count == tile->slab->count;
        return spm_block_is(tile, SPM_BLOCK_READY) || spm_block_is(tile, SPM_BLOCK_SEALED);
}

/* Does a whole segment lie in [start, end), where there is memory everywhere? The first one that
 * can is looked at. */
static bool holds_segment(const struct spm_model *model, uint64_t start, uint64_t end)
{
        const struct spm_segment_state *segment = spm_segment_at(model, start);

        if (segment->base < start) {
                if (segment->base + segment->size >= end)
                        return false;
                segment = spm_segment_at(model, segment->base + segment->size);
        }
        return segment->size <= end - segment->base;
}

static bool has_unused_segment(const struct spm_model *model, const struct spm_area *area)
{
        const struct spm_block *tile;
        uint64_t start = area->base; /* of the tiles up to here that are unused */

        for (tile = area->first; tile; tile = tile->next) {
                uint64_t end = tile->address + tile->size;

                if (!is_unused(tile))
                        start = end;
                else if (holds_segment(model, start, end))
                        return true;
        }
        return false;
}

static uint32_t in_millionths(uint64_t part, uint64_t whole)
{
        while (whole > UINT64_MAX / MILLION) {
                whole >>= 1;
                part >>= 1;
        }
        return whole ? (uint32_t)(part * MILLION / whole) : 0;
}

static void look_at_pool(const struct spm_model *model, const struct spm_pool_state *pool,
                         struct spm_survey *survey)
{
        bool may_release = !pool->ended && (!pool->config.release_needs_idle || !pool->context ||
                                            !pool->context->captures);
        const struct spm_area *area;

        for (area = pool->areas; area; area = area->next) {
                const struct spm_block *tile;

                for (tile = area->first; tile; tile = tile->next)
                        look_at_tile(survey, tile);
                if (may_release && has_unused_segment(model, area))
                        survey->is_trimmed = false;
        }
}

enum spm_status spm_survey(const struct spm_model *model, spm_pool id, uint64_t time,
                           struct spm_survey *survey)
{
        const struct spm_pool_state *pool = spm_pool_find(model, id);

        if (!pool)
                return SPM_E_UNKNOWN;
        *survey = (struct spm_survey){.time = time, .is_trimmed = true};
        spm_magazine_stop_all(model, false);
        (void)spm_stats(model, id, &survey->stats);
        look_at_pool(model, pool, survey);
        spm_magazine_go_on(model);
        survey->has_leaks = survey->live.count > 0;
        if (survey->free_pieces)
                survey->average_free = survey->free_bytes / survey->free_pieces;
        survey->fragmentation =
                in_millionths(survey->free_bytes - survey->largest_free, survey->free_bytes);
        return SPM_OK;
}
