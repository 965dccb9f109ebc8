/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Side -- one of two models that are told the same
 */

#include "side.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BASE  ((uint64_t)1 << 40)
#define GRAIN (256 * KIB)

void side_fail(const char *what, uint64_t a, uint64_t b)
{
        fprintf(stderr, "alone: %s: %" PRIu64 " and %" PRIu64 "\n", what, a, b);
        exit(1);
}

void side_must(enum spm_status status, const char *what)
{
        if (status != SPM_OK)
                side_fail(what, status, 0);
}

/* the device: everything is done when somebody asks */

static void perform(struct side *side, const struct spm_actions *actions);

static void mark(struct side *side, uint64_t address, size_t size, bool value)
{
        memset(side->was_served + (address - BASE) / SIDE_UNIT, value, size / SIDE_UNIT);
}

void side_observe(struct side *side, struct spm_scope scope, enum spm_sync how)
{
        struct spm_actions actions;
        struct spm_ticket ticket;

        side_must(spm_sync_begin(side->model, scope, &ticket), "a synchronisation");
        spm_sync_end(side->model, &ticket, how, true, &actions);
        perform(side, &actions);
}

static void answer(struct side *side, const struct spm_action *action)
{
        struct spm_actions more = {0};
        uint64_t address = action->address;
        spm_segment segment;

        if (action->kind == SPM_ACT_RECORD) {
                side_must(spm_stamp_recorded(side->model, action->stamp, true, &more), "a stamp");
        } else if (action->kind == SPM_ACT_POLL || action->kind == SPM_ACT_WAIT_HOST) {
                spm_stamp_done(side->model, action->stamp, &more);
        } else if (action->kind == SPM_ACT_GROW) {
                if (!address) {
                        address = BASE + SIDE_RANGE + side->next_lone;
                        side->next_lone = (side->next_lone + action->size) % (SIDE_RANGE / 2);
                }
                side->reserved += action->size;
                mark(side, address, action->size, false);
                side_must(spm_segment_add(side->model, action->pool, address, action->size, NULL,
                                          &segment),
                          "a segment");
        } else if (action->kind == SPM_ACT_RELEASE) {
                side->reserved -= action->size;
        } else if (action->kind == SPM_ACT_POLL_STREAM) {
                side_observe(side, (struct spm_scope){SPM_SCOPE_STREAM, action->stream},
                             SPM_SYNC_POLL);
        } else if (action->kind == SPM_ACT_SYNC_CONTEXT) {
                side_observe(side, (struct spm_scope){SPM_SCOPE_CONTEXT, action->context},
                             SPM_SYNC_POLL);
        }
        perform(side, &more);
}

static void perform(struct side *side, const struct spm_actions *actions)
{
        unsigned int i;

        for (i = 0; i < actions->count; i++)
                answer(side, &actions->item[i]);
}

/* calls; what is chosen is chosen for both sides */

void side_alloc(struct side *side, unsigned int place, unsigned int stream, size_t size)
{
        struct spm_allocation *block = &side->live[place];
        struct spm_request request = {
                .pool = side->pool,
                .stream = side->streams[stream],
                .size = size,
                .magazine = side->magazines[stream],
        };
        struct spm_actions actions;
        enum spm_status status;
        bool was_served;

        if (request.magazine && spm_magazine_alloc(request.magazine, size, 0, block)) {
                side->quick++;
        } else {
                do {
                        status = spm_alloc(side->model, &request, block, &actions);
                        perform(side, &actions);
                } while (status == SPM_AGAIN);
                side_must(status, "an allocation");
        }
        was_served = memchr(side->was_served + (block->address - BASE) / SIDE_UNIT, true,
                            block->reserved / SIDE_UNIT) != NULL;
        /* What was joined with memory that was served counts as such. */
        if (was_served && !block->reused)
                side_fail("a block was served before", block->address, block->reserved);
        side->reused += block->reused;
        mark(side, block->address, block->reserved, true);
}

/* Return: false if no magazine takes it. */
static bool end_quickly(struct side *side, const struct spm_allocation *block,
                        struct spm_allocation *freed)
{
        unsigned int i;

        for (i = 0; i < SIDE_STREAMS; i++)
                if (side->magazines[i] && block->stream == side->streams[i] &&
                    spm_magazine_free(side->magazines[i], block->address, block->generation, freed))
                        return true;
        return false;
}

