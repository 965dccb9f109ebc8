/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client order -- what a recorded program made sure comes before what (client.c)
 */
#include "client_order.h"

#include <stdlib.h>
#include <string.h>

#include "measure.h"

static uint32_t *clock_of(const struct order *order, uint32_t stream)
{
        return order->seen + (size_t)stream * order->streams;
}

static void join(const struct order *order, uint32_t *clock, const uint32_t *other)
{
        for (uint32_t i = 0; i < order->streams; i++)
                if (clock[i] < other[i])
                        clock[i] = other[i];
}

static uint32_t *copy(const struct order *order, const uint32_t *clock)
{
        uint32_t *other = must_malloc(order->streams * sizeof(*other));

        memcpy(other, clock, order->streams * sizeof(*other));
        return other;
}

void order_init(struct order *order, const struct trace *trace)
{
        uint32_t streams = trace->streams + 1;

        *order = (struct order){
                .streams = streams,
                .seen = must_calloc((size_t)streams * streams, sizeof(uint32_t)),
                .host = must_calloc(streams, sizeof(uint32_t)),
                .is_blocking = must_calloc(streams, sizeof(bool)),
        };
        order->is_blocking[0] = true;
}

void order_fini(struct order *order)
{
        for (uint32_t i = 0; i < order->events; i++)
                free(order->event[i]);
        free(order->event);
        free(order->is_blocking);
        free(order->host);
        free(order->seen);
}

void order_begin(struct order *order, uint32_t stream)
{
        uint32_t *clock = clock_of(order, stream);

        join(order, clock, order->host);
        if (stream && order->is_blocking[stream])
                join(order, clock, clock_of(order, 0));
        for (uint32_t i = 1; !stream && i < order->streams; i++)
                if (order->is_blocking[i])
                        join(order, clock, clock_of(order, i));
}

uint32_t order_step(struct order *order, uint32_t stream)
{
        return ++clock_of(order, stream)[stream];
}

uint32_t order_next(const struct order *order, uint32_t stream)
{
        return clock_of(order, stream)[stream] + 1;
}

bool order_is_before(const struct order *order, uint32_t from, uint32_t step, uint32_t stream)
{
        return clock_of(order, stream)[from] >= step;
}

uint32_t *order_view(const struct order *order, uint32_t stream)
{
        uint32_t *view = copy(order, order->host);

        if (stream != PEER_ANYWHERE)
                join(order, view, clock_of(order, stream));
        return view;
}

static void record(struct order *order, uint32_t event, uint32_t stream)
{
        if (event >= order->events) {
                uint32_t room = 2 * event + 16;

                order->event = must_realloc(order->event, room * sizeof(*order->event));
                while (order->events < room)
                        order->event[order->events++] = NULL;
        }
        order_begin(order, stream);
        free(order->event[event]);
        order->event[event] = copy(order, clock_of(order, stream));
}

static void sync_stream(struct order *order, uint32_t stream)
{
        /* Of a blocking stream only its own work is waited for. */
        if (!stream)
                order_begin(order, stream);
        join(order, order->host, clock_of(order, stream));
}

void order_do(struct order *order, const struct trace_event *event)
{
        uint32_t a = event->a, b = event->b;

        switch (event->order) {
        case PEER_STREAM_MADE:
                order->is_blocking[a] = !(b & 1);
                break;
        case PEER_RECORD:
                record(order, a, b);
                break;
        case PEER_WAIT:
                order_begin(order, b);
                join(order, clock_of(order, b), order->event[a]);
                break;
        case PEER_SYNC_STREAM:
                sync_stream(order, a);
                break;
        case PEER_SYNC_EVENT:
                join(order, order->host, order->event[a]);
                break;
        case PEER_SYNC_ALL:
                for (uint32_t i = 0; i < order->streams; i++)
                        join(order, order->host, clock_of(order, i));
                break;
        case PEER_EVENT_GONE:
        case PEER_STREAM_GONE:
        case PEER_LAUNCH:
                break;
        }
}
