/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pool -- how much device memory a pipeline will need, found without a device
 *
 * Batches go through two streams. A loader allocates an input and fills it; a
 * worker allocates an output, computes it from the input, and frees the input.
 * The loader may have that memory for its next batch once the worker has passed
 * the free: with an event that it waits for, or when the host has seen it.
 *
 * The pool makes up its addresses, and this program is its own device: one whose
 * streams get nowhere before the host waits for them, which is the worst that
 * can happen to a plan. Each output is freed when its batch is over, but for one
 * that somebody wants to keep.
 *
 * At last the worker uses scratch memory, over and over. It has a magazine: most
 * of these calls touch nothing that another thread could want at the same time.
 *
 *   cc pool.c $(pkg-config --cflags --libs streampool) -o pool && ./pool
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <streampool/model.h>

#define MIB       ((uint64_t)1 << 20)
#define BATCHES   6
#define INPUT     ((size_t)24 << 20)
#define OUTPUT    ((size_t)3 << 20)
#define KEPT      2 /* the batch whose output is kept */

#define SCRATCHES 1000
#define SCRATCH   ((size_t)4096)

struct plan {
        struct spm_model *model;
        spm_context context;
        spm_pool pool;
        spm_stream loader;
        spm_stream worker;
        unsigned int device_waits; /* that a real device would have been told */
        unsigned int host_waits;
};

static void must(enum spm_status status, const char *what)
{
        if (status == SPM_OK)
                return;
        fprintf(stderr, "%s: %s\n", what, spm_status_name(status));
        exit(1);
}

/* the device */

static void carry_out(struct plan *plan, const struct spm_actions *actions);

static void answer(struct plan *plan, const struct spm_action *action)
{
        struct spm_actions more = {0};

        switch (action->kind) {
        case SPM_ACT_RECORD: /* here a device would get an event */
                must(spm_stamp_recorded(plan->model, action->stamp, true, &more), "record");
                break;
        case SPM_ACT_WAIT_STREAM:
                plan->device_waits++;
                break;
        case SPM_ACT_WAIT_HOST:
                plan->host_waits++;
                must(spm_stamp_done(plan->model, action->stamp, &more), "wait");
                break;
        default: /* questions: nothing is done yet; memory: the pool makes it up */
                break;
        }
        carry_out(plan, &more);
}

static void carry_out(struct plan *plan, const struct spm_actions *actions)
{
        unsigned int i;

        for (i = 0; i < actions->count; i++)
                answer(plan, &actions->item[i]);
}

/* what the program does on it */

static void climb(struct plan *plan, struct spm_request *request, struct spm_allocation *allocation)
{
        struct spm_actions actions;
        enum spm_status status;

        do {
                status = spm_alloc(plan->model, request, allocation, &actions);
                carry_out(plan, &actions);
        } while (status == SPM_AGAIN);
        must(status, "allocate");
}

static uint64_t allocate(struct plan *plan, spm_stream stream, size_t size, uint64_t batch)
{
        struct spm_request request = {0};
        struct spm_allocation allocation;

        request.pool = plan->pool;
        request.stream = stream;
        request.size = size;
        request.may_wait = true;
        climb(plan, &request, &allocation);
        must(spm_set_user(plan->model, allocation.address, batch), "name");
        return allocation.address;
}

/* Scratch memory, and some more for the magazine. */
static void allocate_scratch(struct plan *plan, struct spm_magazine *magazine,
                             struct spm_allocation *allocation)
{
        struct spm_request request = {0};

        request.pool = plan->pool;
        request.stream = plan->worker;
        request.size = SCRATCH;
        request.magazine = magazine;
        climb(plan, &request, allocation);
}

static enum spm_status release(struct plan *plan, spm_stream stream, uint64_t address)
{
        struct spm_actions actions;
        enum spm_status status =
                spm_free(plan->model, address, 0, SPM_FREE_ASYNC, stream, NULL, &actions);

        if (status == SPM_OK)
                carry_out(plan, &actions);
        return status;
}

/* All later work of @behind comes after all earlier work of @first. */
static void order(struct plan *plan, spm_stream first, spm_stream behind)
{
        struct spm_scope from = {SPM_SCOPE_STREAM, first};
        struct spm_scope to = {SPM_SCOPE_STREAM, behind};
        struct spm_actions actions;
        struct spm_ticket ticket;
        spm_event event;

        must(spm_event_add(plan->model, &event), "event");
        must(spm_record_begin(plan->model, event, from, &ticket, &actions), "record");
        carry_out(plan, &actions);
        spm_record_end(plan->model, &ticket, true);
        must(spm_wait_begin(plan->model, to, event, &ticket), "wait");
        spm_wait_end(plan->model, &ticket, true);
        must(spm_event_remove(plan->model, event), "event");
}

static void synchronise(struct plan *plan)
{
        struct spm_scope all = {SPM_SCOPE_CONTEXT, plan->context};
        struct spm_actions actions;
        struct spm_ticket ticket;

        must(spm_sync_begin(plan->model, all, &ticket), "synchronise");
        spm_sync_end(plan->model, &ticket, SPM_SYNC_WAIT, true, &actions);
        carry_out(plan, &actions);
}

