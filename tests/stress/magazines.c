/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Magazines -- many threads that free each other's blocks, and whoever wants them back
 *
 *   magazines [--fenced] [--threads N] [--phases N] [--rounds N] [--seed N]
 *
 * A plain program, because Criterion does not start under ThreadSanitizer.
 * While the workers work, memory is trimmed and runs short, streams and pools
 * end and are replaced, captures begin, peaks are reset; and every byte has one
 * owner (ground.h).
 *
 * After a phase all threads stand still, and every figure has to be what the
 * threads together have; then one of them goes on alone, and the high marks
 * have to be right after every step.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ground.h"
#include "worker.h"

#define ALONE 200 /* steps */

static uint64_t phases = 4;
static uint64_t rounds = 400;
static pthread_barrier_t barrier;

/* all stand still */

struct sums {
        uint64_t used, rounded, live;
};

static void add_up(struct sums *sums, spm_pool pool, const struct held *held)
{
        if (held->block.pool != pool)
                return;
        sums->used += held->block.size;
        sums->rounded += held->block.reserved;
        sums->live++;
}

static struct sums all_of(spm_pool pool)
{
        struct sums sums = {0};
        unsigned int i, k;

        for (i = 0; i < worker_count; i++) {
                struct worker *worker = &workers[i];

                for (k = 0; k < worker->count; k++)
                        add_up(&sums, pool, &worker->held[k]);
                for (k = 0; k < WORKER_MAIL; k++) {
                        const struct held *held = atomic_load(&worker->mail[k]);

                        if (held)
                                add_up(&sums, pool, held);
                }
        }
        return sums;
}

static void expect(const char *what, uint64_t figure, uint64_t sum)
{
        if (figure != sum)
                ground_fail("%s: %" PRIu64 ", but all threads have %" PRIu64, what, figure, sum);
}

static void compare(const struct site *site)
{
        struct sums sums = all_of(site->pool);
        struct spm_stats stats;

        if (spm_stats(ground.model, site->pool, &stats) != SPM_OK) {
                expect("a pool is gone", 0, sums.live);
                return;
        }
        expect("used", stats.used_current, sums.used);
        expect("rounded", stats.rounded_current, sums.rounded);
        expect("live", stats.live_blocks, sums.live);
        expect("allocated and not freed", stats.allocs - stats.frees, sums.live);
        expect("reserved", stats.reserved_current, site->backed_bytes);
        ground_look(site->pool);
}

static void check_all(void)
{
        unsigned int i;

        ground_lock();
        for (i = 0; i < GROUND_STREAMS; i++)
                if (ground.capturing[i])
                        ground_toggle_capture(i);
        worker_check();
        for (i = 0; i < GROUND_SITES; i++)
                if (ground.sites[i].pool)
                        compare(&ground.sites[i]);
        ground_unlock();
}

/* one goes on alone */

struct peaks {
        struct spm_stats stats;
        struct sums now, high;
};

static void follow(struct peaks *peaks, const struct held *held, bool is_more)
{
        struct sums *now = &peaks->now;

        now->used += is_more ? held->block.size : -held->block.size;
        now->live += is_more ? 1 : -(uint64_t)1;
        if (peaks->high.used < now->used)
                peaks->high.used = now->used;
        if (peaks->high.live < now->live)
                peaks->high.live = now->live;
}

static void start_peaks(struct peaks peaks[GROUND_POOLS])
{
        unsigned int i;

        for (i = 0; i < GROUND_POOLS; i++) {
                spm_pool pool = ground.sites[ground.current[i]].pool;

                ground_lock();
                spm_reset_peaks(ground.model, pool);
                ground_unlock();
                peaks[i].now = all_of(pool);
                peaks[i].high = peaks[i].now;
        }
}

static void compare_peaks(const struct peaks *peaks, spm_pool pool)
{
        struct spm_stats stats;

        ground_lock();
        spm_stats(ground.model, pool, &stats);
        ground_unlock();
        expect("alone: used", stats.used_current, peaks->now.used);
        expect("alone: used at most", stats.used_high, peaks->high.used);
        expect("alone: live", stats.live_blocks, peaks->now.live);
        expect("alone: live at most", stats.live_blocks_high, peaks->high.live);
}

