/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Counters -- how often did what happen, and how long do the driver's calls take?
 *
 * A median, not a mean: the first calls of a process initialise the driver and
 * take a thousand times as long, and a cuMemFree waits for whatever the device
 * is doing.
 */

#include "report/counters.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SAMPLES 64 /* the last ones of each call */

const struct sp_counter_info sp_counter_info[SP_COUNTER_COUNT] = {
#define SP_COUNTER(name, group, unit, sentence) {#name, SP_GROUP_##group, unit, sentence},
#include "report/counters.def"
#undef SP_COUNTER
};

struct sp_counter_shard sp_counter_shards[SP_COUNTER_SHARDS];
__thread unsigned int sp_counter_place __attribute__((tls_model("initial-exec")));

/* Atomic: both. */
static atomic_uint threads;
static struct {
        atomic_uint count;
        atomic_ullong ns[SAMPLES];
} samples[SP_NATIVE_COUNT];

/* Medians of 256 bytes to 2 MiB on an idle H200, driver 580.159; the asynchronous ones from a warm
 * pool of the driver. */
static const uint64_t usual_ns[SP_NATIVE_COUNT] = {
        [SP_NATIVE_ALLOC] = 31000,       [SP_NATIVE_FREE] = 27000,
        [SP_NATIVE_ALLOC_ASYNC] = 520,   [SP_NATIVE_FREE_ASYNC] = 670,
        [SP_NATIVE_ALLOC_HOST] = 530000, [SP_NATIVE_FREE_HOST] = 225000,
};

unsigned int sp_counter_settle(void)
{
        unsigned int number = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed);

        sp_counter_place = number % SP_COUNTER_SHARDS + 1;
        return sp_counter_place;
}

uint64_t sp_counter_sum(enum sp_counter counter)
{
        uint64_t sum = 0;

        for (unsigned int i = 0; i < SP_COUNTER_SHARDS; i++)
                sum += atomic_load_explicit(&sp_counter_shards[i].value[counter],
                                            memory_order_relaxed);
        return sum;
}

uint64_t sp_native_begin(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void sp_native_end(enum sp_native call, uint64_t began)
{
        uint64_t took = sp_native_begin() - began;
        unsigned int number =
                atomic_fetch_add_explicit(&samples[call].count, 1, memory_order_relaxed);

        atomic_store_explicit(&samples[call].ns[number % SAMPLES], took, memory_order_relaxed);
}

static int compare(const void *a, const void *b)
{
        const uint64_t *x = a;
        const uint64_t *y = b;

        return (*x > *y) - (*x < *y);
}

uint64_t sp_native_cost(enum sp_native call, unsigned int *count)
{
        unsigned int total = atomic_load_explicit(&samples[call].count, memory_order_relaxed);
        unsigned int kept = total < SAMPLES ? total : SAMPLES;
        uint64_t ns[SAMPLES];

        if (count)
                *count = total;
        if (total == 0)
                return usual_ns[call];
        for (unsigned int i = 0; i < kept; i++)
                ns[i] = atomic_load_explicit(&samples[call].ns[i], memory_order_relaxed);
        /* So few are sorted on the stack: at the end of a process its heap may be locked. */
        qsort(ns, kept, sizeof(ns[0]), compare);
        return ns[kept / 2];
}
