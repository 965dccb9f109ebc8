/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subject -- contexts, streams and events
 *
 * What a stream runs after is spread over three clocks: its own, its context's
 * base (cuCtxWaitEvent binds every stream) and, for blocking streams, what the
 * context's legacy stream has done. So neither a context-wide wait nor a
 * legacy operation walks the streams.
 */

#include "subject.h"

#include "host.h"
#include "state.h"

#define PRUNE_ABOVE 8 /* points of a clock: fewer cost nothing to carry along */

static void link_stream(struct spm_context_state *context, struct spm_stream_state *stream)
{
        stream->context = context;
        stream->previous = context->last_stream;
        if (context->last_stream)
                context->last_stream->next = stream;
        else
                context->streams = stream;
        context->last_stream = stream;
        context->blocking += spm_stream_waits_for_legacy(stream);
}

static struct spm_stream_state *
new_stream(struct spm_model *model, struct spm_context_state *context, enum spm_stream_kind kind)
{
        struct spm_stream_state *stream = spm_host_new(model, sizeof(*stream));

        if (!stream)
                return NULL;
        stream->kind = kind;
        if (!spm_roll_add(model, &context->roll, stream))
                goto undo_stream;
        if (!spm_table_add(model, &model->streams, &stream->object))
                goto undo_roll;
        link_stream(context, stream);
        return stream;

undo_roll:
        spm_roll_remove(&context->roll, stream);
undo_stream:
        spm_host_free(model, stream);
        return NULL;
}

enum spm_status spm_subject_add_context(struct spm_model *model, int device, spm_context *id)
{
        struct spm_context_state *context;

        if (device < 0)
                return SPM_E_INVALID_DEVICE;
        context = spm_host_new(model, sizeof(*context));
        if (!context)
                return SPM_E_HOST_MEMORY;
        context->device = device;
        context->line = new_stream(model, context, SPM_STREAM_LINE);
        if (!context->line)
                goto undo_context;
        if (!spm_table_add(model, &model->contexts, &context->object))
                goto undo_line;
        *id = context->object.id;
        return SPM_OK;

undo_line:
        spm_subject_remove_stream(model, context->line);
undo_context:
        spm_roll_clear(model, &context->roll);
        spm_host_free(model, context);
        return SPM_E_HOST_MEMORY;
}

enum spm_status spm_subject_add_stream(struct spm_model *model, struct spm_context_state *context,
                                       enum spm_stream_kind kind, spm_stream *id)
{
        struct spm_stream_state *stream;

        if ((unsigned int)kind > SPM_STREAM_PER_THREAD)
                return SPM_E_INVALID_VALUE;
        if (kind == SPM_STREAM_LEGACY && context->legacy_stream)
                return SPM_E_INVALID_VALUE;
        stream = new_stream(model, context, kind);
        if (!stream)
                return SPM_E_HOST_MEMORY;
        if (kind == SPM_STREAM_LEGACY)
                context->legacy_stream = stream;
        *id = stream->object.id;
        return SPM_OK;
}

void spm_subject_remove_stream(struct spm_model *model, struct spm_stream_state *stream)
{
        struct spm_context_state *context = stream->context;

        context->blocking -= spm_stream_waits_for_legacy(stream);
        if (stream->previous)
                stream->previous->next = stream->next;
        else
                context->streams = stream->next;
        if (stream->next)
                stream->next->previous = stream->previous;
        else
                context->last_stream = stream->previous;
        if (context->legacy_stream == stream)
                context->legacy_stream = NULL;
        /* Its points are complete now. */
        model->proofs++;
        spm_roll_remove(&context->roll, stream);
        spm_clock_clear(model, &stream->clock);
        spm_table_remove(model, &model->streams, &stream->object);
        spm_host_free(model, stream);
}

void spm_subject_remove_context(struct spm_model *model, struct spm_context_state *context)
{
        while (context->streams)
                spm_subject_remove_stream(model, context->streams);
        spm_roll_clear(model, &context->roll);
        spm_clock_clear(model, &context->base);
        spm_clock_clear(model, &context->legacy);
        spm_table_remove(model, &model->contexts, &context->object);
        spm_host_free(model, context);
}

void spm_subject_remove_event(struct spm_model *model, struct spm_event_state *event)
{
        spm_clock_clear(model, &event->clock);
        spm_table_remove(model, &model->events, &event->object);
        spm_host_free(model, event);
}

