/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Budget -- shared by many threads, and never exceeded
 *
 *   budget THREADS ROUNDS
 *
 * Two tenants of one device have a budget each, and the device has less than both together. Threads
 * of both reserve, hold for a while, and release. What they hold is counted apart, after each
 * reservation and until right before the release, so it is never more than what is reserved.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <streampool/model.h>

#define LIMIT       1000
#define THREADS_MAX 64

static struct spm_budget device;
static struct spm_budget tenants[2];
static _Atomic(uint64_t) held;
static _Atomic(uint64_t) most_held;
static _Atomic(uint64_t) mistakes;
static unsigned long rounds;
static pthread_barrier_t start;

static void note_high(uint64_t now)
{
        uint64_t before = atomic_load(&most_held);

        while (before < now && !atomic_compare_exchange_weak(&most_held, &before, now))
                ;
}

static void check(const struct spm_budget *budget)
{
        struct spm_budget_figures figures;

        spm_budget_look(budget, &figures);
        if (figures.reserved > figures.limit || figures.available > figures.remaining)
                atomic_fetch_add(&mistakes, 1);
}

static void *run(void *argument)
{
        uintptr_t number = (uintptr_t)argument;
        struct spm_budget *budget = &tenants[number % 2];
        uint32_t dice = (uint32_t)number + 1;

        pthread_barrier_wait(&start);
        for (unsigned long i = 0; i < rounds; i++) {
                uint64_t bytes;

                dice = dice * 1664525u + 1013904223u;
                bytes = 1 + (dice >> 16) % 200;
                if (spm_budget_reserve(budget, bytes, NULL) == SPM_OK) {
                        uint64_t now = atomic_fetch_add(&held, bytes) + bytes;

                        note_high(now);
                        if (now > LIMIT)
                                atomic_fetch_add(&mistakes, 1);
                        check(&device);
                        check(budget);
                        if (i % 16 == 0)
                                sched_yield();
                        atomic_fetch_sub(&held, bytes);
                        if (spm_budget_release(budget, bytes))
                                atomic_fetch_add(&mistakes, 1);
                }
        }
        return NULL;
}

static int fail(const char *what)
{
        fprintf(stderr, "budget: %s\n", what);
        return 1;
}

int main(int count, char **words)
{
        unsigned long threads = count > 1 ? strtoul(words[1], NULL, 10) : 0;
        struct spm_budget_figures figures;
        pthread_t thread[THREADS_MAX];

        rounds = count > 2 ? strtoul(words[2], NULL, 10) : 0;
        if (!threads || threads > THREADS_MAX || !rounds)
                return fail("usage: budget THREADS ROUNDS, at most 64 threads");
        spm_budget_init(&device, LIMIT, NULL);
        spm_budget_init(&tenants[0], LIMIT * 3 / 4, &device);
        spm_budget_init(&tenants[1], LIMIT * 3 / 4, &device);
        pthread_barrier_init(&start, NULL, (unsigned int)threads);
        for (uintptr_t i = 0; i < threads; i++)
                if (pthread_create(&thread[i], NULL, run, (void *)i))
                        return fail("no thread");
        for (unsigned long i = 0; i < threads; i++)
                pthread_join(thread[i], NULL);
        spm_budget_look(&device, &figures);
        if (atomic_load(&mistakes))
                return fail("more was held than the limit, or a release was refused");
        if (figures.reserved || figures.reserved_high > LIMIT)
                return fail("what is left, or the most that was reserved, is wrong");
        if (atomic_load(&most_held) > figures.reserved_high)
                return fail("the high mark is below what was held");
        if (threads > 1 && !figures.refused)
                return fail("nobody was ever refused, so nothing was tested");
        printf("budget: %lu threads, at most %" PRIu64 " of %d, %" PRIu64 " refused\n", threads,
               figures.reserved_high, LIMIT, figures.refused);
        return 0;
}
