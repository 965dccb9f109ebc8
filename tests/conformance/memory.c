/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory -- cuMemAlloc and cuMemFree: codes, alignment, contents, and cuMemGetInfo
 */
#include "conformance.h"

#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

static void alloc_of_nothing(void)
{
        CUdeviceptr p = 1;

        CODE(MemAlloc, &p, 0);
        conf_say("null=%d", p == 0);
        CODE(MemAlloc, NULL, 16);
}

static void alloc_of_too_much(void)
{
        CUdeviceptr p = 1;

        CODE(MemAlloc, &p, (size_t)1 << 50);
        conf_say("null=%d", p == 0);
        CODE(MemAlloc, &p, SIZE_MAX);
        CODE(MemAlloc, &p, SIZE_MAX - 100);
        CODE(MemAlloc, &p, 4096);
        CODE(MemFree, p);
}

/* Of nothing there is nothing to wait for. */
static void free_of_null(void)
{
        CU_OK(cu_spin(&conf.kernels, conf.n1, 50000000));
        CODE(MemFree, 0);
        CODE(StreamQuery, conf.n1);
        CU_OK(cu.StreamSynchronize(conf.n1));
}

static void alignment(void)
{
        static const size_t sizes[] = {1, 100, 257, 513, 4096, 70000, MIB, MIB + 1, 3 * MIB};
        CUdeviceptr p[sizeof(sizes) / sizeof(sizes[0])];
        size_t count = sizeof(sizes) / sizeof(sizes[0]);

        for (size_t i = 0; i < count; i++)
                CU_OK(cu.MemAlloc(&p[i], sizes[i]));
        for (size_t i = 0; i < count; i++) {
                size_t align = sizes[i] > MIB ? MIB / 16 : 512;

                conf_say("%zu:aligned=%d", sizes[i], p[i] % align == 0);
        }
        for (size_t i = 0; i < count; i++)
                CU_OK(cu.MemFree(p[i]));
}

static void blocks_are_apart(void)
{
        enum { BLOCKS = 64 };
        CUdeviceptr p[BLOCKS];
        size_t bytes[BLOCKS];
        unsigned char *back = malloc(64 * 1024);
        int wrong = 0;

        for (int i = 0; i < BLOCKS; i++) {
                bytes[i] = 1 + (size_t)i * 977;
                CU_OK(cu.MemAlloc(&p[i], bytes[i]));
                CU_OK(cu.MemsetD8(p[i], (unsigned char)(i + 1), bytes[i]));
        }
        for (int i = 0; i < BLOCKS; i++) {
                CU_OK(cu.MemcpyDtoH(back, p[i], bytes[i]));
                for (size_t j = 0; j < bytes[i]; j++)
                        wrong += back[j] != i + 1;
        }
        for (int i = 0; i < BLOCKS; i++)
                CU_OK(cu.MemFree(p[i]));
        free(back);
        conf_say("wrong=%d", wrong);
}

static void copies(void)
{
        enum { WORDS = 3000 };
        static uint32_t there[WORDS], back[WORDS];
        CUdeviceptr p, q;

        for (uint32_t i = 0; i < WORDS; i++)
                there[i] = i * 2654435761u;
        CU_OK(cu.MemAlloc(&p, sizeof(there)));
        CU_OK(cu.MemAlloc(&q, sizeof(there)));
        CODE(MemcpyHtoD, p, there, sizeof(there));
        CODE(MemcpyDtoD, q, p, sizeof(there));
        CODE(MemcpyDtoH, back, q, sizeof(there));
        conf_say("equal=%d", !memcmp(there, back, sizeof(there)));
        CODE(MemsetD32, q, 7, WORDS);
        CODE(MemcpyDtoH, back, q, sizeof(there));
        conf_say("set=%d", back[0] == 7 && back[WORDS - 1] == 7);
        CU_OK(cu.MemFree(p));
        CU_OK(cu.MemFree(q));
}

/* Bytes free now; the total goes to @total. */
static size_t free_bytes(size_t *total)
{
        size_t left;

        CU_OK(cu.MemGetInfo(&left, total));
        return left;
}

static void info_pointers(void)
{
        size_t left = 0, total = 0;

        CODE(MemGetInfo, &left, NULL);
        CODE(MemGetInfo, NULL, &total);
        conf_say("within=%d", left && left <= total);
}

/* Page tables of the first large block stay; every later one leaves no trace. */
static void info_follows_large_blocks(void)
{
        size_t total, start, taken, back;
        CUdeviceptr p;

        CU_OK(cu.MemAlloc(&p, 64 * MIB));
        CU_OK(cu.MemFree(p));
        CU_OK(cu.CtxSynchronize());
        start = free_bytes(&total);
        CODE(MemAlloc, &p, 64 * MIB);
        taken = free_bytes(&total);
        CODE(MemFree, p);
        CU_OK(cu.CtxSynchronize());
        back = free_bytes(&total);
        conf_say("taken=%zuM back=%d within=%d", (start - taken) / MIB, back == start,
                 back <= total && start <= total);
}

