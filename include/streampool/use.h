/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STREAMPOOL_USE_H
#define STREAMPOOL_USE_H

/*
 * Use -- which streams work with a block, and what has to wait for them
 *
 * A pool that is created with `track_uses` remembers of each live block which streams have read and
 * written it. From that follow the waits that its next use needs, and what its memory waits for
 * when it is freed. Other pools say so (spm_pool_tracks_uses()), and every function here refuses
 * their blocks: nobody is told that something is safe which nothing has looked at.
 *
 * One use, of a caller whose device has queues and events:
 *
 *   spm_use_prepare()   the block is live, and can remember one stream more
 *   spm_use_waits()     points that the stream is not behind yet: the caller makes it wait for them
 *                       on the device
 *   ...                 the work is submitted
 *   spm_use_finish()    it is a use from now on
 *
 * Of each stream the latest read and the latest write count, since a stream is in order with
 * itself; so a block needs as much memory as streams use it, however often they do (B22). A write
 * replaces every use that its stream is behind (B31), and no other: two streams that write without
 * an order are both remembered.
 *
 * spm_free() needs no waits: the memory is pending until every use is complete, or served in stream
 * order where the stream is behind all of them. They are for a caller who gives the memory to
 * somebody else himself, or wants it to be reused sooner.
 *
 * Units: bytes; points as in model.h. Threads: as in model.h, none. Ownership: identities are
 * values; a launch is the model's memory until spm_launch_free(), which spm_model_free() does not
 * call. Sources: rules B1 to B34 of tests/rules/README.md.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/action.h>
#include <streampool/block.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* identity and life */

/* An allocation, not an address: memory that is served again has another generation (B3, B4). */
struct spm_block_id {
        uint64_t address;
        uint64_t generation;
        spm_stream stream; /* it was allocated on */
        int device;
};

/** spm_block_id() - of what spm_alloc() or spm_find() has told. */
struct spm_block_id spm_block_id(const struct spm_allocation *allocation);

/* Of an allocation; its memory may be somebody else's long before the last of them. (B5) */
enum spm_life {
        SPM_LIFE_LIVE,
        SPM_LIFE_RETIRED,     /* freed, and work that may touch it can still be running */
        SPM_LIFE_QUARANTINED, /* freed and complete, and kept from everybody (spm_pool_config) */
        SPM_LIFE_FREED,       /* freed and complete, or too many were freed since to be told */
};

/** spm_life_may_become() - the edges: LIVE to RETIRED to QUARANTINED to FREED; either of the middle
 * two may be left out, but LIVE is left by a free only, and nothing goes back. */
bool spm_life_may_become(enum spm_life from, enum spm_life to);

/** spm_life_name() - "live", "retired", "quarantined", "freed"; never NULL. */
const char *spm_life_name(enum spm_life life);

/** spm_life_of() - of an allocation in a pool that tracks uses. Return: SPM_OK; SPM_E_MISUSE (its
 * pool does not), SPM_E_FOREIGN (no allocation is or was there), SPM_E_INVALID_VALUE (no generation
 * that was ever given, or an address that is not its own). */
enum spm_status spm_life_of(struct spm_model *model, struct spm_block_id id, enum spm_life *life);

/** spm_pool_tracks_uses() - does the pool remember uses? False for an unknown one. (B28) */
bool spm_pool_tracks_uses(const struct spm_model *model, spm_pool pool);

/* uses */

/* Access to the same block is combined by |: what reads and writes is READ_WRITE. (B6) */
enum spm_use_access {
        SPM_USE_READ = 1,
        SPM_USE_WRITE = 2,
        SPM_USE_READ_WRITE = 3,
        SPM_USE_FREE = 4, /* of spm_use_prepare() and spm_use_waits() only: the end of all uses */
};

/* The stream that is asked about has to wait for all of @stream's work up to @position: for an
 * event recorded there after that operation, and before later ones if they may take longer than
 * the caller likes to wait. */
struct spm_use_wait {
        spm_stream stream;
        uint64_t position;
};

/* A use between prepare and finish. Fields are the model's. */
struct spm_use {
        struct spm_block_id id;
        enum spm_use_access access;
        spm_stream stream;
        uint64_t serial;
};

/*
 * All of these return, and have changed nothing then:
 *
 *   SPM_E_USE_AFTER_FREE  the allocation was freed, whoever has its memory now (B7, B13, B32)
 *   SPM_E_FOREIGN         no allocation is or was there
 *   SPM_E_MISUSE          its pool does not track uses (B29)
 *   SPM_E_INVALID_DEVICE  the identity names another device than the pool's (B11)
 *   SPM_E_INVALID_VALUE   no such access; a generation that was never given; an address that is not
 *                         that of the generation
 *   SPM_E_UNKNOWN         no such stream, or it has ended (B1, B12)
 *   SPM_E_HOST_MEMORY     to remember the stream; not of spm_use_finish()
 */

