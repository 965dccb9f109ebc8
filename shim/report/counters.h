/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_COUNTERS_H
#define SP_COUNTERS_H

/*
 * Counters -- how often did what happen, and how long do the driver's calls take?
 *
 *   sp_count(reliefs);
 *   sp_count_add(stamps_recorded, n);
 *
 * Counting costs one addition in a cache line that few threads share. It takes
 * no lock, allocates nothing and may be done anywhere; a sum that is read while
 * others count is that of no particular moment.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sp_counter {
#define SP_COUNTER(name, group, unit, sentence) SP_COUNTER_##name,
#include "report/counters.def"
#undef SP_COUNTER
        SP_COUNTER_COUNT
};

enum sp_counter_group { SP_GROUP_POOL, SP_GROUP_DRIVER, SP_GROUP_LOOKUP };

struct sp_counter_info {
        const char *name;
        enum sp_counter_group group;
        const char *unit;
        const char *sentence;
};

extern const struct sp_counter_info sp_counter_info[SP_COUNTER_COUNT];

#define SP_COUNTER_SHARDS 16

/* Threads are dealt out over the shards. Atomic: value. */
struct sp_counter_shard {
        atomic_ullong value[SP_COUNTER_COUNT];
} __attribute__((aligned(64)));

extern struct sp_counter_shard sp_counter_shards[SP_COUNTER_SHARDS];

/* The shard of this thread, plus one; 0 before its first count. Per thread, because finding it
 * must not cost more than counting. */
extern __thread unsigned int sp_counter_place __attribute__((tls_model("initial-exec")));

unsigned int sp_counter_settle(void);

/* Return: what this thread and those that share its line had counted before. */
static inline uint64_t sp_counter_add(enum sp_counter counter, uint64_t n)
{
        unsigned int place = sp_counter_place ? sp_counter_place : sp_counter_settle();

        return atomic_fetch_add_explicit(&sp_counter_shards[place - 1].value[counter], n,
                                         memory_order_relaxed);
}

#define sp_count_add(name, n) sp_counter_add(SP_COUNTER_##name, (n))
#define sp_count(name)        sp_counter_add(SP_COUNTER_##name, 1)

/** sp_counter_sum() - over all threads. */
uint64_t sp_counter_sum(enum sp_counter counter);

/* what a call of the driver takes: measured where the program's own calls reach it anyway */

enum sp_native {
        SP_NATIVE_ALLOC,       /* cuMemAlloc */
        SP_NATIVE_FREE,        /* cuMemFree of such memory */
        SP_NATIVE_ALLOC_ASYNC, /* cuMemAllocAsync */
        SP_NATIVE_FREE_ASYNC,  /* cuMemFreeAsync */
        SP_NATIVE_ALLOC_HOST,  /* cuMemHostAlloc */
        SP_NATIVE_FREE_HOST,   /* cuMemFreeHost */
        SP_NATIVE_COUNT
};

/** sp_native_begin() - now, in nanoseconds; to be handed to sp_native_end() if the call succeeded.
 */
uint64_t sp_native_begin(void);
void sp_native_end(enum sp_native call, uint64_t began);

/**
 * sp_native_cost() - what one call takes
 * @samples: return argument, the calls that were measured in this process; may be NULL
 *
 * Return: the median of the last calls that were measured, in nanoseconds; without any, the
 * median on an H200 with driver 580.
 */
uint64_t sp_native_cost(enum sp_native call, unsigned int *samples);

#endif
