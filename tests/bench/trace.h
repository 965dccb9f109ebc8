/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRACE_H
#define TRACE_H

/*
 * Trace -- what a real program asked a pool for, and how an allocator fares
 *
 * The text is that of traces/README.md.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit.h"
#include "peer.h"

enum trace_kind { TRACE_ALLOC, TRACE_FREE, TRACE_ORDER };

struct trace_event {
        enum trace_kind kind;
        enum peer_order order; /* with @a and @b as it wants them */
        uint32_t a;            /* ALLOC, FREE: which block */
        uint32_t b;            /* ALLOC, FREE: stream, or PEER_ANYWHERE */
};

struct trace {
        struct trace_event *event;
        size_t events;
        uint64_t *size; /* of each block */
        uint32_t blocks;
        uint32_t calls;     /* all events but launches */
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
