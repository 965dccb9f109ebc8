/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work -- which streams of a context may have any
 *
 * Part of the front door (model.c), and what the rest asks about: how streams
 * are counted, and which count is relied on. What the one that has work may do
 * that others may not is in work_sole.c.
 */

#include "work.h"

#include "action.h"
#include "front.h"
#include "recall.h"
#include "stamp.h"
#include "state.h"
#include "subject.h"

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

void spm_work_blur(struct spm_model *model, struct spm_context_state *context,
                   struct spm_actions *actions)
{
        spm_work_end_sole(model, context, NULL, actions);
        context->work.adopted = 0;
        context->work.counting = 0;
        context->work.begun = UINT64_MAX;
        spm_work_note(model, context);
        spm_magazine_recall_legacy(model, context);
}

void spm_work_settle(struct spm_model *model, struct spm_context_state *context)
{
        struct spm_work *work = &context->work;

        if (work->adopted == work->epoch || context->line->done_poll < work->begun)
                return;
        work->adopted = work->epoch;
        work->busy = work->late;
        spm_work_find_sole(model, context);
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
        spm_work_end_sole(model, context, NULL, actions);
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

/* The program has allocated there, and each time it does asks for an event now, for streams that
 * may have had no work for long (H6). */
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

        actions->count = 0;
        if (!stream)
                return SPM_E_UNKNOWN;
        context = stream->context;
        if (!context->work.epoch || stream->capturing)
                return SPM_OK;
        announce(&context->work, stream);
        spm_work_submit(model, stream, actions);
        spm_work_note(model, context);
        return spm_model_finish(model, SPM_OK, actions);
}
