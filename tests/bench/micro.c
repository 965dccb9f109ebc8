/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Micro -- each workload on each allocator
 *
 *   micro                    all of it; a line each, for scripts/bench
 *   micro --milliseconds N   time for one of them, a third of it before measuring
 *   micro --only TEXT        workloads whose name has TEXT
 *   micro --peer NAME        one allocator
 *   micro --models           the model, and the yardsticks of its targets
 *   micro --batches N        nothing is timed: N batches of one workload on one
 *                            allocator, for somebody who counts instructions
 *   micro --quick            nothing is timed: small sizes, and every block is
 *                            checked to be disjoint from all others; the host's
 *                            allocator is left out, which may fill what it serves
 *
 * A line: micro, workload, allocator; nanoseconds a pair in batches: p50, mean;
 * nanoseconds of single pairs: p50, p99, p99.9, p99.99; how many of them were
 * left out because the pool grew; instructions a pair; peak bytes of the
 * model's own records, and of the pool. Tabs between; what is not known is
 * "n/a".
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "records.h"
#include "workload.h"

#define SAMPLES     500000
#define QUICK_N     64
#define QUICK_STEPS 100

struct contender {
        const struct peer_ops *ops;
        struct peer_options options;
};

#define MODEL .has_device = true, .large_align = 64 * KIB

static const struct contender contenders[] = {
        {&peer_model_magazine, {MODEL}},
        {&peer_model_async, {MODEL}},
        {&peer_model_sync, {MODEL}},
        {&peer_torch, {0}},
        {&peer_expand, {0}},
        {&peer_bfc, {0}},
        {&peer_cupy, {0}},
        {&peer_rmm, {0}},
        {&peer_exact, {0}},
        {&peer_host, {0}},
        {&peer_host_small, {0}},
        {&peer_none, {0}},
};

static const struct peer_options cpu_only;

struct wish {
        uint64_t milliseconds;
        uint64_t batches;
        const char *only;
        const char *peer;
        bool is_quick;
        bool is_models;
};

static double measured[SAMPLES];

/* A workload that runs on an allocator. */
struct course {
        const struct workload *workload;
        const struct peer_ops *ops;
        struct peer *peer;
        struct load load;
};

static void begin(struct course *course, const struct workload *workload,
                  const struct contender *contender, const struct peer_options *options)
{
        course->workload = workload;
        course->ops = contender->ops;
        course->peer = course->ops->make(options);
        load_init(&course->load, course->peer, options->audit, workload->n);
        workload->prepare(&course->load, workload->n);
}

static unsigned int step(struct course *course, unsigned int pairs)
{
        return course->workload->step(&course->load, course->workload->n, pairs);
}

/* Return: was every allocation served? */
static bool end(struct course *course)
{
        bool is_well = !course->load.refused;

        if (!is_well)
                fprintf(stderr, "%s: %s: %" PRIu64 " allocations were refused\n", course->ops->name,
                        course->workload->name, course->load.refused);
        load_drain(&course->load);
        course->ops->unmake(course->peer);
        return is_well;
}

/* timing */

/* Return: pairs done in about @ns. */
static uint64_t run_batches(struct course *course, uint64_t ns, struct samples *samples)
{
        uint64_t deadline = measure_now() + ns;
        uint64_t pairs = 0;
        uint64_t before, after;

        do {
                unsigned int done;

                before = measure_now();
                done = step(course, course->workload->batch);
                after = measure_now();
                samples_add(samples, after - before, done);
                pairs += done;
        } while (after < deadline && samples->count < samples->room);
        return pairs;
}

/* Return: samples that are none, since the pool grew meanwhile. */
static uint64_t run_singles(struct course *course, uint64_t ns, struct samples *samples)
{
        const struct peer_figures *figures = &course->peer->figures;
        uint64_t deadline = measure_now() + ns;
        uint64_t clock = measure_clock();
        uint64_t grown = 0;
        uint64_t before, after;

        do {
                uint64_t grows = figures->grows;
                unsigned int done;

                before = measure_now();
                done = step(course, 1);
                after = measure_now();
                if (figures->grows != grows)
                        grown++;
                else
                        samples_add(samples, after - before > clock ? after - before - clock : 0,
                                    done);
        } while (after < deadline && samples->count < samples->room);
        return grown;
}

static void print_number(double value)
{
        if (isnan(value) || value < 0)
                printf("\tn/a");
        else
                printf("\t%.1f", value);
}

static void print_batches(struct course *course, uint64_t ns, double *instructions)
{
        struct samples samples = {measured, 0, SAMPLES};
        uint64_t pairs, started, ended;

        instructions_start();
        started = measure_now();
        pairs = run_batches(course, ns, &samples);
        ended = measure_now();
        *instructions = instructions_stop() / (double)pairs;
        samples_sort(&samples);
        print_number(samples_at(&samples, 0.5));
        print_number((double)(ended - started) / (double)pairs);
}

static void print_singles(struct course *course, uint64_t ns)
{
        struct samples samples = {measured, 0, SAMPLES};
        uint64_t grown = run_singles(course, ns, &samples);

        samples_sort(&samples);
        print_number(samples_at(&samples, 0.5));
        print_number(samples_at(&samples, 0.99));
        print_number(samples_at(&samples, 0.999));
        print_number(samples_at(&samples, 0.9999));
        printf("\t%" PRIu64, grown);
}

