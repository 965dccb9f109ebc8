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
};

/** spm_clock_get() - the position known of @stream, 0 if none. */
uint64_t spm_clock_get(const struct spm_clock *clock, spm_stream stream);

static inline bool spm_clock_covers(const struct spm_clock *clock, struct spm_point point)
{
        return spm_clock_get(clock, point.stream) >= point.position;
}

/* Return: false if there is no memory; the clock is what it was. */
bool spm_clock_raise(struct spm_model *model, struct spm_clock *clock, struct spm_point point);
bool spm_clock_join(struct spm_model *model, struct spm_clock *clock,
                    const struct spm_clock *other);

/** spm_clock_prune() - forget points that the program itself knows to be complete (H_sync). */
void spm_clock_prune(const struct spm_model *model, struct spm_clock *clock);

/** spm_clock_clear() - an empty clock that owns no memory. */
void spm_clock_clear(struct spm_model *model, struct spm_clock *clock);

#endif
