/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Async -- cuMemAllocAsync and cuMemFreeAsync: codes, streams, both families mixed
 */
#include "conformance.h"

#define MIB ((size_t)1 << 20)

static void alloc_of_nothing(void)
{
        CUdeviceptr p = 1;

        CODE(MemAllocAsync, &p, 0, conf.n1);
        conf_say("null=%d", !p);
        CODE(MemFreeAsync, p, conf.n1);
        CODE(MemAllocAsync, NULL, 16, conf.n1);
}

static void alloc_of_too_much(void)
{
        CUdeviceptr p = 1;

        CODE(MemAllocAsync, &p, (size_t)1 << 50, conf.n1);
        conf_say("null=%d", !p);
        CODE(MemAllocAsync, &p, SIZE_MAX, conf.n1);
        CODE(MemAllocAsync, &p, 4096, conf.n1);
        CODE(MemFreeAsync, p, conf.n1);
}

static void free_of_null(void)
{
        CODE(MemFreeAsync, 0, conf.n1);
        CODE(MemFreeAsync, 0, 0);
}

static void alignment(void)
{
        static const size_t sizes[] = {1, 100, 257, 513, 3 * MIB, 1};
        CUdeviceptr p[6];
        int aligned = 1;

        for (int i = 0; i < 6; i++) {
                CU_OK(cu.MemAllocAsync(&p[i], sizes[i], conf.n1));
                aligned &= p[i] % 512 == 0;
        }
        for (int i = 0; i < 6; i++)
                CU_OK(cu.MemFreeAsync(p[i], conf.n1));
        conf_say("aligned=%d", aligned);
}

/* Every way to name a stream. */
static void streams(void)
{
        CUstream all[] = {conf.n1, conf.b1, NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD};

        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
                CUdeviceptr p;

                CODE(MemAllocAsync, &p, 70000, all[i]);
                CU_OK(cu_fill(&conf.kernels, all[i], p, 70000 / 4, 3));
                CODE(MemFreeAsync, p, all[i]);
        }
}

static void per_thread_variants(void)
{
        CUdeviceptr p;

        NEED(MemAllocAsync_ptsz);
        CODE(MemAllocAsync_ptsz, &p, 4096, NULL);
        CODE(MemFreeAsync_ptsz, p, NULL);
        CODE(MemAllocAsync_ptsz, &p, 4096, conf.n1);
        CODE(MemFreeAsync_ptsz, p, conf.n2);
}

