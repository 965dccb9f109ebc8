/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Query -- what the driver says about a pointer
 *
 * Served from a pool or not, a block must look like an allocation of its own:
 * its start, the size that was asked for, an id that no other block has.
 */
#include "conformance.h"

#include <string.h>

#define MIB ((size_t)1 << 20)

/* One attribute: its value as a number, or the code if there is one. */
static void say_number(const char *name, CUpointer_attribute attribute, CUdeviceptr p)
{
        uint64_t value = 0;
        CUresult result = cu.PointerGetAttribute(&value, attribute, p);

        if (result)
                conf_say("%s:code=%d", name, (int)result);
        else
                conf_say("%s=%u", name, (unsigned)value);
}

static void say_handles(CUdeviceptr p)
{
        CUcontext context = NULL;
        CUmemoryPool pool = NULL, standard = NULL;
        CUresult result = cu.PointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, p);

        if (result)
                conf_say("context:code=%d", (int)result);
        else
                conf_say("context=%s", !context                  ? "null"
                                       : context == conf.context ? "own"
                                                                 : "other");
        result = cu.PointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p);
        CU_OK(cu.DeviceGetDefaultMemPool(&standard, conf.device));
        if (result)
                conf_say("pool:code=%d", (int)result);
        else
                conf_say("pool=%s", !pool ? "null" : pool == standard ? "default" : "other");
}

static void say_range(CUdeviceptr p, CUdeviceptr base)
{
        CUdeviceptr start = 0;
        size_t bytes = 0;
        CUresult result;

        result = cu.PointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p);
        if (result)
                conf_say("start:code=%d", (int)result);
        else
                conf_say("start=%s", start == base ? "base" : "other");
        result = cu.PointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p);
        if (result)
                conf_say("bytes:code=%d", (int)result);
        else
                conf_say("bytes=%zu", bytes);
}

static void say_all(CUdeviceptr p, CUdeviceptr base)
{
        CUdeviceptr device_pointer = 0;

        say_number("type", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p);
        say_handles(p);
        say_range(p, base);
        say_number("device", CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p);
        say_number("managed", CU_POINTER_ATTRIBUTE_IS_MANAGED, p);
        say_number("mapped", CU_POINTER_ATTRIBUTE_MAPPED, p);
        if (!cu.PointerGetAttribute(&device_pointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p))
                conf_say("pointer=%s", device_pointer == p ? "itself" : "other");
}

static void plain(void)
{
        CUdeviceptr p;

        CODE(MemAlloc, &p, 1000);
        say_all(p, p);
        CU_OK(cu.MemFree(p));
}

static void plain_interior(void)
{
        CUdeviceptr p;

        CODE(MemAlloc, &p, 3 * MIB + 7);
        say_all(p + 2 * MIB, p);
        CU_OK(cu.MemFree(p));
}

static void async_memory(void)
{
        CUdeviceptr p;

        CODE(MemAllocAsync, &p, 1000, conf.n1);
        say_all(p, p);
        CU_OK(cu.MemFreeAsync(p, conf.n1));
}

static void async_interior(void)
{
        CUdeviceptr p;

        CODE(MemAllocAsync, &p, MIB + 7, conf.n1);
        say_all(p + 70000, p);
        CU_OK(cu.MemFreeAsync(p, conf.n1));
}

/* Page-locked memory, and a neighbour of it. */
static void pinned(void)
{
        void *host, *other;
        CUdeviceptr p, base = 0;
        size_t bytes = 0;

        CODE(MemHostAlloc, &host, 1000, 0);
        CODE(MemHostAlloc, &other, 8, 0);
        p = (CUdeviceptr)(uintptr_t)host;
        say_number("type", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + 500);
        say_handles(p + 500);
        say_range(p + 500, p);
        say_range((CUdeviceptr)(uintptr_t)other, (CUdeviceptr)(uintptr_t)other);
        CODE(MemGetAddressRange, &base, &bytes, p + 500);
        conf_say("base=%d bytes=%zu", base == p, bytes);
        CODE(MemFreeHost, host);
        say_number("type", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p);
        CODE(MemFreeHost, other);
}

