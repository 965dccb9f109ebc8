/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runtime -- does a call come from NVIDIA's runtime library, and from whom behind it?
 *
 * A process has one as a rule, and two where its parts were built for different versions.
 * The lists are only added to, so whoever reads them takes no lock.
 */

#define _GNU_SOURCE

#include "track/runtime.h"

#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/lock.h"
#include "track/stack.h"
#include "track/unwind.h"

#define LIBRARIES_MAX 8 /* of a kind */
#define WALKS         16

enum { IDLE, STARTED, READY };

/* Where the code of a library is. */
struct range {
        uintptr_t begin;
        size_t size;
};

/* Atomic; guarded by lock when written: count. An entry is written before that says it is there. */
struct list {
        atomic_uint count;
        struct range range[LIBRARIES_MAX];
};

static struct list runtimes, allocators,
        others; /* the last: callers of runtimes that are neither */

/* Atomic. */
static atomic_int stage;
static _Atomic(const void *) other; /* the last who looked a function up and was none */
static struct sp_lock lock = SP_LOCK_INIT(SP_RANK_STACK);

static bool has(struct list *list, const void *address)
{
        unsigned int known = atomic_load_explicit(&list->count, memory_order_acquire);

        for (unsigned int i = 0; i < known; i++) {
                if ((uintptr_t)address - list->range[i].begin < list->range[i].size)
                        return true;
        }
        return false;
}

/* Whoever is told of one has an unwinder, too. */
bool sp_runtime_has(const void *address)
{
        return atomic_load_explicit(&stage, memory_order_acquire) == READY &&
               has(&runtimes, address);
}

bool sp_runtime_passes(const void *address)
{
        return has(&runtimes, address) || has(&allocators, address);
}

/* finding one */

struct search {
        uintptr_t inside;
        const char *name; /* its beginning. Wheels put a checksum before the version:
                           * libcudart-d0da41ae.so.11.0 */
        bool is_named;
        struct range found;
};

static bool begins_with(const char *path, const char *name)
{
        const char *slash = strrchr(path, '/');

        return strncmp(slash ? slash + 1 : path, name, strlen(name)) == 0;
}

static int find(struct dl_phdr_info *info, size_t size, void *argument)
{
        struct search *search = argument;

        (void)size;
        for (int i = 0; i < info->dlpi_phnum; i++) {
                const ElfW(Phdr) *part = &info->dlpi_phdr[i];
                uintptr_t begin = info->dlpi_addr + part->p_vaddr;

                if (part->p_type != PT_LOAD || search->inside - begin >= part->p_memsz)
                        continue;
                search->is_named = info->dlpi_name && begins_with(info->dlpi_name, search->name);
                search->found = (struct range){begin, part->p_memsz};
                return 1;
        }
        return 0;
}

static void add(struct list *list, const struct range *found)
{
        sp_lock_take(&lock);
        if (list->count < LIBRARIES_MAX && !has(list, (const void *)found->begin)) { // NOLINT
                list->range[list->count] = *found;
                atomic_store(&list->count, list->count + 1);
        }
        sp_lock_drop(&lock);
}

/* All of them lie in one stretch of addresses, and perhaps others, too. */
static void watch(void)
{
        uintptr_t begin = UINTPTR_MAX, end = 0;

        for (unsigned int i = 0; i < atomic_load(&runtimes.count); i++) {
                const struct range *runtime = &runtimes.range[i];

                begin = runtime->begin < begin ? runtime->begin : begin;
                end = runtime->begin + runtime->size > end ? runtime->begin + runtime->size : end;
        }
        if (begin < end)
                sp_stack_keep(begin, end - begin);
}

/* The unwinder is looked for when a runtime was seen in a process that is ours, by one thread.
 * Another that comes meanwhile leaves what it has added to that one. */
static void begin_if_seen(void)
{
        int started = STARTED;

        if (atomic_load(&stage) == READY)
                watch();
        else if (atomic_load(&runtimes.count) &&
                 atomic_compare_exchange_strong(&stage, &started, IDLE) && sp_unwind_start(WALKS)) {
                atomic_store(&stage, READY);
                watch();
        }
}

void sp_runtime_start(void)
{
        atomic_store(&stage, STARTED);
        begin_if_seen();
}

void sp_runtime_note(const void *caller)
{
        struct search search = {.inside = (uintptr_t)caller, .name = "libcudart"};
        int kept = errno;

        if (caller == atomic_load_explicit(&other, memory_order_relaxed) || has(&runtimes, caller))
                return;
        dl_iterate_phdr(find, &search);
        if (search.is_named) {
                add(&runtimes, &search.found);
                begin_if_seen();
        } else {
                atomic_store_explicit(&other, caller, memory_order_relaxed);
        }
        errno = kept;
}

bool sp_runtime_learn(const void *address)
{
        struct search search = {.inside = (uintptr_t)address, .name = "libc10_cuda"};
        int kept = errno;

        if (has(&others, address) || has(&allocators, address))
                return false;
        dl_iterate_phdr(find, &search);
        errno = kept;
        if (search.found.size)
                add(search.is_named ? &allocators : &others, &search.found);
        return has(&allocators, address);
}
