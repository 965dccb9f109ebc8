/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads -- several of them on one allocator
 *
 *   threads                    all of it; a line each, for scripts/bench
 *   threads --milliseconds N   time for one measurement, the best of nine
 *   threads --models           the model, and who shows what the machine can do
 *   threads --quick            nothing is timed: every block is checked to be
 *                              disjoint from all others; the host's allocator is
 *                              left out
 *
 * A line: threads, what they do, allocator, how many, million pairs a second of
 * all together. Tabs between. "n/a": more than two threads a core that wait for
 * each other, which measures the scheduler.
 */

#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <time.h>

#include "hand.h"
#include "measure.h"

#define THREADS_MAX 16
#define ROUNDS      9
#define BATCH       32
#define LIVE        64
#define SIZES       256
#define RING        256
#define HOT_SIZE    (4 * KIB)
#define QUICK_PAIRS 1000

static const struct crew_kind kinds[] = {
        {.name = "streampool, magazines",
         .ops = &peer_model_async,
         .options = {.has_device = true},
         .has_lock = true,
         .has_magazines = true},
        {.name = "streampool, one lock",
         .ops = &peer_model_async,
         .options = {.has_device = true},
         .has_lock = true},
        {.name = "PyTorch-like, one lock", .ops = &peer_torch, .has_lock = true},
        {.name = "RMM-like, one lock", .ops = &peer_rmm, .has_lock = true},
        {.name = "glibc", .ops = &peer_host},
        {.name = "nobody", .ops = &peer_none, .is_private = true},
};

/* From one thread to one other; each counter has one writer. */
struct ring {
        _Alignas(64) _Atomic uint64_t filled;
        _Alignas(64) _Atomic uint64_t emptied;
        uint64_t address[RING];
};

struct worker {
        _Alignas(64) pthread_t thread;
        struct hand hand;
        const struct shape *shape;
        struct ring *ring;
        bool produces; /* into the ring */
        bool consumes;
        uint64_t pairs; /* a pair ends with a free */
        uint64_t limit; /* 0: until told to stop */
        uint64_t started;
        uint64_t ended;
        struct chance chance;
        uint64_t size[SIZES];
        uint64_t address[LIVE];
        uint64_t address_size[LIVE];
};

struct shape {
        const char *name;
        bool is_shared;   /* all on one stream */
        bool has_couples; /* every second thread frees what its neighbour allocates */
        void (*batch)(struct worker *worker);
        void (*drain)(struct worker *worker);
};

static _Atomic bool is_over;
static pthread_barrier_t start;

/* what they do */

static void hot(struct worker *worker)
{
        unsigned int i;

        for (i = 0; i < BATCH; i++)
                hand_free(&worker->hand, hand_alloc(&worker->hand, HOT_SIZE), HOT_SIZE);
        worker->pairs += BATCH;
}

static void drain_nothing(struct worker *worker)
{
        (void)worker;
}

static void churn(struct worker *worker)
{
        unsigned int i;

        for (i = 0; i < BATCH; i++) {
                unsigned int k = (unsigned int)chance_below(&worker->chance, LIVE);
                uint64_t size = worker->size[worker->pairs++ % SIZES];

                hand_free(&worker->hand, worker->address[k], worker->address_size[k]);
                worker->address[k] = hand_alloc(&worker->hand, size);
                worker->address_size[k] = size;
        }
}

static void drain_live(struct worker *worker)
{
        unsigned int i;

        for (i = 0; i < LIVE; i++)
                hand_free(&worker->hand, worker->address[i], worker->address_size[i]);
}

/* Return: false if the ring is full. */
static bool produce(struct worker *worker)
{
        struct ring *ring = worker->ring;
        uint64_t filled = atomic_load_explicit(&ring->filled, memory_order_relaxed);

        if (filled - atomic_load_explicit(&ring->emptied, memory_order_acquire) == RING)
                return false;
        ring->address[filled % RING] = hand_alloc(&worker->hand, HOT_SIZE);
        atomic_store_explicit(&ring->filled, filled + 1, memory_order_release);
        return true;
}

