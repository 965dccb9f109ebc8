/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Micro -- each workload on each allocator
 *
 *   micro                    all of it; a line each, for scripts/bench
 *   micro --milliseconds N   time for one of them, half of it before measuring
 *   micro --only TEXT        workloads whose name has TEXT
 *   micro --models           the model, and the yardsticks of its targets
 *   micro --quick            nothing is timed: small sizes, and every block is
 *                            checked to be disjoint from all others; the host's
 *                            allocator is left out, which may fill what it serves
 *
 * A line: micro, workload, allocator, samples, then nanoseconds a pair: p50,
 * p99, p99.9, p99.99, mean; then instructions a pair. Tabs between; what is
 * not known is "n/a".
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workload.h"

#define SAMPLES     100000
#define QUICK_N     64
#define QUICK_STEPS 100

static const struct peer_ops *const peers[] = {
        &peer_model_async, &peer_model_sync, &peer_torch, &peer_bfc,
        &peer_rmm,         &peer_exact,      &peer_host,  &peer_host_small,
};

static const struct peer_options unlimited;

struct wish {
        uint64_t milliseconds;
        const char *only;
        bool is_quick;
        bool is_models;
};

static double measured[SAMPLES];

/* Return: pairs done in about @ns. */
static uint64_t run(const struct workload *workload, struct load *load, uint64_t ns,
                    struct samples *samples)
{
        uint64_t end = measure_now() + ns;
        uint64_t pairs = 0;
        uint64_t before, after;

        do {
                unsigned int done;

                before = measure_now();
                done = workload->step(load, workload->n);
                after = measure_now();
                if (samples)
                        samples_add(samples, after - before, done);
                pairs += done;
        } while (after < end && (!samples || samples->count < samples->room));
        return pairs;
}

static void print_number(double value)
{
        if (isnan(value) || value < 0)
                printf("\tn/a");
        else
                printf("\t%.1f", value);
}

static void print(const struct workload *workload, const struct peer_ops *ops,
                  struct samples *samples, double mean, double instructions)
{
        samples_sort(samples);
        printf("micro\t%s\t%s\t%zu", workload->name, ops->name, samples->count);
        print_number(samples_at(samples, 0.5));
        print_number(samples_at(samples, 0.99));
        print_number(samples_at(samples, 0.999));
        print_number(samples_at(samples, 0.9999));
        print_number(mean);
        print_number(instructions);
        putchar('\n');
        fflush(stdout);
}

static bool measure(const struct workload *workload, const struct peer_ops *ops,
                    const struct wish *wish)
{
        struct samples samples = {measured, 0, SAMPLES};
        struct peer *peer = ops->make(&unlimited);
        uint64_t half = wish->milliseconds * 500000;
        uint64_t pairs, started, ended;
        double instructions;
        struct load load;

        load_init(&load, peer, NULL, workload->n);
        workload->prepare(&load, workload->n);
        run(workload, &load, half, NULL);
        instructions_start();
        started = measure_now();
        pairs = run(workload, &load, half, &samples);
        ended = measure_now();
        instructions = instructions_stop() / (double)pairs;
        print(workload, ops, &samples, (double)(ended - started) / (double)pairs, instructions);
        load_drain(&load);
        ops->unmake(peer);
        return !load.refused;
}

/* Return: the hash of all addresses; 0 if something was wrong. */
static uint64_t check_once(const struct workload *workload, const struct peer_ops *ops)
{
        uint32_t n = workload->n < QUICK_N ? workload->n : QUICK_N;
        struct peer *peer = ops->make(&unlimited);
        struct audit audit = {.hash = 1};
        struct load load;
        unsigned int i;

        load_init(&load, peer, &audit, n);
        workload->prepare(&load, n);
        for (i = 0; i < QUICK_STEPS; i++)
                workload->step(&load, n);
        load_drain(&load);
        ops->unmake(peer);
        audit_fini(&audit);
        return load.refused || !audit_is_clean(&audit) ? 0 : audit.hash;
}

static bool check(const struct workload *workload, const struct peer_ops *ops)
{
        uint64_t hash = check_once(workload, ops);

        if (!hash) {
                printf("%s: %s: blocks overlap, or were refused\n", ops->name, workload->name);
                return false;
        }
        if (check_once(workload, ops) != hash) {
                printf("%s: %s: other addresses in a second run\n", ops->name, workload->name);
                return false;
        }
        return true;
}

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
                else if (i + 1 < count && !strcmp(arguments[i], "--only"))
                        wish->only = arguments[++i];
                else
                        return false;
        }
        return wish->milliseconds > 0;
}

int main(int count, char **arguments)
{
        struct wish wish = {.milliseconds = 300};
        bool is_well = true;
        size_t i, j;

        if (!parse(count, arguments, &wish)) {
                fprintf(stderr,
                        "usage: micro [--quick] [--models] [--milliseconds N] [--only TEXT]\n");
                return 2;
        }
        for (i = 0; i < workload_count; i++) {
                if (wish.only && !strstr(workloads[i].name, wish.only))
                        continue;
                for (j = 0; j < sizeof(peers) / sizeof(*peers); j++) {
                        if (wish.is_models && !peers[j]->is_model && !peers[j]->is_yardstick)
                                continue;
                        if (!wish.is_quick)
                                is_well &= measure(&workloads[i], peers[j], &wish);
                        else if (!peers[j]->is_host)
                                is_well &= check(&workloads[i], peers[j]);
                }
        }
        return is_well ? 0 : 1;
}
