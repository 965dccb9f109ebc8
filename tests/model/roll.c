/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roll -- which streams of a context are worth a look
 */

#include "roll.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "subject.h"

#define STREAMS 200

static struct spm_model model;
static struct spm_roll roll;
static struct spm_stream_state streams[STREAMS];
static bool exhausted;

static void *alloc(size_t count, size_t size, void *user)
{
        (void)user;
        return exhausted ? NULL : calloc(count, size);
}

static void release(void *memory, void *user)
{
        (void)user;
        free(memory);
}

static void add(int from, int to)
{
        int i;

        model.config.alloc = alloc;
        model.config.free = release;
        for (i = from; i < to; i++)
                cr_assert(spm_roll_add(&model, &roll, &streams[i]));
}

static void wake(int i)
{
        spm_roll_wake(&roll, streams[i].place);
}

/* Are just those awake whose number is a multiple of @step and at least @from, in their order? */
static void expect_awake(int from, int to, int step)
{
        struct spm_stream_state *stream;
        uint32_t place;
        int i = (from + step - 1) / step * step;

        for (place = 0; (stream = spm_roll_next(&roll, &place)); place++, i += step)
                cr_assert_eq(stream, &streams[i], "%td, not %d", stream - streams, i);
        cr_expect_geq(i, to, "%d is left out", i);
}

Test(roll, nobody_is_awake_at_first)
{
        uint32_t place = 0;

        cr_expect_null(spm_roll_next(&roll, &place));
        add(0, STREAMS);
        cr_expect_null(spm_roll_next(&roll, &place));
        spm_roll_clear(&model, &roll);
}

Test(roll, those_awake_are_walked_in_the_order_of_their_streams)
{
        int i;

        add(0, STREAMS);
        for (i = STREAMS - 1; i >= 0; i--)
                if (i % 9 == 0)
                        wake(i);
        expect_awake(0, STREAMS, 9);
        spm_roll_rest(&roll, streams[0].place);
        expect_awake(1, STREAMS, 9);
        spm_roll_clear(&model, &roll);
}

Test(roll, growing_wakes_nobody_and_lets_nobody_rest)
{
        int i;

        for (i = 0; i < STREAMS; i++) {
                add(i, i + 1);
                if (i % 7 == 0)
                        wake(i);
        }
        expect_awake(0, STREAMS, 7);
        spm_roll_clear(&model, &roll);
}

Test(roll, places_are_used_again_without_the_host)
{
        int i;

        add(0, 64);
        exhausted = true;
        cr_expect_not(spm_roll_add(&model, &roll, &streams[64]), "all places are taken");
        for (i = 0; i < 64; i += 3)
                wake(i);
        for (i = 0; i < 40; i++)
                spm_roll_remove(&roll, &streams[i]);
        expect_awake(40, 64, 3);
        add(64, 100);
        expect_awake(40, 64, 3);
        for (i = 66; i < 100; i += 3)
                wake(i);
        expect_awake(40, 100, 3);
        spm_roll_rest(&roll, streams[42].place);
        expect_awake(43, 100, 3);
        exhausted = false;
        spm_roll_clear(&model, &roll);
}
