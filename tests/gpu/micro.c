/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Micro -- what single calls cost, through the entry points that programs use
 *
 *   micro [--quick] [--milliseconds N] PART...     prints a line for each figure
 *   micro --init                                   cuInit and nothing else
 *   micro --list                                   the names of the parts
 *
 * Run it bare and under the shim, and compare. Who serves the calls does not
 * show in the program: it looks its functions up as any other does. It runs on
 * the simulated driver, too, where the figures mean nothing but are all there.
 */
#include "micro.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct micro micro = {.slice_ns = 100000000};

static const struct part {
        const char *name;
        void (*run)(const char *name);
} parts[] = {
        {"pair", micro_pairs},
        {"churn", micro_churn},
        {"mixed", micro_mixed},
        {"busy", micro_busy},
        {"handover", micro_handover},
        {"threads", micro_threads},
        {"launch", micro_launches},
        {"event", micro_events},
        {"copy", micro_copies},
        {"fail", micro_fail},
        {"fill", micro_fill},
        {"grow.async", micro_grow_async},
        {"grow.sync.2M", micro_grow_small},
        {"grow.sync.64M", micro_grow_middle},
        {"grow.sync.1G", micro_grow_large},
};

#define PARTS (sizeof(parts) / sizeof(parts[0]))

static CUresult take_sync(CUdeviceptr *p, size_t bytes, CUstream stream)
{
        (void)stream;
        return cu.MemAlloc(p, bytes);
}

static CUresult give_sync(CUdeviceptr p, CUstream stream)
{
        (void)stream;
        return cu.MemFree(p);
}

static CUresult take_async(CUdeviceptr *p, size_t bytes, CUstream stream)
{
        return cu.MemAllocAsync(p, bytes, stream);
}

static CUresult give_async(CUdeviceptr p, CUstream stream)
{
        return cu.MemFreeAsync(p, stream);
}

/* Addresses of the host are addresses of the device, too. */
static CUresult take_pinned(CUdeviceptr *p, size_t bytes, CUstream stream)
{
        void *host = NULL;
        CUresult result = cu.MemHostAlloc(&host, bytes, 0);

        (void)stream;
        *p = (CUdeviceptr)(uintptr_t)host;
        return result;
}

static CUresult give_pinned(CUdeviceptr p, CUstream stream)
{
        (void)stream;
        return cu.MemFreeHost((void *)(uintptr_t)p);
}

const struct micro_family micro_sync = {"sync", take_sync, give_sync};
const struct micro_family micro_async = {"async", take_async, give_async};
const struct micro_family micro_pinned = {"pinned", take_pinned, give_pinned};

void micro_figure(const char *part, const char *name, double value)
{
        printf("%s.%s\t%.6g\n", part, name, value);
        fflush(stdout);
}

uint64_t micro_now(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int compare(const void *left, const void *right)
{
        double a = *(const double *)left, b = *(const double *)right;

        return (a > b) - (a < b);
}

double micro_percentile(double *samples, size_t count, double percent)
{
        size_t index = (size_t)((double)count * percent / 100);

        qsort(samples, count, sizeof(*samples), compare);
        return samples[index < count ? index : count - 1];
}

uint64_t micro_random(uint64_t *state)
{
        uint64_t x = *state;

        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        return *state = x;
}

size_t micro_size(uint64_t *state)
{
        uint64_t random = micro_random(state);
        size_t base = (size_t)512 << random % 13;

        /* Uniform within a power of two: near enough to even logarithms. */
        return base + (size_t)(random >> 20) % base / 8 * 8;
}

CUstream micro_stream(void)
{
        CUstream stream;

        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        return stream;
}

static void start(void)
{
        micro.context = cu_start(0);
        cu_load_kernels(&micro.kernels);
        /* The first kernel of a process costs milliseconds that belong to no figure. */
        CU_OK(cu_spin(&micro.kernels, NULL, 1000));
        CU_OK(cu.CtxSynchronize());
}

static const struct part *find(const char *name)
{
        for (size_t i = 0; i < PARTS; i++)
                if (!strcmp(parts[i].name, name))
                        return &parts[i];
        fprintf(stderr, "no part %s\n", name);
        exit(2);
}

static int init_only(void)
{
        uint64_t before;

        cu_load();
        before = micro_now();
        CU_OK(cu.Init(0));
        micro_figure("init", "ms", (double)(micro_now() - before) / 1e6);
        return 0;
}

int main(int argc, char **argv)
{
        int first = 1;

        for (; first < argc && !strncmp(argv[first], "--", 2); first++) {
                if (!strcmp(argv[first], "--init"))
                        return init_only();
                if (!strcmp(argv[first], "--list")) {
                        for (size_t i = 0; i < PARTS; i++)
                                puts(parts[i].name);
                        return 0;
                }
                if (!strcmp(argv[first], "--quick")) {
                        micro.quick = true;
                        micro.slice_ns = 2000000;
                } else if (!strcmp(argv[first], "--milliseconds") && first + 1 < argc) {
                        micro.slice_ns = strtoull(argv[++first], NULL, 10) * 1000000;
                } else {
                        fprintf(stderr, "%s: unknown\n", argv[first]);
                        return 2;
                }
        }
        start();
        for (int i = first; i < argc; i++)
                find(argv[i])->run(argv[i]);
        return 0;
}
