/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_MEMPOOL_H
#define SP_TRACK_MEMPOOL_H

/*
 * Memory pools -- which of the driver's pools do we stand in front of?
 *
 * The default pool of a device, and pools that the program makes and that are
 * plain: pinned memory of one device, for this process alone, without a limit
 * (A15). The driver makes their handles, judges every call on them and remembers
 * what was set; the memory is that of a pool in the model. That one is made when
 * it is first allocated from, and then takes over from the driver's what was set
 * on it. All other pools are the driver's, their memory too.
 *
 * A handle names a pool until it is destroyed, and then perhaps another one. The
 * destroyed one is known by its pool in the model until its last block is gone.
 *
 * What STREAMPOOL_POOL_* say is set when a pool is first heard of: on the driver's
 * as well, which memory comes from while something captures.
 */

#include <stdbool.h>
#include <streampool/model.h>

#include "base/table.h"
#include "driver/driver.h"
#include "track/context.h"
#include "track/range.h"

/* Pools in the model that one device has at most, the default one too: each has addresses for
 * itself. Further ones are the driver's. */
#define SP_MEMPOOLS_MAX 32

/* What was seen of a pool, as bits. */
enum sp_mempool_note {
        SP_MEMPOOL_TUNED = 1,     /* a policy was set */
        SP_MEMPOOL_THRESHOLD = 2, /* a release threshold was set */
        SP_MEMPOOL_SHARED = 4,    /* access was set */
        SP_MEMPOOL_NATIVE = 8,    /* our memory cannot do what was set: the driver serves */
};

/* Guarded by the lock in mempool.c, but for what is written once, before publication. */
struct sp_mempool {
        CUmemoryPool handle; /* written once */
        int ordinal;         /* of its device; written once */
        bool is_default;     /* written once. The memory behind it is the device record's */
        bool is_destroyed;
        bool is_asked;         /* @model was made, is being made, or could not be */
        bool is_being_made;    /* by one thread, for which others wait */
        unsigned int notes;    /* of enum sp_mempool_note */
        unsigned int users;    /* calls that look at the record with no lock held */
        spm_pool model;        /* of a pool of the program's; 0: nothing was allocated yet */
        struct sp_range range; /* of that one; written once, before @model */
        UT_hash_handle hh;     /* by handle */
        struct sp_mempool *next;
};

/* the life of a pool */

/** sp_mempool_made() - the program has made one that is plain. */
void sp_mempool_made(CUmemoryPool handle, int ordinal);

/** sp_mempool_start_default() - the record of @device was published: takes over its default pool,
 * and what is current. */
void sp_mempool_start_default(struct sp_device *device);

/** sp_mempool_knows() - do we stand in front of it? A default pool may be heard of here before its
 * device is. @ordinal: return argument, of its device */
bool sp_mempool_knows(CUmemoryPool handle, int *ordinal);

/**
 * sp_mempool_take() - the driver is about to be told to destroy it
 *
 * From here on nobody finds it by its handle, which can be another pool's before the driver's call
 * returns. sp_mempool_put_back() if it refuses, else sp_mempool_end() once the model's is
 * destroyed.
 *
 * Return: NULL for a pool that is none of ours, and for a default one, which stays.
 */
struct sp_mempool *sp_mempool_take(CUmemoryPool handle);
void sp_mempool_put_back(struct sp_mempool *pool);

/** sp_mempool_end() - @stats: of the model's pool before it was destroyed; zeros if there was none
 */
void sp_mempool_end(struct sp_mempool *pool, const struct spm_stats *stats);

/**
 * sp_mempool_sum_ended() - of the pools of @device that were destroyed, for the report
 * @stats: return argument: sums of what was counted, and the highest of their high marks
 *
 * Return: false if somebody keeps the lock.
 */
bool sp_mempool_sum_ended(const struct sp_device *device, struct spm_stats *stats);

/** sp_mempool_reset_ended() - none of them holds anything now, so their high marks are 0. */
void sp_mempool_reset_ended(struct sp_device *device);

/* its memory */

/** sp_mempool_model() - the model's pool behind a handle; 0 if there is none, or none yet. */
spm_pool sp_mempool_model(CUmemoryPool handle);

/** sp_mempool_serving() - likewise, for an allocation on @device: made if need be; 0 if the driver
 * has to serve. */
spm_pool sp_mempool_serving(CUmemoryPool handle, const struct sp_device *device);

/** sp_mempool_handle() - the handle in front of a pool of the model's, also when it is destroyed;
 * NULL for one of cuMemAlloc. */
CUmemoryPool sp_mempool_handle(spm_pool model);

/** sp_mempools_on() - what a device has in the model, the default pool first. Return: how many. */
unsigned int sp_mempools_on(const struct sp_device *device, spm_pool pools[SP_MEMPOOLS_MAX]);

/**
 * sp_mempool_hold() - the record behind a pool of the program's, and its range; not of a default
 * one
 *
 * Return: NULL, or a record that stays until sp_mempool_let_go().
 */
struct sp_mempool *sp_mempool_hold(spm_pool model);
void sp_mempool_let_go(struct sp_mempool *pool);

/** sp_mempool_reserves() - has a pool of the program's this address for itself? */
bool sp_mempool_reserves(CUdeviceptr address);

/** sp_mempool_note() - remembers @notes of a pool, which may be none. Return: all there are. */
unsigned int sp_mempool_note(CUmemoryPool handle, unsigned int notes);

/** sp_mempool_follow_current() - asks the driver which pool cuMemAllocAsync uses on @device. */
void sp_mempool_follow_current(struct sp_device *device);

#endif