/* Another course: counting takes time. */
static void print_records(const struct workload *workload, const struct contender *contender)
{
        struct peer_options options = contender->options;
        struct records records = {0};
        struct course course;
        unsigned int i;

        if (!contender->ops->is_model) {
                printf("\tn/a\tn/a");
                return;
        }
        options.records = &records;
        begin(&course, workload, contender, &options);
        for (i = 0; i < QUICK_STEPS; i++)
                step(&course, workload->batch);
        printf("\t%" PRIu64 "\t%" PRIu64, records.high, course.peer->figures.reserved_high);
        end(&course);
}

static bool measure(const struct workload *workload, const struct contender *contender,
                    const struct wish *wish)
{
        uint64_t third = wish->milliseconds * 1000000 / 3;
        struct samples unwanted = {measured, 0, SAMPLES};
        struct course course;
        double instructions;
        bool is_well;

        begin(&course, workload, contender, &contender->options);
        run_batches(&course, third, &unwanted);
        printf("micro\t%s\t%s", workload->name, contender->ops->name);
        print_batches(&course, third, &instructions);
        print_singles(&course, third);
        print_number(instructions);
        is_well = end(&course);
        print_records(workload, contender);
        putchar('\n');
        fflush(stdout);
        return is_well;
}

static bool count(const struct workload *workload, const struct contender *contender,
                  const struct wish *wish)
{
        struct course course;
        uint64_t pairs = 0;
        uint64_t i;

        begin(&course, workload, contender, &contender->options);
        for (i = 0; i < wish->batches; i++)
                pairs += step(&course, workload->batch);
        printf("batches\t%s\t%s\t%" PRIu64 "\n", workload->name, contender->ops->name, pairs);
        return end(&course);
}

/* checking */

/* Return: the hash of all addresses; 0 if something was wrong. */
static uint64_t check_once(const struct workload *workload, const struct contender *contender,
                           const struct peer_options *chosen)
{
        struct workload small = *workload;
        struct peer_options options = *chosen;
        struct audit audit = {.hash = 1};
        struct course course;
        unsigned int i;
        bool is_well;

        small.n = workload->n < QUICK_N ? workload->n : QUICK_N;
        options.audit = &audit;
        begin(&course, &small, contender, &options);
        for (i = 0; i < QUICK_STEPS; i++)
                step(&course, small.batch);
        is_well = !course.ops->agrees || course.ops->agrees(course.peer);
        is_well = end(&course) && audit_is_clean(&audit) && is_well;
        audit_fini(&audit);
        return is_well ? audit.hash : 0;
}

static bool check(const struct workload *workload, const struct contender *contender,
                  const struct peer_options *options)
{
        const char *name = contender->ops->name;
        uint64_t hash = check_once(workload, contender, options);

        if (!hash) {
                printf("%s: %s: blocks overlap, were refused or are miscounted\n", name,
                       workload->name);
                return false;
        }
        if (check_once(workload, contender, options) != hash) {
                printf("%s: %s: other addresses in a second run\n", name, workload->name);
                return false;
        }
        return true;
}

static bool run(const struct workload *workload, const struct contender *contender,
                const struct wish *wish)
{
        const struct peer_ops *ops = contender->ops;

        if (wish->only && !strstr(workload->name, wish->only))
                return true;
        if (wish->peer && strcmp(ops->name, wish->peer))
                return true;
        if (wish->is_models && !ops->is_model && !ops->is_yardstick)
                return true;
        if (wish->batches)
                return count(workload, contender, wish);
        if (!wish->is_quick)
                return measure(workload, contender, wish);
        if (ops->is_host)
                return true;
        return check(workload, contender, &contender->options) &&
               (!ops->is_model || check(workload, contender, &cpu_only));
}

/* arguments */

static bool parse_flag(const char *argument, struct wish *wish)
{
        if (!strcmp(argument, "--quick"))
                wish->is_quick = true;
        else if (!strcmp(argument, "--models"))
                wish->is_models = true;
        else
                return false;
        return true;
}

static bool parse_value(const char *argument, const char *value, struct wish *wish)
{
        if (!strcmp(argument, "--milliseconds"))
                wish->milliseconds = strtoull(value, NULL, 10);
        else if (!strcmp(argument, "--batches"))
                wish->batches = strtoull(value, NULL, 10);
        else if (!strcmp(argument, "--only"))
                wish->only = value;
        else if (!strcmp(argument, "--peer"))
                wish->peer = value;
        else
                return false;
        return true;
}

static bool parse(int count, char **arguments, struct wish *wish)
{
        int i;

        for (i = 1; i < count; i++) {
                if (parse_flag(arguments[i], wish))
                        continue;
                if (i + 1 == count || !parse_value(arguments[i], arguments[i + 1], wish))
                        return false;
                i++;
        }
        return wish->milliseconds > 0;
}

int main(int count, char **arguments)
{
        struct wish wish = {.milliseconds = 300};
        bool is_well = true;
        size_t i, j;

        if (!parse(count, arguments, &wish)) {
                fprintf(stderr, "usage: micro [--quick] [--models] [--milliseconds N] "
                                "[--batches N] [--only TEXT] [--peer NAME]\n");
                return 2;
        }
        for (i = 0; i < workload_count; i++)
                for (j = 0; j < sizeof(contenders) / sizeof(*contenders); j++)
                        is_well &= run(&workloads[i], &contenders[j], &wish);
        return is_well ? 0 : 1;
}
