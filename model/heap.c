/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heap -- what is free in a pool, and what is counted of the rest
 */

#include <assert.h>

#include "pool.h"
#include "recall.h"
#include "segment.h"

/* segments */

void spm_pool_count_segment(struct spm_pool_state *pool, size_t size, bool more)
{
        bool is_large = spm_pool_is_large(pool, size);

        if (!more) {
                pool->segment_count--;
                pool->large_segments -= is_large;
                pool->reserved_bytes -= size;
                return;
        }
        pool->segment_count++;
        pool->large_segments += is_large;
        pool->reserved_bytes += size;
        if (pool->reserved_high < pool->reserved_bytes)
                pool->reserved_high = pool->reserved_bytes;
}

static struct spm_heap *heap_of(const struct spm_block *block)
{
        return &block->area->pool->heaps[block->area->index];
}

static void span(struct spm_pool_state *pool, struct spm_block *block)
{
        if (block->size < pool->config.grain || !spm_segment_last_in(block))
                return;
        block->is_spanning = true;
        block->newer = NULL;
        block->older = pool->last_spanning;
        if (pool->last_spanning)
                pool->last_spanning->newer = block;
        else
                pool->spanning = block;
        pool->last_spanning = block;
}

static void unspan(struct spm_pool_state *pool, struct spm_block *block)
{
        if (!block->is_spanning)
                return;
        block->is_spanning = false;
        if (block->older)
                block->older->newer = block->newer;
        else
                pool->spanning = block->newer;
        if (block->newer)
                block->newer->older = block->older;
        else
                pool->last_spanning = block->older;
}

static void seal(struct spm_block *block)
{
        struct spm_pool_state *pool = block->area->pool;

        spm_block_become(block, SPM_BLOCK_SEALED);
        pool->sealed_bytes += block->size;
        block->newer = pool->sealed;
        pool->sealed = block;
}

void spm_pool_unseal(struct spm_block *block)
{
        struct spm_pool_state *pool = block->area->pool;
        struct spm_block **at = &pool->sealed;

        while (*at != block)
                at = &(*at)->newer;
        *at = block->newer;
        pool->sealed_bytes -= block->size;
        block->exported = false;
        spm_block_become(block, SPM_BLOCK_LOOSE);
}

static void join_ready(struct spm_model *model, struct spm_block *block, struct spm_block *other)
{
        if (!spm_block_is(other, SPM_BLOCK_READY))
                return;
        spm_pool_take_ready(other);
        spm_block_absorb(model, block, other);
}

static struct spm_bins *bins_of(const struct spm_block *block)
{
        return block->is_shore ? &heap_of(block)->shore : &heap_of(block)->ready;
}

/* Between these two, or NULL. */
static bool is_shore(const struct spm_block *before, const struct spm_block *after)
{
        return spm_block_is(before, SPM_BLOCK_HOLE) || spm_block_is(after, SPM_BLOCK_HOLE);
}

/* There are rows for all sizes, see spm_area_prepare(). */
static void insert_ready(struct spm_model *model, struct spm_block *block)
{
        block->is_shore = is_shore(block->previous, block->next);
        if (!spm_bins_insert(model, bins_of(block), block))
                assert(false);
}

/* Not of slots, whose way is short without it. */
static __attribute__((noinline)) void put_by_itself(struct spm_model *model,
                                                    struct spm_block *block)
{
        struct spm_pool_state *pool = block->area->pool;

        join_ready(model, block, block->previous);
        join_ready(model, block, block->next);
        spm_block_become(block, SPM_BLOCK_READY);
        insert_ready(model, block);
        pool->ready_bytes += block->size;
        span(pool, block);
}

void spm_pool_make_ready(struct spm_model *model, struct spm_block *block)
{
        assert(spm_block_is(block, SPM_BLOCK_LOOSE));
        spm_block_drop_deps(model, block);
        block->barred = false;
        if (block->exported) {
                seal(block);
                return;
        }
        if (block->is_slot)
                spm_slab_put(model, block);
        else
                put_by_itself(model, block);
}

