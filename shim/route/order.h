/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_ROUTE_ORDER_H
#define SP_ROUTE_ORDER_H

/*
 * Order -- is memory used and freed in the order of the program's streams?
 *
 * STREAMPOOL_CHECK=order. The witness (streampool/witness.h) hears of every call that orders work,
 * and is asked about each copy, set and free before the driver is. Whom it would blame gets one
 * more chance: the driver is asked whether the earlier stream has work left, and if not, the host
 * has seen that now.
 *
 *   order.c         what the witness hears of events, and of the host
 *   order_calls.c   what it hears of submissions
 *   order_memory.c  what it is asked about memory, and what is said of that
 *
 * Every function here is called with no lock held, and only if sp_order_is_on.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/model.h>
#include <streampool/witness.h>

#include "driver/driver.h"
#include "route/uses.h"
#include "track/stream.h"

/* Written once, before the shim is on. */
extern bool sp_order_is_on;

/** sp_order_start() - from now on, unless the host has no memory for a witness. */
void sp_order_start(void);

/* one submission, and what it touches */

#define SP_ORDER_TOUCHES 16 /* of one call; more are looked at, and not remembered */

/* On the stack of the hook; nobody has touched anything if the call fails. */
struct sp_order_call {
        const char *function;
        CUstream target;
        struct spm_actor actor; /* of stream 0: not looked at */
        bool is_sync;           /* a copy or a set without a stream */
        bool waits;             /* for anything, which may be submitted later */
        bool is_word;           /* it waits for a value or writes one, as others may at any time */
        bool reads_early;       /* it may have read before the stream is so far */
        bool is_waited_for;     /* the host waits until it is done */
        bool is_barrier;   /* behind all that was before, and all that comes later is behind it */
        bool is_on_device; /* it touches memory that is looked at */
        bool is_elsewhere; /* it touches other memory, too */
        const void *site;  /* NULL: not taken yet */
        unsigned int touches;
        struct {
                struct spm_actor actor;
                struct spm_seen_life life;
                struct spm_touch touch;
        } touch[SP_ORDER_TOUCHES];
};

/** sp_order_begin() - @function is about to submit to @target; sp_caller is where it was called.
 * sp_order_end() makes a pair with it. */
void sp_order_begin(struct sp_order_call *call, const char *function, CUstream target) SP_COLD;
void sp_order_end(struct sp_order_call *call, CUresult result) SP_COLD;

/** sp_order_submit() - likewise where nothing is looked at. */
void sp_order_submit(CUstream target) SP_COLD;

/**
 * sp_order_use() - the call that is being made touches memory
 * @target:  its stream, as in sp_submit_mark()
 * @address: anywhere in an allocation, or not
 * @bytes:   that are touched for certain, in one piece; 0: some of the allocation
 *
 * Between sp_order_begin() and _end(), before the driver hears of the call.
 */
void sp_order_use(CUstream target, uint64_t address, uint64_t bytes,
                  enum spm_touch_kind kind) SP_COLD;

/** sp_order_look() - likewise for a copy or a set. @span: from its first byte to its last. */
void sp_order_look(const struct sp_use *use, uint64_t span) SP_COLD;

/* allocations and frees in the order of streams */

void sp_order_alloc(CUstream target, const char *function, uint64_t address) SP_COLD;
void sp_order_free(CUstream target, uint64_t address) SP_COLD;

/** sp_order_free_sync() - cuMemFree: of most memory it waits for the context. */
void sp_order_free_sync(uint64_t address) SP_COLD;

/* what orders */

/** sp_order_record() - the driver has recorded @event. */
void sp_order_record(spm_event event, CUstream target) SP_COLD;
void sp_order_record_context(spm_event event, spm_context context) SP_COLD;
void sp_order_taint(spm_event event, bool forever) SP_COLD;

/** sp_order_wait() - before the driver hears of it, and once more behind it. @event: 0 if it was
 * never recorded. */
void sp_order_wait(CUstream target, spm_event event) SP_COLD;
void sp_order_wait_context(spm_event event, spm_context context) SP_COLD;

/** sp_order_version() - when the host begins to wait for something, for sp_order_saw(). */
uint64_t sp_order_version(struct spm_scope scope) SP_COLD;

/** sp_order_saw() - the host has seen the end of something; @context may be NULL. */
void sp_order_saw(const struct sp_context *context, struct spm_scope scope,
                  uint64_t version) SP_COLD;

/** sp_order_unfollowed() - a stream is given what can wait for anything, and tell anybody: before
 * the driver hears of it, and once more behind it. */
void sp_order_unfollowed(CUstream target) SP_COLD;

/** sp_order_blur() - all that was submitted counts as complete. */
void sp_order_blur(void) SP_COLD;

/** sp_order_give_up() - there is order that cannot be followed: @why is said once, and nothing more
 * of the order. */
void sp_order_give_up(const char *why) SP_COLD;

/* inside */

struct spm_witness *sp_witness_enter(void);
void sp_witness_leave(void);

/** sp_order_actor() - whose call it is; false if that is not known, and what follows from that is
 * done. */
bool sp_order_actor(CUstream target, struct spm_actor *actor);
struct spm_actor sp_order_actor_of(const struct sp_stream *stream);

/* The call that this thread is in; NULL outside of one. Per thread because it is its own;
 * initial-exec, so that reading it never allocates. */
extern __thread struct sp_order_call *sp_order_now __attribute__((tls_model("initial-exec")));

/** sp_order_remember() - the call has succeeded: it has touched what it was to touch. */
void sp_order_remember(struct spm_witness *witness, const struct sp_order_call *call);

#endif
