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
 */

#include "base/life.h"
#include "route/perform.h"
#include "route/route.h"
#include "route/work.h"
#include "track/state.h"

static struct sp_stream *start_capture(CUstream handle)
{
        struct sp_stream *stream = sp_life_is_on() ? sp_stream_of(handle) : NULL;
        struct spm_actions actions;
        enum spm_status status;

        if (!stream || atomic_load(&stream->is_capturing))
                return NULL;
        sp_work_blur();
        status = spm_capture_begin(sp_model_enter(), stream->model, &actions);
        sp_model_leave();
        if (status != SPM_OK)
                return NULL;
        sp_perform(&actions, NULL);
        /* From here on no thread asks the driver anything of its own, and none begins a count; one
         * that did since is worth nothing. */
        sp_quiet_end();
        sp_work_blur();
        return stream;
}

static void end_in_model(struct sp_stream *stream)
{
        spm_capture_end(sp_model_enter(), stream->model);
        sp_model_leave();
}

static CUresult finish_begin(struct sp_stream *stream, CUresult result)
{
        if (!stream)
                return result;
        if (result == CUDA_SUCCESS && !atomic_exchange(&stream->is_capturing, true))
                return result;
        end_in_model(stream);
        atomic_fetch_sub(&sp_captures, 1);
        return result;
}

CUresult CUDAAPI sp_on_cuStreamBeginCapture(CUstream handle)
{
        struct sp_stream *stream = start_capture(handle);

        return finish_begin(stream, sp_driver.cuStreamBeginCapture(handle));
}

CUresult CUDAAPI sp_on_cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode)
{
        struct sp_stream *stream = start_capture(handle);

        return finish_begin(stream, sp_driver.cuStreamBeginCapture_v2(handle, mode));
}

#if CUDA_VERSION >= 12030
CUresult CUDAAPI sp_on_cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph,
                                                   const CUgraphNode *dependencies,
                                                   const CUgraphEdgeData *edges, size_t count,
                                                   CUstreamCaptureMode mode)
{
        struct sp_stream *stream = start_capture(handle);

        return finish_begin(stream, sp_driver.cuStreamBeginCaptureToGraph(
                                            handle, graph, dependencies, edges, count, mode));
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
        CUresult result = sp_driver.cuStreamEndCapture(handle, graph);

        if (!stream || still_captures(handle, result) ||
            !atomic_exchange(&stream->is_capturing, false))
                return result;
        end_in_model(stream);
        atomic_fetch_sub(&sp_captures, 1);
        return result;
}
