/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relay -- a program whose pools are cut up anew while it runs
 *
 *   relay phases   one layout after another, with what is in the way of each
 *   relay wait     likewise, and waits for the device before each
 *   relay storm    threads allocate and free all the while
 *
 * Links nothing of streampool, and runs without it as well. Prints what is not as it should be.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <streampool/streampool.h>

#include "cu.h"

#define MIB     ((size_t)1 << 20)
#define WORDS   (MIB / 4)
#define THREADS 4
#define ROUNDS  400
#define MEET    20

static struct cu_kernels kernels;
static CUcontext context;
static uint32_t *mismatches;
static _Atomic(int) wrong;
static bool waits;

/* Nothing is expected of a program that runs alone. */
static void set(const char *text, int device, enum streampool_status wanted, const char *words)
{
        enum streampool_status status;
        char why[200];

        if (waits)
                CU_OK(cu.CtxSynchronize());
        if (!streampool_set_layout)
                return;
        status = streampool_set_layout(text, device, why, sizeof(why));
        if (status == wanted && strstr(why, words) && !why[0] == !status)
                return;
        printf("%s: %d %s\n", text, (int)status, why);
        wrong++;
}

static void turn(enum streampool_status (*turned)(int device))
{
        if (turned && turned(-1) != STREAMPOOL_OK)
                wrong++;
}

static void use(CUdeviceptr p, CUstream stream, uint32_t value)
{
        cu_owned(p, MIB);
        CU_OK(cu_fill(&kernels, stream, p, WORDS, value));
        CU_OK(cu_check(&kernels, stream, p, WORDS, value, (CUdeviceptr)(uintptr_t)mismatches));
}

static CUdeviceptr take(uint32_t value)
{
        CUdeviceptr p;

        CU_OK(cu.MemAlloc(&p, MIB));
        use(p, CU_STREAM_LEGACY, value);
        return p;
}

static void give(CUdeviceptr p)
{
        cu_disowned(p);
        CU_OK(cu.MemFree(p));
}

static CUdeviceptr take_on(CUstream stream, uint32_t value)
{
        CUdeviceptr p;

        CU_OK(cu.MemAllocAsync(&p, MIB, stream));
        use(p, stream, value);
        return p;
}

static void give_on(CUstream stream, CUdeviceptr p)
{
        cu_disowned(p);
        CU_OK(cu.MemFreeAsync(p, stream));
}

/* One block of each kind is in the way, then one that is persistent, which is in the way of the
 * default heap only. */
static void run_phases(void)
{
        CUdeviceptr sync, async, weights;
        CUstream stream;

        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        for (uint32_t i = 0; i < 20; i++) /* this thread has blocks at hand then */
                give_on(stream, take_on(stream, i));
        sync = take(1);
        async = take_on(stream, 2);
        set("sliced:page=4M,cap=64M;direct", -1, STREAMPOOL_IN_USE, " 2097152 bytes live");
        set("sliced:page=4M,size=64M", -1, STREAMPOOL_INVALID, "'size' is no field");
        set("sliced:page=4M,slice=5M", -1, STREAMPOOL_INVALID, "slice=5242880 is larger");
        set("direct", 99, STREAMPOOL_INVALID, "device=99 is none of");
        give(sync);
        set("sliced:page=4M,cap=64M;direct", -1, STREAMPOOL_IN_USE, " 1048576 bytes live");
        give_on(stream, async);
        set("sliced:page=4M,cap=64M;direct", -1, STREAMPOOL_OK, "");
        give(take(3));
        turn(streampool_persistent_enter);
        weights = take(4);
        turn(streampool_persistent_leave);
        give_on(stream, take_on(stream, 5));
        set("exclusive:max=64M,period=50", -1, STREAMPOOL_OK, "");
        set("pool", -1, STREAMPOOL_IN_USE, " 1048576 bytes live");
        give_on(stream, take_on(stream, 6));
        give(take(7));
        CU_OK(cu_check(&kernels, CU_STREAM_LEGACY, weights, WORDS, 4,
                       (CUdeviceptr)(uintptr_t)mismatches));
        give(weights);
        set("pool", -1, STREAMPOOL_OK, "");
        for (uint32_t i = 0; i < 20; i++)
                give_on(stream, take_on(stream, i));
        set("direct;persistent=size-match", 0, STREAMPOOL_OK, "");
        give(take(8));
        CU_OK(cu.CtxSynchronize());
}

static pthread_barrier_t barrier;

/* All that it has is freed where the threads meet, and perhaps in use on the device still. */
static void *storm(void *number)
{
        uint32_t seed = (uint32_t)(uintptr_t)number;
        CUstream stream;

        CU_OK(cu.CtxSetCurrent(context));
        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        for (uint32_t i = 0; i < ROUNDS; i++) {
                CUdeviceptr async = take_on(stream, i), more;

                seed = seed * 1664525 + 1013904223;
                if (seed >> 31) {
                        CU_OK(cu.MemAlloc(&more, MIB));
                        use(more, stream, i);
                        give(more);
                }
                give_on(stream, async);
                if (seed >> 28 == 0)
                        CU_OK(cu.StreamSynchronize(stream));
                if (i % MEET)
                        continue;
                pthread_barrier_wait(&barrier);
                pthread_barrier_wait(&barrier);
        }
        CU_OK(cu.StreamSynchronize(stream));
        return NULL;
}

/* While they run, it is a matter of luck; while they wait, it is not. */
static void run_storm(void)
{
        static const char *const texts[] = {"sliced:page=4M;direct", "pool", "exclusive:max=64M",
                                            "direct:reclaim=8M", "pool"};
        pthread_t threads[THREADS];
        unsigned int done = 0, tries = 0;

        pthread_barrier_init(&barrier, NULL, THREADS + 1);
        for (uintptr_t i = 0; i < THREADS; i++)
                if (pthread_create(&threads[i], NULL, storm, (void *)(i + 1)))
                        exit(99);
        for (uint32_t i = 0; i < ROUNDS; i += MEET) {
                pthread_barrier_wait(&barrier);
                set(texts[i / MEET % 5], -1, STREAMPOOL_OK, "");
                pthread_barrier_wait(&barrier);
                for (unsigned int j = 0; j < MEET && streampool_set_layout; j++, tries++)
                        done += streampool_set_layout(texts[j % 5], -1, NULL, 0) == STREAMPOOL_OK;
        }
        for (int i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
        fprintf(stderr, "installed %u times of %u\n", done, tries);
}

int main(int argc, char **argv)
{
        context = cu_start(0);
        cu_load_kernels(&kernels);
        mismatches = cu_counter(1);
        waits = argc > 1 && !strcmp(argv[1], "wait");
        if (argc > 1 && !strcmp(argv[1], "storm"))
                run_storm();
        else
                run_phases();
        printf("wrong %d mismatches %u\n", wrong, *mismatches);
        CU_OK(cu.MemFreeHost(mismatches));
        return wrong != 0;
}
