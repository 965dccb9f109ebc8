/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRACE_H
#define TRACE_H

/*
 * Trace -- what a real program asked a pool for, and how an allocator fares
 *
 * The text is that of traces/README.md. Some of it is only for who repeats the
 * program (tests/e2e/apps/client.c): no pool is told of that here.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit.h"
#include "peer.h"

enum trace_kind {
        TRACE_ALLOC,
        TRACE_FREE,
        TRACE_ORDER,
        TRACE_QUERY, /* as ORDER: the program asked until the stream was idle */

        /* of no pool */
        TRACE_THREAD,    /* a: who makes the calls that follow; 0 is the main thread */
        TRACE_REFUSED,   /* a: what an allocation of a thread without a context was answered */
        TRACE_FREE_NULL, /* nothing is freed */
        TRACE_PIN,       /* a: which block of page-locked memory */
        TRACE_UNPIN,     /* a: likewise */
};

struct trace_event {
        enum trace_kind kind;
        enum peer_order order; /* ORDER, QUERY: with @a and @b as it wants them */
        uint32_t a;            /* ALLOC, FREE: which block */
        uint32_t b;            /* ALLOC, FREE: stream, or PEER_ANYWHERE */
};

struct trace {
        struct trace_event *event;
        size_t events;
        uint64_t *size; /* of each block */
        uint32_t blocks;
        uint64_t *pinned_size; /* of each block of page-locked memory */
        uint32_t pinned;
        uint32_t streams;   /* that were made: the highest number */
        uint32_t calls;     /* to a pool: all its events but launches */
        uint64_t live_peak; /* bytes asked for and not freed */
};

/** trace_load() - Return: false, after saying why, if @path is no trace. */
bool trace_load(struct trace *trace, const char *path);
void trace_fini(struct trace *trace);

struct outcome {
        bool is_complete; /* every allocation was served */
        bool is_agreed;   /* the allocator's own figures are those that were counted */
        uint64_t ns;
        uint64_t late_moves; /* in the second half of the allocations: the steady state */
        struct peer_figures figures;
};

/** trace_replay() - on a new allocator; @audit may be NULL, and hears of segments too. */
struct outcome trace_replay(const struct trace *trace, const struct peer_ops *ops,
                            const struct peer_options *options, struct audit *audit);

/**
 * trace_capacity() - the smallest capacity that completes
 * @enough: one that may be expected to
 *
 * By bisection, to a 500th of the live peak or 2 MiB. It takes for granted that more memory is
 * not worse, which no best fit guarantees.
 *
 * Return: bytes, 0 if @enough does not complete.
 */
uint64_t trace_capacity(const struct trace *trace, const struct peer_ops *ops,
                        const struct peer_options *options, uint64_t enough);

#endif
