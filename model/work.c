/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work -- which streams of a context may have any
 *
 * Part of the front door (model.c), and what the rest asks about.
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

#include "work.h"

#include "action.h"
#include "front.h"
#include "limbo.h"
#include "pool.h"
#include "recall.h"
#include "stamp.h"
#include "state.h"
#include "subject.h"

#define EAGER  64 /* stamps */
#define BEHIND 8  /* stamps: so many are not done while a device is behind */

/* counts */

static void count(struct spm_work_count *tally, const struct spm_stream_state *stream)
{
        if (!tally->streams)
                tally->first = stream->object.id;
        else if (tally->streams == 1)
                tally->second = stream->object.id;
        tally->streams++;
        tally->blocking += stream->kind == SPM_STREAM_BLOCKING;
        tally->per_thread = tally->per_thread || stream->kind == SPM_STREAM_PER_THREAD;
}

static void announce(struct spm_work *work, struct spm_stream_state *stream)
{
        if (stream->announced == work->epoch)
                return;
        if (work->adopted && stream->announced < work->adopted)
                count(&work->busy, stream);
        count(&work->late, stream);
        stream->announced = work->epoch;
}

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

bool spm_work_may_have(const struct spm_stream_state *stream)
{
        const struct spm_work *work = &stream->context->work;

        return !work->adopted || stream->announced >= work->adopted;
}

