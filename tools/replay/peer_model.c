/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer model -- the pool under test
 *
 * One model with one context and two pools, configured as the shim does it.
 * The device that it believes in is that of device.h.
 */

#include <stdlib.h>
#include <streampool/model.h>

#include "announce.h"
#include "device.h"
#include "measure.h"
#include "records.h"

/* A request ends after a handful of steps; the shim does without the pool after so many. */
#define STEPS_MAX 1000

/* life */

static spm_stream add_stream(struct pool_peer *peer, enum spm_stream_kind kind)
{
        spm_stream stream;

        device_must(spm_stream_add(peer->model, peer->context, kind, &stream), "a stream");
        *device_number(&peer->streams, peer->stream_count++) = stream;
        *device_number(&peer->last, stream) = 0;
        return stream;
}

static void add_pools(struct pool_peer *peer)
{
        bool is_own = !peer->options.has_device;
        struct spm_pool_config async = {
                .kind = SPM_POOL_ASYNC,
                .provider = is_own ? SPM_PROVIDER_MODEL : SPM_PROVIDER_CALLER,
                .max_size = is_own ? peer->options.capacity : 0,
                .keep = peer->options.keep,
                .growth = peer->options.growth,
                .range_base = is_own ? 0 : device_range(SPM_POOL_ASYNC),
                .range_size = is_own ? 0 : DEVICE_RANGE,
        };
        struct spm_pool_config sync = async;

        sync.kind = SPM_POOL_SYNC;
        sync.context = peer->context;
        sync.range_base = is_own ? 0 : device_range(SPM_POOL_SYNC);
        sync.large_size = peer->options.large_align ? MIB : 0;
        sync.large_align = peer->options.large_align;
        device_must(spm_pool_create(peer->model, &async, &peer->async), "a pool");
        device_must(spm_pool_create(peer->model, &sync, &peer->sync), "a pool");
}

static void lay_out(struct pool_peer *peer, spm_pool pool)
{
        struct spm_layout layout;
        struct spm_actions actions;

        if (!peer->options.layout)
                return;
        device_must(spm_layout_parse(peer->options.layout, &layout, NULL), "a layout");
        device_must(spm_pool_install(peer->model, pool, &layout, NULL, &actions), "a layout");
}

static struct pool_peer *make_any(const struct peer_ops *ops, const struct peer_options *options)
{
        struct pool_peer *peer = must_calloc(1, sizeof(*peer));
        struct spm_config config = {.fence = device_fence()};

        if (options->records) {
                config.alloc = records_new;
                config.free = records_free;
                config.user = options->records;
        }

        peer->peer.ops = ops;
        peer->options = *options;
        peer->next_address = 4 * DEVICE_RANGE;
        device_must(spm_model_new(&config, &peer->model), "a model");
        device_must(spm_context_add(peer->model, 0, &peer->context), "a context");
        add_stream(peer, SPM_STREAM_LEGACY);
        add_pools(peer);
        lay_out(peer, peer->async);
        lay_out(peer, peer->sync);
        announce_start(peer);
        return peer;
}

static struct peer *make_async(const struct peer_options *options)
{
        return &make_any(&peer_model_async, options)->peer;
}

static struct peer *make_magazine(const struct peer_options *options)
{
        return &make_any(&peer_model_magazine, options)->peer;
}

static struct peer *make_sync(const struct peer_options *options)
{
        struct pool_peer *peer = make_any(&peer_model_sync, options);

        peer->is_sync = true;
        return &peer->peer;
}

static struct peer *make(const struct peer_options *options)
{
        return &make_any(&peer_model, options)->peer;
}

/* blocks */

uint64_t pool_alloc(struct pool_peer *peer, uint32_t stream, size_t size,
                    struct spm_magazine *magazine)
{
        bool is_sync = peer->is_sync || stream == PEER_ANYWHERE;
        struct spm_request request = {
                .pool = is_sync ? peer->sync : peer->async,
                .stream = is_sync ? 0 : (spm_stream)*device_number(&peer->streams, stream),
                .size = size,
                .may_wait = true,
                .magazine = magazine,
        };
        struct spm_allocation allocation;
        struct spm_actions actions;
        enum spm_status status;
        unsigned int steps = 0;