/* A READY block gets other bytes, and is as far from a hole as it was. */
static void change_ready(struct spm_block *block, uint64_t address, size_t size)
{
        struct spm_pool_state *pool = block->area->pool;

        pool->ready_bytes += size - block->size;
        spm_bins_change(bins_of(block), block, address, size);
        unspan(pool, block);
        span(pool, block);
}

/* Return: false unless one neighbour is READY, and is beside a hole with the block as without. */
static bool put_into_neighbour(struct spm_model *model, struct spm_block *block)
{
        bool is_behind = spm_block_is(block->previous, SPM_BLOCK_READY);
        struct spm_block *other = is_behind ? block->previous : block->next;
        uint64_t address = is_behind ? other->address : block->address;

        if (is_behind == spm_block_is(block->next, SPM_BLOCK_READY) ||
            other->is_shore != (is_behind ? is_shore(other->previous, block->next)
                                          : is_shore(block->previous, other->next)))
                return false;
        change_ready(other, address, other->size + block->size);
        other->fresh = other->fresh && block->fresh;
        spm_block_remove(model, block);
        return true;
}

void spm_pool_put_beside(struct spm_model *model, struct spm_block *block)
{
        if (block->exported || !put_into_neighbour(model, block))
                spm_pool_make_ready(model, block);
}

void spm_pool_take_ready(struct spm_block *block)
{
        struct spm_pool_state *pool = block->area->pool;

        assert(spm_block_is(block, SPM_BLOCK_READY) && !block->is_slot);
        spm_bins_remove(bins_of(block), block);
        pool->ready_bytes -= block->size;
        unspan(pool, block);
        spm_block_become(block, SPM_BLOCK_LOOSE);
}

/* Its end, or its front. */
static struct spm_block *cut_off(struct spm_model *model, struct spm_block *block, bool end,
                                 size_t size)
{
        uint64_t address = block->address + (end ? block->size - size : 0);
        struct spm_block *part;

        change_ready(block, end ? block->address : address + size, block->size - size);
        part = spm_block_insert(model, block, !end);
        part->address = address;
        part->size = size;
        part->is_spanning = false;
        return part;
}

struct spm_block *spm_pool_cut_ready(struct spm_model *model, struct spm_block *block,
                                     uint64_t start, size_t size)
{
        size_t front = (size_t)(start - block->address);
        size_t back = block->size - front - size;
        struct spm_block *middle = block;

        if (!front != !back &&
            block->is_shore == is_shore(front ? block->previous : NULL, back ? block->next : NULL))
                return cut_off(model, block, front, size);
        spm_pool_take_ready(block);
        if (front) {
                middle = spm_block_split(model, block, front);
                spm_pool_make_ready(model, block);
        }
        if (back)
                spm_pool_make_ready(model, spm_block_split(model, middle, size));
        return middle;
}

void spm_pool_end(struct spm_pool_state *pool)
{
        struct spm_area *area;
        struct spm_block *tile;

        pool->ended = true;
        for (area = pool->areas; area; area = area->next)
                for (tile = area->first; tile; tile = tile->next)
                        if (spm_block_is(tile, SPM_BLOCK_READY))
                                spm_pool_take_ready(tile);
}

/* holes */

void spm_pool_add_hole(struct spm_block *block)
{
        struct spm_heap *heap = heap_of(block);

        spm_block_become(block, SPM_BLOCK_HOLE);
        block->left = NULL;
        block->right = heap->holes;
        if (heap->holes)
                heap->holes->left = block;
        heap->holes = block;
        if (block == block->area->last && !block->area->is_lone)
                heap->wild = block;
}

void spm_pool_take_hole(struct spm_block *block)
{
        struct spm_heap *heap = heap_of(block);

        if (block->left)
                block->left->right = block->right;
        else
                heap->holes = block->right;
        if (block->right)
                block->right->left = block->left;
        if (heap->wild == block)
                heap->wild = NULL;
        spm_block_become(block, SPM_BLOCK_LOOSE);
}

static void join_hole(struct spm_model *model, struct spm_block *block, struct spm_block *other)
{
        if (!spm_block_is(other, SPM_BLOCK_HOLE))
                return;
        spm_pool_take_hole(other);
        spm_block_absorb(model, block, other);
}

