/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replay -- each trace on each allocator: how much memory, how fast
 *
 *   replay TRACE...            all of it; a line each, for scripts/bench
 *   replay --models TRACE...   the model alone
 *   replay --quick TRACE...    nothing is timed; every block is checked to be
 *                              disjoint from all others, and a second run to
 *                              serve the same addresses; the host's allocator
 *                              is left out, which may fill what it serves
 *
 * A line: replay, trace, allocator, live peak, reserved peak, the smallest
 * capacity that completes (0: not even the reserved peak), nanoseconds a call,
 * allocations, moves, moves in the second half, the peak of the model's own
 * memory, then the actions that the model asked for, by enum spm_action_kind.
 * Tabs between, memory in bytes.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "records.h"
#include "run.h"

#define ROUNDS 3

/* Kernels that a busy device is behind the program. */
#define LAG 256

struct contender {
        const char *name;
        const struct peer_ops *ops;
        const char *only; /* traces with this in their name; NULL for all */
        struct peer_options options;
};

/* As the shim configures its pools. */
#define MODEL(mode)                                                                                \
        .has_device = true, .keep = SIZE_MAX, .growth = SPM_GROWTH_##mode, .large_align = 64 * KIB

/* The same without its alignment of large blocks, which is for cuMemAlloc() only. */
#define DENSE(mode) .has_device = true, .keep = SIZE_MAX, .growth = SPM_GROWTH_##mode

/* Likewise, cut up otherwise: each layout by itself, and as its presets have it. */
#define LAYOUT(text) MODEL(BALANCED), .layout = (text)

static const struct contender contenders[] = {
        {"balanced", &peer_model, NULL, {MODEL(BALANCED)}},
        {"speed", &peer_model, NULL, {MODEL(SPEED)}},
        {"tight", &peer_model, NULL, {MODEL(TIGHT)}},
        {"balanced, busy", &peer_model, NULL, {MODEL(BALANCED), .lag = LAG}},
        {"speed, busy", &peer_model, NULL, {MODEL(SPEED), .lag = LAG}},
        {"tight, busy", &peer_model, NULL, {MODEL(TIGHT), .lag = LAG}},
        {"balanced, 512 B", &peer_model, ".sync", {DENSE(BALANCED)}},
        {"speed, 512 B", &peer_model, ".sync", {DENSE(SPEED)}},
        {"tight, 512 B", &peer_model, ".sync", {DENSE(TIGHT)}},
        {"layout subslices", &peer_model, NULL, {LAYOUT("subslices=64G")}},
        {"layout exclusive", &peer_model, NULL, {LAYOUT("exclusive=64G")}},
        {"layout sliced", &peer_model, NULL, {LAYOUT("sliced:page=256M;direct")}},
        {"layout direct", &peer_model, NULL, {LAYOUT("direct")}},
        {"PyTorch-like", &peer_torch, NULL, {0}},
        {"PyTorch, expandable", &peer_expand, NULL, {0}},
        {"BFC", &peer_bfc, NULL, {0}},
        {"CuPy-like", &peer_cupy, NULL, {0}},
        {"RMM-like", &peer_rmm, NULL, {0}},
        {"exact bins", &peer_exact, NULL, {0}},
        {"glibc", &peer_host, NULL, {0}},
};

static const char *base_name(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

/* A replay of its own: counting takes time. */
static uint64_t records_of(const struct trace *trace, const struct contender *contender)
{
        struct peer_options options = contender->options;
        struct records records = {0};

        options.records = &records;
        trace_replay(trace, contender->ops, &options, NULL);
        return records.high;
}

/* Return: was every allocation served? */
static bool measure(const struct trace *trace, const char *name, const struct contender *contender)
{
        struct outcome best = {0};
        uint64_t capacity = 0;
        unsigned int i;

        for (i = 0; i < ROUNDS; i++) {
                struct outcome outcome =
                        trace_replay(trace, contender->ops, &contender->options, NULL);

                if (!i || outcome.ns < best.ns)
                        best = outcome;
        }
        if (!contender->ops->is_host)
                capacity = trace_capacity(trace, contender->ops, &contender->options,
                                          best.figures.reserved_high);
        printf("replay\t%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%.1f\t%u\t%" PRIu64
               "\t%" PRIu64 "\t%" PRIu64,
               name, contender->name, trace->live_peak, best.figures.reserved_high, capacity,
               (double)best.ns / trace->calls, trace->blocks, best.figures.moves, best.late_moves,
               records_of(trace, contender));
        for (i = 0; i < PEER_ACTIONS; i++)
                printf("\t%" PRIu64, best.figures.action[i]);
        putchar('\n');
        fflush(stdout);
        if (!best.is_complete)
                fprintf(stderr, "%s: %s: an allocation was refused\n", contender->name, name);
        return best.is_complete;
}

/* Return: the hash of all addresses; 0 if something was wrong. */
static uint64_t check_once(const struct trace *trace, const struct contender *contender)
{
        struct audit audit = {.hash = 1};
        struct outcome outcome = trace_replay(trace, contender->ops, &contender->options, &audit);
        bool is_well = outcome.is_complete && outcome.is_agreed && audit_is_clean(&audit);

        is_well &= outcome.figures.reserved_high >= trace->live_peak;
        audit_fini(&audit);
        return is_well ? audit.hash : 0;
}

static bool check(const struct trace *trace, const char *name, const struct contender *contender)
{
        uint64_t hash = check_once(trace, contender);

        if (!hash) {
                printf("%s: %s: blocks overlap, were refused or are miscounted\n", contender->name,
                       name);
                return false;
        }
        if (check_once(trace, contender) != hash) {
                printf("%s: %s: other addresses in a second run\n", contender->name, name);
                return false;
        }
        return true;
}

static bool run(const struct trace *trace, const char *name, bool is_quick, bool is_models)
{
        bool is_well = true;
        size_t i;

        for (i = 0; i < sizeof(contenders) / sizeof(*contenders); i++) {
                const struct peer_ops *ops = contenders[i].ops;

                if ((is_models && !ops->is_model) || (is_quick && ops->is_host))
                        continue;
                if (contenders[i].only && !strstr(name, contenders[i].only))
                        continue;
                if (is_quick)
                        is_well &= check(trace, name, &contenders[i]);
                else
                        is_well &= measure(trace, name, &contenders[i]);
        }
        return is_well;
}

int main(int count, char **arguments)
{
        bool is_quick = count > 1 && !strcmp(arguments[1], "--quick");
        bool is_models = count > 1 && !strcmp(arguments[1], "--models");
        bool is_well = true;
        int first = 1 + (is_quick || is_models);
        int i;

        if (count <= first) {
                fprintf(stderr, "usage: replay [--quick | --models] TRACE...\n");
                return 2;
        }
        for (i = first; i < count; i++) {
                struct trace trace;

                if (!trace_load(&trace, arguments[i]))
                        return 2;
                is_well &= run(&trace, base_name(arguments[i]), is_quick, is_models);
                trace_fini(&trace);
        }
        return is_well ? 0 : 1;
}
