/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks -- what calls that only pass through cost the host
 *
 * In batches that fit into the queue of a stream, with a wait between them
 * that is not measured, so that the device never holds the host up.
 */
#include "micro.h"

#include <stdio.h>

#define BATCH   256
#define BATCHES 4000
#define STREAMS 16

static double samples[BATCHES];

/* A kernel with nothing to do. */
static double launches(CUstream *streams, int count)
{
        uint64_t end = micro_now() + micro.slice_ns;
        size_t batches = 0;

        for (uint64_t now = 0; now < end && batches < BATCHES; batches++) {
                uint64_t before = micro_now();

                for (int i = 0; i < BATCH; i++)
                        CU_OK(cu_fill(&micro.kernels, streams[i % count], 0, 0, 0));
                now = micro_now();
                samples[batches] = (double)(now - before) / BATCH;
                CU_OK(cu.CtxSynchronize());
        }
        return micro_percentile(samples, batches, 50);
}

/*
 * A launch costs microseconds, which vary by more than a hook may cost. One that
 * is refused has passed through the same hook.
 */
static double refused_launches(CUstream stream)
{
        uint64_t end = micro_now() + micro.slice_ns;
        size_t batches = 0;

        for (uint64_t now = 0; now < end && batches < BATCHES; batches++) {
                uint64_t before = micro_now();

                for (int i = 0; i < BATCH; i++)
                        cu_launch(micro.kernels.fill, stream, 0, NULL);
                now = micro_now();
                samples[batches] = (double)(now - before) / BATCH;
        }
        return micro_percentile(samples, batches, 50);
}

void micro_launches(const char *name)
{
        CUstream streams[STREAMS];

        for (int i = 0; i < STREAMS; i++)
                streams[i] = micro_stream();
        micro_figure(name, "1", launches(streams, 1));
        micro_figure(name, "16", launches(streams, STREAMS));
        micro_figure(name, "refused", refused_launches(streams[0]));
        for (int i = 0; i < STREAMS; i++)
                CU_OK(cu.StreamDestroy(streams[i]));
}

enum act { RECORD, WAIT, QUERY };

static void do_act(enum act act, CUevent event, CUstream stream)
{
        switch (act) {
        case RECORD:
                CU_OK(cu.EventRecord(event, stream));
                break;
        case WAIT:
                CU_OK(cu.StreamWaitEvent(stream, event, 0));
                break;
        case QUERY:
                CU_OK(cu.EventQuery(event));
                break;
        }
}

static double events(enum act act, CUevent event, CUstream stream)
{
        uint64_t end = micro_now() + micro.slice_ns;
        size_t batches = 0;

        for (uint64_t now = 0; now < end && batches < BATCHES; batches++) {
                uint64_t before = micro_now();

                for (int i = 0; i < BATCH; i++)
                        do_act(act, event, stream);
                now = micro_now();
                samples[batches] = (double)(now - before) / BATCH;
                CU_OK(cu.CtxSynchronize());
        }
        return micro_percentile(samples, batches, 50);
}

void micro_events(const char *name)
{
        CUstream stream = micro_stream();
        CUevent event;

        CU_OK(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
        micro_figure(name, "record", events(RECORD, event, stream));
        micro_figure(name, "wait", events(WAIT, event, stream));
        micro_figure(name, "query", events(QUERY, event, stream));
        CU_OK(cu.EventDestroy(event));
        CU_OK(cu.StreamDestroy(stream));
}
