/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For caller.c: a front door that forwards to a sibling of the same names, by
 * handle. Whoever answers the inner look-up with the outer function recurses.
 */

#define _GNU_SOURCE

#include <dlfcn.h>

int cudnnCreate(void);
int cuOther(void);

static int forward(const char *name)
{
        void *sibling = dlopen("libroutes_sibling.so", RTLD_NOW | RTLD_LOCAL);
        int (*function)(void) = (int (*)(void))dlsym(sibling, name);

        return function ? function() : -1;
}

int cudnnCreate(void)
{
        return forward("cudnnCreate");
}

int cuOther(void)
{
        return forward("cuOther");
}
