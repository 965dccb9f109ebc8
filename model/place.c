/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Place -- which free block of a shelf
 *
 *   sliced      the first that fits, of the first page with room for it (C13)
 *   exclusive   the smallest page that fits; of several the one that was idle least often, then
 *               the lowest index (C19)
 *   others      the first page of just that size (C25, C31)
 *
 * A search walks the pages, and of those with room the blocks.
 */

#include "layout.h"
#include "limbo.h"
#include "state.h"

/* A look at one block: can it be had, and how? */
struct look {
        struct spm_model *model;
        const struct spm_want *want;
        struct spm_lane *own;
        bool ready_only;
        bool more;
        bool internal;
};

static bool try_block(const struct look *look, struct spm_block *block, struct spm_fit *fit)
{
        if (look->more)
                return spm_fit_by_wait(look->model, look->want, block, look->internal, fit);
        return spm_fit_here(look->want, look->ready_only ? NULL : look->own, block, fit);
}

static bool find_slice(const struct look *look, const struct spm_shelf *shelf, struct spm_fit *fit)
{
        struct spm_area *page;

        for (page = shelf->first; page; page = page->page_next) {
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
        return page->page_idle < best->page_idle;
}

static bool find_page(const struct look *look, const struct spm_shelf *shelf, struct spm_fit *fit)
{
        bool exact = shelf->config.kind != SPM_SHELF_EXCLUSIVE;
        uint64_t size = spm_shelf_whole(look->want->pool, look->want->size);
        struct spm_area *best = NULL;
        struct spm_area *page;

        for (page = shelf->first; page; page = page->page_next) {
                struct spm_fit found;

                if (page->page_live || (exact ? page->size != size : page->size < size) ||
                    !is_better(page, best) || !try_block(look, page->first, &found))
                        continue;
                *fit = found;
                best = page;
        }
        return best != NULL;
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
        struct look look = {.model = model, .want = want, .own = spm_fit_own_lane(want)};

        if (look.own)
                spm_limbo_reopen(model, look.own);
        if (want->pool->config.kind != SPM_POOL_ASYNC && look.own) {
                look.ready_only = true;
                if (find(&look, shelf, fit))
                        return true;
                look.ready_only = false;
        }
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
        return find(&look, shelf, fit);
}