/* Freed, and nothing allocated since. */
static void freed(void)
{
        CUdeviceptr p;

        CODE(MemAlloc, &p, 3 * MIB);
        CODE(MemFree, p);
        say_number("type", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p);
        say_range(p, p);
}

static void unknown(void)
{
        say_number("type", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0x1234);
        say_range(0x1234, 0x1234);
}

static uint64_t buffer_id(CUdeviceptr p)
{
        uint64_t id = 0;

        CU_OK(cu.PointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
        return id;
}

/* Registration caches rely on it: an address that comes back has another id. */
static void buffer_ids(void)
{
        uint64_t ids[64];
        CUdeviceptr p, q;
        int same = 0;

        CU_OK(cu.MemAlloc(&p, 8192));
        conf_say("interior=%d", buffer_id(p) == buffer_id(p + 5000));
        CU_OK(cu.MemAllocAsync(&q, 8192, conf.n1));
        conf_say("apart=%d", buffer_id(p) != buffer_id(q));
        CU_OK(cu.MemFreeAsync(q, conf.n1));
        CU_OK(cu.MemFree(p));
        for (int i = 0; i < 64; i++) {
                CU_OK(cu.MemAlloc(&p, 8192));
                ids[i] = buffer_id(p);
                CU_OK(cu.MemFree(p));
                CU_OK(cu.CtxSynchronize());
        }
        for (int i = 0; i < 64; i++)
                for (int j = 0; j < i; j++)
                        same += ids[i] == ids[j];
        conf_say("repeated=%d", same);
}

/* Filled with what no driver writes before each call. */
static struct {
        CUdeviceptr start, host;
        size_t bytes;
        unsigned int type;
        CUcontext context;
} several;

#define SENTINEL 0x77

/* What many attributes at once say of @p; its start is at @base. */
static void say_several(CUdeviceptr p, CUdeviceptr base)
{
        CUpointer_attribute names[] = {
                CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_CONTEXT,
                CU_POINTER_ATTRIBUTE_HOST_POINTER};
        void *values[] = {&several.start, &several.bytes, &several.type, &several.context,
                          &several.host};
        CUdeviceptr untouched;

        memset(&several, SENTINEL, sizeof(several));
        memset(&untouched, SENTINEL, sizeof(untouched));
        CODE(PointerGetAttributes, 5, names, values, p);
        conf_say("start=%s", several.start == untouched ? "untouched"
                             : several.start == base    ? "base"
                                                        : "other");
        if (several.bytes == untouched)
                conf_say("bytes=untouched");
        else
                conf_say("bytes=%zu", several.bytes);
        conf_say("type=%u context=%s host=%s", several.type,
                 !several.context                  ? "null"
                 : several.context == conf.context ? "own"
                                                   : "other",
                 !several.host       ? "null"
                 : several.host == p ? "itself"
                                     : "other");
}

static void several_at_once(void)
{
        CUdeviceptr p;

        CU_OK(cu.MemAlloc(&p, 3000));
        say_several(p + 100, p);
        CU_OK(cu.MemFree(p));
        say_several(p, p);
        say_several(0x1234, 0x1234);
        CU_OK(cu.MemAllocAsync(&p, 3000, conf.n1));
        say_several(p + 100, p);
        CU_OK(cu.MemFreeAsync(p, conf.n1));
        CU_OK(cu.StreamSynchronize(conf.n1));
        say_several(p, p);
}

static void address_range(void)
{
        CUdeviceptr p, base = 0;
        size_t bytes = 0;

        CU_OK(cu.MemAlloc(&p, 1000));
        CODE(MemGetAddressRange, &base, &bytes, p + 999);
        conf_say("base=%d bytes=%zu", base == p, bytes);
        CODE(MemGetAddressRange, NULL, &bytes, p);
        CODE(MemGetAddressRange, &base, NULL, p);
        CODE(MemGetAddressRange, &base, &bytes, p + 1000);
        CODE(MemGetAddressRange, &base, &bytes, 0x1234);
        CU_OK(cu.MemFree(p));
        CODE(MemGetAddressRange, &base, &bytes, p);
        CODE(MemGetAddressRange, NULL, NULL, p);
        CU_OK(cu.MemAllocAsync(&p, 1000, conf.n1));
        CODE(MemGetAddressRange, &base, &bytes, p + 999);
        conf_say("base=%d bytes=%zu", base == p, bytes);
        CU_OK(cu.MemFreeAsync(p, conf.n1));
}

/* Blocks in a row: each has its own range, whatever its neighbours do. */
static void ranges_of_neighbours(void)
{
        enum { BLOCKS = 32 };
        CUdeviceptr p[BLOCKS], base;
        size_t bytes;
        int right = 0;

        for (int i = 0; i < BLOCKS; i++)
                CU_OK(cu.MemAlloc(&p[i], 100 + (size_t)i * 300));
        for (int i = 0; i < BLOCKS; i += 2)
                CU_OK(cu.MemFree(p[i]));
        for (int i = 1; i < BLOCKS; i += 2) {
                CU_OK(cu.MemGetAddressRange(&base, &bytes, p[i] + 50));
                right += base == p[i] && bytes == 100 + (size_t)i * 300;
        }
        for (int i = 1; i < BLOCKS; i += 2)
                CU_OK(cu.MemFree(p[i]));
        conf_say("right=%d of %d", right, BLOCKS / 2);
}

static void sync_memops(void)
{
        CUdeviceptr p;
        unsigned int on = 1;

        CU_OK(cu.MemAlloc(&p, 4096));
        say_number("before", CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p);
        CODE(PointerSetAttribute, &on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p);
        say_number("after", CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p);
        CU_OK(cu.MemFree(p));
        CU_OK(cu.MemAllocAsync(&p, 4096, conf.n1));
        CU_OK(cu.StreamSynchronize(conf.n1));
        say_number("async", CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p);
        CU_OK(cu.MemFreeAsync(p, conf.n1));
}

/* Tokens are refused by nobody, and from then on the block's copies are synchronous. */
static void tokens(void)
{
        CUDA_POINTER_ATTRIBUTE_P2P_TOKENS pair;
        CUdeviceptr p;

        CU_OK(cu.MemAlloc(&p, 4096));
        say_number("before", CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p);
        CODE(PointerGetAttribute, &pair, CU_POINTER_ATTRIBUTE_P2P_TOKENS, p);
        say_number("after", CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p);
        CU_OK(cu.MemFree(p));
        CU_OK(cu.MemAlloc(&p, 4096));
        say_number("next", CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p);
        CU_OK(cu.MemFree(p));
}

/* An attribute of a yes or a no is four bytes wide, whatever is behind them. */
static void say_width(const char *name, CUpointer_attribute attribute, CUdeviceptr p)
{
        uint32_t value[2] = {2, 2};
        CUresult result = cu.PointerGetAttribute(value, attribute, p);

        conf_say("%s:code=%d value=%u behind=%u", name, (int)result, value[0], value[1]);
}

static void widths(void)
{
        CUdeviceptr p;

        CU_OK(cu.MemAlloc(&p, 3 * MIB));
        say_width("sync_memops", CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p);
        say_width("managed", CU_POINTER_ATTRIBUTE_IS_MANAGED, p);
        say_width("mapped", CU_POINTER_ATTRIBUTE_MAPPED, p);
        say_width("rdma", CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, p);
        CU_OK(cu.MemFree(p));
}

static void attributes_nobody_can_set(void)
{
        unsigned int on = 1;
        CUdeviceptr p;

        CU_OK(cu.MemAlloc(&p, 4096));
        CODE(PointerSetAttribute, &on, CU_POINTER_ATTRIBUTE_BUFFER_ID, p);
        CODE(PointerSetAttribute, &on, CU_POINTER_ATTRIBUTE_IS_MANAGED, p);
        CODE(PointerSetAttribute, &on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 0x1234);
        CU_OK(cu.MemFree(p));
        CODE(PointerSetAttribute, &on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p);
}

static void access_of_plain_memory(void)
{
        CUmemLocation place = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = conf.device};
        unsigned long long flags = 7;
        CUdeviceptr p;

        CU_OK(cu.MemAlloc(&p, 4 * MIB));
        CODE(MemGetAccess, &flags, &place, p);
        conf_say("flags=%llu", flags);
        CU_OK(cu.MemFree(p));
        CODE(MemGetAccess, &flags, &place, 0x1000);
}

