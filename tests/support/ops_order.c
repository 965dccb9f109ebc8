/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops -- order and observation
 *
 * A call is begun, made and ended, with other calls in between: that is what
 * threads do to each other.
 */

#include "ops_inner.h"

/* order and observation, in two halves */

/* In a capture nothing is submitted: a wait becomes a node of the graph, and so does a record,
 * after which the event is of no use outside (H18). */
static void make_captured(struct ops *ops, struct call *call)
{
        if (call->kind == CALL_RECORD)
                ops->world.event_nodes[call->event] = WORLD_CAPTURED;
}

static void make_call(struct ops *ops, struct call *call)
{
        struct world *world = &ops->world;
        struct twin *twin = &world->twin;

        if (call->made)
                return;
        call->made = true;
        /* An error may be about something else, or mean that nothing was done. */
        if (!call->ok && call->kind != CALL_SYNC && ops_choose(ops, 2))
                return;
        world_trace(world, "call %d made: scope %d number %d event %d", call->kind,
                    call->scope.kind, call->number, call->event);
        /* What the driver would refuse. */
        if (call->kind != CALL_SYNC && call->scope.kind == SPM_SCOPE_STREAM &&
            !ops_may_use(ops, call->number)) {
                if (call->captured && world->streams[call->number].capturing) {
                        make_captured(ops, call);
                        return;
                }
                call->ok = false;
                return;
        }
        if (call->scope.kind == SPM_SCOPE_CONTEXT &&
            (world->captures[call->number] || world->context_gone[call->number])) {
                call->ok = false;
                return;
        }
        if (call->kind == CALL_RECORD) {
                call->node = call->scope.kind == SPM_SCOPE_STREAM
                                     ? twin_submit(twin, call->number)
                                     : twin_record_context(twin, call->number);
                world->event_nodes[call->event] = call->node;
        } else if (call->kind == CALL_WAIT) {
                int node = world->event_nodes[call->event];

                call->node = node;
                if (node == WORLD_CAPTURED)
                        call->ok = false;
                else if (call->scope.kind == SPM_SCOPE_STREAM)
                        twin_wait(twin, call->number, node);
                else
                        twin_wait_context(twin, call->number, node);
        } else if (call->scope.kind == SPM_SCOPE_EVENT) {
                if (world->event_nodes[call->event] == WORLD_CAPTURED)
                        call->ok = false;
                else
                        call->targets[call->target_count++] = world->event_nodes[call->event];
        }
}

/* What a synchronisation that begins now waits for; one of an event looks when it is made. */
static void set_targets(struct ops *ops, struct call *call)
{
        struct twin *twin = &ops->world.twin;
        int i;

        if (call->scope.kind == SPM_SCOPE_CONTEXT)
                call->targets[call->target_count++] = twin_record_context(twin, call->number);
        for (i = 0; i < ops->world.stream_count && call->scope.kind == SPM_SCOPE_STREAM; i++)
                if (twin_answers_for(twin, call->number, i))
                        call->targets[call->target_count++] = twin->streams[i].end;
}

void ops_end_call(struct ops *ops, struct call *call)
{
        struct world *world = &ops->world;
        struct spm_actions actions = {0};
        int i;

        make_call(ops, call);
        world_trace(world, "call %d ends: scope %d number %d event %d %s", call->kind,
                    call->scope.kind, call->number, call->event, call->ok ? "ok" : "failed");
        if (call->kind == CALL_RECORD)
                spm_record_end(world->model, &call->ticket, call->ok);
        else if (call->kind == CALL_WAIT)
                spm_wait_end(world->model, &call->ticket, call->ok);
        if (call->kind == CALL_WAIT && call->ok && call->scope.kind == SPM_SCOPE_CONTEXT)
                twin_assume_context(&world->twin, call->number, call->node);
        if (call->kind == CALL_SYNC) {
                for (i = 0; i < call->target_count && call->ok; i++) {
                        if (call->how == SPM_SYNC_WAIT)
                                twin_execute(&world->twin, call->targets[i]);
                        call->ok = twin_is_executed(&world->twin, call->targets[i]);
                }
                spm_sync_end(world->model, &call->ticket, call->how, call->ok, &actions);
                world_perform(world, &actions, OPS_NO_CAUSE, NULL);
        }
        call->kind = CALL_NONE;
}

void op_end(struct ops *ops)
{
        int first = ops_choose(ops, CALLS);
        int i;

        for (i = 0; i < CALLS; i++) {
                struct call *call = &ops->calls[(first + i) % CALLS];

                if (call->kind == CALL_NONE)
                        continue;
                ops_end_call(ops, call);
                return;
        }
}

/* NULL if as many calls are under way as there may be. */
static struct call *free_call(struct ops *ops)
{
        int i;

        for (i = 0; i < CALLS; i++)
                if (ops->calls[i].kind == CALL_NONE)
                        return &ops->calls[i];
        return NULL;
}

