/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work sole -- what the one stream that has work may be served at once
 *
 * Which stream that is, what it may have before it is complete, and what is
 * asked for so that this is in order: before the stream is given more work, and
 * before another is given any.
 *
 * R1. A synchronous block that is freed while one stream is the sole one waits
 * for a point of that stream, in its lane, and is open to it: what the stream
 * is given next runs after everything that could touch the block. The host
 * touches device memory only by such work. So the block can be served again at
 * once, until a second stream is announced; by then that one is behind the
 * points of all blocks that were served early (ask_fence()).
 *
 * That wait must not be one for a kernel launched after the free: the program
 * may have meant the second stream to end it, and cuMemFree would not have
 * waited for it. It would have for one launched before; cuMemFreeAsync would
 * not, so what that freed is never served early. So before the first submission
 * after a free either the free is stamped, or the block is barred: it is served
 * when it is complete, as under R2. A stamp costs a driver call, so it takes some
 * memory to be worth it, or a block that was served early in the meantime. And it
 * takes a device that is behind: one that keeps up has completed what was freed a
 * little earlier, and a batch of frees costs one stamp. So all this is done only
 * for a while after a request has found nothing complete, when a busy device does
 * not notice what the host spends on stamps; otherwise the context is as under R2.
 *
 * The proof in short: let b be a block served early, and w work that its old
 * owner submitted. w was submitted before the free of b, to the sole stream s
 * or to its partner. Work x of the new owner comes after the allocation. Is x
 * on s or its partner, it runs after w by stream order, or by the order of the
 * legacy stream. Else its stream was announced before x was submitted, and at
 * the latest then it was put behind a stamp of s that was recorded
 * after the free of b, hence behind w.
 */

#include "action.h"
#include "front.h"
#include "limbo.h"
#include "pool.h"
#include "stamp.h"
#include "state.h"
#include "subject.h"
#include "work.h"

#define EAGER  64 /* stamps */
#define BEHIND 8  /* stamps: so many are not done while a device is behind */

/* The stream that all work is on, or as good as on. Another thread's own stream can be stamped by
 * that thread only (F5). */
static struct spm_stream_state *find_sole(const struct spm_model *model,
                                          const struct spm_context_state *context)
{
        const struct spm_work_count *busy = &context->work.busy;
        struct spm_stream_state *legacy = context->legacy_stream;
        struct spm_stream_state *first = spm_subject_usable(model, busy->first);

        if (!context->work.adopted || !context->work.alone || busy->per_thread ||
            !spm_context_may_be_named(context))
                return NULL;
        if (busy->streams == 1)
                return first;
        if (busy->streams == 2 && busy->blocking == 1 && legacy &&
            (busy->first == legacy->object.id || busy->second == legacy->object.id))
                return legacy;
        return NULL;
}

static void set_sole(struct spm_work *work, struct spm_stream_state *sole)
{
        work->sole = sole;
        work->eager = EAGER;
}

void spm_work_find_sole(const struct spm_model *model, struct spm_context_state *context)
{
        /* A sole stream is one of a few, so that what it was stays true. */
        if (!context->work.sole)
                set_sole(&context->work, find_sole(model, context));
}

/* The legacy stream is behind its partner; behind one that was destroyed it need not be. */
bool spm_work_relies_on(const struct spm_stream_state *stream)
{
        const struct spm_stream_state *sole = stream->context->work.sole;

        return sole && (sole == stream ||
                        (sole->kind == SPM_STREAM_LEGACY && spm_stream_waits_for_legacy(stream)));
}

void spm_work_served(struct spm_context_state *context, const struct spm_block *block)
{
        struct spm_work *work = &context->work;

        if (work->early < block->positions[0])
                work->early = block->positions[0];
}

static bool is_early_stamped(const struct spm_work *work)
{
        return work->early <= work->sole->stamped || work->early <= work->sole->done_poll;
}

/* The latest of them is the one that is needed; its predecessor may be thinned out. */
static struct spm_stamp_state *ask_guard(struct spm_model *model, struct spm_stream_state *sole,
                                         struct spm_actions *actions)
{
        struct spm_stamp_state *before = sole->stamps.last;
        struct spm_stamp_state *stamp = spm_stamp_ask(model, sole, false, actions);

        while (before && !before->guards)
                before = before->previous;
        if (stamp && before)
                before->guards = false;
        if (stamp)
                stamp->guards = true;
        return stamp;
}

/* Blocks that the sole stream may have now, freed after its point @from: it may not. */
static void bar(struct spm_context_state *context, uint64_t from)
{
        struct spm_lane *lane;
        struct spm_block *block;

        for (lane = context->work.sole->lanes; lane; lane = lane->next) {
                if (lane->pool->config.kind != SPM_POOL_SYNC)
                        continue;
                for (block = lane->newest; block && block->positions[0] > from;
                     block = block->older)
                        if (block->open)
                                spm_limbo_bar(lane, block);
        }
}

static bool is_worth_a_stamp(const struct spm_model *model, const struct spm_work *work)
{
        const struct spm_lane *lane;
        const struct spm_block *block;
        size_t bytes = 0;

        if (!is_early_stamped(work))
                return true;
        for (lane = work->sole->lanes; lane; lane = lane->next) {
                if (lane->pool->config.kind != SPM_POOL_SYNC)
                        continue;
                for (block = lane->newest; block && block->positions[0] > work->sole->stamped;
                     block = block->older) {
                        if (block->open)
                                bytes += block->size;
                        if (bytes >= model->config.guard_bytes)
                                return true;
                }
        }
        return false;
}

