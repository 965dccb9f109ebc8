/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Extents -- which ranges are free
 *
 * A sorted array: there are few ranges, and first fit makes addresses
 * repeatable from run to run.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "memory.h"

/* Index of the first extent that starts behind the base. */
static size_t behind(const struct sim_extents *extents, uint64_t base)
{
        size_t low = 0, high = extents->count;

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (extents->list[middle].base > base)
                        high = middle;
                else
                        low = middle + 1;
        }
        return low;
}

static void insert(struct sim_extents *extents, size_t at, uint64_t base, uint64_t bytes)
{
        if (extents->count == extents->room) {
                extents->room = extents->room ? 2 * extents->room : 8;
                extents->list = realloc(extents->list, extents->room * sizeof(*extents->list));
                if (!extents->list)
                        sim_abort("no host memory for the list of free ranges");
        }
        memmove(&extents->list[at + 1], &extents->list[at],
                (extents->count - at) * sizeof(*extents->list));
        extents->list[at] = (struct sim_extent){base, bytes};
        extents->count++;
}

static void drop(struct sim_extents *extents, size_t at)
{
        extents->count--;
        memmove(&extents->list[at], &extents->list[at + 1],
                (extents->count - at) * sizeof(*extents->list));
}

void sim_extents_give(struct sim_extents *extents, uint64_t base, uint64_t bytes)
{
        size_t at = behind(extents, base);
        struct sim_extent *before = at ? &extents->list[at - 1] : NULL;
        struct sim_extent *after = at < extents->count ? &extents->list[at] : NULL;

        assert(!before || before->base + before->bytes <= base);
        assert(!after || base + bytes <= after->base);
        if (before && before->base + before->bytes == base) {
                before->bytes += bytes;
                if (after && base + bytes == after->base) {
                        before->bytes += after->bytes;
                        drop(extents, at);
                }
        } else if (after && base + bytes == after->base) {
                after->base = base;
                after->bytes += bytes;
        } else {
                insert(extents, at, base, bytes);
        }
}

/* Cuts [base, base + bytes) out of the extent that holds it. */
static void cut(struct sim_extents *extents, size_t at, uint64_t base, uint64_t bytes)
{
        struct sim_extent *extent = &extents->list[at];
        uint64_t left = base - extent->base;
        uint64_t right = extent->bytes - left - bytes;

        if (left && right) {
                extent->bytes = left;
                insert(extents, at + 1, base + bytes, right);
        } else if (left) {
                extent->bytes = left;
        } else if (right) {
                extent->base = base + bytes;
                extent->bytes = right;
        } else {
                drop(extents, at);
        }
}

bool sim_extents_take(struct sim_extents *extents, uint64_t bytes, uint64_t align, uint64_t *base)
{
        for (size_t at = 0; at < extents->count; at++) {
                const struct sim_extent *extent = &extents->list[at];
                uint64_t start = sim_round(extent->base, align);

                if (start - extent->base > extent->bytes ||
                    extent->bytes - (start - extent->base) < bytes)
                        continue;
                cut(extents, at, start, bytes);
                *base = start;
                return true;
        }
        return false;
}

bool sim_extents_take_at(struct sim_extents *extents, uint64_t base, uint64_t bytes)
{
        size_t at = behind(extents, base);

        if (!at)
                return false;
        at--;
        if (extents->list[at].base + extents->list[at].bytes < base + bytes)
                return false;
        cut(extents, at, base, bytes);
        return true;
}

void sim_extents_fini(struct sim_extents *extents)
{
        free(extents->list);
        *extents = (struct sim_extents){0};
}
