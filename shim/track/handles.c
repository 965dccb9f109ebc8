/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Handles -- which of them are there?
 *
 * Open addressing. A handle lies in its home or behind it with no gap between, so taking
 * one away moves those behind it that the gap would hide.
 */

#define _GNU_SOURCE

#include "track/handles.h"

#include <sys/mman.h>

#define FIRST 512 /* slots: a page of them */

static size_t home_of(const struct sp_handles *handles, uint64_t handle)
{
        return (size_t)(handle * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (handles->slots - 1);
}

/* Where it is, or where it would be. At least half of the slots are free. */
static size_t place_of(const struct sp_handles *handles, uint64_t handle)
{
        size_t at = home_of(handles, handle);

        while (handles->slot[at] && handles->slot[at] != handle)
                at = (at + 1) & (handles->slots - 1);
        return at;
}

bool sp_handles_has(const struct sp_handles *handles, uint64_t handle)
{
        return handles->slots && handles->slot[place_of(handles, handle)] == handle;
}

static bool grow(struct sp_handles *handles)
{
        struct sp_handles larger = {
                .slots = handles->slots ? 2 * handles->slots : FIRST,
                .count = handles->count,
        };
        void *pages = mmap(NULL, larger.slots * sizeof(*larger.slot), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (pages == MAP_FAILED)
                return false;
        larger.slot = pages;
        for (size_t i = 0; i < handles->slots; i++)
                if (handles->slot[i])
                        larger.slot[place_of(&larger, handles->slot[i])] = handles->slot[i];
        if (handles->slots)
                munmap(handles->slot, handles->slots * sizeof(*handles->slot));
        *handles = larger;
        return true;
}

bool sp_handles_add(struct sp_handles *handles, uint64_t handle)
{
        if (sp_handles_has(handles, handle))
                return true;
        if (2 * (handles->count + 1) > handles->slots && !grow(handles))
                return false;
        handles->slot[place_of(handles, handle)] = handle;
        handles->count++;
        return true;
}

bool sp_handles_remove(struct sp_handles *handles, uint64_t handle)
{
        size_t gap, at, mask = handles->slots - 1;

        if (!sp_handles_has(handles, handle))
                return false;
        gap = place_of(handles, handle);
        for (at = (gap + 1) & mask; handles->slot[at]; at = (at + 1) & mask) {
                size_t home = home_of(handles, handles->slot[at]);

                /* Is its way from home past the gap? */
                if (((at - home) & mask) >= ((at - gap) & mask)) {
                        handles->slot[gap] = handles->slot[at];
                        gap = at;
                }
        }
        handles->slot[gap] = 0;
        handles->count--;
        return true;
}
