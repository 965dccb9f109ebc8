/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stamp -- events that the caller records for the model
 *
 * What a stamp stands for is fixed when it is asked for, although it is
 * recorded a little later: it may then cover more, which nobody relies on.
 *
 * Stamps of one scope lie in a list that is walked, at most STAMPS_MAX of them
 * and mostly one or two: to thin it out, and to find the one that covers a
 * point if the newest does. What is over is dropped from the front. A record
 * is used again with the room of its clock, so that a stamp costs no host
 * memory.
 */

#include "stamp.h"

#include "action.h"
#include "collect.h"
#include "host.h"
#include "state.h"

/* More stamps of one scope are thinned out: a later one implies the earlier ones (L9). */
#define STAMPS_MAX 64

/* lists */

static struct spm_stamp_list *list_of(struct spm_stream_state *stream)
{
        return stream->kind == SPM_STREAM_LINE ? &stream->context->stamps : &stream->stamps;
}

static void unlink_stamp(struct spm_stamp_state *stamp)
{
        struct spm_stamp_list *list = stamp->list;

        if (stamp->previous)
                stamp->previous->next = stamp->next;
        else
                list->first = stamp->next;
        if (stamp->next)
                stamp->next->previous = stamp->previous;
        else
                list->last = stamp->previous;
        list->count--;
        stamp->list = NULL;
        stamp->stream = NULL;
}

static void link_stamp(struct spm_stamp_list *list, struct spm_stamp_state *stamp)
{
        stamp->list = list;
        stamp->previous = list->last;
        if (list->last)
                list->last->next = stamp;
        else
                list->first = stamp;
        list->last = stamp;
        list->count++;
}

static void queue_drop(struct spm_model *model, struct spm_stamp_state *stamp)
{
        stamp->next = NULL;
        *model->dropped_end = stamp;
        model->dropped_end = &stamp->next;
}

/* Nobody needs it any more. One that is being recorded is dropped when that is reported. */
static void discard(struct spm_model *model, struct spm_stamp_state *stamp)
{
        unlink_stamp(stamp);
        if (stamp->status == SPM_STAMP_RECORDED)
                queue_drop(model, stamp);
}

/* records */

static struct spm_stamp_state *new_record(struct spm_model *model)
{
        struct spm_stamp_state *stamp = model->spare_stamps;
        struct spm_clock clock;

        if (!stamp)
                return spm_host_new(model, sizeof(*stamp));
        model->spare_stamps = stamp->next;
        model->spare_stamp_count--;
        clock = stamp->clock;
        clock.count = 0;
        *stamp = (struct spm_stamp_state){.clock = clock};
        return stamp;
}

static void free_record(struct spm_model *model, struct spm_stamp_state *stamp)
{
        if (model->spare_stamp_count == STAMPS_MAX) {
                spm_clock_clear(model, &stamp->clock);
                spm_host_free(model, stamp);
                return;
        }
        stamp->next = model->spare_stamps;
        model->spare_stamps = stamp;
        model->spare_stamp_count++;
}

static void forget(struct spm_model *model, struct spm_stamp_state *stamp)
{
        spm_table_remove(model, &model->stamps, &stamp->object);
        free_record(model, stamp);
}

void spm_stamp_forget(struct spm_model *model)
{
        while (model->stamps.head)
                forget(model, (struct spm_stamp_state *)model->stamps.head);
        while (model->spare_stamps) {
                struct spm_stamp_state *stamp = model->spare_stamps;

                model->spare_stamps = stamp->next;
                spm_clock_clear(model, &stamp->clock);
                spm_host_free(model, stamp);
        }
}

/* asking */

/*
 * The newest but one goes: the old ones are about to be done, and the newest covers most. One that
 * a stream was told to wait for goes only if there is no other, and then the oldest: if that wait
 * has still not been submitted it fails, and its allocation is undone. What guards stays until it
 * is done: a wait for it cannot fail, and whoever finds it gone takes that for done. There are one
 * or two of those.
 */
