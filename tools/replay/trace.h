/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRACE_H
#define TRACE_H

/*
 * Trace -- what a real program asked a pool for
 *
 * The text is that of tests/bench/traces/README.md. Some of it is only for who repeats the
 * program (tests/e2e/apps/client.c): no pool is told of that here.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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

/**
 * trace_read() - all of @file
 * @name: of the file, for complaints
 *
 * Return: false, after saying which line is no event and why; then nothing is to be ended. What is
 * read makes sense: blocks are freed while they live, streams and events are used while they are
 * there.
 */
bool trace_read(struct trace *trace, FILE *file, const char *name);

/** trace_load() - the same of the file at @path. */
bool trace_load(struct trace *trace, const char *path);
void trace_fini(struct trace *trace);

#endif
