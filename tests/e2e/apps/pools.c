/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools -- threads that make memory pools, allocate from them and destroy them
 *
 *   pools [rounds] [seed]    prints how many blocks there were and how many words were wrong
 *   pools say                prints what a new pool and the default one begin with
 *
 * Every thread has two streams and some blocks, from pools that all threads share, from whatever is
 * current, and from pools that are destroyed meanwhile. It fills a block when it gets it, and
 * compares before it frees it; other threads set policies, trim, and make another pool current.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cu.h"

#define THREADS 4
#define POOLS   3
#define BLOCKS  6
#define MIB     ((size_t)1 << 20)

/* A pool that lives as long as nobody holds the lock for writing. */
static struct slot {
        pthread_rwlock_t lock;
        CUmemoryPool pool;
} slots[POOLS];

static struct cu_kernels kernels;
static CUcontext context;
static CUdeviceptr mismatches;
static unsigned int rounds = 200, seed = 1;

struct block {
        CUdeviceptr address;
        uint64_t words;
        uint32_t value;
        CUstream stream;
};

struct worker {
        pthread_t thread;
        uint64_t random;
        CUstream streams[2];
        CUevent event;
        struct block blocks[BLOCKS];
        unsigned int made;
};

static CUmemoryPool new_pool(void)
{
        CUmemPoolProps properties;
        CUmemoryPool pool;

        memset(&properties, 0, sizeof(properties));
        properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        CU_OK(cu.MemPoolCreate(&pool, &properties));
        return pool;
}

static unsigned int choose(struct worker *worker, unsigned int count)
{
        worker->random = worker->random * 6364136223846793005u + 1442695040888963407u;
        return (unsigned int)(worker->random >> 33) % count;
}

static void allocate(struct worker *worker, struct block *block)
{
        struct slot *slot = &slots[choose(worker, POOLS)];
        uint32_t value = choose(worker, 1u << 30);
        size_t bytes = 4 * (size_t)(1 + choose(worker, choose(worker, 4) ? 4096 : 262144));

        block->stream = worker->streams[choose(worker, 2)];
        block->words = bytes / 4;
        block->value = value;
        if (choose(worker, 3)) {
                pthread_rwlock_rdlock(&slot->lock);
                CU_OK(cu.MemAllocFromPoolAsync(&block->address, bytes, slot->pool, block->stream));
                pthread_rwlock_unlock(&slot->lock);
        } else {
                CU_OK(cu.MemAllocAsync(&block->address, bytes, block->stream));
        }
        cu_owned(block->address, bytes);
        CU_OK(cu_fill(&kernels, block->stream, block->address, block->words, value));
        worker->made++;
}

/* On its own stream, on the other one behind an event, or when it is over. */
static void release(struct worker *worker, struct block *block)
{
        CUstream stream = worker->streams[choose(worker, 2)];
        bool waits = choose(worker, 4) == 0;

        CU_OK(cu_check(&kernels, block->stream, block->address, block->words, block->value,
                       mismatches));
        if (waits)
                CU_OK(cu.StreamSynchronize(block->stream));
        if (stream != block->stream) {
                CU_OK(cu.EventRecord(worker->event, block->stream));
                CU_OK(cu.StreamWaitEvent(stream, worker->event, 0));
        }
        cu_disowned(block->address);
        CU_OK(waits ? cu.MemFree(block->address) : cu.MemFreeAsync(block->address, stream));
        block->address = 0;
}

