/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shelf -- pages of one kind, and what is counted of them
 *
 * Pages have indexes. A new page gets the lowest that is free, so that there are never more than
 * there were pages at once, and searches go by index. (C13, C28)
 */

#include "layout.h"
#include "state.h"

/* Of five looks a page that is new needs one to be given back, and one that is used again and
 * again all. (C20, C21) */
#define IDLE_NEW     4

#define AVERAGE_PART 100 /* of the average, the latest block (C18) */
#define WASTE_PART   5   /* of a page, what a large block may leave at most (C12) */

/* sizes */

static uint64_t round_up(uint64_t size, uint64_t unit)
{
        return (size + unit - 1) & ~(unit - 1);
}

uint64_t spm_shelf_whole(const struct spm_pool_state *pool, uint64_t size)
{
        uint64_t whole = round_up(size, pool->config.grain);

        return whole < size ? 0 : whole;
}

/* A cap below a page, as soon as that is in whole grains, makes it smaller; one below a grain
 * leaves no page. (C8 to C11) */
static void init_sliced(struct spm_shelf *shelf, const struct spm_pool_state *pool)
{
        const struct spm_shelf_config *config = &shelf->config;
        uint64_t grain = pool->config.grain;
        uint64_t slice = config->slice ? config->slice : config->page;

        shelf->page = round_up(config->page, grain);
        if (config->cap && config->cap < shelf->page)
                shelf->page = config->cap & ~(grain - 1);
        if (config->cap)
                shelf->pages_most = shelf->page ? config->cap / shelf->page : 0;
        shelf->largest = round_up(slice, pool->config.align);
        if (shelf->page && shelf->largest > shelf->page)
                shelf->largest = shelf->page;
}

void spm_shelf_init(struct spm_shelf *shelf, const struct spm_pool_state *pool,
                    const struct spm_shelf_config *config, unsigned int index)
{
        *shelf = (struct spm_shelf){.config = *config, .index = index, .pages_most = UINT64_MAX};
        switch (config->kind) {
        case SPM_SHELF_SLICED:
                init_sliced(shelf, pool);
                break;
        case SPM_SHELF_EXCLUSIVE:
                shelf->largest = round_up(config->max, pool->config.align);
                shelf->average = config->max / 2;
                break;
        case SPM_SHELF_DIRECT:
        case SPM_SHELF_PERSISTENT:
                shelf->largest = UINT64_MAX;
                break;
        }
}

uint64_t spm_shelf_most(const struct spm_shelf *shelf)
{
        bool takes_pages = spm_shelf_is_sliced(shelf) && shelf->pages_most == UINT64_MAX;

        return takes_pages ? shelf->page : shelf->largest;
}

bool spm_shelf_accepts(const struct spm_shelf *shelf, uint64_t size)
{
        if (size <= shelf->largest)
                return true;
        return size <= spm_shelf_most(shelf) &&
               shelf->page - size < (shelf->page + WASTE_PART - 1) / WASTE_PART;
}

/* What the average is once a block of @size counts. */
static uint64_t next_average(const struct spm_shelf *shelf, uint64_t size)
{
        return ((AVERAGE_PART - 1) * shelf->average + size) / AVERAGE_PART;
}

uint64_t spm_shelf_next_page(const struct spm_shelf *shelf, const struct spm_pool_state *pool,
                             uint64_t size, bool exact)
{
        if (spm_shelf_is_sliced(shelf))
                return shelf->page;
        if (shelf->config.kind == SPM_SHELF_EXCLUSIVE && !exact && next_average(shelf, size) > size)
                size = next_average(shelf, size);
        return spm_shelf_whole(pool, size);
}

/* pages */

static void link_page(struct spm_shelf *shelf, struct spm_area *page)
{
        struct spm_area *before = NULL;
        struct spm_area *after = shelf->first;

        page->page_index = 0;
        for (; after && after->page_index == page->page_index; after = after->page_next) {
                page->page_index++;
                before = after;
        }
        page->page_previous = before;
        page->page_next = after;
        if (before)
                before->page_next = page;
        else
                shelf->first = page;
        if (after)
                after->page_previous = page;
        else
                shelf->last = page;
}

static void unlink_page(struct spm_shelf *shelf, struct spm_area *page)
{
        if (page->page_previous)
                page->page_previous->page_next = page->page_next;
        else
                shelf->first = page->page_next;
        if (page->page_next)
                page->page_next->page_previous = page->page_previous;
        else
                shelf->last = page->page_previous;
}

/* Is it of a size that this shelf would have obtained? Of an exclusive one that depends on the
 * average, which others may have changed since. */
static bool suits(const struct spm_shelf *shelf, const struct spm_pool_state *pool,
                  const struct spm_area *page, uint64_t size)
{
        uint64_t least = spm_shelf_next_page(shelf, pool, size, true);

        if (shelf->config.kind == SPM_SHELF_EXCLUSIVE)
                return page->size >= least &&
                       page->size <= spm_shelf_whole(pool, shelf->config.max);
        return page->size == least;
}

