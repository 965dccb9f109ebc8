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

#define WORLD_PAGE 4096
#ifndef WORLD_PAGES
#define WORLD_PAGES 600
#endif
#define WORLD_BASE     0x10000000u
#define WORLD_STRIDE   0x01000000u /* from one area of addresses to the next */
#define WORLD_POOLS    5

#define WORLD_SEGMENTS (WORLD_PAGES + 1)
#define WORLD_EVENTS   6
#ifndef WORLD_STAMPS
#define WORLD_STAMPS 16384
#endif

/* What the driver's event stands for if it was recorded in a capture. */
#define WORLD_CAPTURED (-2)

struct world_stream {
        spm_stream id;
        bool retired;
        int successor; /* of a retired one; 0: none */
        int capturing;
        bool announced; /* and need not be again */
};

struct world_stamp {
        spm_stamp id;
        bool recorded;
        bool dropped;
        int node;
};

struct world_page {
        uint16_t segment; /* 0: there is none */
        uint16_t live;    /* blocks of the program in it */
};

struct world_segment {
        spm_segment id;
        int pool;
        uint64_t base;
        uint64_t size;
};

struct world {
        struct spm_model *model;
        struct twin twin;
        spm_context contexts[2];
        bool context_gone[2];
        int captures[2];
        bool watched[2];
        uint64_t early_until[2];  /* what is served early was freed no later (twin's time) */
        uint64_t fenced_until[2]; /* the same of the last end of R1, which may come again */
        struct world_stream streams[TWIN_STREAMS]; /* by the twin's number */
        int stream_count;
        spm_event events[WORLD_EVENTS];
        int event_nodes[WORLD_EVENTS]; /* what the driver's event stands for */
        spm_pool pools[WORLD_POOLS];
        bool pool_gone[WORLD_POOLS];
        int page_count;  /* of an area, and of physical memory */
        int free_pages;  /* of physical memory */
        int segment_end; /* behind the last of segments[] that is used */
        struct world_page areas[WORLD_POOLS + 1][WORLD_PAGES]; /* of lone segments, and ranges */
        struct world_segment segments[WORLD_SEGMENTS];         /* from 1; of no size: unused */
        struct world_stamp stamps[WORLD_STAMPS];               /* by handle, modulo their number */
        const uint8_t *constant; /* what is chosen always; NULL: as the bytes say */
        const uint8_t *bytes;    /* choices yet to be made */
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
        bool frees_on_legacy; /* which is to be an operation of that stream, at any price (H6) */
        bool submits;         /* the first work of a stream, or memory is shared: R1 may end */
};

uint8_t world_byte(struct world *world);

void world_fail(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** world_trace() - a line, if lines are wanted. */
void world_trace(const struct world *world, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

/** world_perform() - carry the list out and report it. Return: false if a RECORD or WAIT_STREAM
 * failed.
 * @request: of the allocation that asked, or NULL */
bool world_perform(struct world *world, const struct spm_actions *actions, struct world_cause cause,
                   struct spm_request *request);

/* memory */

/** world_grow(), world_release() - the actions. */
void world_grow(struct world *world, const struct spm_action *action, struct spm_request *request);
void world_release(struct world *world, const struct spm_action *action);

/** world_find_room() - @count pages that are not there, in the range of pool @area - 1, or for a
 * lone segment if that is 0. Return: 0 if there are none, or no physical memory. */
uint64_t world_find_room(const struct world *world, int area, int count);

/** world_give() - add a segment there. Return: false if it was refused, as one that was not @asked
 * for may be: a pool parts its range. */
bool world_give(struct world *world, int pool, uint64_t base, uint64_t size, bool asked);

/** world_is_backed() - by segments of the pool? */
bool world_is_backed(struct world *world, int pool, uint64_t from, uint64_t to);

/** world_count_live() - a block of the program comes or goes; world_forget_live(): all of a pool.
 */
void world_count_live(struct world *world, uint64_t from, uint64_t to, bool live);
void world_forget_live(struct world *world, int pool);

/** world_reserved() - what the pool has obtained. */
void world_reserved(const struct world *world, int pool, uint64_t *bytes, uint64_t *segments);

/** world_context_of() - the number of a stream's context. */
static inline int world_context_of(const struct world *world, int stream)
{
        return world->twin.streams[stream].context;
}

/** world_check() - the model's invariants. */
void world_check(struct world *world, const char *after);

#endif