/**
 * spm_use_waits() - what @stream has to be behind for this access
 * @waits: room for @room of them, one a stream, in no order; may be NULL if @room is 0
 * @count: return argument, how many there are; more than @room if it was too small
 *
 * A read has to be behind writes, the allocation among them; a write and a free behind all uses
 * (B9, B14, B30). What the stream is behind already, as all earlier work of its own, and what the
 * host has seen complete, needs no wait. A question: it changes nothing.
 */
enum spm_status spm_use_waits(const struct spm_model *model, struct spm_block_id id,
                              enum spm_use_access access, spm_stream stream,
                              struct spm_use_wait *waits, unsigned int room, unsigned int *count);

/** spm_use_record() - work that uses the block was just submitted to @stream, in whatever order the
 * caller has seen to. */
enum spm_status spm_use_record(struct spm_model *model, struct spm_block_id id,
                               enum spm_use_access access, spm_stream stream);

/** spm_use_prepare() - work that uses the block is about to be submitted to @stream
 * @use: return argument; ended by spm_use_finish() once, or by spm_use_free() if it is of
 *       SPM_USE_FREE */
enum spm_status spm_use_prepare(struct spm_model *model, struct spm_block_id id,
                                enum spm_use_access access, spm_stream stream, struct spm_use *use);

/**
 * spm_use_finish() - the outcome
 * @ok: the stream waits on the device for all that spm_use_waits() said when the use was prepared,
 *      and the work was submitted. If it is false, a wait or the submission has failed, and all is
 *      as if the use had never been prepared.
 *
 * The work is in the queue, so an answer other than SPM_OK means that it uses memory that is no
 * longer its own.
 */
enum spm_status spm_use_finish(struct spm_model *model, struct spm_use *use, bool ok);

/** spm_use_free() - the outcome, of SPM_USE_FREE: with @ok the block is freed in the order of the
 * stream, as by spm_free() with SPM_FREE_ASYNC; without, it stays live, and can be freed again
 * (B15). @freed and @actions: as of spm_free(). */
enum spm_status spm_use_free(struct spm_model *model, struct spm_use *use, bool ok,
                             struct spm_allocation *freed, struct spm_actions *actions);

/** spm_use_count() - uses that a free has to be behind: 1 right after the allocation, one more for
 * each stream that has read it since the last write, 1 after a write whose stream was behind them
 * all (B21). */
enum spm_status spm_use_count(const struct spm_model *model, struct spm_block_id id,
                              unsigned int *count);

/** spm_use_range() - do @bytes at @address lie within what was asked for? Return: besides the
 * above, SPM_E_OUT_OF_BOUNDS. (B7) */
enum spm_status spm_use_range(const struct spm_model *model, struct spm_block_id id,
                              uint64_t address, size_t bytes);

/* launches */

/*
 * All uses of one submission, kernel or copy: told one by one, checked together before it is
 * submitted, and recorded together afterwards (B34). What is told twice counts once, with the
 * accesses combined. A strict launch is refused if it uses what is not tracked; a permissive one
 * leaves that out and counts it.
 */
struct spm_launch;

/** spm_launch_new() - a launch on @stream that uses nothing yet. Return: SPM_OK, SPM_E_UNKNOWN,
 * SPM_E_HOST_MEMORY. */
enum spm_status spm_launch_new(struct spm_model *model, spm_stream stream, bool strict,
                               struct spm_launch **launch);

/** spm_launch_add() - it will use this block. Return: SPM_OK, SPM_E_MISUSE (after the preflight),
 * SPM_E_INVALID_VALUE (access), SPM_E_HOST_MEMORY. */
enum spm_status spm_launch_add(struct spm_launch *launch, struct spm_block_id id,
                               enum spm_use_access access);

/**
 * spm_launch_preflight() - may it be submitted? From now on its uses are what they are
 * @waits: return argument, what its stream has to be made to wait for first, one a stream; the
 *         launch's memory, for as long as it is there
 *
 * Return: SPM_OK; SPM_E_MISUSE (a strict launch uses what is not tracked; or it was asked before);
 * others as above, of the first use that is refused. Then nothing is prepared, and more can be
 * added still.
 */
enum spm_status spm_launch_preflight(struct spm_launch *launch, const struct spm_use_wait **waits,
                                     unsigned int *count);

/** spm_launch_commit() - it was submitted, behind those waits. Return: SPM_OK; SPM_E_MISUSE
 * (without a preflight, or a second time); SPM_E_USE_AFTER_FREE or SPM_E_UNKNOWN (a block was
 * freed, or the stream ended, since the preflight): the other uses are recorded all the same,
 * because the work is in the queue. */
enum spm_status spm_launch_commit(struct spm_launch *launch);

/** spm_launch_untracked() - uses that a permissive launch has left out. */
unsigned int spm_launch_untracked(const struct spm_launch *launch);

/** spm_launch_free() - its end; without a commit nothing has been used. NULL is accepted. */
void spm_launch_free(struct spm_launch *launch);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
