/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trace -- what a real program asked a pool for, and how an allocator fares
 */

#include "trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"

/* reading */

static struct trace_event *add_event(struct trace *trace)
{
        /* Doubles whenever the count is a power of two. */
        if (!(trace->events & (trace->events - 1)))
                trace->event =
                        must_realloc(trace->event, (2 * trace->events + 1) * sizeof(*trace->event));
        return &trace->event[trace->events++];
}

static bool add(struct trace *trace, enum trace_kind kind, uint32_t a, uint32_t b)
{
        *add_event(trace) = (struct trace_event){.kind = kind, .a = a, .b = b};
        return true;
}

/* Return: the number of the block whose size was added. */
static uint32_t add_size(uint64_t **size, uint32_t *count, uint64_t bytes)
{
        uint32_t block = (*count)++;

        if (!(block & (block - 1)))
                *size = must_realloc(*size, (2 * (size_t)block + 1) * sizeof(uint64_t));
        (*size)[block] = bytes;
        return block;
}

static bool add_alloc(struct trace *trace, uint64_t size, uint32_t stream)
{
        return size &&
               add(trace, TRACE_ALLOC, add_size(&trace->size, &trace->blocks, size), stream);
}

static bool add_free(struct trace *trace, uint64_t age, uint32_t stream)
{
        return age && age <= trace->blocks &&
               add(trace, TRACE_FREE, trace->blocks - (uint32_t)age, stream);
}

static bool add_pin(struct trace *trace, uint64_t size)
{
        return size &&
               add(trace, TRACE_PIN, add_size(&trace->pinned_size, &trace->pinned, size), 0);
}

static bool add_unpin(struct trace *trace, uint64_t age)
{
        return age && age <= trace->pinned &&
               add(trace, TRACE_UNPIN, trace->pinned - (uint32_t)age, 0);
}

static bool add_order(struct trace *trace, enum peer_order order, uint64_t a, uint64_t b)
{
        *add_event(trace) = (struct trace_event){
                .kind = TRACE_ORDER,
                .order = order,
                .a = (uint32_t)a,
                .b = (uint32_t)b,
        };
        return true;
}

static bool add_query(struct trace *trace, uint64_t stream)
{
        *add_event(trace) = (struct trace_event){
                .kind = TRACE_QUERY,
                .order = PEER_SYNC_STREAM,
                .a = (uint32_t)stream,
        };
        return true;
}

static bool parse(struct trace *trace, const char *line)
{
        uint64_t x = 0, y = 0;
        char kind;

        if (sscanf(line, "%c %" SCNu64 " %" SCNu64, &kind, &x, &y) < 1)
                return false;
        switch (kind) {
        case 'a':
                return add_alloc(trace, x, PEER_ANYWHERE);
        case 'A':
                return add_alloc(trace, x, (uint32_t)y);
        case 'f':
                return x ? add_free(trace, x, PEER_ANYWHERE) : add(trace, TRACE_FREE_NULL, 0, 0);
        case 'F':
                return add_free(trace, x, (uint32_t)y);
        case 'k':
                return add_order(trace, PEER_LAUNCH, x, y);
        case '+':
                return add_order(trace, PEER_STREAM_MADE, ++trace->streams, x);
        case '-':
                return add_order(trace, PEER_STREAM_GONE, x, 0);
        case 'r':
                return add_order(trace, PEER_RECORD, x, y);
        case 'w':
                return add_order(trace, PEER_WAIT, y, x);
        case 'x':
                return add_order(trace, PEER_EVENT_GONE, x, 0);
        case 's':
                return add_order(trace, PEER_SYNC_STREAM, x, 0);
        case 'q':
                return add_query(trace, x);
        case 'e':
                return add_order(trace, PEER_SYNC_EVENT, x, 0);
        case 'c':
                return add_order(trace, PEER_SYNC_ALL, 0, 0);
        case 't':
                return add(trace, TRACE_THREAD, (uint32_t)x, 0);
        case '!':
                return add(trace, TRACE_REFUSED, (uint32_t)x, 0);
        case 'h':
                return add_pin(trace, x);
        case 'H':
                return add_unpin(trace, x);
        default:
                return false;
        }
}

static bool is_call(const struct trace_event *event)
{
        return event->kind <= TRACE_QUERY &&
               (event->kind != TRACE_ORDER || event->order != PEER_LAUNCH);
}

/* The live peak, and how many calls a pool has to answer. */
static void sum_up(struct trace *trace)
{
        uint64_t live = 0;
        size_t i;

        for (i = 0; i < trace->events; i++) {
                const struct trace_event *event = &trace->event[i];

                if (event->kind == TRACE_ALLOC)
                        live += trace->size[event->a];
                else if (event->kind == TRACE_FREE)
                        live -= trace->size[event->a];
                trace->calls += is_call(event);
                if (live > trace->live_peak)
                        trace->live_peak = live;
        }
}

bool trace_load(struct trace *trace, const char *path)
{
        FILE *file = fopen(path, "r");
        unsigned int number = 0;
        char line[128];
        bool is_good = file != NULL;

        *trace = (struct trace){0};
        while (is_good && fgets(line, sizeof(line), file)) {
                number++;
                is_good = parse(trace, line);
        }
        if (!is_good || !trace->events)
                fprintf(stderr, "%s:%u: no trace\n", path, number);
        if (file)
                fclose(file);
        sum_up(trace);
        return is_good && trace->events;
}

void trace_fini(struct trace *trace)
{
        free(trace->event);
        free(trace->size);
        free(trace->pinned_size);
        *trace = (struct trace){0};
}

/* replaying */

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

uint64_t trace_capacity(const struct trace *trace, const struct peer_ops *ops,
                        const struct peer_options *options, uint64_t enough)
{
        uint64_t close = trace->live_peak / 500 > 2 * MIB ? trace->live_peak / 500 : 2 * MIB;
        struct peer_options tried = *options;
        uint64_t low = trace->live_peak;
        uint64_t high = enough;

        tried.capacity = high;
        if (!trace_replay(trace, ops, &tried, NULL).is_complete)
                return 0;
        tried.capacity = low;
        if (trace_replay(trace, ops, &tried, NULL).is_complete)
                return low;
        while (high - low > close) {
                tried.capacity = low + (high - low) / 2;
                if (trace_replay(trace, ops, &tried, NULL).is_complete)
                        high = tried.capacity;
                else
                        low = tried.capacity;
        }
        return high;
}
