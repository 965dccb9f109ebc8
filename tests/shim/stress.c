/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stress -- many threads in the shim at once
 *
 * A plain program, because Criterion does not start under ThreadSanitizer. The
 * shim is linked, not preloaded, so that the sanitizer sees all of it. Threads
 * allocate both ways, hand every third block to the next thread to be freed
 * there, record, wait and synchronise; each block is filled by a kernel of its
 * owner and watched by another, which is still running when the block is freed.
 * Blocks also come from a memory pool that all share, and some threads have one
 * of their own, which is replaced now and then while a block of it is in use.
 *
 *   stress [threads] [rounds]
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/life.h"
#include "driver/driver.h"
#include "report/report.h"
#include "track/submit.h"

#define THREADS_MAX 16
#define WORDS       256
#define BLOCK       ((size_t)128 << 10) /* a few fill a segment, so that the pool runs short */
#define WATCH_NS    20000 /* long enough for the host to free the block and be given it again */

struct worker {
        pthread_t thread;
        unsigned int number, rounds;
        CUstream streams[2];
        CUstream stream; /* of this round; a block freed in one round comes back in the next */
        CUevent event;
        CUmemoryPool pool; /* of every fourth thread: addresses are scarce under a sanitizer */
        uint32_t *mismatches;
        _Atomic CUdeviceptr mailbox; /* a synchronous block of the neighbour's, to be freed here */
        unsigned int failures;
};

static struct worker workers[THREADS_MAX];
static unsigned int worker_count;
static CUcontext context;
static CUfunction fill, watch;
static CUmemoryPool shared_pool, default_pool;

static void expect(struct worker *worker, CUresult result, const char *what)
{
        if (result == CUDA_SUCCESS)
                return;
        worker->failures++;
        fprintf(stderr, "thread %u: %s answered %d\n", worker->number, what, (int)result);
}

static void launch(struct worker *worker, CUfunction kernel, void **arguments)
{
        struct sp_submitter *self = sp_submit_enter();

        /* What the hook does, which this program does not go through. */
        sp_submit_mark(worker->stream, SP_SUBMIT_LAUNCH);
        expect(worker,
               sp_driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, worker->stream, arguments,
                                        NULL),
               "cuLaunchKernel");
        sp_submit_leave(self);
}

/* The block belongs to this thread until the watching ends, in the order of its stream. */
static void use(struct worker *worker, CUdeviceptr block, uint32_t value)
{
        uint64_t words = WORDS, nanoseconds = WATCH_NS;
        void *fill_arguments[] = {&block, &words, &value};
        void *watch_arguments[] = {&block, &words, &value, &nanoseconds, &worker->mismatches};

        launch(worker, fill, fill_arguments);
        launch(worker, watch, watch_arguments);
}

static CUresult make_pool(CUmemoryPool *pool)
{
        CUmemPoolProps plain = {
                .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
        };

        return sp_on_cuMemPoolCreate(pool, &plain);
}

static void use_pools(struct worker *worker, unsigned int round, size_t bytes)
{
        CUmemoryPool pool = round % 2 || !worker->pool ? shared_pool : worker->pool;
        int allowed = round % 3 != 0;
        CUdeviceptr block;

        expect(worker, sp_on_cuMemAllocFromPoolAsync(&block, bytes, pool, worker->stream),
               "cuMemAllocFromPoolAsync");
        use(worker, block, round * 31);
        if (round % 32 == 0 && worker->pool) {
                expect(worker, sp_on_cuMemPoolDestroy(worker->pool), "cuMemPoolDestroy");
                expect(worker, make_pool(&worker->pool), "cuMemPoolCreate");
        }
        if (round % 8 == 0)
                expect(worker,
                       sp_on_cuMemPoolSetAttribute(pool == shared_pool ? pool : worker->pool,
                                                   CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
                                                   &allowed),
                       "cuMemPoolSetAttribute");
        if (round % 16 == 5)
                expect(worker, sp_on_cuDeviceSetMemPool(0, allowed ? shared_pool : default_pool),
                       "cuDeviceSetMemPool");
        expect(worker, sp_on_cuMemFreeAsync(block, worker->stream), "cuMemFreeAsync");
}

