/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deep -- what a pair of calls costs when it is made deep inside a program
 *
 *   deep DEPTH PAIRS
 *
 * Prints nanoseconds for a pair of cuMemAlloc and cuMemFree, and for one of
 * cuMemAllocAsync and cuMemFreeAsync, apart by a tab: medians of ten series.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cu.h"

#define SERIES 10

static CUstream stream;

static double now(void)
{
        struct timespec time;

        clock_gettime(CLOCK_MONOTONIC, &time);
        return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static __attribute__((noinline)) double pairs(bool async, int count)
{
        double before = now();
        CUdeviceptr block;

        for (int i = 0; i < count; i++) {
                if (async) {
                        CU_OK(cu.MemAllocAsync(&block, 4096, stream));
                        CU_OK(cu.MemFreeAsync(block, stream));
                } else {
                        CU_OK(cu.MemAlloc(&block, 4096));
                        CU_OK(cu.MemFree(block));
                }
        }
        return (now() - before) / count;
}

/* The result is used after the call, so that it is one. */
static __attribute__((noinline)) double deep(int depth, bool async, int count) // NOLINT
{
        volatile double taken = depth ? deep(depth - 1, async, count) : pairs(async, count);

        return taken;
}

static int compare(const void *a, const void *b)
{
        double left = *(const double *)a, right = *(const double *)b;

        return (left > right) - (left < right);
}

static double median(int depth, bool async, int count)
{
        double taken[SERIES];

        for (int i = 0; i < SERIES; i++)
                taken[i] = deep(depth, async, count / SERIES);
        qsort(taken, SERIES, sizeof(taken[0]), compare);
        return taken[SERIES / 2];
}

int main(int argc, char **argv)
{
        int depth = argc > 1 ? atoi(argv[1]) : 10;
        int count = argc > 2 ? atoi(argv[2]) : 200000;

        cu_start(0);
        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        printf("%.0f\t%.0f\n", median(depth, false, count), median(depth, true, count));
        return 0;
}
