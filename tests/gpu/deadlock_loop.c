/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loop -- loops beside a kernel; who opens its gate; captures
 *
 * The kernel ends when the loop is through, not before.
 */
#include "deadlock.h"

#define TURNS  400
#define BYTES  ((size_t)1 << 18)
#define BLOCKS 64

/* What a program does all day, with nothing that waits on the bare driver. */
static void all_day(struct ground *g, CUstream stream)
{
        CUdeviceptr blocks[8];

        for (int i = 0; i < 4; i++) {
                loop_async(g, stream, TURNS / 8, BYTES << i % 3);
                loop_sync(g, stream, 8, BYTES, blocks);
                for (int k = 0; k < 8; k++)
                        give_async(blocks[k], stream);
        }
}

void case_loop_beside(struct ground *g)
{
        for (int i = 0; i < OPENERS; i++) {
                int opener = (g->start + i) % OPENERS;

                fprintf(stderr, "opener %d\n", opener);
                churn(g, g->a, BYTES);
                hold(g, g->a, opener);
                all_day(g, g->b);
                /* What waits behind the kernel is nobody's business. */
                loop_async(g, g->a, 16, BYTES);
                all_day(g, g->b);
                open_on(g, g->b, opener);
                CU_OK(cu.StreamSynchronize(g->b));
                if (!ground_settle(g))
                        return;
        }
}

void case_loop_without_frees(struct ground *g)
{
        CUdeviceptr blocks[2 * BLOCKS];

        churn(g, g->a, BYTES);
        hold(g, g->a, BY_KERNEL);
        loop_sync(g, g->b, BLOCKS, BYTES, blocks);
        loop_sync(g, g->b, BLOCKS, BYTES << 3, blocks + BLOCKS);
        open_on(g, g->b, BY_KERNEL);
        CU_OK(cu.StreamSynchronize(g->b));
        free_all(blocks, 2 * BLOCKS);
}

struct side {
        struct ground *g;
        CUstream stream;
};

static void *all_day_of_thread(void *argument)
{
        struct side *side = argument;

        CU_OK(cu.CtxSetCurrent(side->g->context));
        all_day(side->g, side->stream);
        return NULL;
}

void case_loop_two_threads(struct ground *g)
{
        struct side side = {g, CU_STREAM_PER_THREAD};
        pthread_t thread;

        loop_async(g, g->a, 16, BYTES);
        churn(g, g->a, BYTES);
        hold(g, g->a, BY_VALUE);
        if (pthread_create(&thread, NULL, all_day_of_thread, &side))
                exit(99);
        all_day(g, g->b);
        pthread_join(thread, NULL);
        open_on(g, g->b, BY_VALUE);
        CU_OK(cu.StreamSynchronize(g->a));
}

/* ---- who opens ---- */

void case_host_opens(struct ground *g)
{
        loop_async(g, g->a, 16, BYTES);
        churn(g, g->a, BYTES);
        hold(g, g->a, BY_HOST_FUNCTION);
        all_day(g, g->b);
        CU_OK(cu.StreamSynchronize(g->b));
        open_by_host(g);
        CU_OK(cu.StreamSynchronize(g->a));
}

/* On a stream of its own, behind an event that the loop's stream waits for as well. */
void case_host_function_opens(struct ground *g)
{
        CUstream third;
        CUevent event;

        CU_OK(cu.StreamCreate(&third, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
        loop_async(g, g->a, 16, BYTES);
        churn(g, g->a, BYTES);
        hold(g, g->a, BY_HOST_FUNCTION);
        all_day(g, g->b);
        CU_OK(cu.EventRecord(event, g->b));
        CU_OK(cu.StreamWaitEvent(third, event, 0));
        open_on(g, third, BY_HOST_FUNCTION);
        loop_async(g, third, 16, BYTES);
        CU_OK(cu.StreamSynchronize(g->a));
        CU_OK(cu.StreamSynchronize(third));
        CU_OK(cu.StreamDestroy(third));
        CU_OK(cu.EventDestroy(event));
}

static void *host_after_loop(void *argument)
{
        struct side *side = argument;

        CU_OK(cu.CtxSetCurrent(side->g->context));
        all_day(side->g, side->stream);
        CU_OK(cu.StreamSynchronize(side->stream));
        open_by_host(side->g);
        return NULL;
}

/* This thread waits for the kernel; another one allocates, frees, and opens. */
void case_other_thread_opens(struct ground *g)
{
        struct side side = {g, g->b};
        pthread_t thread;

        loop_async(g, g->a, 16, BYTES);
        churn(g, g->a, BYTES);
        hold(g, g->a, BY_HOST_FUNCTION);
        if (pthread_create(&thread, NULL, host_after_loop, &side))
                exit(99);
        CU_OK(cu.StreamSynchronize(g->a));
        pthread_join(thread, NULL);
}

/* ---- captures ---- */

struct capturer {
        struct ground *g;
        CUstreamCaptureMode mode;
        pthread_barrier_t barrier; /* twice: it is open, the loop is through */
};

static void *capture(void *argument)
{
        struct capturer *capturer = argument;
        struct ground *g = capturer->g;
        CUstream stream;
        CUgraph graph;

        CU_OK(cu.CtxSetCurrent(g->context));
        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.StreamBeginCapture(stream, capturer->mode));
        CU_OK(cu_spin(&g->kernels, stream, 1000));
        pthread_barrier_wait(&capturer->barrier);
        pthread_barrier_wait(&capturer->barrier);
        CU_OK(cu.StreamEndCapture(stream, &graph));
        CU_OK(cu.GraphDestroy(graph));
        CU_OK(cu.StreamDestroy(stream));
        return NULL;
}

static void beside_capture(struct ground *g, CUstreamCaptureMode mode)
{
        struct capturer capturer = {.g = g, .mode = mode};
        CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
        pthread_t thread;

        pthread_barrier_init(&capturer.barrier, NULL, 2);
        if (mode == CU_STREAM_CAPTURE_MODE_GLOBAL)
                CU_OK(cu.ThreadExchangeStreamCaptureMode(&relaxed));
        loop_async(g, g->a, 16, BYTES);
        if (pthread_create(&thread, NULL, capture, &capturer))
                exit(99);
        pthread_barrier_wait(&capturer.barrier);
        hold(g, g->a, BY_KERNEL);
        all_day(g, g->b);
        pthread_barrier_wait(&capturer.barrier);
        pthread_join(thread, NULL);
        all_day(g, g->b);
        open_on(g, g->b, BY_KERNEL);
        CU_OK(cu.StreamSynchronize(g->a));
}

void case_capture_global(struct ground *g)
{
        beside_capture(g, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

void case_capture_thread_local(struct ground *g)
{
        beside_capture(g, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

void case_capture_relaxed(struct ground *g)
{
        beside_capture(g, CU_STREAM_CAPTURE_MODE_RELAXED);
}
