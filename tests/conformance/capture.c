/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Capture -- which calls a capture allows, and which of them end it
 *
 * A capture is open on one non-blocking stream; one call is made, by the thread
 * that began the capture or by another one; the capture is ended. A line holds,
 * for each mode and thread, the code of the call and that of the end. The last
 * column is GLOBAL again, with the thread's own mode exchanged for RELAXED.
 */
#include "conformance.h"

#include <stdlib.h>

/* What the calls work on; made before the capture, removed after it. */
struct bench {
        CUstream capturing, other;
        CUevent event, spare;
        CUdeviceptr plain, async;
        CUgraph graph;
        CUresult code;
        CUresult (*call)(struct bench *bench);
        bool exchange;
};

static CUresult call_mem_alloc(struct bench *b)
{
        CUdeviceptr p;
        CUresult result = cu.MemAlloc(&p, 4096);

        if (!result)
                b->async = p; /* freed after the capture, whatever allocated it */
        return result;
}

static CUresult call_mem_free(struct bench *b)
{
        CUresult result = cu.MemFree(b->plain);

        if (!result)
                b->plain = 0;
        return result;
}

static CUresult call_mem_free_null(struct bench *b)
{
        (void)b;
        return cu.MemFree(0);
}

static CUresult call_mem_free_unknown(struct bench *b)
{
        (void)b;
        return cu.MemFree(0x1234);
}

static CUresult call_free_async_other(struct bench *b)
{
        CUresult result = cu.MemFreeAsync(b->plain, b->other);

        if (!result)
                b->plain = 0;
        return result;
}

static CUresult call_free_async_other_null(struct bench *b)
{
        return cu.MemFreeAsync(0, b->other);
}

static CUresult call_free_async_other_unknown(struct bench *b)
{
        return cu.MemFreeAsync(0x1234, b->other);
}

static CUresult call_free_async_capturing_null(struct bench *b)
{
        return cu.MemFreeAsync(0, b->capturing);
}

static CUresult call_alloc_async_other(struct bench *b)
{
        return cu.MemAllocAsync(&b->async, 4096, b->other);
}

static CUresult call_alloc_async_legacy(struct bench *b)
{
        return cu.MemAllocAsync(&b->async, 4096, NULL);
}

static CUresult call_alloc_async_capturing(struct bench *b)
{
        CUdeviceptr p;
        CUresult result = cu.MemAllocAsync(&p, 4096, b->capturing);

        return result ? result : cu.MemFreeAsync(p, b->capturing);
}

static CUresult call_free_async_capturing(struct bench *b)
{
        return cu.MemFreeAsync(b->plain, b->capturing);
}

static CUresult call_managed(struct bench *b)
{
        return cu.MemAllocManaged(&b->async, 4096, CU_MEM_ATTACH_GLOBAL);
}

static CUresult call_host_alloc(struct bench *b)
{
        void *host = NULL;
        CUresult result = cu.MemHostAlloc(&host, 4096, 0);

        (void)b; /* the block is left to the end of the process: freeing it is another call */
        return result;
}

static CUresult call_trim(struct bench *b)
{
        CUmemoryPool pool;

        (void)b;
        CU_OK(cu.DeviceGetDefaultMemPool(&pool, conf.device));
        return cu.MemPoolTrimTo(pool, 0);
}

static CUresult call_pool_attribute(struct bench *b)
{
        CUmemoryPool pool;
        uint64_t value;

        (void)b;
        CU_OK(cu.DeviceGetDefaultMemPool(&pool, conf.device));
        return cu.MemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value);
}

static CUresult call_event_query(struct bench *b)
{
        return cu.EventQuery(b->event);
}

static CUresult call_event_synchronize(struct bench *b)
{
        return cu.EventSynchronize(b->event);
}

static CUresult call_stream_query(struct bench *b)
{
        return cu.StreamQuery(b->other);
}

