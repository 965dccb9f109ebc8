/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WITNESS_PROGRAM_H
#define WITNESS_PROGRAM_H

/*
 * Witness, a program -- what witness.c and witness_memory.c share
 */

#include <stdint.h>
#include <stdio.h>

#include "edges.h"

#define STREAMS 8
#define STEPS   70
#define BLOCKS  4
#define PAGES   4 /* of a block */
#define BLAMES  64

extern const struct spm_actor actors[STREAMS];

struct use {
        int node, block, stream;
        struct spm_touch touch;
};

struct blame {
        int earlier;
        int later; /* EDGES_NONE: of the host */
};

/* One program. */
struct program {
        uint64_t seed, random;
        bool is_exact;
        struct spm_witness *witness;
        struct edges edges;
        uint64_t life[BLOCKS];
        int alloc[BLOCKS]; /* its node; EDGES_NONE */
        struct use use[EDGES_NODES];
        int uses;
        struct blame blame[BLAMES];
        int blames;
        bool is_known[EDGES_EVENTS];  /* an event was recorded, and where all could see */
        bool is_shared[EDGES_EVENTS]; /* others can record it, too */
        int waited;                   /* an event that the host began to wait for */
        int waited_node;
        uint64_t version;
        int waited_stream; /* likewise a stream; @since is 0: none */
        int waited_last;
        uint64_t since;
        char failure[160];
};

extern struct program run;

#define FAIL(...)                                                                                  \
        do {                                                                                       \
                if (!run.failure[0])                                                               \
                        snprintf(run.failure, sizeof(run.failure), __VA_ARGS__);                   \
        } while (0)

/** chance() - below @of, by the program's seed. */
int chance(int of);

/** submit() - work that touches nothing; its node. */
int submit(int stream);

/* steps about memory */

void step_use(int stream, int block);
void step_alloc(int stream, int block);
void step_free(int stream, int block);
void step_sync_free(int block);

/** judge_again() - however it went on, was nobody blamed who was right? */
void judge_again(void);

#endif
