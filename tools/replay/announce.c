/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Announce -- what the model hears of submissions, as the shim tells it (shim/route/work.c)
 */

#include "announce.h"

#define GAP_MOST 1024 /* waits of the program between two counts of its streams */

void announce_start(struct pool_peer *peer)
{
        struct spm_actions actions;

        if (!peer->options.is_announced)
                return;
        device_must(spm_context_watch(peer->model, peer->context, true, &actions), "a watch");
        device_perform(peer, &actions, NULL);
}

void announce_work(struct pool_peer *peer, uint32_t stream)
{
        struct spm_actions actions;

        if (!peer->options.is_announced)
                return;
        device_must(spm_submit(peer->model, (spm_stream)*device_number(&peer->streams, stream),
                               &actions),
                    "a submission");
        device_perform(peer, &actions, NULL);
}

/* In longer and longer intervals, as a program may always use several. */
void announce_wait(struct pool_peer *peer)
{
        struct spm_actions actions;

        if (!peer->options.is_announced || !spm_context_is_crowded(peer->model, peer->context) ||
            peer->crowded_waits++ < peer->recount_gap)
                return;
        peer->crowded_waits = 0;
        if (peer->recount_gap < GAP_MOST)
                peer->recount_gap = 2 * peer->recount_gap + 1;
        device_must(spm_context_recount(peer->model, peer->context, &actions), "a count");
        device_perform(peer, &actions, NULL);
}