/* Also on a stream that captures, where a wait or a record becomes a node. */
static bool may_call(const struct ops *ops, enum call_kind kind, int stream)
{
        const struct world *world = &ops->world;

        if (kind != CALL_SYNC && world->streams[stream].capturing)
                return !world->streams[stream].retired &&
                       !world->context_gone[world_context_of(world, stream)];
        return ops_may_use(ops, stream);
}

/* A later stamp of the sole stream would be behind what it waits for. */
static void announce_wait(struct ops *ops, const struct call *call)
{
        if (call->scope.kind == SPM_SCOPE_CONTEXT)
                ops_blur(ops, call->number);
        else if (!call->captured)
                ops_announce(ops, call->number);
}

/* Begins a call of @kind; then often makes and ends it at once. */
void ops_begin_call(struct ops *ops, enum call_kind kind)
{
        struct world *world = &ops->world;
        struct call *call = free_call(ops);
        struct call next = {.kind = kind, .ok = ops_choose(ops, 16) != 0};
        struct spm_actions actions = {0};
        struct world_cause cause = OPS_NO_CAUSE;
        int scope = ops_choose(ops, 8);
        enum spm_status status;

        next.event = ops_choose(ops, ops->profile->events);
        next.number = ops_choose_number(ops);
        next.how = ops_choose(ops, 2) ? SPM_SYNC_WAIT : SPM_SYNC_QUERY;
        next.scope = (struct spm_scope){SPM_SCOPE_STREAM, world->streams[next.number].id};
        if (scope < ops->profile->whole) {
                next.number = ops_choose(ops, 2);
                next.scope = (struct spm_scope){SPM_SCOPE_CONTEXT, world->contexts[next.number]};
                next.how = SPM_SYNC_WAIT;
        } else if (kind == CALL_SYNC && scope < ops->profile->whole + 3) {
                next.scope = (struct spm_scope){SPM_SCOPE_EVENT, world->events[next.event]};
        }
        if (!call)
                return;
        if (next.scope.kind == SPM_SCOPE_STREAM && !may_call(ops, kind, next.number))
                return;
        next.captured =
                next.scope.kind == SPM_SCOPE_STREAM && world->streams[next.number].capturing;
        if (next.scope.kind == SPM_SCOPE_CONTEXT && world->context_gone[next.number])
                return;
        if (next.scope.kind == SPM_SCOPE_STREAM)
                cause = ops_on_behalf_of(next.number);
        if (kind == CALL_WAIT)
                announce_wait(ops, &next);
        if (kind == CALL_RECORD)
                status = spm_record_begin(world->model, world->events[next.event], next.scope,
                                          &next.ticket, &actions);
        else if (kind == CALL_WAIT)
                status = spm_wait_begin(world->model, next.scope, world->events[next.event],
                                        &next.ticket);
        else
                status = spm_sync_begin(world->model, next.scope, &next.ticket);
        ops_expect(ops, "begin", status);
        world_perform(world, &actions, cause, NULL);
        if (status)
                return;
        *call = next;
        world_trace(world, "call %d begins: scope %d number %d event %d", kind, next.scope.kind,
                    next.number, next.event);
        if (kind == CALL_SYNC)
                set_targets(ops, call);
        if (ops_choose(ops, 3))
                make_call(ops, call);
        if (ops_choose(ops, 4))
                ops_end_call(ops, call);
}

/* A record that nobody sees: a graph's, or a launch attribute's. The first time somebody tells
 * that there may be one, and again later unless it was for ever (H12). */
void op_taint(struct ops *ops)
{
        struct world *world = &ops->world;
        int event = ops_choose(ops, ops->profile->events);
        int stream = ops_choose_stream(ops);
        bool forever = ops_choose(ops, 4) == 0;

        if (stream == TWIN_NONE || (!ops->tainted[event] && ops_choose(ops, 8)))
                return;
        if (!ops->tainted[event])
                ops_expect(ops, "taint",
                           spm_event_taint(world->model, world->events[event], forever));
        ops->tainted[event] = ops->tainted[event] || forever;
        world->event_nodes[event] = twin_submit(&world->twin, stream);
        world_trace(world, "event %d recorded on stream %d without a call: node %d", event, stream,
                    world->event_nodes[event]);
}

void op_replace_event(struct ops *ops)
{
        struct world *world = &ops->world;
        int event = ops_choose(ops, ops->profile->events);
        spm_event fresh;
        int i;

        for (i = 0; i < CALLS; i++)
                if (ops->calls[i].kind != CALL_NONE && ops->calls[i].event == event)
                        return;
        if (spm_event_add(world->model, &fresh))
                return;
        ops_expect(ops, "remove event", spm_event_remove(world->model, world->events[event]));
        world->events[event] = fresh;
        world->event_nodes[event] = TWIN_NONE;
        ops->tainted[event] = false;
}
