/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Area -- addresses tiled by blocks
 *
 * A leaf of the map covers up to a GiB and 4096 pages: an entry for every page,
 * a bit for every entry that is set, and an entry for every grain that a
 * segment backs.
 */

#include "area.h"

#include <assert.h>
#include <string.h>

#include "bits.h"
#include "host.h"
#include "layout.h"
#include "pool.h"
#include "slab.h"
#include "state.h"

#define LEAF_SHIFT_MAX 30
#define LEAF_PAGES     12 /* at most 2^12 */

struct spm_leaf {
        struct spm_segment_state **segments; /* by grain */
        uint64_t *set;                       /* a bit an entry */
        _Atomic(struct spm_block *) starts[];
};

/* areas */

static unsigned int leaf_shift(uint64_t size, unsigned int page_shift, unsigned int grain_shift)
{
        unsigned int most = page_shift + LEAF_PAGES;
        unsigned int shift = spm_highest_bit(size - 1) + 1;

        if (most > LEAF_SHIFT_MAX)
                most = LEAF_SHIFT_MAX;
        if (shift > most)
                shift = most;
        if (shift < page_shift)
                shift = page_shift;
        return shift < grain_shift ? grain_shift : shift;
}

static uint64_t leaf_count(const struct spm_area *area)
{
        return ((area->size - 1) >> area->leaf_shift) + 1;
}

