/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_ORDER_H
#define SPM_ORDER_H

/*
 * Order -- what is known to happen before what
 *
 * Every stream is a counter: its n-th operation is the point (stream, n). A
 * clock is a set of points, at most one a stream, and stands for these points
 * and everything before them on their streams. Whoever is ordered behind a
 * clock is ordered behind all of that.
 *
 * A clock that could not grow for lack of host memory knows less than it
 * might, never more (G4).
 */

#include <stdbool.h>
#include <stdint.h>
#include <streampool/model.h>

struct spm_point {
        spm_stream stream;
        uint64_t position; /* 1 is the first operation */
};

struct spm_clock {
        struct spm_point *points; /* ascending by stream */
        uint32_t count;
        uint32_t room;
        uint64_t pruned; /* the model's proofs when it was */
};

/* The index of the first point whose stream is not below @stream. */
uint32_t spm_clock_index(const struct spm_clock *clock, spm_stream stream);

/** spm_clock_get() - the position known of @stream, 0 if none. */
static inline uint64_t spm_clock_get(const struct spm_clock *clock, spm_stream stream)
{
        uint32_t at = clock->count ? spm_clock_index(clock, stream) : 0;

        if (at < clock->count && clock->points[at].stream == stream)
                return clock->points[at].position;
        return 0;
}

static inline bool spm_clock_covers(const struct spm_clock *clock, struct spm_point point)
{
        return spm_clock_get(clock, point.stream) >= point.position;
}

/* Return: false if there is no memory; the points of streams that it named are raised even so. */
bool spm_clock_raise(struct spm_model *model, struct spm_clock *clock, struct spm_point point);
bool spm_clock_join(struct spm_model *model, struct spm_clock *clock,
                    const struct spm_clock *other);

/** spm_clock_prune() - forget points that the program itself knows to be complete (H_sync). */
void spm_clock_prune(const struct spm_model *model, struct spm_clock *clock);

/** spm_clock_clear() - an empty clock that owns no memory. */
void spm_clock_clear(struct spm_model *model, struct spm_clock *clock);

/* snapshots: clocks that are taken when a driver call begins and given back when it has ended */

struct spm_snapshot {
        struct spm_clock clock;
        struct spm_snapshot *next; /* unused, in the model */
};

/** spm_snapshot_new() - one with an empty clock, or NULL if there is no memory. */
struct spm_snapshot *spm_snapshot_new(struct spm_model *model);

/** spm_snapshot_free() - keeps it, and the room of its clock, for the next call; accepts NULL. */
void spm_snapshot_free(struct spm_model *model, struct spm_snapshot *snapshot);

/** spm_snapshot_move() - @clock becomes what the snapshot is, which is anything then. */
void spm_snapshot_move(struct spm_model *model, struct spm_snapshot *snapshot,
                       struct spm_clock *clock);

/** spm_snapshot_forget() - the unused ones. */
void spm_snapshot_forget(struct spm_model *model);

#endif