static void go_alone(struct worker *worker)
{
        struct peaks peaks[GROUND_POOLS];
        unsigned int i, step;

        start_peaks(peaks);
        for (step = 0; step < ALONE; step++) {
                unsigned int before = worker->count;
                struct held held;

                if (before == WORKER_HELD || (before && ground_random(&worker->random) % 2)) {
                        held = worker_pick(worker);
                        worker_free(worker, &held);
                } else {
                        worker_alloc(worker);
                        if (worker->count > before)
                                held = worker->held[before];
                }
                for (i = 0; i < GROUND_POOLS; i++) {
                        spm_pool pool = ground.sites[ground.current[i]].pool;

                        if (worker->count != before && held.block.pool == pool)
                                follow(&peaks[i], &held, worker->count > before);
                        compare_peaks(&peaks[i], pool);
                }
        }
}

/* phases */

static void *work(void *argument)
{
        struct worker *worker = argument;
        uint64_t phase, round;
        unsigned int i;

        ground_lock();
        for (i = 0; i < WORKER_HANDS; i++)
                worker_renew(worker, &worker->hands[i]);
        ground_unlock();
        for (phase = 0; phase < phases; phase++) {
                pthread_barrier_wait(&barrier);
                for (round = 0; round < rounds; round++)
                        worker_step(worker);
                pthread_barrier_wait(&barrier);
                if (worker != &workers[phase % worker_count])
                        continue;
                check_all();
                go_alone(worker);
                check_all();
        }
        return NULL;
}

static bool run(uint64_t seed)
{
        unsigned int i;

        pthread_barrier_init(&barrier, NULL, worker_count);
        for (i = 0; i < worker_count; i++) {
                workers[i].number = i + 1;
                workers[i].random = seed + 0x9e3779b97f4a7c15u * (i + 1);
                if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
                        return false;
        }
        for (i = 0; i < worker_count; i++)
                pthread_join(workers[i].thread, NULL);
        pthread_barrier_destroy(&barrier);
        return true;
}

/* Every second magazine is left to the model's end. */
static void clean_up(struct worker *worker)
{
        unsigned int i;

        for (i = 0; i < WORKER_MAIL; i++) {
                struct held *held = atomic_exchange(&worker->mail[i], NULL);

                if (held)
                        worker_free(worker, held);
                free(held);
        }
        while (worker->count) {
                struct held held = worker_pick(worker);

                worker_free(worker, &held);
        }
        ground_lock();
        for (i = 0; i < WORKER_HANDS; i += 2)
                worker_end(&worker->hands[i]);
        ground_unlock();
}

static bool parse(int count, char **arguments, bool *fenced, uint64_t *seed)
{
        int i;

        for (i = 1; i < count; i++) {
                uint64_t value;

                if (!strcmp(arguments[i], "--fenced")) {
                        *fenced = true;
                        continue;
                }
                if (i + 1 == count)
                        return false;
                value = strtoull(arguments[i + 1], NULL, 10);
                if (!strcmp(arguments[i], "--threads"))
                        worker_count = (unsigned int)value;
                else if (!strcmp(arguments[i], "--phases"))
                        phases = value;
                else if (!strcmp(arguments[i], "--rounds"))
                        rounds = value;
                else if (!strcmp(arguments[i], "--seed"))
                        *seed = value;
                else
                        return false;
                i++;
        }
        return worker_count && worker_count <= WORKERS_MAX && *seed;
}

int main(int count, char **arguments)
{
        uint64_t quick_allocs = 0, quick_frees = 0, duels = 0;
        uint64_t seed = 1;
        bool fenced = false;
        unsigned int i;

        if (!parse(count, arguments, &fenced, &seed)) {
                fputs("usage: magazines [--fenced] [--threads N] [--phases N] [--rounds N] "
                      "[--seed N]\n",
                      stderr);
                return 2;
        }
        if (!ground_begin(fenced, seed)) {
                puts("skipped: there is no membarrier(2) here");
                return 77;
        }
        if (!run(seed))
                ground_fail("no thread to be had");
        for (i = 0; i < worker_count; i++) {
                clean_up(&workers[i]);
                quick_allocs += workers[i].quick_allocs;
                quick_frees += workers[i].quick_frees;
                duels += workers[i].duels;
        }
        check_all();
        ground_end();
        printf("seed %" PRIu64 ": %u threads, %" PRIu64 " allocations and %" PRIu64
               " frees without the lock, %" PRIu64 " duels, %u failures\n",
               seed, worker_count, quick_allocs, quick_frees, duels, atomic_load(&ground.failures));
        return atomic_load(&ground.failures) || !quick_allocs || !quick_frees;
}
