/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runtime -- does a call come from NVIDIA's runtime library?
 *
 * A process has one as a rule, and two where its parts were built for different versions.
 * Their list is only added to, so whoever reads it takes no lock.
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

#define RUNTIMES_MAX 8
#define WALKS        16

enum { IDLE, STARTED, READY };

/* Written once, before the count says that it is there. */
static struct sp_runtime runtimes[RUNTIMES_MAX];

/* Atomic; guarded by lock when written: count. */
static atomic_uint count;
static atomic_int stage;
static _Atomic(const void *) other; /* the last caller that was none */
static struct sp_lock lock = SP_LOCK_INIT(SP_RANK_STACK);

static const struct sp_runtime *find_known(const void *address)
{
        unsigned int known = atomic_load_explicit(&count, memory_order_acquire);

        for (unsigned int i = 0; i < known; i++) {
                if (sp_runtime_has(&runtimes[i], address))
                        return &runtimes[i];
        }
        return NULL;
}

/* Whoever is told of one has an unwinder, too. */
const struct sp_runtime *sp_runtime_of(const void *address)
{
        return atomic_load_explicit(&stage, memory_order_acquire) == READY ? find_known(address)
                                                                           : NULL;
}

/* finding one */

struct search {
        uintptr_t inside;
        struct sp_runtime found;
};

/* Wheels put a checksum before the version: libcudart-d0da41ae.so.11.0. */
static bool is_runtimes(const char *path)
{
        const char *slash = strrchr(path, '/');

        return strncmp(slash ? slash + 1 : path, "libcudart", 9) == 0;
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
                if (info->dlpi_name && is_runtimes(info->dlpi_name))
                        search->found = (struct sp_runtime){begin, part->p_memsz};
                return 1;
        }
        return 0;
}

static void add(const struct sp_runtime *found)
{
        sp_lock_take(&lock);
        if (count < RUNTIMES_MAX && !find_known((const void *)found->begin)) { // NOLINT
                runtimes[count] = *found;
                atomic_store(&count, count + 1);
        }
        sp_lock_drop(&lock);
}

/* All of them lie in one stretch of addresses, and perhaps others, too. */
static void watch(void)
{
        uintptr_t begin = UINTPTR_MAX, end = 0;

        for (unsigned int i = 0; i < atomic_load(&count); i++) {
                const struct sp_runtime *runtime = &runtimes[i];

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
        else if (atomic_load(&count) && atomic_compare_exchange_strong(&stage, &started, IDLE) &&
                 sp_unwind_start(WALKS)) {
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
        struct search search = {.inside = (uintptr_t)caller};
        int kept = errno;

        if (caller == atomic_load_explicit(&other, memory_order_relaxed) || find_known(caller))
                return;
        dl_iterate_phdr(find, &search);
        if (search.found.size) {
                add(&search.found);
                begin_if_seen();
        } else {
                atomic_store_explicit(&other, caller, memory_order_relaxed);
        }
        errno = kept;
}
