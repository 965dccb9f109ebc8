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

#include "host.h"
#include "pool.h"
#include "slab.h"
#include "state.h"

#define LEAF_SHIFT_MAX 30
#define LEAF_PAGES     12 /* at most 2^12 */

#define EXTRAS         4  /* at hand */
#define RECORDS_MIN    32 /* made at once */
#define RECORDS_MAX    8192
#define LINE           64 /* of a cache */

struct spm_records {
        struct spm_records *next;
};

struct spm_leaf {
        struct spm_segment_state **segments; /* by grain */
        uint64_t *set;                       /* a bit an entry */
        _Atomic(struct spm_block *) starts[];
};

static inline unsigned int log2_of(uint64_t power)
{
        return (unsigned int)__builtin_ctzll(power);
}

/* areas */

static unsigned int leaf_shift(uint64_t size, unsigned int page_shift, unsigned int grain_shift)
{
        unsigned int most = page_shift + LEAF_PAGES;
        unsigned int shift = 64 - (unsigned int)__builtin_clzll(size - 1);

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

static struct spm_block *take_spare(struct spm_model *model)
{
        struct spm_block *block = model->spare;

        assert(block);
        model->spare = block->next;
        model->spares--;
        model->blocks++;
        memset(block, 0, sizeof(*block));
        return block;
}

static void give_spare(struct spm_model *model, struct spm_block *block)
{
        spm_block_drop_deps(model, block);
        block->next = model->spare;
        model->spare = block;
        model->spares++;
        model->blocks--;
}

struct spm_area *spm_area_new(struct spm_model *model, struct spm_pool_state *pool,
                              unsigned int heap, uint64_t base, uint64_t size, bool is_lone)
{
        unsigned int page_shift = log2_of(pool->heaps[heap].page);
        unsigned int grain_shift = log2_of(pool->config.grain);
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

        at = place_of(model, base);
        memmove(model->areas + at + 1, model->areas + at,
                (model->area_count - at) * sizeof(struct spm_area *));
        model->areas[at] = area;
        model->area_count++;

        area->first = take_spare(model);
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
        while (area->first) {
                struct spm_block *block = area->first;

                if (spm_block_state(block) == SPM_BLOCK_HOLE)
                        spm_pool_take_hole(block);
                area->first = block->next;
                give_spare(model, block);
        }
        while (*at != area)
                at = &(*at)->next;
        *at = area->next;
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

struct spm_block *spm_area_start(const struct spm_area *area, uint64_t address)
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
                        page = word * 64 + 63 - (size_t)__builtin_clzll(set);
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
        return block && spm_block_state(block) == SPM_BLOCK_LIVE ? block : NULL;
}

static void note_page(const struct spm_area *area, uint64_t offset, struct spm_block *block)
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
        uint64_t end = block->slab ? offset + block->size : offset + 1;

        for (; offset < end; offset += (uint64_t)1 << area->page_shift)
                note_page(area, offset, begins ? block : NULL);
}

/* blocks */

/* A quarter more than there are, so that many records lie on few host pages. */
static bool make_records(struct spm_model *model)
{
        size_t count = model->blocks / 4;
        struct spm_records *more;
        struct spm_block *block;

        if (count < RECORDS_MIN)
                count = RECORDS_MIN;
        if (count > RECORDS_MAX)
                count = RECORDS_MAX;
        more = spm_host_new(model, sizeof(*more) + count * sizeof(*block) + LINE);
        if (!more)
                return false;
        more->next = model->records;
        model->records = more;
        block = (struct spm_block *)(((uintptr_t)(more + 1) + LINE - 1) & ~(uintptr_t)(LINE - 1));
        model->spares += (unsigned int)count;
        for (block += count; count; count--) {
                (--block)->next = model->spare;
                model->spare = block;
        }
        return true;
}

