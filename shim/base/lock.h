/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_LOCK_H
#define SP_LOCK_H

/*
 * Locks -- all of them, in the one order they may be taken
 *
 * A thread takes locks with growing rank only, and holds none while it calls
 * the driver, the loader or the application: each may call one of our hooks
 * again, or fork. Builds with assertions check the order at every lock, and at
 * every hook that none is held.
 *
 * A lock is three words and needs no destruction. It costs one atomic operation
 * to take and one to drop where nobody else wants it. It is not recursive.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum sp_lock_rank {
        SP_RANK_NONE,

        SP_RANK_LIFE,    /* start and exit                        (life.c) */
        SP_RANK_CONTEXT, /* tables of contexts, streams, events   (track/) */
        SP_RANK_VMM,     /* memory that the program maps itself    (track/vmm.c) */
        SP_RANK_MODEL,   /* the model and the ledger              (track/model_lock.c) */
        SP_RANK_EXPORT,  /* what other processes may open         (track/export.c) */
        SP_RANK_STAMP,   /* events that are free for stamps       (stamp/) */
        SP_RANK_WITNESS, /* who is blamed for stream order        (route/order.c) */
        SP_RANK_STACK,   /* call stacks that are kept             (track/stack.c) */
        SP_RANK_KERNEL,  /* what kernels take                     (track/signature.c) */
        SP_RANK_RECORD,  /* the recording of calls                (track/record.c) */
        SP_RANK_REPORT,  /* the report while it is written        (report/) */
};

/* Atomic: word. Guarded by the lock itself: outer. Written once: rank. */
struct sp_lock {
        atomic_uint word; /* the process's epoch and a state, see lock.c */
        uint8_t rank;
        uint8_t outer; /* what the holder held before */
};

#define SP_LOCK_INIT(lock_rank)                                                                    \
        {                                                                                          \
                .word = 0, .rank = (lock_rank), .outer = SP_RANK_NONE                              \
        }

void sp_lock_init(struct sp_lock *lock, enum sp_lock_rank rank);

/* How often this thread has slept until a lock was free. */
extern __thread unsigned int sp_lock_waits __attribute__((tls_model("initial-exec")));

void sp_lock_take(struct sp_lock *lock);
void sp_lock_drop(struct sp_lock *lock);

/**
 * sp_lock_take_bounded() - take a lock, but give up
 * @lock:               the lock
 * @milliseconds:       how long to wait at most; 0 tries once
 *
 * For the end of the process, where the holder may be a thread that no longer
 * runs.
 *
 * Return: true if the lock is held now.
 */
bool sp_lock_take_bounded(struct sp_lock *lock, unsigned int milliseconds);

/* The highest rank that this thread holds. */
enum sp_lock_rank sp_lock_held(void);

/* Makes every lock of the process free: for the child after fork(), where the holders are gone. */
void sp_lock_all_reset(void);

#endif
