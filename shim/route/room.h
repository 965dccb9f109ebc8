/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_ROUTE_ROOM_H
#define SP_ROUTE_ROOM_H

/*
 * Room -- does the device have what a pool is about to ask it for?
 *
 * A pool that finds out by asking has taken all there is by then, in vain: giving
 * that back takes a large device 10 ms and more. So before a pool grows by much, or
 * in several pieces, what is free is looked at, which takes some microseconds.
 *
 * The driver can call more free than it gives: of an H200 it refused the last
 * 17.4 GiB that it had just called free. Where a request wants nearly all, it is
 * asked for in one piece: that is refused at once, or granted.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/model.h>

#include "track/chunk.h"
#include "track/context.h"

/* What is to become of the growths in a list of actions. */
enum sp_verdict {
        SP_VERDICT_TRY,
        SP_VERDICT_REFUSE,  /* there is less; the model tries something else */
        SP_VERDICT_WHOLE,   /* there is hardly more: the model asks again, in one piece */
        SP_VERDICT_GIVE_UP, /* there is less, and would be if all that is idle came back */
};

/* Of one request; zero but for the first two. */
struct sp_room {
        spm_pool pool;
        size_t size;
        bool looked;     /* at its first growth */
        bool is_whole;   /* it asks in one piece */
        bool was_put;    /* the list that comes now asks so for the first time */
        bool began;      /* the last resort has been tried: what it brought is to stay */
        uint64_t asked;  /* bytes that the driver was asked for in one piece, */
        uint64_t unused; /* while so many were free */
};

/** sp_room_idle() - what is held of @device and nobody uses: of the pools, freed memory included,
 * and what the program had mapped itself. */
uint64_t sp_room_idle(const struct sp_device *device);

/**
 * sp_room_judge() - is there room for the growths in a list of the request's?
 *
 * Before the last resort is refused, the pools give back what is idle. A pool that is not one of
 * the current context's device is not looked after.
 */
enum sp_verdict sp_room_judge(struct sp_room *room, const struct spm_actions *actions,
                              const struct sp_spares *spares);

#endif
