/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Simulated driver -- what its files share
 *
 * Handles are addresses of objects, as in the real driver, and destroyed ones
 * come back newest first: a caller that keys something by a handle meets its
 * next owner at once. A table of all objects ever made tells a stale or made up
 * handle from a live one without dereferencing it.
 */

#include "sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGICS 16

pthread_mutex_t sim_mutex = PTHREAD_MUTEX_INITIALIZER;

/* Guarded by: sim_mutex. */
static struct sim_handle *destroyed[MAGICS];
static const void **known; /* open addressing; null is empty */
static size_t known_room;
static size_t known_count;

uint64_t sim_unique(void)
{
        static uint64_t last;

        return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

uint64_t sim_thread(void)
{
        /* Per thread because it names the thread; pthread_self() values come back. */
        static __thread uint64_t number;

        if (!number)
                number = sim_unique();
        return number;
}

void sim_abort(const char *format, ...)
{
        va_list arguments;

        fprintf(stderr, "sim: ");
        va_start(arguments, format);
        vfprintf(stderr, format, arguments);
        va_end(arguments);
        fprintf(stderr, "\n");
        abort();
}

static const void **known_slot(const void *handle)
{
        size_t i = ((uintptr_t)handle >> 4) * 0x9e3779b97f4a7c15u;

        for (;; i++) {
                const void **slot = &known[i & (known_room - 1)];

                if (!*slot || *slot == handle)
                        return slot;
        }
}

static void known_add(const void *handle)
{
        if (known_count * 2 >= known_room) {
                const void **old = known;
                size_t room = known_room;

                known_room = room ? room * 2 : 64;
                known = calloc(known_room, sizeof(*known));
                if (!known)
                        sim_abort("out of host memory");
                for (size_t i = 0; i < room; i++)
                        if (old[i])
                                *known_slot(old[i]) = old[i];
                free(old);
        }
        *known_slot(handle) = handle;
        known_count++;
}

void *sim_handle_new(enum sim_magic magic, size_t bytes)
{
        struct sim_handle **list = &destroyed[magic % MAGICS];
        struct sim_handle *handle = *list;

        if (handle) {
                *list = handle->next;
                memset(handle, 0, bytes);
        } else {
                handle = calloc(1, bytes);
                if (!handle)
                        sim_abort("out of host memory");
                known_add(handle);
        }
        handle->magic = magic;
        return handle;
}

void sim_handle_free(struct sim_handle *handle)
{
        struct sim_handle **list = &destroyed[handle->magic % MAGICS];

        handle->magic = SIM_FREE_HANDLE;
        handle->next = *list;
        *list = handle;
}

void sim_handle_check(const void *handle, enum sim_magic magic)
{
        static const char *const names[MAGICS] = {
                "context", "stream", "event", "graph", "executable graph", "module", "pool",
        };
        const struct sim_handle *object = handle;
        const char *name = names[magic % MAGICS];

        if (!known_room || !*known_slot(handle))
                sim_abort("%p is no handle of a %s", handle, name);
        if (object->magic == SIM_FREE_HANDLE)
                sim_abort("%p is a stale handle: that %s was destroyed", handle, name);
        if (object->magic != magic)
                sim_abort("%p is no %s", handle, name);
}
