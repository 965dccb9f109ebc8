/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver in two libraries, as in WSL: libcuda.so.1 loads libcuda.so.1.1 and
 * looks up there what it was itself asked for. Whoever answers that with a
 * function that leads back to the outer library recurses.
 */

#define _GNU_SOURCE

#include <dlfcn.h>

int cuInit(unsigned int flags);
int cuDriverGetVersion(int *version);

static void *inner;

__attribute__((constructor)) static void load(void)
{
        inner = dlopen("libcuda.so.1.1", RTLD_NOW | RTLD_LOCAL);
        /* Already now: the program has asked for nothing yet. */
        if (inner)
                (void)!dlsym(inner, "cuInit");
}

int cuInit(unsigned int flags)
{
        int (*function)(unsigned int) = (int (*)(unsigned int))dlsym(inner, "cuInit");

        return function ? function(flags) : 999;
}

int cuDriverGetVersion(int *version)
{
        int (*function)(int *) = (int (*)(int *))dlsym(inner, "cuDriverGetVersion");

        return function ? function(version) : 999;
}
