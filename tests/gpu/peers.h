/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEERS_H
#define PEERS_H

/*
 * Peers -- two devices that work on each other's memory
 *
 * Blocks of either device are filled, watched, added to and copied by kernels and
 * copies of both, and freed while the last of these have not begun. Whoever gets
 * the memory next writes to it, so that an allocator that hands it out too early,
 * or leaves a device without access, is seen by words that changed, or by an error.
 *
 *   peers.c        options, devices, access, what is printed
 *   peers_block.c  the life of one block: a round
 *   peers_other.c  copies on the legacy streams, and whom a free waits for
 *
 * What is done follows from the seed alone; one thread does it.
 */

#include <stdio.h>
#include <stdlib.h>

#include "cu.h"

#define DEVICES 2
#define LANES   2
#define SLOTS   8

struct device;

/* A stream with its device. */
struct lane {
        struct device *device;
        CUstream stream;
};

struct device {
        int ordinal;
        CUcontext context;
        CUmemoryPool pool; /* its default pool */
        struct cu_kernels kernels;
        struct lane lanes[LANES];
        /* Pinned, and a page of its own: two devices' atomics do not meet. */
        uint32_t *mismatches;
};

/* last is NULL where nobody has used the block. Everybody before it is behind it. */
struct block {
        CUdeviceptr p;
        uint64_t words;
        uint32_t value;
        bool async;
        struct device *home;
        struct lane *last;
        CUevent events[DEVICES]; /* one of each context */
};

struct peers {
        struct device devices[DEVICES];
        struct block slots[SLOTS];
        unsigned seed;
        unsigned async_of_4; /* so many of four blocks come from the default pools */
        bool planted;        /* write into blocks in use, to see it counted */
        uint32_t serial;     /* next value */
        unsigned host_mismatches;
        unsigned long rounds, made, freed, checks, copies;
};

extern struct peers peers;

unsigned pick(unsigned limit);
/* Make the device's context current. */
void enter(const struct device *device);
struct device *other(const struct device *device);
void wait_for_all(void);

/* ---- peers_block.c ---- */

void block_round(void);
/* Free what is left. */
void blocks_end(void);

/* ---- peers_other.c ---- */

/* A copy from device to device that no event orders, because it needs none. */
void serial_round(void);
/* Say whether cuMemFree waits for work of the other device. */
void question(void);

#endif
