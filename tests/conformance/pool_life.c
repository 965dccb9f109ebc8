/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pool life -- memory pools beside each other and one after the other, and which one is current
 */
#include "pools.h"

static void destroyed_with_a_live_block(void)
{
        CUmemoryPool pool = new_pool(0);
        uint32_t back = 0;
        CUdeviceptr p;

        CODE(MemAllocFromPoolAsync, &p, 4096, pool, conf.n1);
        CODE(MemPoolDestroy, pool);
        CU_OK(cu_fill(&conf.kernels, conf.n1, p, 1024, 21));
        CODE(StreamSynchronize, conf.n1);
        CU_OK(cu.MemcpyDtoH(&back, p + 4092, 4));
        conf_say("value=%u", back);
        CODE(MemFreeAsync, p, conf.n1);
        CODE(StreamSynchronize, conf.n1);
}

static void default_pool_stays(void)
{
        CODE(MemPoolDestroy, default_pool());
        CODE(MemPoolTrimTo, default_pool(), 0);
}

/*
 * The handle of a pool that is gone is another one's soon, which has nothing of the first. Its
 * block is freed before: of 20 pools that went with live ones driver 580.159 dies now and then,
 * here or a few calls later.
 */
static void one_after_the_other(void)
{
        uint64_t wrong = 0;
        CUdeviceptr p;

        for (int i = 0; i < 20; i++) {
                CUmemoryPool pool = new_pool(0);

                wrong += figure(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
                wrong += figure(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
                set_threshold(pool, UINT64_MAX);
                CU_OK(cu.MemAllocFromPoolAsync(&p, 4096, pool, conf.n1));
                wrong += figure(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) != 4096;
                CU_OK(cu.MemFreeAsync(p, conf.n1));
                CU_OK(cu.MemPoolDestroy(pool));
        }
        CODE(StreamSynchronize, conf.n1);
        conf_say("wrong=%llu", (unsigned long long)wrong);
}

/* While there is room, one pool's memory is not another's. */
static void pools_are_apart(void)
{
        CUmemoryPool one = new_pool(0), other = new_pool(0);
        CUdeviceptr p, q, r;

        set_threshold(one, UINT64_MAX);
        CU_OK(cu.MemAllocFromPoolAsync(&p, 64 * MIB, one, conf.n1));
        CU_OK(cu.MemFreeAsync(p, conf.n1));
        CU_OK(cu.MemAllocFromPoolAsync(&q, 64 * MIB, other, conf.n1));
        CU_OK(cu.MemAllocFromPoolAsync(&r, 64 * MIB, one, conf.n1));
        conf_say("other=%d same=%d", q != p, r == p);
        CU_OK(cu.MemFreeAsync(q, conf.n1));
        CU_OK(cu.MemFreeAsync(r, conf.n1));
        CODE(MemPoolDestroy, one);
        CODE(MemPoolDestroy, other);
        CODE(StreamSynchronize, conf.n1);
}

static void current_pool(void)
{
        CUmemoryPool pool = new_pool(0), current = NULL;
        CUdeviceptr p;

        CODE(DeviceGetMemPool, &current, conf.device);
        conf_say("default=%d", current == default_pool());
        CODE(DeviceSetMemPool, conf.device, pool);
        CODE(DeviceGetMemPool, &current, conf.device);
        conf_say("set=%d", current == pool);
        CODE(MemAllocAsync, &p, 4096, conf.n1);
        conf_say("from_it=%d", pool_of(p) == pool);
        CODE(MemFreeAsync, p, conf.n1);
        CODE(StreamSynchronize, conf.n1);
        CODE(MemPoolDestroy, pool);
        CODE(DeviceGetMemPool, &current, conf.device);
        conf_say("default=%d", current == default_pool());
        CODE(MemAllocAsync, &p, 4096, conf.n1);
        conf_say("from_default=%d", pool_of(p) == default_pool());
        CODE(MemFreeAsync, p, conf.n1);
}

/* The current pool's memory is one, whichever call asks for it. */
static void current_pool_is_one(void)
{
        CUmemoryPool pool = new_pool(0);
        CUdeviceptr p, q, r;

        set_threshold(pool, UINT64_MAX);
        CODE(DeviceSetMemPool, conf.device, pool);
        CU_OK(cu.MemAllocAsync(&p, 64 * MIB, conf.n1));
        CU_OK(cu.MemFreeAsync(p, conf.n1));
        CU_OK(cu.MemAllocFromPoolAsync(&q, 64 * MIB, pool, conf.n1));
        CU_OK(cu.MemFreeAsync(q, conf.n1));
        CODE(DeviceSetMemPool, conf.device, default_pool());
        CU_OK(cu.MemAllocAsync(&r, 64 * MIB, conf.n1));
        conf_say("same=%d default=%d", p == q, r != p);
        CU_OK(cu.MemFreeAsync(r, conf.n1));
        CODE(MemPoolDestroy, pool);
        CODE(StreamSynchronize, conf.n1);
}

/* A pool with a limit is current: it is kept by every allocation. */
static void current_pool_with_a_limit(void)
{
        CUmemoryPool pool = new_pool(64 * MIB);
        CUdeviceptr p, q;

#if CUDA_VERSION < 12020
        conf_say("skipped: headers without maxSize");
#endif
        CODE(DeviceSetMemPool, conf.device, pool);
        CODE(MemAllocAsync, &p, 48 * MIB, conf.n1);
        conf_say("from_it=%d", pool_of(p) == pool);
        CODE(MemAllocAsync, &q, 48 * MIB, conf.n1);
        CODE(MemFreeAsync, p, conf.n1);
        CODE(DeviceSetMemPool, conf.device, default_pool());
        CODE(MemAllocAsync, &p, 4096, conf.n1);
        conf_say("from_default=%d", pool_of(p) == default_pool());
        CODE(MemFreeAsync, p, conf.n1);
        CODE(MemPoolDestroy, pool);
        CODE(StreamSynchronize, conf.n1);
}

/* The current one is destroyed while a block of it is in use. */
static void current_pool_goes(void)
{
        CUmemoryPool pool = new_pool(0);
        CUdeviceptr p, q;

        CODE(DeviceSetMemPool, conf.device, pool);
        CODE(MemAllocAsync, &p, 4096, conf.n1);
        CODE(MemPoolDestroy, pool);
        CODE(MemAllocAsync, &q, 4096, conf.n1);
        conf_say("apart=%d default=%d", p != q, pool_of(q) == default_pool());
        CODE(MemFreeAsync, p, conf.n1);
        CODE(MemFreeAsync, p, conf.n1);
        CODE(MemFreeAsync, q, conf.n1);
        CODE(StreamSynchronize, conf.n1);
}

/* In a capture the memory is the graph's; the pool only says what kind. */
static void captured(void)
{
        CUmemoryPool pool = new_pool(0);
        CUgraph graph = NULL;
        CUdeviceptr p = 0;

        CODE(StreamBeginCapture, conf.n1, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
        CODE(MemAllocFromPoolAsync, &p, 4096, pool, conf.n1);
        CODE(MemFreeAsync, p, conf.n1);
        CODE(StreamEndCapture, conf.n1, &graph);
        CODE(GraphDestroy, graph);
        conf_say("used=%llu", (unsigned long long)figure(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
        CODE(MemPoolDestroy, pool);
}

/* A capture on another stream leaves a pool what it is. */
static void beside_a_capture(void)
{
        CUmemoryPool pool = new_pool(0);
        CUgraph graph = NULL;
        CUdeviceptr p, q;

        CU_OK(cu.MemAllocFromPoolAsync(&p, 4096, pool, conf.n2));
        CODE(StreamBeginCapture, conf.n1, CU_STREAM_CAPTURE_MODE_RELAXED);
        CODE(MemAllocFromPoolAsync, &q, 4096, pool, conf.n2);
        conf_say("pool=%d", pool_of(q) == pool);
        conf_say("used=%llu", (unsigned long long)figure(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
        CODE(MemFreeAsync, p, conf.n2);
        CODE(StreamEndCapture, conf.n1, &graph);
        CODE(GraphDestroy, graph);
        conf_say("used=%llu", (unsigned long long)figure(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
        CODE(MemPoolDestroy, pool);
        CODE(MemFreeAsync, q, conf.n2);
        CODE(StreamSynchronize, conf.n2);
}

/* A pool that was not made to be shared. */
static void export_of_a_block(void)
{
        CUmemPoolPtrExportData data;
        CUmemoryPool pool = new_pool(0);
        CUdeviceptr p;
        int handle = -1;

        CU_OK(cu.MemAllocFromPoolAsync(&p, 4096, pool, conf.n1));
        CODE(MemPoolExportPointer, &data, p);
        CODE(MemPoolExportToShareableHandle, &handle, pool,
             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
        CODE(MemFreeAsync, p, conf.n1);
        CODE(MemPoolDestroy, pool);
}

/* Another device writes what it was let into: what there was, and what came after. */
static void used_by_a_peer(void)
{
        CUmemAccessDesc access = {
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1},
                .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
        uint32_t words[2] = {0, 0};
        struct cu_kernels kernels;
        CUmemoryPool pool;
        CUdeviceptr p, q;
        CUcontext other;
        int can = 0;

        if (cu.DeviceCanAccessPeer(&can, 1, conf.device) != CUDA_SUCCESS || !can) {
                conf_say("skipped: no second device that can");
                return;
        }
        pool = new_pool(0);
        CU_OK(cu.DevicePrimaryCtxRetain(&other, 1));
        CU_OK(cu.MemAllocFromPoolAsync(&p, MIB, pool, conf.n1));
        CODE(MemPoolSetAccess, pool, &access, 1);
        CODE(MemPoolGetAccess, &flags, pool, &access.location);
        conf_say("access=%d", (int)flags);
        CU_OK(cu.MemAllocFromPoolAsync(&q, 40 * MIB, pool, conf.n1));
        CODE(StreamSynchronize, conf.n1);
        CODE(CtxSetCurrent, other);
        cu_load_kernels(&kernels);
        CU_OK(cu_fill(&kernels, NULL, p, MIB / 4, 5));
        CU_OK(cu_fill(&kernels, NULL, q, 40 * MIB / 4, 6));
        CODE(CtxSynchronize);
        CODE(CtxSetCurrent, conf.context);
        CU_OK(cu.MemcpyDtoH(&words[0], p, 4));
        CU_OK(cu.MemcpyDtoH(&words[1], q + 40 * MIB - 4, 4));
        conf_say("words=%u,%u", words[0], words[1]);
        CODE(MemFreeAsync, p, conf.n1);
        CODE(MemFreeAsync, q, conf.n1);
        CODE(MemPoolDestroy, pool);
        CODE(StreamSynchronize, conf.n1);
        CODE(DevicePrimaryCtxRelease, 1);
}

const struct conf_case conf_pool_life[] = {
        {"pool.destroyed_with_a_live_block", destroyed_with_a_live_block, 0, NULL},
        {"pool.default_pool_stays", default_pool_stays, 0, NULL},
        {"pool.one_after_the_other", one_after_the_other, 0, NULL},
        {"pool.current_pool", current_pool, 0, NULL},
        {"pool.current_pool_with_a_limit", current_pool_with_a_limit, CONF_ALONE, NULL},
        {"pool.current_pool_goes", current_pool_goes, CONF_ALONE, NULL},
        {"pool.captured", captured, 0, NULL},
        {"pool.beside_a_capture", beside_a_capture, CONF_ALONE, NULL},
        {"pool.pools_are_apart", pools_are_apart, 0, NULL},
        {"pool.export_of_a_block", export_of_a_block, 0, NULL},
        {"pool.used_by_a_peer", used_by_a_peer, CONF_ALONE, NULL},
        {"pool.current_pool_is_one", current_pool_is_one, CONF_ALONE, NULL},
        {NULL, NULL, 0, NULL},
};
