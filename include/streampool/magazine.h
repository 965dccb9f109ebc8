/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STREAMPOOL_MAGAZINE_H
#define STREAMPOOL_MAGAZINE_H

/*
 * Magazine -- a thread's own blocks, without the caller's lock
 *
 * A magazine holds free blocks of one pool for one stream and one thread. Its owner, one thread
 * at a time, allocates from it and frees into it without the caller's lock, while other threads
 * call the model under theirs. What the model does under pressure to get its blocks back, it can
 * do while the owner sleeps.
 *
 * A block that is in a magazine is free (a second free is SPM_E_DOUBLE_FREE), counts as pending,
 * and is served on its stream only, in stream order; that of a SYNC pool is for no stream, and
 * serves what is complete. All figures stay exact: spm_stats() under the
 * lock has every call of an owner that had returned before.
 *
 * To hand a magazine to another thread takes what handing over any memory takes. It is the model's
 * memory: spm_magazine_end() frees it, and spm_model_free() what is left of them.
 *
 * Only ASYNC and SYNC pools that have a range can have them. That of a legacy stream serves nothing
 * while its context has a blocking stream, or may have one that the model was not told of: an
 * allocation there can be more than memory (H6).
 *
 * Units are bytes. Sources: as in model.h.
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

struct spm_magazine;

/** spm_magazine_new() - empty, under the lock. @stream: 0 for a SYNC pool. Return: SPM_OK,
 * SPM_E_UNKNOWN (pool or stream), SPM_E_INVALID_VALUE (kind of the pool or stream, no range, a
 * quarantine or a layout), SPM_E_HOST_MEMORY.
 */
enum spm_status spm_magazine_new(struct spm_model *model, spm_pool pool, spm_stream stream,
                                 struct spm_magazine **magazine);

/** spm_magazine_end() - under the lock, and its owner uses it no more; its blocks go back to the
 * pool. A magazine must end before its stream is retired, its pool destroyed or its context
 * removed, or is emptied by that and serves nothing any more. */
void spm_magazine_end(struct spm_model *model, struct spm_magazine *magazine);

/** spm_magazine_flush() - under the lock, by its owner, before a free that it has not taken: what
 * waits in it to be complete goes to the pool, as it may be full of that. */
void spm_magazine_flush(struct spm_model *model, struct spm_magazine *magazine);

/** spm_magazine_crowd() - under the lock, by its owner, who has waited for other threads there
 * again and again. From now on the magazines of a SYNC pool take what waits to be complete, too,
 * while several threads have them; else that goes to the pool, under the lock. */
void spm_magazine_crowd(struct spm_model *model, struct spm_magazine *magazine);

/** spm_magazine_retire() - under the lock: all magazines of a pool are emptied and serve nothing
 * any more, so that it can have a layout. Their owners may call them still, and end them. Return:
 * SPM_OK, SPM_E_UNKNOWN. */
enum spm_status spm_magazine_retire(struct spm_model *model, spm_pool pool);

/** spm_magazine_alloc() - without the lock; the block is ordered as one of spm_alloc() and asks for
 * no action. @user: as of a request. Return: false if it has none, or a high mark might be passed,
 * and nothing is written: spm_alloc(), with the magazine in its request. */
bool spm_magazine_alloc(struct spm_magazine *magazine, size_t size, uint64_t user,
                        struct spm_allocation *allocation);

/**
 * spm_magazine_free() - without the lock; the arguments of spm_free(), on the magazine's stream, or
 * SPM_FREE_SYNC
 *
 * Return: false if the block is not one for this magazine, it is full, or the call is a mistake,
 * and nothing has changed: spm_free() says which.
 */
bool spm_magazine_free(struct spm_magazine *magazine, uint64_t address, uint64_t generation,
                       struct spm_allocation *freed);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
