/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_CONTEXT_H
#define SP_TRACK_CONTEXT_H

/*
 * Context -- which context, on which device, and with which pools
 *
 * A context is known by its handle and its id: the primary context keeps its
 * handle over a reset and is a new one all the same (D16). The program's
 * current context is asked for, never remembered: the runtime changes it
 * behind our back.
 *
 * Records are never freed, so a pointer to one stays good; `gone` says that it
 * is history. A process has few.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/model.h>

#include "base/table.h"
#include "driver/driver.h"
#include "stamp/stamp.h"
#include "track/range.h"

struct sp_stream;

#define SP_HOST_POOLS 16

/* Written once before publication: everything that is not atomic. */
struct sp_device {
        CUdevice ordinal;
        size_t total_bytes;
        bool has_vmm;
        bool has_rdma_vmm;
        bool has_shareable_vmm;         /* physical memory can be given to other processes */
        CUmemoryPool default_pool;      /* the driver's; NULL where it has no pools */
        spm_pool async_pool;            /* ours; 0: asynchronous memory is the driver's */
        struct sp_range range;          /* of that pool */
        _Atomic(spm_pool) current_pool; /* cuMemAllocAsync is served from it; 0: by the driver */
        struct spm_stats ended;         /* of pools that were destroyed; guarded as in mempool.c */
        atomic_bool primary_down;       /* counted in sp_primaries_down */
        _Atomic(uint64_t) unused;       /* free when route/room.c looked; 0: it has not yet */
        struct sp_device *next;
};

struct sp_context {
        CUcontext handle;
        unsigned long long id; /* the driver's; 0 where it has none */
        bool is_primary;
        struct sp_device *device;
        spm_context model;
        spm_stream legacy;
        spm_pool sync_pool;
        struct sp_range range;                      /* of that pool */
        _Atomic spm_pool host_pools[SP_HOST_POOLS]; /* pinned.c's; 0 until first used */
        _Atomic(CUstream) guard_stream;             /* route/guard.c's own; NULL until first used */
        struct sp_redzones *_Atomic redzones;       /* route/redzone.c's; NULL until first used */
        struct sp_stream *_Atomic legacy_stream;    /* stream.c's; NULL until first used */
        struct sp_stamper stamper;
        /* Nothing is pooled here: a green context, or one that could not be set up. */
        atomic_bool forward_only;
        /* A sticky error was seen: everything is the driver's from now on (L5). */
        atomic_bool poisoned;
        atomic_bool gone; /* destroyed */
        /* Of what is submitted (route/work.c): is the model told, can memory be touched from
         * outside, and was all done that this takes? When streams were last counted, in waits of
         * the program's. */
        atomic_bool is_watched, is_shared, is_apart;
        atomic_uint recount_gap, recount_waits;
        /* CLOCK_MONOTONIC, ns: waiting for all of its work; waiting for a moment. */
        _Atomic(uint64_t) in_vain_until, brief_until;
        /* Calls under way that may destroy it, and threads in a driver call of our own that uses
         * it: see sp_context_enter(). */
        atomic_uint ending, users;
        struct sp_context *next;
};

/** sp_context_note_green() - what has this handle is a green context: nothing is pooled in it. If
 * no record can be made of it now, nothing is in any but primary ones from then on, and
 * sp_context_may_be_green() is true. */
void sp_context_note_green(CUcontext handle);
bool sp_context_may_be_green(void);

/** sp_context_current() - the calling thread's, or NULL if it has none or we cannot follow it. */
struct sp_context *sp_context_current(void);

/** sp_context_of() - the record of a live context, made if need be; NULL as above. */
struct sp_context *sp_context_of(CUcontext handle);

/** sp_context_find() - the record of a context if there is one; makes no driver call but
 * cuCtxGetId. */
struct sp_context *sp_context_find(CUcontext handle);

/** sp_context_by_model() - the record behind a model handle, or NULL. */
struct sp_context *sp_context_by_model(spm_context model);

/** sp_context_by_pool() - the context whose synchronous pool this is, or NULL. */
struct sp_context *sp_context_by_pool(spm_pool pool);

/** sp_context_each() - newest first: pass NULL for the first; NULL after the last. */
struct sp_context *sp_context_each(struct sp_context *context);
struct sp_device *sp_device_each(struct sp_device *device);
struct sp_device *sp_device_of_ordinal(int ordinal);

/** sp_context_pools() - may memory of this context come from our pools now? */
static inline bool sp_context_pools(const struct sp_context *context)
{
        return !atomic_load_explicit(&context->forward_only, memory_order_relaxed) &&
               !atomic_load_explicit(&context->poisoned, memory_order_relaxed) &&
               !atomic_load_explicit(&context->ending, memory_order_relaxed) &&
               !atomic_load_explicit(&context->gone, memory_order_relaxed);
}

/*
 * A driver call of our own that uses the context, its streams or its events is made between these
 * two. The first is false when the context is being destroyed, and it is not destroyed between
 * them: what was destroyed a moment ago crashes the driver (P39).
 */
bool sp_context_enter(struct sp_context *context);
void sp_context_leave(struct sp_context *context);

/*
 * The driver is about to be told to end a context, which may be one that nobody has asked about
 * yet. Between these two no record of it is made, and one that was being made before is dropped:
 * who makes a record asks the driver first, and what it said is old by then.
 */
struct sp_ending {
        CUcontext handle; /* NULL: the primary one of @ordinal */
        CUdevice ordinal;
        struct sp_ending *next;
};
void sp_ending_begin(struct sp_ending *ending);
void sp_ending_finish(struct sp_ending *ending);

/** sp_context_begin_end() - the driver is about to be told to destroy it: waits until nobody is
 * between those two. */
void sp_context_begin_end(struct sp_context *context);

/** sp_context_finish_end() - Return: true once, for the caller that has to forget it.
 * @ended: it is destroyed */
bool sp_context_finish_end(struct sp_context *context, bool ended);

/*
 * Primary contexts that were reset and are not known again. Threads can have such a context
 * current, and then the driver refuses what we would allow.
 */
extern atomic_uint sp_primaries_down;

/** sp_context_lives() - does the driver still know it? False for NULL. */
bool sp_context_lives(const struct sp_context *context);

/** sp_context_note_result() - @result came from a call on @context: a sticky one poisons it. */
void sp_context_note_result(struct sp_context *context, CUresult result);

#endif
