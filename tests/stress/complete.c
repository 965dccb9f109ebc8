/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Complete -- magazines of synchronous memory, and work that is still to be done
 *
 *   complete [--fenced] [--threads N] [--rounds N] [--seed N]
 *
 * Many threads allocate from the pool of one context, submit work with their blocks, hand them to
 * one another and free them, by their magazines or with the lock. The device finishes late, and
 * only what somebody waits for or asks about. Beside it stands, for every unit of memory and every
 * stream, the last piece of work that touches it: whoever is served the unit may not submit work
 * for it before that is done, but behind it.
 *
 * The caller's side is as in the shim: a stream is announced once in a count, by a mark that is
 * read without the lock; actions are carried out without it, a little later; and whoever counts
 * anew forgets all marks, and looks whether somebody is inside who has read one. Contexts end while
 * threads use their magazines.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "caller.h"

#define HELD 32

struct held {
        struct spm_allocation block;
        unsigned int life; /* of the context */
        struct device_view uses;
};

struct worker {
        pthread_t id;
        struct thread thread;
        struct spm_magazine *magazine;
        unsigned int life; /* of the context that it is of */
        struct held held[HELD];
        unsigned int count;
        _Atomic(struct held *) mail;
        uint64_t quick_allocs, quick_frees, launches;
};

static struct worker workers[CALLER_THREADS];
static uint64_t rounds = 3000;

static uint32_t tag(const struct worker *worker)
{
        return worker->thread.number + 1;
}

static void launch(struct worker *worker)
{
        unsigned int stream = caller_choose(&worker->thread, tag(worker) % 2 ? DEVICE_STREAMS : 1);
        struct held *held = &worker->held[caller_choose(&worker->thread, worker->count)];
        uint64_t work = 0;

        if (held->life == atomic_load(&caller.life))
                work = caller_submit(&worker->thread, stream, &held->block);
        if (!work)
                return;
        held->uses.work[stream] = work;
        worker->launches++;
}

/* blocks */

static void renew(struct worker *worker)
{
        pthread_mutex_lock(&caller.lock);
        if (worker->magazine)
                spm_magazine_end(caller.model, worker->magazine);
        worker->magazine = NULL;
        if (spm_magazine_new(caller.model, caller.pool, 0, &worker->magazine) != SPM_OK)
                device_fail("no magazine");
        else if (atomic_load(&caller.life) % 4) /* in some contexts no block waits in one */
                spm_magazine_crowd(caller.model, worker->magazine);
        worker->life = atomic_load(&caller.life);
        pthread_mutex_unlock(&caller.lock);
}

static size_t choose_size(struct worker *worker)
{
        static const size_t sizes[] = {512, 2 * KIB, 5000, 24 * KIB, 64 * KIB, 100 * KIB};

        return sizes[caller_choose(&worker->thread, 6)];
}

static enum spm_status alloc_slowly(struct worker *worker, size_t size, struct held *held)
{
        struct spm_request request = {.pool = caller.pool, .size = size, .may_wait = true};
        struct spm_actions actions;
        enum spm_status status;

        request.magazine = worker->magazine;
        held->life = worker->life;
        do {
                pthread_mutex_lock(&caller.lock);
                status = spm_alloc(caller.model, &request, &held->block, &actions);
                if (status == SPM_OK && held->block.announce)
                        caller_forget();
                pthread_mutex_unlock(&caller.lock);
                caller_perform(&worker->thread, &actions, &request);
        } while (status == SPM_AGAIN);
        if (status != SPM_OK && status != SPM_E_OUT_OF_MEMORY)
                device_fail("an allocation: %s", spm_status_name(status));
        return status;
}

static void alloc(struct worker *worker)
{
        struct held *held = &worker->held[worker->count];
        size_t size = choose_size(worker);
        enum spm_status status = SPM_OK;

        memset(held, 0, sizeof(*held));
        held->life = worker->life;
        if (spm_magazine_alloc(worker->magazine, size, 0, &held->block)) {
                worker->quick_allocs++;
        } else {
                pthread_rwlock_rdlock(&caller.quiet);
                if (worker->life != atomic_load(&caller.life))
                        renew(worker);
                status = alloc_slowly(worker, size, held);
                pthread_rwlock_unlock(&caller.quiet);
        }
        if (status != SPM_OK)
                return;
        device_hand(&held->block, 0, tag(worker));
        worker->count++;
}

static void free_slowly(struct worker *worker, const struct held *held)
{
        struct spm_allocation freed;
        struct spm_actions actions;
        enum spm_status status;

        pthread_rwlock_rdlock(&caller.quiet);
        pthread_mutex_lock(&caller.lock);
        if (caller_choose(&worker->thread, 4))
                spm_magazine_flush(caller.model, worker->magazine);
        status = spm_free(caller.model, held->block.address, held->block.generation, SPM_FREE_SYNC,
                          0, &freed, &actions);
        if (status == SPM_OK && freed.announce)
                caller_forget();
        pthread_mutex_unlock(&caller.lock);
        caller_perform(&worker->thread, &actions, NULL);
        if (status != SPM_OK && held->life == atomic_load(&caller.life))
                device_fail("%" PRIx64 " could not be freed: %s", held->block.address,
                            spm_status_name(status));
        pthread_rwlock_unlock(&caller.quiet);
}

static struct held pick(struct worker *worker)
{
        unsigned int at = caller_choose(&worker->thread, worker->count);
        struct held held = worker->held[at];

        worker->held[at] = worker->held[--worker->count];
        return held;
}

