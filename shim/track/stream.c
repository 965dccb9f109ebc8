/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stream -- which of the model's streams does a handle mean, here and now?
 *
 * Per-thread streams are found through a list of the calling thread's own, one
 * entry a context it used. When the thread ends they are retired in the model,
 * like a stream that is destroyed, or a program with a thread for each piece of
 * its work would leave one behind with every one. Their work can still be
 * running (F5), and the driver may have ended its own part of the thread, so no
 * driver call is made: a stamp of the context covers what is left (U1).
 */

#include "track/stream.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>

#include "base/lock.h"
#include "base/thread.h"
#include "track/state.h"
#include "track/submit.h"

/*
 * Guarded by: table_lock. Both hold the streams that are not retired; explicit handles only in the
 * first. A retired record stays for a while: another thread may be on its way out of a call on it.
 */
static struct sp_stream *by_handle;
static struct sp_stream *by_model;
#define RETIRED_ROOM 256
static struct sp_stream *retired[RETIRED_ROOM];
static unsigned int retired_next;
/* Atomic. Threads that use what sp_stream_others() gave them. */
static atomic_uint others_users;
static struct sp_lock table_lock = SP_LOCK_INIT(SP_RANK_CONTEXT);

/* This thread's per-thread streams. Thread-local because that is what they are; initial-exec, so
 * that reading it never allocates. */
struct own_stream {
        struct sp_stream *stream;
        struct own_stream *next;
};
static _Thread_local struct own_stream *own_streams __attribute__((tls_model("initial-exec")));
static _Thread_local bool is_watched __attribute__((tls_model("initial-exec")));

static struct sp_stream *make(CUstream handle, struct sp_context *context,
                              enum spm_stream_kind kind)
{
        struct sp_stream *stream = calloc(1, sizeof(*stream));
        enum spm_status status;

        if (!stream)
                return NULL;
        stream->handle = handle;
        stream->context = context;
        stream->is_blocking = kind != SPM_STREAM_NON_BLOCKING;
        if (kind == SPM_STREAM_LEGACY) {
                stream->model = context->legacy;
                return stream;
        }
        status = spm_stream_add(sp_model_enter(), context->model, kind, &stream->model);
        sp_model_leave();
        if (status != SPM_OK) {
                free(stream);
                return NULL;
        }
        return stream;
}

/* Nobody has seen it, so nothing was told of it. */
static void unmake(struct sp_stream *stream)
{
        if (stream->handle != CU_STREAM_LEGACY) {
                (void)spm_stream_undo(sp_model_enter(), stream->model);
                sp_model_leave();
        }
        free(stream);
}

/* Return: false when the host has no memory for the tables. */
static bool publish_locked(struct sp_stream *stream, bool is_explicit)
{
        HASH_ADD(hh_model, by_model, model, sizeof(stream->model), stream);
        if (!stream->hh_model.tbl)
                return false;
        if (!is_explicit)
                return true;
        HASH_ADD_PTR(by_handle, handle, stream);
        if (!stream->hh.tbl)
                HASH_DELETE(hh_model, by_model, stream);
        return stream->hh.tbl != NULL;
}

static struct sp_stream *find_locked(CUstream handle)
{
        struct sp_stream *stream;

        HASH_FIND_PTR(by_handle, &handle, stream);
        return stream;
}

struct sp_stream *sp_stream_find(CUstream handle)
{
        struct sp_stream *stream;

        sp_lock_take(&table_lock);
        stream = find_locked(handle);
        sp_lock_drop(&table_lock);
        return stream;
}

/* Takes over @made; of two threads that register one handle the first wins. */
static struct sp_stream *publish(struct sp_stream *made)
{
        struct sp_stream *stream;

        if (!made)
                return NULL;
        sp_lock_take(&table_lock);
        stream = find_locked(made->handle);
        if (!stream)
                stream = publish_locked(made, true) ? made : NULL;
        sp_lock_drop(&table_lock);
        if (stream != made)
                unmake(made);
        return stream;
}

/* special handles */

static struct sp_stream *legacy_of(struct sp_context *context)
{
        struct sp_stream *stream = atomic_load(&context->legacy_stream), *made;

