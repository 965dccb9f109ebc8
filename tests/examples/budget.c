/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Budget -- two tenants of one device, and a flight recorder
 *
 * Each tenant has a pool, a budget of its own, and a share of what the device has for both. What is
 * freed counts until it is complete: a stream that allocates again what it has just freed needs
 * nothing more, and another stream has to wait for it, which the account does by itself. What was
 * refused, and why, is in the ring afterwards.
 *
 *   cc budget.c $(pkg-config --cflags --libs streampool) -o budget && ./budget
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <streampool/model.h>

#define MIB  ((uint64_t)1 << 20)
#define ROWS 32

struct tenant {
        const char *name;
        struct spm_budget budget;
        struct spm_account account;
        struct spm_resource resource;
        spm_stream stream;
        spm_stream side;
};

static unsigned int host_waits;
static uint64_t now; /* a clock for the records: this program's own steps */

static void must(enum spm_status status, const char *what)
{
        if (status == SPM_OK)
                return;
        fprintf(stderr, "%s: %s\n", what, spm_status_name(status));
        exit(1);
}

/* A program with a device calls cuStreamSynchronize() or cuCtxSynchronize() here. */
static bool wait_for(struct spm_scope what, void *user)
{
        (void)what;
        (void)user;
        host_waits++;
        return true;
}

static void move_in(struct tenant *tenant, const char *name, struct spm_model *model,
                    spm_context context, struct spm_budget *device, struct spm_observer *observer)
{
        struct spm_pool_config config = {0};
        spm_pool pool;

        config.kind = SPM_POOL_ASYNC;
        config.provider = SPM_PROVIDER_MODEL;
        config.track_uses = true;
        tenant->name = name;
        must(spm_stream_add(model, context, SPM_STREAM_NON_BLOCKING, &tenant->stream), "stream");
        must(spm_stream_add(model, context, SPM_STREAM_NON_BLOCKING, &tenant->side), "stream");
        must(spm_pool_create(model, &config, &pool), "pool");
        spm_budget_init(&tenant->budget, 6 * MIB, device);
        tenant->account.wait = wait_for;
        must(spm_account_open(model, &tenant->account, pool, &tenant->budget), "account");
        tenant->resource.model = model;
        tenant->resource.pool = pool;
        tenant->resource.account = &tenant->account;
        tenant->resource.observer = observer;
}

static struct spm_moment moment(void)
{
        struct spm_moment moment = {1, 0};

        moment.wall_ns = ++now;
        return moment;
}

/* Return: where, or 0. */
static uint64_t allocate(struct tenant *tenant, spm_stream stream, size_t size)
{
        struct spm_account_request request = {0};
        struct spm_allocation allocation;
        struct spm_actions actions;
        enum spm_status status;

        request.request.stream = stream;
        request.request.size = size;
        /* The pools make up their memory, so there is nothing to carry out. */
        do
                status = spm_resource_alloc(&tenant->resource, moment(), &request, &allocation,
                                            &actions);
        while (status == SPM_AGAIN);
        return status == SPM_OK ? allocation.address : 0;
}

static void release(struct tenant *tenant, spm_stream stream, uint64_t address)
{
        struct spm_actions actions;

        spm_resource_free(&tenant->resource, moment(), address, 0, SPM_FREE_ASYNC, stream,
                          &actions);
}

static void print_budget(const char *name, const struct spm_budget *budget)
{
        struct spm_budget_figures figures;

        spm_budget_look(budget, &figures);
        printf("  %-6s %" PRIu64 " of %" PRIu64 " MiB reserved, %" PRIu64 " available\n", name,
               figures.reserved / MIB, figures.limit / MIB, figures.available / MIB);
}

static bool print_row(const struct spm_observation *row, void *user)
{
        (void)user;
        printf("  %" PRIu64 " %-6s %5" PRIu64 " KiB  %s\n", row->order,
               spm_observed_name(row->action), row->bytes / 1024, spm_status_name(row->result));
        return true;
}

int main(void)
{
        static struct tenant red;
        static struct tenant blue;
        static struct spm_ring_row rows[ROWS];
        struct spm_reservation reservation;
        struct spm_shortage shortage;
        struct spm_observer observer;
        struct spm_budget device;
        struct spm_model *model;
        struct spm_ring ring;
        spm_context context;
        uint64_t address;
        char text[160];

        must(spm_model_new(NULL, &model), "model");
        must(spm_context_add(model, 0, &context), "context");
        observer = spm_ring_observer(&ring, rows, ROWS);
        spm_budget_init(&device, 8 * MIB, NULL);
        move_in(&red, "red", model, context, &device, &observer);
        move_in(&blue, "blue", model, context, &device, &observer);

        printf("two tenants\n");
        address = allocate(&red, red.stream, 6 * MIB);
        printf("  blue gets 3 MiB: %s\n", allocate(&blue, blue.stream, 3 * MIB) ? "yes" : "no");
        printf("  blue gets 2 MiB: %s\n", allocate(&blue, blue.stream, 2 * MIB) ? "yes" : "no");
        print_budget("device", &device);
        print_budget(red.name, &red.budget);
        print_budget(blue.name, &blue.budget);

        printf("what was freed\n");
        release(&red, red.stream, address);
        address = allocate(&red, red.stream, 6 * MIB);
        printf("  the same stream has it again after %u waits\n", host_waits);
        release(&red, red.stream, address);
        address = allocate(&red, red.side, 6 * MIB);
        printf("  another stream has as much after %u\n", host_waits);
        release(&red, red.side, address + 512);
        release(&red, red.side, 512);
        print_budget("device", &device);

        printf("in advance\n");
        if (spm_reservation_begin(&blue.budget, MIB, &reservation, &shortage))
                printf("  %s\n", spm_shortage_text(&shortage, text, sizeof(text)));

        printf("records\n");
        spm_ring_each(&ring, print_row, NULL);
        printf("  %" PRIu64 " dropped\n", spm_observer_dropped(&observer));

        spm_account_close(&red.account);
        spm_account_close(&blue.account);
        spm_model_free(model);
        return 0;
}
