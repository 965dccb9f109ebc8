/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Capped -- sixteen threads at a limit, and never above it
 *
 * A plain program, because Criterion does not start under ThreadSanitizer. Each
 * thread holds a few allocations of every kind and replaces them at random; most
 * of what they ask for does not fit. The simulated driver remembers the most
 * physical memory that was in use at any moment, whoever had asked for it.
 *
 *   capped [threads] [rounds]
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/life.h"
#include "driver/driver.h"
#include "tests/sim_driver/control.h"
#include "track/limit.h"

#define MIB         ((size_t)1 << 20)
#define CAP         (192 * MIB)
#define THREADS_MAX 16
#define HELD        4

enum kind { PLAIN, ORDERED, PITCHED, ARRAY, PHYSICAL, KINDS };

struct held {
        enum kind kind;
        CUdeviceptr address; /* 0: nothing */
        CUarray array;
        CUmemGenericAllocationHandle handle;
};

struct worker {
        pthread_t thread;
        unsigned int number, rounds;
        unsigned int random;
        CUstream stream;
        struct held held[HELD];
        unsigned long served, refused, failures;
};

static struct worker workers[THREADS_MAX];
static CUcontext context;
static pthread_barrier_t begin;
static bool pools, pools_ordered;

static unsigned int draw(struct worker *worker, unsigned int below)
{
        worker->random = worker->random * 1103515245 + 12345;
        return worker->random / 65536 % below;
}

static void expect(struct worker *worker, bool holds, const char *what, int value)
{
        if (holds)
                return;
        worker->failures++;
        fprintf(stderr, "thread %u: %s: %d\n", worker->number, what, value);
}

static CUresult drop(struct worker *worker, struct held *held)
{
        enum kind kind = held->kind;

        if (!held->address)
                return CUDA_SUCCESS;
        held->address = 0;
        switch (kind) {
        case ARRAY:
                return sp_on_cuArrayDestroy(held->array);
        case PHYSICAL:
                return sp_on_cuMemRelease(held->handle);
        case ORDERED:
                return sp_on_cuMemFreeAsync((CUdeviceptr)held->handle, worker->stream);
        default:
                return sp_on_cuMemFree_v2((CUdeviceptr)held->handle);
        }
}

/* Small and stream-ordered memory where the pool serves it: the driver packs its own into pages and
 * pools, which do not count. */
static CUresult take(struct worker *worker, struct held *held)
{
        size_t pages = 1 + draw(worker, 16), size = pages * 2 * MIB, pitch;
        CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
        CUDA_ARRAY_DESCRIPTOR desc = {.Width = 1024,
                                      .Height = size / 4096,
                                      .Format = CU_AD_FORMAT_FLOAT,
                                      .NumChannels = 1};
        CUdeviceptr address = 0;
        CUresult result;

        held->kind = (enum kind)draw(worker, KINDS);
        if (held->kind == ORDERED && !pools_ordered)
                held->kind = PLAIN;
        switch (held->kind) {
        case PITCHED:
                result = sp_on_cuMemAllocPitch_v2(&address, &pitch, 500, size / 512, 4);
                break;
        case ARRAY:
                result = sp_on_cuArrayCreate_v2(&held->array, &desc);
                break;
        case PHYSICAL:
                result = sp_on_cuMemCreate(&held->handle, size, &prop, 0);
                break;
        case ORDERED:
                result = sp_on_cuMemAllocAsync(&address, size >> draw(worker, 12), worker->stream);
                break;
        default:
                result = sp_on_cuMemAlloc_v2(&address, pools ? size >> draw(worker, 12) : size);
        }
        if (address)
                held->handle = address;
        held->address = result == CUDA_SUCCESS;
        return result;
}

static void ask(struct worker *worker, struct held *held)
{
        CUresult result = take(worker, held);

        worker->served += result == CUDA_SUCCESS;
        worker->refused += result == CUDA_ERROR_OUT_OF_MEMORY;
        expect(worker, result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY,
               "an allocation answered", (int)result);
}

static void *work(void *argument)
{
        struct worker *worker = argument;

        expect(worker, cuCtxSetCurrent(context) == CUDA_SUCCESS, "cuCtxSetCurrent", 0);
        pthread_barrier_wait(&begin);
        /* All hold something at once, however the machine lets them run. */
        for (unsigned int i = 0; i < HELD; i++)
                ask(worker, &worker->held[i]);
        pthread_barrier_wait(&begin);
        for (unsigned int round = 0; round < worker->rounds; round++) {
                struct held *held = &worker->held[draw(worker, HELD)];
                CUresult result = drop(worker, held);

                expect(worker, result == CUDA_SUCCESS, "a free answered", (int)result);
                ask(worker, held);
                expect(worker, sp_limit_counted(0) <= CAP, "MiB counted",
                       (int)(sp_limit_counted(0) / MIB));
                if (round % 16 == 0) {
                        size_t free_bytes = 0, total = 0;

                        sp_on_cuMemGetInfo_v2(&free_bytes, &total);
                        expect(worker, total == CAP && free_bytes <= total, "MiB free",
                               (int)(free_bytes / MIB));
                }
        }
        for (unsigned int i = 0; i < HELD; i++)
                drop(worker, &worker->held[i]);
        return NULL;
}

static bool start(void)
{
        CUdevice device;

        setenv("STREAMPOOL_LIMIT", "192M", 1);
        setenv("STREAMPOOL_LOG", "0", 1);
        return sp_driver_load() && sp_driver.cuInit(0) == CUDA_SUCCESS && sp_life_start() &&
               cuDeviceGet(&device, 0) == CUDA_SUCCESS &&
               sp_driver.cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS &&
               cuCtxSetCurrent(context) == CUDA_SUCCESS;
}

int main(int count, char **arguments)
{
        unsigned int threads = count > 1 ? (unsigned int)atoi(arguments[1]) : THREADS_MAX;
        unsigned int rounds = count > 2 ? (unsigned int)atoi(arguments[2]) : 1000;
        const char *mode = getenv("STREAMPOOL_MODE"), *backing = getenv("STREAMPOOL_BACKING");
        unsigned long served = 0, refused = 0, failures = 0;

        pools = !mode || mode[0] == 'p';
        pools_ordered = pools && (!backing || backing[0] != 'n');
        if (threads < 1 || threads > THREADS_MAX || !start()) {
                fprintf(stderr, "capped: cannot start\n");
                return 1;
        }
        pthread_barrier_init(&begin, NULL, threads);
        sim_memory_high_reset(0);
        for (unsigned int i = 0; i < threads; i++) {
                workers[i].number = workers[i].random = i;
                workers[i].rounds = rounds;
                if (sp_on_cuStreamCreate(&workers[i].stream, CU_STREAM_NON_BLOCKING))
                        return 1;
        }
        for (unsigned int i = 0; i < threads; i++)
                if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
                        return 1;
        for (unsigned int i = 0; i < threads; i++) {
                pthread_join(workers[i].thread, NULL);
                served += workers[i].served;
                refused += workers[i].refused;
                failures += workers[i].failures;
        }
        printf("%lu served, %lu refused, %lu failures, %zu MiB at most, %zu of %zu counted\n",
               served, refused, failures, sim_memory_high(0) / MIB,
               (size_t)sp_limit_counted(0) / MIB, CAP / MIB);
        return failures || sim_memory_high(0) > CAP || !served || !refused ||
               (!pools && sp_limit_counted(0));
}