static void round_of(struct worker *worker, unsigned int round)
{
        struct worker *next = &workers[(worker->number + 1) % worker_count];
        size_t bytes = BLOCK * (1 + round % 7);
        CUdeviceptr sync_block, async_block, received;
        void *host;

        worker->stream = worker->streams[round % 2];
        expect(worker, sp_on_cuMemAlloc_v2(&sync_block, bytes), "cuMemAlloc");
        expect(worker, sp_on_cuMemAllocAsync(&async_block, bytes, worker->stream),
               "cuMemAllocAsync");
        use(worker, sync_block, worker->number * 1000003u + round);
        use(worker, async_block, ~round);
        expect(worker, sp_on_cuMemHostAlloc(&host, 4 * WORDS << round % 9, 0), "cuMemHostAlloc");
        use(worker, (CUdeviceptr)(uintptr_t)host, round);
        expect(worker, sp_on_cuMemFreeHost(host), "cuMemFreeHost");
        use_pools(worker, round, bytes);
        expect(worker, sp_on_cuEventRecord(worker->event, worker->stream), "cuEventRecord");
        expect(worker, sp_on_cuStreamWaitEvent(worker->stream, next->event, 0),
               "cuStreamWaitEvent");
        expect(worker, sp_on_cuMemFreeAsync(async_block, worker->stream), "cuMemFreeAsync");
        if (round % 3 == 0)
                sync_block = atomic_exchange(&next->mailbox, sync_block);
        if (sync_block)
                expect(worker, sp_on_cuMemFree_v2(sync_block), "cuMemFree");
        received = atomic_exchange(&worker->mailbox, 0);
        if (received)
                expect(worker, sp_on_cuMemFree_v2(received), "cuMemFree");
        if (round % 16 == 0)
                expect(worker, sp_on_cuStreamSynchronize(worker->stream), "cuStreamSynchronize");
        if (round % 64 == 0) {
                size_t free_bytes, total_bytes;

                expect(worker, sp_on_cuMemGetInfo_v2(&free_bytes, &total_bytes), "cuMemGetInfo");
                expect(worker, sp_on_cuCtxSynchronize(), "cuCtxSynchronize");
        }
}

static void *work(void *argument)
{
        struct worker *worker = argument;

        expect(worker, cuCtxSetCurrent(context), "cuCtxSetCurrent");
        for (unsigned int round = 0; round < worker->rounds; round++)
                round_of(worker, round);
        return NULL;
}

static bool start(void)
{
        CUdevice device;
        CUmodule module;

        return sp_driver_load() && sp_driver.cuInit(0) == CUDA_SUCCESS && sp_life_start() &&
               cuDeviceGet(&device, 0) == CUDA_SUCCESS &&
               sp_driver.cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS &&
               cuCtxSetCurrent(context) == CUDA_SUCCESS &&
               make_pool(&shared_pool) == CUDA_SUCCESS &&
               sp_driver.cuDeviceGetDefaultMemPool(&default_pool, device) == CUDA_SUCCESS &&
               sp_driver.cuModuleLoadData(&module, "") == CUDA_SUCCESS &&
               cuModuleGetFunction(&fill, module, "fill") == CUDA_SUCCESS &&
               cuModuleGetFunction(&watch, module, "watch") == CUDA_SUCCESS;
}

static bool prepare(struct worker *worker, unsigned int number, unsigned int rounds)
{
        worker->number = number;
        worker->rounds = rounds;
        return sp_on_cuStreamCreate(&worker->streams[0], CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
               sp_on_cuStreamCreate(&worker->streams[1], CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
               (number % 4 || make_pool(&worker->pool) == CUDA_SUCCESS) &&
               sp_driver.cuEventCreate(&worker->event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS &&
               sp_driver.cuMemHostAlloc((void **)&worker->mismatches, sizeof(uint32_t), 0) ==
                       CUDA_SUCCESS;
}

static unsigned int end(struct worker *worker)
{
        CUdeviceptr left = atomic_load(&worker->mailbox);

        if (left)
                expect(worker, sp_on_cuMemFree_v2(left), "cuMemFree");
        if (*worker->mismatches)
                fprintf(stderr, "thread %u: %u words changed in a live block\n", worker->number,
                        *worker->mismatches);
        return worker->failures + *worker->mismatches;
}

int main(int count, char **arguments)
{
        unsigned int rounds = count > 2 ? (unsigned int)atoi(arguments[2]) : 1000;
        unsigned int failures = 0;

        worker_count = count > 1 ? (unsigned int)atoi(arguments[1]) : 16;
        if (worker_count < 1 || worker_count > THREADS_MAX || !start()) {
                fprintf(stderr, "stress: cannot start\n");
                return 1;
        }
        for (unsigned int i = 0; i < worker_count; i++)
                if (!prepare(&workers[i], i, rounds)) {
                        fprintf(stderr, "stress: thread %u cannot be prepared\n", i);
                        return 1;
                }
        for (unsigned int i = 0; i < worker_count; i++)
                if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
                        return 1;
        for (unsigned int i = 0; i < worker_count; i++)
                pthread_join(workers[i].thread, NULL);
        sp_on_cuCtxSynchronize();
        for (unsigned int i = 0; i < worker_count; i++)
                failures += end(&workers[i]);
        if (sp_report_has_findings())
                failures++;
        printf("%u threads, %u rounds each, %u failures\n", worker_count, rounds, failures);
        return failures != 0;
}
