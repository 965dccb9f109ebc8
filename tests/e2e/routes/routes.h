/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROUTES_H
#define ROUTES_H

/*
 * Routes -- what the programs of this folder share
 *
 * Each is started with the shim preloaded and the simulated driver on the
 * library path, prints one line for what is wrong, and ends with 1 then.
 * ROUTES_SHIM is the path of the shim.
 *
 * To see past the shim a program needs the C library's own dlsym: by handle and
 * version, which nobody stands in front of.
 */

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int routes_failures __attribute__((unused));

#define CHECK(condition, ...)                                                                      \
        do {                                                                                       \
                if (!(condition)) {                                                                \
                        fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);            \
                        fprintf(stderr, __VA_ARGS__);                                              \
                        fputc('\n', stderr);                                                       \
                        routes_failures++;                                                         \
                }                                                                                  \
        } while (0)

#define RESULT() (routes_failures ? 1 : 0)

/* A look-up that nobody but the C library answers. */
static inline void *bare_dlsym(void *handle, const char *name)
{
        static void *(*real)(void *, const char *);

        if (!real) {
                void *library = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);

                real = (void *(*)(void *, const char *))dlvsym(library, "dlsym", "GLIBC_2.34");
                if (!real) {
                        library = dlopen("libdl.so.2", RTLD_NOW);
                        real = (void *(*)(void *, const char *))dlvsym(library, "dlsym",
                                                                       "GLIBC_2.2.5");
                }
        }
        return real(handle, name);
}

static inline const char *routes_shim(void)
{
        const char *path = getenv("ROUTES_SHIM");

        return path ? path : "";
}

/* The shim, if it is loaded. */
static inline void *shim_handle(void)
{
        return dlopen(routes_shim(), RTLD_NOW | RTLD_NOLOAD);
}

/* Is this address code of the shim? */
static inline bool is_ours(const void *address)
{
        void *dlsym_of_shim = bare_dlsym(shim_handle(), "dlsym");
        Dl_info shim;
        Dl_info info;

        return address && dladdr(dlsym_of_shim, &shim) && dladdr(address, &info) &&
               shim.dli_fbase == info.dli_fbase;
}

/* The shim's function of this name; NULL if it has none. */
static inline void *wrapper_named(const char *name)
{
        void *address = bare_dlsym(shim_handle(), name);

        /* A handle also finds what the library was linked with. */
        return is_ours(address) ? address : NULL;
}

/* Pointers to functions of the driver, for programs that do not include cuda.h. */
typedef int (*init_function)(unsigned int);
typedef int (*alloc_function)(uint64_t *, size_t);
typedef int (*free_function)(uint64_t);
typedef int (*gpa1_function)(const char *, void **, int, uint64_t);
typedef int (*gpa2_function)(const char *, void **, int, uint64_t, int *);

#endif
