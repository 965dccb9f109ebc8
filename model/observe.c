/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Observe -- what the program orders, and what the host has seen
 *
 * Part of the front door (model.c). A driver call is told in two halves: what
 * counts is what was known when it began (H4, H5), and it counts only if
 * nothing has happened in between that makes it ambiguous. An event's version
 * changes when a record begins and again when it ends, so that whoever looks
 * at the event in two halves sees that another thread was recording it.
 */

#include "check.h"
#include "collect.h"
#include "front.h"
#include "host.h"
#include "limbo.h"
#include "stamp.h"
#include "state.h"
#include "subject.h"
#include "trim.h"

/* events */

enum spm_status spm_event_add(struct spm_model *model, spm_event *result)
{
        struct spm_event_state *event = spm_host_new(model, sizeof(*event));

        if (!event)
                return SPM_E_HOST_MEMORY;
        if (!spm_table_add(model, &model->events, &event->object)) {
                spm_host_free(model, event);
                return SPM_E_HOST_MEMORY;
        }
        *result = event->object.id;
        return SPM_OK;
}

enum spm_status spm_event_remove(struct spm_model *model, spm_event id)
{
        struct spm_event_state *event = spm_subject_event(model, id);

        if (!event)
                return SPM_E_UNKNOWN;
        spm_subject_remove_event(model, event);
        return SPM_OK;
}

/* It may stand for anything; records that are under way do not change that. */
static void make_unknown(struct spm_event_state *event)
{
        event->status = SPM_EVENT_UNKNOWN;
        event->version++;
        event->muddled = event->recording != 0;
}

enum spm_status spm_event_taint(struct spm_model *model, spm_event id, bool forever)
{
        struct spm_event_state *event = spm_subject_event(model, id);

        if (!event)
                return SPM_E_UNKNOWN;
        make_unknown(event);
        event->tainted = event->tainted || forever;
        return SPM_OK;
}

/* records */

/* What the event will stand for. Return: NULL if there is no memory. */
static struct spm_snapshot *take(struct spm_model *model, struct spm_stream_state *stream,
                                 struct spm_context_state *context)
{
        struct spm_snapshot *snapshot = spm_snapshot_new(model);
        bool ok;

        if (!snapshot)
                return NULL;
        ok = stream ? spm_stream_snapshot(model, stream, &snapshot->clock)
                    : spm_context_snapshot(model, context, &snapshot->clock);
        if (ok)
                return snapshot;
        spm_snapshot_free(model, snapshot);
        return NULL;
}

static void give_back(struct spm_model *model, struct spm_ticket *ticket)
{
        spm_snapshot_free(model, ticket->snapshot);
        ticket->snapshot = NULL;
}

/* Either one or the other, by scope. Return: false if the handle is unknown. */
static bool find_scope(const struct spm_model *model, struct spm_scope scope,
                       struct spm_stream_state **stream, struct spm_context_state **context)
{
        *stream = NULL;
        *context = NULL;
        if (scope.kind == SPM_SCOPE_STREAM)
                *stream = spm_subject_usable(model, scope.id);
        else if (scope.kind == SPM_SCOPE_CONTEXT)
                *context = spm_subject_context(model, scope.id);
        if (*context && (*context)->gone)
                *context = NULL;
        return *stream || *context;
}

enum spm_status spm_record_begin(struct spm_model *model, spm_event id, struct spm_scope where,
                                 struct spm_ticket *ticket, struct spm_actions *actions)
{
        struct spm_event_state *event = spm_subject_event(model, id);
        struct spm_context_state *context;
        struct spm_stream_state *stream;
        struct spm_snapshot *snapshot = NULL;

        actions->count = 0;
        if (!event || !find_scope(model, where, &stream, &context))
                return SPM_E_UNKNOWN;

        /* H3: a belt must not reach further than the program's own record. */
        if (stream && spm_stamp_is_due(stream))
                spm_stamp_ask(model, stream, true, actions);
        if (stream)
                spm_stream_submit(stream);
        /* What is recorded in a capture is no event (H18). */
        if (!stream || !stream->capturing) {
                snapshot = take(model, stream, context);
                if (!snapshot) {
                        make_unknown(event);
                        return spm_model_finish(model, SPM_E_HOST_MEMORY, actions);
                }
        }
        event->status = SPM_EVENT_UNKNOWN;
        event->version++;
        event->muddled = event->recording++ != 0;
        *ticket = (struct spm_ticket){.scope = where, .id = id, .snapshot = snapshot};
        return spm_model_finish(model, SPM_OK, actions);
}

void spm_record_end(struct spm_model *model, struct spm_ticket *ticket, bool ok)
{
        struct spm_event_state *event = spm_subject_event(model, ticket->id);
        struct spm_snapshot *snapshot = ticket->snapshot;
        struct spm_stream_state *stream = NULL;

        if (ticket->scope.kind == SPM_SCOPE_STREAM)
                stream = spm_subject_usable(model, ticket->scope.id);
        /* H6: a record on the legacy stream is an operation of it. */
        if (ok && snapshot && stream && stream->kind == SPM_STREAM_LEGACY)
                spm_stream_learn(model, stream, &snapshot->clock);
        if (event) {
                event->recording--;
                event->version++;
                if (ok && snapshot && !event->muddled && !event->tainted) {
                        spm_snapshot_move(model, snapshot, &event->clock);
                        event->status = SPM_EVENT_KNOWN;
                }
        }
        give_back(model, ticket);
        SPM_CHECK(model);
}