void spm_work_missed(struct spm_model *model, struct spm_context_state *context)
{
        if (!context->work.sole)
                return;
        context->work.eager = EAGER;
        spm_work_note(model, context);
}

/* Not the newest stamp of the sole stream, but one that a device which keeps up has passed. */
static struct spm_stamp_state *probe(const struct spm_work *work)
{
        struct spm_stamp_state *stamp = work->sole->stamps.last;
        unsigned int i;

        for (i = 0; i < BEHIND && stamp; i++)
                stamp = stamp->previous;
        return stamp && stamp->status == SPM_STAMP_RECORDED ? stamp : NULL;
}

/*
 * One eager stamp less. Before the last is spent the device is asked: if it is behind, what would
 * be freed as under R2 would be out of reach for long.
 */
static void spend(const struct spm_model *model, struct spm_work *work, struct spm_actions *actions)
{
        const struct spm_stamp_state *probed = spm_stamp_pending(model, work->probed);
        struct spm_action *action;

        if (work->eager != 1) {
                work->eager -= work->eager != 0;
        } else if (probed || work->probed || !probe(work) || !spm_actions_room(actions)) {
                work->eager = probed ? EAGER : 0;
                work->probed = 0;
        } else {
                action = spm_action_add(actions, SPM_ACT_POLL);
                action->context = work->sole->context->object.id;
                action->stamp = work->probed = probe(work)->object.id;
        }
}

/* The sole stream is about to get work: what was freed before is told apart from it, or barred. */
static void guard(struct spm_model *model, struct spm_context_state *context,
                  struct spm_actions *actions)
{
        struct spm_work *work = &context->work;

        if (is_worth_a_stamp(model, work) && ask_guard(model, work->sole, actions))
                spend(model, work, actions);
        else
                bar(context, work->sole->stamped);
}

/* What was served early is in use already: for that the host waits, as cuMemFree would have. */
void spm_work_unguarded(struct spm_stream_state *stream, struct spm_actions *actions)
{
        struct spm_context_state *context = stream->context;
        struct spm_work *work = &context->work;

        if (work->sole != stream)
                return;
        bar(context, stream->stamped);
        if (!is_early_stamped(work))
                spm_stamp_do_without(stream, actions);
}

/*
 * @waiter is put behind the stamp, and nobody else: a wait of the whole context would stand in the
 * other streams, too, where it can come to be in front of what they share with @waiter, and a
 * synchronous copy does not heed it (U1: on an H200 with driver 580 cuMemcpyHtoD goes ahead of what
 * cuCtxWaitEvent has put before it). Nor is a copy trusted to heed a wait of a default stream, so
 * for those, and for whoever is not announced, the host waits; it does so for what cuMemFree would
 * have waited for.
 */
static void ask_fence(struct spm_model *model, struct spm_context_state *context,
                      struct spm_stream_state *sole, const struct spm_stream_state *waiter,
                      struct spm_actions *actions)
{
        struct spm_stamp_state *stamp = spm_stamp_find(sole, context->work.fence);
        bool on_device = waiter && (waiter->kind == SPM_STREAM_BLOCKING ||
                                    waiter->kind == SPM_STREAM_NON_BLOCKING);
        struct spm_action *action;

        if (!stamp)
                stamp = spm_stamp_ask(model, sole, true, actions);
        action = spm_action_add(actions, !stamp      ? SPM_ACT_SYNC_CONTEXT
                                         : on_device ? SPM_ACT_WAIT_FENCE
                                                     : SPM_ACT_WAIT_HOST);
        action->context = context->object.id;
        if (!stamp)
                return;
        stamp->guards = true;
        action->stamp = stamp->object.id;
        if (on_device)
                action->stream = waiter->object.id;
}

/* Everybody who comes asks for the wait, until it shows that it is of no use any more. */
static void keep_fence(struct spm_model *model, struct spm_context_state *context,
                       const struct spm_stream_state *waiter, struct spm_actions *actions)
{
        struct spm_work *work = &context->work;
        struct spm_stream_state *sole = spm_subject_stream(model, work->fenced);

        if (!sole || sole->done_poll >= work->fence)
                work->fenced = 0;
        else if (spm_context_may_be_named(context))
                ask_fence(model, context, sole, waiter, actions);
}

void spm_work_end_sole(struct spm_model *model, struct spm_context_state *context,
                       const struct spm_stream_state *waiter, struct spm_actions *actions)
{
        struct spm_work *work = &context->work;

        if (work->sole) {
                bar(context, 0);
                if (work->early > work->sole->done_poll) {
                        work->fenced = work->sole->object.id;
                        work->fence = work->early;
                }
                work->sole = NULL;
                work->early = 0;
        }
        keep_fence(model, context, waiter, actions);
}

void spm_work_submit(struct spm_model *model, struct spm_stream_state *stream,
                     struct spm_actions *actions)
{
        struct spm_context_state *context = stream->context;
        struct spm_work *work = &context->work;
        struct spm_stream_state *sole = find_sole(model, context);

        if (work->sole && work->sole != sole)
                spm_work_end_sole(model, context, stream, actions);
        else if (stream->object.id != work->fenced)
                keep_fence(model, context, stream, actions);
        if (sole && work->sole)
                guard(model, context, actions);
        if (work->sole != sole)
                set_sole(work, sole);
}
