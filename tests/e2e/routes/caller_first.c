/* SPDX-License-Identifier: Apache-2.0 */
/* For caller.c: a library that looks for the next function of its own name. */

#define _GNU_SOURCE

#include <dlfcn.h>

void *first_looks_next(const char *name);
const char *routes_name(void);
int second_is_here(void);

const char *routes_name(void)
{
        return second_is_here() ? "first" : "alone";
}

void *first_looks_next(const char *name)
{
        void *found = dlsym(RTLD_NEXT, name);

        /* Not a tail call: the return address has to be here. */
        __asm__ volatile("" : : "r"(found) : "memory");
        return found;
}
