/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STREAMPOOL_BLOCK_H
#define STREAMPOOL_BLOCK_H

/*
 * Block -- allocations, frees, and questions about them
 *
 * An allocation is a request that is made step by step: each step is answered with a block, with a
 * reason, or with actions to carry out before the next. A free is one call and cannot fail for want
 * of anything.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/action.h>
#include <streampool/pool.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* allocations */

/*
 * One request climbs a ladder (O1): ready blocks, order the program made, polls, growth, waits.
 * It remembers where it stands between calls of spm_alloc(), and nothing else refers to it: it may
 * be given up between two of them. Fields below the line are the model's, and zero before the first
 * call; a request that has ended, well or badly, is not used again.
 */
struct spm_request {
        spm_pool pool;
        spm_stream stream; /* 0 for SYNC and HOST pools */
        size_t size;
        bool may_wait;                 /* host waits are allowed when memory is short */
        uint32_t tag;                  /* of a pool that tracks uses: who asks (tag.h); 0: nobody */
        struct spm_magazine *magazine; /* to be filled on the way; NULL for none */
        size_t extra;                  /* bytes behind the block, which count for nothing but
                                        * spm_allocation.reserved; not from a magazine */
        uint64_t user;                 /* see spm_set_user() */
        /* -- */
        uint32_t stage;
        uint32_t tries;
        uint32_t batch;  /* the oldest batch it has waited for */
        uint32_t newest; /* stamp when it began to; what others stamp since is not waited for */
        bool whole;      /* see spm_grow_whole() */
        bool apart;      /* not to grow beside what its stream has freed: that was in vain */
};

/* A copy: it stays as it was, whatever becomes of the block. */
struct spm_allocation {
        uint64_t address;    /* start of the block */
        size_t reserved;     /* as taken from the segment */
        size_t size;         /* as asked for */
        uint64_t generation; /* never given twice (B3) */
        uint64_t buffer_id;  /* never given twice, and none of the driver's own (Q5) */
        spm_pool pool;
        enum spm_pool_kind kind; /* of its pool, like the next */
        int device;
        spm_stream stream; /* it was allocated on, 0 for SYNC and HOST */
        /* The one it begins in: told by spm_find(), and by spm_free() of an exported block; else 0.
         */
        spm_segment segment;
        void *cookie; /* of the segment */
        uint64_t segment_base;
        size_t segment_size;
        uint64_t user; /* see spm_set_user() */
        bool exported;
        bool reused; /* served from a freed block, not from fresh memory */
        /* The next submission has to be announced again (spm_submit()): served before it was
         * complete, or freed while one stream alone had work. */
        bool announce;
        /* It was served in an order in which nothing was submitted to its stream: one that is idle
         * does not wait for it unless something is (H6). */
        bool unseen;
};

/**
 * spm_alloc() - one step of a request
 *
 * With SPM_OK, @actions may still hold RECORD and WAIT_STREAM: carry them out before the program
 * gets the address (G3, H6). If one fails: spm_alloc_undo(). A request has a bounded number of
 * steps, whatever is reported.
 *
 * Return: SPM_OK; SPM_AGAIN: carry out, report, call again with the same request;
 * SPM_E_INVALID_VALUE (size 0, or overflow when rounded); SPM_E_OUT_OF_MEMORY; SPM_E_TOO_BIG
 * (layout.h); SPM_E_UNKNOWN (pool, or stream of an ASYNC pool); SPM_E_HOST_MEMORY.
 */
enum spm_status spm_alloc(struct spm_model *model, struct spm_request *request,
                          struct spm_allocation *allocation, struct spm_actions *actions);

/** spm_grow_failed() - the answer to SPM_ACT_GROW when nothing was to be had; @request is the one
 * whose step asked. */
void spm_grow_failed(struct spm_model *model, struct spm_request *request);

/** spm_grow_whole() - another answer to all the SPM_ACT_GROW of a list, of which none was carried
 * out: from now on what is missing is asked for in one piece, wherever it lies in one. For a caller
 * who doubts that there is so much, and is told so at once instead of piece by piece. */