/* Return: false if it is empty. */
static bool consume(struct worker *worker)
{
        struct ring *ring = worker->ring;
        uint64_t emptied = atomic_load_explicit(&ring->emptied, memory_order_relaxed);

        if (atomic_load_explicit(&ring->filled, memory_order_acquire) == emptied)
                return false;
        hand_free(&worker->hand, ring->address[emptied % RING], HOT_SIZE);
        atomic_store_explicit(&ring->emptied, emptied + 1, memory_order_release);
        return true;
}

static void hand_over(struct worker *worker)
{
        bool is_well = true;
        unsigned int i;

        for (i = 0; i < BATCH && worker->produces; i++)
                is_well &= produce(worker);
        for (i = 0; i < BATCH && worker->consumes; i++)
                if (consume(worker))
                        worker->pairs++;
                else
                        is_well = false;
        if (!is_well)
                sched_yield();
}

static void drain_ring(struct worker *worker)
{
        while (worker->consumes && consume(worker))
                ;
}

static const struct shape shapes[] = {
        {"own streams, hot pair", false, false, hot, drain_nothing},
        {"own streams, 64 live each", false, false, churn, drain_live},
        {"one stream, hot pair", true, false, hot, drain_nothing},
        {"one stream, 64 live each", true, false, churn, drain_live},
        {"handed over", false, true, hand_over, drain_ring},
};

/* a measurement */

static void *work(void *argument)
{
        struct worker *worker = argument;

        pthread_barrier_wait(&start);
        worker->started = measure_now();
        while (!atomic_load_explicit(&is_over, memory_order_relaxed) &&
               (!worker->limit || worker->pairs < worker->limit))
                worker->shape->batch(worker);
        worker->ended = measure_now();
        return NULL;
}

static void prepare(struct worker *worker, const struct shape *shape, struct crew *crew,
                    unsigned int i, unsigned int threads)
{
        unsigned int k;

        *worker = (struct worker){.shape = shape, .chance = {88172645463325252u + i}};
        for (k = 0; k < SIZES; k++)
                worker->size[k] = chance_log(&worker->chance, 512, 64 * KIB);
        worker->consumes = shape->has_couples && (i % 2 || threads == 1);
        worker->produces = shape->has_couples && !(i % 2);
        hand_open(&worker->hand, crew, shape->is_shared ? 1 : 1 + (shape->has_couples ? i / 2 : i));
}

static void sleep_for(uint64_t ms)
{
        struct timespec pause = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

        nanosleep(&pause, NULL);
}

/* Until @ms have passed, or each consumer has @limit pairs. */
static void run(struct worker *workers, unsigned int threads, uint64_t ms, uint64_t limit)
{
        unsigned int i;

        atomic_store(&is_over, false);
        pthread_barrier_init(&start, NULL, threads + 1);
        for (i = 0; i < threads; i++) {
                bool has_pairs = !workers[i].shape->has_couples || workers[i].consumes;

                workers[i].limit = has_pairs ? limit : 0;
                if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) {
                        fputs("no thread to be had\n", stderr);
                        exit(1);
                }
        }
        pthread_barrier_wait(&start);
        sleep_for(ms);
        for (i = 0; i < threads && limit; i++)
                if (workers[i].limit)
                        pthread_join(workers[i].thread, NULL);
        atomic_store(&is_over, true);
        for (i = 0; i < threads; i++)
                if (!workers[i].limit)
                        pthread_join(workers[i].thread, NULL);
        pthread_barrier_destroy(&start);
}

static double rate(const struct worker *workers, unsigned int threads)
{
        uint64_t started = UINT64_MAX;
        uint64_t ended = 0;
        uint64_t pairs = 0;
        unsigned int i;

        for (i = 0; i < threads; i++) {
                pairs += workers[i].pairs;
                started = workers[i].started < started ? workers[i].started : started;
                ended = workers[i].ended > ended ? workers[i].ended : ended;
        }
        return (double)pairs * 1e3 / (double)(ended - started);
}

