/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKER_H
#define WORKER_H

/*
 * Worker -- a thread that allocates, hands on, frees and disturbs
 *
 * Its magazines are of some streams and pools, which other workers have as
 * well. Whoever gets a block frees it: by a magazine, with the lock on the same
 * stream or another, or naming no stream. Now and then two workers free one
 * block at once, and exactly one may succeed.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <streampool/model.h>

#define WORKERS_MAX  16
#define WORKER_HANDS 3
#define WORKER_HELD  40
#define WORKER_MAIL  8

struct held {
        struct spm_allocation block;
        unsigned int stream; /* its place, whatever has become of it */
};

/* Two threads free one block. */
struct duel {
        struct held held;
        _Atomic(bool) taken;
        _Atomic(unsigned int) wins;
        _Atomic(bool) done;
};

struct hand {
        struct spm_magazine *magazine;
        spm_pool pool;
        spm_stream stream;
        unsigned int place; /* of the stream */
};

struct worker {
        pthread_t thread;
        uint32_t number; /* from 1; also its tag */
        uint64_t random;
        unsigned int count;
        struct held held[WORKER_HELD];
        struct hand hands[WORKER_HANDS];
        _Atomic(struct held *) mail[WORKER_MAIL]; /* blocks that others have handed to it */
        _Atomic(struct duel *) challenge;
        uint64_t quick_allocs; /* by a magazine alone */
        uint64_t quick_frees;
        uint64_t duels;
};

extern struct worker workers[WORKERS_MAX];
extern unsigned int worker_count;

/* with the lock */

/** worker_renew() - its magazine ends, and it gets another; worker_end(): it gets none. */
void worker_renew(struct worker *worker, struct hand *hand);
void worker_end(struct hand *hand);

/** worker_check() - every invariant. */
void worker_check(void);

/* without */

/** worker_alloc() - a block, if there is memory, and room for it. */
void worker_alloc(struct worker *worker);

/** worker_pick() - one of its blocks, no longer among them; worker_free(): free it. */
struct held worker_pick(struct worker *worker);
void worker_free(struct worker *worker, const struct held *held);

/** worker_step() - anything. */
void worker_step(struct worker *worker);

#endif
