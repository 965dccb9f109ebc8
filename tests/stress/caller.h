/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CALLER_H
#define CALLER_H

/*
 * Caller -- a model of one context at a time, as the shim uses it
 *
 * A stream is announced once in a count, by a mark that is read without the lock. Actions are
 * carried out without it, a little later, and reported with it. Whoever counts anew forgets all
 * marks, and looks whether somebody is inside a submission who may have read one.
 */

#include <pthread.h>

#include "device.h"

#define CALLER_THREADS 16

struct caller {
        pthread_mutex_t lock;   /* the model's; the next two need it, too */
        pthread_rwlock_t quiet; /* around all calls with actions; what is below changes outside */
        struct spm_model *model;
        uint64_t backed_bytes;
        spm_context context;
        spm_pool pool;
        spm_stream streams[DEVICE_STREAMS];
        int captured; /* a stream, or -1 */
        unsigned int threads;
        _Atomic(unsigned int) life; /* contexts that have ended, as who is not `quiet` reads it */
        _Atomic(bool) marks[DEVICE_STREAMS];
        _Atomic(unsigned int) epoch; /* of marks */
        _Atomic(unsigned int) inside[CALLER_THREADS];
};

/* One of @caller's threads; the random numbers are its own. */
struct thread {
        unsigned int number; /* from 0 */
        uint64_t random;
};

extern struct caller caller;

uint32_t caller_choose(struct thread *thread, uint32_t count);

/** caller_begin() - Return: false if there is no membarrier(2), but it is wanted. */
bool caller_begin(struct thread *thread, unsigned int threads, bool fenced);
void caller_end(void);

/* in `quiet` */

void caller_perform(struct thread *thread, const struct spm_actions *actions,
                    struct spm_request *request);

/** caller_forget() - the next submission of every stream is announced again. */
void caller_forget(void);

/** caller_submit() - work for @block. Return: its number; 0: the stream captures. */
uint64_t caller_submit(struct thread *thread, unsigned int stream,
                       const struct spm_allocation *block);

void caller_synchronise(struct thread *thread, enum spm_sync how);
void caller_recount(struct thread *thread);
void caller_trim(struct thread *thread);

/** caller_check() - every invariant. */
void caller_check(void);

/* not in it */

void caller_toggle_capture(struct thread *thread);

/** caller_replace_context() - while threads may be in their magazines. */
void caller_replace_context(struct thread *thread);

#endif
