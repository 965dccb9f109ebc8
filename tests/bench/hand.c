/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hand -- one thread's access to an allocator that several threads share
 */

#include "hand.h"

#include "device.h"
#include "measure.h"

static struct peer *make(const struct crew *crew, uint32_t streams)
{
        const struct peer_ops *ops = crew->kind->ops;
        struct peer_options options = crew->kind->options;
        struct peer *peer;
        uint32_t i;

        options.audit = crew->audit;
        peer = ops->make(&options);
        for (i = 1; i <= streams && ops->order; i++)
                ops->order(peer, PEER_STREAM_MADE, i, 1);
        return peer;
}

void crew_init(struct crew *crew, const struct crew_kind *kind, uint32_t streams,
               struct audit *audit)
{
        *crew = (struct crew){.kind = kind, .audit = audit};
        pthread_mutex_init(&crew->lock, NULL);
        if (!kind->is_private)
                crew->peer = make(crew, streams);
}

void crew_fini(struct crew *crew)
{
        if (crew->peer)
                crew->kind->ops->unmake(crew->peer);
        pthread_mutex_destroy(&crew->lock);
}

void hand_open(struct hand *hand, struct crew *crew, uint32_t stream)
{
        *hand = (struct hand){.crew = crew, .peer = crew->peer, .stream = stream};
        if (crew->kind->is_private)
                hand->peer = make(crew, stream);
        if (crew->kind->has_magazines)
                hand->magazine = pool_magazine((struct pool_peer *)hand->peer, stream);
}

void hand_close(struct hand *hand)
{
        hand->crew->refused += hand->refused;
        if (hand->magazine)
                spm_magazine_end(((struct pool_peer *)hand->peer)->model, hand->magazine);
        if (hand->crew->kind->is_private)
                hand->crew->kind->ops->unmake(hand->peer);
}

/* A block is in the audit for no longer than it is live: added after it was served, taken before
 * it is freed. */

static void note_alloc(struct crew *crew, uint64_t address, uint64_t size)
{
        pthread_mutex_lock(&crew->lock);
        audit_add(crew->audit, address, size);
        pthread_mutex_unlock(&crew->lock);
}

static void note_free(struct crew *crew, uint64_t address)
{
        pthread_mutex_lock(&crew->lock);
        audit_take(crew->audit, address);
        pthread_mutex_unlock(&crew->lock);
}

static void lock(struct crew *crew)
{
        if (crew->kind->has_lock)
                pthread_mutex_lock(&crew->lock);
}

static void unlock(struct crew *crew)
{
        if (crew->kind->has_lock)
                pthread_mutex_unlock(&crew->lock);
}

static uint64_t serve(struct hand *hand, uint64_t size)
{
        struct spm_allocation allocation;
        uint64_t address;

        if (hand->magazine && spm_magazine_alloc(hand->magazine, size, 0, &allocation))
                return allocation.address;
        lock(hand->crew);
        if (hand->magazine)
                address = pool_alloc((struct pool_peer *)hand->peer, hand->stream, size,
                                     hand->magazine);
        else
                address = hand->peer->ops->alloc(hand->peer, hand->stream, size);
        unlock(hand->crew);
        return address;
}

uint64_t hand_alloc(struct hand *hand, uint64_t size)
{
        struct crew *crew = hand->crew;
        uint64_t address = serve(hand, size);

        if (!address)
                hand->refused++;
        else if (crew->audit)
                note_alloc(crew, address, size);
        return address;
}

void hand_free(struct hand *hand, uint64_t address, uint64_t size)
{
        struct crew *crew = hand->crew;

        if (!address)
                return;
        if (crew->audit)
                note_free(crew, address);
        if (hand->magazine && spm_magazine_free(hand->magazine, address, 0, NULL))
                return;
        lock(crew);
        hand->peer->ops->free(hand->peer, address, size, hand->stream);
        unlock(crew);
}
