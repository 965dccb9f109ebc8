/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Export -- blocks that other processes may open
 *
 * What the opener needs lies in one file without a name, the table, which it
 * opens through /proc; descriptors of physical memory it takes from us with
 * pidfd_getfd(2). So nobody here has to answer: a socket would want a thread that
 * serves it, and a thread of ours is in the way of fork, exit and checkpoints.
 * The price is the permission to take a descriptor out of a process, which is
 * that of a debugger: same user, one pid namespace, and where Yama guards it a
 * word from us (PR_SET_PTRACER), which lets others look into the process. It is
 * given when the first such block is exported and not before. Where the call is
 * not to be had (before Linux 5.6, or where a container filters it out, as Docker
 * does by default), a thread there must be, and it hands out the table as well
 * (porter.c).
 *
 * A part of plain cuMemAlloc memory is exported by the driver's own handle of the
 * whole and an offset, and needs the table only.
 *
 * A record is wiped before what it names is closed. An opener looks at the key
 * once more after it has taken the descriptors, so it has those of this block or
 * none. Places in the table are used again; it grows to the most that was
 * exported at once.
 */

#define _GNU_SOURCE /* memfd_create() */

#include "track/export.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/log.h"
#include "track/backing.h"
#include "track/porter.h"

/* Of a block that is exported, or, with no address, a place in the table that is free. */
struct export
{
        uint64_t address;
        uint64_t generation;
        spm_pool pool;
        size_t room; /* parts that have a place */
        struct sp_seal seal;
        struct export *next;
};

/* Guarded by: export_lock. Records are never freed. */
static struct export *exports;
static int table = -1;
static uint64_t table_end;
static struct sp_lock export_lock = SP_LOCK_INIT(SP_RANK_EXPORT);

/* how do descriptors get to others? */

/* A filter answers before the kernel looks at the descriptor, which is none. */
static bool can_be_taken(void)
{
        static atomic_int known; /* 0: not asked yet, 1: yes, 2: no */
        int answer = atomic_load_explicit(&known, memory_order_relaxed), saved = errno;

        if (!answer) {
                answer = syscall(SYS_pidfd_getfd, -1, 0, 0) < 0 && errno == EBADF ? 1 : 2;
                errno = saved;
                atomic_store(&known, answer);
        }
        return answer == 1;
}

/* Return: false if there is no way. @porter: return argument, 0 if descriptors can be taken. */
static bool let_others_in(uint64_t *porter)
{
        static atomic_flag said = ATOMIC_FLAG_INIT;

        *porter = 0;
        if (!can_be_taken()) {
                *porter = sp_porter_start();
                return *porter;
        }
        /* Where Yama guards processes, it asks them what they allow. */
        if (!atomic_flag_test_and_set(&said))
                prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
        return true;
}

bool sp_export_can(const struct spm_allocation *block)
{
        const struct sp_segment *segment = block->cookie;

        return sp_backing_is_native(segment) ||
               (!sp_backing_is_pinned(segment) && segment->device->has_shareable_vmm);
}

/* records */

static struct export *find_locked(const struct spm_allocation *block)
{
        struct export *at = exports;

        while (at && (at->address != block->address || at->generation != block->generation))
                at = at->next;
        return at;
}

static bool find_seal(const struct spm_allocation *block, struct sp_seal *seal)
{
        const struct export *found;

        sp_lock_take(&export_lock);
        found = find_locked(block);
        if (found)
                *seal = found->seal;
        sp_lock_drop(&export_lock);
        return found;
}

/* A free place for so many parts, or a new one at the end; NULL if the host has no memory. */
static struct export *take_place_locked(size_t count)
{
        struct export *at = exports;

        while (at && (at->address || at->room < count))
                at = at->next;
        if (at)
                return at;
        at = calloc(1, sizeof(*at));
        if (!at)
                return NULL;
        at->room = count;
        at->seal.at = table_end;
        at->next = exports;
        exports = at;
        table_end += sizeof(struct sp_seal_record) + count * sizeof(struct sp_seal_part);
        return at;
}

static bool write_at(uint64_t at, const void *bytes, size_t count)
{
        return pwrite(table, bytes, count, (off_t)at) == (ssize_t)count;
}

static bool open_table_locked(void)
{
        if (table < 0)
                table = memfd_create("streampool-ipc", MFD_CLOEXEC);
        return table >= 0;
}

/* Parts first: the key makes the record good. */
static bool write_record_locked(struct export *export, struct sp_seal_record *record,
                                const struct sp_seal_part *parts)
{
        struct sp_seal *seal = &export->seal;

        memcpy(seal->word, SP_SEAL_WORD, sizeof(seal->word));
        seal->process = getpid();
        seal->table = table;
        if (getrandom(seal->key, sizeof(seal->key), 0) != (ssize_t)sizeof(seal->key))
                return false;
        memcpy(record->key, seal->key, sizeof(seal->key));
        return write_at(seal->at + sizeof(*record), parts, record->count * sizeof(*parts)) &&
               write_at(seal->at, record, sizeof(*record));
}