static void freed_on_another_stream(void)
{
        CUdeviceptr p;
        CUevent event;

        CU_OK(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
        CODE(MemAllocAsync, &p, 4096, conf.n1);
        CU_OK(cu.EventRecord(event, conf.n1));
        CU_OK(cu.StreamWaitEvent(conf.n2, event, 0));
        CODE(MemFreeAsync, p, conf.n2);
        CODE(MemFreeAsync, p, conf.n2);
        CU_OK(cu.EventDestroy(event));
}

static void async_memory_freed_by_memfree(void)
{
        CUdeviceptr p;

        CODE(MemAllocAsync, &p, MIB, conf.n1);
        CODE(StreamSynchronize, conf.n1);
        CODE(MemFree, p);
        CODE(MemFree, p);
        CODE(MemFreeAsync, p, conf.n1);
}

/* Other work goes on meanwhile, on its own stream and on another. */
static void async_memory_freed_by_memfree_while_busy(void)
{
        CUstream busy[] = {conf.n1, conf.n2};

        for (int i = 0; i < 2; i++) {
                CUdeviceptr p;

                CODE(MemAllocAsync, &p, MIB, conf.n1);
                CU_OK(cu.StreamSynchronize(conf.n1));
                CU_OK(cu_spin(&conf.kernels, busy[i], 5000000));
                CODE(MemFree, p);
                conf_say("waited=%d", cu.StreamQuery(busy[i]) == CUDA_SUCCESS);
                CU_OK(cu.StreamSynchronize(busy[i]));
        }
}

static void plain_memory_freed_async(void)
{
        CUdeviceptr p, q;

        CODE(MemAlloc, &p, MIB);
        CU_OK(cu_fill(&conf.kernels, conf.n1, p, 1000, 1));
        CODE(MemFreeAsync, p, conf.n1);
        CODE(StreamSynchronize, conf.n1);
        CODE(MemAlloc, &q, MIB);
        CODE(MemFree, q);
}

/* A pending asynchronous free of plain memory, with work on two streams: nobody gets the block. */
static void plain_memory_freed_async_is_not_handed_out_early(void)
{
        CUdeviceptr p, q;

        CODE(MemAlloc, &p, 4 * MIB);
        CU_OK(cu_spin(&conf.kernels, conf.n1, 20000000));
        CU_OK(cu_spin(&conf.kernels, conf.n2, 20000000));
        CU_OK(cu_fill(&conf.kernels, conf.n1, p, MIB, 1));
        CODE(MemFreeAsync, p, conf.n1);
        CODE(MemAlloc, &q, 4 * MIB);
        conf_say("same=%d", p == q);
        CODE(CtxSynchronize);
        CODE(MemFree, q);
}

/* With work on one stream it may be given out again: what the new owner copies there at once, not
 * on that stream, is not overwritten by the old owner's kernel. */
static void plain_memory_freed_async_and_written_by_the_host(void)
{
        uint32_t word = 7;
        CUdeviceptr p, q;

        CODE(MemAlloc, &p, 4 * MIB);
        CU_OK(cu_spin(&conf.kernels, conf.n1, 20000000));
        CU_OK(cu_fill(&conf.kernels, conf.n1, p, MIB, 1));
        CODE(MemFreeAsync, p, conf.n1);
        CODE(MemAlloc, &q, 4 * MIB);
        CODE(MemcpyHtoD, q, &word, sizeof(word));
        CODE(CtxSynchronize);
        word = 0;
        CODE(MemcpyDtoH, &word, q, sizeof(word));
        conf_say("word=%u", word);
        CODE(MemFree, q);
}

static void without_context(void *argument)
{
        CUdeviceptr p;

        (void)argument;
        CODE(MemAllocAsync, &p, 4096, conf.n1);
        CODE(MemFreeAsync, p, conf.n1);
        CODE(MemAllocAsync, &p, 4096, NULL);
}

static void no_current_context(void)
{
        conf_on_thread(NULL, without_context, NULL);
}

static void stream_destroyed_with_a_free_pending(void)
{
        CUstream stream;
        CUdeviceptr p, q;

        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CODE(MemAllocAsync, &p, MIB, stream);
        CU_OK(cu_spin(&conf.kernels, stream, 20000000));
        CU_OK(cu_fill(&conf.kernels, stream, p, MIB / 4, 1));
        CODE(MemFreeAsync, p, stream);
        CODE(StreamDestroy, stream);
        CODE(MemAllocAsync, &q, MIB, conf.n2);
        conf_say("same=%d", p == q);
        CODE(MemFreeAsync, q, conf.n2);
}

const struct conf_case conf_async[] = {
        {"async.alloc_of_nothing", alloc_of_nothing, 0, NULL},
        {"async.alloc_of_too_much", alloc_of_too_much, 0, NULL},
        {"async.free_of_null", free_of_null, 0, NULL},
        {"async.alignment", alignment, 0, NULL},
        {"async.streams", streams, 0, NULL},
        {"async.per_thread_variants", per_thread_variants, 0, NULL},
        {"async.freed_on_another_stream", freed_on_another_stream, 0, NULL},
        {"async.async_memory_freed_by_memfree", async_memory_freed_by_memfree, 0, NULL},
        {"async.async_memory_freed_by_memfree_while_busy", async_memory_freed_by_memfree_while_busy,
         CONF_QUIET, NULL},
        {"async.plain_memory_freed_async", plain_memory_freed_async, 0, NULL},
        {"async.plain_memory_freed_async_is_not_handed_out_early",
         plain_memory_freed_async_is_not_handed_out_early, CONF_QUIET, NULL},
        {"async.plain_memory_freed_async_and_written_by_the_host",
         plain_memory_freed_async_and_written_by_the_host, CONF_QUIET, NULL},
        {"async.no_current_context", no_current_context, 0, NULL},
        {"async.stream_destroyed_with_a_free_pending", stream_destroyed_with_a_free_pending,
         CONF_QUIET, NULL},
        {NULL, NULL, 0, NULL},
};
