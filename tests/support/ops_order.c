/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops -- order, observation and the ends of things
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

/* life of streams, contexts and pools */

void op_capture(struct ops *ops)
{
        struct world *world = &ops->world;
        int stream = ops_choose_number(ops);
        struct world_stream *self = &world->streams[stream];
        struct world_cause cause = {.self = stream, .tail = true};
        struct spm_actions actions;
        int context = world_context_of(world, stream);

        if (self->retired || world->context_gone[context] ||
            world->twin.streams[stream].kind == SPM_STREAM_LEGACY)
                return;
        world_trace(world, "stream %d captures %d times", stream, self->capturing);
        if (self->capturing) {
                ops_expect(ops, "capture end", spm_capture_end(world->model, self->id));
                self->capturing--;
                world->captures[context]--;
                return;
        }
        if (ops_choose(ops, 3))
                return;
        cause.tail = !world->captures[context];
        ops_expect(ops, "capture begin", spm_capture_begin(world->model, self->id, &actions));
        world_perform(world, &actions, cause, NULL);
        self->capturing++;
        world->captures[context]++;
}

void op_stream(struct ops *ops)
{
        struct world *world = &ops->world;
        int stream = ops_choose_stream(ops);
        struct world_cause cause = {.self = stream, .tail = true};
        struct spm_actions actions;
        int context;

        if (stream == TWIN_NONE || ops_choose(ops, 3) || world->stream_count == TWIN_STREAMS ||
            world->twin.streams[stream].kind == SPM_STREAM_LEGACY)
                return;
        context = world_context_of(world, stream);
        cause.tail = !world->captures[context];
        ops_expect(ops, "retire",
                   spm_stream_retire(world->model, world->streams[stream].id, &actions));
        world_perform(world, &actions, cause, NULL);
        world->streams[stream].retired = true;
        world->streams[stream].successor = world->stream_count;
        if (ops_add_stream(ops, context, world->twin.streams[stream].kind))
                return;
        world->streams[stream].successor = 0;
        if (!world->host_may_fail)
                world_fail(world, "a stream could not be added");
}

/* Memory that nobody asked for, by itself or in the pool's range. */
static void give(struct ops *ops, int pool)
{
        struct spm_pool_config config;
        int pages = 1 + ops_choose(ops, 3);
        bool ranged = ops_choose(ops, 2);
        uint64_t base;

        if (pool == OPS_POOL_OF_MODEL ||
            spm_pool_get_config(ops->world.model, ops->world.pools[pool], &config))
                return;
        base = world_find_room(&ops->world, ranged && config.range_size ? pool + 1 : 0, pages);
        if (base)
                world_give(&ops->world, pool, base, (uint64_t)pages * WORLD_PAGE, false);
}

void op_pool(struct ops *ops)
{
        static const uint64_t thresholds[] = {0, 2 * WORLD_PAGE, UINT64_MAX};
        struct world *world = &ops->world;
        int pool = ops_choose(ops, WORLD_POOLS);
        int attribute = 1 + ops_choose(ops, 8);
        uint64_t value = attribute == SPM_ATTR_RELEASE_THRESHOLD ? thresholds[ops_choose(ops, 3)]
                                                                 : (uint64_t)ops_choose(ops, 2);
        struct spm_actions actions;
        enum spm_status status;
        size_t released = 0;

        if (world->pool_gone[pool])
                return;
        if (ops_choose(ops, 4) == 0) {
                give(ops, pool);
                return;
        }
        if (ops_choose(ops, 2)) {
                status = spm_pool_set_attribute(world->model, world->pools[pool],
                                                (enum spm_pool_attribute)attribute, value);
                if (status == SPM_OK && attribute == SPM_ATTR_USED_MEM_HIGH)
                        ops->used_high[pool] = ops->used[pool];
                return;
        }
        do {
                status = spm_trim(world->model, world->pools[pool],
                                  (size_t)ops_choose(ops, 8) * WORLD_PAGE, &released, &actions);
                world_perform(world, &actions, OPS_NO_CAUSE, NULL);
        } while (status == SPM_AGAIN);
        ops_expect(ops, "trim", status);
}

void op_tick(struct ops *ops)
{
        struct spm_actions actions;
        enum spm_status status;

        ops->time += (uint64_t)ops_choose(ops, 8) * OPS_DECAY / 4;
        do {
                status = spm_tick(ops->world.model, ops->time, &actions);
                world_perform(&ops->world, &actions, OPS_NO_CAUSE, NULL);
        } while (status == SPM_AGAIN);
        ops_expect(ops, "tick", status);
}

static void drop_blocks(struct ops *ops, int pool)
{
        int i;

        world_forget_live(&ops->world, pool);
        for (i = 0; i < BLOCKS; i++)
                if (ops->blocks[i].pool == pool)
                        ops->blocks[i].used = false;
        ops->used[pool] = 0;
        ops->count[pool] = 0;
}

void op_remove_context(struct ops *ops)
{
        struct world *world = &ops->world;
        struct spm_actions actions;
        enum spm_status status;

        if (world->context_gone[1] || ops_choose(ops, 16))
                return;
        twin_execute_context(&world->twin, 1);
        drop_blocks(ops, 3);
        do {
                status = spm_context_remove(world->model, world->contexts[1], &actions);
                world_perform(world, &actions, OPS_NO_CAUSE, NULL);
        } while (status == SPM_AGAIN);
        ops_expect(ops, "context remove", status);
        world->context_gone[1] = true;
        world->captures[1] = 0;
        world->pool_gone[3] = true;
}

void op_destroy_pool(struct ops *ops)
{
        struct world *world = &ops->world;
        struct spm_actions actions;
        enum spm_status status;

        if (world->pool_gone[1] || ops_choose(ops, 16))
                return;
        do {
                status = spm_pool_destroy(world->model, world->pools[1], &actions);
                world_perform(world, &actions, OPS_NO_CAUSE, NULL);
        } while (status == SPM_AGAIN);
        ops_expect(ops, "pool destroy", status);
        world->pool_gone[1] = true;
}