/* waits */

enum spm_status spm_wait_begin(struct spm_model *model, struct spm_scope waiter, spm_event id,
                               struct spm_ticket *ticket)
{
        const struct spm_event_state *event = spm_subject_event(model, id);
        struct spm_context_state *context;
        struct spm_stream_state *stream;

        if (!event || !find_scope(model, waiter, &stream, &context))
                return SPM_E_UNKNOWN;
        *ticket = (struct spm_ticket){.scope = waiter, .id = id, .version = event->version};
        /* What is captured orders nothing, also if the capture ends before the call does (H18). No
         * event that says something has this version. */
        if (stream && stream->capturing)
                ticket->version = 0;
        return SPM_OK;
}

/* The event, if it says something, and still what it said at _begin. */
static const struct spm_event_state *unchanged(const struct spm_model *model, spm_event id,
                                               uint64_t version)
{
        const struct spm_event_state *event = spm_subject_event(model, id);

        if (!event || event->version != version || event->status != SPM_EVENT_KNOWN)
                return NULL;
        return event;
}

void spm_wait_end(struct spm_model *model, struct spm_ticket *ticket, bool ok)
{
        const struct spm_event_state *event = unchanged(model, ticket->id, ticket->version);
        struct spm_context_state *context;
        struct spm_stream_state *stream;
        struct spm_lane *lane;

        if (!ok || !find_scope(model, ticket->scope, &stream, &context))
                return;
        if (context)
                context->waited_at = spm_stream_submit(context->line);
        if (!event)
                return;
        if (stream) {
                spm_stream_learn(model, stream, &event->clock);
                for (lane = stream->lanes; lane; lane = lane->next)
                        spm_limbo_reopen(model, lane);
        } else {
                spm_context_learn(model, context, &event->clock);
        }
        SPM_CHECK(model);
}

/* synchronisations and queries */

enum spm_status spm_sync_begin(struct spm_model *model, struct spm_scope what,
                               struct spm_ticket *ticket)
{
        struct spm_ticket begun = {.scope = what};

        if (what.kind == SPM_SCOPE_EVENT) {
                const struct spm_event_state *event = spm_subject_event(model, what.id);

                if (!event)
                        return SPM_E_UNKNOWN;
                begun.version = event->version;
        } else {
                struct spm_context_state *context;
                struct spm_stream_state *stream;

                if (!find_scope(model, what, &stream, &context))
                        return SPM_E_UNKNOWN;
                begun.snapshot = take(model, stream, context);
                if (!begun.snapshot)
                        return SPM_E_HOST_MEMORY;
        }
        *ticket = begun;
        return SPM_OK;
}

void spm_sync_end(struct spm_model *model, struct spm_ticket *ticket, enum spm_sync how, bool ok,
                  struct spm_actions *actions)
{
        const struct spm_snapshot *snapshot = ticket->snapshot;
        const struct spm_clock *clock = snapshot ? &snapshot->clock : NULL;
        const struct spm_context_state *context = NULL;

        actions->count = 0;
        if (ticket->scope.kind == SPM_SCOPE_EVENT) {
                const struct spm_event_state *event =
                        unchanged(model, ticket->scope.id, ticket->version);

                clock = event ? &event->clock : NULL;
        }
        model->proofs += ok && how == SPM_SYNC_WAIT;
        if (ok && clock)
                spm_collect_clock(model, clock, how == SPM_SYNC_WAIT);
        if (ok && how == SPM_SYNC_WAIT) {
                if (ticket->scope.kind == SPM_SCOPE_CONTEXT)
                        context = spm_subject_context(model, ticket->scope.id);
                spm_trim_synced(model, context, actions);
        }
        give_back(model, ticket);
        spm_model_finish(model, SPM_OK, actions);
}

/* stamps */

enum spm_status spm_stamp_recorded(struct spm_model *model, spm_stamp stamp, bool ok,
                                   struct spm_actions *actions)
{
        const struct spm_stamp_state *asked = spm_stamp_pending(model, stamp);
        struct spm_stream_state *unguarded = !ok && asked && asked->guards ? asked->stream : NULL;
        struct spm_stream_state *owed = !ok && asked && asked->is_owed ? asked->stream : NULL;
        enum spm_status status;

        actions->count = 0;
        if (asked)
                spm_work_recorded(asked, ok);
        status = spm_stamp_answer(model, stamp, ok);
        if (unguarded && status == SPM_OK)
                spm_work_unguarded(unguarded, actions);
        if (owed && status == SPM_OK)
                spm_stamp_do_without(owed, actions);
        return spm_model_finish(model, status, actions);
}

enum spm_status spm_stamp_done(struct spm_model *model, spm_stamp stamp,
                               struct spm_actions *actions)
{
        const struct spm_stamp_state *passed = spm_stamp_pending(model, stamp);

        actions->count = 0;
        if (passed)
                spm_work_passed(passed);
        return spm_model_finish(model, spm_stamp_passed(model, stamp), actions);
}
