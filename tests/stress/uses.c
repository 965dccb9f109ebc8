/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses -- threads that allocate, use, free and reap, each call under one lock
 *
 *   uses THREADS ROUNDS
 *
 * A free and a reap of two threads come one after the other, wholly (B25): whenever the lock is
 * free, live and pending sum up to what is outstanding, and pending to what the streams have (B16,
 * B19). At the end nothing is left. The host's waits fail now and then.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <streampool/model.h>

#define THREADS_MAX 64
#define HELD        8

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct spm_model *model;
static spm_context context;
static spm_pool pool;
static struct spm_budget budget;
static struct spm_account account;
static unsigned long rounds;
static _Atomic(unsigned int) mistakes;
static unsigned int waits;

struct worker {
        spm_stream stream;
        spm_stream other;
        struct spm_block_id held[HELD];
        uint32_t dice;
};

static bool wait_for(struct spm_scope what, void *user)
{
        (void)what;
        (void)user;
        return ++waits % 5;
}

static uint32_t roll(struct worker *worker)
{
        worker->dice = worker->dice * 1664525u + 1013904223u;
        return worker->dice >> 8;
}

/* With the lock. */
static void check(void)
{
        struct spm_outstanding now;
        struct spm_budget_figures figures;

        spm_outstanding(model, pool, &now);
        spm_budget_look(&budget, &figures);
        if (now.live_bytes + now.pending_bytes != now.outstanding_bytes ||
            now.pending_bytes != now.stream_bytes || figures.reserved > figures.limit ||
            account.live != now.live_bytes || account.pending > now.pending_bytes)
                atomic_fetch_add(&mistakes, 1);
}

static void allocate(struct worker *worker, struct spm_block_id *id)
{
        struct spm_account_request request = {
                .request = {.stream = worker->stream, .size = 1 + roll(worker) % 500000},
        };
        struct spm_allocation allocation;
        struct spm_actions actions;
        enum spm_status status;

        do
                status = spm_account_alloc(model, &account, &request, &allocation, NULL, &actions);
        while (status == SPM_AGAIN);
        if (status == SPM_OK)
                *id = spm_block_id(&allocation);
        else if (status != SPM_E_OUT_OF_BUDGET)
                atomic_fetch_add(&mistakes, 1);
}

static void release(struct worker *worker, struct spm_block_id *id)
{
        struct spm_actions actions;

        if (spm_account_free(model, &account, id->address, id->generation, SPM_FREE_ASYNC,
                             worker->stream, NULL, &actions))
                atomic_fetch_add(&mistakes, 1);
        *id = (struct spm_block_id){0};
}

static void step(struct worker *worker)
{
        struct spm_block_id *id = &worker->held[roll(worker) % HELD];
        struct spm_actions actions;
        struct spm_reaped reaped;
        uint32_t choice = roll(worker) % 8;

        if (!choice) {
                spm_reap_pending(model, pool, wait_for, NULL, &reaped, &actions);
                spm_account_settle(model, &account);
        } else if (!id->address) {
                allocate(worker, id);
        } else if (choice < 4) {
                release(worker, id);
        } else if (spm_use_record(model, *id, choice & 1 ? SPM_USE_READ : SPM_USE_WRITE,
                                  choice & 2 ? worker->stream : worker->other)) {
                atomic_fetch_add(&mistakes, 1);
        }
}

static void *run(void *argument)
{
        struct worker *worker = argument;

        for (unsigned long i = 0; i < rounds; i++) {
                pthread_mutex_lock(&lock);
                step(worker);
                check();
                pthread_mutex_unlock(&lock);
        }
        for (int i = 0; i < HELD; i++) {
                pthread_mutex_lock(&lock);
                if (worker->held[i].address)
                        release(worker, &worker->held[i]);
                pthread_mutex_unlock(&lock);
        }
        return NULL;
}

static bool set_up(struct worker *workers, unsigned long threads)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .provider = SPM_PROVIDER_MODEL,
                .track_uses = true,
        };

        if (spm_model_new(NULL, &model) || spm_context_add(model, 0, &context) ||
            spm_pool_create(model, &config, &pool))
                return false;
        spm_budget_init(&budget, 4 << 20, NULL);
        account.wait = wait_for;
        for (unsigned long i = 0; i < threads; i++) {
                workers[i].dice = (uint32_t)i + 1;
                if (spm_stream_add(model, context, SPM_STREAM_NON_BLOCKING, &workers[i].stream))
                        return false;
                workers[i].other = workers[i / 2].stream;
        }
        return spm_account_open(model, &account, pool, &budget) == SPM_OK;
}

static int fail(const char *what)
{
        fprintf(stderr, "uses: %s\n", what);
        return 1;
}

/* A wait may fail, and the next one does not. */
static bool is_at_rest(void)
{
        struct spm_outstanding now;
        struct spm_actions actions;
        struct spm_reaped reaped;
        char text[160];

        while (spm_reap_pending(model, 0, wait_for, NULL, &reaped, &actions) == SPM_E_DRIVER)
                ;
        spm_account_settle(model, &account);
        spm_outstanding(model, 0, &now);
        return !now.outstanding_bytes && !account.live && !account.pending &&
               spm_check(model, text, sizeof(text));
}

int main(int count, char **words)
{
        static struct worker workers[THREADS_MAX];
        unsigned long threads = count > 1 ? strtoul(words[1], NULL, 10) : 0;
        pthread_t thread[THREADS_MAX];
        bool at_rest;

        rounds = count > 2 ? strtoul(words[2], NULL, 10) : 0;
        if (!threads || threads > THREADS_MAX || !rounds)
                return fail("usage: uses THREADS ROUNDS, at most 64 threads");
        if (!set_up(workers, threads))
                return fail("cannot begin");
        for (unsigned long i = 0; i < threads; i++)
                if (pthread_create(&thread[i], NULL, run, &workers[i]))
                        return fail("no thread");
        for (unsigned long i = 0; i < threads; i++)
                pthread_join(thread[i], NULL);
        at_rest = is_at_rest();
        printf("uses: %lu threads, %lu reaps by the budget, %u waits\n", threads,
               (unsigned long)account.reaps, waits);
        spm_account_close(&account);
        spm_model_free(model);
        if (atomic_load(&mistakes))
                return fail("a call was refused, or figures did not fit together");
        if (!at_rest)
                return fail("something is left at the end");
        return account.reaps ? 0 : fail("the budget was never short, so nothing was tested");
}