        if (stream)
                return stream;
        made = make(CU_STREAM_LEGACY, context, SPM_STREAM_LEGACY);
        if (!made)
                return NULL;
        sp_lock_take(&table_lock);
        stream = atomic_load(&context->legacy_stream);
        if (!stream && publish_locked(made, false)) {
                stream = made;
                atomic_store(&context->legacy_stream, stream);
        }
        sp_lock_drop(&table_lock);
        if (stream != made)
                unmake(made);
        return stream;
}

struct sp_stream *sp_stream_take_own(void)
{
        struct own_stream *own = own_streams;
        struct sp_stream *stream = own ? own->stream : NULL;

        if (own)
                own_streams = own->next;
        free(own);
        return stream;
}

void sp_stream_end_own(struct sp_stream *stream)
{
        sp_stream_forget(stream);
        free(stream);
}

void (*sp_stream_thread_ends)(void);

static void end_thread(void *unused)
{
        (void)unused;
        is_watched = false;
        if (sp_stream_thread_ends)
                sp_stream_thread_ends();
}

/* Will end_thread() be called at the end of this thread? */
static bool watch_thread(void)
{
        if (!is_watched)
                is_watched = sp_thread_at_end(end_thread, NULL);
        return is_watched;
}

static struct own_stream *make_own(struct sp_context *context)
{
        struct own_stream *own = calloc(1, sizeof(*own));
        bool published;

        if (!own)
                return NULL;
        own->stream = make(CU_STREAM_PER_THREAD, context, SPM_STREAM_PER_THREAD);
        if (!own->stream) {
                free(own);
                return NULL;
        }
        sp_lock_take(&table_lock);
        published = publish_locked(own->stream, false);
        sp_lock_drop(&table_lock);
        if (!published) {
                unmake(own->stream);
                free(own);
                return NULL;
        }
        return own;
}

/* Those of contexts that are gone go on the way. */
static struct sp_stream *own_of(struct sp_context *context)
{
        struct own_stream **at = &own_streams, *own;

        while ((own = *at) && own->stream->context != context)
                if (atomic_load(&own->stream->retired)) {
                        *at = own->next;
                        sp_stream_end_own(own->stream);
                        free(own);
                } else {
                        at = &own->next;
                }
        if (own)
                return own->stream;

        if (!watch_thread())
                return NULL;
        own = make_own(context);
        if (!own)
                return NULL;
        own->next = own_streams;
        own_streams = own;
        return own->stream;
}

static struct sp_stream *first_seen(CUstream handle)
{
        struct sp_context *context;
        unsigned int flags = 0;
        CUcontext owner;

        if (!sp_driver.cuStreamGetCtx || !sp_driver.cuStreamGetFlags ||
            sp_driver.cuStreamGetCtx(handle, &owner) != CUDA_SUCCESS || !owner ||
            sp_driver.cuStreamGetFlags(handle, &flags) != CUDA_SUCCESS)
                return NULL;
        context = sp_context_of(owner);
        if (!context)
                return NULL;
        return publish(make(handle, context,
                            flags & CU_STREAM_NON_BLOCKING ? SPM_STREAM_NON_BLOCKING
                                                           : SPM_STREAM_BLOCKING));
}

struct sp_stream *sp_stream_of(CUstream handle)
{
        struct sp_context *context;
        struct sp_stream *stream;

        if (handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD) {
                stream = sp_stream_find(handle);
                return stream ? stream : first_seen(handle);
        }
        context = sp_context_current();
        if (!context)
                return NULL;
        return handle == CU_STREAM_LEGACY ? legacy_of(context) : own_of(context);
}

static void made_in(CUstream handle, struct sp_context *context, unsigned int flags)
{
        struct sp_stream *stale = sp_stream_find(handle);

        /* A destroy call we did not see: the name means a new stream now. */
        if (stale)
                sp_stream_forget(stale);
        sp_submit_forget_stream(handle);
        if (context)
                publish(make(handle, context,
                             flags & CU_STREAM_NON_BLOCKING ? SPM_STREAM_NON_BLOCKING
                                                            : SPM_STREAM_BLOCKING));
}

void sp_stream_made(CUstream handle, unsigned int flags)
{
        made_in(handle, sp_context_current(), flags);
}

void sp_stream_made_in(CUstream handle, CUcontext owner, unsigned int flags)
{
        made_in(handle, sp_context_of(owner), flags);
}

