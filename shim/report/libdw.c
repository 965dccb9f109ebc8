/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libdw -- elfutils' reader of debug information, if it is there
 *
 * Its functions are looked up by name and version: dlvsym() is the C library's,
 * while dlsym() is ours, and the version says that what is found has the
 * interface that is declared here.
 */

#define _GNU_SOURCE

#include "report/libdw.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Atomic; complete and constant once it is there. */
static _Atomic(const struct sp_libdw *) libdw;

static bool look_up(void *library, const char *name, const char *version, void *function)
{
        void *found = dlvsym(library, name, version);

        memcpy(function, &found, sizeof(found));
        return found;
}

static bool fill(struct sp_libdw *dw, void *library)
{
#define LOOK_UP(result, name, version, arguments)                                                  \
        look_up(library, #name, "ELFUTILS_" version, &dw->name) &&
        return SP_LIBDW_FUNCTIONS(LOOK_UP) SP_LIBELF_FUNCTIONS(LOOK_UP) true;
#undef LOOK_UP
}

/* Never unloaded: the next report needs it again. Two threads may both get this far. */
const struct sp_libdw *sp_libdw(void)
{
        const struct sp_libdw *there = atomic_load(&libdw);
        void *library = there ? NULL : dlopen("libdw.so.1", RTLD_LAZY | RTLD_LOCAL);
        struct sp_libdw *made;

        if (!library)
                return there;
        made = malloc(sizeof(*made));
        if (!made || !fill(made, library) || !atomic_compare_exchange_strong(&libdw, &there, made))
                free(made);
        else
                there = made;
        return there;
}
