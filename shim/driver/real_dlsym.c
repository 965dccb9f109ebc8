/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real dlsym -- finding the function that ours stands in front of
 *
 * dlvsym() finds it by version: the loader offers no other way to ask for
 * "the next dlsym" once dlsym itself is ours. The versions are those under which
 * glibc has exported it, the likelier one first: a look-up that fails makes the
 * loader allocate its error message, and we may be inside an allocator's start.
 *
 * If no version fits, the symbol tables of the C library are read directly.
 *
 * We may be inside a sanitizer's start too. It stands in front of most of the
 * string functions of the C library and cannot bear to be called then; so this
 * file compares and counts by itself.
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <elf.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/glibc.h"
#include "driver/lookup.h"

_Atomic(void *) sp_real_dlsym;

static void *find_nothing(void *handle, const char *name)
{
        (void)handle;
        (void)name;
        return NULL;
}

/* Older than 2.34? The version is "2.36". */
static bool is_old_glibc(void)
{
        const char *digit = gnu_get_libc_version() + 2;
        int minor = 0;

        for (; *digit >= '0' && *digit <= '9'; digit++)
                minor = minor * 10 + (*digit - '0');
        return minor < 34;
}

static void *find_by_version(void)
{
        static const char *const versions[] = {"GLIBC_2.34", SP_GLIBC_FIRST};
        bool is_old = is_old_glibc();
        void *found = dlvsym(RTLD_NEXT, "dlsym", versions[is_old]);

        return found ? found : dlvsym(RTLD_NEXT, "dlsym", versions[!is_old]);
}

/* the walk */

struct symbols {
        const ElfW(Sym) * table;
        const char *names;
        const uint32_t *hash; /* DT_GNU_HASH */
};

static bool is_equal(const char *a, const char *b)
{
        while (*a && *a == *b) {
                a++;
                b++;
        }
        return *a == *b;
}

static uint32_t gnu_hash(const char *name)
{
        uint32_t hash = 5381;

        for (; *name; name++)
                hash = hash * 33 + (unsigned char)*name;
        return hash;
}

/* nbuckets, symoffset, bloom_size, bloom_shift, bloom words, buckets, chain; see DT_GNU_HASH. */
static const ElfW(Sym) * find_symbol(const struct symbols *symbols, const char *name)
{
        const uint32_t *hash = symbols->hash;
        const uint32_t *buckets = hash + 4 + hash[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
        const uint32_t *chain = buckets + hash[0];
        uint32_t wanted = gnu_hash(name);
        uint32_t index = buckets[wanted % hash[0]];

        if (index < hash[1])
                return NULL;
        for (;; index++) {
                uint32_t link = chain[index - hash[1]];

                if ((link | 1) == (wanted | 1) &&
                    is_equal(symbols->names + symbols->table[index].st_name, name))
                        return &symbols->table[index];
                if (link & 1)
                        return NULL;
        }
}

static bool is_c_library(const char *path)
{
        const char *base = path;

        for (; *path; path++) {
                if (*path == '/')
                        base = path + 1;
        }
        return is_equal(base, "libc.so.6") || is_equal(base, "libdl.so.2");
}

/* Looks into one loaded object; ends the walk when it has the function. */
static int visit(struct dl_phdr_info *object, size_t size, void *argument)
{
        struct symbols symbols = {0};
        const ElfW(Dyn) *dynamic = NULL;
        const ElfW(Sym) * symbol;
        void **found = argument;

        (void)size;
        if (!object->dlpi_name || !is_c_library(object->dlpi_name))
                return 0;
        for (int i = 0; i < object->dlpi_phnum; i++) {
                if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
                        dynamic = (const void *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
        }
        for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
                if (dynamic->d_tag == DT_SYMTAB)
                        symbols.table = (const void *)dynamic->d_un.d_ptr;
                else if (dynamic->d_tag == DT_STRTAB)
                        symbols.names = (const void *)dynamic->d_un.d_ptr;
                else if (dynamic->d_tag == DT_GNU_HASH)
                        symbols.hash = (const void *)dynamic->d_un.d_ptr;
        }
        if (!symbols.table || !symbols.names || !symbols.hash)
                return 0;
        symbol = find_symbol(&symbols, "dlsym");
        if (!symbol || symbol->st_shndx == SHN_UNDEF)
                return 0;
        *found = (void *)(object->dlpi_addr + symbol->st_value);
        return 1;
}

void *sp_real_dlsym_walk(void)
{
        void *found = NULL;

        dl_iterate_phdr(visit, &found);
        return found;
}

/* both */

void *sp_real_dlsym_find(void)
{
        void *found = atomic_load_explicit(&sp_real_dlsym, memory_order_acquire);

        if (found)
                return found;
        found = find_by_version();
        if (!found)
                found = sp_real_dlsym_walk();
        if (!found)
                found = (void *)find_nothing;
        /* Threads that race here have found the same. */
        atomic_store_explicit(&sp_real_dlsym, found, memory_order_release);
        return found;
}

void *sp_dlsym(void *handle, const char *name)
{
        void *(*real)(void *, const char *) = (void *(*)(void *, const char *))sp_real_dlsym_find();

        return real(handle, name);
}
