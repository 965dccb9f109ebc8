/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STREAMPOOL_ACTION_H
#define STREAMPOOL_ACTION_H

/*
 * Action -- what the model answers: a status, and what somebody else is to do
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library shows what the public headers declare, and nothing else. */
#pragma GCC visibility push(default)

/* handles */

typedef uint32_t spm_context; /* a device context */
typedef uint32_t spm_stream;
typedef uint32_t spm_event;
typedef uint32_t spm_pool;
typedef uint32_t spm_segment;
typedef uint32_t spm_stamp;

struct spm_model;

/* status */

enum spm_status {
        SPM_OK = 0,
        SPM_AGAIN,           /* carry out the actions, report them, call again */
        SPM_E_INVALID_VALUE, /* zero or overflowing size, unknown attribute, bad configuration */
        SPM_E_OUT_OF_MEMORY, /* past the cap, or nobody could provide a segment */
        SPM_E_DOUBLE_FREE,   /* the address is in memory of ours, but in no live block */
        SPM_E_FOREIGN,       /* the address is not in memory of ours, or not any more */
        SPM_E_INTERIOR,      /* the address lies inside a live block, not at its start */
        SPM_E_STALE,         /* the block at this address is a later one (generation differs) */
        SPM_E_INVALID_DEVICE,
        SPM_E_READ_ONLY,      /* the attribute cannot be set */
        SPM_E_UNKNOWN,        /* no such context, stream, event, pool, segment or stamp */
        SPM_E_HOST_MEMORY,    /* the host's own allocator failed, or handles ran out */
        SPM_E_USE_AFTER_FREE, /* the allocation that is named was freed (use.h) */
        SPM_E_OUT_OF_BOUNDS,  /* past what was asked for (use.h) */
        SPM_E_MISUSE,         /* not of this kind of pool, or not in this order (use.h, budget.h) */
        SPM_E_OUT_OF_BUDGET,  /* past a limit of the caller's own (budget.h) */
        SPM_E_DRIVER,         /* what the caller was asked to do has failed (reap.h) */
        /* of pools with a layout (layout.h) */
        SPM_E_TOO_BIG,     /* no shelf takes a block of this size */
        SPM_E_IN_USE,      /* not while the pool has blocks */
        SPM_E_UNSUPPORTED, /* not with such a pool */
};

/** spm_status_name() - the name of a status, e.g. "SPM_E_DOUBLE_FREE"; never NULL. */
const char *spm_status_name(enum spm_status status);

/* actions */

/*
 * What each asks for, and the call that reports it. The fields that are named are set, and @context
 * but for DROP; it is 0 for memory of a pool that outlives contexts.
 *
 * An action may be carried out by any thread, but one that names a PER_THREAD stream by the
 * stream's own: it comes of calls about that stream only. The report may come late or, but for
 * RECORD, not at all: the request that asked goes on without.
 */
enum spm_action_kind {
        /* Record @stamp on @stream (or, if @stream is 0, behind all work of @context).
         * Then spm_stamp_recorded(). */
        SPM_ACT_RECORD,
        /* Make @stream wait for @stamp on the device. If that fails: spm_alloc_undo(). */
        SPM_ACT_WAIT_STREAM,
        /* Make @stream, which is about to get work, wait for @stamp on the device. If that fails:
         * wait for it on the host; if the stamp could not be recorded, as SYNC_CONTEXT. */
        SPM_ACT_WAIT_FENCE,
        /* Ask whether @stamp is done, without waiting; if it is: spm_stamp_done(). */
        SPM_ACT_POLL,
        /* Ask whether @stream is idle, without waiting: spm_sync_begin(), the question,
         * spm_sync_end() with SPM_SYNC_POLL. */
        SPM_ACT_POLL_STREAM,
        /* Wait on the host for @stamp, then spm_stamp_done(). If @bounded, the stamp may cover
         * work submitted after the free it stands for: give up after a short while. If @brief, all
         * there is to gain is some memory: after a moment, and not again for a while. If the same
         * list asked for the stamp, and it could not be recorded, as SYNC_CONTEXT. */
        SPM_ACT_WAIT_HOST,
        /* Wait on the host until @context is idle: spm_sync_begin(), the wait, spm_sync_end(). */
        SPM_ACT_SYNC_CONTEXT,
        /* Obtain memory for @pool, then spm_segment_add() or spm_grow_failed(). If @address is not
         * 0: @size bytes just there, in the pool's range. Else, anywhere: at least @size bytes,
         * better @preferred bytes. The request is short of @missing bytes in all. If @last, all
         * else was tried before: a caller who would rather not give more yet refuses the others,
         * and the request waits and gives back first. */
        SPM_ACT_GROW,
        /* Give the memory of @segment (@address, @size, @cookie) of @pool back. The model has
         * forgotten it. If @moves, it makes way for a GROW of the same request, which can use the
         * physical memory again. */
        SPM_ACT_RELEASE,
        /* @stamp is no longer needed; its event may be used again. An action of another thread may
         * still name it: then a question or a wait of the host is void, and a WAIT_STREAM has
         * failed. */
        SPM_ACT_DROP,
};

struct spm_action {
        enum spm_action_kind kind;
        bool bounded;
        bool brief;
        bool moves;
        bool last;
        spm_context context;
        spm_stream stream;
        spm_stamp stamp;
        spm_pool pool;
        spm_segment segment;
        uint64_t address;
        size_t size;
        size_t preferred;
        size_t missing;
        void *cookie;
};

#define SPM_ACTIONS_MAX 24

/* The caller's, and written anew by every function that takes one: filled by the model from
 * item[0]; the order is the order to carry them out in. */
struct spm_actions {
        unsigned int count;
        struct spm_action item[SPM_ACTIONS_MAX];
};

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
