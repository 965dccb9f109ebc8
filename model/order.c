/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order -- what is known to happen before what
 *
 * Clocks are short sorted arrays: a program has few streams, and points that
 * are complete are pruned whenever a clock grows.
 */

#include "order.h"

#include <string.h>

#include "host.h"
#include "subject.h"

/* The index of the first point whose stream is not below @stream. */
static uint32_t index_of(const struct spm_clock *clock, spm_stream stream)
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

uint64_t spm_clock_get(const struct spm_clock *clock, spm_stream stream)
{
        uint32_t at = index_of(clock, stream);

        if (at < clock->count && clock->points[at].stream == stream)
                return clock->points[at].position;
        return 0;
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
        uint32_t at = index_of(clock, point.stream);

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

/* How many streams the two clocks name together. */
static uint32_t union_count(const struct spm_clock *a, const struct spm_clock *b)
{
        uint32_t i = 0;
        uint32_t j = 0;
        uint32_t count = 0;

        while (i < a->count && j < b->count) {
                spm_stream left = a->points[i].stream;
                spm_stream right = b->points[j].stream;

                i += left <= right;
                j += right <= left;
                count++;
        }
        return count + (a->count - i) + (b->count - j);
}

bool spm_clock_join(struct spm_model *model, struct spm_clock *clock, const struct spm_clock *other)
{
        uint32_t count = union_count(clock, other);
        uint32_t i = clock->count;
        uint32_t j = other->count;
        uint32_t k = count;

        if (!make_room(model, clock, count))
                return false;

        /* From the back, so that no point is overwritten before it has moved. */
        while (j) {
                struct spm_point theirs = other->points[j - 1];

                if (i && clock->points[i - 1].stream > theirs.stream) {
                        clock->points[--k] = clock->points[--i];
                        continue;
                }
                if (i && clock->points[i - 1].stream == theirs.stream) {
                        i--;
                        if (theirs.position < clock->points[i].position)
                                theirs.position = clock->points[i].position;
                }
                clock->points[--k] = theirs;
                j--;
        }
        clock->count = count;
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
}

void spm_clock_clear(struct spm_model *model, struct spm_clock *clock)
{
        spm_host_free(model, clock->points);
        clock->points = NULL;
        clock->count = 0;
        clock->room = 0;
}