static void let_go(struct worker *worker, const struct held *held)
{
        device_leave(&held->block, &held->uses);
        device_hand(&held->block, tag(worker), 0);
        if (spm_magazine_free(worker->magazine, held->block.address, held->block.generation, NULL))
                worker->quick_frees++;
        else
                free_slowly(worker, held);
}

/* Whoever finds one in the way frees it. */
static void hand_on(struct worker *worker)
{
        struct worker *to = &workers[caller_choose(&worker->thread, caller.threads)];
        struct held *held = malloc(sizeof(*held));

        if (!held)
                return;
        *held = pick(worker);
        device_hand(&held->block, tag(worker), tag(to));
        held = atomic_exchange(&to->mail, held);
        if (!held)
                return;
        device_hand(&held->block, tag(to), tag(worker));
        let_go(worker, held);
        free(held);
}

static void read_mail(struct worker *worker)
{
        struct held *held = atomic_exchange(&worker->mail, NULL);

        if (held && worker->count < HELD)
                worker->held[worker->count++] = *held;
        else if (held)
                let_go(worker, held);
        free(held);
}

/* everything */

static void chore(struct worker *worker)
{
        uint32_t kind = caller_choose(&worker->thread, 64);

        if (kind < 2)
                caller_toggle_capture(&worker->thread);
        if (kind == 2 && !caller_choose(&worker->thread, 2))
                caller_replace_context(&worker->thread);
        pthread_rwlock_rdlock(&caller.quiet);
        if (kind > 2 && kind < 24)
                caller_synchronise(&worker->thread, kind % 2 ? SPM_SYNC_WAIT : SPM_SYNC_QUERY);
        else if (kind < 48 && caller.captured < 0)
                caller_recount(&worker->thread);
        else if (kind < 52)
                caller_trim(&worker->thread);
        else if (kind < 54)
                caller_check();
        else if (kind < 58)
                renew(worker);
        pthread_rwlock_unlock(&caller.quiet);
}

static void step(struct worker *worker)
{
        uint32_t kind = caller_choose(&worker->thread, 64);

        if (kind < 2) {
                chore(worker);
        } else if (kind < 5) {
                read_mail(worker);
        } else if (!worker->count || (worker->count < HELD && kind < 28)) {
                alloc(worker);
        } else if (kind < 32) {
                hand_on(worker);
        } else if (kind < 44) {
                pthread_rwlock_rdlock(&caller.quiet);
                launch(worker);
                pthread_rwlock_unlock(&caller.quiet);
        } else {
                struct held held = pick(worker);

                let_go(worker, &held);
        }
}

static void *work(void *argument)
{
        struct worker *worker = argument;
        uint64_t round;

        pthread_rwlock_rdlock(&caller.quiet);
        renew(worker);
        pthread_rwlock_unlock(&caller.quiet);
        for (round = 0; round < rounds; round++)
                step(worker);
        return NULL;
}

/* life */

static void clean_up(struct worker *worker)
{
        read_mail(worker);
        while (worker->count) {
                struct held held = pick(worker);

                let_go(worker, &held);
        }
}

static void look_at_figures(void)
{
        struct spm_stats stats;

        caller_check();
        if (spm_stats(caller.model, caller.pool, &stats) != SPM_OK || stats.live_blocks ||
            stats.used_current)
                device_fail("%" PRIu64 " blocks are left", stats.live_blocks);
        if (stats.reserved_current != caller.backed_bytes)
                device_fail("%" PRIu64 " bytes of %" PRIu64, stats.reserved_current,
                            caller.backed_bytes);
}

static bool run(unsigned int threads, uint64_t seed)
{
        unsigned int i;

        for (i = 0; i < threads; i++) {
                workers[i].thread.number = i;
                workers[i].thread.random = seed + 0x9e3779b97f4a7c15u * (i + 1);
        }
        for (i = 0; i < threads; i++)
                if (pthread_create(&workers[i].id, NULL, work, &workers[i]))
                        return false;
        for (i = 0; i < threads; i++)
                pthread_join(workers[i].id, NULL);
        for (i = 0; i < threads; i++)
                clean_up(&workers[i]);
        look_at_figures();
        return true;
}

static bool parse(int count, char **arguments, unsigned int *threads, bool *fenced, uint64_t *seed)
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
                        *threads = (unsigned int)value;
                else if (!strcmp(arguments[i], "--rounds"))
                        rounds = value;
                else if (!strcmp(arguments[i], "--seed"))
                        *seed = value;
                else
                        return false;
                i++;
        }
        return *threads && *threads <= CALLER_THREADS && *seed;
}

int main(int count, char **arguments)
{
        uint64_t allocs = 0, frees = 0, launches = 0;
        unsigned int i, threads = 8;
        uint64_t seed = 1;
        bool fenced = false;

        if (!parse(count, arguments, &threads, &fenced, &seed)) {
                fputs("usage: complete [--fenced] [--threads N] [--rounds N] [--seed N]\n", stderr);
                return 2;
        }
        if (!caller_begin(&(struct thread){.random = seed}, threads, fenced)) {
                puts("skipped: there is no membarrier(2) here");
                return 77;
        }
        if (!run(threads, seed))
                device_fail("no thread to be had");
        caller_end();
        for (i = 0; i < threads; i++) {
                allocs += workers[i].quick_allocs;
                frees += workers[i].quick_frees;
                launches += workers[i].launches;
        }
        printf("seed %" PRIu64 ": %" PRIu64 " allocations and %" PRIu64
               " frees without the lock, %" PRIu64 " launches, %" PRIu64
               " units used early, %u contexts, %u failures\n",
               seed, allocs, frees, launches, atomic_load(&device_early),
               atomic_load(&caller.life) + 1, atomic_load(&device_failures));
        return atomic_load(&device_failures) || !allocs || !frees;
}
