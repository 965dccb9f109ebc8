/* SPDX-License-Identifier: Apache-2.0 */
/*
 * World -- the model's caller, with a small device behind it
 */

#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

uint8_t world_byte(struct world *world)
{
        if (world->constant)
                return *world->constant;
        if (world->left) {
                world->left--;
                return *world->bytes++;
        }
        world->mix = world->mix * 6364136223846793005u + 1442695040888963407u;
        return (uint8_t)(world->mix >> 56);
}

void world_fail(struct world *world, const char *format, ...)
{
        va_list arguments;

        if (world->failure[0])
                return;
        va_start(arguments, format);
        vsnprintf(world->failure, sizeof(world->failure), format, arguments);
        va_end(arguments);
}

void world_trace(const struct world *world, const char *format, ...)
{
        va_list arguments;

        if (!world->trace)
                return;
        va_start(arguments, format);
        fprintf(stderr, "%4zu n%-3d ", world->steps, world->twin.count);
        vfprintf(stderr, format, arguments);
        fputc('\n', stderr);
        va_end(arguments);
}

void world_check(struct world *world, const char *after)
{
        char text[160];

        if (!spm_check(world->model, text, sizeof(text)))
                world_fail(world, "after %s: %s", after, text);
}

static int stream_number(const struct world *world, spm_stream id)
{
        int i;

        for (i = 0; i < world->stream_count; i++)
                if (world->streams[i].id == id)
                        return i;
        return TWIN_NONE;
}

static int context_number(const struct world *world, spm_context id)
{
        return id == world->contexts[1];
}

/* I7 */
static void expect_nameable(struct world *world, int context, const struct world_cause *cause)
{
        if (world->context_gone[context])
                world_fail(world, "I7: an action names a context that is gone");
        if (world->captures[context] && !cause->tail)
                world_fail(world, "I7: an action names a context with an open capture");
}

/* The program uses the legacy stream, so no stream that waits for it captures. */
static void expect_unhindered(struct world *world, int legacy)
{
        int i;

        if (world->context_gone[world_context_of(world, legacy)])
                world_fail(world, "I7: an action names a stream of a context that is gone");
        for (i = 0; i < world->stream_count; i++)
                if (i != legacy && world->streams[i].capturing &&
                    twin_answers_for(&world->twin, legacy, i))
                        world_fail(world, "I7: an action names the legacy stream, and %d captures",
                                   i);
}

static void expect_stream(struct world *world, int stream, const struct world_cause *cause)
{
        if (stream == TWIN_NONE) {
                world_fail(world, "I7: an action names a stream nobody knows");
                return;
        }
        if (world->twin.streams[stream].kind == SPM_STREAM_LEGACY && cause->self == stream)
                expect_unhindered(world, stream);
        else
                expect_nameable(world, world_context_of(world, stream), cause);
        if (world->streams[stream].retired)
                world_fail(world, "L1: an action names retired stream %d", stream);
        if (world->streams[stream].capturing)
                world_fail(world, "I7: an action names capturing stream %d", stream);
}

static struct world_stamp *stamp_of(struct world *world, const struct spm_action *action)
{
        struct world_stamp *stamp = &world->stamps[action->stamp % WORLD_STAMPS];

        if (stamp->id == action->stamp)
                return stamp;
        world_fail(world, "an action names a stamp that was not asked for");
        return NULL;
}

/* A handle is never given again, so the place is taken only if there are too many. */
static struct world_stamp *new_stamp(struct world *world, const struct spm_action *action)
{
        struct world_stamp *stamp = &world->stamps[action->stamp % WORLD_STAMPS];

        if (stamp->id >= action->stamp || (stamp->recorded && !stamp->dropped)) {
                world_fail(world, "H19: stamp %u is asked for again, or there are too many",
                           action->stamp);
                return NULL;
        }
        *stamp = (struct world_stamp){.id = action->stamp, .node = TWIN_NONE};
        return stamp;
}

static bool act_record(struct world *world, const struct spm_action *action,
                       struct world_cause cause)
{
        struct world_stamp *stamp = new_stamp(world, action);
        struct spm_actions more;
        bool ok = world_byte(world) % 16 != 0;

