/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_ROUTE_HAND_H
#define SP_ROUTE_HAND_H

/*
 * Hand -- blocks that a thread has at hand, for the streams and contexts it allocates in
 *
 * A thread that allocates on a stream gets a magazine of the model's for it, and one for the
 * context that it has called cuMemAlloc in (streampool/magazine.h): the pair of calls that matters
 * most then takes no lock, calls nobody, and shares no line of memory with other threads. What it
 * holds counts as pending, and goes back when memory is short, when the stream or the pool ends, or
 * the thread, and when the pool is to have a layout.
 *
 * All that was found out on the way to a magazine stands as long as the epoch does
 * (sp_epoch): that the handle means this stream, that its context is well, which
 * pool is current, that nothing captures. Whoever changes one of these begins a new
 * epoch, and the next call finds out again.
 *
 * A default stream is another one in each context, so there the current context is asked for, too,
 * and is part of the key. That suffices: whoever ends a context begins a new epoch before the
 * driver can give its handle to another one, and once more when that is done; and hands are a
 * thread's own, as its per-thread streams are. That of the legacy stream serves only while no
 * stream waits for it (model/recall.c); a stream that comes is told to the model before the program
 * has its handle, or before its first work.
 *
 * What cuMemAlloc gave is of the current context, which it asks for. cuMemFree asks for none: what
 * it is given is looked for in the magazine that this thread's cuMemAlloc was served from last.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <streampool/model.h>

#include "base/life.h"
#include "base/thread.h"
#include "driver/driver.h"
#include "route/tick.h"
#include "track/held.h"
#include "track/state.h"
#include "track/stream.h"

#define SP_HANDS     16  /* streams of one thread */
#define SP_HAND_LOOK 256 /* misses to a look at how crowded it is; a power of two */
#define SP_HAND_PAST 512 /* of its last frees that are remembered */

struct sp_hand {
        uintptr_t key; /* of the stream; 0: none */
        unsigned int epoch;
        unsigned int envied;           /* times that another stream would have had this place */
        unsigned int retirements;      /* there had been so many when the magazine was made */
        unsigned int misses;           /* of what is for cuMemAlloc: the model was asked */
        unsigned int waits;            /* sp_lock_waits when that was looked at last */
        struct spm_magazine *magazine; /* NULL: there is none to be had */
        struct sp_context *context;    /* for cuMemAlloc in it; else NULL */
        struct sp_stream *stream;      /* else, the stream */
        spm_stream number;
        spm_pool pool;
};

/* Of one thread; the past is read by others, too. */
struct sp_hands {
        struct sp_seat seat;
        struct sp_hand hand[SP_HANDS];
        struct sp_hand *latest; /* for cuMemAlloc, or NULL */
        struct sp_past_ring ring;
        struct sp_past past[SP_HAND_PAST];
} __attribute__((aligned(64)));

/* Per thread, because it says whose they are; initial-exec, so that reading it is one load. */
extern __thread struct sp_hands *sp_hands __attribute__((tls_model("initial-exec")));

static inline bool sp_hand_is_default(CUstream handle)
{
        return handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
}

/* @context: of a default stream. Their sum is unlike any handle of a stream: a context is an object
 * of the driver, and so aligned. */
static inline uintptr_t sp_hand_key(CUstream handle, CUcontext context)
{
        return (uintptr_t)handle + (sp_hand_is_default(handle) ? (uintptr_t)context : 0);
}

/* For cuMemAlloc: unlike any of these, too. */
static inline uintptr_t sp_hand_key_here(CUcontext context)
{
        return (uintptr_t)context + 3;
}

static inline struct sp_hand *sp_hand_place(struct sp_hands *own, uintptr_t key)
{
        return &own->hand[(key ^ key >> 4 ^ key >> 10) % SP_HANDS];
}

static inline bool sp_hand_stands(const struct sp_hand *hand)
{
        return hand->epoch == sp_epoch_now() && sp_life_is_on();
}

/** sp_hand_of() - what this thread has for @handle, if all still stands; else NULL. */
static inline struct sp_hand *sp_hand_of(CUstream handle)
{
        struct sp_hands *own = sp_hands;
        CUcontext context = NULL;
        struct sp_hand *hand;
        uintptr_t key;

        if (!own)
                return NULL;
        if (sp_hand_is_default(handle) &&
            (sp_driver.cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context))
                return NULL;
        key = sp_hand_key(handle, context);
        hand = sp_hand_place(own, key);
        return hand->key == key && hand->magazine && sp_hand_stands(hand) ? hand : NULL;
}

/** sp_hand_here() - what it has for the current context, if all still stands, with a magazine or
 * without; else NULL. */
static inline struct sp_hand *sp_hand_here(void)
{
        struct sp_hands *own = sp_hands;
        struct sp_hand *hand;
        CUcontext context;

        if (!own || sp_driver.cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context)
                return NULL;
        hand = sp_hand_place(own, sp_hand_key_here(context));
        return hand->key == sp_hand_key_here(context) && sp_hand_stands(hand) ? hand : NULL;
}

/** sp_hand_back() - what cuMemFree may give back to; else NULL. */
static inline struct sp_hand *sp_hand_back(void)
{
        struct sp_hand *hand = sp_hands ? sp_hands->latest : NULL;

        return hand && hand->magazine && sp_hand_stands(hand) ? hand : NULL;
}

/** sp_hand_alloc() - Return: false if it has none: the model is to be asked. */
static inline bool sp_hand_alloc(struct sp_hand *hand, size_t size, CUdeviceptr *pointer)
{
        struct spm_allocation block;

        if (!spm_magazine_alloc(hand->magazine, size, sp_held_user(), &block))
                return false;
        *pointer = block.address;
        if (block.unseen)
                atomic_store_explicit(&hand->stream->owes, true, memory_order_relaxed);
        if (sp_tick_is_due())
                sp_tick();
        return true;
}

/** sp_hand_free() - @function: a literal. Return: false if it is not for this magazine: the model
 * is to be asked. */
static inline bool sp_hand_free(struct sp_hand *hand, CUdeviceptr address, const char *function)
{
        struct spm_allocation block;

        if (!spm_magazine_free(hand->magazine, address, 0, &block))
                return false;
        sp_past_add(&sp_hands->ring, &block, function, false);
        return true;
}

/**
 * sp_hand_visit() - the model is about to be asked for a block: what is to be filled on the way
 * @epoch: of before it was found out what @stream and @pool are
 *
 * Return: NULL if this thread has no place for another stream, or none is to be had.
 */
struct spm_magazine *sp_hand_visit(struct sp_stream *stream, spm_pool pool, unsigned int epoch);

/** sp_hand_visit_here() - the same for cuMemAlloc in @context, the current one. */
struct spm_magazine *sp_hand_visit_here(struct sp_context *context, unsigned int epoch);

/** sp_hand_look() - the model is told if this thread has waited for others most of the time. */
void sp_hand_look(struct sp_hand *hand);

/** sp_hand_missed() - @hand stands, and has nothing. Return: as sp_hand_visit_here(). */
static inline struct spm_magazine *sp_hand_missed(struct sp_hand *hand)
{
        if (++hand->misses % SP_HAND_LOOK == 0 && hand->magazine)
                sp_hand_look(hand);
        return hand->magazine;
}

/** sp_hands_retired() - magazines of pools were retired in the model: threads ask for others before
 * they allocate again, as the pools may have been given a layout, or be rid of it. */
void sp_hands_retired(void);

#endif
