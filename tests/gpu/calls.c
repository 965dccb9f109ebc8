/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls -- how often the driver is called, by name, in steady state
 *
 *   calls [--rounds N]
 *
 * Each phase does the same thing again and again and then says how many pairs it
 * did and which functions of the driver were entered meanwhile: by the program,
 * if nothing stands between, by the shim if it does. On the real driver CUPTI
 * counts, which sees what arrives and not what was meant; on the simulated one
 * its own counters do. Prints
 *
 *   source  cupti | simulated | none
 *   pairs   PHASE COUNT
 *   call    PHASE FUNCTION COUNT
 *
 * CUPTI is opened while the program runs, from $CUPTI_LIBRARY or by its name.
 * Its three functions are declared here, so that this compiles without it.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cu.h"

#define FUNCTIONS 2048
#define STREAMS   16

/* counting */

/* The head of CUpti_CallbackData, which has not changed since there is one. */
struct callback_data {
        int site; /* 0 on entry */
        const char *function_name;
};

static struct {
        const char *source;
        uint64_t counts[FUNCTIONS]; /* by CUPTI's number of the function */
        const char *names[FUNCTIONS];
        uint64_t (*simulated)(const char *name);
        uint64_t (*simulated_all)(void);
        void (*reset)(void);
} counter = {.source = "none"};

static void on_call(void *user, int domain, uint32_t number, const struct callback_data *call)
{
        (void)user;
        (void)domain;
        if (call->site != 0 || number >= FUNCTIONS)
                return;
        counter.names[number] = call->function_name;
        __atomic_fetch_add(&counter.counts[number], 1, __ATOMIC_RELAXED);
}

static bool start_cupti(void)
{
        enum { DOMAIN_DRIVER_API = 1 };
        const char *path = getenv("CUPTI_LIBRARY");
        void *library = dlopen(path ? path : "libcupti.so", RTLD_NOW);
        int (*subscribe)(void **, void (*)(void *, int, uint32_t, const struct callback_data *),
                         void *);
        int (*enable)(uint32_t, void *, int);
        void *subscriber;

        if (!library)
                return false;
        *(void **)&subscribe = dlsym(library, "cuptiSubscribe");
        *(void **)&enable = dlsym(library, "cuptiEnableDomain");
        if (!subscribe || !enable || subscribe(&subscriber, on_call, NULL) ||
            enable(1, subscriber, DOMAIN_DRIVER_API))
                return false;
        return true;
}

static void start_counting(void)
{
        if (cu_is_simulated()) {
                *(void **)&counter.simulated = cu_symbol("sim_calls");
                *(void **)&counter.simulated_all = cu_symbol("sim_calls_all");
                *(void **)&counter.reset = cu_symbol("sim_calls_reset");
                counter.source = "simulated";
        } else if (start_cupti()) {
                counter.source = "cupti";
        }
        printf("source\t%s\n", counter.source);
}

static void restart(void)
{
        memset(counter.counts, 0, sizeof(counter.counts));
        if (counter.reset)
                counter.reset();
}

static void print_simulated(const char *phase)
{
        static const char *const names[] = {
#define CU(name, symbol, type) #symbol,
#include "cu.def"
#undef CU
        };
        uint64_t others = counter.simulated_all();

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                uint64_t count = counter.simulated(names[i]);

                if (!count)
                        continue;
                printf("call\t%s\t%s\t%llu\n", phase, names[i], (unsigned long long)count);
                others -= count;
        }
        if (others)
                printf("call\t%s\tothers\t%llu\n", phase, (unsigned long long)others);
}

static void print(const char *phase, long pairs)
{
        printf("pairs\t%s\t%ld\n", phase, pairs);
        if (counter.simulated)
                print_simulated(phase);
        for (size_t i = 0; i < FUNCTIONS; i++)
                if (counter.counts[i])
                        printf("call\t%s\t%s\t%llu\n", phase, counter.names[i],
                               (unsigned long long)counter.counts[i]);
        fflush(stdout);
}

/* phases */

