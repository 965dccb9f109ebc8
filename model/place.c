/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Place -- which free block of a shelf
 *
 *   sliced      the first that fits, of the first page with room for it (C13)
 *   exclusive   the smallest page that fits; of several the one that was idle least often, then
 *               the lowest index (C19)
 *   others      the first page of just that size (C25, C31)
 *
 * Pages of one block each are found by their size, among all that is free. Where too much of that
 * belongs to other shelves, and for slices, a search walks the pages, and of those with room the
 * blocks.
 */

#include "layout.h"
#include "limbo.h"
#include "state.h"

#define CANDIDATES_MAX 32

/* A look at one block: can it be had, and how? */
struct look {
        struct spm_model *model;
        const struct spm_want *want;
        struct spm_lane *own;
        bool more;
        bool internal;
};

static bool try_block(const struct look *look, struct spm_block *block, struct spm_fit *fit)
{
        if (look->more)
                return spm_fit_by_wait(look->model, look->want, block, look->internal, fit);
        return spm_fit_here(look->want, look->own, block, fit);
}

/* What a stream has freed is among its open blocks; what is ready, in the pool's one heap. */
static const struct spm_bins *own_bins(const struct look *look)
{
        return look->own ? spm_fit_open(look->own, look->want) : NULL;
}

/* Is there anything so large at all? */
static bool has_any(const struct look *look)
{
        const struct spm_bins *own = own_bins(look);
        size_t size = look->want->size;

        return look->more || spm_bins_at_least(&look->want->heap->ready, size) ||
               (own && spm_bins_at_least(own, size));
}

static bool find_slice(const struct look *look, const struct spm_shelf *shelf, struct spm_fit *fit)
{
        struct spm_area *page;

        for (page = has_any(look) ? shelf->first : NULL; page; page = page->page_next) {
                struct spm_block *block = page->first;

                if (page->size - page->page_live < look->want->size)
                        continue;
                for (; block; block = block->next)
                        if (try_block(look, block, fit))
                                return true;
        }
        return false;
}

/* Both hold the block. */
static bool is_better(const struct spm_area *page, const struct spm_area *best)
{
        if (!best || page->size != best->size)
                return !best || page->size < best->size;
        if (page->page_idle != best->page_idle)
                return page->page_idle < best->page_idle;
        return page->page_index < best->page_index;
}

/* The best page so far, and what is looked for. */
struct hunt {
        const struct spm_shelf *shelf;
        uint64_t size; /* of the page, at least */
        bool exact;    /* no larger one */
        struct spm_area *best;
        struct spm_fit fit;
};

static void try_page(const struct look *look, struct hunt *hunt, struct spm_area *page)
{
        struct spm_fit found;

        if (page->page_live || (hunt->exact ? page->size != hunt->size : page->size < hunt->size) ||
            !is_better(page, hunt->best) || !try_block(look, page->first, &found))
                return;
        hunt->fit = found;
        hunt->best = page;
}

/* By size, and so not all of them. Return: false if there are too many that are others'. */
static bool try_sizes(const struct look *look, struct hunt *hunt, const struct spm_bins *bins)
{
        struct spm_block *block = spm_bins_at_least(bins, (size_t)hunt->size);
        unsigned int tried;

        for (tried = 0; block && tried < CANDIDATES_MAX; tried++) {
                if ((hunt->exact && block->size != hunt->size) ||
                    (hunt->best && block->size > hunt->best->size))
                        return true;
                if (block->area->shelf == hunt->shelf)
                        try_page(look, hunt, block->area);
                block = spm_bins_after(bins, block);
        }
        return !block;
}

static bool is_found_by_size(const struct look *look, struct hunt *hunt)
{
        const struct spm_bins *own = own_bins(look);

        return !look->more && try_sizes(look, hunt, &look->want->heap->ready) &&
               (!own || try_sizes(look, hunt, own));
}

static bool find_page(const struct look *look, const struct spm_shelf *shelf, struct spm_fit *fit)
{
        struct hunt hunt = {.shelf = shelf,
                            .size = spm_shelf_whole(look->want->pool, look->want->size),
                            .exact = shelf->config.kind != SPM_SHELF_EXCLUSIVE};
        struct spm_area *page;

        if (!is_found_by_size(look, &hunt))
                for (page = shelf->first; page; page = page->page_next)
                        try_page(look, &hunt, page);
        if (hunt.best)
                *fit = hunt.fit;
        return hunt.best != NULL;
}

static bool find(const struct look *look, const struct spm_shelf *shelf, struct spm_fit *fit)
{
        return spm_shelf_is_sliced(shelf) ? find_slice(look, shelf, fit)
                                          : find_page(look, shelf, fit);
}

/* Of a synchronous pool what is not complete costs a stamp, so that it comes second. */
bool spm_place_bare(struct spm_model *model, const struct spm_want *want,
                    const struct spm_shelf *shelf, struct spm_fit *fit)
{
        struct spm_lane *own = spm_fit_own_lane(want);
        struct look look = {.model = model, .want = want};

        if (own)
                spm_limbo_reopen(model, own);
        if (want->pool->config.kind != SPM_POOL_ASYNC && own && find(&look, shelf, fit))
                return true;
        look.own = own;
        return find(&look, shelf, fit);
}

/* The stream's own with the free neighbours, before anything else is tried: coalesce before
 * failing (C13, C14). */
static bool stitch(const struct look *look, const struct spm_shelf *shelf, struct spm_fit *fit)
{
        struct spm_area *page;

        for (page = shelf->first; page; page = page->page_next) {
                struct spm_block *block = page->first;

                if (page->size - page->page_live < look->want->size)
                        continue;
                for (; block; block = block->next)
                        if (spm_block_is(block, SPM_BLOCK_PENDING) &&
                            spm_fit_may_stitch(block, look->own) &&
                            spm_fit_stitch_at(look->model, look->want, block, fit))
                                return fit->block != NULL;
        }
        return false;
}

bool spm_place_more(struct spm_model *model, const struct spm_want *want,
                    const struct spm_shelf *shelf, bool internal, struct spm_fit *fit)
{
        struct look look = {.model = model,
                            .want = want,
                            .own = spm_fit_own_lane(want),
                            .more = true,
                            .internal = internal};

        if (look.own && spm_shelf_is_sliced(shelf) && stitch(&look, shelf, fit))
                return true;
        /* Only in stream order can a stream wait for another's (spm_fit_by_wait()). */
        return want->stream && want->pool->config.kind == SPM_POOL_ASYNC && find(&look, shelf, fit);
}
