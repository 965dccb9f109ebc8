/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order -- who runs after whom, proved by what is in memory
 *
 * A watch kernel reads its block for some time and counts words that changed.
 * The block is freed while the kernel runs, and whoever gets memory next fills
 * it at once: if that is the same memory, too early, the count says so.
 */
#include "conformance.h"

#define MIB      ((size_t)1 << 20)
#define WORDS    (MIB / 4)
#define WATCH_NS 20000000

static uint32_t *counter;

static CUdeviceptr fresh_counter(void)
{
        counter = cu_counter(1);
        return (CUdeviceptr)(uintptr_t)counter;
}

static void say_count(void)
{
        CU_OK(cu.CtxSynchronize());
        conf_say("mismatches=%u", *counter);
        CU_OK(cu.MemFreeHost(counter));
}

/* A block of the program's, filled with 1 and watched by a kernel on @stream. */
static CUdeviceptr watched(CUstream stream, CUdeviceptr count)
{
        CUdeviceptr p;

        CU_OK(cu.MemAlloc(&p, MIB));
        cu_owned(p, MIB);
        CU_OK(cu_fill(&conf.kernels, stream, p, WORDS, 1));
        CU_OK(cu_watch(&conf.kernels, stream, p, WORDS, 1, WATCH_NS, count));
        return p;
}

/* Take blocks of the same size and fill them on @stream; they stay until the count is read. */
static void disturb(CUstream stream)
{
        CUdeviceptr p[4];

        for (int i = 0; i < 4; i++) {
                CU_OK(cu.MemAlloc(&p[i], MIB));
                cu_owned(p[i], MIB);
                CU_OK(cu_fill(&conf.kernels, stream, p[i], WORDS, 2));
        }
        CU_OK(cu.StreamSynchronize(stream));
        for (int i = 0; i < 4; i++) {
                cu_disowned(p[i]);
                CU_OK(cu.MemFree(p[i]));
        }
}

static void disturb_async(CUstream stream)
{
        CUdeviceptr p[4];

        for (int i = 0; i < 4; i++) {
                CU_OK(cu.MemAllocAsync(&p[i], MIB, stream));
                cu_owned(p[i], MIB);
                CU_OK(cu_fill(&conf.kernels, stream, p[i], WORDS, 2));
        }
        for (int i = 0; i < 4; i++) {
                cu_disowned(p[i]);
                CU_OK(cu.MemFreeAsync(p[i], stream));
        }
}

static void free_while_in_use(CUstream user, CUstream next)
{
        CUdeviceptr p = watched(user, fresh_counter());

        cu_disowned(p);
        CODE(MemFree, p);
        disturb(next);
        say_count();
}

static void freed_in_use_by_nonblocking(void)
{
        free_while_in_use(conf.n1, conf.n2);
}

static void freed_in_use_by_blocking(void)
{
        free_while_in_use(conf.b1, conf.n2);
}

static void freed_in_use_by_legacy(void)
{
        free_while_in_use(CU_STREAM_LEGACY, conf.n2);
}

static void free_and_disturb(void *argument)
{
        CUdeviceptr p = *(CUdeviceptr *)argument;

        cu_disowned(p);
        CODE(MemFree, p);
        disturb(CU_STREAM_PER_THREAD);
}

/*
 * The reader's stream is its thread's own, and the thread lives on: when it ended
 * before the free, behind the cases above, driver 580.159 hung, alone and shimmed.
 */
static void freed_in_use_by_another_thread(void)
{
        CUdeviceptr p = watched(CU_STREAM_PER_THREAD, fresh_counter());

        conf_on_thread(conf.context, free_and_disturb, &p);
        say_count();
}

static void freed_in_use_by_destroyed_stream(void)
{
        CUstream stream;
        CUdeviceptr p;

        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        p = watched(stream, fresh_counter());
        CU_OK(cu.StreamDestroy(stream));
        cu_disowned(p);
        CODE(MemFree, p);
        disturb(conf.n2);
        say_count();
}

/* A block that cuMemAlloc gave, freed in the order of its stream. */
static void freed_async_in_use(void)
{
        CUdeviceptr p = watched(conf.n1, fresh_counter());

        cu_disowned(p);
        CODE(MemFreeAsync, p, conf.n1);
        disturb(conf.n2);
        say_count();
}

static void pool_block_freed_in_use(void)
{
        CUdeviceptr count = fresh_counter(), p;

        CU_OK(cu.MemAllocAsync(&p, MIB, conf.n1));
        cu_owned(p, MIB);
        CU_OK(cu_fill(&conf.kernels, conf.n1, p, WORDS, 1));
        CU_OK(cu_watch(&conf.kernels, conf.n1, p, WORDS, 1, WATCH_NS, count));
        cu_disowned(p);
        CODE(MemFreeAsync, p, conf.n1);
        disturb_async(conf.n2);
        disturb(conf.n2);
        say_count();
}