bool spm_shelf_claim(struct spm_shelf *shelf, struct spm_pool_state *pool, uint64_t size)
{
        struct spm_area *page = pool->areas;

        if (!pool->layout->unclaimed || spm_shelf_is_full(shelf))
                return false;
        while (page && (page->shelf || !suits(shelf, pool, page, size)))
                page = page->next;
        if (!page)
                return false;
        page->shelf = shelf;
        page->page_idle = IDLE_NEW;
        page->page_is_new = true;
        link_page(shelf, page);
        pool->layout->unclaimed--;
        shelf->reserved += page->size;
        if (++shelf->pages > shelf->pages_peak)
                shelf->pages_peak = shelf->pages;
        return true;
}

void spm_shelf_page_made(struct spm_area *page)
{
        page->pool->layout->unclaimed++;
}

void spm_shelf_page_lost(struct spm_area *page)
{
        struct spm_shelf *shelf = page->shelf;

        if (!shelf) {
                page->pool->layout->unclaimed--;
                return;
        }
        unlink_page(shelf, page);
        shelf->reserved -= page->size;
        shelf->pages--;
        shelf->pages_unmapped++;
}

/* figures */

static uint64_t padding_of(const struct spm_block *block)
{
        return round_up(block->requested, block->area->pool->config.align) - block->requested;
}

/* The use that a page was obtained for is none of those that keep it (C21). */
void spm_shelf_served(struct spm_layout_state *layout, const struct spm_block *block)
{
        struct spm_area *page = block->area;
        struct spm_shelf *shelf = page->shelf;

        if (page->page_idle && !page->page_is_new)
                page->page_idle--;
        page->page_is_new = false;
        page->page_live += block->size;
        layout->allocs++;
        shelf->average = next_average(shelf, block->requested);
        shelf->live++;
        shelf->requested += block->requested;
        shelf->padding += padding_of(block);
        if (shelf->largest_alloc < block->requested)
                shelf->largest_alloc = block->requested;
}

void spm_shelf_freed(const struct spm_block *block)
{
        struct spm_area *page = block->area;

        page->page_live -= block->size;
        page->shelf->live--;
        page->shelf->requested -= block->requested;
        page->shelf->padding -= padding_of(block);
}

/* invariants */

struct sums {
        uint64_t live, taken, requested;
};

static struct sums sum_page(const struct spm_area *page)
{
        const struct spm_block *block;
        struct sums sums = {0};

        for (block = page->first; block; block = block->next)
                if (spm_block_is(block, SPM_BLOCK_LIVE)) {
                        sums.live++;
                        sums.taken += block->size;
                        sums.requested += block->requested;
                }
        return sums;
}

static const char *check_page(const struct spm_shelf *shelf, const struct spm_area *page,
                              const struct sums *sums, uint64_t *a, uint64_t *b)
{
        *a = page->base;
        *b = page->size;
        if (page->shelf != shelf || !page->is_lone || page->segment_count != 1)
                return "a page is one segment by itself, on one shelf";
        if (page->page_next ? page->page_next->page_previous != page : shelf->last != page)
                return "pages are linked both ways";
        if (page->page_next && page->page_next->page_index <= page->page_index)
                return "pages are ordered by index";
        if (spm_shelf_is_sliced(shelf) && page->size != shelf->page)
                return "C8 sliced pages are of one size";
        if (!spm_shelf_is_sliced(shelf) && page->first != page->last)
                return "C23 a block has a page to itself";
        *b = page->page_live;
        return page->page_live == sums->taken ? NULL : "what is live in a page is counted";
}

static const char *check_one(const struct spm_shelf *shelf, uint64_t *a, uint64_t *b)
{
        const struct spm_area *page;
        struct sums all = {0};
        uint64_t pages = 0;
        uint64_t reserved = 0;

        for (page = shelf->first; page; page = page->page_next) {
                struct sums sums = sum_page(page);
                const char *broken = check_page(shelf, page, &sums, a, b);

                if (broken)
                        return broken;
                pages++;
                reserved += page->size;
                all.live += sums.live;
                all.requested += sums.requested;
        }
        *a = pages;
        *b = shelf->pages;
        if (pages != shelf->pages || reserved != shelf->reserved || pages > shelf->pages_peak)
                return "C17 pages are counted";
        if (all.live != shelf->live || all.requested != shelf->requested)
                return "C43 what is live on a shelf is counted";
        *b = shelf->pages_most;
        return pages > shelf->pages_most ? "C8 a shelf has no more pages than its cap allows"
                                         : NULL;
}

const char *spm_shelf_check(const struct spm_pool_state *pool, uint64_t *a, uint64_t *b)
{
        const struct spm_layout_state *layout = pool->layout;
        const struct spm_area *area;
        const char *broken;
        uint64_t pages = 0;
        uint64_t areas = 0;
        unsigned int i;

        if (!layout)
                return NULL;
        for (i = 0; i <= layout->layout.count; i++) {
                const struct spm_shelf *shelf =
                        i < layout->layout.count ? &layout->shelves[i] : &layout->persistent;

                broken = check_one(shelf, a, b);
                if (broken)
                        return broken;
                pages += shelf->pages;
        }
        for (area = pool->areas; area; area = area->next)
                areas++;
        *a = pages + layout->unclaimed;
        *b = areas;
        return *a == *b ? NULL : "every page is on a shelf, or on none and counted";
}
