/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TORTURE_H
#define TORTURE_H

/*
 * Torture -- does anybody ever write into memory that is still in use?
 *
 * Threads allocate blocks, fill each with a value of its own and leave kernels
 * behind that read it again and again and count the words that changed. Most
 * blocks are freed before their kernels have begun. An allocator that hands out
 * memory too early is seen by the old owner's kernels, or by the new owner's.
 *
 *   torture.c         options, threads, phases
 *   torture_block.c   the life of one block: a round
 *   torture_stream.c  which streams a thread may use, and what is in order
 *   torture_graph.c   captures, and graphs that are launched again after frees
 *
 * What a thread does follows from the seed alone, so that two runs do the same
 * number of checks, whoever serves the memory. Only who frees a block that went
 * to another thread depends on the clock.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "cu.h"

#define SLOTS       6
#define MANY        8
#define APART       5 /* the first of them do not wait for the legacy stream */
#define LETTERS     8
#define THREADS_MAX 32

/* Which streams have work: allocators take short cuts where there is only one. */
enum kind {
        ONE_LEGACY,
        ONE_OWN,      /* a non-blocking stream */
        ONE_BLOCKING, /* and the legacy stream: each follows the other */
        SEVERAL,      /* of every kind, some of them destroyed while they have work */
};

struct phase {
        enum kind kind;
        bool sync;      /* the host waits for the context before it begins */
        bool intruders; /* now and then another stream is used, in spite of the kind */
        bool apart;     /* of several: non-blocking ones only */
        bool renew;     /* the one stream is another one now, with the same handle */
        bool captures;
        CUstreamCaptureMode capture; /* of all captures in it */
        unsigned delay;              /* the device is busy so long when it begins */
        unsigned first, end;         /* the threads that work in it */
        unsigned rounds;             /* of each of them */
};

/* last is NULL where nobody may use the block's stream: nobody did, or `marked` says who did. */
struct block {
        CUdeviceptr p;
        uint64_t words;
        uint32_t value;
        bool async;
        CUstream last;
        bool marked; /* the event stands behind its last use */
        CUevent event;
        unsigned fate; /* how it is freed */
};

/* A graph that fills and watches memory of its own, and memory of the program. */
struct replay {
        CUgraphExec exec;
        CUdeviceptr p;
        unsigned launches; /* still to come */
};

struct shared {
        CUcontext context;
        struct cu_kernels kernels;
        uint32_t *mismatches; /* pinned, added to by kernels */
        atomic_uint host_mismatches;
        CUstream own, blocking;
        pthread_barrier_t barrier;
        pthread_rwlock_t captures; /* read: one is open; write: the context is waited for */
        pthread_rwlock_t launches; /* of graphs; read: a stream is made to wait (stream_launch()) */
        pthread_mutex_t mail_lock;
        struct block mail[LETTERS]; /* blocks on the way from thread to thread */
        atomic_bool over;           /* out of time */
        bool planted;               /* write into blocks in use, to see it counted */
};

struct worker {
        struct shared *shared;
        pthread_t thread;
        unsigned number;
        unsigned seed;
        unsigned plan_seed;    /* the same in all */
        unsigned long planned; /* rounds of all threads, so far */
        unsigned long rounds, made, freed, checks;
        struct phase phase;
        uint32_t serial; /* next value */
        CUstream own[2], blocking, capturing;
        CUevent event;
        struct block slots[SLOTS];
        size_t given; /* size of the last block that was freed */
        struct replay replay;
        uint32_t *page; /* pageable memory, for copies */
};

#define PAGE_WORDS 4096

unsigned pick(struct worker *w, unsigned limit);

/* ---- torture_stream.c ---- */

void streams_open(struct worker *w);
void streams_close(struct worker *w);
/* One that this phase allows; @number chooses. */
CUstream stream_nth(struct worker *w, unsigned number);
/* One to fill a block on. */
CUstream stream_for_new_block(struct worker *w);
/* The synchronous calls work on the legacy stream. */
bool legacy_is_allowed(const struct worker *w);
/* Replace one of the thread's streams; the old one is destroyed with its work. */
void stream_renew(struct worker *w);
/* The same for the one that all threads use, who must all be here. */
void stream_renew_shared(struct worker *w);

/*
 * Launch a graph on a stream that others may make wait. The driver loses a wait of a stream in
 * whose midst another thread launches a graph (beside.c), bare as well: one wrong block in 300,000
 * rounds. A correct program keeps them apart.
 */
void stream_launch(struct worker *w, CUgraphExec exec, CUstream stream);

/* Behind the block's last use. */
void mark(struct block *block);
/* @stream waits for the block's last use. */
void follow(struct worker *w, CUstream stream, struct block *block);
/* Its last use is on @stream now. */
void used(struct block *block, CUstream stream);

/* ---- torture_block.c ---- */

void block_round(struct worker *w);
void block_take(struct worker *w, struct block *block);
void block_give(struct worker *w, struct block *block);
/* Kernels that look at words; they count as checks. */
void watch(struct worker *w, CUstream stream, CUdeviceptr p, uint64_t words, uint32_t value);
void check(struct worker *w, CUstream stream, CUdeviceptr p, uint64_t words, uint32_t value);
/* Blocks that nobody took out. */
void mail_empty(struct worker *w);

/* ---- torture_graph.c ---- */

void replay_begin(struct worker *w);
void replay_launch(struct worker *w);
void replay_end(struct worker *w);

#endif
