/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Import -- sealed blocks of other processes that are open here
 *
 * The chunks behind a block are mapped whole and in order at addresses of their
 * own; the block begins somewhere in the first. The mapping is what keeps the
 * memory: descriptors and handles are let go at once, and the exporter may free
 * the block, or end.
 *
 * The order in which the exporter is looked at: first a handle of the process,
 * then its table. If the key is right there, the exporter lived at that moment
 * under that number, and had it when the handle of the process was taken. Then
 * the descriptors, and the key once more (export.c). A porter answers for itself.
 */

#include "track/import.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/log.h"
#include "track/porter.h"
#include "track/range.h"

struct sp_import {
        CUdeviceptr address; /* of the block */
        size_t size;         /* of it, as its exporter asked for */
        CUdeviceptr mapping; /* of all chunks; of plain memory what the driver opened */
        size_t mapped;       /* 0: plain memory */
        unsigned char key[16];
        struct sp_context *context;
        unsigned int opened; /* 0: closed, and not swept yet */
        struct sp_import *next;
};

/* Guarded by: import_lock. */
static struct sp_import *imports;
static struct sp_lock import_lock = SP_LOCK_INIT(SP_RANK_CONTEXT);

/* Most processes have none, and ask about every pointer. */
static atomic_uint import_count;

/* the exporter */

struct exporter {
        const struct sp_seal *seal;
        int process; /* its pidfd, or a connection to its porter */
        int table;
        struct sp_seal_record record;
        struct sp_seal_part *parts;
};

static bool read_at(int file, uint64_t at, void *bytes, size_t count)
{
        return pread(file, bytes, count, (off_t)at) == (ssize_t)count;
}

static bool key_is_right(const struct exporter *exporter)
{
        unsigned char key[sizeof(exporter->seal->key)];

        return read_at(exporter->table, exporter->seal->at, key, sizeof(key)) &&
               !memcmp(key, exporter->seal->key, sizeof(key));
}

static bool read_record(struct exporter *exporter)
{
        struct sp_seal_record *record = &exporter->record;
        uint64_t at = exporter->seal->at;
        size_t bytes;

        if (!read_at(exporter->table, at, record, sizeof(*record)) ||
            memcmp(record->key, exporter->seal->key, sizeof(record->key)) != 0 ||
            record->count > SP_SEAL_PARTS)
                return false;
        bytes = record->count * sizeof(*exporter->parts);
        exporter->parts = malloc(bytes + 1);
        return exporter->parts &&
               read_at(exporter->table, at + sizeof(*record), exporter->parts, bytes);
}

static void leave_exporter(struct exporter *exporter)
{
        if (exporter->process >= 0)
                close(exporter->process);
        if (exporter->table >= 0)
                close(exporter->table);
        free(exporter->parts);
}

/* Return: 0, or an errno that says why not; ESTALE if it is not the exporter's any more. */
static int meet_exporter(struct exporter *exporter, const struct sp_seal *seal)
{
        char path[64];
        int error = 0;

        *exporter = (struct exporter){.seal = seal, .table = -1};
        if (seal->porter) {
                exporter->process = sp_porter_meet(seal);
                exporter->table = exporter->process < 0
                                          ? -1
                                          : sp_porter_ask(exporter->process, seal, SP_PORTER_TABLE);
        } else {
                exporter->process = (int)syscall(SYS_pidfd_open, seal->process, 0);
                snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)seal->process,
                         (int)seal->table);
                exporter->table = open(path, O_RDONLY | O_CLOEXEC);
        }
        if (exporter->table < 0)
                error = errno;
        else if (!read_record(exporter))
                error = ESTALE;
        if (error)
                leave_exporter(exporter);
        return error;
}

/* What a person can do about it. */
static CUresult out_of_reach(const struct sp_seal *seal, int error)
{
        bool is_gone =
                error == ESTALE || error == ENOENT || error == ESRCH || error == ECONNREFUSED;

        sp_log(SP_LOG_WARNING, "memory of process %d cannot be opened: %s", (int)seal->process,
               is_gone ? "it was freed, or the process ended, or it has another number here"
                       : "this process may not look into that one; STREAMPOOL_BACKING=native "
                         "there needs less");
        return CUDA_ERROR_INVALID_HANDLE;
}

/* mapped memory */

static int take_descriptor(const struct exporter *exporter, uint32_t i)
{
        return exporter->seal->porter ? sp_porter_ask(exporter->process, exporter->seal, i)
                                      : (int)syscall(SYS_pidfd_getfd, exporter->process,
                                                     exporter->parts[i].descriptor, 0);
}

static CUresult map_part(CUdeviceptr address, const struct exporter *exporter, uint32_t i)
{
        int file = take_descriptor(exporter, i);
        CUmemGenericAllocationHandle handle;
        CUresult result;

        if (file < 0)
                return out_of_reach(exporter->seal, errno == EBADF ? ESTALE : errno);
        result = sp_driver.cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)file,
                                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        close(file);
        if (result != CUDA_SUCCESS)
                return result;
        result = sp_driver.cuMemMap(address, exporter->parts[i].bytes, 0, handle, 0);
        sp_driver.cuMemRelease(handle);
        return result;
}

static CUresult map_parts(struct sp_import *import, const struct exporter *exporter, size_t *done)
{
        CUmemAccessDesc access = {
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
                             .id = import->context->device->ordinal},
                .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };

        for (uint32_t i = 0; i < exporter->record.count; i++) {
                CUresult result = map_part(import->mapping + *done, exporter, i);

                if (result != CUDA_SUCCESS)
                        return result;
                *done += exporter->parts[i].bytes;
        }
        if (!key_is_right(exporter))
                return out_of_reach(exporter->seal, ESTALE);
        return sp_driver.cuMemSetAccess(import->mapping, import->mapped, &access, 1);
}