static struct {
        struct cu_kernels kernels;
        CUstream streams[STREAMS];
        uint64_t random;
        CUdeviceptr blocks[256];
} work = {.random = 88172645463325252u};

static uint64_t next_random(void)
{
        work.random ^= work.random << 13;
        work.random ^= work.random >> 7;
        work.random ^= work.random << 17;
        return work.random;
}

static size_t size(void)
{
        uint64_t random = next_random();

        return ((size_t)512 << random % 11) + (size_t)(random >> 20) % 512 * 8;
}

/* Every step is one pair. None of them waits or launches: only what it frees and takes counts. */

static void pair_sync(long i)
{
        CUdeviceptr p;

        (void)i;
        CU_OK(cu.MemAlloc(&p, 4096));
        CU_OK(cu.MemFree(p));
}

static void pair_async(long i)
{
        CUdeviceptr p;

        (void)i;
        CU_OK(cu.MemAllocAsync(&p, 65536, work.streams[0]));
        CU_OK(cu.MemFreeAsync(p, work.streams[0]));
}

static void churn_async(long i)
{
        CUdeviceptr *p = &work.blocks[next_random() % 256];

        (void)i;
        CU_OK(cu.MemFreeAsync(*p, work.streams[0]));
        CU_OK(cu.MemAllocAsync(p, size(), work.streams[0]));
}

static void churn_sync(long i)
{
        CUdeviceptr *p = &work.blocks[next_random() % 256];

        (void)i;
        CU_OK(cu.MemFree(*p));
        CU_OK(cu.MemAlloc(p, size()));
}

static void all_streams_async(long i)
{
        CUdeviceptr p;

        CU_OK(cu.MemAllocAsync(&p, 65536, work.streams[i % STREAMS]));
        CU_OK(cu.MemFreeAsync(p, work.streams[i % STREAMS]));
}

struct phase {
        const char *name;
        void (*step)(long i);
        int streams; /* that get a kernel between two steps, one after the other */
        CUresult (*take)(CUdeviceptr *p, size_t bytes, CUstream stream);
};

static CUresult take_sync(CUdeviceptr *p, size_t bytes, CUstream stream)
{
        (void)stream;
        return cu.MemAlloc(p, bytes);
}

static CUresult take_async(CUdeviceptr *p, size_t bytes, CUstream stream)
{
        return cu.MemAllocAsync(p, bytes, stream);
}

static const struct phase phases[] = {
        {"pair.async", pair_async, 1, NULL},
        {"churn.async", churn_async, 1, take_async},
        {"pair.sync", pair_sync, 1, NULL},
        {"churn.sync", churn_sync, 1, take_sync},
        {"streams.async", all_streams_async, STREAMS, NULL},
        {"streams.sync", churn_sync, STREAMS, take_sync},
};

static void launch(long i, int streams)
{
        CU_OK(cu_fill(&work.kernels, work.streams[i % streams], 0, 0, 0));
}

static void run(const struct phase *phase, long pairs)
{
        for (long i = 0; i < pairs; i++) {
                launch(i, phase->streams);
                phase->step(i);
        }
}

/* In steady state: what a pool does once, it has done. */
static void measure(const struct phase *phase, long pairs)
{
        for (int i = 0; phase->take && i < 256; i++)
                CU_OK(phase->take(&work.blocks[i], size(), work.streams[0]));
        run(phase, pairs);
        CU_OK(cu.CtxSynchronize());
        restart();
        run(phase, pairs);
        print(phase->name, pairs);
        CU_OK(cu.CtxSynchronize());
        for (int i = 0; phase->take && i < 256; i++)
                CU_OK(cu.MemFree(work.blocks[i]));
}

int main(int argc, char **argv)
{
        long pairs = argc > 2 && !strcmp(argv[1], "--rounds") ? atol(argv[2]) : 20000;

        cu_load();
        start_counting();
        cu_start(0);
        cu_load_kernels(&work.kernels);
        for (int i = 0; i < STREAMS; i++)
                CU_OK(cu.StreamCreate(&work.streams[i], CU_STREAM_NON_BLOCKING));
        for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++)
                measure(&phases[i], pairs);
        return 0;
}
