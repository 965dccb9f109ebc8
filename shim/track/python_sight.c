/* SPDX-License-Identifier: Apache-2.0 */

/* Python sight -- reading memory that may be gone */

#define _GNU_SOURCE

#include "track/python_sight.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

/* Behind @address is only what was asked for: the page after that may not be there. */
static bool fill(struct sp_sight_window *window, uintptr_t address, size_t size)
{
        uintptr_t base = address - address % SP_SIGHT_PAGE;
        size_t wanted = address + size - base;
        struct iovec here = {window->bytes, wanted};
        struct iovec there = {(void *)base, wanted};
        int kept = errno;
        /* The process is asked for each time: a forked child must not read its parent. */
        ssize_t got = process_vm_readv(getpid(), &here, 1, &there, 1, 0);

        errno = kept;
        if (got != (ssize_t)wanted) {
                window->size = 0;
                return false;
        }
        window->base = base;
        window->size = wanted;
        return true;
}

static bool holds(const struct sp_sight_window *window, uintptr_t address, size_t size)
{
        return window->size && address >= window->base &&
               address + size <= window->base + window->size;
}

const unsigned char *sp_sight_look(struct sp_sight *sight, uintptr_t address, size_t size)
{
        struct sp_sight_window *window = &sight->window[!sight->oldest];

        if (size > SP_SIGHT_MOST)
                return NULL;
        if (!holds(window, address, size)) {
                window = &sight->window[sight->oldest];
                if (!holds(window, address, size) && !fill(window, address, size))
                        return NULL;
                sight->oldest = !sight->oldest;
        }
        return window->bytes + (address - window->base);
}
