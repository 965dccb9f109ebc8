/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Torture -- options, threads, phases (torture.h says what it is for)
 *
 *   torture [--mode r1|r2|mixed] [--rounds N] [--threads N] [--seed S] [--seconds S] [--plant]
 *
 * r1     one stream of the context has work at a time: the legacy stream, or a
 *        non-blocking one, or a blocking one beside the legacy stream; the host
 *        waits for the context before it is another one's turn
 * r2     many streams of every kind have work
 * mixed  short phases of either kind; most turns to many streams come without a
 *        wait, most turns back behind one
 *
 * --seconds ends it early. --plant writes into blocks in use, and must be noticed.
 * The last line says "rounds N mismatches 0 ..."; the status is 1 if any word
 * changed that should not have.
 */
#include "torture.h"

#include <getopt.h>
#include <string.h>
#include <time.h>

enum mode { R1, R2, MIXED };

static const char *const mode_names[] = {"r1", "r2", "mixed"};

static struct {
        enum mode mode;
        unsigned long rounds;
        unsigned threads, seed, seconds;
        bool plant;
} options = {.mode = MIXED, .rounds = 1000, .threads = 8, .seed = 1};

static struct shared shared;
static time_t deadline;

unsigned pick(struct worker *w, unsigned limit)
{
        return (unsigned)rand_r(&w->seed) / 7 % limit;
}

/* ---- phases ---- */

static unsigned plan(struct worker *w, unsigned limit)
{
        return (unsigned)rand_r(&w->plan_seed) / 7 % limit;
}

/* Alone, a thread gets back what it has just freed; together, they come in each other's way. */
static void choose_threads(struct worker *w, struct phase *phase, unsigned alone_of_4)
{
        bool alone = plan(w, 4) < alone_of_4;
        unsigned count;

        phase->first = alone ? plan(w, options.threads) : 0;
        phase->end = alone ? phase->first + 1 : options.threads;
        count = phase->end - phase->first;
        if (alone)
                phase->rounds *= 2;
        if (phase->rounds > (options.rounds - w->planned + count - 1) / count)
                phase->rounds = (unsigned)((options.rounds - w->planned + count - 1) / count);
        w->planned += (unsigned long)phase->rounds * count;
}

static struct phase next_phase(struct worker *w)
{
        struct phase phase = {.capture = (CUstreamCaptureMode)plan(w, 3),
                              .apart = plan(w, 2),
                              .delay = plan(w, 1000000)};

        switch (options.mode) {
        case R1:
                phase.kind = (w->phase.kind + 1) % SEVERAL;
                phase.sync = true;
                phase.captures = !plan(w, 4);
                phase.rounds = 20 + plan(w, 60);
                choose_threads(w, &phase, 2);
                break;
        case R2:
                phase.kind = SEVERAL;
                phase.sync = !plan(w, 4);
                phase.captures = plan(w, 2);
                phase.rounds = 50 + plan(w, 100);
                choose_threads(w, &phase, 0);
                break;
        case MIXED:
                phase.kind = w->phase.kind == SEVERAL || !plan(w, 4) ? plan(w, SEVERAL) : SEVERAL;
                phase.sync = phase.kind == SEVERAL ? !plan(w, 8) : plan(w, 4);
                phase.captures = !plan(w, 4);
                phase.rounds = 2 + plan(w, 24);
                phase.intruders = plan(w, 2);
                phase.renew = !plan(w, 3);
                choose_threads(w, &phase, phase.kind == SEVERAL ? 1 : 3);
        }
        return phase;
}

static void blocks_are_idle(struct block *blocks, int count)
{
        for (int i = 0; i < count; i++) {
                blocks[i].last = NULL;
                blocks[i].marked = false;
        }
}

/* From here on nobody uses what only the last phase allowed. False if time is over. */
static bool enter_phase(struct worker *w)
{
        CUstreamCaptureMode mode;

        w->phase = next_phase(w);
        if (!w->number && deadline && time(NULL) >= deadline)
                shared.over = true;
        pthread_barrier_wait(&shared.barrier);
        if (shared.over)
                return false;
        if (w->phase.sync) {
                if (!w->number) {
                        /* Twice, for allocators that begin to count with the first time. */
                        CU_OK(cu.CtxSynchronize());
                        CU_OK(cu.CtxSynchronize());
                        blocks_are_idle(shared.mail, LETTERS);
                }
                blocks_are_idle(w->slots, SLOTS);
                pthread_barrier_wait(&shared.barrier);
        }
        if (w->phase.renew)
                stream_renew_shared(w);
        mode = w->phase.capture == CU_STREAM_CAPTURE_MODE_GLOBAL ? CU_STREAM_CAPTURE_MODE_RELAXED
                                                                 : CU_STREAM_CAPTURE_MODE_GLOBAL;
        CU_OK(cu.ThreadExchangeStreamCaptureMode(&mode));
        /* The host runs ahead of the device, so that blocks are freed before they are used. */
        if (w->number == w->phase.first)
                CU_OK(cu_spin(&shared.kernels, stream_nth(w, 1), 1 + w->phase.delay));
        return true;
}

