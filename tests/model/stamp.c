/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stamp -- events that the caller records for the model
 */

#include "stamp.h"

#include "bench.h"
#include "state.h"

TestSuite(stamp, .init = bench_set_up, .fini = bench_tear_down);

static struct spm_stream_state *stream_of(spm_stream id)
{
        return spm_subject_stream(bench.model, id);
}

static struct spm_stream_state *line(void)
{
        return spm_subject_context(bench.model, bench.context)->line;
}

static struct spm_stamp_state *ask(struct spm_stream_state *stream)
{
        struct spm_actions actions = {0};
        struct spm_stamp_state *stamp = spm_stamp_ask(bench.model, stream, true, &actions);

        cr_assert_not_null(stamp);
        return stamp;
}

static struct spm_stamp_state *record(struct spm_stream_state *stream)
{
        struct spm_stamp_state *stamp = ask(stream);

        cr_assert_eq(spm_stamp_answer(bench.model, stamp->object.id, true), SPM_OK);
        return stamp;
}

/* Something is submitted to s. Return: its position. */
static uint64_t submit(void)
{
        bench_free(bench_alloc(bench.async, bench.s, KIB), bench.s);
        return stream_of(bench.s)->submitted;
}

Test(stamp, the_oldest_at_or_after_a_point_is_found)
{
        const struct spm_stream_state *s = stream_of(bench.s);
        uint64_t before = submit();
        struct spm_stamp_state *first = record(stream_of(bench.s));
        struct spm_stamp_state *second = record(stream_of(bench.s));

        cr_expect_eq(spm_stamp_find(s, before), first);
        cr_expect_eq(spm_stamp_find(s, first->position), first);
        cr_expect_eq(spm_stamp_find(s, first->position + 1), second);
        cr_expect_eq(spm_stamp_find(s, second->position), second);
        cr_expect_null(spm_stamp_find(s, submit()));
}

Test(stamp, one_that_is_not_recorded_yet_is_not_found)
{
        const struct spm_stream_state *s = stream_of(bench.s);
        struct spm_stamp_state *stamp = ask(stream_of(bench.s));

        cr_expect_null(spm_stamp_find(s, stamp->position));
        cr_expect_null(spm_stamp_find_any(s, stamp->position));
        spm_stamp_answer(bench.model, stamp->object.id, false);
}

Test(stamp, one_of_the_context_covers_what_its_streams_had_submitted)
{
        const struct spm_stream_state *s = stream_of(bench.s);
        uint64_t early = submit();
        struct spm_stamp_state *first = record(line());
        uint64_t late = submit();
        struct spm_stamp_state *second = record(line());

        cr_expect_eq(spm_stamp_find_any(s, early), first);
        cr_expect_eq(spm_stamp_find_any(s, early + 1), second);
        cr_expect_eq(spm_stamp_find_any(s, late), second);
        cr_expect_null(spm_stamp_find_any(s, submit()));
        cr_expect_null(spm_stamp_find(s, early));
}

Test(stamp, one_of_the_stream_itself_is_preferred)
{
        const struct spm_stream_state *s = stream_of(bench.s);
        uint64_t position = submit();
        struct spm_stamp_state *own;

        record(line());
        own = record(stream_of(bench.s));
        cr_expect_eq(spm_stamp_find_any(s, position), own);
}

static const struct spm_stamp_state *find(spm_stamp id)
{
        return (struct spm_stamp_state *)spm_table_find(&bench.model->stamps, id);
}

/* A thread was told to put a stream behind it (R1) and is slow, while others ask for many more. */
Test(stamp, one_that_a_fence_is_for_is_kept_until_it_is_done)
{
        const struct spm_stamp_state *fence;
        struct spm_actions late, done;
        unsigned int i;
        uint64_t a;

        bench_watch();
        a = bench_alloc(bench.sync, 0, 4 * MIB);
        bench_submit(bench.s);
        bench_free(a, 0);
        cr_assert_eq(bench_alloc(bench.sync, 0, 4 * MIB), a, "early");
        cr_assert_eq(spm_submit(bench.model, bench.t, &late), SPM_OK);
        cr_assert_eq(late.count, 2);
        cr_assert_eq(late.item[1].kind, SPM_ACT_WAIT_FENCE);
        fence = find(late.item[1].stamp);
        cr_assert_eq(spm_stamp_answer(bench.model, late.item[0].stamp, true), SPM_OK);
        for (i = 0; i < 100; i++)
                record(stream_of(bench.s))->lent = true;
        cr_expect_not_null(fence->list);
        spm_stamp_done(bench.model, late.item[1].stamp, &done);
        cr_expect_null(fence->list);
}

Test(stamp, a_record_that_is_used_again_remembers_nothing)
{
        struct spm_stamp_state *old = record(stream_of(bench.s));
        struct spm_stamp_state *again;
        spm_stamp id = old->object.id;
        struct spm_actions actions;

        old->lent = true;
        old->waited = true;
        spm_stamp_done(bench.model, id, &actions);
        cr_assert_eq(actions.item[0].kind, SPM_ACT_DROP);
        again = ask(stream_of(bench.t));
        cr_assert_eq(again, old, "it is used again");
        cr_expect(!again->lent && !again->waited && again->status == SPM_STAMP_ASKED);
        cr_expect_eq(again->clock.count, 1);
        cr_expect_neq(again->object.id, id);
        spm_stamp_answer(bench.model, again->object.id, false);
}
