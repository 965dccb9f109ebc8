/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_STATE_H
#define SP_TRACK_STATE_H

/*
 * State -- the one model of this process, and the lock around it
 *
 * Streams wait for events across contexts and devices, so one model knows all
 * of them. Every spm_ call is made between sp_model_enter() and
 * sp_model_leave(); no driver call ever is.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <streampool/model.h>

#include "base/lock.h"

/* Captures open in the process. While it is not 0 nothing is served, stamped or polled (D15). */
extern atomic_uint sp_captures;

static inline bool sp_is_capturing(void)
{
        return atomic_load_explicit(&sp_captures, memory_order_acquire) != 0;
}

/*
 * A driver call of our own that a capture forbids is made between these two. The first is false
 * while a capture is open, and a capture does not begin between them: a question asked in the
 * moment another thread begins to capture would invalidate the capture.
 */
bool sp_quiet_enter(void);
void sp_quiet_leave(void);

/** sp_quiet_end() - a capture begins: counts it, and waits until nobody is between those two. */
void sp_quiet_end(void);

/*
 * What is remembered of how a handle was found to be served (route/hand.h) stands for one epoch.
 * A new one begins when a handle means something else, a context or a pool is not what it was, or a
 * capture begins: before the driver is told, or at once after it.
 */
extern atomic_uint sp_epoch;

static inline unsigned int sp_epoch_now(void)
{
        return atomic_load_explicit(&sp_epoch, memory_order_acquire);
}

static inline void sp_epoch_end(void)
{
        atomic_fetch_add(&sp_epoch, 1);
}

/* Return: false when the host has no memory for a model. */
bool sp_state_start(void);
bool sp_model_make(const struct spm_config *wish);

/* What the driver called itself when we began; 0 if it did not say. */
int sp_state_driver_version(void);

/* Written once, before the shim is on; what it points to is guarded by the lock. */
extern struct spm_model *sp_model;
extern struct sp_lock sp_model_lock;

static inline struct spm_model *sp_model_enter(void)
{
        sp_lock_take(&sp_model_lock);
        return sp_model;
}

static inline void sp_model_leave(void)
{
        sp_lock_drop(&sp_model_lock);
}

/* As sp_model_enter(), but gives up: for the report at exit. NULL if somebody keeps the lock. */
struct spm_model *sp_model_enter_bounded(void);

/* The same for the ledger, which is kept under this lock and needs no model: @model is NULL if
 * there is none. Return: false if somebody keeps the lock. */
bool sp_books_enter_bounded(struct spm_model **model);

#endif
