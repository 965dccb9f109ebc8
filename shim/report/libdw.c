/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libdw -- elfutils' reader of debug information, if it is there
 *
 * Its functions are looked up by name and version: dlvsym() is the C library's,
 * while dlsym() is ours, and the version says that what is found has the
 * interface that is declared here.
 *
 * What libdw does by itself for a library without debug information is to ask
 * the servers in DEBUGINFOD_URLS. A program must not wait for a network because
 * it was watched, so sp_libdw_find_debuginfo() looks for the file instead: by build
 * ID as libdw does, and by the link that strip leaves. A file found by the link
 * counts only if it has the library's build ID.
 */

#define _GNU_SOURCE

#include "report/libdw.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

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

/* finding debug information */

static bool has_build_id(const struct sp_libdw *dw, int fd, const void *wanted, int wanted_size)
{
        Elf *elf = dw->elf_begin(fd, ELF_C_READ_MMAP, NULL);
        const void *bytes = NULL;
        int size = elf ? dw->dwelf_elf_gnu_build_id(elf, &bytes) : 0;
        bool same = size > 0 && size == wanted_size && memcmp(bytes, wanted, (size_t)size) == 0;

        dw->elf_end(elf);
        return same;
}

/* A folder of @root and of the path up to its last slash, a second one in it, and a name. */
static int open_beside(char *path, const char *root, const char *file, const char *inner,
                       const char *name)
{
        struct sp_text text;

        sp_text_init(&text, path, PATH_MAX);
        sp_text_add(&text, "%s%.*s%s%s", root, (int)(strrchr(file, '/') + 1 - file), file, inner,
                    name);
        return text.cut ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* The places of gdb's manual, "Debugging Information in Separate Files". */
static int find_by_link(const struct sp_libdw *dw, Dwfl_Module *module, const char *file,
                        const char *link, char **found)
{
        static const struct {
                const char *root, *inner;
        } places[] = {{"", ""}, {"", ".debug/"}, {"/usr/lib/debug", ""}};
        const unsigned char *id;
        uint64_t unused;
        int size = dw->dwfl_module_build_id(module, &id, &unused);
        char path[PATH_MAX];

        if (size <= 0)
                return -1;
        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
                int fd = open_beside(path, places[i].root, file, places[i].inner, link);

                if (fd >= 0 && has_build_id(dw, fd, id, size) && (*found = strdup(path)))
                        return fd;
                if (fd >= 0)
                        close(fd);
        }
        return -1;
}

int sp_libdw_find_debuginfo(Dwfl_Module *module, void **user, const char *name, uint64_t base,
                            const char *file, const char *link, uint32_t sum, char **found)
{
        const struct sp_libdw *dw = sp_libdw();
        int fd = dw->dwfl_build_id_find_debuginfo(module, user, name, base, file, link, sum, found);

        if (fd >= 0 || !file || !link || !strrchr(file, '/'))
                return fd;
        return find_by_link(dw, module, file, link, found);
}
