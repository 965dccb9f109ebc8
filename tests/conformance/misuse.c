/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Misuse -- double, foreign, interior and wrong-kind frees: the code, and that nothing else happens
 */
#include "conformance.h"

static void double_free(void)
{
        CUdeviceptr p, q;

        CODE(MemAlloc, &p, 1 << 20);
        CODE(MemFree, p);
        CODE(MemFree, p);
        CODE(MemAlloc, &q, 1 << 20);
        CODE(MemFree, q);
        CODE(MemFree, q);
}

static void interior(void)
{
        CUdeviceptr p;

        CODE(MemAlloc, &p, 1 << 20);
        CODE(MemFree, p + 512);
        CODE(MemFree, p + 1);
        CODE(MemFree, p);
}

static void foreign(void)
{
        CUdeviceptr on_stack;

        CODE(MemFree, 0x1234);
        CODE(MemFree, (CUdeviceptr)(uintptr_t)&on_stack);
        CODE(MemFreeAsync, 0x1234, conf.n1);
        CODE(MemFreeAsync, (CUdeviceptr)(uintptr_t)&on_stack, conf.n1);
}

/* A refused free leaves a neighbour's contents alone. */
static void refused_free_changes_nothing(void)
{
        CUdeviceptr p, q;
        unsigned char back[4096];

        CU_OK(cu.MemAlloc(&p, 4096));
        CU_OK(cu.MemAlloc(&q, 4096));
        CU_OK(cu.MemsetD8(q, 5, 4096));
        CODE(MemFree, p);
        CODE(MemFree, p);
        CODE(MemFree, q + 256);
        CU_OK(cu.MemcpyDtoH(back, q, 4096));
        conf_say("kept=%d", back[0] == 5 && back[4095] == 5);
        CODE(MemFree, q);
}

static void double_free_async(void)
{
        CUdeviceptr p;

        CODE(MemAllocAsync, &p, 4096, conf.n1);
        CODE(MemFreeAsync, p, conf.n1);
        CODE(MemFreeAsync, p, conf.n1);
        CODE(StreamSynchronize, conf.n1);
        CODE(MemFreeAsync, p, conf.n1);
        CODE(MemFree, p);
}

static void interior_async(void)
{
        CUdeviceptr p;

        CODE(MemAllocAsync, &p, 4096, conf.n1);
        CODE(MemFreeAsync, p + 256, conf.n1);
        CODE(StreamSynchronize, conf.n1);
        CODE(MemFree, p + 256);
        CODE(MemFreeAsync, p, conf.n1);
}

static void free_then_free_async(void)
{
        CUdeviceptr p;

        CODE(MemAlloc, &p, 4096);
        CODE(MemFree, p);
        CODE(MemFreeAsync, p, conf.n1);
}

static void free_async_then_free(void)
{
        CUdeviceptr p;

        CODE(MemAlloc, &p, 4096);
        CODE(MemFreeAsync, p, conf.n1);
        CODE(MemFree, p);
        CODE(CtxSynchronize);
}

static void managed_freed_async(void)
{
        CUdeviceptr p;

        CODE(MemAllocManaged, &p, 4096, CU_MEM_ATTACH_GLOBAL);
        CODE(MemFreeAsync, p, conf.n1);
        CODE(MemFree, p);
        CODE(MemFree, p);
}

static void pinned_freed_as_device_memory(void)
{
        void *host;

        CODE(MemHostAlloc, &host, 4096, 0);
        CODE(MemFree, (CUdeviceptr)(uintptr_t)host);
        CODE(MemFreeHost, host);
}

static void device_memory_freed_as_pinned(void)
{
        CUdeviceptr p;

        CODE(MemAlloc, &p, 4096);
        CODE(MemFreeHost, (void *)(uintptr_t)p);
        CODE(MemFree, p);
}

static void host_free_of_anything(void)
{
        char heap[64];
        void *host;

        CODE(MemFreeHost, NULL);
        CODE(MemFreeHost, heap);
        CODE(MemHostAlloc, &host, 4096, 0);
        CODE(MemFreeHost, host);
        CODE(MemFreeHost, host);
        CODE(MemHostUnregister, heap);
}

static void pinned_interior(void)
{
        char *host;

        CODE(MemHostAlloc, (void **)&host, 4096, 0);
        CODE(MemFreeHost, host + 512);
        CODE(MemFreeHost, host + 1);
        CODE(MemFree, (CUdeviceptr)(uintptr_t)(host + 512));
        CODE(MemFreeHost, host);
}

static void memory_used_after_its_free(void)
{
        CUdeviceptr p;

        CODE(MemAlloc, &p, 1 << 20);
        CODE(MemFree, p);
        CODE(MemsetD8, p, 1, 4096);
        CODE(CtxSynchronize);
}

static void destroyed_stream(void)
{
        CUstream stream;

        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.StreamDestroy(stream));
        CODE(StreamSynchronize, stream);
}

const struct conf_case conf_misuse[] = {
        {"misuse.double_free", double_free, 0, NULL},
        {"misuse.interior", interior, 0, NULL},
        {"misuse.foreign", foreign, 0, NULL},
        {"misuse.refused_free_changes_nothing", refused_free_changes_nothing, 0, NULL},
        {"misuse.double_free_async", double_free_async, 0, NULL},
        {"misuse.interior_async", interior_async, 0, NULL},
        {"misuse.free_then_free_async", free_then_free_async, 0, NULL},
        {"misuse.free_async_then_free", free_async_then_free, CONF_KILLS,
         "cuMemFree of a block whose cuMemFreeAsync is pending returns 0, and the next "
         "cuCtxSynchronize ends in SIGSEGV; under the shim the second free returns 1"},
        {"misuse.managed_freed_async", managed_freed_async, 0, NULL},
        {"misuse.pinned_freed_as_device_memory", pinned_freed_as_device_memory, 0, NULL},
        {"misuse.device_memory_freed_as_pinned", device_memory_freed_as_pinned, 0, NULL},
        {"misuse.host_free_of_anything", host_free_of_anything, 0, NULL},
        {"misuse.pinned_interior", pinned_interior, 0, NULL},
        {"misuse.memory_used_after_its_free", memory_used_after_its_free, CONF_DIFFERS,
         "the driver refuses a range that no allocation holds; under the shim the range is "
         "still mapped, as in any allocator that keeps memory"},
        {"misuse.destroyed_stream", destroyed_stream, CONF_KILLS,
         "the driver follows the stale handle"},
        {NULL, NULL, 0, NULL},
};
