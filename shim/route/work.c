/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Work -- what the model hears of submissions
 *
 * While a context is the only one, and everything that is submitted in it passes
 * our hooks, the model is told of each stream that gets work, and may serve
 * memory again before it is complete (R1, model/work_sole.c). What ends that for good:
 *
 *   a second context, peers         work elsewhere may touch the memory, and
 *                                   waits for nothing of this context's
 *   a handle for another process,   whoever has it is not behind our waits
 *   for dma-buf, or a P2P token
 *   a driver before 12.5            it has no event for a whole context
 *   a look-up of a function that    nobody would announce what it submits
 *   is in none of our lists
 *
 * What ends it for a while: a second stream that gets work, or waits for some; a
 * whole context that waits; and a capture, during which we keep still. To get it back, streams are
 * counted anew after a wait of the program's, in longer and longer intervals: a program that always
 * uses several streams is not made to order them again and again.
 */

#include "route/work.h"

#include "base/config.h"
#include "base/life.h"
#include "report/counters.h"
#include "route/guard.h"
#include "route/perform.h"
#include "track/state.h"
#include "track/stream.h"

#define GAP_MAX 1024 /* waits of the program between two counts */

/* The only live context, or NULL if there are several, or none. */
static struct sp_context *only_context(void)
{
        struct sp_context *context = NULL, *only = NULL;

        while ((context = sp_context_each(context))) {
                if (atomic_load(&context->gone))
                        continue;
                if (only)
                        return NULL;
                only = context;
        }
        return only;
}

static bool has_context_events(void)
{
#if CUDA_VERSION >= 12050
        return sp_driver.cuCtxRecordEvent != NULL;
#else
        return false;
#endif
}

/* Of two threads the second one does not go on before all is done that the first one has to do. */
static void share(struct sp_context *context)
{
        struct spm_actions actions;

        if (atomic_load(&context->gone) || atomic_load(&context->is_apart))
                return;
        atomic_store(&context->is_shared, true);
        spm_context_share(sp_model_enter(), context->model, &actions);
        sp_model_leave();
        sp_perform(&actions, NULL);
        atomic_store(&context->is_apart, true);
}

void sp_work_share(struct sp_context *context)
{
        if (context)
                share(context);
        for (struct sp_context *each = sp_context_each(NULL); !context && each;
             each = sp_context_each(each))
                share(each);
}

static void blur(struct sp_context *context)
{
        struct spm_actions actions;

        spm_context_blur(sp_model_enter(), context->model, &actions);
        sp_model_leave();
        sp_perform(&actions, NULL);
}

void sp_work_blur(void)
{
        for (struct sp_context *each = sp_context_each(NULL); each; each = sp_context_each(each))
                if (!atomic_load(&each->gone))
                        blur(each);
}

/* With several contexts all are shared; none of them is the only one for a thread that finds out
 * later (sp_work_watch_first()). */
static void part(void)
{
        sp_work_share(NULL);
        sp_submit_part();
}

/*
 * A count has begun, and @actions has the stamp that will show that nothing older is left. Not
 * before the count can it be seen that everybody tells: what was told while it began is forgotten.
 */
static void count_from_here(struct sp_context *context, const struct spm_actions *actions)
{
        if (!sp_submit_quiesce() || !sp_submit_is_complete())
                blur(context);
        sp_perform(actions, NULL);
}

/* Two threads may do this at the same time: a count too many does no harm. */
void sp_work_watch_first(struct sp_context *context)
{
        bool alone = context == only_context();
        struct spm_actions actions;
        struct spm_model *model;

        /* A guard touches what is served at once, and not in the order of the sole stream. */
        if (!sp_config()->early || sp_guards()) {
                atomic_store(&context->is_watched, true);
                return;
        }
        if (!alone)
                part();
        alone = alone && has_context_events() && sp_submit_is_complete() &&
                !sp_context_may_be_green();
        model = sp_model_enter();
        /* Looked at with the lock: who shares it since says so to the model after this. */
        alone = alone && !atomic_load(&context->is_shared);
        if (alone)
                sp_submit_watch(context->handle);
        spm_context_watch(model, context->model, alone, &actions);
        sp_model_leave();
        count_from_here(context, &actions);
        atomic_store(&context->is_watched, true);
}

void sp_work_give_up(void)
{
        if (!sp_life_is_on())
                return;
        part();
        sp_work_blur();
}

void sp_work_recount(struct sp_context *context)
{
        unsigned int gap = atomic_load(&context->recount_gap);
        struct spm_actions actions;

        if (atomic_fetch_add(&context->recount_waits, 1) < gap)
                return;
        atomic_store(&context->recount_waits, 0);
        atomic_store(&context->recount_gap, gap < GAP_MAX ? 2 * gap + 1 : gap);
        if (!sp_quiet_enter())
                return;
        spm_context_recount(sp_model_enter(), context->model, &actions);
        sp_model_leave();
        count_from_here(context, &actions);
        sp_quiet_leave();
}

/* Return: false where nobody can know which stream it is. */
static bool tell(CUstream handle)
{
        struct sp_stream *stream;
        struct spm_actions actions;

        /* What was served early remains so when no more is served (SP_LIFE_OFF). */
        if ((!sp_life_is_on() && sp_life_state() != SP_LIFE_OFF) ||
            sp_config()->mode != SP_MODE_POOL)
                return true;
        /* Nobody relies on what is submitted now (sp_work_blur()), and a question could be one
         * too many for the capture. */
        if (sp_is_capturing())
                return false;
        stream = sp_stream_of(handle);
        if (!stream) {
                sp_work_blur();
                return false;
        }
        if (!only_context())
                part();
        spm_submit(sp_model_enter(), stream->model, &actions);
        sp_model_leave();
        sp_perform(&actions, NULL);
        sp_count(streams_marked);
        return true;
}

void sp_work_start(void)
{
        sp_submit_tell = tell;
}