        if (!stamp)
                return false;
        /* While something captures, nothing could be done about it. */
        ok = ok ||
             (cause.frees_on_legacy && world->captures[context_number(world, action->context)]);
        if (action->stream) {
                int stream = stream_number(world, action->stream);

                expect_stream(world, stream, &cause);
                if (world->failure[0])
                        return false;
                if (world->twin.streams[stream].kind == SPM_STREAM_PER_THREAD &&
                    cause.self != stream)
                        world_fail(world, "F5: another thread's stream is to be stamped");
                if (ok)
                        stamp->node = twin_submit(&world->twin, stream);
        } else {
                int context = context_number(world, action->context);

                expect_nameable(world, context, &cause);
                if (ok)
                        stamp->node = twin_record_context(&world->twin, context);
        }
        stamp->recorded = ok;
        spm_stamp_recorded(world->model, action->stamp, ok, &more);
        world_perform(world, &more, cause, NULL);
        return ok;
}

static bool act_wait_stream(struct world *world, const struct spm_action *action,
                            struct world_cause cause)
{
        struct world_stamp *stamp = stamp_of(world, action);
        int stream = stream_number(world, action->stream);

        expect_stream(world, stream, &cause);
        if (!stamp || world->failure[0])
                return false;
        if (!stamp->recorded || stamp->dropped || world_byte(world) % 32 == 0)
                return false;
        if (!cause.in_alloc)
                world_fail(world, "I6: a wait that no allocation asked for");
        if (!cause.short_of && twin_adds_order(&world->twin, stream, stamp->node))
                world_fail(world, "G5: the belt makes stream %d wait for more", stream);
        twin_wait(&world->twin, stream, stamp->node);
        return true;
}

static void report_done(struct world *world, const struct spm_action *action,
                        struct world_cause cause)
{
        struct spm_actions more;

        spm_stamp_done(world->model, action->stamp, &more);
        world_perform(world, &more, cause, NULL);
}

static void act_poll(struct world *world, const struct spm_action *action, struct world_cause cause)
{
        struct world_stamp *stamp = stamp_of(world, action);

        expect_nameable(world, context_number(world, action->context), &cause);
        if (!stamp || !stamp->recorded || stamp->dropped)
                return;
        if (world_byte(world) % 4 == 0)
                twin_execute(&world->twin, stamp->node);
        if (twin_is_executed(&world->twin, stamp->node))
                report_done(world, action, cause);
}

/* R1 ends for @context: nobody is before what was served early, and nobody behind more. */
static void end_early(struct world *world, int context, const struct world_stamp *stamp)
{
        if (world->early_until[context])
                world->fenced_until[context] = world->early_until[context];
        world->early_until[context] = 0;
        if (twin_depends_on_later(&world->twin, stamp->node, world->fenced_until[context]))
                world_fail(world, "G5: the end of R1 waits for what was submitted later");
}

static void act_ask(struct world *world, struct spm_scope scope, bool done, enum spm_sync how,
                    struct world_cause cause)
{
        struct spm_actions more;
        struct spm_ticket ticket;
        enum spm_status status = spm_sync_begin(world->model, scope, &ticket);

        if (status == SPM_E_HOST_MEMORY && world->host_may_fail)
                return;
        if (status) {
                world_fail(world, "an action names what is unknown: %s", spm_status_name(status));
                return;
        }
        spm_sync_end(world->model, &ticket, how, done, &more);
        world_perform(world, &more, cause, NULL);
}

/* Instead of a stamp that was not to be had. */
static void ask_context(struct world *world, spm_context id, struct world_cause cause)
{
        struct spm_scope scope = {SPM_SCOPE_CONTEXT, id};

        twin_execute_context(&world->twin, context_number(world, id));
        act_ask(world, scope, true, SPM_SYNC_POLL, cause);
}

static void act_wait_host(struct world *world, const struct spm_action *action,
                          struct world_cause cause)
{
        struct world_stamp *stamp = stamp_of(world, action);
        bool ends = cause.submits || cause.tail;