uint64_t spm_stream_reaches(const struct spm_stream_state *stream, spm_stream other)
{
        const struct spm_context_state *context = stream->context;
        uint64_t position;
        uint64_t reached;

        if (stream->object.id == other)
                return stream->submitted;
        reached = spm_clock_get(&stream->clock, other);
        position = spm_clock_get(&context->base, other);
        if (position > reached)
                reached = position;
        if (spm_stream_waits_for_legacy(stream)) {
                position = spm_clock_get(&context->legacy, other);
                if (position > reached)
                        reached = position;
        }
        return reached;
}

/* Points that are complete are carried along until the program has proved more than it had. */
static void shorten(const struct spm_model *model, struct spm_clock *clock)
{
        if (clock->count > PRUNE_ABOVE && clock->pruned != model->proofs)
                spm_clock_prune(model, clock);
}

/* It has told all; until it is woken nobody looks at it. */
static void let_rest(const struct spm_model *model, struct spm_stream_state *stream)
{
        if (stream->submitted > stream->done_sync)
                return;
        if (stream->clock.count && stream->clock.pruned != model->proofs)
                spm_clock_prune(model, &stream->clock);
        if (stream->clock.count)
                return;
        stream->awake = false;
        spm_roll_rest(&stream->context->roll, stream->place);
}

/* Adds the stream's end. What the program knows to be done adds nothing. What a magazine serves
 * from now on is behind the end that is told here. */
static bool add_end(struct spm_model *model, struct spm_stream_state *stream,
                    struct spm_clock *clock)
{
        struct spm_point end = {.stream = stream->object.id, .position = stream->submitted};

        if (stream->magazines)
                spm_stream_submit(stream);

        return end.position <= stream->done_sync || spm_clock_raise(model, clock, end);
}

/* Adds the stream's own clock, but not the clocks of its context: those bind what is submitted
 * next, and it is unknown whether an event, or the host, waits for them on a stream where nothing
 * was submitted since (G4). */
static bool add_clock(struct spm_model *model, struct spm_stream_state *stream,
                      struct spm_clock *clock)
{
        shorten(model, &stream->clock);
        return spm_clock_join(model, clock, &stream->clock);
}

/* Nothing says that the legacy stream waits for what a stream had left to do when it was destroyed.
 */
bool spm_stream_snapshot(struct spm_model *model, struct spm_stream_state *stream,
                         struct spm_clock *clock)
{
        const struct spm_roll *roll = &stream->context->roll;
        bool ok = add_clock(model, stream, clock) && add_end(model, stream, clock);
        struct spm_stream_state *other;
        uint32_t place;

        if (stream->kind == SPM_STREAM_LEGACY)
                for (place = 0; ok && (other = spm_roll_next(roll, &place)); place++) {
                        if (!spm_stream_waits_for_legacy(other) || other->retired)
                                continue;
                        ok = add_clock(model, other, clock) && add_end(model, other, clock);
                        let_rest(model, other);
                }
        if (!ok)
                clock->count = 0;
        return ok;
}

bool spm_context_snapshot(struct spm_model *model, struct spm_context_state *context,
                          struct spm_clock *clock)
{
        struct spm_stream_state *stream;
        uint32_t place;
        bool ok = true;

        /* In ascending order, so that the ends are appended. */
        for (place = 0; ok && (stream = spm_roll_next(&context->roll, &place)); place++)
                ok = add_end(model, stream, clock);
        for (place = 0; ok && (stream = spm_roll_next(&context->roll, &place)); place++) {
                ok = add_clock(model, stream, clock);
                let_rest(model, stream);
        }
        if (!ok)
                clock->count = 0;
        return ok;
}

/* Nothing is learnt without memory, or not all. */
static void learn(struct spm_model *model, struct spm_clock *clock, const struct spm_clock *more)
{
        spm_clock_join(model, clock, more);
        shorten(model, clock);
}

void spm_context_learn(struct spm_model *model, struct spm_context_state *context,
                       const struct spm_clock *clock)
{
        learn(model, &context->base, clock);
}

void spm_stream_learn(struct spm_model *model, struct spm_stream_state *stream,
                      const struct spm_clock *clock)
{
        spm_stream_wake(stream);
        learn(model, &stream->clock, clock);
        if (stream->kind == SPM_STREAM_LEGACY)
                learn(model, &stream->context->legacy, clock);
}
