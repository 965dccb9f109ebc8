/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_GRAPH_FILES_H
#define SIM_GRAPH_FILES_H

/*
 * Graph -- work that was written down, to be launched later
 *
 * A graph is a list of nodes; a node needs earlier nodes only. Capture appends
 * to it, the cuGraphAdd calls too; instantiating copies it, and every launch
 * turns each node of the copy into an operation.
 */

#include "operation.h"

#pragma GCC visibility push(hidden)

/* Memory of an allocation node: lives as long as a graph or an executable one names it. */
struct sim_graph_memory {
        unsigned int references;
        CUdeviceptr address;
        bool freed; /* a free node of the same graph names it */
        bool out;   /* a launch allocated it, nobody freed it yet; counts as a reference */
        struct sim_graph_memory *next;
};

enum sim_node_kind {
        SIM_NODE_WORK,
        SIM_NODE_EMPTY,
        SIM_NODE_RECORD,
        SIM_NODE_WAIT,
        SIM_NODE_ALLOC,
        SIM_NODE_FREE,
};

/* A CUgraphNode is the address of one. */
struct sim_node {
        enum sim_node_kind kind;
        struct sim_graph *graph;
        struct sim_work work;
        struct sim_event *event;         /* of RECORD and WAIT */
        struct sim_graph_memory *memory; /* of ALLOC and FREE */
        size_t *needs; /* indices into the graph's nodes, all lower than its own */
        size_t need_count;
};

/* Behind a CUgraph and a CUgraphExec. */
struct sim_graph {
        struct sim_handle handle;
        struct sim_node **nodes;
        size_t count;
        bool frees_on_launch;              /* of an executable graph */
        struct sim_operation *last_launch; /* of an executable graph: launches do not overlap */
};

struct sim_graph_memory *sim_graph_memory_new(CUdeviceptr address); /* with one reference */
void sim_graph_memory_put(struct sim_graph_memory *memory);         /* null is fine */
/* Before a launch; 1 if the last one's memory is still out. */
CUresult sim_graph_memory_launch(struct sim_graph *graph);
/* Of an allocation node of the graph that no free node names yet; or null. */
struct sim_graph_memory *sim_graph_memory_find(struct sim_graph *graph, CUdeviceptr address);

struct sim_graph *sim_graph_new(enum sim_magic magic);
void sim_graph_free(struct sim_graph *graph);
/* Returns the new node, the last one of the graph. */
struct sim_node *sim_graph_add(struct sim_graph *graph, enum sim_node_kind kind,
                               const size_t *needs, size_t need_count);
size_t sim_graph_index(const struct sim_node *node);
/* Appends copies of all nodes of `source`; its roots need the given ones. */
void sim_graph_append(struct sim_graph *graph, const struct sim_graph *source, const size_t *needs,
                      size_t need_count);

/* A set of nodes, as indices: what the next node of a stream needs. */
struct sim_front {
        size_t *node;
        size_t count;
};

void sim_front_add(struct sim_front *front, size_t node);
void sim_front_join(struct sim_front *front, const struct sim_front *other);
void sim_front_set(struct sim_front *front, size_t node); /* only that one */
void sim_front_clear(struct sim_front *front);

/* ---- capture.c ---- */

struct sim_branch {
        struct sim_branch *next;
        struct sim_stream *stream;
        struct sim_front front;
        CUgraphNode *shown; /* the array that cuStreamGetCaptureInfo_v2 handed out */
};

struct sim_capture {
        struct sim_capture *next;
        uint64_t id;
        CUstreamCaptureMode mode;
        uint64_t thread;
        struct sim_stream *origin;
        struct sim_graph *graph;
        bool graph_is_lent; /* cuStreamBeginCaptureToGraph */
        bool dead;
        struct sim_branch *branches;
        struct sim_front *marks; /* what each recorded event stands for */
        int mark_count;
};

/* The graph that a capturing stream writes, and the stream's front; null: it captures nothing, or
 * its capture is dead. */
struct sim_graph *sim_capture_graph(struct sim_stream *stream, struct sim_front **front);
struct sim_branch *sim_capture_branch(struct sim_stream *stream); /* it is capturing */
/* Into the given graph, or a new one. */
struct sim_capture *sim_capture_begin(struct sim_stream *stream, CUstreamCaptureMode mode,
                                      struct sim_graph *graph);
void sim_capture_dissolve(struct sim_capture *capture); /* not the graph */
/* Sets the calling thread's interaction mode; returns the old one. */
CUstreamCaptureMode sim_capture_interaction(CUstreamCaptureMode mode);

#pragma GCC visibility pop

#endif