bool spm_block_reserve(struct spm_model *model, unsigned int count)
{
        while (model->spares < count)
                if (!make_records(model))
                        return false;
        while (model->extras < EXTRAS) {
                struct spm_extra *extra = spm_host_new(model, sizeof(*extra));

                if (!extra)
                        return false;
                extra->next = model->extra;
                model->extra = extra;
                model->extras++;
        }
        return true;
}

void spm_block_forget_spares(struct spm_model *model)
{
        while (model->records) {
                struct spm_records *records = model->records;

                model->records = records->next;
                spm_host_free(model, records);
        }
        while (model->extra) {
                struct spm_extra *extra = model->extra;

                model->extra = extra->next;
                spm_host_free(model, extra);
        }
        model->spare = NULL;
        model->spares = 0;
        model->extras = 0;
        spm_host_free(model, model->areas);
        model->areas = NULL;
        model->area_room = 0;
}

struct spm_block *spm_block_split(struct spm_model *model, struct spm_block *block, size_t size)
{
        struct spm_block *rest = take_spare(model);
        struct spm_extra *extra = block->extra;
        struct spm_point deps[SPM_BLOCK_DEPS];
        unsigned int i;

        assert(!block->is_slot && size && size < block->size);
        for (i = 0; i < block->dep_count; i++)
                deps[i] = spm_block_dep(block, i);
        memcpy(rest, block, sizeof(*rest));
        rest->extra = NULL;
        rest->dep_count = 0;
        spm_block_become(rest, SPM_BLOCK_LOOSE);
        block->extra = extra;
        rest->address += size;
        rest->size -= size;
        rest->previous = block;
        if (rest->next)
                rest->next->previous = rest;
        else
                rest->area->last = rest;
        block->next = rest;
        block->size = size;
        /* Extras are at hand, see spm_block_reserve(). */
        if (!spm_block_set_deps(model, rest, deps, block->dep_count))
                rest->exported = true;
        return rest;
}

void spm_block_absorb(struct spm_model *model, struct spm_block *block, struct spm_block *other)
{
        assert(spm_block_state(other) == SPM_BLOCK_LOOSE && block->area == other->area);
        assert(block->next == other || block->previous == other);

        if (block->previous == other) {
                block->address = other->address;
                block->previous = other->previous;
                if (block->previous)
                        block->previous->next = block;
                else
                        block->area->first = block;
        } else {
                block->next = other->next;
                if (block->next)
                        block->next->previous = block;
                else
                        block->area->last = block;
        }
        block->size += other->size;
        block->fresh = block->fresh && other->fresh;
        give_spare(model, other);
}

/* points */

static struct spm_extra *take_extra(struct spm_model *model)
{
        struct spm_extra *extra = model->extra;

        if (!extra)
                return spm_host_new(model, sizeof(*extra));
        model->extra = extra->next;
        model->extras--;
        return extra;
}

static void drop_extra(struct spm_model *model, struct spm_block *block)
{
        if (!block->extra)
                return;
        block->extra->next = model->extra;
        model->extra = block->extra;
        model->extras++;
        block->extra = NULL;
}

bool spm_block_set_deps(struct spm_model *model, struct spm_block *block,
                        const struct spm_point *deps, unsigned int count)
{
        unsigned int i;

        if (count > SPM_BLOCK_DEPS)
                return false;
        if (count > 2 && !block->extra) {
                block->extra = take_extra(model);
                if (!block->extra)
                        return false;
        }
        for (i = 0; i < count && i < 2; i++) {
                block->streams[i] = deps[i].stream;
                block->positions[i] = deps[i].position;
        }
        for (; i < count; i++)
                block->extra->points[i - 2] = deps[i];
        if (count <= 2)
                drop_extra(model, block);
        block->dep_count = (uint8_t)count;
        return true;
}

void spm_block_drop_deps(struct spm_model *model, struct spm_block *block)
{
        drop_extra(model, block);
        block->dep_count = 0;
}
