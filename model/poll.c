/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Poll -- which completion to ask about
 *
 * Synchronous blocks wait for their context, so that stamps of the context
 * are all there is to ask, or for its sole stream (work.h). Asynchronous blocks wait for streams: a
 * stamp of the stream, else one of its context, else the stream itself.
 */

#include "poll.h"

#include "action.h"
#include "state.h"

#define POLLS_MAX 8

struct spm_context_state *spm_poll_owner(const struct spm_want *want)
{
        struct spm_context_state *context =
                want->stream ? want->stream->context : want->pool->context;

        return context && spm_context_may_be_named(context) ? context : NULL;
}

struct spm_stamp_state *spm_poll_next(const struct spm_context_state *context,
                                      const struct spm_request *request)
{
        struct spm_stamp_state *stamp;

        for (stamp = context->stamps.first; stamp; stamp = stamp->next)
                if (stamp->status == SPM_STAMP_RECORDED && stamp->object.id > request->batch)
                        return stamp;
        return NULL;
}

void spm_poll_action(struct spm_actions *actions, enum spm_action_kind kind,
                     const struct spm_stamp_state *stamp)
{
        struct spm_action *action = spm_action_add(actions, kind);

        action->stamp = stamp->object.id;
        action->context = stamp->stream->context->object.id;
        action->bounded = stamp->bounded;
}

static void ask_stream(struct spm_actions *actions, const struct spm_stream_state *stream)
{
        struct spm_action *action = spm_action_add(actions, SPM_ACT_POLL_STREAM);

        action->stream = stream->object.id;
        action->context = stream->context->object.id;
}

struct spm_stamp_state *spm_poll_left(const struct spm_pool_state *pool)
{
        const struct spm_object *object;

        for (object = pool->lanes.head; object; object = spm_object_next(object)) {
                const struct spm_lane *lane = (const struct spm_lane *)object;
                struct spm_stamp_state *stamp = NULL;

                if (lane->stream->kind != SPM_STREAM_LINE && lane->oldest &&
                    spm_context_may_be_named(lane->stream->context))
                        stamp = spm_stamp_find(lane->stream, lane->newest->positions[0]);
                if (stamp && !stamp->waited)
                        return stamp;
        }
        return NULL;
}

static bool poll_batch(struct spm_model *model, const struct spm_want *want,
                       struct spm_request *request, struct spm_actions *actions)
{
        struct spm_context_state *context = spm_poll_owner(want);
        struct spm_stamp_state *left = request->tries ? NULL : spm_poll_left(want->pool);
        struct spm_stamp_state *asked = NULL;
        struct spm_stamp_state *stamp;

        if (!context || !want->pool->pending_bytes || request->tries >= POLLS_MAX)
                return false;
        if (left)
                spm_poll_action(actions, SPM_ACT_POLL, left);
        stamp = context->stamps.first;
        if (request->tries++ && stamp && stamp->object.id <= request->batch)
                return false;
        if (context->unstamped && request->tries == 1)
                asked = spm_stamp_ask(model, context->line, true, actions);
        stamp = spm_poll_next(context, request);
        if (!stamp)
                stamp = asked;
        if (!stamp)
                return left != NULL;
        request->batch = stamp->object.id;
        spm_poll_action(actions, SPM_ACT_POLL, stamp);
        return true;
}

/* A stamp of the whole context, recorded or asked for, that completes all the block waits for. */
static struct spm_stamp_state *whole_stamp(const struct spm_model *model,
                                           const struct spm_context_state *context,
                                           const struct spm_block *block)
{
        struct spm_stamp_state *stamp;
        unsigned int i;

        for (stamp = context->stamps.first; stamp; stamp = stamp->next) {
                for (i = 0; i < block->dep_count; i++)
                        if (!spm_clock_covers(&stamp->clock, spm_block_dep(block, i)) &&
                            !spm_point_is_done(model, spm_block_dep(block, i), false))
                                break;
                if (i == block->dep_count)
                        return stamp;
        }
        return NULL;
}

/* A block that waits for several points, or for its whole context. */
static bool poll_whole(struct spm_model *model, struct spm_context_state *context,
                       const struct spm_block *block, struct spm_actions *actions)
{
        struct spm_stamp_state *stamp = whole_stamp(model, context, block);

        if (spm_actions_room(actions) < 2)
                return false;
        if (!stamp)
                stamp = spm_stamp_ask(model, context->line, true, actions);
        if (!stamp)
                return false;
        spm_poll_action(actions, SPM_ACT_POLL, stamp);
        return true;
}

/* The block whose completion would serve the request, or help. */
static const struct spm_block *wanted_block(const struct spm_lane *lane,
                                            const struct spm_want *want)
{
        if (lane->stream->kind == SPM_STREAM_LINE)
                return lane->oldest;
        if (want->klass != SPM_NO_CLASS && lane->slots[want->klass])
                return lane->slots[want->klass];
        return spm_bins_at_least(spm_fit_open(lane, want), want->size);
}

