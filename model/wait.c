/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wait -- which completion to wait for
 */

#include "wait.h"

#include "action.h"
#include "poll.h"
#include "state.h"

/* A pool that is this far ahead of its device waits: the driver's own free would have waited long
 * ago, and a device that has so much left to do is not kept waiting by it (O3). */
#define PRESSURE_MIN   ((uint64_t)64 << 20)
#define PRESSURE_SHARE 8 /* of the most that was in use */

#define FAR            32 /* stamps that are not done */

static void ask_wait(struct spm_actions *actions, struct spm_stamp_state *stamp)
{
        stamp->waited = true;
        spm_poll_action(actions, SPM_ACT_WAIT_HOST, stamp);
}

/* The oldest after the cursor. @of_free: only what was made for a free, and so tells it from the
 * work after it, as far as one thread submits that. Those that were asked for otherwise may not.
 * Nothing newer than when the request began to wait: while others free there is always more. */
static struct spm_stamp_state *next_in(const struct spm_stamp_list *stamps,
                                       const struct spm_request *request, bool of_free)
{
        struct spm_stamp_state *stamp = stamps->first;

        while (stamp && (stamp->status != SPM_STAMP_RECORDED || (of_free && stamp->bounded) ||
                         stamp->object.id <= request->batch))
                stamp = stamp->next;
        return stamp && stamp->object.id <= request->newest ? stamp : NULL;
}

static void begin_waiting(const struct spm_context_state *context,
                          const struct spm_stream_state *sole, struct spm_request *request)
{
        const struct spm_stamp_state *all = context->stamps.last;
        const struct spm_stamp_state *own = sole ? sole->stamps.last : NULL;

        if (request->newest)
                return;
        request->newest = all ? all->object.id : 0;
        if (own && own->object.id > request->newest)
                request->newest = own->object.id;
}

static bool wait_for(struct spm_stamp_state *stamp, struct spm_request *request,
                     struct spm_actions *actions)
{
        if (!stamp)
                return false;
        request->batch = stamp->object.id;
        ask_wait(actions, stamp);
        return true;
}

static bool wait_batch(const struct spm_want *want, struct spm_request *request,
                       struct spm_actions *actions)
{
        struct spm_context_state *context = spm_poll_owner(want);

        return wait_for(context ? spm_poll_next(context, request) : NULL, request, actions);
}

/* Freed to @stream, and out of reach. What is open is not: it is the sole stream's to have again,
 * as if it were ready, unless there is more of it than was ever in use. */
static uint64_t bytes_behind(const struct spm_pool_state *pool,
                             const struct spm_stream_state *stream)
{
        const struct spm_lane *lane = stream ? spm_lane_find(pool, stream->object.id) : NULL;
        uint64_t open = lane ? lane->bytes - lane->shut_bytes : 0;

        if (!lane)
                return 0;
        return lane->shut_bytes + (open > pool->used_high ? open - pool->used_high : 0);
}

bool spm_wait_ask_pressure(const struct spm_want *want, struct spm_request *request,
                           struct spm_actions *actions)
{
        const struct spm_pool_state *pool = want->pool;
        const struct spm_context_state *context = spm_poll_owner(want);
        const struct spm_stream_state *sole = spm_work_sole(pool->work);
        uint64_t limit = pool->config.pending_limit;
        uint64_t unseen;

        if (pool->config.kind == SPM_POOL_ASYNC || !context)
                return false;
        if (!limit)
                limit = pool->used_high / PRESSURE_SHARE > PRESSURE_MIN
                                ? pool->used_high / PRESSURE_SHARE
                                : PRESSURE_MIN;
        /* What cuMemFree() was told of, where the driver's own would have waited; cuMemFreeAsync()
         * would not. */
        begin_waiting(context, sole, request);
        unseen = bytes_behind(pool, context->line);
        if (sole && unseen + bytes_behind(pool, sole) > limit &&
            wait_for(next_in(&sole->stamps, request, true), request, actions))
                return true;
        return unseen > limit &&
               wait_for(next_in(&context->stamps, request, false), request, actions);
}

/* A stamp of the sole stream that is so far back that its device has long passed it, or is far
 * behind. NULL: there are not so many. */
static struct spm_stamp_state *far_back(const struct spm_stream_state *sole)
{
        struct spm_stamp_state *stamp = sole->stamps.last;
        unsigned int i;

        for (i = 0; i < FAR && stamp; i++)
                stamp = stamp->previous;
        return stamp && stamp->status == SPM_STAMP_RECORDED ? stamp : NULL;
}

/* A host that is far ahead would have to let its device come to an end of all that, and that would
 * be idle then until there is more. Whether it is, is asked once. */
