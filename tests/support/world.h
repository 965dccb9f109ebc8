/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORLD_H
#define WORLD_H

/*
 * World -- the model's caller, with a small device behind it
 *
 * Carries out actions on the twin and reports them, checks that the model was
 * entitled to ask (I6, I7, I9, G5, F5), and fails some of them when told to.
 * All choices come from a string of bytes, so a run can be repeated.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/model.h>

#include "twin.h"

#define WORLD_PAGE   4096
#define WORLD_PAGES  600
#define WORLD_BASE   0x10000000u
#define WORLD_RANGE  0x40000000u /* of the pool that has one: as many pages again */
#define WORLD_POOLS  5
#define WORLD_EVENTS 6
#ifndef WORLD_STAMPS
#define WORLD_STAMPS 4096
#endif

/* What the driver's event stands for if it was recorded in a capture. */
#define WORLD_CAPTURED (-2)

struct world_stream {
        spm_stream id;
        bool retired;
        int successor; /* of a retired one; 0: none */
        int capturing;
};

struct world_stamp {
        spm_stamp id;
        bool recorded;
        bool dropped;
        int node;
};

struct world {
        struct spm_model *model;
        struct twin twin;
        spm_context contexts[2];
        bool context_gone[2];
        int captures[2];
        struct world_stream streams[TWIN_STREAMS]; /* by the twin's number */
        int stream_count;
        spm_event events[WORLD_EVENTS];
        int event_nodes[WORLD_EVENTS]; /* what the driver's event stands for */
        spm_pool pools[WORLD_POOLS];
        bool pool_gone[WORLD_POOLS];
        bool pages[WORLD_PAGES];                 /* taken */
        bool range[WORLD_PAGES];                 /* backed */
        int page_count;                          /* that may be */
        struct world_stamp stamps[WORLD_STAMPS]; /* by handle, modulo their number */
        const uint8_t *constant;                 /* what is chosen always; NULL: as the bytes say */
        const uint8_t *bytes;                    /* choices yet to be made */
        size_t left;
        uint64_t mix; /* decides when the bytes are used up */
        bool host_may_fail;
        bool trace; /* tell every step on standard error */
        size_t steps;
        char failure[256]; /* empty: none */
};

/* Why an action is being carried out: what it may do depends on it. */
struct world_cause {
        int self;      /* the stream on whose behalf the program called; TWIN_NONE: none */
        bool tail;     /* before a capture begins, or a stream is destroyed */
        bool short_of; /* memory is short: waits are allowed (I6) */
        bool in_alloc;
};

uint8_t world_byte(struct world *world);

void world_fail(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** world_trace() - a line, if lines are wanted. */
void world_trace(const struct world *world, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

/** world_perform() - carry the list out and report it. Return: false if a WAIT_STREAM failed.
 * @request: of the allocation that asked, or NULL */
bool world_perform(struct world *world, const struct spm_actions *actions, struct world_cause cause,
                   struct spm_request *request);

/** world_context_of() - the number of a stream's context. */
static inline int world_context_of(const struct world *world, int stream)
{
        return world->twin.streams[stream].context;
}

/** world_check() - the model's invariants. */
void world_check(struct world *world, const char *after);

#endif