static bool poll_lane(struct spm_model *model, const struct spm_want *want,
                      const struct spm_lane *lane, struct spm_actions *actions)
{
        const struct spm_stream_state *stream = lane->stream;
        const struct spm_block *block = wanted_block(lane, want);
        const struct spm_stamp_state *stamp;

        if (!block || stream == want->stream || !spm_context_may_be_named(stream->context))
                return false;
        if (block->dep_count > 1 || stream->kind == SPM_STREAM_LINE)
                return poll_whole(model, stream->context, block, actions);
        stamp = spm_stamp_find_any(stream, block->positions[0]);
        if (stamp) {
                spm_poll_action(actions, SPM_ACT_POLL, stamp);
                return true;
        }
        /* Another thread's stream has no name here (F5), and a retired one has none at all. */
        if (stream->retired || stream->kind == SPM_STREAM_PER_THREAD)
                return false;
        ask_stream(actions, stream);
        return true;
}

static bool poll_streams(struct spm_model *model, const struct spm_want *want,
                         struct spm_request *request, struct spm_actions *actions)
{
        struct spm_object *object;
        unsigned int asked = 0;

        if (!want->pool->opportunistic || request->tries++)
                return false;
        for (object = want->pool->lanes.head; object && asked < POLLS_MAX;
             object = spm_object_next(object))
                asked += poll_lane(model, want, (struct spm_lane *)object, actions);
        return asked != 0;
}

/* Under R1: the oldest stamp of the sole stream, and the next as long as they turn out to be done.
 */
static bool poll_own(const struct spm_want *want, struct spm_request *request,
                     struct spm_actions *actions)
{
        const struct spm_stamp_state *stamp = want->stream->stamps.first;

        if (!want->pool->pending_bytes || request->tries++ >= POLLS_MAX)
                return false;
        while (stamp && stamp->status != SPM_STAMP_RECORDED)
                stamp = stamp->next;
        if (!stamp || stamp->object.id == request->batch)
                return false;
        request->batch = stamp->object.id;
        spm_poll_action(actions, SPM_ACT_POLL, stamp);
        return true;
}

bool spm_poll_ask(struct spm_model *model, const struct spm_want *want, struct spm_request *request,
                  struct spm_actions *actions)
{
        if (want->pool->config.kind == SPM_POOL_ASYNC)
                return poll_streams(model, want, request, actions);
        if (want->stream)
                return poll_own(want, request, actions);
        return poll_batch(model, want, request, actions);
}

/* Whether all that a lane waits for is done. */
static bool poll_all(struct spm_model *model, const struct spm_lane *lane,
                     struct spm_actions *actions)
{
        struct spm_stream_state *stream = lane->stream;
        struct spm_stamp_state *stamp;

        if (!lane->oldest || spm_actions_room(actions) < 2 ||
            !spm_context_may_be_named(stream->context))
                return false;
        if (stream->kind == SPM_STREAM_LINE)
                return poll_whole(model, stream->context, lane->newest, actions);
        if (stream->retired || stream->kind == SPM_STREAM_PER_THREAD) {
                stamp = spm_stamp_find_any(stream, lane->oldest->positions[0]);
                if (stamp)
                        spm_poll_action(actions, SPM_ACT_POLL, stamp);
                return stamp != NULL;
        }
        ask_stream(actions, stream);
        return true;
}

/*
 * First whether the streams that have freed something are idle, which answers for all of it. Then
 * the oldest stamp of the asking stream that says something, and the next one as long as they turn
 * out to be done; what was freed since the last one is stamped, so that there is something to ask
 * about next time.
 */
bool spm_poll_ask_all(struct spm_model *model, const struct spm_want *want,
                      struct spm_request *request, struct spm_actions *actions)
{
        struct spm_stream_state *stream = want->stream;
        const struct spm_stamp_state *stamp;
        const struct spm_object *object;
        const struct spm_lane *lane;
        unsigned int asked = 0;

        if (!stream || !want->pool->opportunistic || request->tries >= POLLS_MAX)
                return false;
        if (!request->tries++) {
                for (object = want->pool->lanes.head; object && asked < POLLS_MAX;
                     object = spm_object_next(object))
                        asked += poll_all(model, (const struct spm_lane *)object, actions);
                return asked != 0;
        }
        lane = spm_lane_find(want->pool, stream->object.id);
        if (!lane || !lane->oldest || !spm_stream_may_be_named(stream))
                return false;
        if (request->tries == 2 && spm_stamp_is_due(stream))
                spm_stamp_ask(model, stream, true, actions);
        stamp = spm_stamp_find_any(stream, lane->oldest->positions[0]);
        if (!stamp || stamp->object.id == request->batch)
                return actions->count != 0;
        request->batch = stamp->object.id;
        spm_poll_action(actions, SPM_ACT_POLL, stamp);
        return true;
}