void side_end(struct side *side, unsigned int place, unsigned int stream, enum side_end how)
{
        enum spm_free_kind kind = how == SIDE_FREE_SYNC ? SPM_FREE_SYNC : SPM_FREE_ASYNC;
        struct spm_allocation *block = &side->live[place];
        struct spm_allocation freed = *block;
        struct spm_actions actions = {0};

        if (how == SIDE_FREE && end_quickly(side, block, &freed)) {
                side->quick++;
        } else if (how == SIDE_UNDO) {
                side->reused -= block->reused;
                side_must(spm_alloc_undo(side->model, block->address, &actions), "an undo");
        } else {
                side_must(
                        spm_free(side->model, block->address, block->generation, kind,
                                 how == SIDE_FREE_ELSEWHERE ? side->streams[stream] : block->stream,
                                 &freed, &actions),
                        "a free");
        }
        perform(side, &actions);
        if (freed.address != block->address || freed.reserved != block->reserved ||
            freed.size != block->size)
                side_fail("another block was freed", freed.address, block->address);
        block->address = 0;
}

void side_magazine(struct side *side, unsigned int stream, bool wanted)
{
        struct spm_magazine **magazine = &side->magazines[stream];

        if (!side->has_magazines || wanted == (*magazine != NULL))
                return;
        if (!wanted) {
                spm_magazine_end(side->model, *magazine);
                *magazine = NULL;
                return;
        }
        side_must(spm_magazine_new(side->model, side->pool, side->streams[stream], magazine),
                  "a magazine");
}

void side_trim(struct side *side)
{
        struct spm_actions actions;
        enum spm_status status;

        do {
                status = spm_trim(side->model, side->pool, 0, NULL, &actions);
                perform(side, &actions);
        } while (status == SPM_AGAIN);
        side_must(status, "a trim");
}

void side_tick(struct side *side, uint64_t now)
{
        struct spm_actions actions;
        enum spm_status status;

        do {
                status = spm_tick(side->model, now, &actions);
                perform(side, &actions);
        } while (status == SPM_AGAIN);
        side_must(status, "a tick");
}

void side_order(struct side *side, unsigned int stream, unsigned int waiter)
{
        struct spm_scope where = {SPM_SCOPE_STREAM, side->streams[stream]};
        struct spm_scope who = {SPM_SCOPE_STREAM, side->streams[waiter]};
        struct spm_actions actions;
        struct spm_ticket ticket;

        side_must(spm_record_begin(side->model, side->event, where, &ticket, &actions), "a record");
        perform(side, &actions);
        spm_record_end(side->model, &ticket, true);
        side_must(spm_wait_begin(side->model, who, side->event, &ticket), "a wait");
        spm_wait_end(side->model, &ticket, true);
}

void side_capture(struct side *side, unsigned int stream, bool begins)
{
        struct spm_actions actions = {0};

        if (begins)
                side_must(spm_capture_begin(side->model, side->streams[stream], &actions),
                          "a capture");
        else
                side_must(spm_capture_end(side->model, side->streams[stream]), "a capture's end");
        perform(side, &actions);
}

void side_replace(struct side *side, unsigned int stream)
{
        struct spm_actions actions;
        unsigned int i;

        /* The magazine ends before its stream, or is emptied by that. */
        if (stream % 2)
                side_magazine(side, stream, false);
        side_must(spm_stream_retire(side->model, side->streams[stream], &actions),
                  "a stream's end");
        perform(side, &actions);
        side_magazine(side, stream, false);
        for (i = 0; i < SIDE_LIVE; i++)
                if (side->live[i].address && side->live[i].stream == side->streams[stream])
                        side_end(side, i, 0, SIDE_FREE_SYNC);
        side_must(spm_stream_add(side->model, side->context,
                                 stream % 2 ? SPM_STREAM_BLOCKING : SPM_STREAM_NON_BLOCKING,
                                 &side->streams[stream]),
                  "a stream");
}

/* life */

void side_begin(struct side *side)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .range_base = BASE,
                .range_size = SIDE_RANGE,
                .grain = GRAIN,
                .decay = SIDE_DECAY,
                .release_threshold = 16 * MIB,
        };
        unsigned int i;

        side_must(spm_model_new(NULL, &side->model), "a model");
        side_must(spm_context_add(side->model, 0, &side->context), "a context");
        side_must(spm_event_add(side->model, &side->event), "an event");
        for (i = 0; i < SIDE_STREAMS; i++)
                side_must(spm_stream_add(side->model, side->context,
                                         !i      ? SPM_STREAM_LEGACY
                                         : i % 2 ? SPM_STREAM_BLOCKING
                                                 : SPM_STREAM_NON_BLOCKING,
                                         &side->streams[i]),
                          "a stream");
        side_must(spm_pool_create(side->model, &config, &side->pool), "a pool");
}