/* the plan */

static void begin(struct plan *plan)
{
        struct spm_pool_config config = {0};

        config.kind = SPM_POOL_ASYNC;
        config.provider = SPM_PROVIDER_MODEL;
        *plan = (struct plan){0};
        must(spm_model_new(NULL, &plan->model), "model");
        must(spm_context_add(plan->model, 0, &plan->context), "context");
        must(spm_stream_add(plan->model, plan->context, SPM_STREAM_NON_BLOCKING, &plan->loader),
             "stream");
        must(spm_stream_add(plan->model, plan->context, SPM_STREAM_NON_BLOCKING, &plan->worker),
             "stream");
        must(spm_pool_create(plan->model, &config, &plan->pool), "pool");
}

static void run(struct plan *plan, bool with_event)
{
        uint64_t batch;

        for (batch = 0; batch < BATCHES; batch++) {
                uint64_t input = allocate(plan, plan->loader, INPUT, batch);
                uint64_t output;

                order(plan, plan->loader, plan->worker);
                output = allocate(plan, plan->worker, OUTPUT, batch);
                must(release(plan, plan->worker, input), "free");
                if (batch != KEPT)
                        must(release(plan, plan->worker, output), "free");
                if (with_event)
                        order(plan, plan->worker, plan->loader);
        }
}

static bool print_leak(const struct spm_allocation *allocation, void *user)
{
        const struct plan *plan = user;

        printf("  still held: %zu bytes of batch %" PRIu64 ", allocated on the %s's stream\n",
               allocation->size, allocation->user,
               allocation->stream == plan->loader ? "loader" : "worker");
        return true;
}

static void print_figures(const struct plan *plan)
{
        struct spm_stats stats;

        must(spm_stats(plan->model, plan->pool, &stats), "figures");
        printf("  %" PRIu64 " allocations, %" PRIu64 " from memory that was freed before\n",
               stats.allocs, stats.hits);
        printf("  in use at most %" PRIu64 " MiB, reserved at most %" PRIu64 " MiB\n",
               stats.used_high / MIB, stats.reserved_high / MIB);
        printf("  waits: %u of the device, %u of the host\n", plan->device_waits, plan->host_waits);
}

static void print_plan(const char *title, bool with_event)
{
        struct plan plan;
        struct spm_stats stats;
        char broken[160];

        printf("%s\n", title);
        begin(&plan);
        run(&plan, with_event);
        print_figures(&plan);
        synchronise(&plan);
        spm_each_live(plan.model, plan.pool, print_leak, &plan);
        must(spm_stats(plan.model, plan.pool, &stats), "figures");
        printf("  after the end: %" PRIu64 " in use, %" PRIu64 " pending\n", stats.live_blocks,
               stats.pending_bytes);
        if (!spm_check(plan.model, broken, sizeof(broken)))
                printf("  the model is broken: %s\n", broken);
        spm_model_free(plan.model);
}

static void print_scratch(void)
{
        struct plan plan;
        struct spm_magazine *magazine;
        struct spm_allocation allocation;
        struct spm_stats stats;
        unsigned int quick = 0;
        unsigned int i;

        begin(&plan);
        must(spm_magazine_new(plan.model, plan.pool, plan.worker, &magazine), "magazine");
        for (i = 0; i < SCRATCHES; i++) {
                /* Only what the magazine cannot do needs the lock that a program with threads has
                 * around everything else. */
                if (!spm_magazine_alloc(magazine, SCRATCH, 0, &allocation))
                        allocate_scratch(&plan, magazine, &allocation);
                else
                        quick++;
                if (!spm_magazine_free(magazine, allocation.address, 0, NULL))
                        must(release(&plan, plan.worker, allocation.address), "free");
        }
        must(spm_stats(plan.model, plan.pool, &stats), "figures");
        printf("scratch memory\n");
        printf("  %" PRIu64 " allocations, %u of them without the lock\n", stats.allocs, quick);
        printf("  in use at most %" PRIu64 " bytes\n", stats.used_high);
        spm_magazine_end(plan.model, magazine);
        spm_model_free(plan.model);
}

/* What is said of a mistake, and that it changes nothing. */
static void print_mistakes(void)
{
        struct plan plan;
        uint64_t address;
        uint64_t hash;

        begin(&plan);
        address = allocate(&plan, plan.loader, INPUT, 0);
        printf("mistakes\n");
        printf("  a free of the middle: %s\n",
               spm_status_name(release(&plan, plan.loader, address + 512)));
        printf("  a free of what was never allocated: %s\n",
               spm_status_name(release(&plan, plan.loader, 512)));
        must(release(&plan, plan.loader, address), "free");
        hash = spm_hash(plan.model);
        printf("  a second free: %s\n", spm_status_name(release(&plan, plan.loader, address)));
        printf("  the model is %s\n", spm_hash(plan.model) == hash ? "as before" : "changed");
        spm_model_free(plan.model);
}

int main(void)
{
        print_plan("without an event", false);
        print_plan("with an event", true);
        print_scratch();
        print_mistakes();
        return 0;
}