static void info_after_many_small_blocks(void)
{
        enum { BLOCKS = 512 };
        CUdeviceptr p[BLOCKS];
        size_t total, start, taken, back;

        for (int round = 0; round < 2; round++) {
                start = free_bytes(&total);
                for (int i = 0; i < BLOCKS; i++)
                        CU_OK(cu.MemAlloc(&p[i], 1 + (size_t)i * 331));
                taken = free_bytes(&total);
                for (int i = 0; i < BLOCKS; i++)
                        CU_OK(cu.MemFree(p[i]));
        }
        CU_OK(cu.CtxSynchronize());
        back = free_bytes(&total);
        conf_say("less=%d back=%d within=%d", taken < start, back == start, back <= total);
}

/* What is reported free can be had, but for a margin. */
static void info_is_a_promise(void)
{
        size_t total, left = free_bytes(&total);
        CUdeviceptr p, q = 0;

        CODE(MemAlloc, &p, left / 8 * 6);
        conf_say("second=%d", cu.MemAlloc(&q, left / 2) == CUDA_ERROR_OUT_OF_MEMORY);
        CODE(MemFree, p);
        CODE(MemAlloc, &q, left / 8 * 7);
        CODE(MemFree, q);
}

static void without_context(void *argument)
{
        CUdeviceptr live = *(CUdeviceptr *)argument, p, base;
        size_t bytes, total;
        void *host;

        CODE(MemAlloc, &p, 16);
        CODE(MemFree, 0x1234);
        CODE(MemFree, live);
        CODE(MemFree, live);
        CODE(MemGetInfo, &bytes, &total);
        CODE(MemGetAddressRange, &base, &bytes, live);
        CODE(MemGetAddressRange, NULL, NULL, live);
        CODE(MemHostAlloc, &host, 16, 0);
        CODE(StreamSynchronize, 0);
        CODE(CtxSynchronize);
}

static void streams_without_context(void *argument)
{
        CUevent event = *(CUevent *)argument, other;
        CUdeviceptr p;

        CODE(EventCreate, &other, CU_EVENT_DISABLE_TIMING);
        CODE(MemAllocAsync, &p, 512, CU_STREAM_LEGACY);
        CODE(MemAllocAsync, &p, 512, CU_STREAM_PER_THREAD);
        CODE(MemAllocAsync, &p, 512, conf.n1);
        CODE(MemFreeAsync, p, CU_STREAM_LEGACY);
        CODE(MemFreeAsync, p, conf.n1);
        CODE(MemFreeAsync, 0, CU_STREAM_LEGACY);
        CODE(MemFreeAsync, 0, conf.n1);
        CODE(StreamQuery, CU_STREAM_LEGACY);
        CODE(EventRecord, event, conf.n1);
        CODE(EventSynchronize, event);
        CODE(StreamWaitEvent, conf.n2, event, 0);
        CODE(StreamQuery, conf.n2);
        CODE(StreamSynchronize, conf.n2);
        CODE(EventDestroy, event);
}

/* Streams and events have a context of their own. */
static void streams_and_no_current_context(void)
{
        CUevent event;

        CU_OK(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
        conf_on_thread(NULL, streams_without_context, &event);
}

static void no_current_context(void)
{
        CUdeviceptr p;

        CODE(MemAlloc, &p, 4096);
        conf_on_thread(NULL, without_context, &p);
}

static void free_it(void *argument)
{
        CODE(MemFree, *(CUdeviceptr *)argument);
}

static void free_on_another_thread(void)
{
        CUdeviceptr p;

        CODE(MemAlloc, &p, 4096);
        conf_on_thread(conf.context, free_it, &p);
        CODE(MemFree, p);
}

const struct conf_case conf_memory[] = {
        {"memory.alloc_of_nothing", alloc_of_nothing, 0, NULL},
        {"memory.alloc_of_too_much", alloc_of_too_much, 0, NULL},
        {"memory.free_of_null", free_of_null, CONF_QUIET, NULL},
        {"memory.alignment", alignment, 0, NULL},
        {"memory.blocks_are_apart", blocks_are_apart, 0, NULL},
        {"memory.copies", copies, 0, NULL},
        {"memory.info_pointers", info_pointers, 0, NULL},
        {"memory.info_follows_large_blocks", info_follows_large_blocks, CONF_QUIET, NULL},
        {"memory.info_after_many_small_blocks", info_after_many_small_blocks, CONF_QUIET, NULL},
        {"memory.info_is_a_promise", info_is_a_promise, CONF_ALONE | CONF_QUIET, NULL},
        {"memory.no_current_context", no_current_context, 0, NULL},
        {"memory.streams_and_no_current_context", streams_and_no_current_context, 0, NULL},
        {"memory.free_on_another_thread", free_on_another_thread, 0, NULL},
        {NULL, NULL, 0, NULL},
};