bool spm_work_is_trapped(const struct spm_stream_state *stream)
{
        const struct spm_context_state *context = stream->context;

        if (stream->kind != SPM_STREAM_LEGACY)
                return false;
        if (!context->work.adopted)
                return context->blocking >= 2 || context->hidden || context->work.epoch;
        return context->work.busy.blocking || context->work.busy.per_thread;
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

void spm_work_note(struct spm_model *model, struct spm_context_state *context)
{
        struct spm_work *work = &context->work;
        enum spm_work_free frees = SPM_WORK_FREE_LOCKED;

        if (spm_work_is_idle(work))
                frees = SPM_WORK_FREE_COMPLETE;
        else if (!spm_work_early(work) && work->crowded && context->line->magazines > 1)
                frees = SPM_WORK_FREE_WAITS;
        if (work->frees == frees)
                return;
        work->frees = frees;
        spm_magazine_tell(model, context);
}

/* the sole stream */

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

static void end_sole(struct spm_model *model, struct spm_context_state *context,
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

void spm_work_blur(struct spm_model *model, struct spm_context_state *context,
                   struct spm_actions *actions)
{
        end_sole(model, context, NULL, actions);
        context->work.adopted = 0;
        context->work.counting = 0;
        context->work.begun = UINT64_MAX;
        spm_work_note(model, context);
        spm_magazine_recall_legacy(model, context);
}

static void set_sole(struct spm_work *work, struct spm_stream_state *sole)
{
        work->sole = sole;
        work->eager = EAGER;
}

void spm_work_settle(struct spm_model *model, struct spm_context_state *context)
{
        struct spm_work *work = &context->work;

        if (work->adopted == work->epoch || context->line->done_poll < work->begun)
                return;
        /* A sole stream is one of a few, so that what it was stays true. */
        work->adopted = work->epoch;
        work->busy = work->late;
        if (!work->sole)
                set_sole(work, find_sole(model, context));
        spm_work_note(model, context);
}

/* the front door */

/*
 * The count that begins is relied on when a stamp recorded after its beginning is done. Until the
 * caller has recorded it somebody may be about to submit who relies on an older count, so a look
 * at the context that began before then proves nothing, be it another stamp or a wait of the
 * program's.
 */
static struct spm_stamp_state *
begin_count(struct spm_model *model, struct spm_context_state *context, struct spm_actions *actions)
{
        struct spm_work *work = &context->work;
        struct spm_stamp_state *stamp;

        work->epoch++;
        work->late = (struct spm_work_count){0};
        if (!work->adopted)
                spm_magazine_recall_legacy(model, context);
        stamp = spm_stamp_ask(model, context->line, true, actions);
        work->counting = stamp ? stamp->object.id : 0;
        work->begun = UINT64_MAX;
        return stamp;
}

static struct spm_work *counted_by(const struct spm_stamp_state *stamp)
{
        struct spm_work *work = &stamp->stream->context->work;

        return stamp->object.id == work->counting ? work : NULL;
}

void spm_work_recorded(const struct spm_stamp_state *stamp, bool ok)
{
        struct spm_work *work = counted_by(stamp);

        if (work && ok && stamp->status == SPM_STAMP_ASKED)
                work->begun = spm_stream_submit(stamp->stream->context->line);
}

void spm_work_passed(const struct spm_stamp_state *stamp)
{
        struct spm_work *work = counted_by(stamp);

        if (work && stamp->status == SPM_STAMP_RECORDED)
                work->begun = stamp->position;
}

enum spm_status spm_context_watch(struct spm_model *model, spm_context id, bool alone,
                                  struct spm_actions *actions)
{
        struct spm_context_state *context = spm_subject_context(model, id);
        struct spm_stamp_state *stamp;

        actions->count = 0;
        if (!context || context->gone)
                return SPM_E_UNKNOWN;
        context->work.alone = alone;
        spm_work_note(model, context);
        stamp = begin_count(model, context, actions);
        if (stamp) {
                struct spm_action *action = spm_action_add(actions, SPM_ACT_POLL);

                action->context = context->object.id;
                action->stamp = stamp->object.id;
        }
        return spm_model_finish(model, SPM_OK, actions);
}

enum spm_status spm_context_recount(struct spm_model *model, spm_context id,
                                    struct spm_actions *actions)
{
        struct spm_context_state *context = spm_subject_context(model, id);

        actions->count = 0;
        if (!context || context->gone || !context->work.epoch)
                return SPM_E_UNKNOWN;
        if (!context->captures)
                begin_count(model, context, actions);
        return spm_model_finish(model, SPM_OK, actions);
}

enum spm_status spm_context_share(struct spm_model *model, spm_context id,
                                  struct spm_actions *actions)
{
        struct spm_context_state *context = spm_subject_context(model, id);

        actions->count = 0;
        if (!context || context->gone)
                return SPM_E_UNKNOWN;
        context->work.alone = false;
        end_sole(model, context, NULL, actions);
        spm_work_note(model, context);
        return spm_model_finish(model, SPM_OK, actions);
}

enum spm_status spm_context_blur(struct spm_model *model, spm_context id,
                                 struct spm_actions *actions)
{
        struct spm_context_state *context = spm_subject_context(model, id);

        actions->count = 0;
        if (!context || context->gone)
                return SPM_E_UNKNOWN;
        spm_work_blur(model, context, actions);
        return spm_model_finish(model, SPM_OK, actions);
}

/* Each allocation there asks for an event, for streams that may have had no work for long (H6). */
static bool is_trap_in_use(const struct spm_context_state *context)
{
        const struct spm_stream_state *legacy = context->legacy_stream;

        return legacy && legacy->allocated && spm_work_is_trapped(legacy);
}

bool spm_context_is_crowded(const struct spm_model *model, spm_context id)
{
        const struct spm_context_state *context = spm_subject_context(model, id);
        const struct spm_work *work = context ? &context->work : NULL;

        if (!work || !work->epoch || context->captures)
                return false;
        return is_trap_in_use(context) ||
               (work->alone && !work->sole && (!work->adopted || work->busy.streams));
}

enum spm_status spm_submit(struct spm_model *model, spm_stream id, struct spm_actions *actions)
{
        struct spm_stream_state *stream = spm_subject_usable(model, id);
        struct spm_context_state *context;
        struct spm_stream_state *sole;

        actions->count = 0;
        if (!stream)
                return SPM_E_UNKNOWN;
        context = stream->context;
        if (!context->work.epoch || stream->capturing)
                return SPM_OK;
        announce(&context->work, stream);
        sole = find_sole(model, context);
        if (context->work.sole && context->work.sole != sole)
                end_sole(model, context, stream, actions);
        else if (id != context->work.fenced)
                keep_fence(model, context, stream, actions);
        if (sole && context->work.sole)
                guard(model, context, actions);
        if (context->work.sole != sole)
                set_sole(&context->work, sole);
        spm_work_note(model, context);
        return spm_model_finish(model, SPM_OK, actions);
}