static CUresult call_stream_synchronize(struct bench *b)
{
        return cu.StreamSynchronize(b->other);
}

static CUresult call_stream_query_capturing(struct bench *b)
{
        return cu.StreamQuery(b->capturing);
}

static CUresult call_stream_synchronize_capturing(struct bench *b)
{
        return cu.StreamSynchronize(b->capturing);
}

static CUresult call_ctx_synchronize(struct bench *b)
{
        (void)b;
        return cu.CtxSynchronize();
}

static CUresult call_event_record(struct bench *b)
{
        return cu.EventRecord(b->event, b->other);
}

static CUresult call_event_record_legacy(struct bench *b)
{
        return cu.EventRecord(b->event, NULL);
}

static CUresult call_stream_wait(struct bench *b)
{
        return cu.StreamWaitEvent(b->other, b->event, 0);
}

static CUresult call_mem_get_info(struct bench *b)
{
        size_t left, total;

        (void)b;
        return cu.MemGetInfo(&left, &total);
}

static CUresult call_pointer_attribute(struct bench *b)
{
        unsigned int type;

        return cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, b->plain);
}

static CUresult call_address_range(struct bench *b)
{
        CUdeviceptr base;
        size_t bytes;

        return cu.MemGetAddressRange(&base, &bytes, b->plain);
}

static CUresult call_is_capturing(struct bench *b)
{
        CUstreamCaptureStatus status;

        return cu.StreamIsCapturing(b->capturing, &status);
}

static CUresult call_event_create(struct bench *b)
{
        CUevent event;
        CUresult result = cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING);

        (void)b;
        return result ? result : cu.EventDestroy(event);
}

static CUresult call_stream_create(struct bench *b)
{
        CUstream stream;
        CUresult result = cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);

        (void)b;
        return result ? result : cu.StreamDestroy(stream);
}

static CUresult call_mapped_memory(struct bench *b)
{
        CUmemAllocationProp properties = {
                .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = conf.device},
        };
        CUmemGenericAllocationHandle handle;
        CUresult result = cu.MemCreate(&handle, 2 << 20, &properties, 0);

        (void)b;
        return result ? result : cu.MemRelease(handle);
}

static CUresult call_launch(struct bench *b)
{
        return cu_fill(&conf.kernels, b->capturing, b->plain, 1024, 1);
}

static CUresult call_memcpy(struct bench *b)
{
        uint32_t word = 1;

        return cu.MemcpyHtoD(b->plain, &word, 4);
}