/* The free is ordered behind the use by an event, on another stream. */
static void freed_on_a_stream_that_waits(void)
{
        CUdeviceptr count = fresh_counter(), p;
        CUevent event;

        CU_OK(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
        CU_OK(cu.MemAllocAsync(&p, MIB, conf.n1));
        cu_owned(p, MIB);
        CU_OK(cu_fill(&conf.kernels, conf.n1, p, WORDS, 1));
        CU_OK(cu_watch(&conf.kernels, conf.n1, p, WORDS, 1, WATCH_NS, count));
        CU_OK(cu.EventRecord(event, conf.n1));
        CU_OK(cu.StreamWaitEvent(conf.n2, event, 0));
        cu_disowned(p);
        CODE(MemFreeAsync, p, conf.n2);
        disturb_async(conf.n2);
        CU_OK(cu.EventDestroy(event));
        say_count();
}

/* Freed and allocated on the legacy stream, which orders one blocking stream behind another. */
static void legacy_stream_in_between(void)
{
        CUdeviceptr count = fresh_counter(), p, q;

        CU_OK(cu.MemAllocAsync(&p, MIB, CU_STREAM_LEGACY));
        cu_owned(p, MIB);
        CU_OK(cu_fill(&conf.kernels, conf.b1, p, WORDS, 1));
        CU_OK(cu_watch(&conf.kernels, conf.b1, p, WORDS, 1, WATCH_NS, count));
        cu_disowned(p);
        CODE(MemFreeAsync, p, CU_STREAM_LEGACY);
        CODE(MemAllocAsync, &q, MIB, CU_STREAM_LEGACY);
        cu_owned(q, MIB);
        CU_OK(cu_fill(&conf.kernels, conf.b2, q, WORDS, 2));
        CU_OK(cu.StreamSynchronize(conf.b2));
        cu_disowned(q);
        CODE(MemFreeAsync, q, conf.b2);
        say_count();
}

/* A call on the legacy stream about another block orders one blocking stream behind another. */
static void legacy_call_about_another(bool frees)
{
        CUdeviceptr count = fresh_counter(), p, q, other;

        CU_OK(cu.MemAllocAsync(&p, MIB, conf.b1));
        cu_owned(p, MIB);
        if (frees)
                CU_OK(cu.MemAllocAsync(&other, MIB, CU_STREAM_LEGACY));
        CU_OK(cu_fill(&conf.kernels, conf.b1, p, WORDS, 1));
        CU_OK(cu_watch(&conf.kernels, conf.b1, p, WORDS, 1, WATCH_NS, count));
        if (!frees)
                CODE(MemAllocAsync, &other, MIB, CU_STREAM_LEGACY);
        else
                CODE(MemFreeAsync, other, CU_STREAM_LEGACY);
        cu_disowned(p);
        CODE(MemFreeAsync, p, conf.b2);
        CODE(MemAllocAsync, &q, MIB, conf.b2);
        cu_owned(q, MIB);
        CU_OK(cu_fill(&conf.kernels, conf.b2, q, WORDS, 2));
        CU_OK(cu.StreamSynchronize(conf.b2));
        cu_disowned(q);
        CODE(MemFreeAsync, q, conf.b2);
        if (!frees)
                CU_OK(cu.MemFreeAsync(other, conf.b2));
        say_count();
}

static void legacy_allocation_of_another(void)
{
        legacy_call_about_another(false);
}

static void legacy_free_of_another(void)
{
        legacy_call_about_another(true);
}

/* On one stream a block may come back at once, and each owner sees its own data. */
static void reuse_in_stream_order(void)
{
        CUdeviceptr count = fresh_counter();

        for (uint32_t i = 1; i <= 50; i++) {
                CUdeviceptr p;

                CU_OK(cu.MemAllocAsync(&p, MIB, conf.n1));
                cu_owned(p, MIB);
                CU_OK(cu_fill(&conf.kernels, conf.n1, p, WORDS, i));
                CU_OK(cu_add(&conf.kernels, conf.n1, p, WORDS, 1000));
                CU_OK(cu_check(&conf.kernels, conf.n1, p, WORDS, i + 1000, count));
                cu_disowned(p);
                CU_OK(cu.MemFreeAsync(p, conf.n1));
        }
        say_count();
}

/* The host copies in, the device works on two streams, the host copies out. */
static void streams_hand_over(void)
{
        CUdeviceptr count = fresh_counter(), p, q;
        CUevent event;

        CU_OK(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
        for (uint32_t i = 1; i <= 20; i++) {
                uint32_t back = 0;

                CU_OK(cu.MemAlloc(&p, MIB));
                cu_owned(p, MIB);
                CU_OK(cu.MemAllocAsync(&q, MIB, conf.n1));
                cu_owned(q, MIB);
                CU_OK(cu_fill(&conf.kernels, conf.n1, p, WORDS, i));
                CU_OK(cu_copy(&conf.kernels, conf.n1, q, p, WORDS));
                CU_OK(cu.EventRecord(event, conf.n1));
                CU_OK(cu.StreamWaitEvent(conf.n2, event, 0));
                CU_OK(cu_add(&conf.kernels, conf.n2, q, WORDS, i));
                CU_OK(cu_check(&conf.kernels, conf.n2, q, WORDS, 2 * i, count));
                CU_OK(cu.MemcpyDtoHAsync(&back, q + MIB - 4, 4, conf.n2));
                cu_disowned(q);
                CU_OK(cu.MemFreeAsync(q, conf.n2));
                CU_OK(cu.StreamSynchronize(conf.n2));
                cu_disowned(p);
                CU_OK(cu.MemFree(p));
                *counter += back != 2 * i;
        }
        CU_OK(cu.EventDestroy(event));
        say_count();
}

/* Work of the legacy stream and of blocking streams follows the order of the calls. */
static void legacy_and_blocking_streams(void)
{
        CUdeviceptr count = fresh_counter(), p;
        uint32_t back = 0;

        CU_OK(cu.MemAlloc(&p, MIB));
        CU_OK(cu_spin(&conf.kernels, conf.b1, 5000000));
        CU_OK(cu_fill(&conf.kernels, conf.b1, p, WORDS, 1));
        CU_OK(cu_add(&conf.kernels, NULL, p, WORDS, 1));
        CU_OK(cu_add(&conf.kernels, conf.b2, p, WORDS, 1));
        CU_OK(cu_check(&conf.kernels, NULL, p, WORDS, 3, count));
        CU_OK(cu.MemcpyDtoH(&back, p, 4));
        conf_say("value=%u", back);
        CU_OK(cu.MemFree(p));
        say_count();
}

static void what_an_event_covers(void)
{
        CUevent event;

        CU_OK(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
        CODE(EventQuery, event);
        CODE(StreamWaitEvent, conf.n1, event, 0);
        CU_OK(cu_spin(&conf.kernels, conf.n1, WATCH_NS));
        CODE(StreamQuery, conf.n1);
        CODE(EventRecord, event, CU_STREAM_LEGACY);
        CODE(EventSynchronize, event);
        CODE(StreamQuery, conf.n1);
        CODE(EventRecord, event, conf.n1);
        CODE(EventQuery, event);
        CODE(StreamSynchronize, conf.n1);
        CODE(EventQuery, event);
        CU_OK(cu_spin(&conf.kernels, conf.b1, WATCH_NS));
        CODE(EventRecord, event, CU_STREAM_LEGACY);
        CODE(EventQuery, event);
        CODE(StreamSynchronize, CU_STREAM_LEGACY);
        CODE(StreamQuery, conf.b1);
        CU_OK(cu.EventDestroy(event));
}

#if CUDA_VERSION >= 12050
static void what_a_context_event_covers(void)
{
        CUevent event;

        NEED(CtxRecordEvent);
        CU_OK(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
        CU_OK(cu_spin(&conf.kernels, conf.n1, WATCH_NS));
        CODE(CtxRecordEvent, conf.context, event);
        CODE(EventQuery, event);
        CODE(StreamQuery, conf.n2);
        CODE(CtxWaitEvent, conf.context, event);
        CU_OK(cu_spin(&conf.kernels, conf.n2, 1000));
        CODE(StreamSynchronize, conf.n2);
        CODE(StreamQuery, conf.n1);
        CU_OK(cu.EventDestroy(event));
}
#endif

const struct conf_case conf_order[] = {
        {"order.freed_in_use_by_nonblocking", freed_in_use_by_nonblocking, 0, NULL},
        {"order.freed_in_use_by_blocking", freed_in_use_by_blocking, 0, NULL},
        {"order.freed_in_use_by_legacy", freed_in_use_by_legacy, 0, NULL},
        {"order.freed_in_use_by_another_thread", freed_in_use_by_another_thread, 0, NULL},
        {"order.freed_in_use_by_destroyed_stream", freed_in_use_by_destroyed_stream, 0, NULL},
        {"order.freed_async_in_use", freed_async_in_use, 0, NULL},
        {"order.pool_block_freed_in_use", pool_block_freed_in_use, 0, NULL},
        {"order.freed_on_a_stream_that_waits", freed_on_a_stream_that_waits, 0, NULL},
        {"order.legacy_stream_in_between", legacy_stream_in_between, 0, NULL},
        {"order.legacy_allocation_of_another", legacy_allocation_of_another, 0, NULL},
        {"order.legacy_free_of_another", legacy_free_of_another, 0, NULL},
        {"order.reuse_in_stream_order", reuse_in_stream_order, 0, NULL},
        {"order.streams_hand_over", streams_hand_over, 0, NULL},
        {"order.legacy_and_blocking_streams", legacy_and_blocking_streams, 0, NULL},
        {"order.what_an_event_covers", what_an_event_covers, CONF_QUIET, NULL},
#if CUDA_VERSION >= 12050
        {"order.what_a_context_event_covers", what_a_context_event_covers, CONF_QUIET, NULL},
#endif
        {NULL, NULL, 0, NULL},
};