static CUresult map(struct sp_import *import, const struct exporter *exporter)
{
        size_t done = 0;
        CUresult result;

        for (size_t i = 0; i < exporter->record.count; i++)
                import->mapped += exporter->parts[i].bytes;
        result = sp_driver.cuMemAddressReserve(&import->mapping, import->mapped, SP_GRAIN, 0, 0);
        if (result != CUDA_SUCCESS)
                return result;
        result = map_parts(import, exporter, &done);
        if (result == CUDA_SUCCESS)
                return result;
        if (done)
                sp_driver.cuMemUnmap(import->mapping, done);
        sp_driver.cuMemAddressFree(import->mapping, import->mapped);
        return result;
}

static void unmap(const struct sp_import *import)
{
        if (!import->mapped) {
                sp_driver.cuIpcCloseMemHandle(import->mapping);
                return;
        }
        if (sp_driver.cuMemUnmap(import->mapping, import->mapped) == CUDA_SUCCESS)
                sp_driver.cuMemAddressFree(import->mapping, import->mapped);
}

/* Not only forwarded: the older function is all that an old driver has. */
static CUresult open_native(struct sp_import *import, CUipcMemHandle handle, unsigned int flags)
{
        return sp_driver.cuIpcOpenMemHandle_v2
                       ? sp_driver.cuIpcOpenMemHandle_v2(&import->mapping, handle, flags)
                       : sp_driver.cuIpcOpenMemHandle(&import->mapping, handle, flags);
}

static CUresult bring_in(struct sp_import *import, const struct sp_seal *seal, unsigned int flags)
{
        struct exporter exporter;
        int error = meet_exporter(&exporter, seal);
        CUresult result;

        if (error)
                return out_of_reach(seal, error);
        result = exporter.record.count ? map(import, &exporter)
                                       : open_native(import, exporter.record.native, flags);
        import->address = import->mapping + exporter.record.offset;
        import->size = exporter.record.size;
        leave_exporter(&exporter);
        return result;
}

/* what is open */

static bool open_again(const unsigned char *key, const struct sp_context *context,
                       CUdeviceptr *address)
{
        struct sp_import *at;

        sp_lock_take(&import_lock);
        at = imports;
        while (at && (!at->opened || at->context != context ||
                      memcmp(at->key, key, sizeof(at->key)) != 0))
                at = at->next;
        if (at) {
                at->opened++;
                *address = at->address;
        }
        sp_lock_drop(&import_lock);
        return at;
}

static void enlist(struct sp_import *import)
{
        sp_lock_take(&import_lock);
        import->next = imports;
        imports = import;
        atomic_fetch_add(&import_count, 1);
        sp_lock_drop(&import_lock);
}

CUresult sp_import_open(const struct sp_seal *seal, struct sp_context *context, unsigned int flags,
                        CUdeviceptr *address)
{
        struct sp_import *import;
        CUresult result;

        if (open_again(seal->key, context, address))
                return CUDA_SUCCESS;
        import = calloc(1, sizeof(*import));
        if (!import)
                return CUDA_ERROR_OUT_OF_MEMORY;
        memcpy(import->key, seal->key, sizeof(import->key));
        import->context = context;
        import->opened = 1;
        result = bring_in(import, seal, flags);
        if (result != CUDA_SUCCESS) {
                free(import);
                return result;
        }
        /* Two threads that open it at once have an address each, and close each its own. */
        *address = import->address;
        enlist(import);
        return CUDA_SUCCESS;
}

static struct sp_import *find_locked(CUdeviceptr pointer, bool at_start)
{
        struct sp_import *at = imports;

        while (at && (!at->opened ||
                      (at_start ? pointer != at->address : pointer - at->address >= at->size)))
                at = at->next;
        return at;
}

bool sp_import_find(CUdeviceptr pointer, CUdeviceptr *address, size_t *size,
                    struct sp_context **context)
{
        const struct sp_import *found;

        if (!atomic_load_explicit(&import_count, memory_order_relaxed))
                return false;
        sp_lock_take(&import_lock);
        found = find_locked(pointer, false);
        if (found) {
                *address = found->address;
                *size = found->size;
                *context = found->context;
        }
        sp_lock_drop(&import_lock);
        return found;
}

bool sp_import_close(CUdeviceptr address)
{
        struct sp_import *found;

        sp_lock_take(&import_lock);
        found = find_locked(address, true);
        if (found)
                found->opened--;
        sp_lock_drop(&import_lock);
        return found;
}

static struct sp_import *take(const struct sp_context *context, bool all)
{
        struct sp_import *taken = NULL, **link = &imports;

        sp_lock_take(&import_lock);
        while (*link) {
                struct sp_import *at = *link;

                if (at->context != context || (at->opened && !all)) {
                        link = &at->next;
                        continue;
                }
                *link = at->next;
                at->next = taken;
                taken = at;
                atomic_fetch_sub(&import_count, 1);
        }
        sp_lock_drop(&import_lock);
        return taken;
}

struct sp_import *sp_import_take_closed(const struct sp_context *context)
{
        return take(context, false);
}

void sp_import_sweep(struct sp_import *list)
{
        while (list) {
                struct sp_import *import = list;

                list = import->next;
                unmap(import);
                free(import);
        }
}

void sp_import_put_back(struct sp_import *list)
{
        while (list) {
                struct sp_import *import = list;

                list = import->next;
                enlist(import);
        }
}

void sp_import_forget(const struct sp_context *context)
{
        struct sp_import *list = take(context, true);

        while (list) {
                struct sp_import *import = list;

                list = import->next;
                /* What the driver opened went with the context. */
                if (import->mapped)
                        unmap(import);
                free(import);
        }
}
