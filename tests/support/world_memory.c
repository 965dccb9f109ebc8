/* SPDX-License-Identifier: Apache-2.0 */
/*
 * World -- the memory it has, and which pool has it
 *
 * So many pages of physical memory, and more addresses than that: one area for
 * segments by themselves, and one for each pool that has a range. A page has a
 * segment, or is not there; the model is told what it obtains, and names what
 * it gives back.
 */

#include "world.h"

/* The area that an address lies in; 0 is that of lone segments, and pools have the others. */
static int area_of(uint64_t address)
{
        uint64_t area = (address - WORLD_BASE) / WORLD_STRIDE;

        return address >= WORLD_BASE && area <= WORLD_POOLS ? (int)area : -1;
}

static struct world_page *page_at(struct world *world, uint64_t address)
{
        int area = area_of(address);
        uint64_t page = (address - WORLD_BASE) % WORLD_STRIDE / WORLD_PAGE;

        return area < 0 || page >= (uint64_t)world->page_count ? NULL : &world->areas[area][page];
}

static int pool_number(const struct world *world, spm_pool id)
{
        int i;

        for (i = 0; i < WORLD_POOLS; i++)
                if (world->pools[i] == id)
                        return i;
        return -1;
}

bool world_is_backed(struct world *world, int pool, uint64_t from, uint64_t to)
{
        uint64_t at;

        for (at = from / WORLD_PAGE * WORLD_PAGE; at < to; at += WORLD_PAGE) {
                const struct world_page *page = page_at(world, at);

                if (!page || !page->segment || world->segments[page->segment].pool != pool)
                        return false;
        }
        return true;
}

void world_count_live(struct world *world, uint64_t from, uint64_t to, bool live)
{
        uint64_t at;

        for (at = from / WORLD_PAGE * WORLD_PAGE; at < to; at += WORLD_PAGE) {
                struct world_page *page = page_at(world, at);

                if (page)
                        page->live = (uint16_t)(live ? page->live + 1 : page->live - 1);
        }
}

void world_forget_live(struct world *world, int pool)
{
        int i;
        int j;

        for (i = 0; i <= WORLD_POOLS; i++)
                for (j = 0; j < world->page_count; j++)
                        if (world->segments[world->areas[i][j].segment].pool == pool)
                                world->areas[i][j].live = 0;
}

void world_reserved(const struct world *world, int pool, uint64_t *bytes, uint64_t *segments)
{
        int i;

        *bytes = 0;
        *segments = 0;
        for (i = 1; i < world->segment_end; i++) {
                if (!world->segments[i].size || world->segments[i].pool != pool)
                        continue;
                *bytes += world->segments[i].size;
                ++*segments;
        }
}

/* growth */

/* The first of @count pages of the area that are not there; -1 if there are none. */
static int find_pages(const struct world *world, int area, int count)
{
        int run = 0;
        int i;

        for (i = 0; i < world->page_count; i++) {
                run = world->areas[area][i].segment ? 0 : run + 1;
                if (run == count)
                        return i + 1 - count;
        }
        return -1;
}

static bool is_free(struct world *world, uint64_t from, uint64_t size)
{
        uint64_t at;

        for (at = from; at < from + size; at += WORLD_PAGE) {
                const struct world_page *page = page_at(world, at);

                if (!page || page->segment)
                        return false;
        }
        return true;
}

static void back(struct world *world, int pool, spm_segment id, uint64_t base, uint64_t size)
{
        uint16_t number = 1;
        uint64_t at;

        while (world->segments[number].size)
                number++;
        world->segments[number] =
                (struct world_segment){.id = id, .pool = pool, .base = base, .size = size};
        if (number >= world->segment_end)
                world->segment_end = number + 1;
        for (at = base; at < base + size; at += WORLD_PAGE)
                page_at(world, at)->segment = number;
        world->free_pages -= (int)(size / WORLD_PAGE);
}

