/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_WORK_H
#define SPM_WORK_H

/*
 * Work -- which streams of a context may have any
 *
 * The caller announces what the program submits (streampool/submit.h), a
 * stream once in a count. The streams announced in the adopted count, and
 * later, may have work; no other has. A new count begins with a stamp of the
 * context: when that is done, so is all that was submitted before, and the new
 * count is adopted.
 *
 * While one stream alone has work it is the sole one (rule R1): memory freed
 * in the context is its to have again, at once. A blocking stream and the
 * legacy one count as one, because each runs after what the other was given
 * before.
 *
 *   work.c       the counts, and the front door
 *   work_sole.c  R1, and why it holds
 */

#include <stdbool.h>
#include <stdint.h>
#include <streampool/model.h>

struct spm_block;
struct spm_context_state;
struct spm_stamp_state;
struct spm_stream_state;

/* What a free into the context's memory is, to the owner of a magazine (ripe.h). */
enum spm_work_free { SPM_WORK_FREE_LOCKED, SPM_WORK_FREE_COMPLETE, SPM_WORK_FREE_WAITS };

struct spm_work_count {
        unsigned int streams;
        unsigned int blocking; /* of these, but for the legacy one */
        bool per_thread;
        spm_stream first;
        spm_stream second;
};

struct spm_work {
        uint32_t epoch;                /* of the latest count; 0: nothing is announced */
        uint32_t adopted;              /* of the count that is relied on; 0: none yet */
        spm_stamp counting;            /* the stamp of the latest count; 0: it has none */
        uint64_t begun;                /* the line's point that proves it, once that is recorded */
        struct spm_work_count busy;    /* since the adopted count began */
        struct spm_work_count late;    /* since the latest one began */
        bool alone;                    /* memory is touched by the context's own streams only */
        struct spm_stream_state *sole; /* NULL: none, or several */
        uint64_t early; /* the last point of the sole stream that a served block waited for */
        /* What was the sole stream, or 0, and the point of it that its context is put behind. */
        spm_stream fenced;
        uint64_t fence;
        /* The device is behind the host: so many more stamps are asked for ahead of need, and then
         * it is asked whether it still is. While it is 0, memory is complete soon enough, and
         * blocks wait for that as under R2. */
        unsigned int eager;
        spm_stamp probed; /* what was asked about then */
        bool crowded;     /* owners of magazines keep one another waiting (ripe.h) */
        enum spm_work_free frees;
};

/** spm_work_sole() - the stream that memory of a pool is served to; NULL: to anybody.
 * @work: of the pool (pool.h), like the next two; NULL if that is not synchronous */
static inline struct spm_stream_state *spm_work_sole(const struct spm_work *work)
{
        return work ? work->sole : NULL;
}

/** spm_work_early() - the same, while the device is behind; NULL: memory is waited for (R2). */
static inline struct spm_stream_state *spm_work_early(const struct spm_work *work)
{
        return work && work->eager ? work->sole : NULL;
}

/** spm_work_missed() - of what a request could have had nothing was complete, and the device was
 * asked. */
void spm_work_missed(struct spm_model *model, struct spm_context_state *context);

/** spm_work_relies_on() - has the sole stream's order to do with @stream, as long as that is there?
 */
bool spm_work_relies_on(const struct spm_stream_state *stream);

/** spm_work_is_idle() - is everything complete that was ever submitted into it? Where a second
 * context may have work in its memory nobody can tell. */
static inline bool spm_work_is_idle(const struct spm_work *work)
{
        return work->adopted && work->alone && !work->busy.streams;
}

/** spm_work_may_have() - may @stream have any? */
bool spm_work_may_have(const struct spm_stream_state *stream);

/** spm_work_is_trapped() - is @stream a legacy one, and may a blocking stream have work that an
 * operation of it, which the driver does not see, fails to order? (H6) With fewer than two of them
 * there is nobody to be told: each is in order with itself, and with the work on the legacy stream.
 */
bool spm_work_is_trapped(const struct spm_stream_state *stream);

/** spm_work_served() - a synchronous block was served to the sole stream before it was complete. */
void spm_work_served(struct spm_context_state *context, const struct spm_block *block);

/** spm_work_unguarded() - the stamp that was to tell what had been freed to @stream from its next
 * work was not to be had. @actions: to be carried out before that work is submitted. */
void spm_work_unguarded(struct spm_stream_state *stream, struct spm_actions *actions);

/** spm_work_note() - what a free is may have changed: by what has work, or by how many threads have
 * magazines of the context's own memory, and what they have said. The magazines are told. */
void spm_work_note(struct spm_model *model, struct spm_context_state *context);

/** spm_work_recorded() - the caller has recorded a stamp of the whole context, or could not;
 * spm_work_passed(): and that is done. The count that began with it can be proved by that. */
void spm_work_recorded(const struct spm_stamp_state *stamp, bool ok);
void spm_work_passed(const struct spm_stamp_state *stamp);

/** spm_work_settle() - the line has got on: adopt the latest count, if that proves it. */
void spm_work_settle(struct spm_model *model, struct spm_context_state *context);

/** spm_work_blur() - there will be submissions that nobody announces, or the sole stream ends:
 * until the next count any stream may have work. @actions: as of spm_submit(). */
void spm_work_blur(struct spm_model *model, struct spm_context_state *context,
                   struct spm_actions *actions);

/* inside: what work.c tells work_sole.c */

/** spm_work_find_sole() - another count is relied on: there may be a sole stream now. */
void spm_work_find_sole(const struct spm_model *model, struct spm_context_state *context);

/** spm_work_submit() - @stream was announced, and is about to be given work: it may be the sole
 * stream, or end what another was. @actions: to be carried out before that. */
void spm_work_submit(struct spm_model *model, struct spm_stream_state *stream,
                     struct spm_actions *actions);

/** spm_work_end_sole() - no stream is the sole one any more. @waiter: who is about to be given work
 * that has to be behind what was served early; NULL for whoever it may be, and the host waits. */
void spm_work_end_sole(struct spm_model *model, struct spm_context_state *context,
                       const struct spm_stream_state *waiter, struct spm_actions *actions);

#endif
