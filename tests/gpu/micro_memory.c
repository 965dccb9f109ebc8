/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory -- much of it: growth, copies, and what happens where it ends
 */
#include "micro.h"

#include <stdio.h>
#include <stdlib.h>

static double milliseconds_since(uint64_t before)
{
        return (double)(micro_now() - before) / 1e6;
}

/* growth */

/* 100 GiB, or half of a smaller device. */
static size_t growth_bytes(void)
{
        size_t wanted = micro.quick ? 256 * MICRO_MIB : 100 * MICRO_GIB, free, total;

        CU_OK(cu.MemGetInfo(&free, &total));
        return wanted < free / 10 * 9 ? wanted : free / 2;
}

static void trim(void)
{
        CUmemoryPool pool;
        CUdevice device;

        CU_OK(cu.CtxGetDevice(&device));
        CU_OK(cu.DeviceGetDefaultMemPool(&pool, device));
        CU_OK(cu.MemPoolTrimTo(pool, 0));
}

/*
 * Two figures: how long it takes to have the memory, and how long to have it
 * given back: freed, waited for, and with the pool trimmed to nothing.
 */
static void grow(const char *name, const struct micro_family *family, const char *label,
                 size_t piece)
{
        size_t count = growth_bytes() / piece;
        CUdeviceptr *blocks = calloc(count + 1, sizeof(*blocks));
        CUstream stream = micro_stream();
        uint64_t before = micro_now();
        char figure[32];

        for (size_t i = 0; i < count; i++)
                CU_OK(family->take(&blocks[i], piece, stream));
        CU_OK(cu.StreamSynchronize(stream));
        snprintf(figure, sizeof(figure), "%sgrow", label);
        micro_figure(name, figure, milliseconds_since(before));
        before = micro_now();
        for (size_t i = 0; i < count; i++)
                CU_OK(family->give(blocks[i], stream));
        CU_OK(cu.StreamSynchronize(stream));
        trim();
        snprintf(figure, sizeof(figure), "%strim", label);
        micro_figure(name, figure, milliseconds_since(before));
        CU_OK(cu.StreamDestroy(stream));
        free(blocks);
}

void micro_grow_async(const char *name)
{
        grow(name, &micro_async, "2M.", 2 * MICRO_MIB);
        grow(name, &micro_async, "64M.", 64 * MICRO_MIB);
        grow(name, &micro_async, "1G.", micro.quick ? 128 * MICRO_MIB : MICRO_GIB);
}

/* One size a process: nobody says that a trim gives back what cuMemFree was called for. */
void micro_grow_small(const char *name)
{
        grow(name, &micro_sync, "", 2 * MICRO_MIB);
}

void micro_grow_middle(const char *name)
{
        grow(name, &micro_sync, "", 64 * MICRO_MIB);
}

void micro_grow_large(const char *name)
{
        grow(name, &micro_sync, "", micro.quick ? 128 * MICRO_MIB : MICRO_GIB);
}

/* copies */

/* GB/s, counting the bytes once; the best of three, each long enough to hide its start. */
static double copy_rate(size_t bytes)
{
        CUstream stream = micro_stream();
        int times = (int)(16 * MICRO_GIB / bytes);
        CUdeviceptr from, to;
        double best = 0;

        if (micro.quick)
                times = 2;
        CU_OK(cu.MemAlloc(&from, bytes));
        CU_OK(cu.MemAlloc(&to, bytes));
        CU_OK(cu.MemsetD32Async(from, 7, bytes / 4, stream));
        CU_OK(cu.MemsetD32Async(to, 8, bytes / 4, stream));
        for (int round = 0; round < 4; round++) {
                uint64_t before;
                double rate;

                CU_OK(cu.StreamSynchronize(stream));
                before = micro_now();
                for (int i = 0; i < times; i++)
                        CU_OK(cu.MemcpyDtoDAsync(to, from, bytes, stream));
                CU_OK(cu.StreamSynchronize(stream));
                rate = (double)bytes * times / (double)(micro_now() - before);
                if (round && rate > best) /* the first one wakes the device */
                        best = rate;
        }
        CU_OK(cu.MemFree(from));
        CU_OK(cu.MemFree(to));
        CU_OK(cu.StreamDestroy(stream));
        return best;
}

void micro_copies(const char *name)
{
        micro_figure(name, "1M", copy_rate(MICRO_MIB));
        micro_figure(name, "16M", copy_rate(16 * MICRO_MIB));
        micro_figure(name, "256M", copy_rate(micro.quick ? 32 * MICRO_MIB : 256 * MICRO_MIB));
        micro_figure(name, "2G", copy_rate(micro.quick ? 64 * MICRO_MIB : 2 * MICRO_GIB));
}

/* the end of the memory */

void micro_fail(const char *name)
{
        uint64_t end = micro_now() + micro.slice_ns;
        double samples[20];
        size_t free, total, count = 0;

        CU_OK(cu.MemGetInfo(&free, &total));
        while (count < 20 && (!count || micro_now() < end)) {
                uint64_t before = micro_now();
                CUdeviceptr p;

                if (cu.MemAlloc(&p, total + total / 8) != CUDA_ERROR_OUT_OF_MEMORY)
                        exit(99);
                samples[count++] = (double)(micro_now() - before) / 1e3;
        }
        micro_figure(name, "us", micro_percentile(samples, count, 50));
}

/* How much of what was free can be had, in blocks of 64 MiB and then of 2 MiB. */
void micro_fill(const char *name)
{
        size_t sizes[] = {64 * MICRO_MIB, 2 * MICRO_MIB}, free, total, filled = 0, count = 0;
        CUdeviceptr *blocks;

        CU_OK(cu.MemGetInfo(&free, &total));
        blocks = calloc(total / sizes[1] + 2, sizeof(*blocks));
        for (int i = 0; i < 2; i++) {
                while (cu.MemAlloc(&blocks[count], sizes[i]) == CUDA_SUCCESS) {
                        filled += sizes[i];
                        count++;
                }
        }
        micro_figure(name, "percent", 100.0 * (double)filled / (double)free);
        while (count)
                CU_OK(cu.MemFree(blocks[--count]));
}
