/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Context -- who owns memory, and what is left of it when a context goes
 *
 * Contexts are told apart by what works and what does not, never by handles:
 * a reset primary context has the handle it had before.
 */
#include "conformance.h"

#define MIB ((size_t)1 << 20)

static CUcontext new_context(void)
{
        CUcontext context;

        CU_OK(cu.CtxCreate(&context, 0, conf.device));
        return context;
}

static void freed_from_another_context(void)
{
        CUcontext second = new_context();
        CUdeviceptr p, q;

        CODE(MemAlloc, &p, MIB);
        CODE(CtxSetCurrent, conf.context);
        CODE(MemAlloc, &q, MIB);
        CODE(MemFree, p);
        CODE(MemFree, p);
        CODE(CtxSetCurrent, second);
        CODE(MemFree, q);
        CODE(CtxDestroy, second);
        CODE(CtxSetCurrent, conf.context);
}

static void destroyed_with_live_blocks(void)
{
        CUcontext second = new_context();
        CUdeviceptr plain[3], async;
        CUstream stream;

        for (int i = 0; i < 3; i++)
                CU_OK(cu.MemAlloc(&plain[i], MIB << i));
        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.MemAllocAsync(&async, MIB, stream));
        CU_OK(cu.StreamSynchronize(stream));
        CODE(CtxDestroy, second);
        CODE(CtxSetCurrent, conf.context);
        for (int i = 0; i < 3; i++)
                CODE(MemFree, plain[i]);
        CODE(MemFree, async);
        CODE(MemFree, async);
}

/* Blocks freed before the context goes must not come back to life in the next one. */
static void one_after_another(void)
{
        int wrong = 0;

        for (int i = 0; i < 5; i++) {
                CUcontext context = new_context();
                struct cu_kernels kernels;
                CUdeviceptr p, q;
                uint32_t back = 0;

                cu_load_kernels(&kernels);
                CU_OK(cu.MemAlloc(&p, MIB));
                CU_OK(cu.MemAlloc(&q, MIB));
                CU_OK(cu.MemFree(p));
                CU_OK(cu.MemAlloc(&p, MIB));
                CU_OK(cu_fill(&kernels, NULL, p, MIB / 4, (uint32_t)i));
                CU_OK(cu.MemcpyDtoH(&back, p + MIB - 4, 4));
                wrong += back != (uint32_t)i;
                CU_OK(cu.CtxDestroy(context));
                CU_OK(cu.CtxSetCurrent(conf.context));
                wrong += cu.MemFree(q) != CUDA_ERROR_INVALID_VALUE;
        }
        conf_say("wrong=%d", wrong);
}

/* Many blocks freed while kernels use them, and the context goes before anybody looked. */
static void destroyed_while_busy(void)
{
        int failures = 0;

        for (int i = 0; i < 3; i++) {
                CUcontext context = new_context();
                struct cu_kernels kernels;
                CUstream stream;
                CUdeviceptr p;

                cu_load_kernels(&kernels);
                CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
                for (int j = 0; j < 200; j++) {
                        CU_OK(cu.MemAlloc(&p, 50000));
                        CU_OK(cu_fill(&kernels, stream, p, 50000 / 4, 1));
                        CU_OK(cu_spin(&kernels, stream, 20000));
                        failures += cu.MemFree(p) != CUDA_SUCCESS;
                }
                failures += cu.CtxDestroy(context) != CUDA_SUCCESS;
                CU_OK(cu.CtxSetCurrent(conf.context));
                CU_OK(cu.MemAlloc(&p, 50000));
                failures += cu_fill(&conf.kernels, conf.n1, p, 50000 / 4, 1) != CUDA_SUCCESS;
                failures += cu.MemFree(p) != CUDA_SUCCESS;
        }
        conf_say("failures=%d", failures);
}

