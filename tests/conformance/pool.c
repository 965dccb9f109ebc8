/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pool -- memory pools: attributes, accounting, trimming, life
 */
#include "pools.h"

static int flag(CUmemoryPool pool, CUmemPool_attribute attribute)
{
        int value = -1;

        CU_OK(cu.MemPoolGetAttribute(pool, attribute, &value));
        return value;
}

static void say_attributes(CUmemoryPool pool)
{
        conf_say("follow=%d opportunistic=%d internal=%d threshold=%llu",
                 flag(pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES),
                 flag(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC),
                 flag(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES),
                 (unsigned long long)figure(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD));
}

static void defaults(void)
{
        CUmemoryPool pool = new_pool(0);

        say_attributes(default_pool());
        say_attributes(pool);
        CODE(MemPoolDestroy, pool);
}

static void set_codes(void)
{
        CUmemoryPool pool = new_pool(0);
        uint64_t five = 5, zero = 0, most = UINT64_MAX;
        int off = 0;

        CODE(MemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &five);
        CODE(MemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &zero);
        CODE(MemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &five);
        CODE(MemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &five);
        CODE(MemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero);
        CODE(MemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &zero);
        CODE(MemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &most);
        CODE(MemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, &off);
        CODE(MemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &off);
        CODE(MemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &off);
        say_attributes(pool);
        CODE(MemPoolSetAttribute, pool, (CUmemPool_attribute)999, &zero);
        CODE(MemPoolGetAttribute, pool, (CUmemPool_attribute)999, &zero);
        CODE(MemPoolDestroy, pool);
}

