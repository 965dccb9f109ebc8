/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer none -- the benchmark by itself
 *
 * Serves addresses that it never sees again. What a workload costs with it is
 * what the workload costs, and is in the figures of all others.
 */

#include <stdlib.h>

#include "arena.h"
#include "measure.h"

struct none {
        struct peer peer;
        uint64_t next;
};

static struct peer *make(const struct peer_options *options)
{
        struct none *none = must_calloc(1, sizeof(*none));

        (void)options;
        none->peer.ops = &peer_none;
        none->next = GIB;
        return &none->peer;
}

static void unmake(struct peer *peer)
{
        free(peer);
}

static uint64_t alloc(struct peer *peer, uint32_t stream, size_t size)
{
        struct none *none = (struct none *)peer;
        uint64_t address = none->next;

        (void)stream;
        none->next += peer_round(size, KIB);
        return address;
}

static void release(struct peer *peer, uint64_t address, size_t size, uint32_t stream)
{
        (void)peer;
        (void)address;
        (void)size;
        (void)stream;
}

const struct peer_ops peer_none = {
        .name = "nobody",
        .is_yardstick = true,
        .make = make,
        .unmake = unmake,
        .alloc = alloc,
        .free = release,
};
