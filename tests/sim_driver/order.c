/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Order -- which operation waits for which
 *
 * Everything CUDA promises about order is drawn here, when the call is made:
 *
 *   - an operation follows the newest one of its stream;
 *   - on the legacy stream it follows the newest one of every blocking stream of
 *     the context as well, and on a blocking stream the newest one of the legacy
 *     stream (U2, U12: also an event record, also a stream created afterwards);
 *   - it follows the context's fence, the newest cuCtxWaitEvent (U1);
 *   - an event is the operation that recorded it, so a later record changes
 *     nothing for those who waited before.
 *
 * A destroyed stream leaves its newest operation behind as an orphan, which
 * context-wide events and waits still see (U1). Nobody says that the legacy
 * stream does, so here it does not.
 */

#include "operation.h"

#include <stdlib.h>

struct sim_orphan {
        struct sim_orphan *next;
        struct sim_operation *tail;
};

/* Guarded by: sim_mutex. */
static struct sim_context **contexts;
static size_t context_count;

static void drop_finished_orphans(struct sim_context *context)
{
        struct sim_orphan **place = &context->orphans;

        while (*place) {
                struct sim_orphan *orphan = *place;

                if (sim_operation_done(orphan->tail)) {
                        *place = orphan->next;
                        sim_operation_put(orphan->tail);
                        free(orphan);
                } else {
                        place = &orphan->next;
                }
        }
}

/* Calls `edge` for every operation that the stream's next one must follow. */
static void for_each_edge(struct sim_stream *stream,
                          void (*edge)(void *closure, struct sim_operation *earlier), void *closure)
{
        struct sim_context *context = stream->context;

        edge(closure, stream->tail);
        edge(closure, context->fence);
        if (stream->blocking && stream->kind != SIM_STREAM_LEGACY)
                edge(closure, context->legacy->tail);
        if (stream->kind != SIM_STREAM_LEGACY)
                return;
        for (struct sim_stream *other = context->streams; other; other = other->next)
                if (other->blocking)
                        edge(closure, other->tail);
}

static void need(void *closure, struct sim_operation *earlier)
{
        sim_operation_need(closure, earlier);
}

void sim_order_stream(struct sim_stream *stream, struct sim_operation *next)
{
        for_each_edge(stream, need, next);
}

void sim_order_tail(struct sim_stream *stream, struct sim_operation *operation)
{
        sim_operation_put(stream->tail);
        stream->tail = sim_operation_get(operation);
}

struct sim_operation *sim_enqueue(struct sim_stream *stream, const struct sim_work *work)
{
        struct sim_operation *operation = sim_operation_new(work, stream->id);

        sim_order_stream(stream, operation);
        sim_order_tail(stream, operation);
        sim_operation_submit(operation);
        return operation;
}

struct sim_operation *sim_mark(struct sim_stream *stream, const char *name)
{
        struct sim_work marker = {.name = name};

        return sim_enqueue(stream, &marker);
}

void sim_stream_follow(struct sim_stream *stream, struct sim_operation *operation)
{
        struct sim_work wait = {.name = "wait"};
        struct sim_operation *next = sim_operation_new(&wait, stream->id);

        sim_order_stream(stream, next);
        sim_operation_need(next, operation);
        sim_order_tail(stream, next);
        sim_operation_submit(next);
        sim_operation_put(next);
}

/* ---- reachability ---- */

struct search {
        const struct sim_operation *early;
        uint64_t number; /* of this search: barriers make many paths to one operation */
        bool found;
};

static bool reaches(const struct search *search, struct sim_operation *late)
{
        if (late == search->early)
                return true;
        if (sim_operation_done(late) || late->number < search->early->number)
                return false;
        if (late->searched == search->number)
                return false;
        late->searched = search->number;
        for (size_t i = 0; i < late->need_count; i++)
                if (reaches(search, late->needs[i]))
                        return true;
        return false;
}

static void search_edge(void *closure, struct sim_operation *earlier)
{
        struct search *search = closure;

        if (!search->found && earlier)
                search->found = reaches(search, earlier);
}

bool sim_operation_before(const struct sim_operation *operation, struct sim_stream *stream)
{
        struct search search = {.early = operation, .number = sim_unique()};

        if (sim_operation_done(operation))
                return true;
        for_each_edge(stream, search_edge, &search);
        return search.found;
}

/* ---- whole contexts ---- */

struct sim_context *sim_order_contexts(struct sim_context *primary, struct sim_context *previous)
{
        size_t i = 0;

        if (!previous)
                return primary;
        if (previous != primary)
                while (contexts[i++] != previous)
                        ;
        for (; i < context_count; i++)
                if (contexts[i]->green_parent == primary)
                        return contexts[i];
        return NULL;
}

struct sim_operation *sim_join_context(struct sim_context *context, const char *name)
{
        struct sim_work work = {.name = name};
        struct sim_operation *join = sim_operation_new(&work, 0);
        struct sim_context *part = NULL;

        while ((part = sim_order_contexts(context, part))) {
                drop_finished_orphans(part);
                sim_operation_need(join, part->fence);
                sim_operation_need(join, part->legacy->tail);
                for (struct sim_stream *stream = part->streams; stream; stream = stream->next)
                        sim_operation_need(join, stream->tail);
                for (struct sim_orphan *orphan = part->orphans; orphan; orphan = orphan->next)
                        sim_operation_need(join, orphan->tail);
        }
        sim_operation_submit(join);
        return join;
}

void sim_wait_context(struct sim_context *context)
{
        struct sim_operation *join = sim_join_context(context, "a whole context");

        sim_wait_operation(join);
        sim_operation_put(join);
}

/* What a wait for the stream is about: its own work, and for legacy that of the blocking ones. */
static struct sim_operation *join_stream(struct sim_stream *stream)
{
        struct sim_work work = {.name = "a stream"};
        struct sim_operation *join = sim_operation_new(&work, stream->id);

        if (stream->kind == SIM_STREAM_LEGACY)
                sim_order_stream(stream, join);
        else
                sim_operation_need(join, stream->tail);
        sim_operation_submit(join);
        return join;
}

void sim_wait_stream(struct sim_stream *stream)
{
        struct sim_operation *join = join_stream(stream);

        sim_wait_operation(join);
        sim_operation_put(join);
}

bool sim_stream_is_idle(struct sim_stream *stream)
{
        struct sim_operation *join = join_stream(stream);
        bool idle = sim_operation_done(join);

        sim_operation_put(join);
        return idle;
}

/* ---- births and deaths ---- */

void sim_order_orphan(struct sim_stream *stream)
{
        struct sim_orphan *orphan;

        drop_finished_orphans(stream->context);
        if (!sim_operation_done(stream->tail)) {
                orphan = calloc(1, sizeof(*orphan));
                if (!orphan)
                        sim_abort("out of host memory");
                orphan->tail = sim_operation_get(stream->tail);
                orphan->next = stream->context->orphans;
                stream->context->orphans = orphan;
        }
        sim_operation_put(stream->tail);
        stream->tail = NULL;
}

void sim_order_remember(struct sim_context *context)
{
        contexts = realloc(contexts, (context_count + 1) * sizeof(struct sim_context *));
        if (!contexts)
                sim_abort("out of host memory");
        contexts[context_count++] = context;
}

void sim_order_forget(struct sim_context *context)
{
        size_t i = 0;

        drop_finished_orphans(context);
        sim_operation_put(context->fence);
        context->fence = NULL;
        while (contexts[i] != context)
                i++;
        contexts[i] = contexts[--context_count];
}