        do {
                status = spm_alloc(peer->model, &request, &allocation, &actions);
                device_perform(peer, &actions, &request);
        } while (status == SPM_AGAIN && ++steps < STEPS_MAX);
        /* No shelf of its layout takes it, or the shim would go on without the pool. */
        if (status == SPM_E_OUT_OF_MEMORY || status == SPM_E_TOO_BIG || status == SPM_AGAIN)
                return 0;
        device_must(status, "an allocation");
        return allocation.address;
}

static uint64_t alloc(struct peer *base, uint32_t stream, size_t size)
{
        return pool_alloc((struct pool_peer *)base, stream, size, NULL);
}

void pool_free(struct pool_peer *peer, uint64_t address, uint32_t stream)
{
        bool is_sync = peer->is_sync || stream == PEER_ANYWHERE;
        spm_stream where = is_sync ? 0 : (spm_stream)*device_number(&peer->streams, stream);
        struct spm_actions actions;

        device_must(spm_free(peer->model, address, 0, is_sync ? SPM_FREE_SYNC : SPM_FREE_ASYNC,
                             where, NULL, &actions),
                    "a free");
        device_perform(peer, &actions, NULL);
}

static void release(struct peer *base, uint64_t address, size_t size, uint32_t stream)
{
        (void)size;
        pool_free((struct pool_peer *)base, address, stream);
}

/* magazines: one a stream, made when it is first used */

struct spm_magazine *pool_magazine(struct pool_peer *peer, uint32_t stream)
{
        struct spm_magazine *magazine;

        device_must(spm_magazine_new(peer->model, peer->async,
                                     (spm_stream)*device_number(&peer->streams, stream), &magazine),
                    "a magazine");
        return magazine;
}

static struct spm_magazine *magazine_of(struct pool_peer *peer, uint32_t stream)
{
        uint64_t *slot = device_number(&peer->magazines, stream);

        if (!*slot)
                *slot = (uintptr_t)pool_magazine(peer, stream);
        return (struct spm_magazine *)(uintptr_t)*slot;
}

static void end_magazine(struct pool_peer *peer, uint32_t stream)
{
        uint64_t *slot = device_number(&peer->magazines, stream);

        if (*slot)
                spm_magazine_end(peer->model, (struct spm_magazine *)(uintptr_t)*slot);
        *slot = 0;
}

static void unmake(struct peer *base)
{
        struct pool_peer *peer = (struct pool_peer *)base;
        uint32_t i;

        for (i = 0; i < peer->stream_count; i++)
                end_magazine(peer, i);
        spm_model_free(peer->model);
        free(peer->magazines.value);
        free(peer->streams.value);
        free(peer->events.value);
        free(peer->last.value);
        free(peer->stamped.value);
        free(peer);
}

static uint64_t alloc_from_magazine(struct peer *base, uint32_t stream, size_t size)
{
        struct pool_peer *peer = (struct pool_peer *)base;
        struct spm_magazine *magazine = magazine_of(peer, stream);
        struct spm_allocation allocation;

        if (spm_magazine_alloc(magazine, size, 0, &allocation))
                return allocation.address;
        return pool_alloc(peer, stream, size, magazine);
}

static void release_into_magazine(struct peer *base, uint64_t address, size_t size, uint32_t stream)
{
        struct pool_peer *peer = (struct pool_peer *)base;

        (void)size;
        if (!spm_magazine_free(magazine_of(peer, stream), address, 0, NULL))
                pool_free(peer, address, stream);
}

/* order */

static void record_event(struct pool_peer *peer, uint32_t event, uint32_t stream)
{
        struct spm_scope where = {SPM_SCOPE_STREAM,
                                  (uint32_t)*device_number(&peer->streams, stream)};
        uint64_t *slot = device_number(&peer->events, event);
        struct spm_actions actions;
        struct spm_ticket ticket;
        spm_event made;

        if (!*slot) {
                device_must(spm_event_add(peer->model, &made), "an event");
                *slot = made;
        }
        device_must(spm_record_begin(peer->model, (spm_event)*slot, where, &ticket, &actions),
                    "a record");
        device_perform(peer, &actions, NULL);
        spm_record_end(peer->model, &ticket, true);
}

