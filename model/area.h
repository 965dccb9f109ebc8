/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_AREA_H
#define SPM_AREA_H

/*
 * Area -- addresses tiled by blocks
 *
 * An area is a range of a pool, of which parts are backed by segments, or one
 * segment that is by itself. Blocks lie side by side and fill it without gap
 * or overlap (I1, I3); see record.h.
 *
 * By address, a live block is found through a map of pages: every page has at
 * most one live block that begins in it, because what is not larger than a
 * page is a slot, and the pages of a slab know their slab. So a look-up is a
 * subtraction and three loads. Leaves of the map are made with the segments.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/model.h>

#include "record.h"

struct spm_leaf;
struct spm_shelf;

struct spm_area {
        struct spm_pool_state *pool;
        struct spm_area *next; /* of the same pool */
        uint64_t base;
        uint64_t size;
        bool is_lone;       /* one segment that is by itself, and ends with it */
        unsigned int index; /* of the pool's heap */
        struct spm_block *first;
        struct spm_block *last;
        uint64_t segment_count;
        unsigned int grain_shift;
        unsigned int page_shift;
        unsigned int leaf_shift;
        /* Of a page of a layout (layout.h). */
        struct spm_shelf *shelf; /* NULL: of none yet, or no page */
        struct spm_area *page_next;
        struct spm_area *page_previous;
        uint64_t page_live;      /* bytes of its live blocks */
        unsigned int page_index; /* of its shelf, and ascending there */
        unsigned int page_idle;  /* looks at it that found it idle; each use takes one back */
        bool page_is_new;        /* not served yet */
        _Atomic(struct spm_leaf *) leaves[]; /* read by owners of magazines */
};

/* areas */

/** spm_area_new() - a HOLE from end to end; no other area is there. Return: NULL if there is no
 * memory. */
struct spm_area *spm_area_new(struct spm_model *model, struct spm_pool_state *pool,
                              unsigned int heap, uint64_t base, uint64_t size, bool is_lone);

/** spm_area_free() - its blocks are LOOSE or HOLE, and it has no segments. */
void spm_area_free(struct spm_model *model, struct spm_area *area);

/** spm_area_forget() - the list of them, at the end of the model. */
void spm_area_forget(struct spm_model *model);

/** spm_area_at() - the area that holds @address, or NULL. */
struct spm_area *spm_area_at(const struct spm_model *model, uint64_t address);

/** spm_area_overlaps() - is any of @size bytes at @base in an area? */
bool spm_area_overlaps(const struct spm_model *model, uint64_t base, uint64_t size);

/** spm_area_gap() - the lowest address in the range where @size bytes meet no area; 0 if there is
 * none. Walks the areas in the range. */
uint64_t spm_area_gap(const struct spm_model *model, uint64_t base, uint64_t range, uint64_t size);

/** spm_area_prepare() - leaves, and rows of bins, for @size bytes more at @base, which are whole
 * grains. Return: false if there is no memory. */
bool spm_area_prepare(struct spm_model *model, struct spm_area *area, uint64_t base, uint64_t size);

/** spm_area_segment() - the slot for the segment at @address, a pointer to NULL over a hole. The
 * leaf is there. */
struct spm_segment_state **spm_area_segment(const struct spm_area *area, uint64_t address);

/* look-up; these two may be called without the caller's lock, by a thread that owns the block */

/** spm_area_start() - the live block that begins at @address, or NULL. Slots: spm_slab_slot(). */
struct spm_block *spm_area_start(const struct spm_area *area, uint64_t address);

/** spm_area_live_at() - the live block that holds @address, or NULL. */
struct spm_block *spm_area_live_at(const struct spm_area *area, uint64_t address);

/** spm_area_note() - the LIVE or SLAB @block begins here, or no longer. */
void spm_area_note(struct spm_block *block, bool begins);

#endif
