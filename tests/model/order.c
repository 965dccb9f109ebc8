/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order -- what is known to happen before what
 */

#include "order.h"

#include <criterion/criterion.h>

#include "state.h"

static struct spm_model model; /* without streams: every point is complete */

static struct spm_clock clock_of(uint32_t count, const struct spm_point *points)
{
        struct spm_clock clock = {0};
        uint32_t i;

        for (i = 0; i < count; i++)
                cr_assert(spm_clock_raise(&model, &clock, points[i]));
        return clock;
}

Test(order, an_empty_clock_covers_nothing)
{
        struct spm_clock clock = {0};

        cr_expect_not(spm_clock_covers(&clock, (struct spm_point){1, 1}));
        cr_expect_eq(spm_clock_get(&clock, 1), 0);
}

Test(order, raising_never_lowers)
{
        struct spm_clock clock = clock_of(2, (struct spm_point[]){{3, 9}, {3, 4}});

        cr_expect_eq(spm_clock_get(&clock, 3), 9);
        cr_expect_eq(clock.count, 1);
        spm_clock_clear(&model, &clock);
}

Test(order, points_are_kept_in_the_order_of_streams)
{
        struct spm_clock clock = clock_of(4, (struct spm_point[]){{5, 1}, {2, 2}, {9, 3}, {4, 4}});
        uint32_t i;

        for (i = 1; i < clock.count; i++)
                cr_expect_lt(clock.points[i - 1].stream, clock.points[i].stream);
        spm_clock_clear(&model, &clock);
}

Test(order, joining_takes_the_later_of_two_points)
{
        struct spm_clock a = clock_of(3, (struct spm_point[]){{1, 5}, {3, 5}, {6, 1}});
        struct spm_clock b = clock_of(4, (struct spm_point[]){{1, 7}, {2, 2}, {3, 4}, {7, 7}});
        static const uint64_t expected[] = {0, 7, 2, 5, 0, 0, 1, 7};
        spm_stream stream;

        cr_assert(spm_clock_join(&model, &a, &b));
        for (stream = 0; stream < 8; stream++)
                cr_expect_eq(spm_clock_get(&a, stream), expected[stream], "stream %u", stream);
        spm_clock_clear(&model, &a);
        spm_clock_clear(&model, &b);
}

Test(order, joining_with_less_changes_nothing)
{
        struct spm_clock a = clock_of(2, (struct spm_point[]){{1, 5}, {3, 5}});
        struct spm_clock b = clock_of(1, (struct spm_point[]){{3, 5}});

        cr_assert(spm_clock_join(&model, &a, &b));
        cr_expect_eq(a.count, 2);
        cr_expect_eq(spm_clock_get(&a, 1), 5);
        spm_clock_clear(&model, &a);
        spm_clock_clear(&model, &b);
}

Test(order, pruning_forgets_what_is_complete)
{
        struct spm_clock clock = clock_of(2, (struct spm_point[]){{1, 5}, {3, 5}});

        spm_clock_prune(&model, &clock);
        cr_expect_eq(clock.count, 0);
        spm_clock_clear(&model, &clock);
}
