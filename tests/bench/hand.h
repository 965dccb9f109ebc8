/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HAND_H
#define HAND_H

/*
 * Hand -- one thread's access to an allocator that several threads share
 *
 * The lock is the caller's affair for the model as for the rebuilt peers: one
 * mutex around each call, as PyTorch and RMM have it. The C library's allocator
 * brings its own.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "audit.h"
#include "peer.h"

struct crew_kind {
        const char *name;
        const struct peer_ops *ops;
        struct peer_options options;
        bool has_lock;
        bool has_magazines; /* of the model: a call takes the lock only if its magazine cannot serve
                             */
        bool is_private;    /* nothing is shared: an allocator for each thread */
};

/* What the threads share. */
struct crew {
        const struct crew_kind *kind;
        struct peer *peer; /* NULL if each has its own */
        pthread_mutex_t lock;
        struct audit *audit; /* under the lock; NULL while something is timed */
        uint64_t refused;    /* allocations that were not served; after the threads have ended */
};

struct hand {
        struct crew *crew;
        struct peer *peer;
        uint32_t stream;
        struct spm_magazine *magazine; /* NULL without */
        uint64_t refused;
};

/** crew_init() - with streams 1 to @streams. @audit: NULL for none. */
void crew_init(struct crew *crew, const struct crew_kind *kind, uint32_t streams,
               struct audit *audit);
void crew_fini(struct crew *crew);

/** hand_open() - for the calling thread or the one that it starts, on @stream. */
void hand_open(struct hand *hand, struct crew *crew, uint32_t stream);

/** hand_close() - once the thread has freed what it will. */
void hand_close(struct hand *hand);

/** hand_alloc() - Return: the address, 0 if there is no memory. */
uint64_t hand_alloc(struct hand *hand, uint64_t size);

/** hand_free() - what any hand of the crew got; 0 is accepted. */
void hand_free(struct hand *hand, uint64_t address, uint64_t size);

#endif