void spm_grow_whole(struct spm_request *request);

/** spm_alloc_undo() - the program did not get this block after all. It is counted as undone and as
 * nothing else, though high marks stay raised. The block waits until everything is complete that
 * the context of its pool had submitted; of an ASYNC pool, that its stream had, unless its memory
 * was complete when it was served. Return: SPM_OK, SPM_E_DOUBLE_FREE, SPM_E_FOREIGN,
 * SPM_E_INTERIOR.
 */
enum spm_status spm_alloc_undo(struct spm_model *model, uint64_t address,
                               struct spm_actions *actions);

enum spm_free_kind {
        SPM_FREE_SYNC,  /* cuMemFree: an S block waits for everything its context had submitted; an
                         * A block for what it waited for when it was allocated (A5, A6) */
        SPM_FREE_ASYNC, /* cuMemFreeAsync: in the order of @stream (A2, A4) */
        SPM_FREE_HOST,  /* cuMemFreeHost: as the first, and the only one for blocks of HOST pools */
};

/**
 * spm_free() - a block is the program's no longer
 * @address:    start of a live block
 * @generation: of the allocation, or 0 for "whichever lives there"
 * @stream:     for SPM_FREE_ASYNC; need not be the one it was allocated on (A34)
 * @freed:      return argument, what was freed; may be NULL
 * @actions:    RECORD when a batch is full, and on a legacy stream to make it an operation of that
 *              (H6), or else SYNC_CONTEXT: carried out before the program's call returns
 *
 * Return: SPM_OK; SPM_E_DOUBLE_FREE, SPM_E_FOREIGN, SPM_E_INTERIOR, SPM_E_STALE, SPM_E_UNKNOWN
 * (stream), SPM_E_INVALID_VALUE (kind, or not for this kind of pool): nothing has changed.
 */
enum spm_status spm_free(struct spm_model *model, uint64_t address, uint64_t generation,
                         enum spm_free_kind kind, spm_stream stream, struct spm_allocation *freed,
                         struct spm_actions *actions);

/** spm_find() - the live block that holds @address, also inside it. Return: SPM_OK,
 * SPM_E_DOUBLE_FREE (in one of our segments, but not live), SPM_E_FOREIGN (the same once the
 * segment was given back). */
enum spm_status spm_find(const struct spm_model *model, uint64_t address,
                         struct spm_allocation *allocation);

/** spm_set_user() - 64 bits of the caller's own, kept with the live block that holds @address; at
 * first what the allocation said. Return: SPM_OK, SPM_E_FOREIGN (in no live block). */
enum spm_status spm_set_user(struct spm_model *model, uint64_t address, uint64_t user);

/**
 * spm_touch() - the stream that the live block at @address was allocated on has just got work of
 * the caller's own that uses it, which the program knows nothing of
 *
 * A free that names no stream (SPM_FREE_SYNC), and one on another stream, wait for that as well
 * (A6). Return: SPM_OK, SPM_E_FOREIGN (no live block of an ASYNC pool begins there), SPM_E_UNKNOWN
 * (its stream has ended).
 */
enum spm_status spm_touch(struct spm_model *model, uint64_t address);

/** spm_export() - the memory of the live block that holds @address is known outside: it is never
 * served again (Q3, I10), but is given back with its segment. Once more does no harm. Return:
 * SPM_OK, SPM_E_FOREIGN (in no live block). */
enum spm_status spm_export(struct spm_model *model, uint64_t address);

/** spm_is_ready() - has the stream it was allocated on passed the allocation, as far as the host
 * knows? (A14) True for SYNC and HOST pools, false for an address in no live block. */
bool spm_is_ready(const struct spm_model *model, uint64_t address);

/** spm_is_ready_on() - may work on @consumer that waits for @event use the block? Transitive
 * through events; true without an event where @consumer has waited already, as the allocating
 * stream itself has. An unknown @event, 0 among them, says nothing. (A16, A17) */
bool spm_is_ready_on(const struct spm_model *model, uint64_t address, spm_stream consumer,
                     spm_event event);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