static void wait_event(struct pool_peer *peer, uint32_t event, uint32_t stream)
{
        struct spm_scope waiter = {SPM_SCOPE_STREAM,
                                   (uint32_t)*device_number(&peer->streams, stream)};
        struct spm_ticket ticket;

        announce_work(peer, stream);
        device_must(spm_wait_begin(peer->model, waiter,
                                   (spm_event)*device_number(&peer->events, event), &ticket),
                    "a wait");
        spm_wait_end(peer->model, &ticket, true);
}

static void retire(struct pool_peer *peer, uint32_t stream)
{
        struct spm_actions actions;

        end_magazine(peer, stream);
        device_must(spm_stream_retire(peer->model,
                                      (spm_stream)*device_number(&peer->streams, stream), &actions),
                    "a stream's end");
        device_perform(peer, &actions, NULL);
}

static void synchronize(struct pool_peer *peer, enum spm_scope_kind kind, uint64_t id)
{
        device_observe(peer, (struct spm_scope){kind, (uint32_t)id}, SPM_SYNC_WAIT, true);
        announce_wait(peer);
}

static void order(struct peer *base, enum peer_order what, uint32_t a, uint32_t b)
{
        struct pool_peer *peer = (struct pool_peer *)base;

        switch (what) {
        case PEER_STREAM_MADE:
                add_stream(peer, b & 1 ? SPM_STREAM_NON_BLOCKING : SPM_STREAM_BLOCKING);
                break;
        case PEER_STREAM_GONE:
                retire(peer, a);
                break;
        case PEER_RECORD:
                record_event(peer, a, b);
                break;
        case PEER_WAIT:
                wait_event(peer, a, b);
                break;
        case PEER_EVENT_GONE:
                device_must(
                        spm_event_remove(peer->model, (spm_event)*device_number(&peer->events, a)),
                        "an event's end");
                break;
        case PEER_SYNC_STREAM:
                synchronize(peer, SPM_SCOPE_STREAM, *device_number(&peer->streams, a));
                break;
        case PEER_SYNC_EVENT:
                synchronize(peer, SPM_SCOPE_EVENT, *device_number(&peer->events, a));
                break;
        case PEER_SYNC_ALL:
                synchronize(peer, SPM_SCOPE_CONTEXT, peer->context);
                break;
        case PEER_LAUNCH:
                announce_work(peer, a);
                peer->kernels += b;
                *device_number(&peer->last, (uint32_t)*device_number(&peer->streams, a)) =
                        peer->kernels;
                break;
        }
}

/* figures */

static bool agrees(struct peer *base)
{
        const struct pool_peer *peer = (struct pool_peer *)base;
        struct spm_stats async, sync;

        device_must(spm_stats(peer->model, peer->async, &async), "figures");
        device_must(spm_stats(peer->model, peer->sync, &sync), "figures");
        return !peer->options.has_device ||
               (async.reserved_current + sync.reserved_current == base->figures.reserved &&
                async.grows + sync.grows == base->figures.grows &&
                async.releases + sync.releases == base->figures.releases &&
                async.moves + sync.moves == base->figures.moves);
}

const struct peer_ops peer_model_async = {
        .name = "streampool async",
        .is_model = true,
        .make = make_async,
        .unmake = unmake,
        .alloc = alloc,
        .free = release,
        .order = order,
        .agrees = agrees,
};

const struct peer_ops peer_model_magazine = {
        .name = "streampool magazine",
        .is_model = true,
        .make = make_magazine,
        .unmake = unmake,
        .alloc = alloc_from_magazine,
        .free = release_into_magazine,
        .order = order,
};

const struct peer_ops peer_model_sync = {
        .name = "streampool sync",
        .is_model = true,
        .make = make_sync,
        .unmake = unmake,
        .alloc = alloc,
        .free = release,
        .order = order,
        .agrees = agrees,
};

const struct peer_ops peer_model = {
        .name = "streampool",
        .is_model = true,
        .make = make,
        .unmake = unmake,
        .alloc = alloc,
        .free = release,
        .order = order,
        .agrees = agrees,
};
