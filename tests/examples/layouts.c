/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts -- which layout suits a program, and how small its cap can be
 *
 * A program of two phases: it loads weights, which stay, and then serves requests of many sizes.
 * Its calls are replayed without a device, once for each layout; then the sliced one gets a cap of
 * just the pages that it needed, and of one less, which is too few. Weights that go to the
 * persistent shelf do not pin pages among the requests.
 *
 *   cc layouts.c $(pkg-config --cflags --libs streampool) -o layouts && ./layouts
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <streampool/model.h>

#define MIB      ((size_t)1 << 20)
#define WEIGHTS  12
#define AT_ONCE  8 /* requests */
#define REQUESTS 400

struct run {
        struct spm_model *model;
        spm_pool pool;
        spm_stream stream;
        bool is_served; /* all of it, until now */
};

static void must(enum spm_status status, const char *what)
{
        if (status == SPM_OK)
                return;
        fprintf(stderr, "%s: %s\n", what, spm_status_name(status));
        exit(1);
}

/* A layout is text, as it is in STREAMPOOL_LAYOUT; what is wrong with one is told in a line. */
static void install(struct run *run, const char *text)
{
        struct spm_layout layout;
        struct spm_layout_error error;
        struct spm_actions actions;
        char why[160];

        if (spm_layout_parse(text, &layout, &error) != SPM_OK) {
                spm_layout_explain(&error, why, sizeof(why));
                fprintf(stderr, "%s: %s\n", text, why);
                exit(1);
        }
        must(spm_pool_install(run->model, run->pool, &layout, &error, &actions), "install");
}

/* The pool makes up its addresses, so there is no driver to call; and one stream alone has its own
 * memory again in order, so there is nothing to wait for. */
static struct run begin(const char *text)
{
        struct spm_pool_config config = {.kind = SPM_POOL_ASYNC, .provider = SPM_PROVIDER_MODEL};
        struct run run = {.is_served = true};
        spm_context context;

        must(spm_model_new(NULL, &run.model), "model");
        must(spm_context_add(run.model, 0, &context), "context");
        must(spm_stream_add(run.model, context, SPM_STREAM_NON_BLOCKING, &run.stream), "stream");
        must(spm_pool_create(run.model, &config, &run.pool), "pool");
        if (text)
                install(&run, text);
        return run;
}

static uint64_t get(struct run *run, size_t size)
{
        struct spm_request request = {.pool = run->pool, .stream = run->stream, .size = size};
        struct spm_allocation allocation = {0};
        struct spm_actions actions;
        enum spm_status status;

        do {
                status = spm_alloc(run->model, &request, &allocation, &actions);
        } while (status == SPM_AGAIN);
        run->is_served = run->is_served && status == SPM_OK;
        return status == SPM_OK ? allocation.address : 0;
}

static void put(struct run *run, uint64_t address)
{
        struct spm_actions actions;

        if (address)
                must(spm_free(run->model, address, 0, SPM_FREE_ASYNC, run->stream, NULL, &actions),
                     "free");
}

/* Requests go on while the weights are loaded. */
static void serve(struct run *run)
{
        uint64_t busy[AT_ONCE] = {0};
        unsigned int i;

        for (i = 0; i < REQUESTS; i++) {
                put(run, busy[i % AT_ONCE]);
                busy[i % AT_ONCE] = get(run, (size_t)(i * 37 % 61 + 1) * MIB / 8);
                if (i % 30 || i / 30 >= WEIGHTS)
                        continue;
                (void)spm_persistent_enter(run->model, run->pool); /* without a layout: nothing */
                get(run, 3 * MIB);
                (void)spm_persistent_leave(run->model, run->pool);
        }
        for (i = 0; i < AT_ONCE; i++)
                put(run, busy[i]);
}

static void tell(struct run *run, const char *text)
{
        struct spm_stats stats;

        must(spm_stats(run->model, run->pool, &stats), "figures");
        printf("%-44s in use at most %llu MiB, reserved at most %llu MiB\n",
               text ? text : "the default heap", (unsigned long long)(stats.used_high / MIB),
               (unsigned long long)(stats.reserved_high / MIB));
}

/* How many pages did the first shelf need? */
static uint64_t try_layout(const char *text, bool *is_served)
{
        struct run run = begin(text);
        struct spm_shelf_stats shelf = {0};

        serve(&run);
        tell(&run, text);
        if (text)
                must(spm_layout_stats(run.model, run.pool, 0, &shelf), "figures");
        *is_served = run.is_served;
        if (!run.is_served) {
                struct spm_layout_error refusal;
                char why[160];

                must(spm_layout_refusal(run.model, run.pool, &refusal), "refusal");
                spm_layout_explain(&refusal, why, sizeof(why));
                printf("  refused: %s\n", why);
        }
        spm_model_free(run.model);
        return shelf.pages_peak;
}

int main(void)
{
        static const char *const texts[] = {
                NULL,
                "exclusive:max=16M,period=100",
                "direct:reclaim=64M",
                "subslices;persistent=disabled",
                "sliced:page=16M;persistent=disabled",
                "sliced:page=16M",
        };
        char text[64];
        uint64_t pages = 0;
        bool is_served;
        bool is_served_with_less;
        unsigned int i;

        for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
                pages = try_layout(texts[i], &is_served);
        snprintf(text, sizeof(text), "sliced:page=16M,cap=%lluM", (unsigned long long)pages * 16);
        try_layout(text, &is_served);
        snprintf(text, sizeof(text), "sliced:page=16M,cap=%lluM",
                 (unsigned long long)(pages - 1) * 16);
        try_layout(text, &is_served_with_less);
        return is_served && !is_served_with_less ? 0 : 1;
}