        expect_nameable(world, context_number(world, action->context), &cause);
        if (!cause.in_alloc && !ends)
                world_fail(world, "I6: a host wait that no allocation asked for");
        if (stamp && !stamp->recorded && ends)
                ask_context(world, action->context, cause);
        if (!stamp || !stamp->recorded || stamp->dropped)
                return;
        if (ends)
                end_early(world, context_number(world, action->context), stamp);
        if (action->bounded && world_byte(world) % 2 &&
            !twin_is_executed(&world->twin, stamp->node))
                return;
        twin_execute(&world->twin, stamp->node);
        report_done(world, action, cause);
}

static void act_poll_stream(struct world *world, const struct spm_action *action,
                            struct world_cause cause)
{
        int stream = stream_number(world, action->stream);
        struct spm_scope scope = {SPM_SCOPE_STREAM, action->stream};

        expect_stream(world, stream, &cause);
        if (world->failure[0])
                return;
        if (world->twin.streams[stream].kind == SPM_STREAM_PER_THREAD && cause.self != stream)
                world_fail(world, "F5: another thread's stream is asked");
        if (world_byte(world) % 4 == 0)
                twin_finish(&world->twin, stream);
        act_ask(world, scope, twin_is_idle(&world->twin, stream), SPM_SYNC_POLL, cause);
}

static void act_sync_context(struct world *world, const struct spm_action *action,
                             struct world_cause cause)
{
        int context = context_number(world, action->context);
        struct spm_scope scope = {SPM_SCOPE_CONTEXT, action->context};

        expect_nameable(world, context, &cause);
        if (!cause.short_of && !cause.submits && !cause.frees_on_legacy)
                world_fail(world, "I6: a context is waited for without need");
        twin_execute_context(&world->twin, context);
        act_ask(world, scope, true, SPM_SYNC_WAIT, cause);
}

/* The end of R1: it must not be one for work that the program submitted after the frees. */
static void act_wait_fence(struct world *world, const struct spm_action *action,
                           struct world_cause cause)
{
        struct world_stamp *stamp = stamp_of(world, action);
        int context = context_number(world, action->context);

        expect_nameable(world, context, &cause);
        if (!cause.submits && !cause.tail)
                world_fail(world, "I6: a stream has to wait, and nobody submits anything");
        if (!stamp || world->failure[0])
                return;
        if (!stamp->recorded) {
                ask_context(world, action->context, cause);
                return;
        }
        if (stamp->dropped || world_byte(world) % 32 == 0) {
                twin_execute_context(&world->twin, context);
                return;
        }
        end_early(world, context, stamp);
        twin_wait(&world->twin, stream_number(world, action->stream), stamp->node);
}

/* the list */

static void act_drop(struct world *world, const struct spm_action *action)
{
        struct world_stamp *stamp = stamp_of(world, action);

        if (stamp)
                stamp->dropped = true;
}

bool world_perform(struct world *world, const struct spm_actions *actions, struct world_cause cause,
                   struct spm_request *request)
{
        bool kept = true;
        unsigned int i;

        if (actions->count > SPM_ACTIONS_MAX)
                world_fail(world, "too many actions");
        for (i = 0; i < actions->count && !world->failure[0]; i++) {
                const struct spm_action *action = &actions->item[i];

                world_trace(world, "  action %d stream %d context %u stamp %u size %zu",
                            action->kind, stream_number(world, action->stream), action->context,
                            action->stamp, action->size);
                switch (action->kind) {
                case SPM_ACT_RECORD:
                        kept = act_record(world, action, cause) && kept;
                        break;
                case SPM_ACT_WAIT_STREAM:
                        kept = act_wait_stream(world, action, cause) && kept;
                        break;
                case SPM_ACT_WAIT_FENCE:
                        act_wait_fence(world, action, cause);
                        break;
                case SPM_ACT_POLL:
                        act_poll(world, action, cause);
                        break;
                case SPM_ACT_POLL_STREAM:
                        act_poll_stream(world, action, cause);
                        break;
                case SPM_ACT_WAIT_HOST:
                        act_wait_host(world, action, cause);
                        break;
                case SPM_ACT_SYNC_CONTEXT:
                        act_sync_context(world, action, cause);
                        break;
                case SPM_ACT_GROW:
                        world_grow(world, action, request);
                        break;
                case SPM_ACT_RELEASE:
                        world_release(world, action);
                        break;
                case SPM_ACT_DROP:
                        act_drop(world, action);
                        break;
                }
        }
        return kept;
}
