/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_LAYOUT_H
#define SPM_LAYOUT_H

/*
 * Layout -- shelves of pages, in place of a pool's heap
 *
 * A page is an area of its own with one segment, so its blocks have no neighbours in other pages.
 * Of a sliced shelf its blocks are cut and joined as in any area; of the others one block is all
 * of it. What is READY or PENDING in it is known to the heap and the lanes as ever; what a shelf
 * adds is the order of its pages, and figures.
 *
 * A segment that was obtained is a page of no shelf first. Whoever looks for memory and finds none
 * takes such a page onto his shelf, if it is of the right size and there is room on the shelf. So
 * it does not matter which of several requests a segment was asked for, or whether it was, and a
 * shelf never has more pages than its cap allows.
 *
 * Reading order: shelf.c (pages), place.c (which free block), persist.c and routing.c (which shelf,
 * and when it grows), layout.c (installation), preset.c, layout_text.c, layout_print.c and
 * layout_explain.c.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/model.h>

#include "fit.h"
#include "pool.h"

struct spm_shelf {
        struct spm_shelf_config config; /* as it was installed */
        unsigned int index;
        uint64_t page;       /* of a sliced one, in whole grains; 0 if the cap has no room for it */
        uint64_t largest;    /* that it takes, as a rule */
        uint64_t pages_most; /* UINT64_MAX: no cap */
        struct spm_area *first, *last; /* pages, by index */
        uint64_t average; /* of an exclusive one: of what was allocated, the latest counts most */
        uint64_t looked;  /* ... and allocations of the pool when it was last looked at */
        bool warned;
        uint64_t pages, pages_peak, pages_unmapped;
        uint64_t live, requested, padding, reserved; /* the first three of live blocks */
        uint64_t largest_alloc;
        uint64_t spills;
};

struct spm_layout_state {
        struct spm_layout layout; /* as it was installed */
        struct spm_layout_error refusal;
        uint64_t allocs;      /* periods are counted in them */
        uint64_t unclaimed;   /* pages of no shelf */
        unsigned int windows; /* open ones, that count once no capture is open (C30) */
        unsigned int windows_now;
        struct spm_shelf persistent;
        struct spm_shelf shelves[];
};

/** spm_layout_refuse() - @why goes to @error, which may be NULL. Return: SPM_E_INVALID_VALUE. */
enum spm_status spm_layout_refuse(struct spm_layout_error *error,
                                  const struct spm_layout_error *why);

/* shelf.c: pages */

/** spm_shelf_init() - an empty shelf for the pool. */
void spm_shelf_init(struct spm_shelf *shelf, const struct spm_pool_state *pool,
                    const struct spm_shelf_config *config, unsigned int index);

/** spm_shelf_is_sliced() - can its pages have several blocks? */
static inline bool spm_shelf_is_sliced(const struct spm_shelf *shelf)
{
        return shelf->config.kind == SPM_SHELF_SLICED;
}

/** spm_shelf_is_full() - may it have no further page? */
static inline bool spm_shelf_is_full(const struct spm_shelf *shelf)
{
        return shelf->pages >= shelf->pages_most;
}

/** spm_shelf_accepts() - blocks of @size, a multiple of the pool's alignment. */
bool spm_shelf_accepts(const struct spm_shelf *shelf, uint64_t size);

/** spm_shelf_most() - the largest block it takes. */
uint64_t spm_shelf_most(const struct spm_shelf *shelf);

/** spm_shelf_whole() - @size in whole grains; 0 if that cannot be counted. */
uint64_t spm_shelf_whole(const struct spm_pool_state *pool, uint64_t size);

/** spm_shelf_next_page() - the size of a page to obtain for a block of @size. @exact: no more than
 * it takes */
uint64_t spm_shelf_next_page(const struct spm_shelf *shelf, const struct spm_pool_state *pool,
                             uint64_t size, bool exact);

/** spm_shelf_claim() - a page of no shelf, fit for a block of @size, becomes one of this. Return:
 * false if there is none. */
bool spm_shelf_claim(struct spm_shelf *shelf, struct spm_pool_state *pool, uint64_t size);

/** spm_shelf_page_made(), spm_shelf_page_lost() - a page of the pool has come, or is about to go.
 */
void spm_shelf_page_made(struct spm_area *page);
void spm_shelf_page_lost(struct spm_area *page);

/** spm_shelf_served(), spm_shelf_freed() - figures. The block is LIVE, or was just now. */
void spm_shelf_served(struct spm_layout_state *layout, const struct spm_block *block);
void spm_shelf_freed(const struct spm_block *block);

/** spm_shelf_check() - what is broken, or NULL. @a, @b: return arguments, what differs */
const char *spm_shelf_check(const struct spm_pool_state *pool, uint64_t *a, uint64_t *b);

/* place.c: which free block */

/** spm_place_bare() - one that nobody has to wait for. @fit: return argument */
bool spm_place_bare(struct spm_model *model, const struct spm_want *want,
                    const struct spm_shelf *shelf, struct spm_fit *fit);

/** spm_place_more() - one that takes joining, or a wait of the asking stream. @internal: also one
 * that the program has not ordered; then @fit may have a donor rather than a belt */
bool spm_place_more(struct spm_model *model, const struct spm_want *want,
                    const struct spm_shelf *shelf, bool internal, struct spm_fit *fit);

/* persist.c: what is persistent */

/** spm_persist_takes() - does the persistent shelf serve what is wanted? */
bool spm_persist_takes(const struct spm_want *want);

/** spm_persist_settle() - a capture has ended: windows that wait for that count. */
void spm_persist_settle(struct spm_model *model);

/* routing.c: which shelf */

/** spm_routing_alloc() - spm_alloc() of a pool with a layout. */
enum spm_status spm_routing_alloc(struct spm_model *model, struct spm_pool_state *pool,
                                  struct spm_request *request, struct spm_allocation *allocation,
                                  struct spm_actions *actions);

/** spm_routing_grow() - as spm_grow_ask(). */
enum spm_status spm_routing_grow(struct spm_model *model, const struct spm_want *want, bool exact,
                                 struct spm_actions *actions);

/** spm_routing_internal() - as spm_fit_internal(). */
bool spm_routing_internal(struct spm_model *model, const struct spm_want *want,
                          struct spm_fit *fit);

/** spm_routing_synced() - the program has synchronised. What shelves keep does not depend on that,
 * but it is when some pools may give back what theirs do not. */
void spm_routing_synced(struct spm_model *model, struct spm_pool_state *pool,
                        struct spm_actions *actions);

/* layout.c: installation */

/** spm_routing_forget() - frees the layout of a pool that ends, or gets another one; its pages are
 * gone, or were taken along. */
void spm_routing_forget(struct spm_model *model, struct spm_pool_state *pool);

#endif
