/* SPDX-License-Identifier: Apache-2.0 */

/*
 * On capture -- while a stream captures, we keep still
 *
 * Asking about an event, recording one in a context or freeing memory can
 * invalidate the program's capture, from any thread (3A of the interposition
 * notes). So the number of open captures is counted, and while it is not 0 the
 * pool serves nothing and asks nothing; frees wait in limbo (C6).
 *
 * What was freed on a stream before it captures is stamped before the capture
 * begins, because no real work can enter the stream until it ends (C5).
 *
 * A stream can be one that nobody knows: no record is made of a context while it may be
 * ended, by whichever thread, or without memory. Its captures count all the same, as the
 * context may be known a moment later, and then be asked for an event. If it ends with a
 * capture open, we keep still until the process ends.
 */

#include <stdlib.h>

#include "base/life.h"
#include "base/lock.h"
#include "route/perform.h"
#include "route/route.h"
#include "route/work.h"
#include "track/state.h"

/* A capture that is open on a stream without a record. */
struct stranger {
        struct stranger *next;
        CUstream handle;
        const void *thread; /* whose, of a per-thread stream; else NULL */
};

/* Per thread, because its address says whose a per-thread stream is. */
static __thread char me __attribute__((tls_model("initial-exec")));

/* Guarded by: the lock. */
static struct sp_lock lock = SP_LOCK_INIT(SP_RANK_CONTEXT);
static struct stranger *strangers;

static const void *thread_of(CUstream handle)
{
        return handle == CU_STREAM_PER_THREAD ? &me : NULL;
}

/* Without memory for it we keep still until the process ends. */
static void remember(CUstream handle)
{
        struct stranger *stranger = malloc(sizeof(*stranger));

        if (!stranger)
                return;
        stranger->handle = handle;
        stranger->thread = thread_of(handle);
        sp_lock_take(&lock);
        stranger->next = strangers;
        strangers = stranger;
        sp_lock_drop(&lock);
}

static struct stranger **find_locked(CUstream handle)
{
        struct stranger **at = &strangers;

        while (*at && ((*at)->handle != handle || (*at)->thread != thread_of(handle)))
                at = &(*at)->next;
        return at;
}

static bool is_stranger(CUstream handle)
{
        bool found;

        sp_lock_take(&lock);
        found = *find_locked(handle);
        sp_lock_drop(&lock);
        return found;
}

void sp_capture_forget(CUstream handle)
{
        struct stranger **at, *found;

        if (!sp_is_capturing())
                return;
        sp_lock_take(&lock);
        at = find_locked(handle);
        found = *at;
        if (found)
                *at = found->next;
        sp_lock_drop(&lock);
        if (found)
                atomic_fetch_sub(&sp_captures, 1);
        free(found);
}

struct beginning {
        bool is_counted;
        struct sp_stream *stream; /* NULL: the model has not been told */
};

static bool begin_in_model(struct sp_stream *stream)
{
        struct spm_actions actions;
        enum spm_status status;

        status = spm_capture_begin(sp_model_enter(), stream->model, &actions);
        sp_model_leave();
        if (status == SPM_OK)
                sp_perform(&actions, NULL);
        return status == SPM_OK;
}

static struct beginning start_capture(CUstream handle)
{
        struct sp_stream *stream = sp_life_is_on() ? sp_stream_of(handle) : NULL;
        struct beginning beginning = {.is_counted = false};

        if (!sp_life_is_on() || (stream && atomic_load(&stream->is_capturing)))
                return beginning;
        sp_work_blur();
        if (stream && begin_in_model(stream))
                beginning.stream = stream;
        /* From here on no thread asks the driver anything of its own, and none begins a count; one
         * that did since is worth nothing. */
        sp_quiet_end();
        sp_work_blur();
        beginning.is_counted = true;
        return beginning;
}

static void end_in_model(struct sp_stream *stream)
{
        spm_capture_end(sp_model_enter(), stream->model);
        sp_model_leave();
}

static CUresult finish_begin(struct beginning beginning, CUstream handle, CUresult result)
{
        struct sp_stream *stream = beginning.stream;

        if (!beginning.is_counted)
                return result;
        if (result == CUDA_SUCCESS && !stream) {
                remember(handle);
                return result;
        }
        if (result == CUDA_SUCCESS && !atomic_exchange(&stream->is_capturing, true))
                return result;
        if (stream)
                end_in_model(stream);
        atomic_fetch_sub(&sp_captures, 1);
        return result;
}

CUresult CUDAAPI sp_on_cuStreamBeginCapture(CUstream handle)
{
        struct beginning beginning = start_capture(handle);

        return finish_begin(beginning, handle, sp_driver.cuStreamBeginCapture(handle));
}

CUresult CUDAAPI sp_on_cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode)
{
        struct beginning beginning = start_capture(handle);

        return finish_begin(beginning, handle, sp_driver.cuStreamBeginCapture_v2(handle, mode));
}

#if CUDA_VERSION >= 12030
CUresult CUDAAPI sp_on_cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph,
                                                   const CUgraphNode *dependencies,
                                                   const CUgraphEdgeData *edges, size_t count,
                                                   CUstreamCaptureMode mode)
{
        struct beginning beginning = start_capture(handle);

        return finish_begin(beginning, handle,
                            sp_driver.cuStreamBeginCaptureToGraph(handle, graph, dependencies,
                                                                  edges, count, mode));
}
#endif

/* An invalidated capture ends with an error, and has ended all the same; a call on the wrong
 * thread or stream ends nothing. The stream itself knows. */
static bool still_captures(CUstream handle, CUresult result)
{
        CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

        return result != CUDA_SUCCESS && sp_driver.cuStreamIsCapturing &&
               sp_driver.cuStreamIsCapturing(handle, &status) == CUDA_SUCCESS &&
               status != CU_STREAM_CAPTURE_STATUS_NONE;
}

CUresult CUDAAPI sp_on_cuStreamEndCapture(CUstream handle, CUgraph *graph)
{
        struct sp_stream *stream = sp_life_is_on() ? sp_stream_of(handle) : NULL;
        bool was_capturing = stream && atomic_load(&stream->is_capturing);
        CUresult result = sp_driver.cuStreamEndCapture(handle, graph);

        if ((!was_capturing && !is_stranger(handle)) || still_captures(handle, result))
                return result;
        if (!was_capturing) {
                sp_capture_forget(handle);
        } else if (atomic_exchange(&stream->is_capturing, false)) {
                end_in_model(stream);
                atomic_fetch_sub(&sp_captures, 1);
        }
        return result;
}
