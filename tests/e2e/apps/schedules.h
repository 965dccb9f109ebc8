/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCHEDULES_H
#define SCHEDULES_H

/*
 * Schedules -- what is on the stage: contexts, streams and blocks (schedules.c)
 */

#include "cu.h"

#define PLACES  3 /* contexts: of its own, a second one on the device, a peer's */
#define STREAMS 5 /* of each place: legacy, per-thread, and those of the schedule */
#define OWN     2 /* the first of these */
#define BLOCKS  10

struct place {
        CUcontext context;
        struct cu_kernels kernels;
        CUstream streams[STREAMS]; /* own ones: NULL while there is none */
        bool is_cast[STREAMS];     /* is it used in this schedule? */
        bool is_blocking[STREAMS];
        CUdeviceptr spare; /* for calls on the legacy stream that are about no block of the stage */
};

struct where {
        int place, stream;
};

struct block {
        CUdeviceptr p;
        uint64_t words;
        uint32_t value;
        struct where last;
        int place;   /* of its context, or -1: of a pool */
        bool is_new; /* nothing was written yet */
};

struct run {
        uint64_t seed, schedule, random;
        struct place places[PLACES];
        struct block blocks[BLOCKS];
        CUevent event;
        CUcontext helper_context;
        uint32_t *mismatches;
        uint32_t calls_of_host;
        uint64_t made, freed, graphs, destroyed, wrong;
        bool peers;
        bool captures; /* another thread: nobody may wait for the whole context */
};

extern struct run run;

/* The next draw, below @limit. */
unsigned pick(unsigned limit);

/* The context of @at becomes current, as default streams need it. */
CUstream stream_at(struct where at);
struct where any_stream(void);
bool is_same(struct where a, struct where b);

/* Can a kernel there reach the block's memory? */
bool can_reach(struct where at, const struct block *block);

/* blocks: each is ordered behind what was done with the block before */
void take(struct block *block, struct where at);
void give(struct block *block);
void use(struct block *block, struct where at);
void set_from_afar(struct block *block, struct where at);
void use_at_once(struct block *block, struct where at);
void use_in_graph(struct block *block, struct where at);

#endif