static void allocation_handles(void)
{
        CUmemGenericAllocationHandle handle;
        CUdeviceptr p;

        CU_OK(cu.MemAlloc(&p, 4 * MIB));
        CODE(MemRetainAllocationHandle, &handle, (void *)(uintptr_t)p);
        CU_OK(cu.MemFree(p));
        CU_OK(cu.MemAllocAsync(&p, 4 * MIB, conf.n1));
        CU_OK(cu.StreamSynchronize(conf.n1));
        CODE(MemRetainAllocationHandle, &handle, (void *)(uintptr_t)p);
        CU_OK(cu.MemFreeAsync(p, conf.n1));
}

static void ipc_of_plain_memory(void)
{
        CUipcMemHandle handle, inside;
        CUdeviceptr p;

        /* Not the whole of what a pool would obtain for it. */
        CU_OK(cu.MemAlloc(&p, 3 * MIB));
        say_number("capable", CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p);
        CODE(IpcGetMemHandle, &handle, p);
        CODE(IpcGetMemHandle, &inside, p + MIB);
        conf_say("same=%d", !memcmp(&handle, &inside, sizeof(handle)));
        CU_OK(cu.MemFree(p));
}

static void ipc_of_other_memory(void)
{
        CUipcMemHandle handle;
        CUdeviceptr p, q;

        CU_OK(cu.MemAllocAsync(&p, 4 * MIB, conf.n1));
        CU_OK(cu.StreamSynchronize(conf.n1));
        say_number("capable", CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p);
        CODE(IpcGetMemHandle, &handle, p);
        CU_OK(cu.MemFreeAsync(p, conf.n1));
        CU_OK(cu.MemAllocManaged(&q, 4096, CU_MEM_ATTACH_GLOBAL));
        CODE(IpcGetMemHandle, &handle, q);
        CU_OK(cu.MemFree(q));
        CODE(IpcGetMemHandle, &handle, 0x1234);
}

