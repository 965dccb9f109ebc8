/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run -- how an allocator fares on a trace
 */

#include "run.h"

#include <stdlib.h>

#include "measure.h"

/* What was served, by block; 0 is not live. */
static bool step(const struct trace *trace, const struct trace_event *event, struct peer *peer,
                 uint64_t *address, struct audit *audit)
{
        const struct peer_ops *ops = peer->ops;

        switch (event->kind) {
        case TRACE_ALLOC:
                address[event->a] = ops->alloc(peer, event->b, trace->size[event->a]);
                if (!address[event->a])
                        return false;
                if (audit)
                        audit_add(audit, address[event->a], trace->size[event->a]);
                return true;
        case TRACE_FREE:
                if (audit)
                        audit_take(audit, address[event->a]);
                ops->free(peer, address[event->a], trace->size[event->a], event->b);
                address[event->a] = 0;
                return true;
        case TRACE_ORDER:
        case TRACE_QUERY:
                if (ops->order)
                        ops->order(peer, event->order, event->a, event->b);
                return true;
        case TRACE_THREAD:
        case TRACE_REFUSED:
        case TRACE_FREE_NULL:
        case TRACE_PIN:
        case TRACE_UNPIN:
                return true;
        }
        return false;
}

static void drain(const struct trace *trace, struct peer *peer, const uint64_t *address)
{
        uint32_t i;

        for (i = 0; i < trace->blocks; i++)
                if (address[i])
                        peer->ops->free(peer, address[i], trace->size[i], PEER_ANYWHERE);
}

struct outcome trace_replay(const struct trace *trace, const struct peer_ops *ops,
                            const struct peer_options *options, struct audit *audit)
{
        uint64_t *address = must_calloc(trace->blocks + 1, sizeof(*address));
        struct peer_options audited = *options;
        struct outcome outcome = {.is_complete = true};
        uint64_t early_moves = 0;
        struct peer *peer;
        uint64_t started;
        size_t i;

        audited.audit = audit;
        peer = ops->make(&audited);
        started = measure_now();
        for (i = 0; i < trace->events && outcome.is_complete; i++) {
                const struct trace_event *event = &trace->event[i];

                if (event->kind == TRACE_ALLOC && event->a == trace->blocks / 2)
                        early_moves = peer->figures.moves;
                outcome.is_complete = step(trace, event, peer, address, audit);
                if (!outcome.is_complete)
                        outcome.refused = event->a;
        }
        outcome.ns = measure_now() - started;
        outcome.is_agreed = !ops->agrees || ops->agrees(peer);
        outcome.figures = peer->figures;
        outcome.late_moves = peer->figures.moves - early_moves;
        if (ops->is_host)
                drain(trace, peer, address);
        ops->unmake(peer);
        free(address);
        return outcome;
}

/* capacities */

uint64_t run_bisect(uint64_t low, uint64_t high, uint64_t close,
                    bool (*will_do)(uint64_t number, void *user), void *user)
{
        while (high - low > close) {
                uint64_t middle = low + (high - low) / 2;

                if (will_do(middle, user))
                        high = middle;
                else
                        low = middle;
        }
        return high;
}

struct trial {
        const struct trace *trace;
        const struct peer_ops *ops;
        struct peer_options options;
};

static bool completes(uint64_t capacity, void *user)
{
        struct trial *trial = user;

        trial->options.capacity = capacity;
        return trace_replay(trial->trace, trial->ops, &trial->options, NULL).is_complete;
}

uint64_t trace_capacity(const struct trace *trace, const struct peer_ops *ops,
                        const struct peer_options *options, uint64_t enough)
{
        uint64_t close = trace->live_peak / 500 > 2 * MIB ? trace->live_peak / 500 : 2 * MIB;
        struct trial trial = {trace, ops, *options};

        if (!completes(enough, &trial))
                return 0;
        if (completes(trace->live_peak, &trial))
                return trace->live_peak;
        return run_bisect(trace->live_peak, enough, close, completes, &trial);
}
