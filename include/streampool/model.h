/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STREAMPOOL_MODEL_H
#define STREAMPOOL_MODEL_H

/*
 * Model -- who may have which memory, and when
 *
 * A stream-ordered memory pool as a pure state machine. It is told what a
 * program asks for and what the device has finished; it answers with addresses
 * and with a list of actions that somebody else carries out. It holds no lock,
 * reads no clock, starts no thread and knows no CUDA, so the same inputs always
 * give the same addresses.
 *
 *   input   spm_alloc(), spm_free(), spm_record_begin(), ...
 *   output  an address, and struct spm_actions: record, poll, wait, grow, ...
 *   report  spm_stamp_recorded(), spm_stamp_done(), spm_segment_add(), ...
 *
 * This file includes all others of the interface:
 *
 *   action.h    what it answers: a status, and what somebody else is to do
 *   order.h     contexts, streams, events: what waits for what, what is done
 *   submit.h    which streams have work
 *   pool.h      pools, their attributes, and the segments they are made of
 *   block.h     allocations, frees, and questions about them
 *   magazine.h  a thread's own blocks, without the caller's lock
 *   layout.h    pools that are cut up in another way than the default one
 *   stats.h     figures, and what helps to find a mistake
 *   use.h       which streams use a block, and what has to wait for them
 *   reap.h      what was freed and is not complete, and how to wait for it
 *   tag.h       whose the memory is, by names of the caller's own
 *   budget.h    how much somebody may have, of pools of one model or of many
 *   observer.h  a record of every call, the refused ones too
 *   survey.h    how sizes and free memory are spread, and what is left
 *
 * Words
 *   stream   an ordered queue of device work. Its n-th operation that the model
 *            knows of is the point (stream, n).
 *   stamp    an event that the caller records for the model. When it is done,
 *            everything that was submitted before it was recorded is done.
 *   segment  memory obtained by the caller, in one piece: a chunk of a range, or an
 *            allocation of its own.
 *   range    addresses that a pool has for itself; segments come and go in it, so that
 *            free memory can be moved to where it is needed.
 *   block    one allocation, or one free piece; a block may lie in several segments of
 *            a range.
 *   pending  freed, but work that may touch it can still be running.
 *   ready    freed, and everything that may touch it is complete.
 *
 * Threads: none. The caller serialises every call on one model, questions
 * among them; the actions are carried out with no lock held, and then reported.
 * Two models share nothing. The exception are magazines, which exist so that a
 * thread can do without that lock.
 *
 * Units: sizes and addresses are bytes. Handles are small integers, 0 is never
 * one, and a handle is not given out again while the model lives.
 *
 * Ownership: what a function takes by pointer it copies or fills, and keeps no
 * pointer to; the caller's own (cookies, `user`) are handed back as they are,
 * and not looked at. Memory behind addresses is the
 * caller's before spm_segment_add() has succeeded and after SPM_ACT_RELEASE;
 * the model never touches any of it.
 *
 * Errors: every function lists what it returns. Misuse that only a programmer
 * can cause (a NULL model, a ticket ended twice) is asserted, not reported.
 * Return arguments are written on success only, unless a function says more;
 * struct spm_actions is always written, and carried out whatever was returned.
 * A failed input changes nothing that the caller can see, but for what its
 * actions tell.
 *
 * Sources: `cuda.h` is NVIDIA's driver API header. A rule's letter and number (G1, F4, A6, H3, C5,
 * L1, O1) is that of the notes on what the driver guarantees and forbids, from which this grew;
 * wherever one is named, it is said beside it what it wants.
 */

#include <stddef.h>
#include <streampool/action.h>
#include <streampool/order.h>
#include <streampool/submit.h>
#include <streampool/pool.h>
#include <streampool/block.h>
#include <streampool/magazine.h>
#include <streampool/layout.h>
#include <streampool/stats.h>
#include <streampool/use.h>
#include <streampool/reap.h>
#include <streampool/tag.h>
#include <streampool/budget.h>
#include <streampool/observer.h>
#include <streampool/survey.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* life of a model */

struct spm_config {
        /* Host memory. NULL means calloc() and free(), and others have to be as those: zeroed,
         * aligned for any type, NULL when there is none. free is never given NULL. They are called
         * inside the model's functions, and must not call the model. */
        void *(*alloc)(size_t count, size_t size, void *user);
        void (*free)(void *memory, void *user);
        void *user;
        /* Makes every thread of the process pass a full barrier, as membarrier(2) does with
         * MEMBARRIER_CMD_PRIVATE_EXPEDITED. NULL: owners of magazines have a barrier of their own
         * in each call, which costs as much as the rest of it. Called inside the model's functions,
         * under the caller's lock; must not call the model. */
        void (*fence)(void *user);
        /* Called again and again while a magazine is waited for whose owner does not leave it at
         * once, because its thread does not run: yields to it, or sleeps for a moment. NULL: the
         * processor is kept. Called as fence is. */
        void (*pause)(void *user);
        /* A freed synchronous block waits for a stamp of its context; a batch is stamped
         * when it holds this many blocks or bytes, or of a small pool 8 MiB or a sixteenth of
         * the most that was in use. 0 means the default. */
        unsigned int batch_blocks; /* default 128 */
        size_t batch_bytes;        /* default 32 MiB */
        /* Synchronous memory freed since the last submission that is worth a stamp before the next,
         * by which the only stream that has work can have it again at once (submit.h). */
        size_t guard_bytes; /* default 64 KiB */
        /* Streams that the program may have at once, in all contexts; 0 for any number. (B48) */
        unsigned int max_streams;
};

/**
 * spm_model_new() - an empty model
 * @config: NULL for all defaults; copied
 * @model:  return argument; owned by the caller, spm_model_free() ends it
 *
 * Return: SPM_OK, SPM_E_INVALID_VALUE (only one of alloc and free is set), SPM_E_HOST_MEMORY.
 */
enum spm_status spm_model_new(const struct spm_config *config, struct spm_model **model);

/** spm_model_free() - forget everything, magazines too; NULL is accepted. No action comes of it:
 * segments, and the events behind stamps, are the caller's to give back. No ticket is open any
 * more, or the memory that it holds is lost. */
void spm_model_free(struct spm_model *model);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