/* Return: false if the host has nothing to keep it in. Another thread may have been faster. */
static bool enter(const struct spm_allocation *block, struct sp_seal_record *record,
                  const struct sp_seal_part *parts, uint64_t porter, struct sp_seal *seal)
{
        struct export *export;

        sp_lock_take(&export_lock);
        export = find_locked(block);
        if (!export && open_table_locked()) {
                export = take_place_locked(record->count);
                if (export)
                        export->seal.porter = porter;
                if (export && !write_record_locked(export, record, parts))
                        export = NULL;
                if (export) {
                        export->address = block->address;
                        export->generation = block->generation;
                        export->pool = block->pool;
                }
        }
        if (export)
                *seal = export->seal;
        sp_lock_drop(&export_lock);
        return export;
}

static void wipe_locked(struct export *export)
{
        static const unsigned char none[sizeof(export->seal.key)];

        write_at(export->seal.at, none, sizeof(none));
        export->address = 0;
}

/* blocks */

static CUresult describe_native(const struct spm_allocation *block, struct sp_seal_record *record)
{
        record->offset = block->address - block->segment_base;
        return sp_driver.cuIpcGetMemHandle(&record->native, block->segment_base);
}

static CUresult describe_mapped(const struct spm_allocation *block, struct sp_seal_record *record,
                                struct sp_seal_part **parts)
{
        struct sp_backing_part *found = NULL;
        size_t count = 0;
        CUresult result = sp_backing_export(block->address, block->size, &found, &count);

        if (result != CUDA_SUCCESS)
                return result;
        *parts = count && count <= SP_SEAL_PARTS ? calloc(count, sizeof(**parts)) : NULL;
        for (size_t i = 0; *parts && i < count; i++)
                (*parts)[i] = (struct sp_seal_part){
                        .descriptor = found[i].descriptor,
                        .bytes = found[i].size,
                };
        if (*parts) {
                record->count = count;
                record->offset = block->address - found[0].base;
        }
        free(found);
        return *parts ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sp_export_seal(const struct spm_allocation *block, CUipcMemHandle *handle)
{
        struct sp_seal_record record = {.size = block->size};
        struct sp_seal_part *parts = NULL;
        struct sp_seal seal;
        CUresult result = CUDA_SUCCESS;

        if (!find_seal(block, &seal)) {
                uint64_t porter = 0;

                if (!sp_backing_is_native(block->cookie) && !let_others_in(&porter))
                        return CUDA_ERROR_OPERATING_SYSTEM;
                result = sp_backing_is_native(block->cookie)
                                 ? describe_native(block, &record)
                                 : describe_mapped(block, &record, &parts);
                if (result == CUDA_SUCCESS && !enter(block, &record, parts, porter, &seal))
                        result = CUDA_ERROR_OUT_OF_MEMORY;
                free(parts);
        }
        if (result != CUDA_SUCCESS)
                return result;
        memset(handle, 0, sizeof(*handle));
        memcpy(handle, &seal, sizeof(seal));
        return CUDA_SUCCESS;
}

/* Not closed by an end of the block that comes now: that waits for the lock. */
int sp_export_descriptor(const struct sp_seal *seal, uint32_t part)
{
        struct sp_seal_record record;
        struct sp_seal_part found = {.descriptor = -1};
        int copy = -1;

        sp_lock_take(&export_lock);
        if (pread(table, &record, sizeof(record), (off_t)seal->at) == sizeof(record) &&
            !memcmp(record.key, seal->key, sizeof(record.key))) {
                off_t at = (off_t)(seal->at + sizeof(record) + part * sizeof(found));

                if (part == SP_PORTER_TABLE)
                        copy = fcntl(table, F_DUPFD_CLOEXEC, 0);
                else if (part < record.count &&
                         pread(table, &found, sizeof(found), at) == sizeof(found))
                        copy = fcntl(found.descriptor, F_DUPFD_CLOEXEC, 0);
        }
        sp_lock_drop(&export_lock);
        return copy;
}

bool sp_export_is_own(const struct sp_seal *seal)
{
        const struct export *at;

        if (seal->process != getpid())
                return false;
        sp_lock_take(&export_lock);
        at = exports;
        while (at && memcmp(at->seal.key, seal->key, sizeof(seal->key)) != 0)
                at = at->next;
        sp_lock_drop(&export_lock);
        return at;
}

void sp_export_end(const struct spm_allocation *block)
{
        struct export *found;

        assert(sp_lock_held() == SP_RANK_MODEL);
        sp_lock_take(&export_lock);
        found = find_locked(block);
        if (found)
                wipe_locked(found);
        sp_lock_drop(&export_lock);
}

void sp_export_end_pool(spm_pool pool)
{
        sp_lock_take(&export_lock);
        for (struct export *at = exports; at; at = at->next)
                if (at->address && at->pool == pool)
                        wipe_locked(at);
        sp_lock_drop(&export_lock);
}
