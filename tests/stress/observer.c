/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Observer -- many threads write into one ring, and another one reads it
 *
 *   observer THREADS ROUNDS
 *
 * All fields of a record say the same number, so a record that is torn is seen. Every order is
 * given once, from 1 to the number of records (B45).
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <streampool/model.h>

#define THREADS_MAX 64
#define ROOM        32

static struct spm_ring ring;
static struct spm_ring_row rows[ROOM];
static struct spm_observer observer;
static unsigned long rounds;
static _Atomic(uint64_t) torn;
static _Atomic(uint64_t) twice;
static _Atomic(bool) over;
static _Atomic(unsigned char) *given; /* by order */
static uint64_t all;
static uint64_t read_rows;

static void *write_rows(void *argument)
{
        uint64_t number = (uintptr_t)argument + 1;

        for (unsigned long i = 0; i < rounds; i++) {
                uint64_t value = number * 1000000000u + i;
                struct spm_observation row = {
                        .wall_ns = value,
                        .thread = value,
                        .address = value,
                        .bytes = value,
                        .generation = value,
                };

                spm_observe(&observer, &row);
                if (row.order < 1 || row.order > all || atomic_fetch_add(&given[row.order - 1], 1))
                        atomic_fetch_add(&twice, 1);
        }
        return NULL;
}

static bool check(const struct spm_observation *row, void *user)
{
        (void)user;
        read_rows++;
        if (row->wall_ns != row->thread || row->thread != row->address ||
            row->address != row->bytes || row->bytes != row->generation || !row->order)
                atomic_fetch_add(&torn, 1);
        return true;
}

static void *read_all(void *argument)
{
        while (!atomic_load(&over))
                spm_ring_each(&ring, check, argument);
        spm_ring_each(&ring, check, argument);
        return NULL;
}

static int fail(const char *what)
{
        fprintf(stderr, "observer: %s\n", what);
        return 1;
}

int main(int count, char **words)
{
        unsigned long threads = count > 1 ? strtoul(words[1], NULL, 10) : 0;
        pthread_t thread[THREADS_MAX];
        pthread_t reader;

        rounds = count > 2 ? strtoul(words[2], NULL, 10) : 0;
        if (!threads || threads > THREADS_MAX || !rounds)
                return fail("usage: observer THREADS ROUNDS, at most 64 threads");
        all = threads * rounds;
        given = calloc(all, 1);
        if (!given)
                return fail("no memory");
        observer = spm_ring_observer(&ring, rows, ROOM);
        if (pthread_create(&reader, NULL, read_all, NULL))
                return fail("no thread");
        for (uintptr_t i = 0; i < threads; i++)
                if (pthread_create(&thread[i], NULL, write_rows, (void *)i))
                        return fail("no thread");
        for (unsigned long i = 0; i < threads; i++)
                pthread_join(thread[i], NULL);
        atomic_store(&over, true);
        pthread_join(reader, NULL);
        free(given);
        if (atomic_load(&torn) || !read_rows)
                return fail("a record was torn, or none was read");
        if (atomic_load(&twice))
                return fail("an order was given twice, or is none");
        printf("observer: %" PRIu64 " records, %" PRIu64 " dropped, %" PRIu64 " read\n", all,
               spm_observer_dropped(&observer), read_rows);
        return 0;
}
