/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_STREAM_H
#define SP_TRACK_STREAM_H

/*
 * Stream -- which of the model's streams does a handle mean, here and now?
 *
 * CU_STREAM_LEGACY is one stream a context; CU_STREAM_PER_THREAD one a thread
 * and context; any other handle is the stream that was made last with it: the
 * driver hands a destroyed stream's handle out again at once (U20), so destroy
 * calls are hooked and the next stream of that name is a new one (H21).
 *
 * A stream that was made out of our sight is asked for its context and flags
 * when it is first used.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <streampool/model.h>

#include "driver/driver.h"
#include "track/context.h"

/* Written once before publication, but for what is atomic and the links. */
struct sp_stream {
        CUstream handle;
        struct sp_context *context;
        spm_stream model;
        bool is_blocking;
        atomic_bool is_capturing; /* a capture was begun on it and has not ended */
        atomic_bool owes;         /* an operation, before the program waits for it (on_order.c) */
        atomic_bool retired;      /* destroyed, or its context is */
        atomic_uint users;        /* threads between sp_stream_enter() and _leave() */
        atomic_uint forgetters;   /* threads in sp_stream_forget() */
        UT_hash_handle hh;        /* by handle; guarded by the table's lock */
        UT_hash_handle hh_model;  /* by model; guarded likewise */
};

/**
 * sp_stream_of() - the stream that a handle of this call means
 * @handle: never 0: the hook has said which default stream was meant
 *
 * Return: the record, or NULL when there is none to be had: a default stream without a current
 * context, a handle the driver does not know, no host memory. The driver has the word then.
 */
struct sp_stream *sp_stream_of(CUstream handle);

/** sp_stream_made() - the driver has just made @handle in the current context. */
void sp_stream_made(CUstream handle, unsigned int flags);

/** sp_stream_made_in() - the same, in a context that need not be current. */
void sp_stream_made_in(CUstream handle, CUcontext owner, unsigned int flags);

/** sp_stream_find() - the record of an explicit handle if there is one. */
struct sp_stream *sp_stream_find(CUstream handle);

/** sp_stream_handle() - of a stream of the model's; NULL if it was destroyed. */
CUstream sp_stream_handle(spm_stream model);

/** sp_stream_captures() - is work on it captured now? Costs nothing while no capture is open. */
bool sp_stream_captures(const struct sp_stream *stream);

/** sp_stream_forget() - the handle is about to mean nothing, or something else: waits until
 * nobody uses it on our behalf. */
void sp_stream_forget(struct sp_stream *stream);

/** sp_stream_forget_context() - all streams of a context that is gone. */
void sp_stream_forget_context(struct sp_context *context);

/** sp_stream_thread_ends() - called in a thread that used its per-thread stream and ends; set once,
 * before the shim is on. */
extern void (*sp_stream_thread_ends)(void);

/** sp_stream_take_own() - one of the calling thread's per-thread streams, which are its own no
 * more; NULL if it has none. */
struct sp_stream *sp_stream_take_own(void);

/** sp_stream_end_own() - the record of a stream that was taken. */
void sp_stream_end_own(struct sp_stream *stream);

/**
 * sp_stream_enter() - the stream behind a model handle, for a driver call of our own
 *
 * Until sp_stream_leave() neither it nor its context is destroyed, and no capture begins.
 *
 * Return: NULL if it is gone or going, or if a capture is open.
 */
struct sp_stream *sp_stream_enter(spm_stream model);
void sp_stream_leave(struct sp_stream *stream);

/**
 * sp_stream_others() - live non-blocking streams of a context, for sp_stamp_in_context()
 * @count: return argument
 *
 * Until sp_stream_others_end() none of them is destroyed.
 *
 * Return: an array for sp_stream_others_end(). On lack of host memory NULL, and @count is UINT_MAX:
 * no stamp can be had.
 */
CUstream *sp_stream_others(struct sp_context *context, unsigned int *count);
void sp_stream_others_end(CUstream *others);

#endif
