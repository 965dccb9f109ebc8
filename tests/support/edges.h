/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EDGES_H
#define EDGES_H

/*
 * Edges -- what runs behind what, by search
 *
 * The twin of the witness: every call of a program is a node, and what orders two of them
 * is an edge. Whether one runs behind another is found by walking back from it. There is
 * order here that nobody tells the witness of, too: edges_hide() draws it.
 */

#include <stdbool.h>
#include <streampool/witness.h>

#define EDGES_NODES   512
#define EDGES_STREAMS 16
#define EDGES_EVENTS  8
#define EDGES_NONE    (-1)

struct edges_node {
        int behind[EDGES_STREAMS + 8];
        int count;
        bool is_open; /* it waits for something that may not be submitted yet */
};

struct edges {
        struct edges_node nodes[EDGES_NODES];
        int count;
        struct spm_actor actor[EDGES_STREAMS];
        int streams;
        int last[EDGES_STREAMS];  /* of each stream; EDGES_NONE */
        int host;                 /* the last thing that the host saw */
        int record[EDGES_EVENTS]; /* the last of each event */
        int base[3][4];           /* what a context waits for */
        int bases[3];
};

void edges_init(struct edges *edges, const struct spm_actor *actors, int count);

/* Each returns the new node. */
int edges_submit(struct edges *edges, int stream);
int edges_record(struct edges *edges, int event, int stream);
int edges_record_context(struct edges *edges, int event, uint32_t context);
int edges_wait(struct edges *edges, int stream, int event);
int edges_wait_for_anything(struct edges *edges, int stream);

/** edges_wait_context() - Return: false if it was done too often. */
bool edges_wait_context(struct edges *edges, uint32_t context, int event);

/** edges_see() - the host has seen a node complete; a stream; a context. */
void edges_see(struct edges *edges, int node);
void edges_see_stream(struct edges *edges, int stream);
void edges_see_context(struct edges *edges, uint32_t context);

/** edges_hide() - @open, which is of edges_wait_for_anything(), turns out to wait for @node, if it
 * still can. */
void edges_hide(struct edges *edges, int open, int node);

/** edges_reach() - does @node run behind @earlier? */
bool edges_reach(const struct edges *edges, int node, int earlier);

/** edges_host_reaches() - is @earlier complete when the host has waited for @context, too? 0: for
 * nothing. */
bool edges_host_reaches(const struct edges *edges, uint32_t context, int earlier);

#endif
