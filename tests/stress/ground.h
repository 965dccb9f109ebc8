/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GROUND_H
#define GROUND_H

/*
 * Ground -- a model that many threads share, and who has which byte of it
 *
 * The caller's side of the model: one lock, a device that answers at once or
 * not yet, pools and streams that are replaced while they are in use. Beside
 * it a table with a tag for every unit of every range, which is changed by
 * atomic exchange and knows nothing of the model: a byte that is served while
 * somebody has it is found at the very moment.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <streampool/model.h>

#define KIB            ((size_t)1 << 10)
#define MIB            ((size_t)1 << 20)

#define GROUND_POOLS   2
#define GROUND_STREAMS 32
#define GROUND_LEGACY  2 /* of these, the one beside */
#define GROUND_UNIT    ((size_t)512)
#define GROUND_GRAIN   (256 * KIB)
#define GROUND_RANGE   (128 * MIB)
#define GROUND_SITES                                                                               \
        6 /* pools that have been destroyed keep theirs until their last block goes                \
           */

/* A range, and the pool that has it. */
struct site {
        spm_pool pool; /* 0: none */
        bool closed;
        uint64_t backed_bytes;
        _Atomic(bool) backed[GROUND_RANGE / GROUND_GRAIN];
        _Atomic(uint32_t) tags[GROUND_RANGE / GROUND_UNIT];
};

/* Guarded by the lock: everything but the tags, what is backed, and the failures. */
struct ground {
        pthread_mutex_t lock;
        struct spm_model *model;
        spm_context context;
        spm_context beside;  /* has a legacy stream, and now and then one that waits for it */
        spm_stream blocking; /* that one; 0: there is none */
        spm_event event;
        spm_stream streams[GROUND_STREAMS];
        bool capturing[GROUND_STREAMS];
        unsigned int current[GROUND_POOLS]; /* sites */
        struct site sites[GROUND_SITES];
        uint64_t capacity; /* of each pool */
        uint64_t now;
        uint64_t random;
        _Atomic(unsigned int) failures;
};

extern struct ground ground;

uint32_t ground_random(uint64_t *state);

/** ground_fail() - say what is wrong; after many times, end the program. */
void ground_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** ground_begin() - with membarrier(2) if @fenced. Return: false if there is none. */
bool ground_begin(bool fenced, uint64_t seed);

/** ground_end() - magazines may be left. */
void ground_end(void);

static inline void ground_lock(void)
{
        pthread_mutex_lock(&ground.lock);
}

static inline void ground_unlock(void)
{
        pthread_mutex_unlock(&ground.lock);
}

/* who has which byte: without the lock */

/** ground_take() - it is @tag's from now on; ground_give() - nobody's. */
void ground_take(uint64_t address, size_t size, uint32_t tag);
void ground_give(uint64_t address, size_t size, uint32_t tag);

struct site *ground_site(uint64_t address);

/* with the lock */

void ground_perform(const struct spm_actions *actions, struct spm_request *request);

/** ground_alloc() - all steps of a request. */
enum spm_status ground_alloc(struct spm_request *request, struct spm_allocation *allocation);

void ground_synchronise(struct spm_scope scope, enum spm_sync how);
void ground_record(unsigned int stream);
void ground_trim(unsigned int pool);
void ground_tick(void);
void ground_toggle_capture(unsigned int stream);
void ground_replace_stream(unsigned int stream);

/** ground_toggle_blocking() - the legacy stream has one that waits for it, or has it no more. */
void ground_toggle_blocking(void);
void ground_replace_pool(unsigned int pool);

/** ground_look() - what holds of the figures at any time. */
void ground_look(spm_pool pool);

#endif