bool spm_wait_ask_freed(const struct spm_want *want, struct spm_request *request,
                        struct spm_actions *actions)
{
        const struct spm_context_state *context = spm_poll_owner(want);
        const struct spm_stream_state *sole = spm_work_sole(want->pool->work);
        struct spm_stamp_state *far;
        struct spm_stamp_state *own;
        struct spm_stamp_state *all;

        if (!context)
                return false;
        begin_waiting(context, sole, request);
        far = far_back(sole);
        if (far && request->tries++)
                return false;
        if (far) {
                spm_poll_action(actions, SPM_ACT_POLL, far);
                return true;
        }
        own = next_in(&sole->stamps, request, true);
        all = next_in(&context->stamps, request, true);
        if (!own || (all && all->object.id < own->object.id))
                own = all;
        if (!wait_for(own, request, actions))
                return false;
        actions->item[actions->count - 1].brief = true;
        return true;
}

static void ask_sync(struct spm_actions *actions, const struct spm_context_state *context)
{
        spm_action_add(actions, SPM_ACT_SYNC_CONTEXT)->context = context->object.id;
}

/* What has been tried for a whole context. */
enum { CONTEXT_STAMPS = 2, CONTEXT_SYNCED };

/* Stamp what is not, wait for one batch after the other, and if no stamp is to be had, wait for
 * the whole context, once. */
static bool wait_context(struct spm_model *model, const struct spm_want *want,
                         struct spm_request *request, struct spm_actions *actions)
{
        struct spm_context_state *context = spm_poll_owner(want);

        struct spm_stamp_state *left = spm_poll_left(want->pool);

        if (!context || !want->pool->pending_bytes || request->tries == CONTEXT_SYNCED)
                return false;
        /* Before a stamp that is behind what was launched since. */
        if (left) {
                ask_wait(actions, left);
                return true;
        }
        if (context->unstamped && request->tries < CONTEXT_STAMPS) {
                request->tries++;
                if (spm_stamp_ask(model, context->line, true, actions))
                        return true;
        }
        if (wait_batch(want, request, actions))
                return true;
        if (!context->unstamped)
                return false;
        request->tries = CONTEXT_SYNCED;
        ask_sync(actions, context);
        return true;
}

/* The next lane after the cursor that has pending blocks and may be asked about. */
static struct spm_lane *next_lane(const struct spm_pool_state *pool, uint32_t cursor)
{
        struct spm_lane *found = NULL;
        struct spm_object *object;

        for (object = pool->lanes.head; object; object = spm_object_next(object)) {
                struct spm_lane *lane = (struct spm_lane *)object;

                if (object->id > cursor && lane->oldest &&
                    spm_context_may_be_named(lane->stream->context) &&
                    (!found || object->id < found->object.id))
                        found = lane;
        }
        return found;
}

/* What has been tried for the lane after the cursor. */
enum lane_try { NOTHING, STREAM_STAMP, CONTEXT_STAMP, LANE_TRIES };

static void ask_lane(struct spm_model *model, const struct spm_want *want,
                     const struct spm_lane *lane, struct spm_request *request,
                     struct spm_actions *actions)
{
        struct spm_stream_state *stream = lane->stream;
        bool foreign = stream->kind == SPM_STREAM_PER_THREAD && stream != want->stream;
        bool whole = stream->kind == SPM_STREAM_LINE;
        struct spm_stamp_state *stamp = spm_stamp_find_any(stream, lane->newest->positions[0]);
        uint32_t round = request->tries - request->tries % LANE_TRIES;

        if (!stamp && request->tries % LANE_TRIES < STREAM_STAMP && !foreign && !whole) {
                request->tries = round + STREAM_STAMP;
                if (spm_stamp_ask(model, stream, true, actions))
                        return;
        }
        if (!stamp && request->tries % LANE_TRIES < CONTEXT_STAMP) {
                request->tries = round + CONTEXT_STAMP;
                if (spm_stamp_ask(model, stream->context->line, true, actions))
                        return;
        }
        if (stamp)
                ask_wait(actions, stamp);
        else
                ask_sync(actions, stream->context);
        request->batch = stream->object.id;
        request->tries = round;
}

/* Twice round the lanes: a block that waits for several points moves on to another lane. */
static bool wait_lanes(struct spm_model *model, const struct spm_want *want,
                       struct spm_request *request, struct spm_actions *actions)
{
        struct spm_lane *lane = next_lane(want->pool, request->batch);

        if (!lane && request->tries < LANE_TRIES) {
                request->tries = LANE_TRIES;
                lane = next_lane(want->pool, 0);
        }
        if (!lane)
                return false;
        ask_lane(model, want, lane, request, actions);
        return true;
}

bool spm_wait_ask_host(struct spm_model *model, const struct spm_want *want,
                       struct spm_request *request, struct spm_actions *actions)
{
        if (!want->stream)
                return wait_context(model, want, request, actions);
        return wait_lanes(model, want, request, actions);
}