const struct conf_case conf_query[] = {
        {"query.plain", plain, 0, NULL},
        {"query.plain_interior", plain_interior, 0, NULL},
        {"query.async", async_memory, 0, NULL},
        {"query.async_interior", async_interior, 0, NULL},
        {"query.pinned", pinned, 0, NULL},
        {"query.freed", freed, 0, NULL},
        {"query.unknown", unknown, 0, NULL},
        {"query.buffer_ids", buffer_ids, 0, NULL},
        {"query.several_at_once", several_at_once, 0, NULL},
        {"query.address_range", address_range, 0, NULL},
        {"query.ranges_of_neighbours", ranges_of_neighbours, 0, NULL},
        {"query.sync_memops", sync_memops, 0, NULL},
        {"query.tokens", tokens, 0, NULL},
        {"query.widths", widths, 0, NULL},
        {"query.attributes_nobody_can_set", attributes_nobody_can_set, 0, NULL},
        {"query.access_of_plain_memory", access_of_plain_memory, 0, NULL},
        {"query.allocation_handles", allocation_handles, 0, NULL},
        {"query.ipc_of_plain_memory", ipc_of_plain_memory, 0, NULL},
        {"query.ipc_of_other_memory", ipc_of_other_memory, 0, NULL},
        {NULL, NULL, 0, NULL},
};
