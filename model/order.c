/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order -- what is known to happen before what
 *
 * Clocks are short sorted arrays: a program has few streams, and points that
 * are complete are pruned when the program has waited for something.
 *
 * To join two clocks costs a step for each of their points, and for each that
 * is new another; a fork and join of n streams joins clocks of n points again
 * and again, and finds no new stream. Host memory is asked for when a clock
 * names more streams than it ever did, and for as many snapshots as there are
 * calls at the same time: a record, a wait, a query and a synchronisation ask
 * for none once they have been made before (tests/model/steady.c counts them).
 */

#include "order.h"

#include <string.h>

#include "host.h"
#include "subject.h"

uint32_t spm_clock_index(const struct spm_clock *clock, spm_stream stream)
{
        uint32_t low = 0;
        uint32_t high = clock->count;

        /* Snapshots of a context arrive in ascending order. */
        if (high && clock->points[high - 1].stream < stream)
                return high;
        while (low < high) {
                uint32_t middle = low + (high - low) / 2;

                if (clock->points[middle].stream < stream)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static bool make_room(struct spm_model *model, struct spm_clock *clock, uint32_t count)
{
        struct spm_point *points;
        uint32_t room = clock->room ? clock->room : 4;

        if (count <= clock->room)
                return true;
        while (room < count)
                room *= 2;
        points = spm_host_new(model, room * sizeof(*points));
        if (!points)
                return false;
        if (clock->count)
                memcpy(points, clock->points, clock->count * sizeof(*points));
        spm_host_free(model, clock->points);
        clock->points = points;
        clock->room = room;
        return true;
}

bool spm_clock_raise(struct spm_model *model, struct spm_clock *clock, struct spm_point point)
{
        uint32_t at = spm_clock_index(clock, point.stream);

        if (at < clock->count && clock->points[at].stream == point.stream) {
                if (clock->points[at].position < point.position)
                        clock->points[at].position = point.position;
                return true;
        }
        if (!make_room(model, clock, clock->count + 1))
                return false;
        memmove(clock->points + at + 1, clock->points + at,
                (clock->count - at) * sizeof(*clock->points));
        clock->points[at] = point;
        clock->count++;
        return true;
}

/* Raises the points of streams that both clocks name. Return: how many @clock does not name. */
static uint32_t raise_common(struct spm_clock *clock, const struct spm_clock *other)
{
        struct spm_point *mine = clock->points;
        const struct spm_point *theirs = other->points;
        const struct spm_point *end;
        const struct spm_point *last;
        uint32_t missing = 0;

        /* An empty clock may have no points at all. */
        if (!clock->count || !other->count)
                return other->count;
        end = mine + clock->count;
        last = theirs + other->count;
        while (mine < end && theirs < last) {
                /* Mostly all the way. */
                if (mine->stream == theirs->stream) {
                        if (mine->position < theirs->position)
                                mine->position = theirs->position;
                        mine++;
                        theirs++;
                } else if (mine->stream < theirs->stream) {
                        mine++;
                } else {
                        theirs++;
                        missing++;
                }
        }
        return missing + (uint32_t)(last - theirs);
}

/* Puts in the points of streams that only @other names, for which there is room. */
static void merge(struct spm_clock *clock, const struct spm_clock *other, uint32_t missing)
{
        uint32_t i = clock->count;
        uint32_t j = other->count;
        uint32_t k = i + missing;

        clock->count = k;
        /* From the back, so that no point is overwritten before it has moved. */
        while (k > i) {
                const struct spm_point *theirs = &other->points[j - 1];

                if (i && clock->points[i - 1].stream >= theirs->stream) {
                        j -= clock->points[i - 1].stream == theirs->stream;
                        clock->points[--k] = clock->points[--i];
                } else {
                        clock->points[--k] = *theirs;
                        j--;
                }
        }
}

static void copy_points(struct spm_clock *clock, const struct spm_clock *other)
{
        if (other->count)
                memcpy(clock->points, other->points, other->count * sizeof(*clock->points));
        clock->count = other->count;
}

bool spm_clock_join(struct spm_model *model, struct spm_clock *clock, const struct spm_clock *other)
{
        uint32_t missing = clock->count ? raise_common(clock, other) : other->count;

        if (!missing)
                return true;
        if (!make_room(model, clock, clock->count + missing))
                return false;
        if (clock->count)
                merge(clock, other, missing);
        else
                copy_points(clock, other);
        return true;
}

void spm_clock_prune(const struct spm_model *model, struct spm_clock *clock)
{
        uint32_t kept = 0;
        uint32_t i;

        for (i = 0; i < clock->count; i++)
                if (!spm_point_is_done(model, clock->points[i], true))
                        clock->points[kept++] = clock->points[i];
        clock->count = kept;
        clock->pruned = model->proofs;
}

void spm_clock_clear(struct spm_model *model, struct spm_clock *clock)
{
        spm_host_free(model, clock->points);
        clock->points = NULL;
        clock->count = 0;
        clock->room = 0;
}

/* snapshots */

struct spm_snapshot *spm_snapshot_new(struct spm_model *model)
{
        struct spm_snapshot *snapshot = model->snapshots;

        if (!snapshot)
                return spm_host_new(model, sizeof(*snapshot));
        model->snapshots = snapshot->next;
        return snapshot;
}

void spm_snapshot_free(struct spm_model *model, struct spm_snapshot *snapshot)
{
        if (!snapshot)
                return;
        snapshot->clock.count = 0;
        snapshot->next = model->snapshots;
        model->snapshots = snapshot;
}

/* The array that grew with the largest clocks stays behind, unless the host is out of memory. */
void spm_snapshot_move(struct spm_model *model, struct spm_snapshot *snapshot,
                       struct spm_clock *clock)
{
        struct spm_clock old = *clock;

        clock->count = 0;
        if (make_room(model, clock, snapshot->clock.count)) {
                copy_points(clock, &snapshot->clock);
                return;
        }
        *clock = snapshot->clock;
        snapshot->clock = old;
}

void spm_snapshot_forget(struct spm_model *model)
{
        while (model->snapshots) {
                struct spm_snapshot *snapshot = model->snapshots;

                model->snapshots = snapshot->next;
                spm_clock_clear(model, &snapshot->clock);
                spm_host_free(model, snapshot);
        }
}
