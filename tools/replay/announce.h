/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ANNOUNCE_H
#define ANNOUNCE_H

/*
 * Announce -- what the model hears of submissions, as the shim tells it (shim/route/work.c)
 *
 * While one stream alone has work, the model serves what cuMemFree() freed before it is complete.
 * For a peer whose options say so; for any other these do nothing.
 */

#include "device.h"

/** announce_start() - before anything is submitted. */
void announce_start(struct pool_peer *peer);

/** announce_work() - the stream of that number is about to get work, or to wait for some. */
void announce_work(struct pool_peer *peer, uint32_t stream);

/** announce_wait() - the program has waited: several streams may have work no longer. */
void announce_wait(struct pool_peer *peer);

#endif
