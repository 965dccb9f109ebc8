/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_SUBMIT_H
#define SP_TRACK_SUBMIT_H

/*
 * Submit -- which streams have work?
 *
 * While only one stream of a context has work, memory that was freed can be used
 * again on it at once. So every call that gives a stream work passes here, before
 * the driver sees it: the first one on a stream is told, the others find the mark
 * that it left and cost a few loads.
 *
 *   self = sp_submit_enter();
 *   sp_submit_mark(stream, SP_SUBMIT_LAUNCH);
 *   ... the driver's call ...
 *   sp_submit_leave(self);
 *
 * Somebody who wants to hear of streams again takes all marks away, and has to
 * know that nobody has read one and is yet to submit: sp_submit_quiesce(). What
 * that costs, its caller pays; a launch stores two words of its thread's own, and
 * fences nothing.
 *
 * CU_STREAM_LEGACY is another stream in every context, and CU_STREAM_PER_THREAD in
 * every thread as well. While there is one context, a launch on either is told once,
 * whichever is current: it touches memory of its own context only, and what follows
 * from a second one is said when that is seen (route/work.c). A copy may touch memory
 * of any, so it looks whether there is still only one. Once there are several, what is
 * submitted on a default stream looks which context is current, and that is part of
 * its mark: a driver call for each, but else nobody could tell the stream of one
 * context from that of another, and none would ever be known to have no work.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"
#include "driver/driver.h"

enum sp_submit_class {
        SP_SUBMIT_LAUNCH, /* a kernel: of its stream's own context */
        SP_SUBMIT_COPY,   /* anything else: may touch memory of any context */
};

/*
 * Handles of streams that are known to have work, with several contexts a default stream's and its
 * context's sum, each in the slot that is its home or in one behind it; and threads that are
 * leaving one there. A mark may be lost, to another stream's: then its stream is told again.
 */
#define SP_SUBMIT_MARKS 256
extern atomic_uintptr_t sp_submit_marks[SP_SUBMIT_MARKS];

/* The only context there is; in any other one a copy is told each time. NULL: nobody cares. Set by
 * sp_submit_watch(). */
extern _Atomic(CUcontext) sp_submit_context;

/*
 * Called before the first submission on a stream since marks were forgotten, with no lock held;
 * NULL until the shim is on. Return: false if it cannot be relied on that the stream was told.
 */
extern bool (*sp_submit_tell)(CUstream handle);

/* A thread that has submitted. Atomic: inside. The others are its thread's own. */
struct sp_submitter {
        struct sp_seat seat;
        atomic_uint inside; /* calls it is in: a callback of the driver's may submit, too */

        unsigned int told_epoch; /* when its per-thread stream was; 0 is never */
        uintptr_t told_key;      /* which one, as a mark says it */
} __attribute__((aligned(64)));

/* Per thread, because it says which one this is; initial-exec, so that reading it is one load. */
extern __thread struct sp_submitter *sp_submitter __attribute__((tls_model("initial-exec")));

/* For the inline functions: this thread's, which it did not have; and what a mark does not answer.
 */
struct sp_submitter *sp_submitter_settle(void);
void sp_submit_slow(CUstream handle, enum sp_submit_class class);

static inline unsigned int sp_submit_home(uintptr_t key)
{
        return (unsigned int)(key * UINT64_C(0x9e3779b97f4a7c15) >> 56) % SP_SUBMIT_MARKS;
}

/* From here to sp_submit_leave() this thread may have read a mark and not yet submitted. */
static inline struct sp_submitter *sp_submit_enter(void)
{
        struct sp_submitter *self = sp_submitter;
        unsigned int inside;

        if (!self)
                self = sp_submitter_settle();
        inside = atomic_load_explicit(&self->inside, memory_order_relaxed);
        atomic_store_explicit(&self->inside, inside + 1, memory_order_relaxed);
        /* Marks are read after this; for the processor, sp_submit_quiesce() sees to it. */
        atomic_signal_fence(memory_order_seq_cst);
        return self;
}

/**
 * sp_submit_mark() - work for this stream is about to be submitted
 * @handle: never 0: the hook has said which default stream is meant
 *
 * Acquires what the one who told of the stream did about it.
 */
static inline void sp_submit_mark(CUstream handle, enum sp_submit_class class)
{
        uintptr_t key = (uintptr_t)handle;
        bool is_known = atomic_load_explicit(&sp_submit_marks[sp_submit_home(key)],
                                             memory_order_acquire) == key;

        if (class == SP_SUBMIT_COPY)
                is_known =
                        is_known && !atomic_load_explicit(&sp_submit_context, memory_order_relaxed);
        if (!is_known)
                sp_submit_slow(handle, class);
}

static inline void sp_submit_leave(struct sp_submitter *self)
{
        unsigned int inside = atomic_load_explicit(&self->inside, memory_order_relaxed);

        atomic_store_explicit(&self->inside, inside - 1, memory_order_release);
}

/*
 * For sp_submit_again(): somebody is telling; so many marks have been left, and so many there were
 * the last time.
 */
extern atomic_uint sp_submit_telling;
extern _Atomic(uint64_t) sp_submit_left, sp_submit_seen;
void sp_submit_again_slow(void);

/** sp_submit_again() - as sp_submit_forget(), and costs three loads where nothing was told since
 * the last time. One thread at a time. */
static inline void sp_submit_again(void)
{
        /* In this order: who is telling leaves a mark before it has told. */
        if (atomic_load_explicit(&sp_submit_telling, memory_order_acquire) ||
            atomic_load_explicit(&sp_submit_left, memory_order_acquire) !=
                    atomic_load_explicit(&sp_submit_seen, memory_order_relaxed))
                sp_submit_again_slow();
}

/** sp_submit_forget() - the next submission on every stream is told again. */
void sp_submit_forget(void);

/** sp_submit_forget_stream() - the same for a handle that is about to mean nothing, or another
 * stream. */
void sp_submit_forget_stream(CUstream handle);

/**
 * sp_submit_quiesce() - forget, and see whether that is all there is to it
 *
 * Call it before the wait, or whatever else shows that streams have no work any more: what is
 * submitted while it lasts has to be told.
 *
 * Return: true if every submission that is not told from now on had been handed to the driver
 * before the call returned. False while a thread is inside one, the calling thread not excepted,
 * and always where the kernel cannot do it (membarrier, Linux 4.14).
 */
bool sp_submit_quiesce(void);

/**
 * sp_submit_watch() - sets sp_submit_context
 *
 * A submission that has begun already may not look at it: see sp_submit_quiesce().
 */
void sp_submit_watch(CUcontext only);

/** sp_submit_part() - there are several contexts, and will be: as sp_submit_watch(NULL), and
 * default streams have a mark in each. */
void sp_submit_part(void);

/* what we would not see: unknown.c */

/**
 * sp_submit_unknown() - the program was given a function of the driver that we do not export
 * @symbol: by what name; an exported one, or that of the API
 *
 * Notes it, unless it is one that gives no stream work (driver/other_calls.def). May be called at
 * any time; takes no lock and allocates nothing. Return: true for the first that is noted.
 */
bool sp_submit_unknown(const char *symbol);

/** sp_submit_is_other() - is it known to give no stream work? In all versions and variants. */
bool sp_submit_is_other(const char *symbol);

/** sp_submit_is_complete() - do we see all work that the program can submit? Once false, for ever.
 */
bool sp_submit_is_complete(void);

/** sp_submit_first_unknown() - the first name that was noted, or NULL. */
const char *sp_submit_first_unknown(void);

#endif
