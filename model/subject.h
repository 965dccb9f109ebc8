/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_SUBJECT_H
#define SPM_SUBJECT_H

/*
 * Subject -- contexts, streams and events
 *
 * What each of them knows (its clock), what the host knows of it (how far it
 * is done), and whether an action may name it now.
 *
 * Every context has one stream that the program never sees, its line. The
 * points of the line are the frees of synchronous blocks; the line has reached
 * a point when the whole context has finished what was submitted before it.
 * So a block in limbo is a block that waits for a point like any other.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <streampool/model.h>

#include "order.h"
#include "roll.h"
#include "state.h"
#include "table.h"
#include "work.h"

/* Continues enum spm_stream_kind. */
#define SPM_STREAM_LINE ((enum spm_stream_kind)(SPM_STREAM_PER_THREAD + 1))

struct spm_lane;
struct spm_stamp_state;

struct spm_stamp_list {
        struct spm_stamp_state *first; /* the oldest */
        struct spm_stamp_state *last;
        unsigned int count;
};

struct spm_stream_state {
        struct spm_object object;
        struct spm_context_state *context;
        enum spm_stream_kind kind;
        struct spm_stream_state *previous; /* in its context, ascending by id */
        struct spm_stream_state *next;
        uint32_t place; /* in its context's roll */
        bool awake;     /* there; false: all of it is done, and its clock is empty */
        bool retired;
        unsigned int capturing;

        /*
         * done_sync <= done_poll <= submitted. What the program itself waited for is done_sync;
         * done_poll adds what it asked about and what was asked on the model's behalf.
         */
        _Atomic(uint64_t) submitted; /* magazines read it without the lock */
        uint64_t done_sync;
        uint64_t done_poll;
        struct spm_clock clock; /* what its next operation runs after, itself left out */

        uint32_t announced;           /* the last count in which it was (work.h) */
        unsigned int magazines;       /* for it, in any pool */
        struct spm_lane *lanes;       /* blocks that wait for points of this stream, by pool */
        struct spm_stamp_list stamps; /* stamps recorded on it, ascending */
        uint64_t freed;               /* the last point that a block waits for */
        uint64_t allocated;           /* the point of the latest allocation in its order */
        uint64_t stamped;             /* the last point that a stamp was asked for */
        unsigned int open_blocks;     /* freed since then: of a line, the open batch */
        size_t open_bytes;
};

struct spm_context_state {
        struct spm_object object;
        int device;
        bool gone;             /* being removed */
        unsigned int captures; /* open on its streams */
        unsigned int blocking; /* streams that wait for the legacy one, retired ones too */
        bool hidden;           /* it may have more of them (spm_context_hide()) */
        struct spm_clock base; /* what all its streams wait for, later ones too (H9) */
        /* The line's point at the latest of these waits; atomic, as owners of magazines ask
         * whether there was one. */
        _Atomic(uint64_t) waited_at;
        struct spm_clock legacy; /* what its blocking streams wait for (H6) */
        struct spm_stream_state *streams;
        struct spm_stream_state *last_stream;
        struct spm_roll roll; /* of its streams */
        struct spm_stream_state *legacy_stream;
        struct spm_stream_state *line;
        _Atomic(uint64_t) line_done;  /* of that, done_poll; magazines read it without the lock */
        struct spm_stamp_list stamps; /* of the whole context, ascending */
        bool unstamped; /* a synchronous block was freed since a stamp was asked for */
        struct spm_work work;
};

enum spm_event_status {
        SPM_EVENT_NONE,    /* never recorded: waiting for it means nothing */
        SPM_EVENT_KNOWN,   /* its clock says what it stands for */
        SPM_EVENT_UNKNOWN, /* it may stand for anything */
};

struct spm_event_state {
        struct spm_object object;
        enum spm_event_status status;
        bool tainted;           /* UNKNOWN for ever */
        bool muddled;           /* two records overlapped: nobody knows which came last */
        unsigned int recording; /* records between _begin and _end */
        uint64_t version;       /* changes whenever the driver's event may have */
        struct spm_clock clock;
};

/* life: the functions of the public header, without actions */

enum spm_status spm_subject_add_context(struct spm_model *model, int device, spm_context *context);
enum spm_status spm_subject_add_stream(struct spm_model *model, struct spm_context_state *context,
                                       enum spm_stream_kind kind, spm_stream *stream);

/** spm_subject_remove_stream() - no lane, stamp or list but its context's refers to it. */
void spm_subject_remove_stream(struct spm_model *model, struct spm_stream_state *stream);
void spm_subject_remove_context(struct spm_model *model, struct spm_context_state *context);
void spm_subject_remove_event(struct spm_model *model, struct spm_event_state *event);

