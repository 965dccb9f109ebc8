/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWIN_H
#define TWIN_H

/*
 * Twin -- what the device may do, by brute force
 *
 * A graph of everything that was submitted, with all ancestors of every node.
 * It answers by reachability what the model answers by clocks, and knows what
 * has been executed. It is slow and simple on purpose.
 *
 * A node is real if the driver saw it. An allocation or a free that the pool
 * absorbed is not: to the program it is an operation of its stream, to the
 * device it is nothing (G2). So there are two orders: "real" is what the device
 * keeps, "legal" what the program may rely on. A program is correct by the
 * legal order, a pool is safe by the real one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/model.h>

#ifndef TWIN_NODES
#define TWIN_NODES 768
#endif
#define TWIN_STREAMS  16
#define TWIN_CONTEXTS 4
#define TWIN_NONE     (-1)

struct twin_set {
        uint64_t words[(TWIN_NODES + 63) / 64];
};

struct twin_node {
        bool is_real;
        bool executed;
        int stream;            /* of an operation that is not real */
        uint64_t time;         /* grows, whatever is forgotten */
        struct twin_set real;  /* itself and all real nodes it runs after */
        struct twin_set legal; /* likewise, with what the program may assume */
        /* The memory it touches, and whose it was. */
        uint64_t owner; /* 0: none */
        uint64_t from;
        uint64_t to;
};

struct twin_stream {
        bool used;
        int context;
        enum spm_stream_kind kind;
        int end;     /* its last real node */
        int virtual; /* its last node that is not real */
};

struct twin_context {
        struct twin_set base;    /* what later nodes run after */
        struct twin_set assumed; /* ... and the program may rely on */
        int legacy;              /* the last real node of the legacy stream */
        int legacy_stream;
};

struct twin {
        struct twin_node nodes[TWIN_NODES];
        int count;
        uint64_t time;
        struct twin_stream streams[TWIN_STREAMS];
        struct twin_context contexts[TWIN_CONTEXTS];
};

void twin_init(struct twin *twin);
bool twin_is_full(const struct twin *twin);
void twin_add_stream(struct twin *twin, int stream, int context, enum spm_stream_kind kind);

/* Each returns the new node. */
int twin_submit(struct twin *twin, int stream);
int twin_wait(struct twin *twin, int stream, int node);
int twin_record_context(struct twin *twin, int context);
int twin_pretend(struct twin *twin, int stream); /* an absorbed operation */

/** twin_wait_context() - all later nodes of @context run after @node; twin_assume_context(): and
 * the program knows, as the call has returned. */
void twin_wait_context(struct twin *twin, int context, int node);
void twin_assume_context(struct twin *twin, int context, int node);

/** twin_forget() - make room: drop executed nodes, but for those whose numbers are at @names, which
 * are renumbered there; TWIN_NONE stays. What may be relied on through a dropped node is lost. */
void twin_forget(struct twin *twin, int *names[], int count);

void twin_touch(struct twin *twin, int node, uint64_t owner, uint64_t from, uint64_t to);

/* device */

/** twin_execute() - @node and everything it runs after. */
void twin_execute(struct twin *twin, int node);
/** twin_step() - one node that is able to run, if any, on the way to @node. */
void twin_step(struct twin *twin, int node);
bool twin_is_executed(const struct twin *twin, int node);
void twin_execute_context(struct twin *twin, int context);

/* order */

/** twin_answers_for() - does waiting for @stream include waiting for @other? */
bool twin_answers_for(const struct twin *twin, int stream, int other);

/** twin_is_idle() - what cuStreamQuery says; the legacy stream answers for blocking streams. */
bool twin_is_idle(const struct twin *twin, int stream);
/** twin_finish() - what cuStreamSynchronize waits for. */
void twin_finish(struct twin *twin, int stream);

/** twin_may_rely() - may the program put work on @stream that relies on @node? */
bool twin_may_rely(const struct twin *twin, int stream, int node);

/** twin_conflict() - a node that touches [from, to) for somebody else than @owner, is not executed
 * and would not run before a node put on @stream now; TWIN_NONE: there is none. With @stream
 * TWIN_NONE: that is not executed. */
int twin_conflict(const struct twin *twin, int stream, uint64_t owner, uint64_t from, uint64_t to);

/** twin_depends_on_later() - does @node run after a program's node that is not executed and was
 * submitted after @time? */
bool twin_depends_on_later(const struct twin *twin, int node, uint64_t time);

/** twin_adds_order() - would waiting for @node make @stream wait for a program's node that it does
 * not run after yet? (G5) */
bool twin_adds_order(const struct twin *twin, int stream, int node);

#endif
