/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEER_H
#define PEER_H

/*
 * Peer -- one interface for every allocator that is measured
 *
 * The model, the host's malloc(), and allocators rebuilt here from what is
 * published about them. The rebuilt ones are their algorithms without the
 * driver: memory is a number that grows, and events cost nothing. So they are
 * shown from their best side.
 *
 * Streams are small numbers, 0 is the legacy stream. Allocators of one kind of
 * memory treat PEER_ANYWHERE, a block that no stream orders, as stream 0.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/model.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

/* A block of cuMemAlloc() and cuMemFree(). */
#define PEER_ANYWHERE UINT32_MAX

enum peer_order {
        PEER_STREAM_MADE, /* a: the next number; b: flags, 1 is non-blocking */
        PEER_STREAM_GONE, /* a: stream */
        PEER_RECORD,      /* a: event, numbered from 0; b: stream */
        PEER_WAIT,        /* a: event; b: stream */
        PEER_EVENT_GONE,  /* a: event */
        PEER_SYNC_STREAM, /* a: stream; the host knows that it is idle */
        PEER_SYNC_EVENT,  /* a: event */
        PEER_SYNC_ALL,
        PEER_LAUNCH, /* a: stream; b: how many kernels */
};

#define PEER_ACTIONS (SPM_ACT_DROP + 1)

struct peer_figures {
        uint64_t reserved;
        uint64_t reserved_high;
        uint64_t grows;
        uint64_t releases;
        uint64_t moves;                /* releases that made room for a growth elsewhere */
        uint64_t action[PEER_ACTIONS]; /* asked for by the model, by enum spm_action_kind */
};

struct audit;
struct records;

/* All but the first are for the model. */
struct peer_options {
        uint64_t capacity;       /* of the device, in bytes; 0 is without end */
        bool has_device;         /* grows by asking somebody, and that takes capacity from them */
        uint64_t lag;            /* the device is behind by so many kernels; 0: always idle */
        uint64_t keep;           /* bytes not given back at synchronisations */
        enum spm_growth growth;  /* of pools that have a device, and so a range of addresses */
        uint64_t large_align;    /* of synchronous blocks above 1 MiB */
        bool is_announced;       /* the model hears of all that is submitted: announce.h */
        const char *layout;      /* of both pools; NULL for the default heap */
        struct audit *audit;     /* told of segments; NULL for none */
        struct records *records; /* counts the model's own memory; NULL for none */
};

struct peer {
        const struct peer_ops *ops;
        struct peer_figures figures;
};

struct peer_ops {
        const char *name;
        bool is_host;      /* addresses are the C library's affair, sizes may be too */
        bool is_model;     /* the pool under test */
        bool is_yardstick; /* the model's targets are multiples of its time */
        struct peer *(*make)(const struct peer_options *options);
        void (*unmake)(struct peer *peer); /* live blocks and all */

        /* Return: the address, 0 if there is no memory. */
        uint64_t (*alloc)(struct peer *peer, uint32_t stream, size_t size);
        void (*free)(struct peer *peer, uint64_t address, size_t size, uint32_t stream);

        /* What else the program does; NULL where the allocator does not look. */
        void (*order)(struct peer *peer, enum peer_order what, uint32_t a, uint32_t b);

        /* Does the allocator say of itself what @figures say of it? NULL where it says nothing. */
        bool (*agrees)(struct peer *peer);
};

extern const struct peer_ops peer_model_async;    /* blocks in the order of a stream */
extern const struct peer_ops peer_model_sync;     /* blocks usable anywhere */
extern const struct peer_ops peer_model_magazine; /* the same, by a magazine a stream */
extern const struct peer_ops peer_model;          /* as the program asks: for traces */
extern const struct peer_ops peer_torch;
extern const struct peer_ops peer_expand;
extern const struct peer_ops peer_bfc;
extern const struct peer_ops peer_cupy;
extern const struct peer_ops peer_rmm;
extern const struct peer_ops peer_exact;
extern const struct peer_ops peer_none; /* the benchmark by itself */
extern const struct peer_ops peer_host;
extern const struct peer_ops peer_host_small; /* a byte for each KiB asked for */

#endif