/* USED counts what was asked for, to the byte, and falls when the free is called. */
static void used_counts_requests(CUmemoryPool pool)
{
        static const size_t sizes[] = {1, 512, 513, 1048577, 2097152, 34603008};
        uint64_t start = figure(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), used, zero = 0;
        CUdeviceptr p[6];

        for (int i = 0; i < 6; i++) {
                CU_OK(cu.MemAllocFromPoolAsync(&p[i], sizes[i], pool, conf.n1));
                used = figure(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
                conf_say("used=%llu", (unsigned long long)(used - start));
        }
        used = figure(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
        conf_say("covered=%d", used >= figure(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
        CU_OK(cu_spin(&conf.kernels, conf.n1, 20000000));
        CU_OK(cu.MemFreeAsync(p[5], conf.n1));
        used = figure(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
        conf_say("pending=%llu", (unsigned long long)(used - start));
        CU_OK(cu.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
        conf_say("high=%d", figure(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == used);
        for (int i = 0; i < 5; i++)
                CU_OK(cu.MemFreeAsync(p[i], conf.n1));
        CU_OK(cu.StreamSynchronize(conf.n1));
        used = figure(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
        conf_say("end=%llu", (unsigned long long)(used - start));
}

static void used_of_a_new_pool(void)
{
        CUmemoryPool pool = new_pool(0);

        used_counts_requests(pool);
        CODE(MemPoolDestroy, pool);
}

static void used_of_the_default_pool(void)
{
        used_counts_requests(default_pool());
}

static void trim(void)
{
        CUmemoryPool pool = default_pool();
        CUdeviceptr p;

        CU_OK(cu.MemAllocAsync(&p, 64 * MIB, conf.n1));
        CU_OK(cu_spin(&conf.kernels, conf.n1, 20000000));
        CU_OK(cu.MemFreeAsync(p, conf.n1));
        CODE(MemPoolTrimTo, pool, 0);
        conf_say("kept=%d", figure(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 64 * MIB);
        CODE(CtxSynchronize);
        CODE(MemPoolTrimTo, pool, 0);
        conf_say("reserved=%llu",
                 (unsigned long long)figure(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
}

/* Bytes of a new pool still reserved after a 64 MiB block was freed and its stream synchronised. */
static void threshold(void)
{
        uint64_t limits[] = {0, UINT64_MAX};

        for (int i = 0; i < 2; i++) {
                CUmemoryPool pool = new_pool(0);
                CUdeviceptr p;

                CU_OK(cu.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &limits[i]));
                CU_OK(cu.MemAllocFromPoolAsync(&p, 64 * MIB, pool, conf.n1));
                CU_OK(cu.MemFreeAsync(p, conf.n1));
                CODE(StreamSynchronize, conf.n1);
                conf_say("kept=%d", figure(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 64 * MIB);
                CODE(MemPoolDestroy, pool);
        }
}

/* A mark is the most there was since it was reset. */
static void high_marks(void)
{
        CUmemoryPool pool = new_pool(0);
        uint64_t zero = 0;
        CUdeviceptr p;

        set_threshold(pool, UINT64_MAX);
        CU_OK(cu.MemAllocFromPoolAsync(&p, 64 * MIB, pool, conf.n1));
        CU_OK(cu.MemFreeAsync(p, conf.n1));
        CU_OK(cu.StreamSynchronize(conf.n1));
        conf_say("used=%d", figure(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 64 * MIB);
        CODE(MemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero);
        conf_say("used=%llu", (unsigned long long)figure(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH));
        CODE(MemPoolTrimTo, pool, 0);
        conf_say("reserved=%d", figure(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) >= 64 * MIB);
        CODE(MemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &zero);
        conf_say("reserved=%llu",
                 (unsigned long long)figure(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH));
        CODE(MemPoolDestroy, pool);
}

static void trim_keeps(void)
{
        CUmemoryPool pool = new_pool(0);
        CUdeviceptr p, q;
        uint64_t left;

        set_threshold(pool, UINT64_MAX);
        CU_OK(cu.MemAllocFromPoolAsync(&p, 64 * MIB, pool, conf.n1));
        CU_OK(cu.MemAllocFromPoolAsync(&q, 64 * MIB, pool, conf.n1));
        CU_OK(cu.MemFreeAsync(p, conf.n1));
        CU_OK(cu.MemFreeAsync(q, conf.n1));
        CU_OK(cu.StreamSynchronize(conf.n1));
        CODE(MemPoolTrimTo, pool, 64 * MIB);
        left = figure(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
        conf_say("some=%d", left >= 64 * MIB && left < 128 * MIB);
        CODE(MemPoolTrimTo, pool, 1);
        left = figure(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
        conf_say("little=%d", left >= 1 && left < 64 * MIB);
        CODE(MemPoolTrimTo, pool, 0);
        left = figure(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
        conf_say("none=%d", left == 0);
        CODE(MemPoolDestroy, pool);
}

/* What was set before the first allocation holds after it. */
static void set_before_use(void)
{
        CUmemoryPool pool = new_pool(0);
        int off = 0;
        CUdeviceptr p;

        set_threshold(pool, 3 * MIB);
        CU_OK(cu.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &off));
        CU_OK(cu.MemAllocFromPoolAsync(&p, 4096, pool, conf.n1));
        say_attributes(pool);
        CU_OK(cu.MemFreeAsync(p, conf.n1));
        CODE(MemPoolDestroy, pool);
}

static void size_limit(void)
{
        CUmemoryPool pool = new_pool(64 * MIB);
        CUdeviceptr p, q;

#if CUDA_VERSION < 12020
        conf_say("skipped: headers without maxSize");
#endif
        CODE(MemAllocFromPoolAsync, &p, 48 * MIB, pool, conf.n1);
        CODE(MemAllocFromPoolAsync, &q, 48 * MIB, pool, conf.n1);
        CODE(MemPoolDestroy, pool);
        CODE(MemFreeAsync, p, conf.n1);
        CODE(StreamSynchronize, conf.n1);
}

static void own_access(void)
{
        CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = conf.device};
        CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
        CUmemAccessDesc wanted = {here, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        CUmemoryPool pool = new_pool(0);

        CODE(MemPoolGetAccess, &access, pool, &here);
        conf_say("access=%d", (int)access);
        CODE(MemPoolSetAccess, pool, &wanted, 1);
        CODE(MemPoolDestroy, pool);
}

/* Blocks of a pool of one's own, freed by every call that frees. */
static void frees(void)
{
        CUmemoryPool pool = new_pool(0);
        CUdeviceptr p;

        CODE(MemAllocFromPoolAsync, &p, 0, pool, conf.n1);
        CODE(MemAllocFromPoolAsync, &p, 5000, pool, conf.n1);
        conf_say("pool=%d", pool_of(p) == pool);
        CODE(MemFreeAsync, p, conf.n1);
        CODE(MemFreeAsync, p, conf.n1);
        CODE(MemAllocFromPoolAsync, &p, 5000, pool, NULL);
        CU_OK(cu.CtxSynchronize());
        CODE(MemFree, p);
        CODE(MemFree, p);
        CODE(MemPoolDestroy, pool);
}

const struct conf_case conf_pool[] = {
        {"pool.defaults", defaults, 0, NULL},
        {"pool.set_codes", set_codes, 0, NULL},
        {"pool.used_of_a_new_pool", used_of_a_new_pool, 0, NULL},
        {"pool.used_of_the_default_pool", used_of_the_default_pool, CONF_ALONE, NULL},
        {"pool.trim", trim, CONF_ALONE | CONF_QUIET, NULL},
        {"pool.threshold", threshold, 0, NULL},
        {"pool.high_marks", high_marks, 0, NULL},
        {"pool.trim_keeps", trim_keeps, 0, NULL},
        {"pool.set_before_use", set_before_use, 0, NULL},
        {"pool.size_limit", size_limit, 0, NULL},
        {"pool.own_access", own_access, 0, NULL},
        {"pool.frees", frees, 0, NULL},
        {NULL, NULL, 0, NULL},
};
