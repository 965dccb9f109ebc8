/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKLOAD_H
#define WORKLOAD_H

/*
 * Workload -- what programs do to an allocator, reduced to a loop each
 *
 * A pair is an allocation and a free. Every workload is endless: prepare it,
 * take as many steps as there is time for, drain it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit.h"
#include "measure.h"
#include "peer.h"

struct slot {
        uint64_t address;
        uint64_t size;
};

#define SIZES 4096

/* One allocator, and what lives in it. */
struct load {
        struct peer *peer;
        struct audit *audit; /* NULL while something is timed */
        struct chance chance;
        struct slot *slot;
        uint32_t slots;
        uint32_t room;
        uint32_t oldest;      /* of a window */
        uint64_t used;        /* bytes */
        uint64_t refused;     /* allocations that were not served */
        uint64_t size[SIZES]; /* drawn beforehand: a logarithm would cost more than a block */
        uint32_t next_size;
};

struct workload {
        const char *name;
        uint32_t n;         /* live blocks, holes, streams, as the name says */
        unsigned int batch; /* pairs that are timed together; 0: as many as a step has */
        void (*prepare)(struct load *load, uint32_t n);

        /* Some @pairs; a step that cannot be cut does what it does. Return: pairs done. */
        unsigned int (*step)(struct load *load, uint32_t n, unsigned int pairs);
};

extern const struct workload workloads[];
extern const size_t workload_count;

/** load_init() - on a new @peer, which stays the caller's. */
void load_init(struct load *load, struct peer *peer, struct audit *audit, uint32_t n);

/** load_drain() - free what is live. */
void load_drain(struct load *load);

#endif