/* Where the area is, or would be, among all areas. */
static size_t place_of(const struct spm_model *model, uint64_t address)
{
        size_t low = 0;
        size_t high = model->area_count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (model->areas[middle]->base <= address)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static bool make_room(struct spm_model *model)
{
        size_t room = model->area_room ? 2 * model->area_room : 8;
        struct spm_area **areas;

        if (model->area_count < model->area_room)
                return true;
        areas = spm_host_new(model, room * sizeof(struct spm_area *));
        if (!areas)
                return false;
        if (model->area_count)
                memcpy(areas, model->areas, model->area_count * sizeof(struct spm_area *));
        spm_host_free(model, model->areas);
        model->areas = areas;
        model->area_room = room;
        return true;
}

struct spm_area *spm_area_new(struct spm_model *model, struct spm_pool_state *pool,
                              unsigned int heap, uint64_t base, uint64_t size, bool is_lone)
{
        unsigned int page_shift = spm_lowest_bit(pool->heaps[heap].page);
        unsigned int grain_shift = spm_lowest_bit(pool->config.grain);
        unsigned int shift = leaf_shift(size, page_shift, grain_shift);
        size_t leaves = (size_t)(((size - 1) >> shift) + 1);
        struct spm_area *area;
        size_t at;

        if (!make_room(model) || !spm_block_reserve(model, 1))
                return NULL;
        area = spm_host_new(model, sizeof(*area) + leaves * sizeof(area->leaves[0]));
        if (!area)
                return NULL;
        area->pool = pool;
        area->index = heap;
        area->is_lone = is_lone;
        area->base = base;
        area->size = size;
        area->page_shift = page_shift;
        area->grain_shift = grain_shift;
        area->leaf_shift = shift;
        area->next = pool->areas;
        pool->areas = area;
        if (pool->layout)
                spm_shelf_page_made(area);

        at = place_of(model, base);
        memmove(model->areas + at + 1, model->areas + at,
                (model->area_count - at) * sizeof(struct spm_area *));
        model->areas[at] = area;
        model->area_count++;

        area->first = spm_block_take(model);
        area->last = area->first;
        area->first->area = area;
        area->first->address = base;
        area->first->size = size;
        spm_pool_add_hole(area->first);
        return area;
}

void spm_area_free(struct spm_model *model, struct spm_area *area)
{
        struct spm_area **at = &area->pool->areas;
        size_t place = place_of(model, area->base) - 1;
        uint64_t i;

        assert(!area->segment_count && model->areas[place] == area);
        if (area->pool->layout)
                spm_shelf_page_lost(area);
        while (area->first) {
                struct spm_block *block = area->first;

                if (spm_block_is(block, SPM_BLOCK_HOLE))
                        spm_pool_take_hole(block);
                area->first = block->next;
                spm_block_give(model, block);
        }
        while (*at != area)
                at = &(*at)->next;
        *at = area->next;
        if (model->near == area)
                model->near = NULL;
        memmove(model->areas + place, model->areas + place + 1,
                (model->area_count - place - 1) * sizeof(struct spm_area *));
        model->area_count--;
        for (i = 0; i < leaf_count(area); i++)
                spm_host_free(model, area->leaves[i]);
        spm_host_free(model, area);
}

struct spm_area *spm_area_at(const struct spm_model *model, uint64_t address)
{
        size_t at = place_of(model, address);
        struct spm_area *area;

        if (!at)
                return NULL;
        area = model->areas[at - 1];
        return address - area->base < area->size ? area : NULL;
}

bool spm_area_overlaps(const struct spm_model *model, uint64_t base, uint64_t size)
{
        size_t at = place_of(model, base + (size - 1));
        const struct spm_area *area;

        if (!at)
                return false;
        area = model->areas[at - 1];
        return area->base + (area->size - 1) >= base;
}

uint64_t spm_area_gap(const struct spm_model *model, uint64_t base, uint64_t range, uint64_t size)
{
        size_t next = place_of(model, base);
        uint64_t at = base;

        if (next && model->areas[next - 1]->base + model->areas[next - 1]->size > at)
                at = model->areas[next - 1]->base + model->areas[next - 1]->size;
        while (next < model->area_count && model->areas[next]->base - at < size) {
                at = model->areas[next]->base + model->areas[next]->size;
                next++;
        }
        return at - base <= range && range - (at - base) >= size ? at : 0;
}

/* leaves */

static struct spm_leaf *make_leaf(struct spm_model *model, const struct spm_area *area)
{
        size_t pages = (size_t)1 << (area->leaf_shift - area->page_shift);
        size_t grains = (size_t)1 << (area->leaf_shift - area->grain_shift);
        size_t words = (pages + 63) / 64;
        struct spm_leaf *leaf;

        leaf = spm_host_new(model, sizeof(*leaf) + pages * sizeof(leaf->starts[0]) +
                                           words * sizeof(uint64_t) +
                                           grains * sizeof(struct spm_segment_state *));
        if (!leaf)
                return NULL;
        leaf->set = (uint64_t *)(leaf->starts + pages);
        leaf->segments = (struct spm_segment_state **)(leaf->set + words);
        return leaf;
}

bool spm_area_prepare(struct spm_model *model, struct spm_area *area, uint64_t base, uint64_t size)
{
        struct spm_heap *heap = &area->pool->heaps[area->index];
        uint64_t most = area->pool->reserved_bytes + size;
        uint64_t at = (base - area->base) >> area->leaf_shift;
        uint64_t last = (base - area->base + size - 1) >> area->leaf_shift;

        /* No free block will be larger than all there is. */
        if (!spm_bins_prepare(model, &heap->ready, most) ||
            !spm_bins_prepare(model, &heap->shore, most))
                return false;
        for (; at <= last; at++) {
                if (!area->leaves[at])
                        area->leaves[at] = make_leaf(model, area);
                if (!area->leaves[at])
                        return false;
        }
        return true;
}

struct spm_segment_state **spm_area_segment(const struct spm_area *area, uint64_t address)
{
        uint64_t offset = address - area->base;
        const struct spm_leaf *leaf = area->leaves[offset >> area->leaf_shift];
        uint64_t inside = offset & (((uint64_t)1 << area->leaf_shift) - 1);

        return &leaf->segments[inside >> area->grain_shift];
}

/* The page of the leaf. */
static size_t page_of(const struct spm_area *area, uint64_t offset)
{
        return (size_t)((offset & (((uint64_t)1 << area->leaf_shift) - 1)) >> area->page_shift);
}

/* By somebody who frees what is free already, a record may be read that is being changed: he finds
 * one of ours, or none, and sees which when he has made it leave its life. */
SPM_MAY_RACE struct spm_block *spm_area_start(const struct spm_area *area, uint64_t address)
{
        uint64_t offset = address - area->base;
        struct spm_leaf *leaf = area->leaves[offset >> area->leaf_shift];
        struct spm_block *block;

        if (!leaf)
                return NULL;
        block = atomic_load_explicit(&leaf->starts[page_of(area, offset)], memory_order_acquire);
        if (block && block->slab)
                return spm_slab_slot(block->slab, address, true);
        return block && block->address == address ? block : NULL;
}

/* The last entry that is set, up to @page of leaf @at and before it. */
static struct spm_block *latest_start(const struct spm_area *area, uint64_t at, size_t page)
{
        for (;; page = ((size_t)1 << (area->leaf_shift - area->page_shift)) - 1) {
                struct spm_leaf *leaf = area->leaves[at];
                size_t word = page / 64;
                uint64_t set = leaf ? leaf->set[word] << (63 - page % 64) >> (63 - page % 64) : 0;

                while (leaf && !set && word)
                        set = leaf->set[--word];
                if (set) {
                        page = word * 64 + spm_highest_bit(set);
                        return atomic_load_explicit(&leaf->starts[page], memory_order_relaxed);
                }
                if (!at--)
                        return NULL;
        }
}

struct spm_block *spm_area_live_at(const struct spm_area *area, uint64_t address)
{
        uint64_t offset = address - area->base;
        uint64_t at = offset >> area->leaf_shift;
        struct spm_block *block = latest_start(area, at, page_of(area, offset));

        /* The one that begins in this very page may begin behind @address. */
        if (block && block->address > address) {
                size_t page = page_of(area, offset);

                if (page)
                        block = latest_start(area, at, page - 1);
                else if (at)
                        block = latest_start(area, at - 1,
                                             ((size_t)1 << (area->leaf_shift - area->page_shift)) -
                                                     1);
                else
                        block = NULL;
        }
        if (!block || address - block->address >= block->size)
                return NULL;
        if (block->slab)
                block = spm_slab_slot(block->slab, address, false);
        return spm_block_is(block, SPM_BLOCK_LIVE) ? block : NULL;
}

static inline void note_page(const struct spm_area *area, uint64_t offset, struct spm_block *block)
{
        struct spm_leaf *leaf = area->leaves[offset >> area->leaf_shift];
        size_t page = page_of(area, offset);

        atomic_store_explicit(&leaf->starts[page], block, memory_order_release);
        if (block)
                leaf->set[page / 64] |= (uint64_t)1 << page % 64;
        else
                leaf->set[page / 64] &= ~((uint64_t)1 << page % 64);
}

void spm_area_note(struct spm_block *block, bool begins)
{
        const struct spm_area *area = block->area;
        uint64_t offset = block->address - area->base;
        uint64_t end = offset + block->size;

        note_page(area, offset, begins ? block : NULL);
        if (!block->slab)
                return;
        while ((offset += (uint64_t)1 << area->page_shift) < end)
                note_page(area, offset, begins ? block : NULL);
}

void spm_area_forget(struct spm_model *model)
{
        assert(!model->area_count);
        spm_host_free(model, model->areas);
        model->areas = NULL;
        model->area_room = 0;
}
