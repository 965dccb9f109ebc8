/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STREAMPOOL_OBSERVER_H
#define STREAMPOOL_OBSERVER_H

/*
 * Observer -- one record of every action, the refused ones too
 *
 * A resource is a pool as a program sees it that wants all of this at once: a budget in front, the
 * pool behind, and an observer that is told what became of each call. The order is fixed: what the
 * budget refuses is recorded as such, and was never asked of the pool (B49).
 *
 * An observer is two functions. What they do is their business, and whatever goes wrong there never
 * changes the answer to a call: a record that could not be written is counted, and that is all
 * (B46). An observer without functions takes everything and keeps nothing (B47). The ring is one
 * that keeps the latest records, for a program that wants to see them when it has failed.
 *
 * The model has no clock and knows no threads, so the caller says when and who.
 *
 * Units: bytes, nanoseconds. Threads: spm_observe() may be called by any thread. Every record has
 * an order of its own; they are written in that order as far as calls do not overlap. The ring can
 * be written by many threads, and read at the same time. Calls with a resource are under the lock
 * of its model. Ownership: observers, rings, their rows and resources are the caller's memory.
 * Sources: rules B44 to B49 of tests/rules/README.md.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/action.h>
#include <streampool/block.h>
#include <streampool/budget.h>
#include <streampool/reap.h>
#include <streampool/use.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* records */

enum spm_observed {
        SPM_OBSERVED_ALLOC,
        SPM_OBSERVED_FREE,
        SPM_OBSERVED_USE,
        SPM_OBSERVED_REAP,
        SPM_OBSERVED_BUDGET, /* an allocation that the budget refused */
        SPM_OBSERVED_OTHER,  /* of the caller's own */
};

#define SPM_OBSERVATION_MESSAGE 256

/* What is not known of an action is 0; an unknown device is -1. (B44) */
struct spm_observation {
        uint64_t order; /* strictly increasing, from 1 on */
        uint64_t wall_ns;
        uint64_t thread;
        uint64_t address;
        uint64_t bytes; /* as asked for */
        uint64_t generation;
        enum spm_observed action;
        enum spm_status result;
        spm_stream stream;
        uint32_t tag;
        int device;
        uint32_t unused;
        char message[SPM_OBSERVATION_MESSAGE]; /* why, cut off to fit; empty for SPM_OK */
};

/** spm_observed_name() - "alloc", "free", "use", "reap", "budget", "other"; never NULL. */
const char *spm_observed_name(enum spm_observed action);

/* The columns of spm_observation_text(); one more at the end would be a new version. */
#define SPM_OBSERVATION_COLUMNS                                                                    \
        "order,wall_ns,thread,action,result,device,stream,address,bytes,generation,tag,message"

/** spm_observation_text() - the record as a line of CSV, without its end, cut off to fit. Return:
 * @text. */
const char *spm_observation_text(const struct spm_observation *row, char *text, size_t size);

/* observers */

struct spm_observer {
        /* Each may be NULL. False: the record, or what was written before, is lost. They are called
         * inside the functions below, with the lock of the model held, and must not call it. */
        bool (*write)(const struct spm_observation *row, void *user);
        bool (*flush)(void *user);
        void *user;
        /* Whence orders come, so that several observers of a process can share them; NULL: of its
         * own. Starts at 0, and is written by nobody else. */
        uint64_t *counter;
        /* -- */
        uint64_t own_counter;
        uint64_t dropped;
};

/** spm_observe() - @row gets its order, and is written. A NULL @observer is accepted. */
void spm_observe(struct spm_observer *observer, struct spm_observation *row);

/** spm_observer_flush() - a failure counts as one record dropped. NULL is accepted. */
void spm_observer_flush(struct spm_observer *observer);

/** spm_observer_dropped() - records that could not be written. */
uint64_t spm_observer_dropped(const struct spm_observer *observer);

/* the ring */

/* A row of a ring; fields are the ring's. */
struct spm_ring_row {
        uint64_t version;
        uint64_t words[sizeof(struct spm_observation) / sizeof(uint64_t)];
};

struct spm_ring {
        struct spm_ring_row *rows; /* zeroed */
        uint64_t room;             /* of them, at least 1 */
        uint64_t written;
};

/** spm_ring_observer() - one that writes into @ring, which is empty then. @rows: room for @room of
 * them */
struct spm_observer spm_ring_observer(struct spm_ring *ring, struct spm_ring_row *rows,
                                      uint64_t room);

/** spm_ring_each() - the latest records, the oldest first, until @visit returns false. One that is
 * being written at this moment is left out. */
void spm_ring_each(const struct spm_ring *ring,
                   bool (*visit)(const struct spm_observation *row, void *user), void *user);

/* resources */

struct spm_resource {
        struct spm_model *model;
        spm_pool pool;
        struct spm_account *account;   /* of that pool; NULL: no budget */
        struct spm_observer *observer; /* NULL: nobody */
};

/* Who calls, and when. */
struct spm_moment {
        uint64_t thread;
        uint64_t wall_ns;
};

/** spm_resource_tracks_uses() - what the pool says; nothing in front of it adds to that (B28). */
bool spm_resource_tracks_uses(const struct spm_resource *resource);

/* As spm_account_alloc() or spm_alloc(), spm_account_free() or spm_free(), spm_use_record() and
 * spm_reap_pending(), whose answers they return. A request is recorded when it has ended. */
enum spm_status spm_resource_alloc(const struct spm_resource *resource, struct spm_moment moment,
                                   struct spm_account_request *request,
                                   struct spm_allocation *allocation, struct spm_actions *actions);
enum spm_status spm_resource_free(const struct spm_resource *resource, struct spm_moment moment,
                                  uint64_t address, uint64_t generation, enum spm_free_kind kind,
                                  spm_stream stream, struct spm_actions *actions);
enum spm_status spm_resource_use(const struct spm_resource *resource, struct spm_moment moment,
                                 struct spm_block_id id, enum spm_use_access access,
                                 spm_stream stream);
enum spm_status spm_resource_reap(const struct spm_resource *resource, struct spm_moment moment,
                                  bool (*wait)(struct spm_scope what, void *user), void *user,
                                  struct spm_reaped *reaped, struct spm_actions *actions);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