/* What was READY beside it is beside a hole now. */
static void refresh(struct spm_model *model, struct spm_block *block)
{
        if (!spm_block_is(block, SPM_BLOCK_READY) || block->is_shore)
                return;
        spm_bins_remove(bins_of(block), block);
        insert_ready(model, block);
}

void spm_pool_make_hole(struct spm_model *model, struct spm_block *block)
{
        join_hole(model, block, block->previous);
        join_hole(model, block, block->next);
        spm_pool_add_hole(block);
        refresh(model, block->previous);
        refresh(model, block->next);
}

/* live */

/* What a magazine has served and others have freed makes @value less than nothing until the
 * magazine is settled. */
static inline void lift(uint64_t *mark, uint64_t value)
{
        if ((int64_t)*mark < (int64_t)value)
                *mark = value;
}

static SPM_COLD void raise_marks(struct spm_pool_state *pool)
{
        if (pool->magazines)
                spm_magazine_settle_all(pool);
        lift(&pool->live_blocks_high, pool->live_blocks + pool->live_granted);
        lift(&pool->used_high, pool->used_bytes + pool->used_granted);
}

/* Whether a mark is passed can only be said without what magazines have counted by themselves. */
void spm_pool_raise_marks(struct spm_pool_state *pool)
{
        if (pool->used_bytes + pool->used_granted > pool->used_high ||
            pool->live_blocks + pool->live_granted > pool->live_blocks_high)
                raise_marks(pool);
}

void spm_tally_raise(struct spm_tally *tally)
{
        lift(&tally->count_high, tally->count);
        lift(&tally->bytes_high, tally->bytes);
}

/* In line, which what the library exports cannot be. */
static inline void add(struct spm_tally *tally, size_t bytes)
{
        tally->count++;
        tally->bytes += bytes;
        lift(&tally->count_high, tally->count);
        lift(&tally->bytes_high, tally->bytes);
}

void spm_tally_add(struct spm_tally *tally, size_t bytes)
{
        add(tally, bytes);
}

static inline void take(struct spm_tally *tally, size_t bytes)
{
        tally->count--;
        tally->bytes -= bytes;
}

void spm_tally_take(struct spm_tally *tally, size_t bytes)
{
        take(tally, bytes);
}

void spm_pool_count_alloc(const struct spm_block *block)
{
        struct spm_pool_state *pool = block->area->pool;
        unsigned int i;

        for (i = 0; i < SPM_TALLIES && pool->config.tallies[i]; i++) {
                struct spm_tally *tally = pool->config.tallies[i];

                tally->made++;
                tally->made_bytes += block->requested;
                add(tally, block->requested);
        }
        pool->allocs++;
        pool->live_blocks++;
        pool->used_bytes += block->requested;
        pool->rounded_bytes += block->size;
        pool->filled += block->size;
        lift(&pool->busy_high, pool->rounded_bytes);
        lift(&pool->window_high, pool->rounded_bytes);
        spm_pool_raise_marks(pool);
}

void spm_pool_count_end(const struct spm_block *block, bool freed)
{
        struct spm_pool_state *pool = block->area->pool;
        unsigned int i;

        for (i = 0; i < SPM_TALLIES && pool->config.tallies[i]; i++) {
                struct spm_tally *tally = pool->config.tallies[i];

                tally->freed += freed;
                take(tally, block->requested);
        }
        pool->frees += freed;
        pool->live_blocks--;
        pool->used_bytes -= block->requested;
        pool->rounded_bytes -= block->size;
        pool->filled = 0;
}

void spm_pool_count_undone(const struct spm_block *block)
{
        struct spm_pool_state *pool = block->area->pool;
        unsigned int i;

        spm_pool_count_end(block, false);
        pool->allocs--;
        pool->undone++;
        pool->hits -= !block->fresh;
        for (i = 0; i < SPM_TALLIES && pool->config.tallies[i]; i++) {
                pool->config.tallies[i]->made--;
                pool->config.tallies[i]->made_bytes -= block->requested;
        }
}
