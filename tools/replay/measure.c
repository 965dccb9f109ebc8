/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measure -- how long, how evenly, and how many instructions
 */

#include "measure.h"

#include <linux/perf_event.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CLOCK_READINGS 1001

uint64_t measure_now(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
        double x = *(const double *)a;
        double y = *(const double *)b;

        return (x > y) - (x < y);
}

uint64_t measure_clock(void)
{
        double cost[CLOCK_READINGS];
        unsigned int i;

        for (i = 0; i < CLOCK_READINGS; i++) {
                uint64_t before = measure_now();

                cost[i] = (double)(measure_now() - before);
        }
        qsort(cost, CLOCK_READINGS, sizeof(*cost), compare);
        return (uint64_t)cost[CLOCK_READINGS / 2];
}

/* samples */

void samples_add(struct samples *samples, uint64_t ns, unsigned int operations)
{
        if (samples->count < samples->room)
                samples->ns[samples->count++] = (double)ns / operations;
}

void samples_sort(struct samples *samples)
{
        qsort(samples->ns, samples->count, sizeof(*samples->ns), compare);
}

double samples_at(const struct samples *samples, double share)
{
        size_t rank = (size_t)((double)samples->count * share);

        if ((double)samples->count * (1 - share) < 1)
                return NAN;
        return samples->ns[rank];
}

/* instructions */

/* -1: not opened yet; -2: this machine, or its owner, does not let us. */
static int counter = -1;

static void open_counter(void)
{
        struct perf_event_attr what = {
                .type = PERF_TYPE_HARDWARE,
                .size = sizeof(what),
                .config = PERF_COUNT_HW_INSTRUCTIONS,
                .disabled = 1,
                .exclude_kernel = 1,
                .exclude_hv = 1,
        };

        counter = (int)syscall(SYS_perf_event_open, &what, 0, -1, -1, 0);
        if (counter < 0)
                counter = -2;
}

void instructions_start(void)
{
        if (counter == -1)
                open_counter();
        if (counter < 0)
                return;
        ioctl(counter, PERF_EVENT_IOC_RESET, 0);
        ioctl(counter, PERF_EVENT_IOC_ENABLE, 0);
}

double instructions_stop(void)
{
        uint64_t count;

        if (counter < 0)
                return -1;
        ioctl(counter, PERF_EVENT_IOC_DISABLE, 0);
        if (read(counter, &count, sizeof(count)) != sizeof(count) || !count)
                return -1;
        return (double)count;
}

/* memory */

static void *checked(void *memory)
{
        if (!memory) {
                fputs("no memory left for the benchmark itself\n", stderr);
                exit(1);
        }
        return memory;
}

void *must_calloc(size_t count, size_t size)
{
        return checked(calloc(count, size));
}

void *must_malloc(size_t size)
{
        return checked(malloc(size));
}

void *must_realloc(void *memory, size_t size)
{
        return checked(realloc(memory, size));
}

/* chance */

uint64_t chance_next(struct chance *chance)
{
        chance->state ^= chance->state >> 12;
        chance->state ^= chance->state << 25;
        chance->state ^= chance->state >> 27;
        return chance->state * 0x2545f4914f6cdd1du;
}

uint64_t chance_below(struct chance *chance, uint64_t limit)
{
        return (uint64_t)(((unsigned __int128)chance_next(chance) * limit) >> 64);
}

uint64_t chance_log(struct chance *chance, uint64_t low, uint64_t high)
{
        double share = (double)(chance_next(chance) >> 11) * 0x1p-53;

        return (uint64_t)((double)low * exp2(share * log2((double)high / (double)low)));
}
