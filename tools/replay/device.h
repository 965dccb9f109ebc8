/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DEVICE_H
#define DEVICE_H

/*
 * Device -- what the model needs around it: somebody to act, and time that passes
 *
 * What the model asks for is carried out at once and counted. The device is a
 * number of kernels submitted so far: a stamp is done when @lag more have been
 * submitted, or when a host synchronisation of the program says so. That is
 * crude, but the same every time, and it does make memory pend.
 *
 * With a device of its own, each of the two pools has a range of addresses, and
 * gets there what it asks for. It may also ask for memory anywhere: then it
 * grows by what it would like while the capacity lasts, then by what it needs,
 * then after the other pool has given back what is ready. Without a device, the model
 * makes up its addresses, as a CPU-only pool.
 */

#include <streampool/model.h>

#include "peer.h"

/* Each pool's range, and a third part for segments anywhere. */
#define DEVICE_RANGE ((uint64_t)1 << 40)
#define DEVICE_GAP   (64 * MIB)

/* Numbered things; index 0 is valid. */
struct numbers {
        uint64_t *value;
        uint32_t room;
};

struct pool_peer {
        struct peer peer;
        struct peer_options options;
        struct spm_model *model;
        spm_context context;
        spm_pool async;
        spm_pool sync;
        bool is_sync;          /* whatever the program asks for */
        uint64_t next_address; /* of a segment anywhere */
        uint64_t kernels;
        struct numbers streams;   /* to spm_stream */
        struct numbers events;    /* to spm_event */
        struct numbers last;      /* kernel on a stream, by spm_stream */
        struct numbers stamped;   /* kernels before a stamp, by spm_stamp */
        struct numbers magazines; /* pointers, by stream; for a peer that uses them itself */
        uint32_t stream_count;
        uint32_t crowded_waits; /* of the program, since streams were counted; announce.c */
        uint32_t recount_gap;
};

/* The parts of the peer that threads need one by one; see peer_model.c. */

/** pool_alloc() - @magazine: to be filled on the way, or NULL. Return: the address, 0 for none. */
uint64_t pool_alloc(struct pool_peer *peer, uint32_t stream, size_t size,
                    struct spm_magazine *magazine);
void pool_free(struct pool_peer *peer, uint64_t address, uint32_t stream);

/** pool_magazine() - a new one of the asynchronous pool; the caller ends it. */
struct spm_magazine *pool_magazine(struct pool_peer *peer, uint32_t stream);

/** device_range() - where the range of a pool with a device begins. */
uint64_t device_range(enum spm_pool_kind kind);

/** device_number() - the value of @index, 0 at first. */
uint64_t *device_number(struct numbers *numbers, uint32_t index);

/** device_must() - ends the program if the model refused. */
void device_must(enum spm_status status, const char *what);

/** device_perform() - @request is NULL where nothing can ask to grow. */
void device_perform(struct pool_peer *peer, const struct spm_actions *actions,
                    struct spm_request *request);

/** device_observe() - the host waits for, or asks about, a stream, an event or a context. */
void device_observe(struct pool_peer *peer, struct spm_scope scope, enum spm_sync how,
                    bool is_done);

/** device_fence() - of struct spm_config: all threads see what this one has written. NULL where the
 * system has none. */
void (*device_fence(void))(void *);

#endif
