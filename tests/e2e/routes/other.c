/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another preloaded library, that does what we do
 *
 * It stands in front of dlsym() and of two functions of the driver, in the
 * ordinary way: a C function that calls the next one. Both orders of the two
 * libraries have to work.
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cuMemAlloc_v2(uint64_t *pointer, size_t size);
int cuMemFree_v2(uint64_t pointer);

static void *(*next_dlsym)(void *, const char *);
static unsigned int allocs, frees, lookups;

static void find_next(void)
{
        if (!next_dlsym)
                next_dlsym =
                        (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
        if (!next_dlsym)
                next_dlsym =
                        (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
}

int cuMemAlloc_v2(uint64_t *pointer, size_t size)
{
        int (*next)(uint64_t *, size_t);

        find_next();
        next = (int (*)(uint64_t *, size_t))next_dlsym(RTLD_NEXT, "cuMemAlloc_v2");
        allocs++;
        return next ? next(pointer, size) : 34;
}

int cuMemFree_v2(uint64_t pointer)
{
        int (*next)(uint64_t);

        find_next();
        next = (int (*)(uint64_t))next_dlsym(RTLD_NEXT, "cuMemFree_v2");
        frees++;
        return next ? next(pointer) : 34;
}

void *dlsym(void *handle, const char *name)
{
        find_next();
        lookups++;
        return next_dlsym(handle, name);
}

__attribute__((destructor)) static void tell(void)
{
        if (getenv("OTHER_TELLS"))
                fprintf(stderr, "other: %u allocs, %u frees, %u look-ups\n", allocs, frees,
                        lookups);
}
