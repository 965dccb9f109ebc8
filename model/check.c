/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Check -- every invariant by name
 *
 * What the structures say is checked here: contexts, with their streams and
 * stamps, in this file, pools in check_pool.c. That a block was served to nobody
 * who could meet its last owner (I2) is a statement about the device: the
 * tests check it against a graph of everything that was submitted. I6, I7 and
 * I11 are statements about answers, and checked there too.
 */

#include "check.h"

#include <stdlib.h>

#include "ledger.h"
#include "pool.h"
#include "recall.h"
#include "stamp.h"
#include "state.h"
#include "subject.h"
#include "tag.h"
#include "text.h"

void spm_check_fail(struct spm_check *check, const char *what, uint64_t a, uint64_t b)
{
        if (check->failed)
                return;
        check->failed = true;
        spm_text_word(&check->text, what);
        spm_text_count(&check->text, ":", a);
        spm_text_count(&check->text, "against", b);
}

static void check_clock(struct spm_check *check, const struct spm_clock *clock)
{
        uint32_t i;

        for (i = 0; i < clock->count; i++) {
                const struct spm_stream_state *stream =
                        spm_subject_stream(check->model, clock->points[i].stream);

                if (i && clock->points[i - 1].stream >= clock->points[i].stream)
                        spm_check_fail(check, "I4 a clock is ascending", i,
                                       clock->points[i].stream);
                if (stream)
                        spm_check_at_most(check, "I4 a clock knows no future",
                                          clock->points[i].position, stream->submitted);
        }
}

static void check_stamps(struct spm_check *check, const struct spm_stamp_list *list)
{
        const struct spm_stamp_state *stamp;
        unsigned int count = 0;

        for (stamp = list->first; stamp; stamp = stamp->next) {
                count++;
                check_clock(check, &stamp->clock);
                if (stamp->next && stamp->next->position <= stamp->position)
                        spm_check_fail(check, "stamps are ascending", stamp->object.id,
                                       stamp->position);
        }
        spm_check_equal(check, "stamps are counted", list->count, count);
}

/* R1: one stream, or the legacy one and a blocking one, which is in order with it. */
static void check_work(struct spm_check *check, const struct spm_context_state *context)
{
        const struct spm_work *work = &context->work;

        spm_check_at_most(check, "what is adopted was counted", work->adopted, work->epoch);
        if (!work->sole)
                return;
        if (!work->adopted || !work->alone || work->busy.per_thread || work->busy.streams > 2 ||
            (work->busy.streams == 2 && work->sole != context->legacy_stream))
                spm_check_fail(check, "R1 the sole stream is the only one", work->sole->object.id,
                               work->busy.streams);
        spm_check_at_most(check, "R1 what was served early was freed", work->early,
                          work->sole->submitted);
}

static void check_context(struct spm_check *check, const struct spm_context_state *context)
{
        const struct spm_stream_state *stream;
        unsigned int capturing = 0;

        check_clock(check, &context->base);
        check_clock(check, &context->legacy);
        check_stamps(check, &context->stamps);
        check_work(check, context);
        for (stream = context->streams; stream; stream = stream->next) {
                capturing += stream->capturing;
                check_clock(check, &stream->clock);
                check_stamps(check, &stream->stamps);
                spm_check_at_most(check, "I4 H_sync is below H_poll", stream->done_sync,
                                  stream->done_poll);
                spm_check_at_most(check, "I4 what is done was submitted", stream->done_poll,
                                  stream->submitted);
                if (!stream->awake &&
                    (stream->submitted > stream->done_sync || stream->clock.count))
                        spm_check_fail(check, "a stream that rests has told all", stream->object.id,
                                       stream->submitted);
                spm_check_at_most(check, "I4 stamps stand for the past", stream->stamped,
                                  stream->submitted);
        }
        spm_check_equal(check, "captures are counted", context->captures, capturing);
}

static void check_ledger(struct spm_check *check)
{
        const char *broken = NULL;

        if (check->model->ledger)
                broken = spm_ledger_check(check->model);
        if (!broken && check->model->ledger)
                broken = spm_tag_check(check->model);
        if (broken)
                spm_check_fail(check, broken, 0, 0);
}

bool spm_check(const struct spm_model *model, char *buffer, size_t size)
{
        struct spm_check check = {.model = model};
        const struct spm_pool_state *pool;
        const struct spm_object *object;
        uint64_t blocks = 0;
        size_t ended = 0;

        spm_text_start(&check.text, buffer, buffer ? size : 0);
        spm_magazine_stop_all(model, true);
        for (object = model->contexts.head; object; object = spm_object_next(object))
                check_context(&check, (const struct spm_context_state *)object);
        for (object = model->events.head; object; object = spm_object_next(object))
                check_clock(&check, &((const struct spm_event_state *)object)->clock);
        for (pool = spm_pool_first(model); pool; pool = spm_pool_next(pool)) {
                if (pool->ended)
                        ended++;
                else
                        spm_check_pool(&check, pool, &blocks);
        }
        if (!ended)
                spm_check_equal(&check, "records are counted", model->blocks, blocks);
        check_ledger(&check);
        spm_magazine_go_on(model);
        return !check.failed;
}

#ifdef SPM_DEBUG
void spm_check_step(struct spm_model *model)
{
        char text[160];

        if (model->unchecked++ < model->blocks / 64)
                return;
        model->unchecked = 0;
        if (!spm_check(model, text, sizeof(text)))
                abort(); /* text says what is broken */
}
#endif