bool world_give(struct world *world, int pool, uint64_t base, uint64_t size, bool asked)
{
        spm_segment segment;
        enum spm_status status =
                spm_segment_add(world->model, world->pools[pool], base, size, world, &segment);

        if (status == SPM_OK)
                back(world, pool, segment, base, size);
        else if (status != SPM_E_HOST_MEMORY && status != SPM_E_OUT_OF_MEMORY &&
                 (asked || status != SPM_E_INVALID_VALUE))
                world_fail(world, "a segment of pool %d at %#llx is refused: %s", pool,
                           (unsigned long long)base, spm_status_name(status));
        return status == SPM_OK;
}

uint64_t world_find_room(const struct world *world, int area, int count)
{
        int first = count > world->free_pages ? -1 : find_pages(world, area, count);

        if (first < 0)
                return 0;
        return WORLD_BASE + (uint64_t)area * WORLD_STRIDE + (uint64_t)first * WORLD_PAGE;
}

static uint64_t anywhere(struct world *world, const struct spm_action *action, size_t *size)
{
        uint64_t base = 0;

        *size = world_byte(world) % 4 == 0 ? action->size : action->preferred;
        if (*size <= (size_t)world->page_count * WORLD_PAGE)
                base = world_find_room(world, 0, (int)((*size + WORLD_PAGE - 1) / WORLD_PAGE));
        if (!base && action->size <= (size_t)world->page_count * WORLD_PAGE) {
                *size = action->size;
                base = world_find_room(world, 0, (int)((*size + WORLD_PAGE - 1) / WORLD_PAGE));
        }
        *size = (*size + WORLD_PAGE - 1) / WORLD_PAGE * WORLD_PAGE;
        return base;
}

/* Return: its base, 0 if there is no memory. */
static uint64_t just_there(struct world *world, int pool, const struct spm_action *action)
{
        if (action->address % WORLD_PAGE || action->size % WORLD_PAGE || !action->size ||
            area_of(action->address) != pool + 1 ||
            !is_free(world, action->address, action->size)) {
                world_fail(world, "I1: a growth that is not in a hole of the pool's range");
                return 0;
        }
        return action->size / WORLD_PAGE <= (size_t)world->free_pages ? action->address : 0;
}

void world_grow(struct world *world, const struct spm_action *action, struct spm_request *request)
{
        int pool = pool_number(world, action->pool);
        size_t size = action->size;
        uint64_t base;

        if (pool < 0) {
                world_fail(world, "a growth of a pool that nobody knows");
                return;
        }
        base = action->address ? just_there(world, pool, action) : anywhere(world, action, &size);
        if (!base || world_byte(world) % 16 == 0 || !world_give(world, pool, base, size, true))
                spm_grow_failed(world->model, request);
}

/* release */

static int find_segment(const struct world *world, spm_segment id)
{
        int i;

        for (i = 1; i < world->segment_end; i++)
                if (world->segments[i].size && world->segments[i].id == id)
                        return i;
        return 0;
}

void world_release(struct world *world, const struct spm_action *action)
{
        int number = find_segment(world, action->segment);
        struct world_segment *segment = &world->segments[number];
        uint64_t end = segment->base + segment->size;
        uint64_t at;
        int node = twin_conflict(&world->twin, TWIN_NONE, 0, segment->base, end);

        if (!number || action->address != segment->base || action->size != segment->size ||
            action->cookie != world || world->pools[segment->pool] != action->pool) {
                world_fail(world, "I9: what is given back is not what was obtained");
                return;
        }
        if (node != TWIN_NONE)
                world_fail(world, "I9: memory is given back that node %d may touch", node);
        for (at = segment->base; at < end; at += WORLD_PAGE) {
                struct world_page *page = page_at(world, at);

                if (page->live)
                        world_fail(world, "I9: memory is given back that the program has");
                page->segment = 0;
        }
        world->free_pages += (int)(segment->size / WORLD_PAGE);
        *segment = (struct world_segment){0};
        while (world->segment_end && !world->segments[world->segment_end - 1].size)
                world->segment_end--;
}