static bool thin_out(struct spm_model *model, struct spm_stamp_list *list)
{
        struct spm_stamp_state *stamp = list->last;

        if (list->count < STAMPS_MAX)
                return true;
        for (stamp = stamp->previous; stamp; stamp = stamp->previous)
                if (stamp->status == SPM_STAMP_RECORDED && !stamp->lent && !stamp->guards) {
                        discard(model, stamp);
                        return true;
                }
        for (stamp = list->first; stamp; stamp = stamp->next)
                if (stamp->status == SPM_STAMP_RECORDED && !stamp->guards) {
                        discard(model, stamp);
                        return true;
                }
        return false;
}

/* Of a stream that may be named. */
static struct spm_stamp_state *ask(struct spm_model *model, struct spm_stream_state *stream,
                                   bool bounded, struct spm_actions *actions)
{
        struct spm_context_state *context = stream->context;
        bool whole = stream->kind == SPM_STREAM_LINE;
        struct spm_stamp_state *stamp;
        struct spm_action *action;
        uint64_t position;
        bool ok;

        if (!spm_actions_room(actions) || !thin_out(model, list_of(stream)))
                return NULL;
        stamp = new_record(model);
        if (!stamp)
                return NULL;
        position = spm_stream_submit(stream);
        ok = whole ? spm_context_snapshot(model, context, &stamp->clock)
                   : spm_stream_snapshot(model, stream, &stamp->clock);
        if (!ok || !spm_table_add(model, &model->stamps, &stamp->object)) {
                free_record(model, stamp);
                return NULL;
        }

        stamp->stream = stream;
        stamp->position = position;
        stamp->bounded = bounded;
        link_stamp(list_of(stream), stamp);
        stream->stamped = position;
        stream->open_blocks = 0;
        stream->open_bytes = 0;
        if (whole)
                context->unstamped = false;

        action = spm_action_add(actions, SPM_ACT_RECORD);
        action->context = context->object.id;
        action->stream = whole ? 0 : stream->object.id;
        action->stamp = stamp->object.id;
        return stamp;
}

struct spm_stamp_state *spm_stamp_ask(struct spm_model *model, struct spm_stream_state *stream,
                                      bool bounded, struct spm_actions *actions)
{
        return spm_stream_may_be_named(stream) ? ask(model, stream, bounded, actions) : NULL;
}

/* While a stream captures that does not wait for it, the legacy stream is used like any other (3A).
 */
static bool may_be_trapped(const struct spm_stream_state *legacy)
{
        const struct spm_context_state *context = legacy->context;
        const struct spm_stream_state *stream;

        for (stream = context->captures ? context->streams : NULL; stream; stream = stream->next)
                if (stream->capturing && spm_stream_waits_for_legacy(stream))
                        return false;
        return !context->gone && !legacy->retired;
}

bool spm_stamp_trap(struct spm_model *model, struct spm_stream_state *stream, bool frees,
                    struct spm_actions *actions)
{
        struct spm_stamp_state *stamp;

        stamp = may_be_trapped(stream) ? ask(model, stream, true, actions) : NULL;
        if (stamp) {
                stamp->is_trap = true;
                stamp->is_owed = frees;
        }
        return stamp != NULL;
}

void spm_stamp_do_without(const struct spm_stream_state *stream, struct spm_actions *actions)
{
        const struct spm_context_state *context = stream->context;

        if (spm_context_may_be_named(context) && spm_actions_room(actions))
                spm_action_add(actions, SPM_ACT_SYNC_CONTEXT)->context = context->object.id;
}

/* answers */

static struct spm_stamp_state *find_stamp(const struct spm_model *model, spm_stamp id)
{
        return (struct spm_stamp_state *)spm_table_find(&model->stamps, id);
}

/* What the last stamp that still counts was asked for. */
static void restore_stamped(struct spm_stream_state *stream)
{
        const struct spm_stamp_list *list = list_of(stream);

        stream->stamped = list->last ? list->last->position : stream->done_poll;
        if (stream->kind == SPM_STREAM_LINE)
                stream->context->unstamped = true;
}

enum spm_status spm_stamp_answer(struct spm_model *model, spm_stamp id, bool ok)
{
        struct spm_stamp_state *stamp = find_stamp(model, id);

