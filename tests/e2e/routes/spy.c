/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For runtime.c: sees what the shim answers a runtime
 *
 * Preloaded in front of it, and hands out a cuGetProcAddress_v2 of its own,
 * which asks the shim's and compares with what the bare driver answers.
 */

#define _GNU_SOURCE

#include "routes.h"

extern unsigned int spy_seen[3];
unsigned int spy_seen[3]; /* look-ups, answered with functions of the shim, wrong */

static gpa2_function of_shim;
static gpa2_function of_driver;

static int spy(const char *name, void **pfn, int version, uint64_t flags, int *status)
{
        int result = of_shim(name, pfn, version, flags, status);
        void *bare = NULL;
        void *expected;
        Dl_info info;

        spy_seen[0]++;
        if (result != 0 || of_driver(name, &bare, version, flags, NULL) != 0)
                return result;
        expected = bare && dladdr(bare, &info) ? wrapper_named(info.dli_sname) : NULL;
        if (expected)
                spy_seen[1]++;
        if (*pfn != (expected ? expected : bare)) {
                fprintf(stderr, "spy: %s@%d flags %u\n", name, version, (unsigned int)flags);
                spy_seen[2]++;
        }
        /* A runtime asks for the function through itself, and goes on with what it gets. */
        if (*pfn == (void *)of_shim)
                *pfn = (void *)spy;
        return result;
}

void *dlsym(void *handle, const char *name)
{
        static void *(*next)(void *, const char *);

        if (!next)
                next = (void *(*)(void *, const char *))bare_dlsym(shim_handle(), "dlsym");
        if (handle == RTLD_NEXT || handle == RTLD_DEFAULT ||
            strcmp(name, "cuGetProcAddress_v2") != 0)
                return next(handle, name);
        of_shim = (gpa2_function)next(handle, name);
        of_driver = (gpa2_function)bare_dlsym(handle, name);
        return of_shim ? (void *)spy : NULL;
}
