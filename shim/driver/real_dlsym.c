/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real dlsym -- finding the function that ours stands in front of
 *
 * It is the next one in the order in which the loader searches, which may be
 * that of another library that does what we do. We read the symbol tables of the
 * libraries behind us until one has it. Asking the loader would be shorter, but
 * dlsym() is ours, and dlvsym() passes by functions without a version, which is
 * what all others of our kind have; it is asked when the tables cannot be read.
 *
 * Look-ups happen while allocators and sanitizers start. So nothing here
 * allocates; and since a sanitizer stands in front of most string functions, and
 * of dl_iterate_phdr(), and cannot bear to be called then, this file compares by
 * itself and follows the loader's own list.
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <elf.h>
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

/* one library */

struct symbols {
        const ElfW(Sym) * table;
        const char *names;
        const uint32_t *hash; /* DT_GNU_HASH: defined symbols only */
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

/* The loader has made addresses of what the file holds, but not in every library (vdso). */
static const void *address_in(const struct link_map *map, ElfW(Addr) pointer)
{
        return (const void *)(pointer < map->l_addr ? pointer + map->l_addr : pointer);
}

static bool read_symbols(const struct link_map *map, struct symbols *symbols)
{
        *symbols = (struct symbols){0};
        for (const ElfW(Dyn) *entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
                if (entry->d_tag == DT_SYMTAB)
                        symbols->table = address_in(map, entry->d_un.d_ptr);
                else if (entry->d_tag == DT_STRTAB)
                        symbols->names = address_in(map, entry->d_un.d_ptr);
                else if (entry->d_tag == DT_GNU_HASH)
                        symbols->hash = address_in(map, entry->d_un.d_ptr);
        }
        return symbols->table && symbols->names && symbols->hash;
}

/* The table: nbuckets, symoffset, bloom_size, bloom_shift, bloom words, buckets, chain. */
static const ElfW(Sym) * find_symbol(const struct symbols *symbols, const char *name)
{
        const uint32_t *hash = symbols->hash;
        const uint32_t *buckets = hash + 4 + hash[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
        const uint32_t *chain = buckets + hash[0];
        uint32_t wanted = gnu_hash(name);
        uint32_t index = hash[0] ? buckets[wanted % hash[0]] : 0;

        if (index < hash[1])
                return NULL;
        for (;; index++) {
                const ElfW(Sym) *symbol = &symbols->table[index];
                uint32_t link = chain[index - hash[1]];

                if ((link | 1) == (wanted | 1) && symbol->st_value &&
                    is_equal(symbols->names + symbol->st_name, name))
                        return symbol;
                if (link & 1)
                        return NULL;
        }
}

/* all */

void *sp_real_dlsym_next(void)
{
        struct link_map *map = NULL;
        Dl_info info;

        if (!dladdr1(&sp_real_dlsym, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
                return NULL;
        while ((map = map->l_next)) {
                struct symbols symbols;
                const ElfW(Sym) * symbol;

                symbol = read_symbols(map, &symbols) ? find_symbol(&symbols, "dlsym") : NULL;
                if (symbol)
                        return (void *)(map->l_addr + symbol->st_value);
        }
        return NULL;
}

void *sp_real_dlsym_versioned(void)
{
        void *found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");

        return found ? found : dlvsym(RTLD_NEXT, "dlsym", SP_GLIBC_FIRST);
}

void *sp_real_dlsym_find(void)
{
        void *found = atomic_load_explicit(&sp_real_dlsym, memory_order_acquire);

        if (found)
                return found;
        found = sp_real_dlsym_next();
        if (!found)
                found = sp_real_dlsym_versioned();
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