static void events_and_streams_of_two_contexts(void)
{
        CUcontext second = new_context();
        CUevent event;
        CUstream stream;

        CU_OK(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CODE(EventRecord, event, conf.n1);
        CODE(EventRecord, event, stream);
        CODE(StreamWaitEvent, conf.n1, event, 0);
        CODE(CtxDestroy, second);
        CODE(CtxSetCurrent, conf.context);
        CODE(StreamSynchronize, conf.n1);
}

/* Streams name their device: the current context does not matter. */
static void async_memory_and_the_current_context(void)
{
        CUcontext second = new_context();
        CUdeviceptr p;

        CODE(MemAllocAsync, &p, MIB, conf.n1);
        CODE(MemFreeAsync, p, conf.n1);
        CODE(CtxDestroy, second);
        CODE(CtxSetCurrent, conf.context);
}

#if CUDA_VERSION >= 12000
static void say_id(void)
{
        unsigned long long id;

        if (cu.CtxGetId)
                CODE(CtxGetId, conf.context, &id);
}

static uint64_t context_id(CUcontext context)
{
        unsigned long long id = 0;

        if (cu.CtxGetId)
                CU_OK(cu.CtxGetId(context, &id));
        return id;
}
#else
static void say_id(void)
{
}

/* Without ids, count: the caller only asks whether two differ. */
static uint64_t context_id(CUcontext context)
{
        static uint64_t next;

        (void)context;
        return ++next;
}
#endif

/* A thread still knows where it was, but nothing can be done there: @p is a dead block. */
static void after_reset(CUdeviceptr p)
{
        CUdeviceptr q;
        CUcontext popped;
        CUdevice device;
        CUevent event;
        size_t left, total;

        CODE(CtxPushCurrent, conf.context);
        CODE(CtxGetDevice, &device);
        CODE(CtxPopCurrent, &popped);
        say_id();
        CODE(MemFree, p);
        CODE(MemFree, 0);
        CODE(MemsetD8, p, 1, 16);
        CODE(MemAlloc, &q, MIB);
        CODE(MemAllocAsync, &q, MIB, NULL);
        CODE(EventCreate, &event, CU_EVENT_DISABLE_TIMING);
        CODE(MemGetInfo, &left, &total);
        CODE(CtxSynchronize);
}

static void reset(void)
{
        uint64_t before = context_id(conf.context);
        CUcontext again;
        CUdeviceptr p, q;
        uint32_t back = 0;

        CU_OK(cu.MemAlloc(&p, MIB));
        CU_OK(cu.MemAlloc(&q, 3 * MIB));
        CU_OK(cu.MemFree(q));
        CODE(DevicePrimaryCtxReset, conf.device);
        after_reset(p);
        CODE(DevicePrimaryCtxRetain, &again, conf.device);
        conf_say("same_handle=%d other_id=%d", again == conf.context, context_id(again) != before);
        CU_OK(cu.CtxSetCurrent(again));
        cu_load_kernels(&conf.kernels);
        CODE(MemAlloc, &q, MIB);
        CU_OK(cu_fill(&conf.kernels, NULL, q, MIB / 4, 17));
        CODE(MemcpyDtoH, &back, q, 4);
        conf_say("value=%u", back);
        CODE(MemFree, q);
        CODE(MemFree, q);
}

/* Memory of a pool belongs to no context (A20). */
static void reset_with_pool_memory(void)
{
        CUcontext again;
        CUdeviceptr p;
        uint32_t back = 0;

        CU_OK(cu.MemAllocAsync(&p, MIB, conf.n1));
        CU_OK(cu_fill(&conf.kernels, conf.n1, p, MIB / 4, 23));
        CU_OK(cu.StreamSynchronize(conf.n1));
        CODE(DevicePrimaryCtxReset, conf.device);
        CODE(MemFree, p);
        CODE(DevicePrimaryCtxRetain, &again, conf.device);
        CU_OK(cu.CtxSetCurrent(again));
        CODE(MemcpyDtoH, &back, p + MIB - 4, 4);
        conf_say("value=%u", back);
        CODE(MemFree, p);
        CODE(MemFree, p);
}

static void released_to_the_last(void)
{
        unsigned int flags;
        CUcontext again;
        CUdeviceptr p, q;
        int active = -1;

        CU_OK(cu.MemAlloc(&p, MIB));
        CU_OK(cu.MemAlloc(&q, 3 * MIB));
        CU_OK(cu.MemFree(q));
        CODE(DevicePrimaryCtxRelease, conf.device);
        CODE(DevicePrimaryCtxGetState, conf.device, &flags, &active);
        conf_say("active=%d", active);
        CODE(DevicePrimaryCtxRetain, &again, conf.device);
        CU_OK(cu.CtxSetCurrent(again));
        CODE(MemFree, p);
        CODE(MemAlloc, &q, MIB);
        CODE(MemFree, q);
}

static void reset_again_and_again(void)
{
        int failures = 0;

        for (int i = 0; i < 10; i++) {
                CUcontext context;
                CUdeviceptr p[8];

                CU_OK(cu.DevicePrimaryCtxRetain(&context, conf.device));
                CU_OK(cu.CtxSetCurrent(context));
                for (int j = 0; j < 8; j++)
                        failures += cu.MemAlloc(&p[j], (size_t)100000 << j) != CUDA_SUCCESS;
                for (int j = 0; j < 4; j++)
                        failures += cu.MemFree(p[j]) != CUDA_SUCCESS;
                failures += cu.DevicePrimaryCtxReset(conf.device) != CUDA_SUCCESS;
        }
        conf_say("failures=%d", failures);
}

/* The other device, where there is one. */
static void second_device(void)
{
        uint32_t *counter = cu_counter(1);
        struct cu_kernels kernels;
        CUcontext other;
        CUdeviceptr p, q;
        CUdevice device;
        CUstream stream;
        int count = 0, where = -1;

        CU_OK(cu.DeviceGetCount(&count));
        if (count < 2) {
                conf_say("skipped: one device");
                return;
        }
        CU_OK(cu.DeviceGet(&device, 1));
        CU_OK(cu.DevicePrimaryCtxRetain(&other, device));
        CU_OK(cu.CtxSetCurrent(other));
        cu_load_kernels(&kernels);
        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CODE(MemAlloc, &p, MIB);
        CODE(CtxSetCurrent, conf.context);
        CODE(PointerGetAttribute, &where, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p);
        conf_say("device=%d", where);
        CODE(MemAllocAsync, &q, MIB, stream);
        CODE(PointerGetAttribute, &where, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, q);
        conf_say("device=%d", where);
        CU_OK(cu.CtxSetCurrent(other));
        CU_OK(cu_fill(&kernels, stream, q, MIB / 4, 3));
        CU_OK(cu_check(&kernels, stream, q, MIB / 4, 3, (CUdeviceptr)(uintptr_t)counter));
        CODE(MemFreeAsync, q, stream);
        CODE(StreamSynchronize, stream);
        conf_say("mismatches=%u", *counter);
        CODE(CtxSetCurrent, conf.context);
        CODE(MemFree, p);
        CODE(MemFree, p);
        CODE(DevicePrimaryCtxRelease, device);
        CU_OK(cu.MemFreeHost(counter));
}

const struct conf_case conf_context[] = {
        {"context.freed_from_another_context", freed_from_another_context, 0, NULL},
        {"context.destroyed_with_live_blocks", destroyed_with_live_blocks, 0, NULL},
        {"context.one_after_another", one_after_another, 0, NULL},
        {"context.destroyed_while_busy", destroyed_while_busy, 0, NULL},
        {"context.events_and_streams_of_two_contexts", events_and_streams_of_two_contexts, 0, NULL},
        {"context.async_memory_and_the_current_context", async_memory_and_the_current_context, 0,
         NULL},
        {"context.reset", reset, CONF_ALONE, NULL},
        {"context.reset_with_pool_memory", reset_with_pool_memory, CONF_ALONE, NULL},
        {"context.released_to_the_last", released_to_the_last, CONF_ALONE, NULL},
        {"context.reset_again_and_again", reset_again_and_again, CONF_ALONE, NULL},
        {"context.second_device", second_device, CONF_ALONE, NULL},
        {NULL, NULL, 0, NULL},
};