static void set_something(struct worker *worker, CUmemoryPool pool)
{
        static const CUmemPool_attribute policies[] = {
                CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES,
                CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
                CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES,
        };
        uint64_t threshold = choose(worker, 2) ? UINT64_MAX : choose(worker, 4) * MIB;
        int on = (int)choose(worker, 2);

        switch (choose(worker, 4)) {
        case 0:
                CU_OK(cu.MemPoolSetAttribute(pool, policies[choose(worker, 3)], &on));
                break;
        case 1:
                CU_OK(cu.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
                break;
        case 2:
                CU_OK(cu.MemPoolTrimTo(pool, choose(worker, 4) * MIB));
                break;
        default:
                CU_OK(cu.DeviceSetMemPool(0, pool));
                break;
        }
}

/* Now and then a pool is replaced, whatever blocks of it are in use. */
static void disturb(struct worker *worker)
{
        struct slot *slot = &slots[choose(worker, POOLS)];
        bool replaces = choose(worker, 4) == 0;

        if (replaces)
                pthread_rwlock_wrlock(&slot->lock);
        else
                pthread_rwlock_rdlock(&slot->lock);
        if (replaces) {
                CU_OK(cu.MemPoolDestroy(slot->pool));
                slot->pool = new_pool();
        } else {
                set_something(worker, slot->pool);
        }
        pthread_rwlock_unlock(&slot->lock);
}

static void *work(void *argument)
{
        struct worker *worker = argument;

        CU_OK(cu.CtxSetCurrent(context));
        for (int i = 0; i < 2; i++)
                CU_OK(cu.StreamCreate(&worker->streams[i], CU_STREAM_NON_BLOCKING));
        CU_OK(cu.EventCreate(&worker->event, CU_EVENT_DISABLE_TIMING));
        for (unsigned int i = 0; i < rounds; i++) {
                struct block *block = &worker->blocks[choose(worker, BLOCKS)];

                if (block->address)
                        release(worker, block);
                else
                        allocate(worker, block);
                if (choose(worker, 8) == 0)
                        disturb(worker);
                if (choose(worker, 16) == 0)
                        CU_OK(cu.StreamSynchronize(worker->streams[choose(worker, 2)]));
        }
        for (int i = 0; i < BLOCKS; i++)
                if (worker->blocks[i].address)
                        release(worker, &worker->blocks[i]);
        return NULL;
}

static int say(void)
{
        CUmemoryPool pools[2];

        pools[0] = new_pool();
        CU_OK(cu.DeviceGetDefaultMemPool(&pools[1], 0));
        for (int i = 0; i < 2; i++) {
                uint64_t threshold = 0;
                CUdeviceptr p;
                int on;

                CU_OK(cu.MemAllocFromPoolAsync(&p, 4096, pools[i], NULL));
                CU_OK(cu.MemFreeAsync(p, NULL));
                for (int policy = 1; policy <= 3; policy++) {
                        CU_OK(cu.MemPoolGetAttribute(pools[i], (CUmemPool_attribute)policy, &on));
                        printf("%d ", on);
                }
                CU_OK(cu.MemPoolGetAttribute(pools[i], CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                                             &threshold));
                printf("%llu\n", (unsigned long long)threshold);
        }
        return 0;
}

int main(int argc, char **argv)
{
        struct worker workers[THREADS];
        unsigned int made = 0;
        uint32_t *count;

        context = cu_start(0);
        if (argc > 1 && strcmp(argv[1], "say") == 0)
                return say();
        if (argc > 1)
                rounds = (unsigned int)atoi(argv[1]);
        if (argc > 2)
                seed = (unsigned int)atoi(argv[2]);
        cu_load_kernels(&kernels);
        count = cu_counter(1);
        mismatches = (CUdeviceptr)(uintptr_t)count;
        for (int i = 0; i < POOLS; i++) {
                pthread_rwlock_init(&slots[i].lock, NULL);
                slots[i].pool = new_pool();
        }
        memset(workers, 0, sizeof(workers));
        for (unsigned int i = 0; i < THREADS; i++) {
                workers[i].random = seed * 1000 + i;
                if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
                        return 99;
        }
        for (int i = 0; i < THREADS; i++) {
                pthread_join(workers[i].thread, NULL);
                made += workers[i].made;
        }
        CU_OK(cu.CtxSynchronize());
        printf("blocks %u mismatches %u\n", made, *count);
        for (int i = 0; i < POOLS; i++)
                CU_OK(cu.MemPoolDestroy(slots[i].pool));
        CU_OK(cu.MemFreeHost(count));
        return 0;
}