        if (!stamp || stamp->status != SPM_STAMP_ASKED)
                return SPM_E_UNKNOWN;
        if (!ok) {
                struct spm_stream_state *stream = stamp->stream;

                if (stamp->list) {
                        unlink_stamp(stamp);
                        restore_stamped(stream);
                }
                forget(model, stamp);
                return SPM_OK;
        }
        stamp->status = SPM_STAMP_RECORDED;
        if (!stamp->list)
                queue_drop(model, stamp);
        else if (stamp->stream->kind == SPM_STREAM_LEGACY)
                spm_stream_learn(model, stamp->stream, &stamp->clock);
        return SPM_OK;
}

enum spm_status spm_stamp_passed(struct spm_model *model, spm_stamp id)
{
        struct spm_stamp_state *stamp = find_stamp(model, id);

        if (!stamp || stamp->status != SPM_STAMP_RECORDED || !stamp->list)
                return SPM_E_UNKNOWN;
        /* The stamp's own point is among them, so this drops it, and the older ones. */
        model->proofs += stamp->waited;
        spm_collect_clock(model, &stamp->clock, stamp->waited);
        return SPM_OK;
}

/* finding and dropping */

struct spm_stamp_state *spm_stamp_find(const struct spm_stream_state *stream, uint64_t position)
{
        struct spm_stamp_state *stamp;

        if (position > stream->stamped)
                return NULL;
        for (stamp = stream->stamps.first; stamp; stamp = stamp->next)
                if (stamp->status == SPM_STAMP_RECORDED && stamp->position >= position)
                        return stamp;
        return NULL;
}

const struct spm_stamp_state *spm_stamp_pending(const struct spm_model *model, spm_stamp id)
{
        const struct spm_stamp_state *stamp = find_stamp(model, id);

        return stamp && stamp->list ? stamp : NULL;
}

static bool covers(const struct spm_stamp_state *stamp, const struct spm_stream_state *stream,
                   uint64_t position)
{
        return spm_clock_get(&stamp->clock, stream->object.id) >= position;
}

struct spm_stamp_state *spm_stamp_find_any(const struct spm_stream_state *stream, uint64_t position)
{
        const struct spm_stamp_list *list = &stream->context->stamps;
        struct spm_stamp_state *stamp = spm_stamp_find(stream, position);

        /* A later stamp of the context covers what an earlier one does. */
        if (stamp || !list->last || !covers(list->last, stream, position))
                return stamp;
        for (stamp = list->first; stamp; stamp = stamp->next)
                if (stamp->status == SPM_STAMP_RECORDED && covers(stamp, stream, position))
                        return stamp;
        return NULL;
}

bool spm_stamp_between(const struct spm_stream_state *stream, uint64_t from, uint64_t to)
{
        const struct spm_stamp_state *stamp;

        if (from > stream->stamped)
                return false;
        for (stamp = stream->stamps.first; stamp; stamp = stamp->next)
                if (stamp->position >= from && !stamp->is_trap)
                        return stamp->position < to;
        return false;
}

bool spm_stamp_is_due(const struct spm_stream_state *stream)
{
        return stream->freed > stream->stamped && stream->freed > stream->done_poll;
}

void spm_stamp_settle(struct spm_model *model, struct spm_stream_state *stream)
{
        struct spm_stamp_list *list = list_of(stream);

        while (list->first && list->first->position <= stream->done_poll)
                discard(model, list->first);
}

void spm_stamp_drop_all(struct spm_model *model, struct spm_stream_state *stream)
{
        struct spm_stamp_list *list = list_of(stream);

        while (list->first)
                discard(model, list->first);
}

void spm_stamp_report_dropped(struct spm_model *model, struct spm_actions *actions)
{
        while (model->dropped && spm_actions_room(actions)) {
                struct spm_stamp_state *stamp = model->dropped;

                model->dropped = stamp->next;
                if (!model->dropped)
                        model->dropped_end = &model->dropped;
                spm_action_add(actions, SPM_ACT_DROP)->stamp = stamp->object.id;
                forget(model, stamp);
        }
}