/* ---- threads ---- */

static void *work(void *argument)
{
        struct worker *w = argument;

        CU_OK(cu.CtxSetCurrent(shared.context));
        w->page = malloc(PAGE_WORDS * sizeof(uint32_t));
        if (!w->page)
                exit(99);
        streams_open(w);
        while (w->planned < options.rounds && enter_phase(w))
                if (w->phase.first <= w->number && w->number < w->phase.end)
                        for (unsigned i = 0; i < w->phase.rounds; i++)
                                block_round(w);
        replay_end(w);
        for (int i = 0; i < SLOTS; i++)
                if (w->slots[i].p)
                        block_give(w, &w->slots[i]);
        for (int i = 0; i < SLOTS; i++)
                if (w->slots[i].event)
                        CU_OK(cu.EventDestroy(w->slots[i].event));
        streams_close(w);
        free(w->page);
        return NULL;
}

static void start(void)
{
        shared.context = cu_start(0);
        cu_load_kernels(&shared.kernels);
        shared.mismatches = cu_counter(1);
        shared.planted = options.plant;
        CU_OK(cu.StreamCreate(&shared.own, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.StreamCreate(&shared.blocking, CU_STREAM_DEFAULT));
        pthread_barrier_init(&shared.barrier, NULL, options.threads);
        pthread_rwlock_init(&shared.captures, NULL);
        pthread_rwlock_init(&shared.launches, NULL);
        pthread_mutex_init(&shared.mail_lock, NULL);
        if (options.seconds)
                deadline = time(NULL) + options.seconds;
}

static void run(struct worker *workers)
{
        for (unsigned i = 0; i < options.threads; i++) {
                workers[i] = (struct worker){
                        .shared = &shared,
                        .number = i,
                        .seed = options.seed * 1000 + i,
                        .plan_seed = options.seed,
                        .serial = 1 + ((uint32_t)i << 26),
                };
                if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
                        exit(99);
        }
        for (unsigned i = 0; i < options.threads; i++)
                pthread_join(workers[i].thread, NULL);
}

static int finish(struct worker *workers)
{
        struct worker sum = {.shared = &shared};
        unsigned mismatches;

        mail_empty(&sum);
        CU_OK(cu.CtxSynchronize());
        for (unsigned i = 0; i < options.threads; i++) {
                sum.rounds += workers[i].rounds;
                sum.made += workers[i].made;
                sum.freed += workers[i].freed;
                sum.checks += workers[i].checks;
        }
        mismatches = *shared.mismatches + shared.host_mismatches;
        printf("rounds %lu mismatches %u allocations %lu frees %lu checks %lu\n", sum.rounds,
               mismatches, sum.made, sum.freed, sum.checks);
        CU_OK(cu.StreamDestroy(shared.own));
        CU_OK(cu.StreamDestroy(shared.blocking));
        CU_OK(cu.MemFreeHost(shared.mismatches));
        return mismatches || sum.made != sum.freed;
}

/* ---- options ---- */

static bool read_options(int argc, char **argv)
{
        static const struct option known[] = {
                {"mode", required_argument, NULL, 'm'},
                {"rounds", required_argument, NULL, 'r'},
                {"threads", required_argument, NULL, 't'},
                {"seed", required_argument, NULL, 's'},
                {"seconds", required_argument, NULL, 'l'},
                {"plant", no_argument, NULL, 'p'},
                {NULL, 0, NULL, 0},
        };
        int letter;

        while ((letter = getopt_long(argc, argv, "", known, NULL)) != -1) {
                unsigned long number = optarg ? strtoul(optarg, NULL, 10) : 0;

                if (letter == 'm') {
                        for (options.mode = R1; strcmp(optarg, mode_names[options.mode]);)
                                if (options.mode++ == MIXED)
                                        return false;
                } else if (letter == 'r')
                        options.rounds = number;
                else if (letter == 't')
                        options.threads = (unsigned)number;
                else if (letter == 's')
                        options.seed = (unsigned)number;
                else if (letter == 'l')
                        options.seconds = (unsigned)number;
                else if (letter == 'p')
                        options.plant = true;
                else
                        return false;
        }
        return optind == argc && options.threads && options.threads <= THREADS_MAX;
}

int main(int argc, char **argv)
{
        static struct worker workers[THREADS_MAX];

        if (!read_options(argc, argv)) {
                fprintf(stderr, "usage: torture [--mode r1|r2|mixed] [--rounds N] [--threads N] "
                                "[--seed S] [--seconds S] [--plant]\n");
                return 2;
        }
        start();
        run(workers);
        return finish(workers);
}