/* look-up: NULL for an unknown handle */

static inline struct spm_context_state *spm_subject_context(const struct spm_model *model,
                                                            spm_context id)
{
        return (struct spm_context_state *)spm_table_find(&model->contexts, id);
}

/* Also retired streams and lines. */
static inline struct spm_stream_state *spm_subject_stream(const struct spm_model *model,
                                                          spm_stream id)
{
        return (struct spm_stream_state *)spm_table_find(&model->streams, id);
}

/* Only streams that the program can still use. */
static inline struct spm_stream_state *spm_subject_usable(const struct spm_model *model,
                                                          spm_stream id)
{
        struct spm_stream_state *stream = spm_subject_stream(model, id);

        if (!stream || stream->kind == SPM_STREAM_LINE || stream->retired || stream->context->gone)
                return NULL;
        return stream;
}

static inline struct spm_event_state *spm_subject_event(const struct spm_model *model, spm_event id)
{
        return (struct spm_event_state *)spm_table_find(&model->events, id);
}

/* knowledge */

/** spm_stream_wake() - before its clock grows */
static inline void spm_stream_wake(struct spm_stream_state *stream)
{
        if (stream->awake)
                return;
        stream->awake = true;
        spm_roll_wake(&stream->context->roll, stream->place);
}

/** spm_stream_submit() - Return: the position of its next operation, which is submitted now. */
static inline uint64_t spm_stream_submit(struct spm_stream_state *stream)
{
        spm_stream_wake(stream);
        atomic_store_explicit(&stream->submitted, stream->submitted + 1, memory_order_relaxed);
        return stream->submitted;
}

/** spm_stream_waits_for_legacy() - is it a blocking stream? */
static inline bool spm_stream_waits_for_legacy(const struct spm_stream_state *stream)
{
        return stream->kind == SPM_STREAM_BLOCKING || stream->kind == SPM_STREAM_PER_THREAD;
}

/** spm_point_is_done() - has the host seen it complete? A stream that is gone is complete.
 * @sync: count only what the program itself waited for */
static inline bool spm_point_is_done(const struct spm_model *model, struct spm_point point,
                                     bool sync)
{
        const struct spm_stream_state *stream = spm_subject_stream(model, point.stream);

        return !stream || point.position <= (sync ? stream->done_sync : stream->done_poll);
}

/** spm_stream_reaches() - the last position of @other that @stream runs after. */
uint64_t spm_stream_reaches(const struct spm_stream_state *stream, spm_stream other);

/** spm_stream_covers() - does what is submitted next to @stream run after @point? */
static inline bool spm_stream_covers(const struct spm_stream_state *stream, struct spm_point point)
{
        if (stream->object.id == point.stream)
                return stream->submitted >= point.position;
        return spm_stream_reaches(stream, point.stream) >= point.position;
}

/** spm_stream_has_waited() - is @point among what the host waits for when it waits for @stream?
 * What its context waits for binds only what is submitted next, so it is not. */
static inline bool spm_stream_has_waited(const struct spm_stream_state *stream,
                                         struct spm_point point)
{
        return stream->object.id == point.stream || spm_clock_covers(&stream->clock, point);
}

/**
 * spm_stream_snapshot() - all that an operation at the end of @stream stands for
 * @clock: is empty and receives the points; for a legacy stream also those of every blocking stream
 *         (H5, H6)
 *
 * Return: false if there is no memory; @clock is then empty.
 */
bool spm_stream_snapshot(struct spm_model *model, struct spm_stream_state *stream,
                         struct spm_clock *clock);

/** spm_context_snapshot() - the same for all streams of a context, its line among them (H7, H8). */
bool spm_context_snapshot(struct spm_model *model, struct spm_context_state *context,
                          struct spm_clock *clock);

/** spm_context_learn() - all streams of @context, later ones too, run after @clock (H9). */
void spm_context_learn(struct spm_model *model, struct spm_context_state *context,
                       const struct spm_clock *clock);

/** spm_stream_learn() - @stream runs after @clock from now on; for a legacy stream so do the
 * blocking streams of its context (H6). Nothing is learnt without memory. */
void spm_stream_learn(struct spm_model *model, struct spm_stream_state *stream,
                      const struct spm_clock *clock);

/** spm_context_may_be_named() - no capture is open in it and it is not going away (C5, C6, I7). */
static inline bool spm_context_may_be_named(const struct spm_context_state *context)
{
        return !context->gone && !context->captures;
}

/** spm_stream_may_be_named() - additionally, it is not retired. */
static inline bool spm_stream_may_be_named(const struct spm_stream_state *stream)
{
        return !stream->retired && spm_context_may_be_named(stream->context);
}

#endif
