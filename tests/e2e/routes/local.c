/* SPDX-License-Identifier: Apache-2.0 */
/* For caller.c: a library that is opened with RTLD_LOCAL and asks for its own symbols. */

#define _GNU_SOURCE

#include <dlfcn.h>

int only_here(void);
int cuOnlyHere(void);
void *local_looks(const char *name);

int only_here(void)
{
        return 1;
}

int cuOnlyHere(void)
{
        return 2;
}

void *local_looks(const char *name)
{
        void *found = dlsym(RTLD_DEFAULT, name);

        __asm__ volatile("" : : "r"(found) : "memory");
        return found;
}
