/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer host -- the C library's malloc() and free(), as a yardstick
 *
 * Told to keep its memory and to map none apart, as a pool does: otherwise
 * large blocks would measure the kernel. It keeps its books in the memory that
 * it serves, so the sizes of a device pool show it outside of what it is made
 * for: pages are missed all the time. The second peer asks for a byte where the
 * workload asks for a KiB; that is what the C library is at its best.
 */

#include <malloc.h>
#include <stdlib.h>

#include "measure.h"
#include "peer.h"

static struct peer *make_any(const struct peer_ops *ops)
{
        struct peer *peer = must_calloc(1, sizeof(*peer));

        mallopt(M_MMAP_MAX, 0);
        mallopt(M_TRIM_THRESHOLD, -1);
        peer->ops = ops;
        return peer;
}

static struct peer *make(const struct peer_options *options)
{
        (void)options;
        return make_any(&peer_host);
}

static struct peer *make_small(const struct peer_options *options)
{
        (void)options;
        return make_any(&peer_host_small);
}

static void unmake(struct peer *peer)
{
        free(peer);
}

static uint64_t alloc(struct peer *peer, uint32_t stream, size_t size)
{
        (void)peer;
        (void)stream;
        return (uint64_t)(uintptr_t)malloc(size);
}

static uint64_t alloc_small(struct peer *peer, uint32_t stream, size_t size)
{
        return alloc(peer, stream, size / KIB + 1);
}

static void release(struct peer *peer, uint64_t address, size_t size, uint32_t stream)
{
        (void)peer;
        (void)size;
        (void)stream;
        free((void *)(uintptr_t)address);
}

const struct peer_ops peer_host = {
        .name = "glibc",
        .is_host = true,
        .make = make,
        .unmake = unmake,
        .alloc = alloc,
        .free = release,
};

const struct peer_ops peer_host_small = {
        .name = "glibc, bytes for KiB",
        .is_host = true,
        .is_yardstick = true,
        .make = make_small,
        .unmake = unmake,
        .alloc = alloc_small,
        .free = release,
};