bool sp_stream_captures(const struct sp_stream *stream)
{
        CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

        /* A stream can be drawn into a capture by an event, so its own flag is not enough. The
         * legacy stream never captures, and must not be asked while another one does. */
        if (!sp_is_capturing() || stream->handle == CU_STREAM_LEGACY ||
            !sp_driver.cuStreamIsCapturing)
                return false;
        return sp_driver.cuStreamIsCapturing(stream->handle, &status) != CUDA_SUCCESS ||
               status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* Nobody needs the lock to end the use of a stream, so waiting for that with it held is safe. */
static bool is_in_use(const struct sp_stream *stream)
{
        return stream && (atomic_load(&stream->users) || atomic_load(&stream->forgetters));
}

static void forget_locked(struct sp_stream *stream)
{
        if (atomic_exchange(&stream->retired, true))
                return;
        sp_epoch_end();
        if (stream->hh.tbl)
                HASH_DEL(by_handle, stream);
        HASH_DELETE(hh_model, by_model, stream);
        if (atomic_exchange(&stream->is_capturing, false))
                atomic_fetch_sub(&sp_captures, 1);
        /* Default streams stay: a context or a thread points to them. */
        if (stream->handle == CU_STREAM_LEGACY || stream->handle == CU_STREAM_PER_THREAD)
                return;
        while (is_in_use(retired[retired_next]))
                retired_next = (retired_next + 1) % RETIRED_ROOM;
        free(retired[retired_next]);
        retired[retired_next] = stream;
        retired_next = (retired_next + 1) % RETIRED_ROOM;
}

/* Nobody finds it any more; whoever did is in a driver call that does not wait for anything. */
void sp_stream_forget(struct sp_stream *stream)
{
        sp_lock_take(&table_lock);
        atomic_fetch_add(&stream->forgetters, 1);
        forget_locked(stream);
        sp_lock_drop(&table_lock);
        while (atomic_load(&stream->users) || atomic_load(&others_users))
                sched_yield();
        atomic_fetch_sub(&stream->forgetters, 1);
}

void sp_stream_forget_context(struct sp_context *context)
{
        struct sp_stream *stream, *next;

        sp_lock_take(&table_lock);
        HASH_ITER (hh_model, by_model, stream, next)
                if (stream->context == context)
                        forget_locked(stream);
        sp_lock_drop(&table_lock);
}

CUstream sp_stream_handle(spm_stream model)
{
        struct sp_stream *stream;
        CUstream handle;

        sp_lock_take(&table_lock);
        HASH_FIND(hh_model, by_model, &model, sizeof(model), stream);
        handle = stream ? stream->handle : NULL;
        sp_lock_drop(&table_lock);
        return handle;
}

struct sp_stream *sp_stream_enter(spm_stream model)
{
        struct sp_stream *stream;

        if (!sp_quiet_enter())
                return NULL;
        sp_lock_take(&table_lock);
        HASH_FIND(hh_model, by_model, &model, sizeof(model), stream);
        if (stream)
                atomic_fetch_add(&stream->users, 1);
        sp_lock_drop(&table_lock);
        if (stream && sp_context_enter(stream->context))
                return stream;
        if (stream)
                atomic_fetch_sub(&stream->users, 1);
        sp_quiet_leave();
        return NULL;
}

void sp_stream_leave(struct sp_stream *stream)
{
        sp_context_leave(stream->context);
        atomic_fetch_sub(&stream->users, 1);
        sp_quiet_leave();
}

CUstream *sp_stream_others(struct sp_context *context, unsigned int *count)
{
        unsigned int room, filled = 0;
        struct sp_stream *stream, *next;
        CUstream *others;

        atomic_fetch_add(&others_users, 1);
        sp_lock_take(&table_lock);
        room = HASH_CNT(hh_model, by_model);
        others = calloc(room + 1, sizeof(CUstream));
        HASH_ITER (hh_model, by_model, stream, next)
                if (others && stream->context == context && !stream->is_blocking)
                        others[filled++] = stream->handle;
        sp_lock_drop(&table_lock);
        *count = others ? filled : UINT_MAX;
        return others;
}

void sp_stream_others_end(CUstream *others)
{
        atomic_fetch_sub(&others_users, 1);
        free(others);
}