#if CUDA_VERSION >= 12000
static CUresult call_stream_id_capturing(struct bench *b)
{
        unsigned long long id;

        return cu.StreamGetId ? cu.StreamGetId(b->capturing, &id)
                              : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

static CUresult call_context_id(struct bench *b)
{
        unsigned long long id;

        (void)b;
        return cu.CtxGetId ? cu.CtxGetId(conf.context, &id) : CUDA_SUCCESS;
}
#endif

static void one_call(void *argument)
{
        struct bench *b = argument;
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

        if (b->exchange)
                CU_OK(cu.ThreadExchangeStreamCaptureMode(&mode));
        b->code = b->call(b);
        if (b->exchange)
                CU_OK(cu.ThreadExchangeStreamCaptureMode(&mode));
}

static void set_up(struct bench *b)
{
        *b = (struct bench){.call = b->call, .exchange = b->exchange};
        CU_OK(cu.StreamCreate(&b->capturing, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.StreamCreate(&b->other, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.EventCreate(&b->event, CU_EVENT_DISABLE_TIMING));
        CU_OK(cu.EventRecord(b->event, b->other));
        CU_OK(cu.MemAlloc(&b->plain, 4096));
        CU_OK(cu.CtxSynchronize());
}

static void tear_down(struct bench *b)
{
        if (b->graph)
                CU_OK(cu.GraphDestroy(b->graph));
        CU_OK(cu.MemFree(b->plain));
        CU_OK(cu.MemFree(b->async));
        CU_OK(cu.EventDestroy(b->event));
        CU_OK(cu.StreamDestroy(b->other));
        CU_OK(cu.StreamDestroy(b->capturing));
}

/* One cell of the table: the code of the call, and that of the end of the capture. */
static void cell(CUresult (*call)(struct bench *), CUstreamCaptureMode mode, bool other_thread,
                 bool exchange)
{
        struct bench b = {.call = call, .exchange = exchange};
        CUresult end;

        set_up(&b);
        CU_OK(cu.StreamBeginCapture(b.capturing, mode));
        if (other_thread)
                conf_on_thread(conf.context, one_call, &b);
        else
                one_call(&b);
        end = cu.StreamEndCapture(b.capturing, &b.graph);
        conf_say("%d,%d", (int)b.code, (int)end);
        tear_down(&b);
}

static void row(CUresult (*call)(struct bench *))
{
        static const struct {
                const char *name;
                CUstreamCaptureMode mode;
        } modes[] = {
                {"global", CU_STREAM_CAPTURE_MODE_GLOBAL},
                {"local", CU_STREAM_CAPTURE_MODE_THREAD_LOCAL},
                {"relaxed", CU_STREAM_CAPTURE_MODE_RELAXED},
        };

        for (int i = 0; i < 3; i++) {
                conf_say("%s", modes[i].name);
                cell(call, modes[i].mode, false, false);
                cell(call, modes[i].mode, true, false);
        }
        conf_say("exchanged");
        cell(call, CU_STREAM_CAPTURE_MODE_GLOBAL, false, true);
        cell(call, CU_STREAM_CAPTURE_MODE_GLOBAL, true, true);
}

/* The event was recorded inside the capture: it is no event for anybody outside. */
static void captured_event(void)
{
        CUgraph graph = NULL;
        CUevent event;

        CU_OK(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
        CODE(StreamBeginCapture, conf.n1, CU_STREAM_CAPTURE_MODE_RELAXED);
        CODE(EventRecord, event, conf.n1);
        CODE(EventQuery, event);
        CODE(StreamEndCapture, conf.n1, &graph);
        CU_OK(cu.EventDestroy(event));
}

/* The program's cuMemAlloc and cuMemFree work in a relaxed capture, and the capture survives. */
static void allocations_in_a_relaxed_capture(void)
{
        CUgraph graph = NULL;
        CUdeviceptr p[8];

        CODE(StreamBeginCapture, conf.n1, CU_STREAM_CAPTURE_MODE_RELAXED);
        for (int i = 0; i < 8; i++)
                CU_OK(cu.MemAlloc(&p[i], (size_t)100000 << i));
        for (int i = 0; i < 8; i++)
                CU_OK(cu_fill(&conf.kernels, conf.n1, p[i], 1000, 1));
        for (int i = 0; i < 8; i++)
                CU_OK(cu.MemFree(p[i]));
        for (int i = 0; i < 8; i++)
                CU_OK(cu.MemAlloc(&p[i], (size_t)100000 << i));
        CODE(StreamEndCapture, conf.n1, &graph);
        for (int i = 0; i < 8; i++)
                CODE(MemFree, p[i]);
        CODE(GraphDestroy, graph);
}

#define ROW(name)                                                                                  \
        static void row_##name(void)                                                               \
        {                                                                                          \
                row(call_##name);                                                                  \
        }

#include "capture_rows.def"
#undef ROW

const struct conf_case conf_capture[] = {
#define ROW(name) {"capture." #name, row_##name, 0, NULL},
#include "capture_rows.def"
#undef ROW
        {"capture.captured_event", captured_event, 0, NULL},
        {"capture.allocations_in_a_relaxed_capture", allocations_in_a_relaxed_capture, 0, NULL},
        {NULL, NULL, 0, NULL},
};