/* Return: million pairs a second; negative if an allocation was refused. */
static double once(const struct shape *shape, const struct crew_kind *kind, unsigned int threads,
                   uint64_t ms, struct audit *audit)
{
        static struct worker workers[THREADS_MAX];
        static struct ring rings[THREADS_MAX];
        struct crew crew;
        unsigned int i;

        memset(rings, 0, sizeof(rings));
        crew_init(&crew, kind, THREADS_MAX, audit);
        for (i = 0; i < threads; i++) {
                prepare(&workers[i], shape, &crew, i, threads);
                workers[i].ring = &rings[i / 2];
        }
        run(workers, threads, ms, audit ? QUICK_PAIRS : 0);
        for (i = 0; i < threads; i++) {
                shape->drain(&workers[i]);
                hand_close(&workers[i].hand);
        }
        crew_fini(&crew);
        if (crew.refused)
                fprintf(stderr, "%s: %s: %" PRIu64 " allocations were refused\n", kind->name,
                        shape->name, crew.refused);
        return crew.refused ? -1 : rate(workers, threads);
}

static void print(const struct shape *shape, const struct crew_kind *kind, unsigned int threads,
                  double rate)
{
        printf("threads\t%s\t%s\t%u", shape->name, kind->name, threads);
        if (rate > 0)
                printf("\t%.3f\n", rate);
        else
                puts("\tn/a");
        fflush(stdout);
}

/* The best of some rounds. A round has all numbers of threads, so that others' work on the machine
 * meets them alike. */
static bool measure(const struct shape *shape, const struct crew_kind *kind, uint64_t ms)
{
        unsigned int most = shape->has_couples ? 2 * (unsigned int)get_nprocs() : THREADS_MAX;
        double best[THREADS_MAX + 1] = {0};
        bool is_well = true;
        unsigned int i, threads;

        for (i = 0; i < ROUNDS; i++)
                for (threads = 1; threads <= THREADS_MAX && threads <= most; threads *= 2) {
                        double rate = once(shape, kind, threads, ms, NULL);

                        is_well &= rate >= 0;
                        if (rate > best[threads])
                                best[threads] = rate;
                }
        for (threads = 1; threads <= THREADS_MAX; threads *= 2)
                print(shape, kind, threads, best[threads]);
        return is_well;
}

static bool check(const struct shape *shape, const struct crew_kind *kind, unsigned int threads)
{
        struct audit audit = {0};
        bool is_well = once(shape, kind, threads, 0, &audit) >= 0 && audit_is_clean(&audit);

        audit_fini(&audit);
        if (!is_well)
                printf("%s: %s, %u threads: blocks overlap, or were refused\n", kind->name,
                       shape->name, threads);
        return is_well;
}

/* arguments */

struct wish {
        uint64_t milliseconds;
        bool is_quick;
        bool is_models;
};

static bool parse(int count, char **arguments, struct wish *wish)
{
        int i;

        for (i = 1; i < count; i++) {
                if (!strcmp(arguments[i], "--quick"))
                        wish->is_quick = true;
                else if (!strcmp(arguments[i], "--models"))
                        wish->is_models = true;
                else if (i + 1 < count && !strcmp(arguments[i], "--milliseconds"))
                        wish->milliseconds = strtoull(arguments[++i], NULL, 10);
                else
                        return false;
        }
        return wish->milliseconds > 0;
}

static bool run_or_check(const struct shape *shape, const struct crew_kind *kind,
                         const struct wish *wish)
{
        bool is_well = true;
        unsigned int threads;

        if (!wish->is_quick)
                return measure(shape, kind, wish->milliseconds);
        for (threads = 1; threads <= THREADS_MAX; threads *= 2)
                is_well &= check(shape, kind, threads);
        return is_well;
}

int main(int count, char **arguments)
{
        struct wish wish = {.milliseconds = 15};
        bool is_well = true;
        size_t i, j;

        if (!parse(count, arguments, &wish)) {
                fprintf(stderr, "usage: threads [--quick] [--models] [--milliseconds N]\n");
                return 2;
        }
        for (i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
                for (j = 0; j < sizeof(kinds) / sizeof(*kinds); j++) {
                        const struct peer_ops *ops = kinds[j].ops;

                        if (wish.is_quick && (ops->is_host || kinds[j].is_private))
                                continue;
                        if (wish.is_models && !ops->is_model && !kinds[j].is_private)
                                continue;
                        is_well &= run_or_check(&shapes[i], &kinds[j], &wish);
                }
        }
        return is_well ? 0 : 1;
}
